//! The list of cached pages: written at shutdown, so that the next start can read the pages before
//! anybody asks for them.
//!
//! The file (innodb_buffer_pool_filename, InnoDB's ib_buffer_pool) is text: a line "space,page" for each
//! page, hottest first. It is a hint and no more: a line that says something else is passed over, and so
//! is a page that is not there any more. It is written beside its place and renamed, so that whoever reads
//! it reads all of it.

use std::collections::HashMap;
use std::fmt::Write;

use super::places::Setup;
use super::types::HostServices;
use crate::buffer::Listed;
use crate::dict::Dict;
use crate::mtr::PageCtx;
use crate::os::clock::local_time;
use crate::os::file::{join, parent};
use crate::os::thread::Threads;
use crate::os::{File, OpenMode};
use crate::settings::{Counter, Counters, Settings, ids};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Event, Mutex, Rank};
use crate::words::{PageId, PageNo, Result, SpaceId};
use std::time::Duration;

/// Pages that are read in order of their place; those behind them come later.
const LIST_PAGES: usize = 128;
/// Bytes that are read or written in one go.
const PIECE: usize = 64 << 10;
/// No line is longer: two numbers of 32 bits.
const LINE_MAX: usize = 32;
/// Length of a sleep when nothing is asked for.
const REST: Duration = Duration::from_secs(3600);

/// Writes and reads the list.
pub(super) struct PoolList {
    path: String,
    ctx: Arc<PageCtx>,
    dict: Arc<Dict>,
    settings: Arc<Settings>,
    counters: Arc<Counters>,
    host: HostServices,
    state: Mutex<State>,
    wanted: Event,
    aborted: AtomicBool,
    stopping: AtomicBool,
}

struct State {
    dump_status: Box<str>,
    load_status: Box<str>,
    wants_dump: bool,
    wants_load: bool,
}

/// What stands in a file.
#[derive(Default, Debug, PartialEq, Eq)]
struct Content {
    pages: Vec<PageId>,
    /// Lines that name no page.
    skipped: usize,
}

impl PoolList {
    pub(super) fn new(
        setup: &Setup,
        ctx: &Arc<PageCtx>,
        dict: &Arc<Dict>,
        settings: &Arc<Settings>,
        counters: &Arc<Counters>,
        host: &HostServices,
    ) -> Arc<PoolList> {
        let name = settings.text(ids::BUFFER_POOL_FILENAME);
        Arc::new(PoolList {
            path: join(&setup.places.system_dir, &name),
            ctx: ctx.clone(),
            dict: dict.clone(),
            settings: settings.clone(),
            counters: counters.clone(),
            host: host.clone(),
            state: Mutex::new(
                Rank::Leaf,
                State {
                    dump_status: "Dumping of buffer pool not started".into(),
                    load_status: "Loading of buffer pool not started".into(),
                    wants_dump: false,
                    wants_load: false,
                },
            ),
            wanted: Event::new(),
            aborted: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
        })
    }

    /// Starts the thread that does what it is asked for.
    ///
    /// Errors: `Io` if there is no thread to be had.
    pub(super) fn start(self: &Arc<PoolList>, workers: &Threads) -> Result<()> {
        let this = self.clone();
        workers.start("xt_pool_list", move || this.run())
    }

