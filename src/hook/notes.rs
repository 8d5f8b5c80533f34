//! What a hook call tells the user: what is not held, and what is odd.

use std::{cell::LazyCell, path::Path};

use crate::{
    fs::without_dots,
    model::{
        Certainty, Checkpoint, Effect, Notify, Reach, RelPath, Root, RootKind, Settings,
        SkipReason, Skipped, Spares, Target, TargetAction,
    },
    reach::AtRisk,
    restore_log,
    snapshot::{self, LastCheckpoint, Unheld},
    state::StateDir,
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
}

/// A root that a call reaches, once all of it is held that is going to be.
pub(super) struct HeldRoot {
    pub(super) reach: Reach,
    /// Whether it was compared with its last checkpoint as a whole.
    pub(super) is_compared: bool,
    /// What is said of it once per session.
    pub(super) lines: Vec<String>,
    /// What the call would lose of it for good.
    pub(super) unheld: Vec<Unheld>,
}

impl HeldRoot {
    /// A root that was not looked at.
    pub(super) fn unscanned(reach: Reach) -> Self {
        Self { reach, is_compared: false, lines: Vec::new(), unheld: Vec::new() }
    }
}

impl Notes {
    /// What there is to say of the settings, and of all roots that a call reaches.
    pub(super) fn of(
        mut lines: Vec<String>,
        held: &mut [HeldRoot],
        effect: &Effect,
        cwd: &Path,
    ) -> Self {
        let mut unheld = Vec::new();
        for root in held {
            lines.append(&mut root.lines);
            unheld.append(&mut root.unheld);
        }
        lines.extend(told(effect, cwd, &unheld));
        Self { lines, deeds: Vec::new(), unheld }
    }
}

/// What a checkpoint leaves out.
pub(super) struct LeftOutNote<'a> {
    pub(super) skipped: &'a [Skipped],
    /// Whether the deadline was reached.
    pub(super) is_partial: bool,
}

/// What there is to say of the checkpoint of a root, and what the call would lose of it.
pub(super) fn of_saved(
    saved: &Saved,
    (reach, state): (&Reach, &StateDir),
    (effect, at_risk): (&Effect, &[AtRisk]),
    settings: &Settings,
) -> (Vec<String>, Vec<Unheld>) {
    let checkpoint = &saved.checkpoint;
    let mut lines = Vec::new();
    if !checkpoint.completeness.is_whole() {
        lines.push(format!(
            "checkpoint {} is partial: the deadline was reached; `beforehand show {}` tells what it \
             lacks",
            checkpoint.id.short(),
            checkpoint.id.short()
        ));
    }
    let place = state.root(&reach.root);
    let held = LazyCell::new(|| LastCheckpoint::of(&reach.root, &place));
    let is_ignored = |path: &RelPath| held.is_ignored(path);
    let left_out = LeftOutNote {
        skipped: &checkpoint.skipped,
        is_partial: !checkpoint.completeness.is_whole(),
    };
    let unheld = unheld(&left_out, reach, (effect, at_risk), is_ignored);
    let unread = not_held(checkpoint, SkipReason::Unreadable, "cannot be read");
    let mounted = not_held(checkpoint, SkipReason::OtherFileSystem, "is on another file system");
    lines.extend(unread.into_iter().chain(mounted).chain(over_budget(checkpoint)));
    lines.extend(too_many(checkpoint, settings.max_files));
    if settings.notify == Notify::Always && saved.is_new {
        lines.push(format!("checkpoint {}", checkpoint.id.short()));
    }
    lines.extend(restore_log::is_left(&place).then(|| restore_log::LEFT.to_owned()));
    (lines, unheld)
}

/// What the call would lose of what a checkpoint leaves out.
pub(super) fn unheld(
    left_out: &LeftOutNote<'_>,
    reach: &Reach,
    (effect, at_risk): (&Effect, &[AtRisk]),
    is_ignored: impl Fn(&RelPath) -> bool,
) -> Vec<Unheld> {
    let root = Root::new(reach.root.path().to_owned(), RootKind::Plain { why: None });
    let named = |path| AtRisk { path, is_guess: false, spares: Spares::Nothing };
    let replaced = snapshot::replaced(left_out.skipped, reach).into_iter().map(named);
    let at_risk: Vec<AtRisk> = at_risk.iter().cloned().chain(replaced).collect();
    let mut unheld = snapshot::unheld(left_out.skipped, &at_risk, &root, is_ignored);
    if left_out.is_partial && names_no_files(effect) {
        // Any of them may be what the call destroys.
        unheld.extend(snapshot::unread(left_out.skipped, &root));
    }
    unheld
}

/// That the root has more files than are held. Without their number, which changes all the while:
/// it is said once in a session.
fn too_many(checkpoint: &Checkpoint, files_max: u64) -> Option<String> {
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

/// What a call would delete, overwrite or change for good, a line each.
pub(super) fn told(effect: &Effect, cwd: &Path, unheld: &[Unheld]) -> Vec<String> {
    /// More would not be read.
    const LINES_MAX: usize = 5;
    let line = |it: &Unheld| {
        let verb = loss(effect, it, cwd);
        let path = it.path.strip_prefix(cwd).unwrap_or(&it.path);
        let path = if path.as_os_str().is_empty() { &it.path } else { path };
        let path = ui::escape_path(path);
        let size = match it.size {
            0 => it.why.to_owned(),
            size => format!("{}, {}", ui::size(size), it.why),
        };
        format!("not held: {path} ({size}) — {verb}")
    };
    ui::at_most(unheld.iter().map(line).collect(), LINES_MAX, |more| {
        format!("not held: {} more", ui::number(more))
    })
}

/// Whether a call destroys files that it does not name one by one: a whole worktree, a directory, or
/// what is found only when it runs.
fn names_no_files(effect: &Effect) -> bool {
    let Effect::Destroys(finding) = effect else { return false };
    finding.targets().any(|target| {
        let is_one = target.certainty == Certainty::Exact && !Path::new(&target.path).is_dir();
        let is_formatted = target.spares == Spares::OtherKinds;
        let is_lost = !matches!(target.action, TargetAction::Create | TargetAction::Git);
        is_lost && !is_one && !is_formatted
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
    let Some((program, action)) = found else {
        return "this call can destroy it permanently".to_owned();
    };
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

/// What is ignored or large, and over the limits. Without sizes, which change all the
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
        format!("too much to hold unless a call names it: {names}{more}; `beforehand show latest` tells how much")
    })
}
