//! What to do about a call. A table, and nothing else.

use crate::model::{BeforeShell, Dedupe, Effect, Intent, Settings};

/// What this turn already has of what the call can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// Every path the call names is in the turn's checkpoint as it is now, or the agent's own.
    Covered,
    /// The turn has a checkpoint, but it may not have this.
    Begun,
    /// The turn has no checkpoint of this root, or it is not known.
    Bare,
}

/// What the hook does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookAction {
    /// Let the call go.
    Nothing,
    /// Take a checkpoint first.
    Save,
}

/// Decides, given what a call can do and what the turn already has.
pub fn decide(effect: &Effect, coverage: Coverage, dedupe: Dedupe) -> HookAction {
    match (effect, coverage, dedupe) {
        (Effect::None, _, _) => HookAction::Nothing,
        (_, _, Dedupe::Call) => HookAction::Save,
        (_, Coverage::Covered | Coverage::Begun, Dedupe::Strict) => HookAction::Nothing,
        (Effect::Touches(_), Coverage::Covered, Dedupe::Turn) => HookAction::Nothing,
        // A turn can last an hour. Look again right before the blade falls; if nothing changed
        // since, the store notices and keeps one copy.
        (Effect::Touches(_) | Effect::Destroys(_) | Effect::Unknown(_), _, _) => HookAction::Save,
    }
}

/// Whether the settings want a checkpoint before such a call at all.
pub fn is_wanted(intent: &Intent, effect: &Effect, settings: &Settings) -> bool {
    let triggers = &settings.triggers;
    settings.enabled
        && match intent {
            Intent::Read => false,
            Intent::Write(_) => triggers.before_write,
            Intent::Edit(_) => triggers.before_edit,
            Intent::Run { .. } => match triggers.before_shell {
                BeforeShell::Mutating => true,
                BeforeShell::Destructive => matches!(effect, Effect::Destroys(_)),
                BeforeShell::Never => false,
            },
            Intent::Unknown(_) => true,
        }
}

/// A kind of call before which the settings want no checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnwantedKind {
    /// The calls.
    pub calls: &'static str,
    /// The setting that says so.
    pub setting: &'static str,
}

/// The kinds of calls for which [`is_wanted`] is false, though they can change files.
pub fn unwanted_kinds(settings: &Settings) -> Vec<UnwantedKind> {
    let triggers = &settings.triggers;
    let shell = match triggers.before_shell {
        BeforeShell::Mutating => None,
        BeforeShell::Destructive => Some("commands that are not known to destroy"),
        BeforeShell::Never => Some("commands"),
    };
    let kinds = [
        (settings.enabled, "calls", "enabled"),
        (triggers.before_write, "writes", "triggers.before_write"),
        (triggers.before_edit, "edits", "triggers.before_edit"),
        (shell.is_none(), shell.unwrap_or_default(), "triggers.before_shell"),
    ];
    let unwanted = kinds.into_iter().filter(|(is_wanted, ..)| !is_wanted);
    unwanted.map(|(_, calls, setting)| UnwantedKind { calls, setting }).collect()
}

/// Whether the settings want no checkpoint before any call of a tool that is known.
pub fn wants_nothing(settings: &Settings) -> bool {
    let triggers = &settings.triggers;
    let wants_some = triggers.before_write
        || triggers.before_edit
        || triggers.before_shell != BeforeShell::Never;
    !(settings.enabled && wants_some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Finding;

    #[test]
    fn only_a_covered_edit_is_let_go() {
        let finding = Finding::default;
        let edit = Effect::Touches(Vec::new());
        let (rm, make) = (Effect::Destroys(finding()), Effect::Unknown(finding()));
        for (effect, coverage, dedupe, action) in [
            (&Effect::None, Coverage::Bare, Dedupe::Call, HookAction::Nothing),
            (&edit, Coverage::Bare, Dedupe::Turn, HookAction::Save),
            (&edit, Coverage::Begun, Dedupe::Turn, HookAction::Save),
            (&edit, Coverage::Covered, Dedupe::Turn, HookAction::Nothing),
            (&edit, Coverage::Covered, Dedupe::Call, HookAction::Save),
            (&edit, Coverage::Bare, Dedupe::Strict, HookAction::Save),
            (&rm, Coverage::Covered, Dedupe::Turn, HookAction::Save),
            (&rm, Coverage::Begun, Dedupe::Strict, HookAction::Nothing),
            (&rm, Coverage::Bare, Dedupe::Strict, HookAction::Save),
            (&make, Coverage::Covered, Dedupe::Turn, HookAction::Save),
        ] {
            assert_eq!(
                decide(effect, coverage, dedupe),
                action,
                "{effect:?} {coverage:?} {dedupe:?}"
            );
        }
    }
}
