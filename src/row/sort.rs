//! Sorting the entries of an index: in memory, and beyond that in runs in a temporary file.
//!
//! An entry is kept as the record that will stand on a page, with the places of its key fields, so that
//! comparing takes nothing apart. Equal keys stay in the order in which they came.
//!
//! ```text
//! entry:  record length (4) | header bytes (2) | number (8) | per key field: offset (2), length (2) | record
//! ```

use std::cmp::Ordering;

use super::sort_run::{Run, RunWriter, SortPlace, SortedRun, TempFile};
use crate::page::RecordImage;
use crate::schema::compare::{KeyKind, compare_fields};
use crate::schema::{Field, FieldRef, Tuple};
use crate::sync::Arc;
use crate::tree::Tree;
use crate::words::{Error, Result, be};

/// Length of a key field that is NULL.
const NULL: u16 = u16::MAX;
/// Bytes before the key fields' places.
const HEAD: usize = 14;
/// Bytes of one key field's place.
const PLACE: usize = 4;

/// An entry in memory or in a block of a run.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    bytes: &'a [u8],
    n_keys: usize,
}

impl<'a> Item<'a> {
    /// The entry that begins `bytes`; `None` if they do not hold one.
    pub(super) fn first(bytes: &'a [u8], n_keys: usize) -> Option<Item<'a>> {
        let head = HEAD + PLACE * n_keys;
        if bytes.len() < head {
            return None;
        }
        let total = head + be::u32_at(bytes, 0) as usize;
        let bytes = bytes.get(..total)?;
        Some(Item { bytes, n_keys })
    }

    /// Bytes of the whole entry.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Which one it was in the order of arrival.
    pub fn number(&self) -> u64 {
        be::u64_at(self.bytes, 6)
    }

    /// The record: header and data.
    pub fn record(&self) -> &'a [u8] {
        &self.bytes[HEAD + PLACE * self.n_keys..]
    }

    /// Bytes of the record's header.
    pub fn extra(&self) -> usize {
        be::u16_at(self.bytes, 4).into()
    }

    /// Key field `i`.
    pub fn key(&self, i: usize) -> FieldRef<'a> {
        let at = HEAD + PLACE * i;
        let (start, len) = (be::u16_at(self.bytes, at), be::u16_at(self.bytes, at + 2));
        if len == NULL {
            return FieldRef::Null;
        }
        let start = usize::from(start);
        // What was read back from a file has the right checksum; a bug must not read elsewhere.
        let bytes = self.record().get(start..start + usize::from(len));
        FieldRef::Bytes(bytes.unwrap_or(&[]))
    }

    /// The first `n` key fields.
    pub fn copy_key_to(&self, n: usize, key: &mut Tuple) {
        key.clear();
        for i in 0..n {
            key.push(self.key(i));
        }
    }

    /// True if the first `n` key fields are equal in the tree's order, and none is NULL.
    pub fn has_same_key(&self, other: &Item<'_>, n: usize, tree: &Tree) -> bool {
        let fields = tree.index().fields[..n].iter().enumerate();
        let mut same = fields.map(|(i, field)| {
            let (a, b) = (self.key(i), other.key(i));
            !a.is_null() && compare_fields(field, a, b, tree.collations()).is_eq()
        });
        same.all(|same| same)
    }

    /// What orders entries before their keys are looked at: the first bytes of the first field.
    pub(super) fn prefix(&self, tree: &Tree) -> u64 {
        prefix(&tree.index().fields[0], self.key(0))
    }

    /// Order of two entries of a tree.
    pub(super) fn compare(&self, other: &Item<'_>, tree: &Tree) -> Ordering {
        for (i, field) in tree.index().fields[..self.n_keys].iter().enumerate() {
            let order = compare_fields(field, self.key(i), other.key(i), tree.collations());
            if order.is_ne() {
                return order;
            }
        }
        self.number().cmp(&other.number())
    }
}

/// Numbers in the order of the values, equal ones for values that are to be compared; 0 for all where bytes
/// do not decide.
fn prefix(field: &Field, value: FieldRef<'_>) -> u64 {
    if field.kind != KeyKind::Bytes {
        return 0;
    }
    let ascending = match value.bytes() {
        None => 0,
        Some(bytes) => {
            let mut first = [0; 8];
            let n = bytes.len().min(8);
            first[..n].copy_from_slice(&bytes[..n]);
            let number = u64::from_be_bytes(first);
            match field.nullable {
                true => number >> 1 | 1 << 63,
                false => number,
            }
        }
    };
    if field.desc { !ascending } else { ascending }
}

