//! Tells the model what a restore did, if the settings want that: once, with the next prompt of the
//! session that worked in the root last.

use std::time::{Duration, Instant};

use super::{Restore, RestoreRequest, RestoreSource, prepared::Prepared};
use crate::{
    agent::by_agent,
    apply::ApplyOutcome,
    error::Result,
    ledger::{self, Ledger},
    model::RelPath,
    plan::Action,
    ui,
};

/// A prompt is no place for a list of thousands.
const NAMED_MAX: usize = 20;
/// A hook holds the ledger for as long as a save takes.
const PATIENCE: Duration = Duration::from_secs(2);

/// Leaves the word where the next prompt finds it.
///
/// # Errors
///
/// Fails if it cannot be left there.
pub(super) fn leave(
    restore: Restore<'_>,
    prepared: &Prepared,
    outcome: &ApplyOutcome,
) -> Result<()> {
    let Restore { project, checkpoint, request } = restore;
    if !project.settings.tell_model {
        return Ok(());
    }
    let root = project.root.path();
    let uses = ledger::uses(&project.state);
    let last = uses.iter().find(|it| it.root == root).map(|it| &it.by);
    let Some(by) = last.or(checkpoint.cause.by.as_ref()) else { return Ok(()) };
    let missed = outcome.missed_paths();
    let done = prepared.plan.deeds().filter(|step| !missed.contains(step.path.as_path()));
    let deeds: Vec<_> = done.map(|step| (step.action, &step.path)).collect();
    let Some(text) = words(&deeds, what(request)) else { return Ok(()) };
    let name = by_agent(by.agent).name;
    let deadline = Instant::now() + PATIENCE;
    let mut ledger = Ledger::open(&project.state, name, &by.session.0, deadline)?;
    ledger.tell(text);
    ledger.close()
}

/// What the user has done, and what that did to files.
fn what(request: &RestoreRequest) -> [&'static str; 2] {
    match request.source {
        RestoreSource::Fork(_) => {
            ["brought what a fork of this project has changed back into it", "Changed"]
        }
        RestoreSource::Turn(_) => {
            ["taken back what an earlier turn did to files of this project", "Changed"]
        }
        RestoreSource::Checkpoint | RestoreSource::Step(_) | RestoreSource::Undone(_) => {
            ["restored files of this project to an earlier state", "Put back as they were"]
        }
    }
}

/// What happened to which files; `None` if nothing did.
fn words(deeds: &[(Action, &RelPath)], [what, how]: [&str; 2]) -> Option<String> {
    let (removed, put_back): (Vec<_>, Vec<_>) =
        deeds.iter().partition(|(action, _)| *action == Action::Remove);
    let list = |what: &str, deeds: &[&(Action, &RelPath)]| {
        let named = deeds.iter().take(NAMED_MAX).map(|(_, path)| ui::escape(path.as_bytes()));
        let named = named.collect::<Vec<_>>().join(", ");
        let more = deeds.len().saturating_sub(NAMED_MAX);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        (!deeds.is_empty()).then(|| format!("{what}: {named}{more}."))
    };
    let lists = [list(how, &put_back), list("Removed", &removed)];
    let lists: Vec<String> = lists.into_iter().flatten().collect();
    if lists.is_empty() {
        return None;
    }
    let lists = lists.join(" ");
    Some(format!("The user has {what}. {lists}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESTORED: [&str; 2] =
        ["restored files of this project to an earlier state", "Put back as they were"];

    #[test]
    fn the_model_hears_names_and_not_too_many() {
        let path = |text: &str| RelPath::from_bytes(text.as_bytes()).unwrap();
        let (a, b) = (path("a"), path("b\nc"));
        assert_eq!(words(&[], RESTORED), None);
        insta::assert_snapshot!(words(&[(Action::Restore, &a), (Action::Remove, &b)], RESTORED).unwrap(), @r"The user has restored files of this project to an earlier state. Put back as they were: a. Removed: b\nc.");
        let many = words(&vec![(Action::Recreate, &a); 25], RESTORED).unwrap();
        assert!(many.ends_with("a, and 5 more."), "{many}");
    }
}
