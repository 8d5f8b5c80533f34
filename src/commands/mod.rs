//! One file for each subcommand: its flags, its help, its body. Here is how they print.

pub(crate) mod allow;
pub(crate) mod bisect;
pub(crate) mod blame;
pub(crate) mod check;
pub(crate) mod clear;
pub(crate) mod config;
pub(crate) mod create;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod find;
pub(crate) mod fork;
pub(crate) mod init;
pub(crate) mod install;
pub(crate) mod list;
pub(crate) mod maintain;
pub(crate) mod prune;
pub(crate) mod recover;
pub(crate) mod restore;
pub(crate) mod revert;
pub(crate) mod rewind;
pub(crate) mod run;
pub(crate) mod show;
pub(crate) mod slash;
pub(crate) mod status;
pub(crate) mod undo;
pub(crate) mod warm;

mod compare;
mod known_roots;
mod origin;
mod rows;
mod state_check;
mod stats;
mod steps;

use std::{
    borrow::Cow,
    ffi::OsStr,
    path::{Path, PathBuf},
};

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::Value;

use crate::{
    error::{Error, Result},
    fs::PathResolver,
    model::{Root, ScanScope},
    process::Process,
    reach::{Surroundings, root_around},
    state::StateDir,
    ui,
};

pub(crate) use crate::project::{Project, TurnRow, rows};

/// The root around a path.
fn root_at(process: &Process<'_>, state: &StateDir, path: &Path) -> Option<(Root, ScanScope)> {
    let (home, real) = (process.home(), PathResolver::default());
    root_around(path, &Surroundings { home: home.as_deref(), state: Some(state), real: &real })
}

/// The root around the current directory.
fn root_here(process: &Process<'_>) -> Option<PathBuf> {
    let state = crate::config::state(process, None).ok()?;
    let (root, _) = root_at(process, &state, process.cwd.as_deref()?)?;
    Some(root.path().to_owned())
}

/// Parses the arguments of one subcommand, without building the parsers of the others.
///
/// # Errors
///
/// Says what cannot be understood, as clap does.
pub(crate) fn parse<A: clap::Args>(words: &[impl AsRef<OsStr>]) -> Result<A, clap::Error> {
    let words = words.iter().map(|word| word.as_ref().to_owned());
    let parser = A::augment_args(clap::Command::new("beforehand").no_binary_name(true));
    A::from_arg_matches(&parser.try_get_matches_from(words)?)
}

/// Removes copies of projects that a command left that was killed.
pub(crate) fn sweep_scratch(process: &Process<'_>) {
    if let Ok(state) = crate::config::state(process, None) {
        crate::fork::sweep_scratch(&state);
    }
}

/// The version of every `--json` document. It moves only if a field must go or change its meaning.
const JSON_VERSION: u32 = 1;

/// Prints a `--json` document on stdout, ended by a line feed: an object, or an array of objects. Each
/// begins with the name of the view and its version; `docs/json/VIEW.json` is the schema.
///
/// # Errors
///
/// Fails if stdout cannot be written.
pub(crate) fn print_json(process: &mut Process<'_>, view: &str, body: Value) -> Result<()> {
    let document = match body {
        Value::Array(items) => items.into_iter().map(|item| versioned(view, item)).collect(),
        item => versioned(view, item),
    };
    let text = serde_json::to_string_pretty(&document).expect("a JSON value always serializes");
    print(process, &format!("{}\n", ui::escape_json(&text)))
}

/// An error for a name that is no checkpoint. If it is a path, it names the line that applies `command`
/// to that path.
fn meant_a_path(project: &Project, given: &str, err: Error, command: &str) -> Error {
    match (&err, project.path_named(given)) {
        (Error::NoSuchCheckpoint { .. }, Some(path)) => Error::other(
            format!("`{}` is a path, and no checkpoint", ui::escape(given.as_bytes())),
            format!("`beforehand {command} 1 -- {path}`"),
        ),
        (_, _) => err,
    }
}