/// Collects the entries of one tree, and sorts them.
#[derive(Debug)]
pub struct Sorter {
    place: SortPlace,
    n_keys: usize,
    arena: Vec<u8>,
    /// Prefix, and where the entry stands in `arena`.
    entries: Vec<(u64, u32)>,
    file: Option<Arc<TempFile>>,
    runs: Vec<Run>,
    counted: super::sort_run::Counted,
    is_sorted: bool,
}

impl Sorter {
    /// For the entries of `tree`.
    pub fn new(tree: &Tree, place: &SortPlace) -> Sorter {
        Sorter {
            n_keys: tree.index().n_tree_unique(),
            arena: Vec::new(),
            entries: Vec::new(),
            file: None,
            runs: Vec::new(),
            counted: place.count(),
            place: place.clone(),
            is_sorted: true,
        }
    }

    /// Adds the entry `tuple`, whose record is `image`, as number `number`.
    ///
    /// Errors: what writing to the temporary file gives.
    pub fn push(
        &mut self,
        tree: &Tree,
        tuple: &Tuple,
        image: &RecordImage,
        number: u64,
    ) -> Result<()> {
        let size = HEAD + PLACE * self.n_keys + image.size();
        let entries = (self.entries.len() + 1) * size_of::<(u64, u32)>();
        if !self.entries.is_empty() && self.arena.len() + size + entries > self.place.buffer_bytes()
        {
            self.spill(tree)?;
        }
        let at = self.arena.len();
        self.append(tree, tuple, image, number);
        let item = Item {
            bytes: &self.arena[at..],
            n_keys: self.n_keys,
        };
        let entry = (item.prefix(tree), at as u32);
        if let (true, Some(&(prefix, before))) = (self.is_sorted, self.entries.last()) {
            self.is_sorted = prefix < entry.0
                || prefix == entry.0 && self.item(before).compare(&item, tree).is_lt();
        }
        self.entries.push(entry);
        let entries = self.entries.capacity() * size_of::<(u64, u32)>();
        self.counted.set(self.arena.capacity() + entries);
        Ok(())
    }

    fn append(&mut self, tree: &Tree, tuple: &Tuple, image: &RecordImage, number: u64) {
        let index = tree.index();
        self.arena
            .extend_from_slice(&(image.size() as u32).to_be_bytes());
        self.arena
            .extend_from_slice(&(image.extra_size() as u16).to_be_bytes());
        self.arena.extend_from_slice(&number.to_be_bytes());
        let mut at = image.extra_size();
        for (field, value) in index.fields[..self.n_keys].iter().zip(tuple.fields()) {
            let (len, bytes) = match value.bytes() {
                Some(bytes) => (bytes.len() as u16, bytes.len()),
                None if index.compact => (NULL, 0),
                None => (NULL, field.redundant_null_len.into()),
            };
            self.arena.extend_from_slice(&(at as u16).to_be_bytes());
            self.arena.extend_from_slice(&len.to_be_bytes());
            at += bytes;
        }
        self.arena.extend_from_slice(image.bytes());
    }

    /// Takes the entry that was added last back, right after it was added.
    pub fn pop(&mut self) {
        if let Some((_, at)) = self.entries.pop() {
            self.arena.truncate(at as usize);
        }
    }

    fn item(&self, at: u32) -> Item<'_> {
        Item::first(&self.arena[at as usize..], self.n_keys).expect("it was put there")
    }

    fn sort(&mut self, tree: &Tree) {
        if std::mem::replace(&mut self.is_sorted, true) {
            return;
        }
        let mut entries = std::mem::take(&mut self.entries);
        entries.sort_unstable_by(|a, b| {
            let by_prefix = a.0.cmp(&b.0);
            by_prefix.then_with(|| self.item(a.1).compare(&self.item(b.1), tree))
        });
        self.entries = entries;
    }

    /// What is in memory becomes a run in the file.
    fn spill(&mut self, tree: &Tree) -> Result<()> {
        self.sort(tree);
        let file = match &self.file {
            Some(file) => file.clone(),
            None => self.place.create_file()?,
        };
        let mut writer = RunWriter::new(&file);
        for &(_, at) in &self.entries {
            writer.push(self.item(at).bytes())?;
        }
        self.runs.push(writer.finish()?);
        self.file = Some(file);
        self.arena.clear();
        self.entries.clear();
        self.is_sorted = true;
        Ok(())
    }
}

/// Where sorted entries come from.
#[derive(Debug)]
enum Source {
    Memory { sorter: Box<Sorter>, at: usize },
    Run(SortedRun),
}

impl Source {
    /// The entry it is at.
    fn item(&self) -> Option<Item<'_>> {
        match self {
            Source::Memory { sorter, at } => {
                let (_, place) = sorter.entries.get(*at)?;
                Some(sorter.item(*place))
            }
            Source::Run(run) => run.item(),
        }
    }

    fn advance(&mut self) -> Result<()> {
        match self {
            Source::Memory { at, .. } => *at += 1,
            Source::Run(run) => run.advance()?,
        }
        Ok(())
    }
}

