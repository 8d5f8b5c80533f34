//! `--patch`: asks hunk by hunk what of a plan is to be done, with the keys of `git restore -p`.
//!
//! The answers are lines, as git reads them. They come from a terminal only: keys that were written down
//! before the question was there would be taken for a yes to other hunks.

use std::{collections::BTreeMap, ffi::OsString};

use super::{report, show};
use crate::{
    commands::{Project, print},
    error::{Error, Result},
    fs,
    model::{Entry, Kind},
    plan::{Action, Choosable, Chosen, Merged, Step},
    process::{Exit, Process},
    restore::{Displayed, Prepared, Restore, bytes_shown},
    ui::{self, DiffOptions, DiffSide, FileDiff, Patch, Style},
};

/// Lines shown of a file that comes or goes. All of it is in `beforehand diff`.
const LINES_MAX: usize = 60;

const HELP: &str = "\
y - do this one
n - leave this one as it is
q - leave this and all that follow as they are, and do what was chosen
a - do this one and all that follow in the file
d - leave this one and all that follow in the file as they are
j, J - go to the next one that is not decided, or the next
k, K - go to the previous one that is not decided, or the previous
g N - go to number N
s - split it into smaller ones
e - edit it in $VISUAL or $EDITOR
p - show it again
? - show this
";

/// Refuses to ask without a person to answer.
pub(super) fn refuse_without_terminal(process: &Process<'_>) -> Result<()> {
    if process.terminal.stdin {
        return Ok(());
    }
    let hint = "without one, `-- PATH…` restores whole files";
    Err(Error::usage("`--patch` needs a terminal to ask in", hint))
}

/// Asks what is to be done, and leaves the rest of the plan as it is. The exit if nothing is.
pub(super) fn choose(
    process: &mut Process<'_>,
    restore: Restore<'_>,
    prepared: &mut Prepared,
) -> Result<Option<Exit>> {
    let all = prepared.plan.choosable();
    if all.is_empty() {
        show::plan(process, super::Shown { restore, prepared }, false)?;
        let is_clean = report::conflicts(&prepared.plan).is_empty();
        return Ok(Some(if is_clean { Exit::Ok } else { Exit::Conflicts }));
    }
    print(process, &format!("{}\n", show::heading(process, restore)))?;
    let mut chosen = BTreeMap::new();
    for choosable in &all {
        let Some(step) = prepared.plan.step_of(choosable) else { continue };
        let style = Style::stdout(process);
        let mut file = FileChoice::of(restore, prepared, choosable, step, style);
        print(process, &format!("\n{}", file.heading))?;
        let end = file.ask(process, restore.project)?;
        chosen.extend(file.chosen().map(|it| (choosable.clone(), it)));
        match end {
            Answered::Next => (),
            Answered::Quit => break,
            Answered::Lost => {
                show::say(process, "\nnothing was changed: the answers ended")?;
                return Ok(Some(Exit::Failed));
            }
        }
    }
    if chosen.is_empty() {
        show::say(process, "nothing was chosen; nothing was changed")?;
        return Ok(Some(Exit::Failed));
    }
    if prepared.choose(&chosen) {
        let note =
            "note: --patch chooses among files; branch, index and repositories stay as they are";
        show::say(process, note)?;
    }
    Ok(None)
}

/// How the questions about a file ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answered {
    /// All are answered.
    Next,
    /// No more files.
    Quit,
    /// The input has ended: no answer was meant.
    Lost,
}

/// One file, or what is chosen together with it.
struct FileChoice {
    /// Shown once, above its hunks.
    heading: String,
    style: Style,
    /// What happens to it, as in `Restore`.
    verb: String,
    /// What it is, as in `file`.
    thing: &'static str,
    pieces: Pieces,
}

enum Pieces {
    /// All or nothing: whether it is done.
    Whole(Option<bool>),
    /// A text: its hunks, and its mode if that differs.
    Text { patch: Patch, mode: Option<ModeChoice>, permissions: u32, target: Vec<u8> },
}

struct ModeChoice {
    from: u32,
    to: u32,
    taken: Option<bool>,
}

