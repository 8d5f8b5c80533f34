//! What can be chosen of a plan, file by file and hunk by hunk. Asks nothing and prints nothing.

use super::show;
use crate::{
    model::{Entry, Kind},
    plan::{Action, Choosable, Chosen, Merged, PlanStep},
    restore::{PathContent, Prepared, Restore, bytes_shown},
    ui::{self, DiffOptions, DiffSide, FileDiff, Patch, Style},
};

/// Lines shown of a file that comes or goes. All of it is in `beforehand diff`.
const LINES_MAX: usize = 60;

/// One file, or what is chosen together with it.
pub(super) struct FileChoice {
    /// Shown once, above its hunks.
    pub(super) heading: String,
    pub(super) style: Style,
    /// What happens to it, as in `Restore`.
    pub(super) verb: String,
    /// What it is, as in `file`.
    pub(super) thing: &'static str,
    pub(super) pieces: Pieces,
}

pub(super) enum Pieces {
    /// All or nothing: whether it is done.
    Whole(Option<bool>),
    /// A text: its hunks, and its mode if that differs.
    Text { patch: Patch, mode: Option<ModeChoice>, permissions: u32, target: Vec<u8> },
}

pub(super) struct ModeChoice {
    from: u32,
    to: u32,
    taken: Option<bool>,
}

impl FileChoice {
    pub(super) fn of(
        restore: Restore<'_>,
        prepared: &Prepared,
        choosable: &Choosable,
        step: &PlanStep,
        style: Style,
    ) -> Self {
        let Restore { project, request, .. } = restore;
        let shown = bytes_shown(project, &prepared.plan, choosable, step);
        let path = if choosable.is_outside {
            [b"/", step.path.as_bytes()].concat()
        } else {
            step.path.as_bytes().to_vec()
        };
        let [old, new] = [&shown.0, &shown.1].map(|it| it.side().unwrap_or(DiffSide::Missing));
        let change = FileDiff { path: &path, old, new };
        let hunks = (!choosable.is_outside).then(|| hunks(&shown)).flatten();
        let (heading, pieces) = if let Some(pieces) = hunks {
            let name = ui::escape(&path);
            let names = [format!("--- a/{name}"), format!("+++ b/{name}")];
            (names.map(|name| format!("{}\n", style.bold(&name))).concat(), pieces)
        } else {
            let deadline = Some(std::time::Instant::now() + std::time::Duration::from_secs(1));
            let text = change.show(DiffOptions { style, deadline });
            (at_most(&text, &path, step), Pieces::Whole(None))
        };
        let verb = match (step.action, &pieces) {
            (Action::Remove, _) => "Remove".to_owned(),
            (Action::Recreate, _) => "Recreate".to_owned(),
            _ => show::capitalized(request.verb),
        };
        Self { heading, style, verb, thing: thing(step.then.or(step.now)), pieces }
    }

    /// How many questions there are.
    pub(super) fn len(&self) -> usize {
        match &self.pieces {
            Pieces::Whole(_) => 1,
            Pieces::Text { patch, mode, .. } => patch.count() + usize::from(mode.is_some()),
        }
    }

    /// The hunk of a question; `None` for one about the whole file or its mode.
    pub(super) fn hunk(&self, at: usize) -> Option<usize> {
        match &self.pieces {
            Pieces::Whole(_) => None,
            Pieces::Text { mode, .. } => at.checked_sub(usize::from(mode.is_some())),
        }
    }

    pub(super) fn taken(&self, at: usize) -> Option<bool> {
        match (&self.pieces, self.hunk(at)) {
            (Pieces::Whole(taken), _) => *taken,
            (Pieces::Text { patch, .. }, Some(hunk)) => patch.is_taken(hunk),
            (Pieces::Text { mode, .. }, None) => mode.as_ref().and_then(|mode| mode.taken),
        }
    }

    pub(super) fn take(&mut self, at: usize, is_taken: bool) {
        let hunk = self.hunk(at);
        match (&mut self.pieces, hunk) {
            (Pieces::Whole(taken), _) => *taken = Some(is_taken),
            (Pieces::Text { patch, .. }, Some(hunk)) => patch.take(hunk, is_taken),
            (Pieces::Text { mode, .. }, None) => {
                if let Some(mode) = mode {
                    mode.taken = Some(is_taken);
                }
            }
        }
    }

