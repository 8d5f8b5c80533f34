//! `beforehand slash`: what the slash commands of agents run; its contract is in `hooks/README.md`.
//!
//! Knows how little of what arrives can be relied on: it is text a person typed, on its way through
//! an agent and a shell. It is only ever split into words, never expanded and never run.

use std::{ffi::OsString, io::Read};

use super::{create, diff, error_text, fork, list, parse, print, restore, revert, show, undo};
use crate::{
    error::{Error, Result},
    process::{Exit, Printed, Process},
    ui::{Style, escape_text},
};

/// More than anyone types.
const TEXT_MAX_BYTES: u64 = 64 << 10;
/// Ends the text on standard input; without it the text was cut short on the way.
const END: &str = "BEFOREHAND_END";
/// What reaches the model should be short.
const ROWS_MAX: usize = 10;
const LINES_MAX: usize = 200;

/// What the slash commands of agents run.
#[derive(clap::Args)]
pub(crate) struct SlashArgs {
    /// Which slash command
    name: Name,
    /// Read the arguments from standard input
    #[arg(long, conflicts_with = "text")]
    stdin: bool,
    /// The arguments, as typed
    #[arg(last = true, value_name = "TEXT")]
    text: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Name {
    Checkpoint,
    Rollback,
    Revert,
    Fork,
    Undo,
}

/// What the user wants.
#[derive(Clone, Debug, PartialEq, Eq)]
enum SlashRequest {
    List,
    Show(String),
    Diff(String),
    Create(Option<String>),
    /// The arguments of `beforehand restore`.
    Restore(Vec<String>),
    /// The arguments of `beforehand revert`.
    Revert(Vec<String>),
    /// The arguments of `beforehand fork`.
    Fork(Vec<String>),
    /// The arguments of `beforehand undo`.
    Undo(Vec<String>),
}

impl SlashRequest {
    /// Whether the answer is to be a JSON document.
    fn is_json(&self) -> bool {
        match self {
            Self::Restore(words) | Self::Revert(words) | Self::Fork(words) | Self::Undo(words) => {
                words.iter().any(|word| word == "--json")
            }
            Self::List | Self::Show(_) | Self::Diff(_) | Self::Create(_) => false,
        }
    }
}

/// Agents drop what a failed command printed, so all of it goes to standard output, and it never
/// fails.
pub(crate) fn run(process: &mut Process<'_>, args: &SlashArgs) -> Result<Exit> {
    let text = given(process, args);
    let said = match text.and_then(|text| wish(args.name, &text)) {
        // Half a document is none.
        Ok(wish) if wish.is_json() => grant(process, args.name, wish),
        Ok(wish) => shortened(grant(process, args.name, wish)),
        Err(why) => error_text(&refusal(args.name, why), Style::PLAIN),
    };
    print(process, &said)?;
    Ok(Exit::Ok)
}

fn refusal(name: Name, why: String) -> Error {
    Error::other(
        why,
        match name {
            Name::Checkpoint => {
                "/checkpoint [list | show ID | diff ID | restore ID [OPTION…] [FILE…] | create [MESSAGE]]"
            }
            Name::Rollback => "/rollback [N [OPTION…] [FILE…] | diff N]",
            Name::Revert => "/revert [N [OPTION…] [FILE…]]",
            Name::Fork => "/fork [N [DIR] | --list | --keep [NAME] | --drop NAME]",
            Name::Undo => "/undo [OPTION…]",
        },
    )
}

fn given(process: &mut Process<'_>, args: &SlashArgs) -> Result<String, String> {
    if !args.stdin {
        let words: Option<Vec<&str>> = args.text.iter().map(|word| word.to_str()).collect();
        return words.map(|words| words.join(" ")).ok_or_else(|| not_text().to_owned());
    }
    let mut bytes = Vec::new();
    let mut limited = process.stdin.take(TEXT_MAX_BYTES + 1);
    limited.read_to_end(&mut bytes).map_err(|err| format!("cannot read the arguments: {err}"))?;
    let text = String::from_utf8(bytes).map_err(|_| not_text().to_owned())?;
    let text = text.strip_suffix('\n').unwrap_or(&text);
    let text = text.strip_suffix(END).and_then(|text| match text.strip_suffix('\n') {
        Some(text) => Some(text),
        None => text.is_empty().then_some(text),
    });
    text.map(str::to_owned)
        .ok_or_else(|| "the arguments were cut short on the way; nothing was done".to_owned())
}

fn not_text() -> &'static str {
    "the arguments are not UTF-8 text; nothing was done"
}

