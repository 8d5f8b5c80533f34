//! The part of a ledger about commands: which of them nobody saw end, and what the user was told
//! of what they did.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Ledger, wire::Bytes};
use crate::model::CheckpointId;

/// Commands that run at once; of more, the oldest are forgotten.
const OPEN_MAX: usize = 20;

/// A command whose end nobody saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// The call; see `left`.
    pub call: String,
    /// The root it works in.
    pub root: PathBuf,
    /// The checkpoint that covers it.
    pub of: CheckpointId,
}

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct WireOpen {
    call: String,
    root: Bytes,
    of: String,
}

impl Ledger {
    /// Notes where the agent's own server listens.
    pub fn is_served(&mut self, address: &str) {
        if self.wire.server.as_deref() != Some(address) {
            self.wire.server = Some(address.to_owned());
            self.changed = true;
        }
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
    pub fn begins(&mut self, open: &Open) {
        let Open { call, root, of } = open;
        self.wire.open.retain(|known| known.call != *call || !known.root.is(root));
        let surplus = (self.wire.open.len() + 1).saturating_sub(OPEN_MAX);
        self.wire.open.drain(..surplus);
        let (call, of) = (call.clone(), of.to_string());
        self.wire.open.push(WireOpen { call, root: Bytes::of(root), of });
        self.changed = true;
    }

    /// Notes that a call is done, and that this agent says so.
    pub fn ends(&mut self, call: &str) {
        self.changed |= !self.wire.tells_ends || self.wire.open.iter().any(|it| it.call == call);
        self.wire.tells_ends = true;
        self.wire.open.retain(|open| open.call != call);
    }

    /// Whether this agent says when a call is done.
    pub fn tells_ends(&self) -> bool {
        self.wire.tells_ends
    }

    /// Whether there are commands whose end nobody saw, and this agent does not say when one ends.
    pub fn waits_for_ends(&self) -> bool {
        !self.wire.tells_ends && !self.wire.open.is_empty()
    }

    /// Takes out the commands whose end nobody saw. What cannot be read of them is lost.
    pub fn take_open(&mut self) -> Vec<Open> {
        self.changed |= !self.wire.open.is_empty();
        let open = std::mem::take(&mut self.wire.open).into_iter();
        let read = |open: WireOpen| {
            let (root, of) = (open.root.to_path()?, CheckpointId::parse(&open.of)?);
            Some(Open { call: open.call, root, of })
        };
        open.filter_map(read).collect()
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