    pub(super) fn show(&self, at: usize) -> String {
        match (&self.pieces, self.hunk(at)) {
            (Pieces::Whole(_), _) => String::new(),
            (Pieces::Text { patch, .. }, Some(hunk)) => patch.show(hunk, self.style),
            (Pieces::Text { mode, .. }, None) => mode
                .as_ref()
                .map_or_else(String::new, |mode| format!("mode {:o} → {:o}\n", mode.from, mode.to)),
        }
    }

    /// Each of them with a first line that names it.
    pub(super) fn texts(&self) -> Vec<String> {
        match self.pieces {
            Pieces::Whole(_) => vec![format!("all of the {}\n{}", self.thing, self.heading)],
            Pieces::Text { .. } => (0..self.len()).map(|at| self.show(at)).collect(),
        }
    }

    pub(super) fn parts(&self, at: usize) -> usize {
        match (&self.pieces, self.hunk(at)) {
            (Pieces::Text { patch, .. }, Some(hunk)) => patch.parts(hunk),
            _ => 1,
        }
    }

    /// Splits a hunk into smaller ones, where lines in it are unchanged.
    pub(super) fn split(&mut self, at: usize) {
        let hunk = self.hunk(at);
        if let (Pieces::Text { patch, .. }, Some(hunk)) = (&mut self.pieces, hunk) {
            patch.split(hunk);
        }
    }

    /// What was chosen of it; `None` for nothing.
    pub(super) fn chosen(&self) -> Option<Chosen> {
        match &self.pieces {
            Pieces::Whole(taken) => (*taken == Some(true)).then_some(Chosen::All),
            Pieces::Text { patch, mode, permissions, target } => {
                let bytes = patch.result();
                let (from, to) =
                    mode.as_ref().map_or((*permissions, *permissions), |mode| (mode.from, mode.to));
                let is_mode_taken = mode.as_ref().is_some_and(|mode| mode.taken == Some(true));
                let permissions = if is_mode_taken { to } else { from };
                match (bytes == *target && permissions == to, patch.is_any_taken() || is_mode_taken)
                {
                    (_, false) => None,
                    (true, true) => Some(Chosen::All),
                    (false, true) => Some(Chosen::Part(Merged { bytes, permissions })),
                }
            }
        }
    }
}

/// The hunks of a text that is changed; `None` where a file comes or goes, or is no text.
fn hunks(shown: &(PathContent, PathContent)) -> Option<Pieces> {
    let (
        PathContent::File { bytes: old, permissions: from },
        PathContent::File { bytes: new, permissions: to },
    ) = shown
    else {
        return None;
    };
    let patch = Patch::of(old, new)?;
    let mode = (from != to).then_some(ModeChoice { from: *from, to: *to, taken: None });
    Some(Pieces::Text { patch, mode, permissions: *from, target: new.clone() })
}

/// The first lines of a difference, and how many there are besides.
fn at_most(text: &str, path: &[u8], step: &PlanStep) -> String {
    if text.is_empty() {
        let name = ui::escape(path);
        let modes =
            step.now.zip(step.then).filter(|(now, then)| now.permissions != then.permissions);
        let modes = modes
            .map(|(now, then)| format!(": mode {:o} → {:o}", now.permissions, then.permissions));
        return format!("{name}{}\n", modes.unwrap_or_default());
    }
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut shown = lines[..lines.len().min(LINES_MAX)].concat();
    if lines.len() > LINES_MAX {
        let more = ui::count((lines.len() - LINES_MAX) as u64, "line");
        shown.push_str(&format!("… and {more} more\n"));
    }
    shown
}

fn thing(entry: Option<Entry>) -> &'static str {
    match entry.map(|entry| entry.kind) {
        Some(Kind::Directory) => "directory",
        Some(Kind::Link) => "symlink",
        Some(Kind::File | Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice)
        | None => "file",
    }
}
