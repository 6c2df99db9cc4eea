//! Changes that `row` does not have yet.

use crate::dict::Dict;
use crate::host::image::RowIn;
use crate::mtr::PageCtx;
use crate::row::*;
use crate::schema::Tuple;
use crate::tree::Tree;
use crate::trx::Trx;
use crate::words::{Error, Result, UndoNo};

pub fn update(
    _: &mut Op<'_>,
    _: &[Tree],
    _: &Template,
    _: &mut Workspace,
    _: &Tuple,
    _: RowIn<'_>,
    _: &[u16],
) -> Result<()> {
    Err(Error::unsupported("update"))
}
pub fn delete(_: &mut Op<'_>, _: &[Tree], _: &mut Workspace, _: &Tuple) -> Result<()> {
    Err(Error::unsupported("delete"))
}
pub fn rollback(ctx: &PageCtx, _: &Dict, trx: &mut Trx) -> Result<()> {
    trx.commit(ctx, None).map(|_| ())
}
pub fn rollback_to(_: &PageCtx, _: &Dict, _: &mut Trx, _: UndoNo) -> Result<()> {
    Err(Error::unsupported("rollback"))
}
