//! Leaves that are remembered: what changed there since is never believed.

use std::collections::BTreeMap;

use super::tests::{Bed, Random, bed, key, value};
use super::*;
use crate::page::{Offsets, RecordView};

/// A merge frees the leaf, whose bytes stay as they were: the record there is not the row any more.
#[test]
fn a_record_on_a_leaf_that_was_freed_is_not_found_again() {
    let mut bed = bed(512, true);
    let seek = |bed: &Bed, id, guess: &mut Guess| {
        let mut mtr = bed.pages.mtr();
        let at = loop {
            match bed.tree.seek_near(&mut mtr, &key(id), Intent::Read, guess) {
                Err(Error::WouldBlock) => mtr.restart().expect("restart"),
                other => break other.expect("seek"),
            }
        };
        assert_eq!(at.low_match, 1);
        let mut offsets = Offsets::new();
        let r = RecordView::new(mtr.view(at.page), at.rec, bed.tree.index(), &mut offsets);
        r.expect("record")
            .field(3)
            .bytes()
            .expect("a value")
            .to_vec()
    };
    for id in 0..1000 {
        bed.insert(id, &[7; 30]);
    }
    let kept: Vec<u64> = (0..1000).step_by(25).collect();
    let mut guesses = vec![Guess::default(); kept.len()];
    for (&id, guess) in kept.iter().zip(&mut guesses) {
        assert_eq!(seek(&bed, id, guess), [7; 30]);
    }
    for id in (0..1000).filter(|id| !kept.contains(id)) {
        bed.delete(id);
    }
    for (&id, guess) in kept.iter().zip(&mut guesses) {
        bed.update(id, &[8; 30]).expect("update");
        assert_eq!(seek(&bed, id, guess), [8; 30], "row {id}");
    }
}

/// Whatever happened to the remembered leaf, the search says what a search from the root says.
#[test]
fn a_remembered_leaf_that_has_changed_is_not_believed() {
    let mut rnd = Random(3);
    let bed = bed(64, true);
    let mut model = BTreeMap::new();
    let mut guess = Guess::default();
    for round in 0..3000 {
        let id = rnd.below(400) as u64;
        match rnd.below(6) {
            0 => drop(model.remove(&id).inspect(|_: &Vec<u8>| bed.delete(id))),
            1 | 2 if !model.contains_key(&id) => {
                let v = value(&mut rnd);
                bed.insert(id, &v);
                model.insert(id, v);
            }
            _ => {}
        }
        let intent = [Intent::Read, Intent::Modify][rnd.below(2)];
        let other = rnd.below(400) as u64;
        let there = if round % 3 == 0 { other } else { id };
        let wanted = key(there);
        let mut mtr = bed.pages.mtr();
        let at = loop {
            match bed.tree.seek_near(&mut mtr, &wanted, intent, &mut guess) {
                Err(Error::WouldBlock) => mtr.restart().expect("restart"),
                other => break other.expect("seek"),
            }
        };
        assert_eq!(
            at.low_match == 1,
            model.contains_key(&there),
            "round {round}"
        );
        if let Some(v) = model.get(&there) {
            let mut offsets = Offsets::new();
            let view = mtr.view(at.page);
            let r = RecordView::new(view, at.rec, bed.tree.index(), &mut offsets).expect("record");
            assert_eq!(r.field(3).bytes(), Some(&v[..]), "round {round}");
        }
    }
    bed.validate();
}
