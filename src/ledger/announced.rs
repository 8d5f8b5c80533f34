//! The part of a ledger about trust: which calls were announced before they ran, and whether a call may
//! run with another input than the one that the hook judged.

use super::{
    Ledger, keep_last,
    wire::{LedgerWire, Rewrites, WireAnnounced},
};
use crate::{
    model::{Intent, ToolCall},
    state::hash_name,
};

/// More calls than a session has under way at once.
const ANNOUNCED_MAX: usize = 64;

/// A call that has run, compared with the calls that were announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Announcement {
    /// It ran as it was announced.
    AsItRan,
    /// It was announced with another input.
    Otherwise,
    /// It was not announced, or as a call that changes nothing.
    Not,
}

impl LedgerWire {
    pub(super) fn may_be_rewritten(&self) -> Option<bool> {
        self.rewrites.map(|rewrites| rewrites != Rewrites::None)
    }
}

impl Ledger {
    /// Notes a call that can change files, before it runs. `name` is its name in the log of calls.
    pub fn announce(&mut self, name: &str, call: &ToolCall) {
        let announced = WireAnnounced { call: name.to_owned(), input: input_of(call) };
        if !self.wire.announced.contains(&announced) {
            self.wire.announced.push(announced);
            keep_last(&mut self.wire.announced, ANNOUNCED_MAX);
            self.changed = true;
        }
    }

    /// Compares a call that has run with those that were announced. Agents that give a call a name may
    /// leave it out after the call, so an equal input is enough.
    pub fn announced(&self, name: &str, call: &ToolCall) -> Announcement {
        let input = input_of(call);
        if !self.is_ours || self.wire.announced.iter().any(|known| known.input == input) {
            Announcement::AsItRan
        } else if self.wire.announced.iter().any(|known| known.call == name) {
            Announcement::Otherwise
        } else {
            Announcement::Not
        }
    }

    /// Notes whether another program's hook can rewrite the calls of this session.
    pub fn has_other_hooks(&mut self, has: bool) {
        if self.wire.rewrites != Some(Rewrites::Seen) {
            self.set_rewrites(if has { Rewrites::Possible } else { Rewrites::None });
        }
    }

    /// Notes that a call of this session ran otherwise than it was announced.
    pub fn saw_rewritten_call(&mut self) {
        self.set_rewrites(Rewrites::Seen);
    }

    fn set_rewrites(&mut self, rewrites: Rewrites) {
        self.changed |= self.wire.rewrites != Some(rewrites);
        self.wire.rewrites = Some(rewrites);
    }

    /// Whether a call of this session may run with another input than the hook judges; `None` if that
    /// was not looked up.
    pub fn may_be_rewritten(&self) -> Option<bool> {
        self.wire.may_be_rewritten()
    }
}

/// A digest of a call's tool and input. The directory of a command is left out: an agent may tell it
/// only after the call.
fn input_of(call: &ToolCall) -> String {
    let wanted = match &call.intent {
        Intent::Run { command, .. } => match command.split_once(" || exit\n") {
            Some((first, rest)) if first.starts_with("cd ") && !first.contains('\n') => {
                rest.to_owned()
            }
            _ => command.clone(),
        },
        other => format!("{other:?}"),
    };
    hash_name(&[wanted.as_bytes()])[..16].to_owned()
}
