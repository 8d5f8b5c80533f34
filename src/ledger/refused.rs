//! The part of a ledger about refused calls: the user can allow one of them once, and the agent cannot
//! do that for the user.

use super::{
    Ledger,
    all::all,
    keep_last,
    wire::{LedgerWire, Refused, WireAllowed, WireCaller},
};
use crate::{process::Ancestor, state::StateDir};

/// A person allows what was refused a moment ago; of more calls, the oldest are forgotten.
const REFUSED_MAX: usize = 20;
/// How much of a call is kept for showing and for comparing with what a person types.
const TEXT_MAX_CHARS: usize = 4000;
/// The processes of an agent that call our hook: most often one.
const CALLERS_MAX: usize = 20;

/// A call that was refused in some session.
#[derive(Clone, Debug)]
pub struct RefusedIn {
    /// As in `--agent NAME`.
    pub agent: String,
    /// The session.
    pub session: String,
    /// The call.
    pub refused: Refused,
}

impl Ledger {
    /// Notes that a call was refused.
    pub fn refuse(&mut self, mut refused: Refused) {
        refused.call = refused.call.chars().take(TEXT_MAX_CHARS).collect();
        self.wire.refused.retain(|known| known.code != refused.code);
        self.wire.refused.push(refused);
        keep_last(&mut self.wire.refused, REFUSED_MAX);
        self.changed = true;
    }

    /// Notes that a person allows the refused call `code` once.
    pub fn allow(&mut self, code: &str) {
        self.wire.refused.retain(|known| known.code != code);
        self.wire.allowed.retain(|known| known.code != code);
        self.wire.allowed.push(WireAllowed { code: code.to_owned(), used_by: None });
        self.changed = true;
    }

    /// Whether a person has allowed this call, which uses that up. `id` is what the agent calls it.
    pub fn use_allowance(&mut self, code: &str, id: Option<&str>) -> bool {
        let allowed = &mut self.wire.allowed;
        let Some(at) = allowed.iter().position(|known| known.code == code) else { return false };
        self.changed = true;
        match (&allowed[at].used_by, id) {
            (None, Some(id)) => {
                allowed[at].used_by = Some(id.to_owned());
                true
            }
            (None, None) => {
                allowed.remove(at);
                true
            }
            (Some(used_by), Some(id)) if used_by == id => true,
            // A second event that announces the same call may have no id.
            (Some(_), id) => {
                allowed.remove(at);
                id.is_none()
            }
        }
    }

    /// Notes the processes that call our hook in this session.
    pub fn called_by(&mut self, logged_calls: &[Ancestor]) {
        for caller in logged_calls {
            if self.wire.logged_calls.iter().any(|known| known.is(caller)) {
                continue;
            }
            let Ancestor { pid, start, .. } = caller.clone();
            self.wire.logged_calls.push(WireCaller { pid, start });
            keep_last(&mut self.wire.logged_calls, CALLERS_MAX);
            self.changed = true;
        }
    }
}

/// Every call that was refused and not allowed since, newest first.
pub fn refused(state: &StateDir) -> Vec<RefusedIn> {
    let of = |wire: LedgerWire| {
        let LedgerWire { agent, session, refused, .. } = wire;
        let whole =
            move |refused| RefusedIn { agent: agent.clone(), session: session.clone(), refused };
        refused.into_iter().map(whole).collect::<Vec<_>>()
    };
    let mut found: Vec<RefusedIn> = all(state).flat_map(of).collect();
    found.sort_by_key(|found| std::cmp::Reverse(found.refused.at));
    found
}

/// Whether one of these processes has called our hook.
pub fn has_called(state: &StateDir, processes: &[Ancestor]) -> bool {
    let mut logged_calls = all(state).flat_map(|wire| wire.logged_calls);
    logged_calls.any(|caller| processes.iter().any(|process| caller.is(process)))
}
