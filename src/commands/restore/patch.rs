//! `--patch`: asks hunk by hunk what of a plan is to be done, with the keys of `git restore -p`.
//!
//! The answers are lines, as git reads them. They come from a terminal only: keys that were written down
//! before the question was there would be taken for a yes to other hunks.

use std::{collections::BTreeMap, ffi::OsString};

use super::{
    choice::{FileChoice, Pieces},
    report, show,
};
use crate::{
    commands::{Project, print, print_text, say, say_text},
    error::{Error, Result},
    fs,
    process::{Exit, Process, RunPlace},
    restore::{Prepared, Restore},
    ui::{self, Style},
};

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
pub(super) fn refuse_without_terminal(process: &Process<'_>, verb: &str) -> Result<()> {
    if process.terminal.stdin {
        return Ok(());
    }
    let hint = match verb {
        "undo" => "without one, `--dry-run` shows the whole undo, and `--yes` does it",
        _ => "without one, `-- PATH…` restores whole files",
    };
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
        show::plan(process, super::PlannedRestore::of(restore, prepared), false)?;
        let is_clean = report::conflicts(&prepared.plan).is_empty();
        return Ok(Some(if is_clean { Exit::Ok } else { Exit::Conflicts }));
    }
    print_text(process, &format!("{}\n", show::heading(process, restore)))?;
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
                say(process, "\nnothing was changed: the answers ended");
                return Ok(Some(Exit::Failed));
            }
        }
    }
    if chosen.is_empty() {
        say(process, "nothing was chosen; nothing was changed");
        return Ok(Some(Exit::Failed));
    }
    if prepared.choose(&chosen) {
        let note =
            "note: --patch chooses among files; branch, index and repositories stay as they are";
        say(process, note);
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

/// The questions about a file.
impl FileChoice {
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
            let went = self.press(process, project, at, &given);
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
    ) -> Pressed {
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
            "s" if self.parts(at) > 1 => self.split_here(process, at),
            "e" if self.hunk(at).is_some() => self.edit(process, project, at),
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
                say_text(process, HELP);
                return Pressed::Stays;
            }
        };
        if matches!(went, Pressed::Stays) && !matches!(key, "e") {
            say(process, "there is no such hunk");
        }
        went
    }

    fn split_here(&mut self, process: &mut Process<'_>, at: usize) -> Pressed {
        let parts = self.parts(at);
        self.split(at);
        say(process, &format!("split into {parts} hunks"));
        Pressed::To(at)
    }

    /// Opens a hunk in the user's editor, and takes what comes back.
    fn edit(&mut self, process: &mut Process<'_>, project: &Project, at: usize) -> Pressed {
        let hunk = self.hunk(at);
        let (Pieces::Text { patch, .. }, Some(hunk)) = (&mut self.pieces, hunk) else {
            return Pressed::Stays;
        };
        let mut text = EDIT_HELP.as_bytes().to_vec();
        text.extend(patch.text(hunk));
        let edited = match in_editor(process, project, &text) {
            Ok(edited) => edited,
            Err(err) => {
                let told = crate::commands::error_text(&err, Style::stderr(process));
                say_text(process, &told);
                return Pressed::Stays;
            }
        };
        match patch.edit(hunk, &edited) {
            Ok(()) => Pressed::Decided(Answered::Next),
            Err(why) => {
                say(process, &format!("the edited hunk is not taken: {}", why.words()));
                Pressed::Stays
            }
        }
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

/// Lets the user edit a text in the editor of their own environment, in a file that only they can read.
fn in_editor(process: &mut Process<'_>, project: &Project, text: &[u8]) -> Result<Vec<u8>> {
    let editor = ["VISUAL", "EDITOR"].into_iter().find_map(|name| process.var(name));
    let editor = editor.map_or_else(|| "vi".to_owned(), |it| it.to_string_lossy().into_owned());
    let words = shell_words::split(&editor).unwrap_or_default();
    let place = project.state.root(&project.root).dir().join("hunk.diff");
    fs::replace(&place, text)?;
    let mut command: Vec<OsString> = words.into_iter().map(OsString::from).collect();
    command.push(place.clone().into());
    let code = process.run_program(&command, RunPlace::default());
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
