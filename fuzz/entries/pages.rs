//! Pages: those of indexes by the definition of a table of the stock server, old and new records.

use super::{head, page_of};
use std::hint::black_box;
use xtradb::format::blob::{BlobPart, BlobRef};
use xtradb::format::cfg::Cfg;
use xtradb::format::checksum::{self, Flavour};
use xtradb::format::dict_header::DictHeader;
use xtradb::format::fil::{self, FilHeader};
use xtradb::format::fsp::{self, Geometry, SpaceFlags, SpaceHeader};
use xtradb::format::inode::{self, SegmentHeader};
use xtradb::format::list::{FilAddr, ListBase, ListNode};
use xtradb::format::trx_sys::{self, Doublewrite};
use xtradb::format::undo_record::{UndoKind, UndoRecord};
use xtradb::format::{ibuf, rseg, undo_page as undo, undo_record, xdes};
use xtradb::host::collation::BytesOnly;
use xtradb::page::{
    Offsets, RecordView, Scratch, SearchMode, delete, insert, instant, layout, list, search,
    split_point, update, validate,
};
use xtradb::schema::{FieldRef, Index, Table, Tuple, cfg};
use xtradb::words::{PageNo, Result};

const TABLES: [&[u8]; 5] = [
    include_bytes!("../../tests/fixtures/samples/s_redundant.cfg"),
    include_bytes!("../../tests/fixtures/samples/s_compact.cfg"),
    include_bytes!("../../tests/fixtures/samples/s_dynamic.cfg"),
    include_bytes!("../../tests/fixtures/samples/s_types.cfg"),
    include_bytes!("../../tests/fixtures/samples/s_instant.cfg"),
];

/// Table, index, two bytes of choices, then an index page: read in every way, then changed.
pub fn index_page(data: &[u8]) {
    let ([table, number, a, b], bytes) = head(data);
    let mut page = page_of(bytes);
    let cfg = Cfg::parse(TABLES[table as usize % TABLES.len()]).expect("a stock .cfg");
    let mut table = cfg::from_cfg(&cfg).expect("a consistent .cfg");
    if add_instant(&mut table, &page).is_err() {
        return;
    }
    let indexes: Vec<&Index> = std::iter::once(table.clustered())
        .chain(table.secondary())
        .collect();
    let index = indexes[number as usize % indexes.len()];
    let Ok(row) = read_index_page(&page, index, a, b) else {
        return;
    };
    black_box(change_index_page(&mut page, index, row)).ok();
    black_box(validate(&page, index, &BytesOnly)).ok();
}

/// What the page says of instant columns, as at the opening of a table.
fn add_instant(table: &mut Table, page: &[u8]) -> Result<()> {
    layout::check_frame(page)?;
    let Some(state) = instant::root_state(page) else {
        return Ok(());
    };
    let Some(rec) = instant::metadata_record(page)? else {
        return Ok(());
    };
    if instant::metadata_blob(page, rec, table.clustered())?.is_some() {
        return Ok(());
    }
    table.set_instant(state.n_core_fields, state.core_null_bytes, None)?;
    let defaults = instant::defaults(page, rec, table.clustered(), |_| Ok(Box::default()))?;
    table.set_instant_defaults(defaults);
    Ok(())
}

/// Yields a record of the page.
fn read_index_page(page: &[u8], index: &Index, a: u8, b: u8) -> Result<Tuple> {
    black_box(validate(page, index, &BytesOnly)).ok();
    layout::check(page, index)?;
    black_box(layout::check_list(page)).ok();
    let mut offsets = Offsets::new();
    let (mut row, mut key) = (Tuple::new(), Tuple::new());
    let mut chosen = None;
    for (at, rec) in layout::records(page).flatten().enumerate() {
        let Ok(view) = RecordView::new(page, rec, index, &mut offsets) else {
            continue;
        };
        black_box(view.fields().map(FieldRef::len).sum::<usize>());
        black_box((
            view.trx_id(),
            view.roll_ptr(),
            view.child(),
            view.metadata_blob(),
        ));
        black_box(layout::previous(page, rec)).ok();
        if at == a as usize || chosen.is_none() {
            view.copy_to(&mut row);
            view.copy_key_to(&mut key, (index.n_uniq as usize).min(view.len()));
            chosen = Some(rec);
        }
    }
    let modes = [
        SearchMode::Less,
        SearchMode::LessOrEqual,
        SearchMode::Greater,
        SearchMode::GreaterOrEqual,
    ];
    black_box(search(page, index, &key, modes[b as usize % 4], &BytesOnly)).ok();
    let at = chosen.unwrap_or(layout::infimum(page));
    black_box(split_point::split_point(
        page,
        index,
        at,
        b as usize * 8,
        &mut offsets,
    ))
    .ok();
    Ok(row)
}