    /// Ends the thread; a load ends where it is.
    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.ctx.pool.forget_lists();
        self.wanted.set();
    }

    /// The list is written soon.
    pub(super) fn ask_dump(&self) {
        self.state.lock().wants_dump = true;
        self.wanted.set();
    }

    /// The pages of the list are read soon.
    pub(super) fn ask_load(&self) {
        self.state.lock().wants_load = true;
        self.wanted.set();
    }

    /// A load that goes on, or was asked for, ends.
    pub(super) fn abort_load(&self) {
        self.state.lock().wants_load = false;
        self.aborted.store(true, Ordering::Release);
        self.ctx.pool.forget_lists();
    }

    /// How the last dump ended, or that one goes on.
    pub(super) fn dump_status(&self) -> Box<str> {
        self.state.lock().dump_status.clone()
    }

    /// How the last load ended, or how far it is.
    pub(super) fn load_status(&self) -> Box<str> {
        self.state.lock().load_status.clone()
    }

    fn run(&self) {
        while !self.is_stopping() {
            let (dump, load) = {
                let mut state = self.state.lock();
                // Of a load that is asked for from here on the abort is none.
                self.aborted.fetch_and(!state.wants_load, Ordering::AcqRel);
                let wants = (state.wants_dump, state.wants_load);
                (state.wants_dump, state.wants_load) = (false, false);
                wants
            };
            if dump {
                self.dump();
            }
            if load {
                self.load();
            }
            if !dump && !load {
                self.wanted.wait(REST);
            }
        }
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    fn now(&self) -> String {
        local_time(self.host.callbacks.wall_clock())
    }

    // Dump ---------------------------------------------------------------------------------------

    /// Writes the list, unless a load did not come to its end: what the pool holds then is no better than
    /// what stands in the file.
    pub(super) fn dump_at_shutdown(&self) {
        match self.counters.get(Counter::BufferPoolLoadIncomplete) {
            0 => self.dump(),
            _ => log::info!(
                "the list of cached pages is left as it is: it was not loaded to its end"
            ),
        }
    }

    fn dump(&self) {
        self.say_dump(format!("Dumping buffer pool(s) to {}", self.path));
        match self.write_list() {
            Ok(()) => self.say_dump(format!("Buffer pool(s) dump completed at {}", self.now())),
            Err(error) => {
                log::error!("the list of cached pages is not written: {error}");
                self.say_dump(format!("Cannot write '{}': {error}", self.path));
            }
        }
    }

    fn say_dump(&self, text: String) {
        log::info!("{text}");
        self.state.lock().dump_status = text.into();
    }

    /// Errors: `Io`; the file is as it was then.
    fn write_list(&self) -> Result<()> {
        let percent = self.settings.uint(ids::BUFFER_POOL_DUMP_PCT) as usize;
        let pool = &self.ctx.pool;
        let pages = pool.hottest((pool.frame_count() * percent / 100).max(1));
        let vfs = self.ctx.spaces.vfs();
        let beside = format!("{}.incomplete", self.path);
        if vfs.exists(&beside)? {
            vfs.remove(&beside)?;
        }
        let file = vfs.create(&beside, OpenMode::WRITE)?;
        let (mut text, mut offset) = (String::with_capacity(PIECE + LINE_MAX), 0);
        for id in pages {
            let _ = writeln!(text, "{},{}", id.space.0, id.page.0);
            if text.len() >= PIECE {
                file.write_at(text.as_bytes(), offset)?;
                offset += text.len() as u64;
                text.clear();
            }
        }
        file.write_at(text.as_bytes(), offset)?;
        file.sync_data()?;
        drop(file);
        vfs.rename(&beside, &self.path)?;
        vfs.sync_dir(parent(&self.path))
    }

    // Load ---------------------------------------------------------------------------------------

    fn load(&self) {
        match self.ctx.spaces.vfs().exists(&self.path) {
            // As on the first start of all.
            Ok(false) => {
                let text = format!("Cannot open '{}' for reading: no such file", self.path);
                self.state.lock().load_status = text.into();
            }
            _ => self.load_file(),
        }
    }

    fn load_file(&self) {
        self.say_load(format!("Loading buffer pool(s) from {}", self.path));
        let content = match self.read_file() {
            Ok(content) => content,
            Err(error) => {
                log::warn!("the list of cached pages is not loaded: {error}");
                return self.say_load(format!("Cannot read '{}': {error}", self.path));
            }
        };
        if content.skipped > 0 {
            log::warn!("{}: {} lines name no page", self.path, content.skipped);
        }
        self.counters.set(Counter::BufferPoolLoadIncomplete, 1);
        if !self.read_pages(&content.pages) {
            let why = match self.is_stopping() {
                true => "due to shutdown",
                false => "on request",
            };
            return self.say_load(format!("Buffer pool(s) load aborted {why}"));
        }
        self.counters.set(Counter::BufferPoolLoadIncomplete, 0);
        self.say_load(format!("Buffer pool(s) load completed at {}", self.now()));
    }

    fn say_load(&self, text: String) {
        log::info!("{text}");
        self.state.lock().load_status = text.into();
    }

    /// Errors: `Io`.
    fn read_file(&self) -> Result<Content> {
        let file = self.ctx.spaces.vfs().open(&self.path, OpenMode::READ)?;
        read_content(&*file, self.ctx.pool.frame_count())
    }

    /// False if it was told to end before.
    fn read_pages(&self, pages: &[PageId]) -> bool {
        let pool = &self.ctx.pool;
        let mut names = None;
        let mut said = 0;
        for (number, list) in pages.chunks(LIST_PAGES).enumerate() {
            if self.is_told_to_end() {
                return false;
            }
            self.open_spaces(list, &mut names);
            match pool.read_list(list.to_vec()) {
                Listed::Taken => {}
                Listed::Full => break,
                Listed::NoReader => return false,
            }
            self.say_progress(number * LIST_PAGES, pages.len(), &mut said);
        }
        pool.wait_for_lists();
        !self.is_told_to_end()
    }

    fn is_told_to_end(&self) -> bool {
        self.is_stopping() || self.aborted.load(Ordering::Acquire)
    }

    /// In the status, and every so many percent (innodb_buf_dump_status_frequency) in the log.
    fn say_progress(&self, done: usize, all: usize, said: &mut usize) {
        let text = format!("Loaded {done}/{all} pages");
        let step = self.settings.uint(ids::BUF_DUMP_STATUS_FREQUENCY) as usize;
        let percent = done * 100 / all;
        if step > 0 && percent >= *said + step {
            *said = percent;
            log::info!("{text}");
        }
        self.state.lock().load_status = text.into();
    }

    /// Opens the tables whose files nobody opened yet. `names`: by tablespace, read when first needed.
    fn open_spaces(&self, list: &[PageId], names: &mut Option<HashMap<SpaceId, Box<str>>>) {
        for id in list {
            if self.ctx.spaces.get(id.space).is_some() {
                continue;
            }
            let names = names.get_or_insert_with(|| {
                let rows = self.dict.table_rows(&self.ctx).unwrap_or_default();
                rows.into_iter().map(|row| (row.space, row.name)).collect()
            });
            // Once: one that cannot be opened, or that was dropped, is passed over.
            if let Some(name) = names.remove(&id.space) {
                let _ = self.dict.open_table(&self.ctx, &name);
            }
        }
    }
}

