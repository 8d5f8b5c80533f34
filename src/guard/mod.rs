//! Tells when a call reaches for beforehand itself: its store, settings, refs, hook lines, or its own
//! commands. Reads no more than the few files in which agents keep their hooks, and those only
//! when a call names them.

mod mentions;
mod words;

use std::{
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
    "allow", "restore", "rewind", "undo", "redo", "clear", "prune", "uninstall", "install", "slash",
];
/// Those that lose nothing.
const READING: &[&str] = &[
    "list", "show", "diff", "explain", "status", "doctor", "check", "create", "find", "config",
    "init", "demo", "hook", "version", "help",
];
/// What tells where a program is.
const LOCATORS: &[&str] = &["which", "whereis", "where", "type", "command"];
/// What the refs in our repositories begin with.
const OUR_REFS: &str = "refs/checkpoints";
/// What `shell` keeps of a command for showing; a text as long as that may have been longer.
const SHOWN_CHARS: usize = 120;

/// What must not go unnoticed.
#[derive(Clone, Copy)]
pub struct Ours<'a, 'p> {
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
    ours: &Ours<'_, '_>,
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
            finding_threat(ours, &Line::of(intent), finding)
        }
    };
    said.or_else(|| {
        let within = |place: &PathBuf| path_threat(ours, place, true);
        places.iter().find_map(within)
    })
}

/// A command line, whole, and the words of its commands once they are asked for.
struct Line<'a> {
    text: &'a str,
    commands: OnceCell<Vec<Vec<String>>>,
}

impl<'a> Line<'a> {
    fn of(intent: &'a Intent) -> Self {
        let text = match intent {
            Intent::Run { command, .. } => command.as_str(),
            Intent::Read | Intent::Write(_) | Intent::Edit(_) | Intent::Unknown => "",
        };
        Self { text, commands: OnceCell::new() }
    }