fn change_index_page(page: &mut [u8], index: &Index, row: Tuple) -> Result<()> {
    let mut scratch = Scratch::new();
    let mut moved = Vec::new();
    if row.is_empty() {
        return Ok(());
    }
    let found = search(page, index, &row, SearchMode::LessOrEqual, &BytesOnly)?;
    if !layout::is_system(page, found.low) {
        update::set_delete_mark(page, found.low, true);
        delete::delete(page, index, found.low, &mut scratch.offsets)?;
    }
    let found = search(page, index, &row, SearchMode::LessOrEqual, &BytesOnly)?;
    insert::insert(page, index, found.low, &row, &mut scratch)?;
    list::reorganise(page, index, &mut scratch, &mut moved)
}

/// Offset of a log header, then an undo page.
pub fn undo_page(data: &[u8]) {
    let ([high, low], bytes) = head(data);
    let mut page = page_of(bytes);
    let at = u16::from_be_bytes([high, low]) as usize % page.len();
    black_box((
        undo::state(&page),
        undo::free(&page),
        undo::last_log(&page),
        undo::start(&page),
    ))
    .1
    .ok();
    if let Ok(log) = undo::LogHeader::parse(&page, at) {
        black_box(log.xid().map(|xid| (xid.gtrid().len(), xid.bqual().len())));
        black_box((log.trx_no(), log.end(&page))).1.ok();
    }
    let free = undo::free(&page).unwrap_or(page.len());
    for body in undo_record::bodies(&page, at, free) {
        let Ok((_, body)) = body else { break };
        for n_uniq in 0..4 {
            black_box(read_undo_record(body, n_uniq)).ok();
        }
    }
    black_box(undo_record::previous(&page, undo::RECORDS, at)).ok();
    black_box(xtradb::undo::apply::append(
        &mut page,
        &bytes[..bytes.len().min(300)],
    ))
    .ok();
}

fn read_undo_record(body: &[u8], n_uniq: usize) -> Result<()> {
    let record = UndoRecord::parse(body)?;
    black_box(record.old_name()).ok();
    if record.kind == UndoKind::Insert {
        let mut insert = record.insert(n_uniq)?;
        insert.key.try_for_each(|value| value.map(drop))?;
        return insert.virtuals.try_for_each(|field| field.map(drop));
    }
    let mut update = record.update(n_uniq)?;
    update.key.try_for_each(|value| value.map(drop))?;
    let mut fields = update.changes.chain(update.ordering);
    fields.try_for_each(|field| field.map(drop))
}