impl FileChoice {
    fn of(
        restore: Restore<'_>,
        prepared: &Prepared,
        choosable: &Choosable,
        step: &Step,
        style: Style,
    ) -> Self {
        let Restore { project, request, .. } = restore;
        let shown = bytes_shown(project, &prepared.plan, choosable, step);
        let path = if choosable.is_outside {
            [b"/", step.path.as_bytes()].concat()
        } else {
            step.path.as_bytes().to_vec()
        };
        let change =
            FileDiff { path: &path, old: side(shown.0.as_ref()), new: side(shown.1.as_ref()) };
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
    fn len(&self) -> usize {
        match &self.pieces {
            Pieces::Whole(_) => 1,
            Pieces::Text { patch, mode, .. } => patch.count() + usize::from(mode.is_some()),
        }
    }

    /// The hunk of a question; `None` for one about the whole file or its mode.
    fn hunk(&self, at: usize) -> Option<usize> {
        match &self.pieces {
            Pieces::Whole(_) => None,
            Pieces::Text { mode, .. } => at.checked_sub(usize::from(mode.is_some())),
        }
    }

    fn taken(&self, at: usize) -> Option<bool> {
        match (&self.pieces, self.hunk(at)) {
            (Pieces::Whole(taken), _) => *taken,
            (Pieces::Text { patch, .. }, Some(hunk)) => patch.is_taken(hunk),
            (Pieces::Text { mode, .. }, None) => mode.as_ref().and_then(|mode| mode.taken),
        }
    }

    fn take(&mut self, at: usize, is_taken: bool) {
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

    fn show(&self, at: usize) -> String {
        match (&self.pieces, self.hunk(at)) {
            (Pieces::Whole(_), _) => String::new(),
            (Pieces::Text { patch, .. }, Some(hunk)) => patch.show(hunk, self.style),
            (Pieces::Text { mode, .. }, None) => mode
                .as_ref()
                .map_or_else(String::new, |mode| format!("mode {:o} → {:o}\n", mode.from, mode.to)),
        }
    }

    fn question(&self, at: usize) -> String {
        let what = match (&self.pieces, self.hunk(at)) {
            (Pieces::Whole(_), _) => self.thing,
            (Pieces::Text { .. }, Some(_)) => "hunk",
            (Pieces::Text { .. }, None) => "mode",
        };
        let open = |mut range: std::ops::Range<usize>| range.any(|at| self.taken(at).is_none());
        let last = self.len() - 1;
        let keys: Vec<&str> = [
            ("y,n,q,a,d", true),
            ("j", open(at + 1..last + 1)),
            ("J", at < last),
            ("k", open(0..at)),
            ("K", at > 0),
            ("g", last > 0),
            ("s", self.parts(at) > 1),
            ("e", self.hunk(at).is_some()),
            ("p,?", true),
        ]
        .into_iter()
        .filter_map(|(key, is_there)| is_there.then_some(key))
        .collect();
        let (number, count) = (at + 1, self.len());
        format!("({number}/{count}) {} this {what} [{}]?", self.verb, keys.join(","))
    }

    fn parts(&self, at: usize) -> usize {
        match (&self.pieces, self.hunk(at)) {
            (Pieces::Text { patch, .. }, Some(hunk)) => patch.parts(hunk),
            _ => 1,
        }
    }

    /// Asks until everything in the file is decided.
    fn ask(&mut self, process: &mut Process<'_>, project: &Project) -> Result<Answered> {
        let mut at = 0;
        let mut is_shown = false;
        loop {
            if !is_shown {
                print(process, &self.show(at))?;
            }
            let Some(given) = ui::keys(process, &self.question(at)) else {
                return Ok(Answered::Lost);
            };
            let went = self.press(process, project, at, &given)?;
            is_shown = matches!(went, Pressed::Stays);
            match went {
                Pressed::Stays => (),
                Pressed::To(there) => at = there,
                Pressed::Decided(end) => {
                    let open: Vec<usize> =
                        (0..self.len()).filter(|at| self.taken(*at).is_none()).collect();
                    let next = open.iter().find(|open| **open > at).or(open.first());
                    match next {
                        Some(next) if end == Answered::Next => at = *next,
                        _ => return Ok(end),
                    }
                }
            }
        }
    }

    /// What a key does.
    fn press(
        &mut self,
        process: &mut Process<'_>,
        project: &Project,
        at: usize,
        given: &str,
    ) -> Result<Pressed> {
        let (last, open) = (self.len() - 1, |at: &usize| self.taken(*at).is_none());
        let to = |there: Option<usize>| there.map_or(Pressed::Stays, Pressed::To);
        let (key, rest) = given.split_at(given.chars().next().map_or(0, char::len_utf8));
        let went = match key {
            "j" => to((at + 1..=last).find(open)),
            "k" => to((0..at).rev().find(open)),
            "J" => to((at < last).then_some(at + 1)),
            "K" => to(at.checked_sub(1)),
            "g" => to(rest
                .trim()
                .parse()
                .ok()
                .filter(|n| (1..=last + 1).contains(n))
                .map(|n: usize| n - 1)),
            "p" => Pressed::To(at),
            "s" if self.parts(at) > 1 => self.split(process, at)?,
            "e" if self.hunk(at).is_some() => self.edit(process, project, at)?,
            "y" | "n" if rest.is_empty() || "yesno".contains(given) => {
                self.take(at, key == "y");
                Pressed::Decided(Answered::Next)
            }
            "a" | "d" => {
                let open: Vec<usize> = (at..=last).filter(|it| *it == at || open(it)).collect();
                for it in open {
                    self.take(it, key == "a");
                }
                Pressed::Decided(Answered::Next)
            }
            "q" => Pressed::Decided(Answered::Quit),
            _ => {
                let _ignored = process.stderr.write_all(HELP.as_bytes());
                return Ok(Pressed::Stays);
            }
        };
        if matches!(went, Pressed::Stays) && !matches!(key, "e") {
            show::say(process, "there is no such hunk")?;
        }
        Ok(went)
    }

    fn split(&mut self, process: &mut Process<'_>, at: usize) -> Result<Pressed> {
        let (hunk, parts) = (self.hunk(at), self.parts(at));
        if let (Pieces::Text { patch, .. }, Some(hunk)) = (&mut self.pieces, hunk) {
            patch.split(hunk);
        }
        show::say(process, &format!("split into {parts} hunks"))?;
        Ok(Pressed::To(at))
    }

    /// Opens a hunk in the user's editor, and takes what comes back.
    fn edit(&mut self, process: &mut Process<'_>, project: &Project, at: usize) -> Result<Pressed> {
        let hunk = self.hunk(at);
        let (Pieces::Text { patch, .. }, Some(hunk)) = (&mut self.pieces, hunk) else {
            return Ok(Pressed::Stays);
        };
        let mut text = EDIT_HELP.as_bytes().to_vec();
        text.extend(patch.text(hunk));
        let edited = match in_editor(process, project, &text) {
            Ok(edited) => edited,
            Err(err) => {
                let told = crate::commands::error_text(&err, Style::stderr(process));
                let _ignored = process.stderr.write_all(told.as_bytes());
                return Ok(Pressed::Stays);
            }
        };
        match patch.edit(hunk, &edited) {
            Ok(()) => Ok(Pressed::Decided(Answered::Next)),
            Err(why) => {
                show::say(process, &format!("the edited hunk is not taken: {}", why.words()))?;
                Ok(Pressed::Stays)
            }
        }
    }

    /// What was chosen of it; `None` for nothing.
    fn chosen(self) -> Option<Chosen> {
        match self.pieces {
            Pieces::Whole(taken) => (taken == Some(true)).then_some(Chosen::All),
            Pieces::Text { patch, mode, permissions, target } => {
                let bytes = patch.result();
                let (from, to) =
                    mode.as_ref().map_or((permissions, permissions), |mode| (mode.from, mode.to));
                let is_mode_taken = mode.is_some_and(|mode| mode.taken == Some(true));
                let permissions = if is_mode_taken { to } else { from };
                match (bytes == target && permissions == to, patch.is_any_taken() || is_mode_taken)
                {
                    (_, false) => None,
                    (true, true) => Some(Chosen::All),
                    (false, true) => Some(Chosen::Part(Merged { bytes, permissions })),
                }
            }
        }
    }
}

fn side(displayed: Option<&Displayed>) -> DiffSide<'_> {
    match displayed {
        None => DiffSide::Missing,
        Some(Displayed::File { bytes, permissions }) => {
            DiffSide::File { bytes, permissions: *permissions }
        }
        Some(Displayed::Link(text)) => DiffSide::Link(text),
        Some(Displayed::Other(kind)) => DiffSide::Other(*kind),
    }
}

/// What an answer leads to.
enum Pressed {
    /// The same question again.
    Stays,
    /// Another question.
    To(usize),
    /// The question is answered.
    Decided(Answered),
}

const EDIT_HELP: &str = "\
# To leave a line as it is: make its '-' a ' ', or delete its '+' line.
# What you add begins with '+'. Lines that begin with # are left out.
";

/// The hunks of a text that is changed; `None` where a file comes or goes, or is no text.
fn hunks(shown: &(Option<Displayed>, Option<Displayed>)) -> Option<Pieces> {
    let (Some(Displayed::File { bytes: old, permissions: from }), Some(new)) = shown else {
        return None;
    };
    let Displayed::File { bytes: new, permissions: to } = new else { return None };
    let patch = Patch::of(old, new)?;
    let mode = (from != to).then_some(ModeChoice { from: *from, to: *to, taken: None });
    Some(Pieces::Text { patch, mode, permissions: *from, target: new.clone() })
}

/// The first lines of a difference, and how many there are besides.
fn at_most(text: &str, path: &[u8], step: &Step) -> String {
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

/// Lets the user edit a text in the editor of their own environment, in a file that only they can read.
fn in_editor(process: &mut Process<'_>, project: &Project, text: &[u8]) -> Result<Vec<u8>> {
    let editor = ["VISUAL", "EDITOR"].into_iter().find_map(|name| process.var(name));
    let editor = editor.map_or_else(|| "vi".to_owned(), |it| it.to_string_lossy().into_owned());
    let words = shell_words::split(&editor).unwrap_or_default();
    let place = project.state.root(&project.root).dir().join("hunk.diff");
    fs::replace(&place, text)?;
    let mut command: Vec<OsString> = words.into_iter().map(OsString::from).collect();
    command.push(place.clone().into());
    let code = process.run_program(&command);
    let edited = std::fs::read(&place).map_err(Error::io("read", &place));
    let _gone = std::fs::remove_file(&place);
    match code {
        Ok(0) => edited,
        Ok(_) | Err(_) => Err(Error::other(
            format!("the editor `{}` failed", ui::escape(editor.as_bytes())),
            "set $VISUAL or $EDITOR to one that can be started; the hunk is as it was",
        )),
    }
}
