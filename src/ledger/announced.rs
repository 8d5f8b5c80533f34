//! Whether a call runs as it was announced. The ledger has the calls that an agent announced before they
//! ran, and whether another program's hook may rewrite a call after ours has judged it.

use std::collections::BTreeSet;

use super::{
    Ledger, keep_last,
    wire::{Rewrites, WireAnnounced},
};
use crate::{
    model::{Intent, ToolCall},
    state::hash_name,
};

/// More calls than a session runs at once; an announced call is looked up when it ends.
const ANNOUNCED_MAX: usize = 64;

/// A call that has run, compared with the calls that were announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Announcement {
    /// A call with this input was announced.
    Same,
    /// This call was announced with another input.
    Different,
    /// The call was not announced, or only as one that changes nothing.
    Missing,
}

impl Ledger {
    /// Records a call that can change files, before it runs. `name` is its name in the log of calls.
    pub fn announce(&mut self, name: &str, call: &ToolCall) {
        let announced = WireAnnounced { call: name.to_owned(), input: input_of(call) };
        if !self.wire.announced.contains(&announced) {
            self.wire.announced.push(announced);
            keep_last(&mut self.wire.announced, ANNOUNCED_MAX);
            self.changed = true;
        }
    }

    /// Compares a call that has run with those that were announced. An equal input is enough, because some
    /// agents name a call only before it runs. In a ledger of a newer format nothing is announced, so it
    /// shows no difference.
    pub fn announced(&self, name: &str, call: &ToolCall) -> Announcement {
        let input = input_of(call);
        let is_known = self.wire.announced.iter().any(|known| known.input == input);
        if !self.is_ours || is_known {
            Announcement::Same
        } else if self.wire.announced.iter().any(|known| known.call == name) {
            Announcement::Different
        } else {
            Announcement::Missing
        }
    }

    /// Records whether another program's hook can rewrite the calls of this session. A call that was seen
    /// to be rewritten stays on record.
    pub fn note_other_hooks(&mut self, has: bool) {
        if self.wire.head.rewrites != Some(Rewrites::Seen) {
            self.set_rewrites(if has { Rewrites::Possible } else { Rewrites::None });
        }
    }

    /// Records that a call of this session ran with another input than the announced one.
    pub fn saw_rewritten_call(&mut self) {
        self.set_rewrites(Rewrites::Seen);
    }

    fn set_rewrites(&mut self, rewrites: Rewrites) {
        self.changed |= self.wire.head.rewrites != Some(rewrites);
        self.wire.head.rewrites = Some(rewrites);
    }

    /// Whether a call of this session may run with another input than the hook judges; `None` if that
    /// was not looked up.
    pub fn may_be_rewritten(&self) -> Option<bool> {
        self.wire.head.rewrites.map(Rewrites::may_happen)
    }
}

/// A digest of the intent of a call, without what agents spell otherwise after it: white space around a
/// command, the `cd` that [`Intent::run_in`] puts before it, and the directories of files that an edit
/// names, which may be relative or lead over a link.
fn input_of(call: &ToolCall) -> String {
    let wanted = match &call.intent {
        run @ Intent::Run { .. } => run.own_line().unwrap_or_default().to_owned(),
        Intent::Write(paths) | Intent::Edit(paths) => {
            let names = paths.iter().filter_map(|path| path.file_name());
            let names: BTreeSet<_> = names.map(|name| name.to_string_lossy()).collect();
            format!("{names:?}")
        }
        other @ (Intent::Read | Intent::Unknown(_)) => format!("{other:?}"),
    };
    let wanted = wanted.trim();
    hash_name(&[wanted.as_bytes()])[..16].to_owned()
}