/// Space header, extent descriptors, INODE pages.
pub fn space_page(data: &[u8]) {
    let ([high, low, hint], bytes) = head(data);
    let page = page_of(bytes);
    let at = u16::from_be_bytes([high, low]) as usize % page.len();
    black_box(FilHeader::parse(&page)).ok();
    let mut geometry = Geometry::of_page_size(page.len());
    if let Ok(header) = SpaceHeader::parse(&page) {
        black_box((
            header.space_id(),
            header.free_limit(),
            header.next_segment(),
        ));
        if let Ok(flags) = header.flags() {
            let found = flags.geometry();
            if found.physical_bytes() <= page.len() {
                geometry = found;
            }
        }
    }
    let page = &page[..geometry.physical_bytes()];
    for extent in 0..geometry.extents_per_descriptor_page() {
        let offset = geometry.xdes_offset(PageNo(extent * geometry.extent_pages()));
        let entry = &page[offset..][..geometry.xdes_bytes()];
        black_box((
            xdes::validate(entry),
            xdes::node(entry),
            xdes::segment(entry),
        ))
        .0
        .ok();
        black_box((
            xdes::find_free(entry, hint.into()),
            xdes::find_free_last(entry),
        ));
        black_box((
            xdes::used_pages(entry),
            geometry.extent_at(PageNo(0), offset),
        ));
    }
    for slot in 0..geometry.inodes_per_page() {
        let slot = &page[inode::slot_offset(geometry, slot)..][..geometry.inode_bytes()];
        black_box(inode::validate(slot)).ok();
        for which in [inode::OFF_FREE, inode::OFF_NOT_FULL, inode::OFF_FULL] {
            black_box(inode::list(slot, which)).ok();
        }
        black_box((inode::fragments(slot).count(), inode::free_fragment(slot)));
    }
    black_box(inode::page_node(page)).ok();
    black_box(SegmentHeader::parse(page, at, geometry)).ok();
    black_box((
        ListBase::parse(page, at),
        ListNode::parse(page, at),
        FilAddr::parse(page, at),
    ))
    .0
    .ok();
    let raw = u32::from_be_bytes([high, low, hint, data.get(3).copied().unwrap_or(0)]);
    black_box(SpaceFlags::parse(raw).map(|flags| flags.geometry())).ok();
    black_box(fsp::TableFlags::parse(raw)).ok();
}

/// TRX_SYS, rollback segment headers, the dictionary header.
pub fn system_page(data: &[u8]) {
    let page = page_of(data);
    let geometry = Geometry::of_page_size(page.len());
    black_box((
        trx_sys::old_max_trx_id(&page),
        trx_sys::slots(&page).count(),
    ));
    black_box(Doublewrite::parse(&page, geometry)).ok();
    black_box(rseg::check_format(&page)).ok();
    black_box(rseg::history(&page)).ok();
    black_box((
        rseg::slots(&page).count(),
        rseg::free_slot(&page),
        rseg::max_trx_id(&page),
    ));
    black_box((rseg::binlog_position(&page), rseg::history_size(&page)));
    if let Ok(header) = DictHeader::parse(&page) {
        black_box((
            header.roots(),
            header.next_row_id(),
            header.table_id(),
            header.index_id(),
        ));
    }
}

/// Offset of a reference, then a BLOB page; the checksums of any page.
pub fn blob_page(data: &[u8]) {
    let ([high, low], bytes) = head(data);
    let page = page_of(bytes);
    let at = u16::from_be_bytes([high, low]) as usize % page.len();
    black_box(BlobPart::parse(&page).map(|part| (part.data.len(), part.next))).ok();
    if let Ok(reference) = BlobRef::of_local_part(&page[..at]) {
        black_box((
            reference.page(),
            reference.offset(),
            reference.len_bytes(),
            reference.is_owner(),
        ));
    }
    for flavour in [Flavour::FullCrc32, Flavour::Crc32, Flavour::Zip] {
        black_box(checksum::verify(&page, flavour, fil::page_id(&page))).ok();
    }
    black_box(instant::parse_field_map(&page[at..])).ok();
}

/// Four lengths, then the head of a change buffer entry; the bytes again as a bitmap page.
pub fn change_buffer(data: &[u8]) {
    let (lens, bytes) = head::<4>(data);
    let mut rest = bytes;
    let fields = lens.map(|len| {
        let (field, after) = rest.split_at((len as usize).min(rest.len()));
        rest = after;
        field
    });
    if let Ok(entry) = ibuf::Entry::parse(fields) {
        black_box((entry.page, entry.operation, entry.types().count()));
    }
    let page = page_of(bytes);
    let geometry = Geometry::of_page_size(page.len());
    for number in (0..geometry.descriptor_interval()).step_by(61) {
        let bits = ibuf::bits(&page, geometry, PageNo(number));
        black_box(ibuf::bits_byte(&page, geometry, PageNo(number), bits));
    }
}
