//! Tells when a call reaches for beforehand itself: its store, settings, refs, hook lines, or its own
//! commands. Reads no more than the few files in which agents keep their hooks, and those only
//! when a call names them.

mod mentions;
mod words;

use std::{
    borrow::Cow,
    cell::OnceCell,
    path::{Path, PathBuf},
};

use crate::{
    fs::{PathResolver, read_small, without_dots},
    install::{registrations_at, switches_at},
    model::{Certainty, Effect, Finding, Intent, Level, Simple, Target, TargetAction},
    process::Process,
    shell,
};

/// No settings of an agent come near it.
const HOOK_FILE_MAX_BYTES: u64 = 4 << 20;
/// Our commands that replace, forget or unprotect. Reading ones and `create` are free.
const COMMANDS: &[&str] = &[
    "allow", "restore", "revert", "rewind", "undo", "redo", "fork", "export", "bisect", "clear",
    "prune", "uninstall", "install", "slash",
];
/// Those that lose nothing.
const READING: &[&str] = &[
    "list", "show", "diff", "blame", "explain", "status", "doctor", "check", "create", "find",
    "config", "init", "demo", "hook", "version", "help",
];
/// What tells where a program is.
const LOCATORS: &[&str] = &["which", "whereis", "where", "type", "command"];
/// What the refs in our repositories begin with.
const OUR_REFS: &str = "refs/checkpoints";
/// What `shell` keeps of a command for showing; a text as long as that may have been longer.
const SHOWN_CHARS: usize = 120;

/// What must not go unnoticed.
#[derive(Clone, Copy)]
pub struct GuardContext<'a, 'p> {
    /// What knows where agents keep their hooks here: `install` and the environment.
    pub process: &'a Process<'p>,
    /// The agent that makes the call, as in `--agent NAME`.
    pub agent: &'a str,
    /// The state directory.
    pub state: &'a Path,
    /// The settings file, be it there or not, by each of its names.
    pub settings: &'a [PathBuf],
    /// The directory the call is made in.
    pub cwd: &'a Path,
    /// The root around it.
    pub root: &'a Path,
    /// Where paths lead.
    pub real: &'a PathResolver,
}

/// Why a call that is not read-only reaches for beforehand itself, as a fragment; `None` if it does
/// not. `places` is what it names, absolute.
pub fn threat(
    ours: &GuardContext<'_, '_>,
    intent: &Intent,
    effect: &Effect,
    places: &[PathBuf],
) -> Option<String> {
    let said = match effect {
        Effect::None => return None,
        Effect::Touches(paths) => paths.iter().find_map(|path| {
            let place = absolute(ours, path);
            path_threat(ours, &place, false).or_else(|| switch_threat(ours, &place))
        }),
        Effect::Destroys(finding) | Effect::Unknown(finding) => {
            finding_threat(ours, &CommandLine::of(intent), finding)
        }
    };
    said.or_else(|| {
        let within = |place: &PathBuf| path_threat(ours, place, true);
        places.iter().find_map(within)
    })
}

/// A command line, whole, and the words of its commands once they are asked for.
struct CommandLine<'a> {
    text: Cow<'a, str>,
    commands: OnceCell<Vec<Vec<String>>>,
}

impl<'a> CommandLine<'a> {
    fn of(intent: &'a Intent) -> Self {
        let text = match intent {
            Intent::Run { command, .. } => Cow::Borrowed(command.as_str()),
            Intent::Unknown(tool) => Cow::Owned(tool.texts.join("\n")),
            Intent::Read | Intent::Write(_) | Intent::Edit(_) => Cow::Borrowed(""),
        };
        Self { text, commands: OnceCell::new() }
    }

    fn commands(&self) -> &[Vec<String>] {
        self.commands.get_or_init(|| words::commands(&self.text))
    }

    /// The words of one command. Its text has lost its quotes, and may be cut, so the line is asked
    /// for them. What `shell` found by following a variable is not in the line so: it is split at
    /// its blanks, and if it was cut, every command of the line may be the one.
    fn words_of<'s>(&'s self, simple: &'s Simple) -> Vec<Vec<&'s str>> {
        let all = || self.commands().iter().map(|words| words.iter().map(String::as_str).collect());
        let is_cut = is_cut(simple);
        let shown = simple.text.trim_end_matches('…');
        let is_it = |words: &Vec<&str>| {
            let text = words.join(" ");
            if is_cut { text.starts_with(shown) } else { text == shown }
        };
        let found: Vec<_> = all().filter(is_it).collect();
        if !found.is_empty() {
            return found;
        }
        let split = shown.split_whitespace().collect();
        if is_cut { all().chain([split]).collect() } else { vec![split] }
    }
}

fn is_cut(simple: &Simple) -> bool {
    simple.text.len() >= SHOWN_CHARS && simple.text.chars().count() >= SHOWN_CHARS
}