/// The first `most` pages that the file names.
///
/// Errors: `Io`.
fn read_content(file: &dyn File, most: usize) -> Result<Content> {
    let size = file.size()?;
    let mut content = Content::default();
    let (mut text, mut offset) = (Vec::with_capacity(PIECE + LINE_MAX), 0);
    // Inside a line that is too long to name a page.
    let mut in_long = false;
    while offset < size && content.pages.len() < most {
        let left = text.len();
        text.resize(left + (size - offset).min(PIECE as u64) as usize, 0);
        file.read_at(&mut text[left..], offset)?;
        offset += (text.len() - left) as u64;
        let whole = match text.iter().rposition(|&byte| byte == b'\n') {
            Some(end) => end + 1,
            // The last line may have no end.
            None if offset == size => text.len(),
            None => 0,
        };
        let lines = text[..whole].split(|&byte| byte == b'\n');
        for line in lines.skip(usize::from(in_long)) {
            content.take(line);
        }
        in_long = in_long && whole == 0;
        text.drain(..whole);
        if text.len() > LINE_MAX {
            text.clear();
            content.skipped += usize::from(!in_long);
            in_long = true;
        }
    }
    if !in_long {
        content.take(&text);
    }
    content.pages.truncate(most);
    Ok(content)
}

impl Content {
    fn take(&mut self, line: &[u8]) {
        if line.is_empty() {
            return;
        }
        match parse(line) {
            Some(id) => self.pages.push(id),
            None => self.skipped += 1,
        }
    }
}

/// "space,page" in decimal digits.
fn parse(line: &[u8]) -> Option<PageId> {
    let (space, page) = std::str::from_utf8(line).ok()?.split_once(',')?;
    let number = |text: &str| {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
        is_plain.then(|| text.parse::<u32>().ok()).flatten()
    };
    let id = PageId::new(SpaceId(number(space)?), PageNo(number(page)?));
    (id.space < SpaceId::UPPER_BOUND && id.page.0 != u32::MAX).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::Vfs;
    use crate::os::sim::SimVfs;

    fn content(text: &[u8], most: usize) -> Content {
        let sim = SimVfs::new();
        let file = sim.create("list", OpenMode::WRITE).expect("a file");
        file.write_at(text, 0).expect("written");
        read_content(&*file, most).expect("read")
    }

    #[test]
    fn lines_that_name_no_page_are_passed_over() {
        let read = content(
            b"0,5\nx\n7,3\n1,2,3\n-1,4\n4294967280,1\n8,4294967295\n99999999999,1\n\n9,1",
            9,
        );
        let pages: Vec<_> = read
            .pages
            .iter()
            .map(|id| (id.space.0, id.page.0))
            .collect();
        assert_eq!(pages, [(0, 5), (7, 3), (9, 1)]);
        assert_eq!(read.skipped, 6);
        assert_eq!(content(b"", 9), Content::default());
        assert_eq!(content(b"1,1\n1,2\n1,3\n", 2).pages.len(), 2);
    }

    #[test]
    fn lists_longer_than_a_piece_and_lines_without_end_are_read() {
        let mut text = Vec::new();
        for page in 0..50_000 {
            text.extend_from_slice(format!("{},{page}\n", page % 7).as_bytes());
            if page == 20_000 {
                text.extend_from_slice(&[b'9'; 3 * PIECE]);
                text.push(b'\n');
            }
        }
        let read = content(&text, usize::MAX);
        assert_eq!((read.pages.len(), read.skipped), (50_000, 1));
        let in_order = (0..).zip(&read.pages).all(|(page, id)| id.page.0 == page);
        assert!(in_order);
        let zeros = content(&vec![0; 5 * PIECE], usize::MAX);
        assert_eq!((zeros.pages.len(), zeros.skipped), (0, 1));
    }
}
