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
