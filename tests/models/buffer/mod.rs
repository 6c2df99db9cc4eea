//! The page table and its frames, with the steps by which the pool uses them (`enter`, `leave`,
//! `take_out` of src/buffer).

#[path = "../../../src/buffer/frame.rs"]
mod frame;
#[path = "../../../src/buffer/guide.rs"]
mod guide;
#[path = "../../../src/buffer/spots.rs"]
mod spots;
#[path = "../../../src/buffer/table.rs"]
mod table;

mod region {
    //! Plain memory, all of it there from the beginning.
    use crate::words::Result;

    pub(super) struct Array<T>(Box<[T]>);

    impl<T: Default> Array<T> {
        pub(super) fn reserve(count_max: usize) -> Result<Array<T>> {
            Ok(Array((0..count_max).map(|_| T::default()).collect()))
        }

        pub(super) fn commit(&self, count: usize) -> Result<()> {
            assert!(count <= self.0.len());
            Ok(())
        }
    }

    impl<T> std::ops::Deref for Array<T> {
        type Target = [T];

        fn deref(&self) -> &[T] {
            &self.0
        }
    }
}

use crate::sync::raw::atomic::{AtomicU64, Ordering};
use crate::sync::{Mode, Rank};
use crate::words::{PageId, PageNo, SpaceId};
use frame::{Frame, Load, NO_PAGE, WriteState};
use guide::{Draft, Guides, Sight, Want};
use spots::{KeyHash, Spots};
use table::{Found, Table};

/// So many need twice the buckets that a table has at least.
const FRAMES_LATER: usize = 64;

/// A pool that has no files: the content of a frame is the id of its page.
pub struct Pool {
    table: Table,
    frames: Vec<Frame>,
    content: Vec<AtomicU64>,
}

