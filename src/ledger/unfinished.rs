//! The part of a ledger about what is in progress: commands that were not seen to end, what the user and
//! the model were told, and the address of the agent's server.

use std::path::PathBuf;

use chrono::{DateTime, Utc};

use super::{
    Ledger, keep_last,
    wire::{Lazily, LedgerWire, PathBytes, WireNext, WireOpen},
};
use crate::model::{CheckpointId, SessionId};

/// Commands that run at once; of more, the oldest are forgotten.
const OPEN_MAX: usize = 20;

/// A command that was not seen to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnfinishedCommand {
    /// The name of the call, as `attribution` logs it.
    pub call: String,
    /// The root it works in.
    pub root: PathBuf,
    /// The checkpoint that covers it.
    pub of: CheckpointId,
}

impl LedgerWire {
    /// The checkpoints of commands that were not seen to end, if this session used them since then. Of an
    /// agent that never says when one ends, all of them would stay.
    pub(super) fn running(&self, since: DateTime<Utc>) -> Vec<CheckpointId> {
        let is_new = |open: &WireOpen| {
            let mut uses = self.uses.iter().filter_map(Lazily::read);
            uses.any(|used| used.checkpoint == open.of && used.at >= since)
        };
        // What was seen at the end of its turn runs no more.
        let is_running = |open: &&WireOpen| self.tells_ends && !open.seen && is_new(open);
        let open = self.open.iter().filter(is_running);
        open.filter_map(|open| CheckpointId::parse(&open.of)).collect()
    }
}

impl Ledger {
    /// Notes where the agent's own server listens.
    pub fn note_server(&mut self, address: &str) {
        if self.wire.server.as_deref() != Some(address) {
            self.wire.server = Some(address.to_owned());
            self.changed = true;
        }
    }

    /// Notes the session that started this one.
    pub fn note_started_by(&mut self, session: &SessionId) {
        let is_own = self.wire.session == session.0;
        if !is_own && self.wire.started_by.as_ref() != Some(&session.0) {
            self.wire.started_by = Some(session.0.clone());
            self.changed = true;
        }
    }

    /// The session that started this one, if it is a sub-agent's.
    pub fn started_by(&self) -> Option<SessionId> {
        self.wire.started_by.clone().map(SessionId)
    }

    /// Notes what the model is to be told with the next prompt.
    pub fn tell(&mut self, text: String) {
        self.wire.tell = Some(text);
        self.changed = true;
    }

    /// What the model is to be told: once.
    pub fn take_tell(&mut self) -> Option<String> {
        let tell = self.wire.tell.take();
        self.changed |= tell.is_some();
        tell
    }

    /// Notes that a command begins.
    pub fn begins(&mut self, open: &UnfinishedCommand) {
        let UnfinishedCommand { call, root, of } = open;
        self.wire.open.retain(|known| known.call != *call || !known.root.is(root));
        let (call, of) = (call.clone(), of.to_string());
        self.wire.open.push(WireOpen { call, root: PathBytes::of(root), of, seen: false });
        keep_last(&mut self.wire.open, OPEN_MAX);
        self.changed = true;
    }

    /// Notes that a call is done, and that this agent says so. Tells the roots it worked in, if it is
    /// a command, and the checkpoint that covers it there.
    pub fn ends(&mut self, call: &str) -> Vec<(PathBuf, CheckpointId)> {
        let (ended, open): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.wire.open).into_iter().partition(|it| it.call == call);
        self.wire.open = open;
        self.expect_ends();
        self.changed |= !ended.is_empty();
        let ended = ended.into_iter();
        ended.filter_map(|it| Some((it.root.to_path()?, CheckpointId::parse(&it.of)?))).collect()
    }

    /// Notes that a command belongs to the turn that begins with the next prompt, and so does the
    /// checkpoint that covers it.
    pub fn begins_next_turn(&mut self, call: &str) {
        let open = self.wire.open.iter().filter(|open| open.call == call);
        let next = open.map(|open| WireNext { root: open.root.clone(), of: open.of.clone() });
        self.wire.next = next.collect();
        self.changed = true;
    }

    /// Notes that something goes on in the background after its call.
    pub fn starts_in_background(&mut self) {
        self.changed |= !self.wire.background;
        self.wire.background = true;
    }

    /// Whether something may go on in the background.
    pub fn has_background(&self) -> bool {
        self.wire.background
    }

    /// Notes that this agent says when a call is done.
    pub fn expect_ends(&mut self) {
        self.changed |= !self.wire.tells_ends;
        self.wire.tells_ends = true;
    }

    /// Whether this agent says when a call is done.
    pub fn tells_ends(&self) -> bool {
        self.wire.tells_ends
    }

    /// Whether there are commands that were not seen to end, and this agent does not say when one ends.
    pub fn waits_for_ends(&self) -> bool {
        !self.wire.tells_ends && self.wire.open.iter().any(|open| !open.seen)
    }

    /// The commands that were not seen to end, each once: the agent may still say that they are done.
    /// What cannot be read of them is lost.
    pub fn take_open(&mut self) -> Vec<UnfinishedCommand> {
        let read = |open: &WireOpen| {
            let (root, of) = (open.root.to_path()?, CheckpointId::parse(&open.of)?);
            Some(UnfinishedCommand { call: open.call.clone(), root, of })
        };
        let new = self.wire.open.iter().filter(|open| !open.seen);
        let open: Vec<UnfinishedCommand> = new.filter_map(read).collect();
        self.changed |= self.wire.open.iter().any(|open| !open.seen);
        self.wire.open.iter_mut().for_each(|open| open.seen = true);
        open
    }

    /// What the user was told last of what was done since `of`; from now on, `told`. Files
    /// changed, deleted, and deleted untracked.
    pub fn told(&mut self, of: CheckpointId, told: [u64; 3]) -> [u64; 3] {
        let of = of.to_string();
        let known = self.wire.told.take().filter(|known| known.0 == of);
        self.wire.told = Some((of, told));
        self.changed = true;
        known.map_or([0; 3], |known| known.1)
    }
}
