//! A recorded run of the simulated device: run once, then cut at every moment, by as many seeds as
//! wanted. States share all blocks that do not differ.

use super::sim::SimVfs;
use super::sim_disk::{Disk, Event};

/// What happened to a device, in order.
#[derive(Clone, Debug)]
pub struct Recording {
    start: Disk,
    events: Vec<Event>,
}

impl Recording {
    pub(super) fn new(start: Disk) -> Recording {
        Recording {
            start,
            events: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, event: Event) {
        self.events.push(event);
    }

    /// Number of events, which is the last moment; 0 is before the first event.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// True if nothing happened.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Moments at which a cut differs from one before: after each write, each sync, each change of
    /// names.
    pub fn moments(&self) -> Vec<usize> {
        let counts = |event: &Event| !matches!(event, Event::New | Event::Mark(_));
        let found = self.events.iter().enumerate().filter(|(_, e)| counts(e));
        found.map(|(at, _)| at + 1).collect()
    }

    /// The notes with the moments from which on they hold, in order.
    pub fn marks(&self) -> Vec<(usize, u64)> {
        let mark = |(at, event): (usize, &Event)| match event {
            Event::Mark(note) => Some((at + 1, *note)),
            _ => None,
        };
        self.events.iter().enumerate().filter_map(mark).collect()
    }

    /// The run from its begin.
    pub fn replay(&self) -> Replay<'_> {
        Replay {
            recording: self,
            disk: self.start.clone(),
            moment: 0,
        }
    }

    /// What the last event before a moment was, for reports.
    pub fn describe(&self, moment: usize) -> String {
        let name = |inode: usize| {
            let mut disk = self.start.clone();
            self.events[..moment].iter().for_each(|e| match e {
                Event::Data { .. } | Event::Sync(_) | Event::Lose(_) => {}
                other => disk.apply(other),
            });
            let found = disk.files.iter().find(|(_, i)| **i == inode);
            found.map_or("a nameless file".to_string(), |(name, _)| name.clone())
        };
        match moment.checked_sub(1).map(|at| &self.events[at]) {
            None => "the begin".into(),
            Some(Event::Data { inode, op }) => {
                use super::sim_disk::Op;
                match op {
                    Op::Write { offset, bytes } => {
                        format!("write of {} at {offset} of {}", bytes.len(), name(*inode))
                    }
                    Op::Zeros { offset, len } => {
                        format!("write of {len} zeros at {offset} of {}", name(*inode))
                    }
                    Op::Resize(to) => format!("resize of {} to {to}", name(*inode)),
                }
            }
            Some(Event::Sync(inode)) => format!("sync of {}", name(*inode)),
            Some(Event::Lose(inode)) => format!("failed sync of {}", name(*inode)),
            Some(other) => format!("{other:?}"),
        }
    }
}

/// A recorded run that moves forward.
#[derive(Clone, Debug)]
pub struct Replay<'r> {
    recording: &'r Recording,
    disk: Disk,
    moment: usize,
}

impl Replay<'_> {
    /// Goes on to a moment, which is not before the present one.
    ///
    /// # Panics
    /// If it is, or is not in the recording.
    pub fn advance_to(&mut self, moment: usize) {
        assert!(
            self.moment <= moment && moment <= self.recording.len(),
            "from {} to {moment} of {}",
            self.moment,
            self.recording.len()
        );
        for event in &self.recording.events[self.moment..moment] {
            self.disk.apply(event);
        }
        self.moment = moment;
    }

    /// What the device holds if the power goes at this moment, by `seed`.
    pub fn cut(&self, seed: u64) -> SimVfs {
        SimVfs::from_disk(self.disk.cut(seed))
    }

    /// The files as a process finds them that starts after one that was killed at this moment.
    pub fn kill(&self) -> SimVfs {
        SimVfs::from_disk(self.disk.clone())
    }
}

impl SimVfs {
    /// Records every change from now on.
    pub fn start_recording(&self) {
        let mut state = self.0.state.lock();
        state.recording = Some(Recording::new(state.disk.clone()));
    }

    /// What was recorded; recording ends.
    ///
    /// # Panics
    /// If nothing was being recorded.
    pub fn take_recording(&self) -> Recording {
        let recording = self.0.state.lock().recording.take();
        recording.expect("start_recording was called")
    }

    /// A note in the recording, between what was done before and what is done afterwards.
    pub fn mark(&self, note: u64) {
        self.0.state.lock().apply(Event::Mark(note));
    }
}