impl Pool {
    /// All frames are free.
    pub fn new(frame_count: usize) -> Pool {
        Pool {
            table: Table::new(frame_count, FRAMES_LATER).expect("plain memory"),
            frames: (0..frame_count).map(|_| Frame::default()).collect(),
            content: (0..frame_count).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Twice the buckets.
    pub fn grow(&self) {
        self.table
            .grow(&self.frames, FRAMES_LATER)
            .expect("plain memory");
    }

    /// The pages that are in frames.
    pub fn pages(&self) -> Vec<PageId> {
        let used = self
            .frames
            .iter()
            .filter(|frame| frame.id_word() != NO_PAGE);
        used.map(|frame| frame.id()).collect()
    }

    /// Finds the page, pins and reads it; `None` if it is not there.
    pub fn read(&self, id: PageId) -> Option<u64> {
        let at = match self.table.find(&self.frames, id) {
            Found::Pinned(at) => at,
            Found::Stale(at) => {
                self.frames[at as usize].unpin();
                return None;
            }
            Found::Nothing => {
                let shard = self.table.shard(id);
                let at = self.table.find_in(&shard, &self.frames, id)?;
                if !self.frames[at as usize].try_pin() {
                    return None;
                }
                at
            }
        };
        let frame = &self.frames[at as usize];
        frame.latch.lock(Mode::Shared, Rank::None);
        let content = self.content[at as usize].load(Ordering::Relaxed);
        assert!(
            frame.id() == id && frame.load() == Load::Ready,
            "a pinned frame keeps its page"
        );
        frame.latch.unlock(Mode::Shared, Rank::None);
        frame.unpin();
        Some(content)
    }

    /// Brings the page into an owned frame; false if somebody else was faster.
    pub fn bring(&self, id: PageId, at: usize) -> bool {
        let frame = &self.frames[at];
        {
            let shard = self.table.shard(id);
            if self.table.find_in(&shard, &self.frames, id).is_some() {
                return false;
            }
            frame.set_id(id.to_u64());
            frame.set_load(Load::Loading);
            assert!(
                frame.latch.try_lock(Mode::Exclusive, Rank::None),
                "an owned frame"
            );
            self.table.link(&shard, &self.frames, id, at as u32);
            frame.disown(1);
        }
        self.content[at].store(id.to_u64(), Ordering::Relaxed);
        frame.set_load(Load::Ready);
        frame.latch.unlock(Mode::Exclusive, Rank::None);
        frame.unpin();
        true
    }

    /// Evicts the page of frame `at`, which is owned afterwards; false if it is in use.
    pub fn evict(&self, at: usize) -> bool {
        let frame = &self.frames[at];
        if !frame.try_own() {
            return false;
        }
        if frame.load() != Load::Ready || frame.write_state() != WriteState::Clean {
            frame.disown(0);
            return false;
        }
        let id = frame.id();
        let shard = self.table.shard(id);
        self.table.unlink(&shard, &self.frames, id, at as u32);
        frame.set_id(NO_PAGE);
        drop(shard);
        // Nobody may read what is here now.
        self.content[at].store(NO_PAGE, Ordering::Relaxed);
        frame.reset();
        true
    }
}

/// A tree of one inner page and two leaves. The inner page's content is the first key of the second leaf;
/// a leaf's is the set of its keys, a bit each.
pub struct Tree {
    pool: Pool,
    guides: Guides,
    /// The inner page in its file.
    file: AtomicU64,
}

/// The keys are 0 to 7.
const ALL_KEYS: u64 = 0xFF;
const TREE: u64 = 9;
/// The leaves stay in these frames, the inner page is in one of the others.
const LEAVES: [usize; 2] = [1, 2];

fn page(number: u32) -> PageId {
    PageId::new(SpaceId(1), PageNo(number))
}

impl Tree {
    /// Keys below `boundary` are in the first leaf.
    pub fn new(boundary: u64) -> Tree {
        let tree = Tree {
            pool: Pool::new(4),
            guides: Guides::new(4, 96),
            file: AtomicU64::new(boundary),
        };
        for at in LEAVES {
            assert!(tree.pool.bring(page(at as u32), at));
        }
        tree.store(LEAVES[0], LEAVES[1], boundary);
        assert!(tree.bring_root(0));
        tree.guide();
        tree
    }

    fn store(&self, first: usize, second: usize, boundary: u64) {
        let low = (1 << boundary) - 1;
        self.pool.content[first].store(low, Ordering::Relaxed);
        self.pool.content[second].store(ALL_KEYS & !low, Ordering::Relaxed);
    }

    fn bring_root(&self, at: usize) -> bool {
        let frame = &self.pool.frames[at];
        let id = page(9);
        {
            let shard = self.pool.table.shard(id);
            if self
                .pool
                .table
                .find_in(&shard, &self.pool.frames, id)
                .is_some()
            {
                return false;
            }
            frame.set_id(id.to_u64());
            frame.set_load(Load::Loading);
            assert!(frame.latch.try_lock(Mode::Exclusive, Rank::None));
            self.pool
                .table
                .link(&shard, &self.pool.frames, id, at as u32);
            frame.disown(1);
        }
        let content = self.file.load(Ordering::Relaxed);
        self.pool.content[at].store(content, Ordering::Relaxed);
        frame.set_load(Load::Ready);
        frame.latch.unlock(Mode::Exclusive, Rank::None);
        frame.unpin();
        true
    }

    fn pin_root(&self) -> Option<usize> {
        let shard = self.pool.table.shard(page(9));
        let at = self
            .pool
            .table
            .find_in(&shard, &self.pool.frames, page(9))? as usize;
        self.pool.frames[at].try_pin().then_some(at)
    }

    fn sight_of(&self, at: usize) -> Sight {
        let frame = &self.pool.frames[at];
        Sight {
            frame: at as u32,
            page: frame.id().to_u64(),
            version: frame.latch.version(),
        }
    }

    /// Writes the guide of the inner page.
    pub fn guide(&self) {
        let Some(at) = self.pin_root() else { return };
        let frame = &self.pool.frames[at];
        frame.latch.lock(Mode::Shared, Rank::None);
        let boundary = self.pool.content[at].load(Ordering::Relaxed);
        let draft = Draft {
            tree: TREE,
            level: 1,
            key_bytes: 8,
            windows: vec![0, boundary],
            children: LEAVES.map(|leaf| leaf as u32).to_vec(),
            ..Draft::default()
        };
        self.guides.write(frame, &self.sight_of(at), &draft, 4);
        frame.latch.unlock(Mode::Shared, Rank::None);
        frame.unpin();
    }

    /// A structure change: keys go from leaf to leaf.
    pub fn restructure(&self, boundary: u64) {
        let Some(at) = self.pin_root() else { return };
        let frames = [at, LEAVES[0], LEAVES[1]].map(|at| &self.pool.frames[at]);
        frames
            .iter()
            .for_each(|frame| frame.latch.lock(Mode::Exclusive, Rank::None));
        self.pool.content[at].store(boundary, Ordering::Relaxed);
        self.store(LEAVES[0], LEAVES[1], boundary);
        self.file.store(boundary, Ordering::Relaxed);
        frames
            .iter()
            .for_each(|frame| frame.latch.unlock(Mode::Exclusive, Rank::None));
        frames[0].unpin();
    }

    /// The inner page leaves its frame, and comes back in the other one.
    pub fn relocate(&self) {
        for (from, to) in [(0, 3), (3, 0)] {
            if self.pool.frames[from].id() == page(9) && self.pool.evict(from) {
                self.bring_root(to);
                return;
            }
        }
    }

    /// A descent by the guide: `None` if it did not lead to the leaf, else whether the key is there.
    pub fn has(&self, key: u64) -> Option<bool> {
        let at = self.pool.table.look(&self.pool.frames, page(9))?;
        let frame = &self.pool.frames[at as usize];
        let sight = Sight {
            frame: at,
            page: page(9).to_u64(),
            version: frame.latch.version(),
        };
        if sight.version & 1 != 0 {
            return None;
        }
        let want = Want {
            tree: TREE,
            key: &key.to_be_bytes(),
            is_whole: true,
            equal_is_low: true,
        };
        let told = self.guides.ask(frame, &sight, &want)?;
        let leaf = told.child.0 as usize;
        assert!(
            LEAVES.contains(&leaf),
            "a guide that was half-written is not believed"
        );
        let latch = &self.pool.frames[leaf].latch;
        latch.lock(Mode::Shared, Rank::None);
        // As `Pool::still`.
        let still = frame.id_word() == sight.page && frame.latch.version() == sight.version;
        let keys = self.pool.content[leaf].load(Ordering::Relaxed);
        latch.unlock(Mode::Shared, Rank::None);
        self.guides.correct(&told, leaf as u32);
        still.then_some(keys >> key & 1 == 1)
    }
}

/// A leaf whose records change their places: the content of its frame says which key stands at which.
pub struct Leaf {
    pool: Pool,
    spots: Spots,
}

/// Records of a leaf stand at one of these for each key, in units of the content's bytes.
const KEYS: u64 = 4;

impl Leaf {
    /// Key k stands at place 1 + k.
    pub fn new() -> Leaf {
        let leaf = Leaf {
            pool: Pool::new(1),
            spots: Spots::reserve(1).expect("plain memory"),
        };
        assert!(leaf.pool.bring(page(1), 0));
        leaf.pool.content[0].store(0, Ordering::Relaxed);
        leaf
    }

    fn place(content: u64, key: u64) -> usize {
        1 + ((key + content) % KEYS) as usize
    }

    /// All records move, under X.
    pub fn shift(&self) {
        let frame = &self.pool.frames[0];
        frame.latch.lock(Mode::Exclusive, Rank::None);
        let content = self.pool.content[0].load(Ordering::Relaxed);
        self.pool.content[0].store(content + 1, Ordering::Relaxed);
        frame.latch.unlock(Mode::Exclusive, Rank::None);
    }

    /// A reader under S: asks the spots, which must tell the truth or nothing, and writes them when wanted.
    /// True if they told.
    pub fn read(&self, key: u64) -> bool {
        let frame = &self.pool.frames[0];
        frame.latch.lock(Mode::Shared, Rank::None);
        let content = self.pool.content[0].load(Ordering::Relaxed);
        let version = frame.latch.version();
        let hash = |key: u64| KeyHash::of(&key.to_be_bytes());
        let told = self.spots.find(0, version, hash(key), |_| true);
        if let Some(place) = told {
            assert_eq!(place, Leaf::place(content, key), "a spot of other bytes is believed");
        } else if self.spots.is_wanted(0, version) {
            let records = (0..KEYS).map(|key| (hash(key), Leaf::place(content, key)));
            self.spots.write(0, version, records);
        }
        frame.latch.unlock(Mode::Shared, Rank::None);
        told.is_some()
    }
}
