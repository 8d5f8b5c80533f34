//! What a hook call tells the user, and what it answers the agent.

use std::{
    cell::LazyCell,
    path::{Path, PathBuf},
};

use super::Hook;
use crate::{
    fs::without_dots,
    model::{
        Certainty, Checkpoint, Decision, Effect, Notify, Reach, RelPath, Root, RootKind,
        SkipReason, Skipped, Target, TargetAction, TroubleAnswer, Verdict,
    },
    restore_log,
    snapshot::{self, LastCheckpoint, Unheld},
    state::{RootState, StateDir},
    store::Saved,
    ui,
};

/// What the user gets to hear: what was not held, or that something is odd.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// What is said once per session.
    pub(super) lines: Vec<String>,
    /// What the commands before it did.
    pub(super) deeds: Vec<String>,
    /// What the call would lose for good.
    pub(super) unheld: Vec<Unheld>,
    /// The roots that were compared with their last checkpoint as a whole.
    pub(super) compared: Vec<PathBuf>,
}

/// What a checkpoint leaves out.
pub(super) struct LeftOutNote<'a> {
    pub(super) skipped: &'a [Skipped],
    /// Whether the deadline came first.
    pub(super) is_partial: bool,
}

impl Hook<'_, '_> {
    pub(super) fn note_saved(
        &self,
        saved: &Saved,
        reach: &Reach,
        state: &StateDir,
        notes: &mut Notes,
    ) {
        let checkpoint = &saved.checkpoint;
        if checkpoint.partial {
            notes.lines.push(format!(
                "checkpoint {} is partial: the deadline came first; `beforehand show {}` tells what it \
                 lacks",
                checkpoint.id.short(),
                checkpoint.id.short()
            ));
        }
        let held = LazyCell::new(|| LastCheckpoint::of(&reach.root, &state.root(&reach.root)));
        let is_ignored = |path: &RelPath| held.is_ignored(path);
        let left_out = LeftOutNote { skipped: &checkpoint.skipped, is_partial: checkpoint.partial };
        self.note_unheld(&left_out, reach, is_ignored, notes);
        let unread = not_held(checkpoint, SkipReason::Unreadable, "cannot be read");
        let mounted =
            not_held(checkpoint, SkipReason::OtherFileSystem, "is on another file system");
        notes.lines.extend(unread.into_iter().chain(mounted).chain(over_budget(checkpoint)));
        notes.lines.extend(self.too_many(checkpoint));
        if self.settings().notify == Notify::Always && saved.is_new {
            notes.lines.push(format!("checkpoint {}", checkpoint.id.short()));
        }
    }

    /// What the call would lose of what a checkpoint leaves out.
    pub(super) fn note_unheld(
        &self,
        left_out: &LeftOutNote<'_>,
        reach: &Reach,
        is_ignored: impl Fn(&RelPath) -> bool,
        notes: &mut Notes,
    ) {
        let skipped = left_out.skipped;
        let root = Root::new(reach.root.path().to_owned(), RootKind::Plain { why: None });
        notes.unheld.extend(snapshot::unheld(skipped, &self.at_risk, &root, is_ignored));
        if left_out.is_partial && names_no_files(&self.effect) {
            // Any of them may be what the call destroys.
            notes.unheld.extend(snapshot::unread(skipped, &root));
        }
    }

    /// That the root has more files than are held. Without their number, which changes all the while:
    /// it is said once in a session.
    fn too_many(&self, checkpoint: &Checkpoint) -> Option<String> {
        let files_max = self.settings().max_files;
        let is_over = |skipped: &Skipped| {
            skipped.reason == SkipReason::TooMany && !skipped.path.starts_with(b"/")
        };
        let cut = checkpoint.files >= files_max && checkpoint.skipped.iter().any(is_over);
        cut.then(|| {
            format!(
                "there are more files than `max_files` ({}), and the others are not held; `beforehand \
                 show latest` tells which",
                ui::number(files_max)
            )
        })
    }

    pub(super) fn decision(&mut self, notes: &Notes) -> Decision {
        let wanted = self.settings().cannot_hold;
        let is_named = notes.unheld.iter().any(|unheld| !unheld.is_guess);
        let verdict = if is_named { verdict(wanted) } else { Verdict::Abstain };
        if verdict != Verdict::Abstain {
            self.rules.push("cannot_hold");
        }
        // What a question is about is said every time.
        let told = if verdict == Verdict::Abstain { Vec::new() } else { self.told(&notes.unheld) };
        let missing = told.into_iter().filter(|line| !notes.lines.contains(line));
        let lines: Vec<String> =
            missing.chain(notes.lines.iter().chain(&notes.deeds).cloned()).collect();
        if !notes.lines.is_empty() {
            self.write_trouble(&notes.lines.join("; "));
        }
        if self.settings().notify == Notify::Never && verdict == Verdict::Abstain {
            return Decision::NEUTRAL;
        }
        let note = (!lines.is_empty()).then(|| format!("beforehand: {}", lines.join("\n")));
        Decision { verdict, note, tell: None }
    }