/// Reads what was typed.
fn wish(name: Name, text: &str) -> Result<SlashRequest, String> {
    let words = match shell_words::split(text) {
        // OpenCode puts all there is between quotes of its own.
        Ok(words) if words.len() == 1 && text.trim().starts_with(['"', '\'']) => {
            shell_words::split(&words[0]).map_err(|_| words[0].clone())
        }
        Ok(words) => Ok(words),
        Err(_) => Err(text.to_owned()),
    };
    match (name, words) {
        (Name::Checkpoint, Ok(words)) => checkpoint(&words),
        (Name::Checkpoint, Err(text)) => match text.trim().split_once(char::is_whitespace) {
            // `don't` is a fine message.
            Some(("create", message)) => Ok(SlashRequest::Create(Some(message.trim().to_owned()))),
            Some(_) | None => Err(unreadable(&text)),
        },
        (Name::Rollback, Ok(words)) => rollback(&words),
        (Name::Revert, Ok(words)) if words.is_empty() => Ok(SlashRequest::List),
        (Name::Revert, Ok(words)) => {
            Ok(SlashRequest::Revert(with_paths_apart::<revert::RevertArgs>(&words)))
        }
        (Name::Fork, Ok(words)) if words.is_empty() => Ok(SlashRequest::List),
        (Name::Fork, Ok(words)) => Ok(SlashRequest::Fork(words)),
        (Name::Undo, Ok(words)) => Ok(SlashRequest::Undo(words)),
        (Name::Rollback | Name::Revert | Name::Fork | Name::Undo, Err(text)) => {
            Err(unreadable(&text))
        }
    }
}

fn unreadable(text: &str) -> String {
    format!("cannot split `{}` into words: a quote is open", crate::ui::escape(text.as_bytes()))
}

fn checkpoint(words: &[String]) -> Result<SlashRequest, String> {
    let Some((name, rest)) = words.split_first() else { return Ok(SlashRequest::List) };
    match (name.as_str(), rest) {
        ("list", []) => Ok(SlashRequest::List),
        ("show", [id]) => Ok(SlashRequest::Show(id.clone())),
        ("diff", [id]) => Ok(SlashRequest::Diff(id.clone())),
        ("restore", [_, ..]) => {
            Ok(SlashRequest::Restore(with_paths_apart::<restore::RestoreArgs>(rest)))
        }
        ("create", []) => Ok(SlashRequest::Create(None)),
        ("create", message) => Ok(SlashRequest::Create(Some(message.join(" ")))),
        _ => Err(unknown(words)),
    }
}

fn rollback(words: &[String]) -> Result<SlashRequest, String> {
    match words {
        [] => Ok(SlashRequest::List),
        [diff, id] if diff == "diff" => Ok(SlashRequest::Diff(id.clone())),
        [first, ..] if !matches!(&first[..], "diff" | "list" | "show") => {
            Ok(SlashRequest::Restore(with_paths_apart::<restore::RestoreArgs>(words)))
        }
        _ => Err(unknown(words)),
    }
}

/// The arguments as `beforehand restore` or `beforehand revert` takes them: in a slash command, paths
/// need no `--` before them, but may have one. The first word that is no option is the checkpoint.
fn with_paths_apart<A: clap::Args>(words: &[String]) -> Vec<String> {
    let parser = A::augment_args(clap::Command::new("slash"));
    let takes_value = |word: &str| {
        let mut options = parser.get_opts().filter(|it| it.get_action().takes_values());
        options.any(|it| it.get_long().is_some_and(|long| word.strip_prefix("--") == Some(long)))
    };
    let (mut args, mut paths) = (Vec::new(), Vec::new());
    let mut words = words.iter();
    let mut has_checkpoint = false;
    while let Some(word) = words.next() {
        if word == "--" {
            paths.extend(words.by_ref().cloned());
        } else if word.starts_with('-') {
            args.push(word.clone());
            args.extend(words.by_ref().take(usize::from(takes_value(word))).cloned());
        } else if has_checkpoint {
            paths.push(word.clone());
        } else {
            has_checkpoint = true;
            args.push(word.clone());
        }
    }
    if !paths.is_empty() {
        args.push("--".to_owned());
        args.extend(paths);
    }
    args
}