/// A moment, for scripts.
fn json_time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// The same object, with the name of its view and its version first.
fn versioned(view: &str, object: Value) -> Value {
    let Value::Object(fields) = object else { unreachable!("a document has objects alone") };
    let head = [("view", Value::from(view)), ("version", Value::from(JSON_VERSION))];
    let head = head.into_iter().map(|(key, value)| (key.to_owned(), value));
    Value::Object(head.chain(fields).collect())
}

/// Prints text on stdout as it is: JSON, patches, file contents. A reader that went away is no error.
///
/// # Errors
///
/// Fails if stdout cannot be written for another reason.
pub(crate) fn print(process: &mut Process<'_>, text: &str) -> Result<()> {
    match process.stdout.write_all(text.as_bytes()).and_then(|()| process.stdout.flush()) {
        Err(err) if err.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::io("write to", Path::new("standard output"))(err))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Prints text for people on stdout. In a terminal, breaks lines that are too wide for it.
///
/// # Errors
///
/// As [`print()`].
pub(crate) fn print_text(process: &mut Process<'_>, text: &str) -> Result<()> {
    let text = wrapped(text, process.terminal.stdout_columns());
    print(process, &text)
}

/// Prints a table on stdout, below its heading.
///
/// # Errors
///
/// As [`print()`].
pub(crate) fn print_table(
    process: &mut Process<'_>,
    heading: &str,
    table: &ui::Table,
) -> Result<()> {
    if process.terminal.stdout {
        return print_text(process, &format!("{heading}{}", table_text(process, table)));
    }
    // For a script a line is a row; what is around them is talk.
    let (titles, rows) = table.lines();
    say_text(process, &format!("{heading}{titles}"));
    print_text(process, &rows)
}

/// A table for stdout, as wide as the terminal if there is one.
fn table_text(process: &Process<'_>, table: &ui::Table) -> String {
    table.show(process.terminal.stdout_columns(), ui::Style::stdout(process))
}

/// Prints a message on stderr, and a line feed. In a terminal, breaks lines that are too wide for it. A message that
/// cannot be written is lost: what the command does is not affected.
pub(crate) fn say(process: &mut Process<'_>, message: &str) {
    say_text(process, &format!("{message}\n"));
}

/// Prints messages on stderr, each ended by a line feed of its own, like [`say`].
pub(crate) fn say_text(process: &mut Process<'_>, messages: &str) {
    let text = wrapped(messages, process.terminal.stderr_columns());
    let _ignored = process.stderr.write_all(text.as_bytes());
}

/// How many cells the name takes at the beginning of a line of [`named_line`], with the space behind it.
const NAME_CELLS: usize = 11;

/// A line for stdout that begins with a name. In a terminal, the rest of a line that is too wide goes below its
/// beginning.
fn named_line(process: &Process<'_>, name: &str, said: &str) -> String {
    let said = match process.terminal.stdout_columns() {
        Some(columns) => ui::wrap(said, columns.into(), NAME_CELLS),
        None => said.to_owned(),
    };
    format!("{name:<10} {said}\n")
}

fn wrapped(text: &str, columns: Option<u16>) -> Cow<'_, str> {
    match columns {
        Some(columns) => ui::wrap_lines(text, columns.into()),
        None => Cow::Borrowed(text),
    }
}

/// An error as people see it: what could not be done, why, and what to do next.
pub(crate) fn error_text(err: &Error, style: ui::Style) -> String {
    use std::error::Error as _;
    let mut text = format!("{} {err}\n", style.red("error:"));
    let mut source = err.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        text.push_str(&format!("caused by: {}\n", ui::escape_line(cause_text.as_bytes())));
        source = cause.source();
    }
    if let Some(hint) = err.hint() {
        text.push_str(&format!("hint: {hint}\n"));
    }
    text
}