fn finding_threat(
    ours: &GuardContext<'_, '_>,
    line: &CommandLine<'_>,
    finding: &Finding,
) -> Option<String> {
    let changing = || finding.commands.iter().filter(|simple| simple.level != Level::ReadOnly);
    changing()
        .find_map(|simple| own_threat(line, simple))
        .or_else(|| located_threat(line, changing().any(|simple| simple.text.contains("$("))))
        .or_else(|| repository_threat(line, finding))
        .or_else(|| finding.targets().find_map(|target| target_threat(ours, target)))
        .or_else(|| changing().any(is_open).then(|| mention(ours, line, finding)).flatten())
}

/// Whether a command may change what its targets do not tell.
fn is_open(simple: &Simple) -> bool {
    let is_guess = |target: &&Target| {
        let sweeps = target.path.ends_with("/**");
        target.certainty == Certainty::Dynamic || target.action == TargetAction::Git || sweeps
    };
    // What it only names is no target of its own.
    let mut targets = simple.targets.iter().filter(|target| !shell::is_mention(target)).peekable();
    match simple.level {
        Level::ReadOnly | Level::Creates => false,
        Level::Destroys => targets.peek().is_none() || targets.any(|target| is_guess(&target)),
        Level::Unknown => true,
    }
}

/// A line that may change anything, and has words that lead to, above or into a place of ours:
/// in any of its commands, and whatever is done with them on the way.
fn mention(
    ours: &GuardContext<'_, '_>,
    line: &CommandLine<'_>,
    finding: &Finding,
) -> Option<String> {
    // A state of git is no path that a word could give it.
    let is_git = |simple: &Simple| {
        let own = simple.targets.iter().filter(|target| !shell::is_mention(target));
        let mut own = own.peekable();
        own.peek().is_some() && own.all(|target| target.action == TargetAction::Git)
    };
    let finds =
        |simple: &Simple| simple.level == Level::Destroys && is_open(simple) && !is_git(simple);
    let takes_all = finding.commands.iter().any(finds);
    let commands = mentions::without_returns(ours, &line.text, line.commands());
    let (text, why) = mentions::threat(ours, &commands, &finding.texts, takes_all)?;
    Some(format!("it names `{text}`, and its effect there is unknown: {why}"))
}

/// Git at work on the refs that hold checkpoints.
fn repository_threat(line: &CommandLine<'_>, finding: &Finding) -> Option<String> {
    if !line.text.contains(OUR_REFS) {
        return None;
    }
    let drops = |words: &Vec<&str>| {
        let is_git = words.iter().any(|word| word.rsplit('/').next() == Some("git"));
        let names_refs = words.iter().any(|word| word.contains(OUR_REFS));
        is_git && names_refs && words.contains(&"update-ref")
    };
    let mut changing = finding.commands.iter().filter(|simple| simple.level != Level::ReadOnly);
    let found = changing.any(|simple| line.words_of(simple).iter().any(drops));
    found.then(|| "it can drop the refs that hold your checkpoints".to_owned())
}

/// One of our own commands that loses or replaces something, or a variable that switches us off.
fn own_threat(line: &CommandLine<'_>, simple: &Simple) -> Option<String> {
    // Most commands have nothing to do with us, and their words need not be known.
    let may_be = |text: &str| text.contains("beforehand") || text.contains("BEFOREHAND");
    let is_about_us = may_be(&simple.text) || is_cut(simple) && may_be(&line.text);
    if !is_about_us {
        return None;
    }
    let commands = line.words_of(simple);
    let is_unknown = simple.level == Level::Unknown;
    commands
        .iter()
        .find_map(|words| command_threat(words, is_unknown).or_else(|| environment_threat(words)))
}

/// One of our own commands that loses or replaces something. A program we do not know may run what
/// it is given.
fn command_threat(words: &[&str], is_unknown: bool) -> Option<String> {
    let is_us = |word: &str| word.rsplit('/').next() == Some("beforehand");
    let is_set = |word: &&str| word.split_once('=').is_some_and(|(name, _)| is_name(name));
    let program = words.iter().take_while(|word| is_set(word)).count();
    let at = match words.get(program).is_some_and(|word| is_us(word)) {
        true => program,
        false if is_unknown => words.iter().position(|word| is_us(word))?,
        false => return None,
    };
    if words[..at].iter().any(|word| matches!(*word, "uninstall" | "remove" | "purge")) {
        return Some("it removes beforehand itself".to_owned());
    }
    // What follows is for another program.
    let own = words.iter().take_while(|word| **word != "--");
    if own.clone().any(|word| matches!(*word, "--help" | "-h" | "--dry-run")) {
        return None;
    }
    // A word before it may be an option's, and one that is not known may be any of ours.
    let is_ours = |word: &&&str| COMMANDS.contains(word) || READING.contains(word);
    match words[at + 1..].iter().find(is_ours) {
        Some(command) if COMMANDS.contains(command) => {
            Some(format!("it runs `beforehand {command}` itself"))
        }
        Some(_) => None,
        None => {
            let is_hidden = |word: &&str| word.is_empty() || word.contains('$');
            let hides = words[at + 1..].iter().any(is_hidden);
            hides.then(|| "it runs a command of beforehand that is not known".to_owned())
        }
    }
}