fn unknown(words: &[String]) -> String {
    format!("cannot make sense of `{}`", crate::ui::escape(words.join(" ").as_bytes()))
}

fn grant(process: &mut Process<'_>, name: Name, wish: SlashRequest) -> String {
    match wish {
        SlashRequest::List => {
            let args = list::ListArgs {
                limit: Some(ROWS_MAX),
                is_read: true,
                ..list::ListArgs::default()
            };
            let said = inside(process, |inner| list::run(inner, &args));
            said.with(match name {
                Name::Checkpoint => "\n/checkpoint diff N · /checkpoint restore N\n",
                Name::Revert => "\n/revert N\n",
                Name::Fork => "\n/fork N · /fork --list · /fork --keep · /fork --drop NAME\n",
                Name::Rollback | Name::Undo => "\n/rollback diff N · /rollback N\n",
            })
        }
        SlashRequest::Show(checkpoint) => {
            let args = show::ShowArgs { checkpoint, json: false };
            inside(process, |inner| show::run(inner, &args)).all()
        }
        SlashRequest::Diff(from) => {
            let args = diff::DiffArgs { from, ..diff::DiffArgs::default() };
            inside(process, |inner| diff::run(inner, &args)).all()
        }
        SlashRequest::Create(message) => {
            let args = create::CreateArgs { message, name: None, json: false };
            let said = inside(process, |inner| create::run(inner, &args));
            if said.done { format!("checkpoint {}", said.all()) } else { said.all() }
        }
        SlashRequest::Restore(words) => parsed(&words, |args: restore::RestoreArgs| {
            if args.checkpoint.is_none() {
                // What finishes or takes back a restore has no preview.
                return inside(process, |inner| restore::run(inner, &args)).all();
            }
            planned(process, args.dry_run, args.json, |inner, dry_run| {
                let yes = !dry_run;
                restore::run(inner, &restore::RestoreArgs { dry_run, yes, ..args.clone() })
            })
        }),
        SlashRequest::Revert(words) => parsed(&words, |args: revert::RevertArgs| {
            planned(process, args.dry_run, args.json, |inner, dry_run| {
                revert::run(inner, &revert::RevertArgs { dry_run, yes: !dry_run, ..args.clone() })
            })
        }),
        SlashRequest::Fork(words) => parsed(&words, |args: fork::ForkArgs| {
            if args.list {
                return inside(process, |inner| fork::run(inner, &args)).all();
            }
            planned(process, args.dry_run, args.json, |inner, dry_run| {
                fork::run(inner, &fork::ForkArgs { dry_run, yes: !dry_run, ..args.clone() })
            })
        }),
        SlashRequest::Undo(words) => parsed(&words, |args: undo::UndoArgs| {
            planned(process, args.how.dry_run, args.how.json, |inner, dry_run| {
                let how = undo::UndoOptions { yes: true, dry_run, ..args.how.clone() };
                undo::undo(inner, &undo::UndoArgs { how, ..args.clone() })
            })
        }),
    }
}

/// What comes of the arguments of a command, or what is wrong with them.
fn parsed<A: clap::Args>(words: &[String], act: impl FnOnce(A) -> String) -> String {
    parse(words).map_or_else(|err| not_understood(&err), act)
}

