//! What to do about a call. A table, and nothing else.

use crate::model::{BeforeShell, Dedupe, Effect, Intent, Settings};

/// What this turn already has of what the call can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Every path the call names is in the turn's checkpoint as it is now, or the agent's own.
    Covered,
    /// The turn has a checkpoint, but it may not have this.
    Begun,
    /// The turn has no checkpoint of this root, or it is not known.
    Bare,
}

/// What the hook does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Let the call go.
    Nothing,
    /// Take a checkpoint first.
    Save,
}

/// Decides, given what a call can do and what the turn already has.
pub fn decide(effect: &Effect, standing: Standing, dedupe: Dedupe) -> Action {
    match (effect, standing, dedupe) {
        (Effect::None, _, _) => Action::Nothing,
        (_, _, Dedupe::Call) => Action::Save,
        (_, Standing::Covered | Standing::Begun, Dedupe::Strict) => Action::Nothing,
        (Effect::Touches(_), Standing::Covered, Dedupe::Turn) => Action::Nothing,
        // A turn can last an hour. Look again right before the blade falls; if nothing changed
        // since, the store notices and keeps one copy.
        (Effect::Touches(_) | Effect::Destroys(_) | Effect::Unknown(_), _, _) => Action::Save,
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
            Intent::Unknown => true,
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
        for (effect, standing, dedupe, action) in [
            (&Effect::None, Standing::Bare, Dedupe::Call, Action::Nothing),
            (&edit, Standing::Bare, Dedupe::Turn, Action::Save),
            (&edit, Standing::Begun, Dedupe::Turn, Action::Save),
            (&edit, Standing::Covered, Dedupe::Turn, Action::Nothing),
            (&edit, Standing::Covered, Dedupe::Call, Action::Save),
            (&edit, Standing::Bare, Dedupe::Strict, Action::Save),
            (&rm, Standing::Covered, Dedupe::Turn, Action::Save),
            (&rm, Standing::Begun, Dedupe::Strict, Action::Nothing),
            (&rm, Standing::Bare, Dedupe::Strict, Action::Save),
            (&make, Standing::Covered, Dedupe::Turn, Action::Save),
        ] {
            assert_eq!(
                decide(effect, standing, dedupe),
                action,
                "{effect:?} {standing:?} {dedupe:?}"
            );
        }
    }
}
