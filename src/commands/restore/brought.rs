//! Words for a fork that is brought back.

use serde_json::{Value, json};

use super::{planned::PlannedRestore, unchanged::first};
use crate::{
    model::{Entry, Kind},
    plan::PlanStep,
    restore::{Brings, Restore, StaysInFork},
    store::repository::Losing,
    ui,
};

/// So many of what stays in a fork are named.
const NAMED_MAX: usize = 10;

impl<'a> PlannedRestore<'a> {
    /// The fork that is brought back, if one is.
    pub(super) fn brings(self) -> Option<&'a Brings> {
        self.restore.request.fork()
    }

    /// What the fork is called.
    pub(super) fn fork_name(self) -> String {
        fork_name(self.restore)
    }

    /// The same as an argument of a command.
    pub(super) fn quoted_fork_name(self) -> String {
        let name = self.brings().map(|brings| brings.entry.name()).unwrap_or_default();
        ui::quote(name.as_encoded_bytes())
    }

    /// What is said where both have changed something.
    pub(super) fn both_changed_words(self, step: &PlanStep) -> String {
        let is_file = |entry: Option<Entry>| entry.is_none_or(|it| it.kind == Kind::File);
        let is_merged = is_file(step.now) && step.now.is_some() && !self.restore.request.markers;
        let advice = if is_merged { " (--merge marks what conflicts in a text)" } else { "" };
        match (step.then, step.now) {
            (_, None) => "removed here, changed in the fork".to_owned(),
            (None, Some(_)) => "changed here, removed in the fork".to_owned(),
            (Some(_), Some(_)) => format!("changed here and in the fork{advice}"),
        }
    }

    fn stays(self) -> &'a [StaysInFork] {
        self.prepared.brought.as_ref().map_or(&[], |brought| &brought.stays)
    }

    /// What a fork keeps to itself, a line each.
    pub(super) fn fork_lines(self) -> Vec<String> {
        let Some(brings) = self.brings() else { return Vec::new() };
        let stays = self.stays();
        let line = |it: &StaysInFork| {
            format!("stays in the fork: {}: {}", ui::escape(it.path.as_bytes()), it.why.words())
        };
        let mut lines = ui::at_most(stays.iter().map(line).collect(), NAMED_MAX, |more| {
            format!("stays in the fork: {} more", ui::number(more))
        });
        for repository in brings.commits() {
            lines.extend(commit_lines(brings, &repository));
        }
        lines
    }

    /// The same for scripts.
    pub(super) fn fork_json(self) -> Value {
        let Some(brings) = self.brings() else { return Value::Null };
        let stays = self.stays().iter().map(|it| {
            json!({ "path": String::from_utf8_lossy(it.path.as_bytes()), "why": it.why.words() })
        });
        let commits = brings.commits().into_iter().flat_map(|repository| {
            let dir = worktree(brings, &repository).to_string_lossy().into_owned();
            let branches = repository.commits.into_iter();
            branches.map(move |(branch, commits)| {
                let ids: Vec<_> = commits.into_iter().map(|(id, _)| id).collect();
                json!({ "dir": dir, "branch": branch, "commits": ids })
            })
        });
        json!({
            "name": brings.entry.name().to_string_lossy(),
            "dir": brings.entry.dir.to_string_lossy(),
            "stays": stays.collect::<Vec<_>>(),
            "commits": commits.collect::<Vec<_>>(),
        })
    }
}

/// What the fork is called that is brought back.
pub(super) fn fork_name(restore: Restore<'_>) -> String {
    let name = restore.request.fork().map(|brings| brings.entry.name());
    ui::escape(name.unwrap_or_default().as_encoded_bytes()).into_owned()
}

/// The directory that a repository of a fork belongs to.
fn worktree<'r>(brings: &'r Brings, repository: &'r Losing) -> &'r std::path::Path {
    let place = &repository.place;
    if place.ends_with(".git") { place.parent().unwrap_or(place) } else { &brings.entry.dir }
}

/// What was committed in a fork, and how to get it.
fn commit_lines(brings: &Brings, repository: &Losing) -> Vec<String> {
    let dir = worktree(brings, repository);
    let quoted = ui::quote(dir.as_os_str().as_encoded_bytes());
    let mut lines = Vec::new();
    for (branch, commits) in &repository.commits {
        let named = commits.iter().map(|(id, subject)| {
            let short = id.get(..7).unwrap_or_default();
            format!("{short} {}", ui::escape_line(subject.as_bytes()))
        });
        let (count, named) = (ui::count(commits.len() as u64, "commit"), first(named));
        let shown = ui::escape(branch.as_bytes());
        let fetched = ui::quote(branch.as_bytes());
        lines.push(format!("stays in the fork: {count} on {shown}: {named}"));
        lines.push(format!("  git fetch {quoted} {fetched}"));
    }
    if !repository.refs.is_empty() {
        let named = first(repository.refs.iter().map(|name| ui::escape(name.as_bytes())));
        lines.push(format!("stays in the fork: made or moved: {named}"));
    }
    if repository.stashes > 0 {
        let stashes = ui::count(repository.stashes as u64, "stash entry");
        lines.push(format!("stays in the fork: {stashes}"));
    }
    lines
}