/// Shows what `act` would do and, unless that is all that was asked for, does it. Typed by the user,
/// it is the user's yes. As JSON only one of the two is printed, so that it is one document.
fn planned(
    process: &mut Process<'_>,
    is_dry: bool,
    is_json: bool,
    act: impl Fn(&mut Process<'_>, bool) -> Result<Exit>,
) -> String {
    if is_json {
        return inside(process, |inner| act(inner, is_dry)).with("");
    }
    let plan = inside(process, |inner| act(inner, true));
    if is_dry || !plan.done {
        return plan.all();
    }
    let done = inside(process, |inner| act(inner, false));
    format!("{}\n{}", plan.stdout, done.all())
}

/// What clap says of arguments, without the usage of a command line that was not typed.
fn not_understood(err: &clap::Error) -> String {
    let text = err.render().to_string();
    let said = text.split("\nUsage:").next().unwrap_or_default();
    format!("{}\n", escape_text(said.trim_end()))
}

/// What another command said.
struct CommandOutput {
    stdout: String,
    stderr: String,
    /// Whether it did what it was told.
    done: bool,
}

impl CommandOutput {
    fn all(self) -> String {
        self.stdout + &self.stderr
    }

    /// Its result, and `more` instead of its own advice.
    fn with(self, more: &str) -> String {
        if self.stdout.is_empty() { self.stderr } else { self.stdout + more }
    }
}

/// Runs another command without a terminal and without input.
fn inside(
    process: &mut Process<'_>,
    command: impl FnOnce(&mut Process<'_>) -> Result<Exit>,
) -> CommandOutput {
    let (result, Printed { stdout, mut stderr }) = process.quietly(command);
    if let Err(err) = &result {
        stderr.push_str(&error_text(err, Style::PLAIN));
    }
    CommandOutput { stdout, stderr, done: result.is_ok() }
}

fn shortened(said: String) -> String {
    let count = said.lines().count();
    if count <= LINES_MAX {
        return said;
    }
    let start: Vec<&str> = said.lines().take(LINES_MAX).collect();
    format!(
        "{}\n… {} more lines; the whole is in a terminal\n",
        start.join("\n"),
        count - LINES_MAX
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_becomes_a_wish() {
        let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        let restore = |words: &[&str]| SlashRequest::Restore(owned(words));
        for (text, expected) in [
            ("", SlashRequest::List),
            (" 2 ", restore(&["2"])),
            ("diff 2", SlashRequest::Diff("2".to_owned())),
            ("2 src/main.rs 'a b'", restore(&["2", "--", "src/main.rs", "a b"])),
            ("2 a --force -- -b", restore(&["2", "--force", "--", "a", "-b"])),
            ("--force 2 --into out a", restore(&["--force", "2", "--into", "out", "--", "a"])),
            ("--continue", restore(&["--continue"])),
            ("\"2 src/main.rs\"", restore(&["2", "--", "src/main.rs"])),
            ("\"\"", SlashRequest::List),
            ("2 '$(rm -rf /)'; x", restore(&["2", "--", "$(rm -rf /);", "x"])),
        ] {
            assert_eq!(wish(Name::Rollback, text), Ok(expected), "{text}");
        }
        for bad in ["diff", "diff 1 2", "2 don't"] {
            assert!(wish(Name::Rollback, bad).is_err(), "{bad}");
        }
        let revert = |words: &[&str]| Ok(SlashRequest::Revert(owned(words)));
        assert_eq!(wish(Name::Revert, ""), Ok(SlashRequest::List));
        assert_eq!(wish(Name::Revert, "2 a --merge"), revert(&["2", "--merge", "--", "a"]));
        assert_eq!(wish(Name::Undo, " "), Ok(SlashRequest::Undo(Vec::new())));
        assert_eq!(wish(Name::Undo, "\"\""), Ok(SlashRequest::Undo(Vec::new())));
        assert_eq!(wish(Name::Undo, "--force"), Ok(SlashRequest::Undo(owned(&["--force"]))));
    }

    #[test]
    fn a_message_is_whatever_follows_create() {
        for (text, message) in [
            ("create", None),
            ("create before the  merge", Some("before the merge")),
            ("create I don't know", Some("I don't know")),
            ("\"create it all\"", Some("it all")),
        ] {
            let expected = SlashRequest::Create(message.map(str::to_owned));
            assert_eq!(wish(Name::Checkpoint, text), Ok(expected), "{text}");
        }
        assert!(wish(Name::Checkpoint, "restore don't").is_err());
        assert!(wish(Name::Checkpoint, "destroy 1").is_err());
    }
}