    fn commands(&self) -> &[Vec<String>] {
        self.commands.get_or_init(|| words::commands(self.text))
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

fn finding_threat(ours: &Ours<'_, '_>, line: &Line<'_>, finding: &Finding) -> Option<String> {
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
fn mention(ours: &Ours<'_, '_>, line: &Line<'_>, finding: &Finding) -> Option<String> {
    let finds = |simple: &Simple| simple.level == Level::Destroys && is_open(simple);
    let takes_all = finding.commands.iter().any(finds);
    let (text, why) = mentions::threat(ours, line.commands(), takes_all)?;
    Some(format!("it names `{text}`, and what it does there cannot be told: {why}"))
}

/// Git at work on the refs that hold checkpoints.
fn repository_threat(line: &Line<'_>, finding: &Finding) -> Option<String> {
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
fn own_threat(line: &Line<'_>, simple: &Simple) -> Option<String> {
    // Most commands have nothing to do with us, and their words need not be known.
    let may_be = |text: &str| text.contains("beforehand") || text.contains("BEFOREHAND");
    let is_about_us = may_be(&simple.text) || is_cut(simple) && may_be(line.text);
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
    if words.iter().any(|word| matches!(*word, "--help" | "-h" | "--dry-run")) {
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
fn located_threat(line: &Line<'_>, does: bool) -> Option<String> {
    if !does || !line.text.contains("beforehand") {
        return None;
    }
    let locates = |words: &Vec<String>| {
        words.first().is_some_and(|first| LOCATORS.contains(&first.as_str()))
            && words.last().is_some_and(|last| last == "beforehand")
    };
    let found = line.commands().iter().any(locates);
    found.then(|| "it changes something by the place of beforehand's program".to_owned())
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

fn target_threat(ours: &Ours<'_, '_>, target: &Target) -> Option<String> {
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
fn path_threat(ours: &Ours<'_, '_>, place: &Path, can_contain: bool) -> Option<String> {
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
fn switch_threat(ours: &Ours<'_, '_>, place: &Path) -> Option<String> {
    switches_at(ours.process, ours.agent, ours.root, place)
        .then(|| "the agent's hooks, beforehand's among them, can be switched off there".to_owned())
}

fn meets(place: &Path, own: &Path, can_contain: bool) -> bool {
    place.starts_with(own) || can_contain && own.starts_with(place)
}

/// The same for what is known by its name.
fn place_threat(ours: &Ours<'_, '_>, place: &Path, can_contain: bool) -> Option<String> {
    if place.file_name().is_some_and(|name| name == "beforehand")
        && place.parent().and_then(Path::file_name).is_some_and(|dir| dir == "bin")
    {
        return Some("it is beforehand itself".to_owned());
    }
    hook_threat(ours, place, can_contain)
}

/// A file with a hook line of ours, or a directory with such a file.
fn hook_threat(ours: &Ours<'_, '_>, place: &Path, can_contain: bool) -> Option<String> {
    let around = registrations_at(ours.process, ours.root, place, can_contain);
    let file = around.into_iter().find(|file| names_us(file))?;
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Some(format!("beforehand's hook is registered in `{name}` there"))
}

fn names_us(file: &Path) -> bool {
    let bytes = read_small(file, HOOK_FILE_MAX_BYTES).ok().flatten().unwrap_or_default();
    bytes.windows(b"beforehand".len()).any(|part| part == b"beforehand")
}

fn absolute(ours: &Ours<'_, '_>, path: &Path) -> PathBuf {
    without_dots(&ours.cwd.join(path))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "the files of a test are its own")]

    use std::time::Instant;

    use super::*;
    use crate::{
        fs::{create_private_dirs, replace},
        model::Language,
        process::Terminal,
        shell::Scope,
    };

    /// The threat in a command line, with these variables.
    fn threat_with(variables: &[(&str, &str)], command: &str) -> Option<String> {
        let home = [("HOME", "/home/me")];
        let variables = home.iter().chain(variables);
        let process = Process {
            args: Vec::new(),
            cwd: None,
            env: variables.map(|(name, value)| (name.into(), value.into())).collect(),
            now: chrono::DateTime::UNIX_EPOCH,
            started: Instant::now(),
            stdin: &mut &b""[..],
            stdout: &mut Vec::new(),
            stderr: &mut Vec::new(),
            terminal: Terminal::default(),
            aside: &(),
        };
        let ours = Ours {
            process: &process,
            agent: "claude-code",
            state: Path::new("/home/me/.local/state/beforehand"),
            settings: &["/home/me/.config/beforehand/config.toml".into()],
            cwd: Path::new("/home/me/p"),
            root: Path::new("/home/me/p"),
            real: &PathResolver::default(),
        };
        let scope = Scope { home: Some("/home/me".to_owned()), ..Scope::default() };
        let intent = Intent::Run { command: command.to_owned(), language: Language::Shell };
        let effect = shell::effect(&intent, &scope);
        threat(&ours, &intent, &effect, &[])
    }

    fn threat_of(command: &str) -> Option<String> {
        threat_with(&[], command)
    }

    #[test]
    fn whatever_reaches_for_us_is_a_threat() {
        for command in [
            "rm -rf ~/.local",
            "rm -rf ~",
            "rm -rf /home/me/.local/state/beforehand/objects",
            "cd ~/.local/state && rm -rf beforehand",
            "echo x > ~/.local/state/beforehand/journal",
            "mv ~/.local /tmp/x",
            "chmod -R 000 ~/.local/state/beforehand",
            "git --git-dir ~/.local/state/beforehand/repositories/x update-ref -d refs/checkpoints/m/y",
            "git -C ~/.local/state/beforehand/repositories/x update-ref -d refs/checkpoints/main/y",
            "cd ~/.local/state/beforehand/repositories/x && git update-ref -d refs/checkpoints/main/y",
            "rm -rf ~/.local/state/beforehand/repositories",
            "rm -rf ~/.local/state/beforehand/repositories/x/refs",
            "beforehand clear --yes",
            "beforehand prune --all",
            "/usr/local/bin/beforehand uninstall",
            "sh -c 'beforehand restore latest --yes'",
            "BEFOREHAND=off make",
            "export BEFOREHAND_HOME=/tmp/x",
            "env BEFOREHAND=off claude -p hi",
            "python3 -c 'import shutil; shutil.rmtree(\"/home/me/.local/state/beforehand\")'",
            "rm ~/.cargo/bin/beforehand",
        ] {
            assert!(threat_of(command).is_some(), "{command}");
        }
    }

    #[test]
    fn reading_and_everyday_work_is_free() {
        for command in [
            "beforehand list",
            "beforehand show latest",
            "beforehand diff 1",
            "beforehand explain -- rm -rf x",
            "beforehand create -m x",
            "beforehand restore --help",
            "cat ~/.local/state/beforehand/journal",
            "ls -la ~/.local/state/beforehand",
            "git --git-dir ~/.local/state/beforehand/repositories/x for-each-ref refs/checkpoints",
            "git for-each-ref --format='delete %(refname)' | git update-ref --stdin",
            "rm -rf .git/refs",
            "git update-ref -d refs/heads/old",
            "git commit -m 'keep refs/checkpoints/main'",
            "rg BEFOREHAND=off src",
            "rm -rf .git",
            "rm -rf node_modules",
            "rm -rf src/beforehand",
            "rm -rf /home/me/p/.claude",
            "rm ~/.local/share/x",
            "cargo build",
        ] {
            assert_eq!(threat_of(command), None, "{command}");
        }
    }

    #[test]
    fn words_that_lead_to_us_are_seen_whatever_is_done_with_them() {
        for command in [
            "find ~/.local -type f | xargs rm",
            "find ~ -name beforehand | xargs rm -rf",
            "find ~ -name beforehand -exec rm -rf {} +",
            "find ~ -name beforehand -exec sh -c 'rm -rf \"$1\"' _ {} \\;",
            "find / -name 'beforehand*' -print0 | xargs -0 rm -rf",
            "find / -path '*beforehand*' -delete",
            "find $HOME/.local -type f -exec truncate -s0 {} +",
            "cd ~/.local && rm -rf state",
            "cd ~/.local && ls | xargs rm -rf",
            "cd; cd .local; find . -type f | while read -r f; do rm \"$f\"; done",
            "cd ~ && rm -rf $(ls -d .l*)",
            "rm -rf \"$(echo ~/.local)\"",
            "python3 -c \"import os,shutil; shutil.rmtree(os.path.expanduser('~/.local/state/beforehand'))\"",
            "python3 -c \"import os,shutil; shutil.rmtree(os.path.expanduser('~') + '/.local')\"",
            "python3 -c \"import pathlib,shutil; shutil.rmtree(pathlib.Path.home() / '.local')\"",
            "python3 -c \"import os,shutil; shutil.rmtree(os.environ['HOME'])\"",
            "python3 <<'E'\nimport shutil, os\nshutil.rmtree(os.path.join(os.environ['HOME'], x))\nE",
            "node -e \"require('fs').rmSync(process.env.HOME + '/.local', {recursive: true})\"",
            "node -e 'require(\"fs\").rmSync(require(\"os\").homedir() + \"/.x\", \"/home/me/.local\")'",
            "perl -MFile::Path -e 'remove_tree(\"$ENV{HOME}/.local/state\")'",
            "perl -e 'unlink glob(\"/home/me/.local/state/beforehand/*\")'",
            "ruby -e 'FileUtils.rm_rf(File.expand_path(\"~/.local/state\"))'",
            "rsync -a --delete empty/ \"${XDG_STATE_HOME:-$HOME/.local/state}/\" $x",
            "sh -c 'cd ~/.local; ./wipe'",
            "tar -C ~/.local --remove-files -cf /tmp/x.tar $(ls ~/.local)",
            "./wipe --dir=/home/me/.local/state/beforehand",
            "make DIR=~/.local/../.local clean",
            "echo ~/.local | xargs rm -rf",
            "x=$HOME; ./wipe \"$x\"",
            "HOME=~/.local ./wipe",
            "printf '%s' '/home/me/.local/state' | ./wipe",
        ] {
            assert!(threat_of(command).is_some(), "{command}");
        }
    }

    #[test]
    fn words_that_lead_elsewhere_are_free() {
        for command in [
            "find ~/.local -type f | xargs grep -l x",
            "ls -la ~/.local/state | head",
            "find ~ -name beforehand",
            "cat ~/.local/state/beforehand/journal | sort | uniq -c > seen.txt",
            "cd ~ && rm -rf old-project",
            "cd ~/code/p && make",
            "cd / && make",
            "docker exec it ls /",
            "python3 -c \"print('a/b'.split('/'))\" && make",
            "echo a/b | tr / _ && ./run.sh",
            "perl -pe '$_ =~ s/a/b/' x | ./run.sh",
            "[[ $x =~ ^a ]] && make",
            "git reset --hard HEAD~1",
            "git commit -m 'rm -rf ~/.local/state/beforehand is asked about'",
            "PATH=$HOME/.local/bin:$PATH make",
            ". \"$HOME/.cargo/env\" && cargo build",
            "source ~/.bashrc; npm test",
            "find ~/code -name '*.pyc' -delete",
            "find . -name '*.pyc' | xargs rm",
            "rm -rf ~/code/x; npm i",
            "cp -r ~/.config/nvim . && ./install",
            "rsync -a ~/ /backup/",
            "tar czf backup.tgz ~",
            "curl -sSf https://sh.rustup.rs | sh",
            "HOME=/tmp/x make",
            "env -i PATH=\"$PATH\" HOME=\"$HOME\" make",
            "docker run -e HOME=${HOME} image make",
            "HOME=/home/me npm test",
        ] {
            assert_eq!(threat_of(command), None, "{command}");
        }
    }

    /// Longer than what is kept of a command for showing.
    fn long() -> String {
        format!("/home/me/{}", "a/".repeat(200))
    }

    #[test]
    fn a_long_line_hides_nothing() {
        let long = long();
        for command in [
            format!("{long}beforehand clear --yes"),
            format!("git -C {long} update-ref -d refs/checkpoints/main/abc"),
            format!(
                "python3 -c 'import shutil; x = \"{long}\"; shutil.rmtree(\"/home/me/.local/state/beforehand\")'"
            ),
            format!("env A={long} BEFOREHAND=off make"),
            format!("make {long} BEFOREHAND_HOME=/tmp/x"),
            format!("make {long} && beforehand prune --all"),
            format!("sh -c 'cd {long}; beforehand restore latest --yes'"),
            format!("mystery {long} beforehand undo --yes"),
        ] {
            assert!(threat_of(&command).is_some(), "{command}");
        }
        for command in [
            format!("rm {long}"),
            format!("cat {long} ~/.local/state/beforehand/journal"),
            format!("make {long}"),
            format!("git commit -m 'run beforehand clear after {long}'"),
        ] {
            assert_eq!(threat_of(&command), None, "{command}");
        }
    }

    #[test]
    fn words_are_the_commands_own() {
        for command in [
            "git commit -m 'run beforehand clear --yes'",
            "git commit -m 'set BEFOREHAND=off when'",
            "touch 'beforehand clear'",
            "rm -f beforehand restore",
            "make beforehand-clear",
        ] {
            assert_eq!(threat_of(command), None, "{command}");
        }
        for command in [
            "A=1 beforehand clear --yes",
            "t=beforehand; $t clear --yes",
            "echo 'rm -rf /home/me/.local/state/beforehand' | sh",
            "python3 <<'E'\nimport shutil; shutil.rmtree('/home/me/.config/beforehand')\nE",
            "x \"$(beforehand clear --yes)\"",
            "beforehand allow --once 12ab34cd",
            "beforehand --root . clear --yes",
            "beforehand \"$(echo clear)\" --yes",
            "\"$(which beforehand)\" clear --yes",
            "rm \"$(command -v beforehand)\"",
            "cargo uninstall beforehand",
            "find ~ -path '*beforehand*' -delete",
        ] {
            assert!(threat_of(command).is_some(), "{command}");
        }
    }

    #[test]
    fn the_places_of_hooks_are_those_that_install_writes_to() {
        let dir = std::env::temp_dir().join(format!("beforehand-guard-{}", std::process::id()));
        let there = dir.to_str().unwrap();
        for (variable, file) in [
            ("CLAUDE_CONFIG_DIR", "settings.json"),
            ("CODEX_HOME", "hooks.json"),
            ("CODEX_HOME", "config.toml"),
            ("COPILOT_HOME", "hooks/beforehand.json"),
            ("HERMES_HOME", "config.yaml"),
            ("XDG_CONFIG_HOME", "opencode/plugins/beforehand.js"),
            ("XDG_CONFIG_HOME", "crush/crush.json"),
        ] {
            let path = dir.join(file);
            create_private_dirs(path.parent().unwrap()).unwrap();
            replace(&path, b"beforehand hook").unwrap();
            for command in [
                format!("rm {there}/{file}"),
                format!("rm -rf {there}"),
                format!("echo x > {there}/{file}"),
                format!("sed -i d {there}/{file}"),
                format!("mv {there}/{file} /tmp/x"),
                format!("python3 -c 'open(\"{there}/{file}\", \"w\")'"),
            ] {
                let told = threat_with(&[(variable, there)], &command);
                assert!(told.is_some(), "{variable}: {command}");
            }
            for command in [
                format!("echo x > \"${variable}/{file}\""),
                format!("echo {} && rm -f ${{{variable}}}/{file}", long()),
                format!("python3 -c 'import os; os.remove(os.environ[\"{variable}\"])'"),
            ] {
                let told = threat_with(&[(variable, there)], &command);
                assert!(told.is_some(), "{variable}: {command}");
            }
            for command in
                [format!("cat ${variable}/{file}"), format!("git commit -m 'tell of {variable}'")]
            {
                assert_eq!(threat_with(&[(variable, there)], &command), None, "{command}");
            }
            assert_eq!(threat_with(&[(variable, there)], &format!("cat {there}/{file}")), None);
            replace(&path, b"{}").unwrap();
            let command = format!("rm {there}/{file}");
            assert_eq!(threat_with(&[(variable, there)], &command), None, "{file}");
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn what_can_switch_hooks_off_is_not_written_unseen() {
        for command in [
            "echo '{\"disableAllHooks\": true}' > .claude/settings.local.json",
            "echo x > /home/me/.claude/settings.json",
            "cp x .claude/settings.json",
        ] {
            let told = threat_of(command).unwrap_or_default();
            assert!(told.contains("can be switched off there"), "{command}: {told}");
        }
        for command in [
            "rm -f .claude/settings.local.json",
            "echo x > .gemini/settings.json",
            "echo x > .claude/commands/x.md",
        ] {
            assert_eq!(threat_of(command), None, "{command}");
        }
    }
}