/// A line that asks where our program is, and does something with the answer.
fn located_threat(line: &CommandLine<'_>, does: bool) -> Option<String> {
    if !does || !line.text.contains("beforehand") {
        return None;
    }
    let locates = |words: &Vec<String>| {
        words.first().is_some_and(|first| LOCATORS.contains(&first.as_str()))
            && words.last().is_some_and(|last| last == "beforehand")
    };
    let found = line.commands().iter().any(locates);
    found.then(|| "it uses the path of beforehand's program to change something".to_owned())
}

fn environment_threat(words: &[&str]) -> Option<String> {
    let sets = |word: &&&str| {
        word.split_once('=').is_some_and(|(name, _)| {
            name == "BEFOREHAND" || (name.starts_with("BEFOREHAND_") && is_name(name))
        })
    };
    let name = words.iter().find(sets)?.split('=').next().unwrap_or_default();
    Some(format!("it sets `{name}`, which can switch beforehand off"))
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn target_threat(ours: &GuardContext<'_, '_>, target: &Target) -> Option<String> {
    match (target.action, target.certainty) {
        (TargetAction::Git, _) | (_, Certainty::Dynamic) => None,
        (action, Certainty::Exact) => {
            let takes_all = match action {
                TargetAction::Delete | TargetAction::Move | TargetAction::Modify => true,
                // What is put into a directory leaves the rest of it alone.
                TargetAction::Overwrite | TargetAction::Create | TargetAction::Git => false,
            };
            let place = absolute(ours, Path::new(&target.path));
            let switches = || match action {
                // Without its file, a switch is off.
                TargetAction::Delete | TargetAction::Git => None,
                TargetAction::Overwrite
                | TargetAction::Modify
                | TargetAction::Move
                | TargetAction::Create => switch_threat(ours, &place),
            };
            path_threat(ours, &place, takes_all).or_else(switches)
        }
        // What it matches now is in the places, but not what a search finds below a directory.
        (_, Certainty::Glob) => {
            let start = target.path.strip_suffix("/**")?;
            let start = if start.is_empty() { "/" } else { start };
            path_threat(ours, &absolute(ours, Path::new(start)), true)
        }
    }
}

/// Whether something at `place` (absolute) can go that we need.
fn path_threat(ours: &GuardContext<'_, '_>, place: &Path, can_contain: bool) -> Option<String> {
    // Most paths lead where they say.
    let led = Some(ours.real.place(place)).filter(|led| led != place);
    let places = || [Some(place), led.as_deref()].into_iter().flatten();
    let is_met = |own: &Path| places().any(|place| meets(place, own, can_contain));
    // Where there is none, only one that is made changes anything.
    let is_file = |file: &PathBuf| {
        let there = can_contain && file.symlink_metadata().is_ok();
        places().any(|place| meets(place, file, there))
    };
    let is_state = |own: PathBuf| own != ours.state && is_met(&own);
    if is_met(ours.state)
        || is_state(ours.real.place(ours.state))
        || ours.real.of(ours.state).is_ok_and(is_state)
    {
        return Some("your checkpoints are kept there".to_owned());
    }
    let mut dirs = ours.settings.iter().filter_map(|file| file.parent());
    if ours.settings.iter().any(is_file) || dirs.any(|dir| place == dir) {
        return Some("beforehand's settings are there".to_owned());
    }
    places().find_map(|place| place_threat(ours, place, can_contain))
}

/// A file of the calling agent in which its hooks can be switched off.
fn switch_threat(ours: &GuardContext<'_, '_>, place: &Path) -> Option<String> {
    switches_at(ours.process, ours.agent, ours.root, place)
        .then(|| "the agent's hooks, beforehand's among them, can be switched off there".to_owned())
}

fn meets(place: &Path, own: &Path, can_contain: bool) -> bool {
    place.starts_with(own) || can_contain && own.starts_with(place)
}

/// The same for what is known by its name.
fn place_threat(ours: &GuardContext<'_, '_>, place: &Path, can_contain: bool) -> Option<String> {
    if place.file_name().is_some_and(|name| name == "beforehand")
        && place.parent().and_then(Path::file_name).is_some_and(|dir| dir == "bin")
    {
        return Some("it is beforehand itself".to_owned());
    }
    hook_threat(ours, place, can_contain)
}

/// A file with a hook line of ours, or a directory with such a file.
fn hook_threat(ours: &GuardContext<'_, '_>, place: &Path, can_contain: bool) -> Option<String> {
    let around = registrations_at(ours.process, ours.root, place, can_contain);
    let file = around.into_iter().find(|file| names_us(file))?;
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Some(format!("beforehand's hook is registered in `{name}` there"))
}

fn names_us(file: &Path) -> bool {
    let bytes = read_small(file, HOOK_FILE_MAX_BYTES).ok().flatten().unwrap_or_default();
    bytes.windows(b"beforehand".len()).any(|part| part == b"beforehand")
}

fn absolute(ours: &GuardContext<'_, '_>, path: &Path) -> PathBuf {
    without_dots(&ours.cwd.join(path))
}

#[cfg(test)]
mod tests;
