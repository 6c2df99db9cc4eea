//! Statements while the log is kept for a missing file, and has little room left.

use super::tests::{Bed, layout_of};
use crate::dict::testing::SampleDir;
use crate::format::redo_record::FileOp;
use crate::mtr::{Budget, Class, Mtr};
use crate::schema::RowFormat;
use crate::words::{Error, Lsn, SpaceId};

/// Appends what means nothing until `class` gets no more room in the log.
fn fill_log(bed: &Bed, class: Class) {
    let ctx = &bed.dir.ctx;
    let budget = Budget {
        class,
        ..Budget::statement(40_000)
    };
    let held = loop {
        let mut mtr = match Mtr::start(ctx, budget) {
            Ok(mtr) => mtr,
            Err(error) => break error,
        };
        let name = [b'x'; 1000];
        for _ in 0..30 {
            mtr.file_op(&FileOp::Modify {
                space: SpaceId(9999),
                name: &name,
            });
        }
        mtr.commit();
    };
    assert!(matches!(held, Error::LogHeld(_)), "{held}");
}

/// Each statement that failed took of the room that a log has left while it is kept for a missing file, until
/// not even its rollback found any: the engine stopped, and could not be started again.
#[test]
fn what_fails_for_a_log_that_is_kept_leaves_room_for_drops() {
    let bed = Bed::new();
    let image = layout_of(&SampleDir::open("mini"), "smp/s_dynamic");
    let create = |name: &str| bed.create(name, &image, RowFormat::Dynamic);
    create("d/away").expect("created");
    create("d/other").expect("created");
    let log = &bed.dir.ctx.log;
    log.hold_back(Some((log.checkpoint_lsn(), "a file")));
    fill_log(&bed, Class::Statement);
    // What fits in the last bytes may go on; what is refused takes nothing.
    let (mut names, mut before) = (["d/other", "d/new"], Lsn(0));
    for n in 0..200 {
        before = log.lsn();
        let created = create(&format!("d/t{n}"));
        let truncated = bed.run(|ddl, trx| ddl.truncate(trx, names[0]));
        let renamed = bed.run(|ddl, trx| ddl.rename(trx, names[0], names[1]));
        if renamed.is_ok() {
            names.reverse();
        }
        for done in [created, truncated, renamed] {
            assert!(matches!(done, Ok(()) | Err(Error::LogHeld(_))), "{done:?}");
        }
        if log.lsn() == before {
            break;
        }
    }
    assert_eq!(log.lsn(), before, "statements go on in the last room");
    bed.run(|ddl, trx| ddl.drop_table(trx, "d/away"))
        .expect("a drop is the way out");
}

/// A DROP for which the last room is too small could not be undone in it: the engine stopped.
#[test]
fn drops_that_find_no_room_in_a_log_that_is_kept_are_undone() {
    let bed = Bed::new();
    let image = layout_of(&SampleDir::open("mini"), "smp/s_dynamic");
    for n in 0..100 {
        bed.create(&format!("d/t{n}"), &image, RowFormat::Dynamic)
            .expect("created");
    }
    let log = &bed.dir.ctx.log;
    log.hold_back(Some((log.checkpoint_lsn(), "a file")));
    fill_log(&bed, Class::Dictionary);
    let drop_nth = |n: usize| bed.run(|ddl, trx| ddl.drop_table(trx, &format!("d/t{n}")));
    let dropped = (0..100).take_while(|&n| drop_nth(n).is_ok()).count();
    assert!(dropped < 100, "there was room for all");
    for _ in 0..10 {
        let failed = drop_nth(dropped);
        assert!(matches!(failed, Err(Error::LogHeld(_))), "{failed:?}");
    }
    let ctx = &bed.dir.ctx;
    ctx.check_running().expect("the engine goes on");
    log.hold_back(None);
    ctx.pool.flush_all().expect("written");
    log.checkpoint(&ctx.spaces, || ctx.pool.oldest_modification())
        .expect("a checkpoint");
    drop_nth(dropped).expect("nobody waits for a file any more");
}