    /// What a call would delete, overwrite or change for good, a line each.
    pub(super) fn told(&self, unheld: &[Unheld]) -> Vec<String> {
        /// More would not be read.
        const LINES_MAX: usize = 5;
        let line = |it: &Unheld| {
            let verb = loss(&self.effect, it, &self.cwd);
            let path = it.path.strip_prefix(&self.cwd).unwrap_or(&it.path);
            let path = if path.as_os_str().is_empty() { &it.path } else { path };
            let path = ui::escape_path(path);
            let size = match it.size {
                0 => it.why.to_owned(),
                size => format!("{}, {}", ui::size(size), it.why),
            };
            format!("not held: {path} ({size}) — {verb}")
        };
        let mut lines: Vec<String> = unheld.iter().take(LINES_MAX).map(line).collect();
        if unheld.len() > LINES_MAX {
            lines.push(format!("not held: {} more", ui::number((unheld.len() - LINES_MAX) as u64)));
        }
        lines
    }
}

pub(super) fn stricter(one: TroubleAnswer, other: TroubleAnswer) -> TroubleAnswer {
    match (one, other) {
        (TroubleAnswer::Deny, _) | (_, TroubleAnswer::Deny) => TroubleAnswer::Deny,
        (TroubleAnswer::Ask, _) | (_, TroubleAnswer::Ask) => TroubleAnswer::Ask,
        (TroubleAnswer::Note, TroubleAnswer::Note) => TroubleAnswer::Note,
    }
}

/// Whether a call destroys files that it does not name one by one: a whole worktree, a directory, or
/// what is found only when it runs.
fn names_no_files(effect: &Effect) -> bool {
    let Effect::Destroys(finding) = effect else { return false };
    finding.targets().any(|target| {
        let is_one = target.certainty == Certainty::Exact && !Path::new(&target.path).is_dir();
        !is_one && !matches!(target.action, TargetAction::Create | TargetAction::Git)
    })
}

/// What becomes of a victim, in the words of the command that does it: of one that names it, or else
/// of the first that can.
fn loss(effect: &Effect, victim: &Unheld, cwd: &Path) -> String {
    let is_guess = victim.is_guess;
    let (Effect::Destroys(finding) | Effect::Unknown(finding)) = effect else {
        return "this call would replace it for good".to_owned();
    };
    let is_it = |target: &Target| match target.action {
        TargetAction::Create | TargetAction::Git => false,
        TargetAction::Delete => !is_guess || target.certainty != Certainty::Exact,
        TargetAction::Overwrite | TargetAction::Modify | TargetAction::Move => !is_guess,
    };
    let place = |target: &Target| without_dots(&cwd.join(&target.path));
    let targets = || {
        let each = finding.commands.iter();
        let all = each.flat_map(|simple| simple.targets.iter().map(move |it| (simple, it)));
        all.filter(|(_, target)| is_it(target))
    };
    let naming = targets().filter(|(_, target)| victim.path.starts_with(place(target)));
    let closest = naming.max_by_key(|(_, target)| place(target).as_os_str().len());
    let found = closest.or_else(|| targets().next());
    let found = found.map(|(simple, target)| {
        (simple.text.split_whitespace().next().unwrap_or_default(), target.action)
    });
    let Some((program, action)) = found else { return "this call can lose it for good".to_owned() };
    let program = match program {
        ">" | ">>" | "" => "the redirection".to_owned(),
        name => ui::escape(name.as_bytes()).into_owned(),
    };
    let verb = match action {
        TargetAction::Delete => "delete",
        TargetAction::Overwrite | TargetAction::Move => "replace",
        TargetAction::Modify | TargetAction::Create | TargetAction::Git => "change",
    };
    let may = if is_guess { "may" } else { "would" };
    format!("{program} {may} {verb} it for good")
}

/// What a checkpoint left out for this reason must not pass for a deletion.
fn not_held(checkpoint: &Checkpoint, reason: SkipReason, words: &str) -> Option<String> {
    let skipped = checkpoint.skipped.iter();
    let mut lost = skipped.filter(|skipped| skipped.reason == reason);
    let first = ui::escape(&lost.next()?.path);
    let others = match lost.count() {
        0 => String::new(),
        more => format!(" and {}", ui::count(more as u64, "other path")),
    };
    Some(format!("{words}, and so is not held: {first}{others}"))
}

/// What is ignored or large, and more than is held unasked. Without sizes, which change all the
/// while: it is said once in a session.
fn over_budget(checkpoint: &Checkpoint) -> Option<String> {
    const NAMED_MAX: usize = 3;
    let is_over = |reason| matches!(reason, SkipReason::Ignored | SkipReason::TooLarge);
    let over = checkpoint.skipped.iter().filter(|skipped| is_over(skipped.reason));
    let mut names: Vec<_> = over.map(|skipped| ui::escape(&skipped.path)).collect();
    names.sort();
    let more = names.len().saturating_sub(NAMED_MAX);
    names.truncate(NAMED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!names.is_empty()).then(|| {
        let names = names.join(", ");
        format!("too much to hold unasked: {names}{more}; `beforehand show latest` tells how much")
    })
}

/// What is not as it was in this root: a restore that was interrupted.
pub(super) fn oddities(place: &RootState) -> Vec<String> {
    let mut lines = Vec::new();
    if restore_log::is_left(place) {
        lines.push(restore_log::LEFT.to_owned());
    }
    lines
}

/// What the settings want.
pub(super) fn verdict(wanted: TroubleAnswer) -> Verdict {
    match wanted {
        TroubleAnswer::Note => Verdict::Abstain,
        TroubleAnswer::Ask => Verdict::Ask,
        TroubleAnswer::Deny => Verdict::Deny,
    }
}