/// The entries of some sorters in order.
pub struct Sorted {
    sources: Vec<Source>,
    /// The sources that are not at their end, the lowest entry first: a heap of prefixes and places.
    heap: Vec<(u64, usize)>,
    begun: bool,
    _counted: super::sort_run::Counted,
}

impl Sorted {
    /// Sorts what is left in memory, and merges runs until the rest can be merged while it is read.
    ///
    /// Errors: what the temporary files give.
    pub fn new(tree: &Tree, place: &SortPlace, sorters: Vec<Sorter>) -> Result<Sorted> {
        let n_keys = tree.index().n_tree_unique();
        let mut runs = Vec::new();
        let mut sources = Vec::new();
        for mut sorter in sorters {
            sorter.sort(tree);
            runs.append(&mut sorter.runs);
            if !sorter.entries.is_empty() {
                let sorter = Box::new(sorter);
                sources.push(Source::Memory { sorter, at: 0 });
            }
        }
        let most = place.runs_at_once();
        while runs.len() > most {
            runs = merge_pass(tree, place, runs, most)?;
        }
        let mut counted = place.count();
        counted.set(runs.len() * SortPlace::BLOCK_BYTES);
        for run in runs {
            sources.push(Source::Run(SortedRun::open(run, n_keys)?));
        }
        Ok(Sorted::of(tree, sources, counted))
    }

    fn of(tree: &Tree, sources: Vec<Source>, counted: super::sort_run::Counted) -> Sorted {
        let mut sorted = Sorted {
            heap: Vec::with_capacity(sources.len()),
            sources,
            begun: false,
            _counted: counted,
        };
        for i in 0..sorted.sources.len() {
            if let Some(item) = sorted.sources[i].item() {
                sorted.heap.push((item.prefix(tree), i));
            }
        }
        for i in (0..sorted.heap.len() / 2).rev() {
            sorted.sift(tree, i);
        }
        sorted
    }

    /// The next entry; `None` at the end.
    ///
    /// Errors: what reading the temporary files gives, `Corrupt` if they hold other bytes than were written.
    pub fn next(&mut self, tree: &Tree) -> Result<Option<Item<'_>>> {
        if std::mem::replace(&mut self.begun, true) {
            self.leave_first(tree)?;
        }
        Ok(self.heap.first().and_then(|&(_, i)| self.sources[i].item()))
    }

    fn leave_first(&mut self, tree: &Tree) -> Result<()> {
        let Some(&(_, i)) = self.heap.first() else {
            return Ok(());
        };
        self.sources[i].advance()?;
        match self.sources[i].item() {
            Some(item) => self.heap[0].0 = item.prefix(tree),
            None => {
                self.heap.swap_remove(0);
            }
        }
        self.sift(tree, 0);
        Ok(())
    }

    fn is_less(&self, tree: &Tree, a: (u64, usize), b: (u64, usize)) -> bool {
        let by_prefix = a.0.cmp(&b.0);
        let order =
            by_prefix.then_with(
                || match (self.sources[a.1].item(), self.sources[b.1].item()) {
                    (Some(a), Some(b)) => a.compare(&b, tree),
                    _ => Ordering::Equal,
                },
            );
        order.is_lt()
    }

    /// Lets the entry at place `at` of the heap sink to where it belongs.
    fn sift(&mut self, tree: &Tree, mut at: usize) {
        loop {
            let mut least = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.heap.len() && self.is_less(tree, self.heap[child], self.heap[least])
                {
                    least = child;
                }
            }
            if least == at {
                return;
            }
            self.heap.swap(at, least);
            at = least;
        }
    }
}

/// Merges each `most` runs that follow one another into one.
fn merge_pass(tree: &Tree, place: &SortPlace, runs: Vec<Run>, most: usize) -> Result<Vec<Run>> {
    let n_keys = tree.index().n_tree_unique();
    let mut merged = Vec::with_capacity(runs.len().div_ceil(most));
    let file = place.create_file()?;
    let mut runs = runs.into_iter().peekable();
    while runs.peek().is_some() {
        let mut sources = Vec::with_capacity(most);
        for run in runs.by_ref().take(most) {
            sources.push(Source::Run(SortedRun::open(run, n_keys)?));
        }
        let mut counted = place.count();
        counted.set((sources.len() + 1) * SortPlace::BLOCK_BYTES);
        let mut sorted = Sorted::of(tree, sources, counted);
        let mut writer = RunWriter::new(&file);
        while let Some(item) = sorted.next(tree)? {
            writer.push(item.bytes())?;
        }
        merged.push(writer.finish()?);
    }
    match merged.is_empty() {
        true => Err(Error::internal("no runs to merge")),
        false => Ok(merged),
    }
}
