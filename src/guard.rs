//! Tells when a call reaches for turnback itself: its store, settings, refs, hook lines, or its own
//! commands. Reads no more than the few files in which agents keep their hooks, and those only
//! when a call names them.

use std::{
    os::unix::ffi::OsStrExt,
    path::{Component, Path, PathBuf},
};

use crate::{
    fs::{Real, read_small},
    model::{Certainty, Effect, Finding, Level, Simple, Target, TargetAction},
};

/// No settings of an agent come near it.
const HOOK_FILE_MAX_BYTES: u64 = 4 << 20;
/// Our commands that replace, forget or unprotect. Reading ones and `create` are free.
const COMMANDS: &[&str] =
    &["restore", "rewind", "undo", "redo", "clear", "prune", "uninstall", "install", "slash"];
/// Where agents keep their hooks, below the home or a project.
const HOOK_FILES: &[&str] = &[
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".codex/hooks.json",
    ".codex/config.toml",
    ".gemini/settings.json",
    ".qwen/settings.json",
    ".copilot/config.json",
    ".copilot/settings.json",
    ".copilot/hooks/turnback.json",
    ".github/hooks/turnback.json",
    ".config/opencode/plugin/turnback.js",
    ".config/opencode/plugin/turnback.ts",
    ".config/opencode/plugins/turnback.js",
    ".config/opencode/plugins/turnback.ts",
    ".opencode/plugin/turnback.js",
    ".opencode/plugin/turnback.ts",
    ".opencode/plugins/turnback.js",
    ".opencode/plugins/turnback.ts",
    ".clinerules/hooks/PreToolUse",
    "Documents/Cline/Hooks/PreToolUse",
    ".cline/hooks/PreToolUse",
    ".hermes/config.yaml",
    ".cursor/hooks.json",
    ".codeium/windsurf/hooks.json",
    ".windsurf/hooks.json",
    ".kiro/agents/turnback.json",
    ".factory/settings.json",
    ".factory/hooks.json",
    ".config/crush/crush.json",
    "crush.json",
    ".crush.json",
    ".config/goose/config.yaml",
    ".antigravity/hooks.json",
    ".grok/settings.json",
    ".grok/hooks.json",
    ".grok/hooks/turnback.json",
    ".agents/hooks.json",
    ".agents/plugins/turnback/hooks/hooks.json",
    ".amplifier/hooks/turnback/hooks.json",
    ".devin/hooks.v1.json",
    ".devin/hooks.json",
    ".vscode/settings.json",
    ".amplifier/settings.yaml",
];

/// What must not go unnoticed.
#[derive(Clone, Copy, Debug)]
pub struct Ours<'a> {
    /// The state directory.
    pub state: &'a Path,
    /// What is there of the settings file, by each of its names.
    pub settings: &'a [PathBuf],
    /// The user's home.
    pub home: Option<&'a Path>,
    /// The directory the call is made in.
    pub cwd: &'a Path,
    /// The root around it.
    pub root: &'a Path,
    /// Where paths lead.
    pub real: &'a Real,
}

/// Why a call that is not read-only reaches for turnback itself, as a fragment; `None` if it does
/// not. `places` is what it names, absolute.
pub fn threat(ours: &Ours<'_>, effect: &Effect, places: &[PathBuf]) -> Option<String> {
    let said = match effect {
        Effect::None => return None,
        Effect::Touches(paths) => {
            paths.iter().find_map(|path| path_threat(ours, &absolute(ours, path), false))
        }
        Effect::Destroys(finding) | Effect::Unknown(finding) => finding_threat(ours, finding),
    };
    said.or_else(|| {
        let within = |place: &PathBuf| path_threat(ours, place, true);
        places.iter().find_map(within)
    })
}

fn finding_threat(ours: &Ours<'_>, finding: &Finding) -> Option<String> {
    let changing = || finding.commands.iter().filter(|simple| simple.level != Level::ReadOnly);
    changing()
        .find_map(|simple| command_threat(simple).or_else(|| environment_threat(simple)))
        .or_else(|| repository_threat(ours, finding))
        .or_else(|| finding.targets().find_map(|target| target_threat(ours, target)))
        .or_else(|| changing().find_map(|simple| sweep_threat(ours, simple)))
        .or_else(|| changing().find_map(|simple| mention(ours, simple)))
}

/// One of our own commands that loses or replaces something.
fn command_threat(simple: &Simple) -> Option<String> {
    let words: Vec<&str> = simple.text.split_whitespace().collect();
    let is_us = |word: &str| word.rsplit('/').next() == Some("turnback");
    let at = words.iter().position(|word| is_us(word))?;
    let command = words[at + 1..].iter().find(|word| !word.starts_with('-'))?;
    let asks_for_help = words.iter().any(|word| matches!(*word, "--help" | "-h" | "--dry-run"));
    (COMMANDS.contains(command) && !asks_for_help)
        .then(|| format!("it runs `turnback {command}` itself"))
}

fn environment_threat(simple: &Simple) -> Option<String> {
    let sets = |word: &&str| {
        let word = word.trim_start_matches(['"', '\'', '>']);
        word.split_once('=').is_some_and(|(name, _)| {
            name == "TURNBACK" || (name.starts_with("TURNBACK_") && is_name(name))
        })
    };
    let word = simple.text.split_whitespace().find(sets)?;
    let name = word.split('=').next().unwrap_or_default();
    Some(format!("it sets `{name}`, which can switch turnback off"))
}

fn is_name(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Git at work in one of our own repositories.
fn repository_threat(ours: &Ours<'_>, finding: &Finding) -> Option<String> {
    let state = ours.state.to_string_lossy();
    let names_ours = |simple: &&Simple| {
        let text = &simple.text;
        let is_git = text.split_whitespace().any(|word| word == "git" || word.ends_with("/git"));
        let is_there = [&*state, ".local/state/turnback"].iter().any(|name| text.contains(name));
        let is_ref = text.contains("update-ref") && text.contains("refs/checkpoints");
        simple.level != Level::ReadOnly && is_git && (is_there || is_ref)
    };
    let found = finding.commands.iter().find(names_ours);
    found.map(|_| "it can drop the refs that hold your checkpoints".to_owned())
}

fn target_threat(ours: &Ours<'_>, target: &Target) -> Option<String> {
    match (target.action, target.certainty) {
        (TargetAction::Git, _) | (_, Certainty::Dynamic) => None,
        (action, Certainty::Exact) => {
            let takes_all = match action {
                TargetAction::Delete | TargetAction::Move | TargetAction::Modify => true,
                // What is put into a directory leaves the rest of it alone.
                TargetAction::Overwrite | TargetAction::Create | TargetAction::Git => false,
            };
            path_threat(ours, &absolute(ours, Path::new(&target.path)), takes_all)
        }
        // What it matches now is in the places.
        (_, Certainty::Glob) => None,
    }
}

/// A command that removes whatever is below a directory, such as `find DIR -delete`. Its targets
/// are a guess, and are not among the places; but where it starts is none.
fn sweep_threat(ours: &Ours<'_>, simple: &Simple) -> Option<String> {
    const CHOICES: &[&str] = &["name", "path", "regex", "time", "min", "newer", "size", "perm"];
    let is_choice =
        |word: &str| word.starts_with('-') && CHOICES.iter().any(|choice| word.contains(choice));
    // `find ~ -name '*.pyc' -delete` is not after us.
    let takes_all = !simple.text.split_whitespace().any(is_choice);
    let below = simple.targets.iter().filter_map(|target| match target.action {
        TargetAction::Delete | TargetAction::Overwrite | TargetAction::Move => {
            target.path.strip_suffix("/**")
        }
        TargetAction::Modify | TargetAction::Create | TargetAction::Git => None,
    });
    let mut below = below.filter(|start| !start.contains(['*', '?', '[']));
    below.find_map(|start| path_threat(ours, &absolute(ours, Path::new(start)), takes_all))
}

/// A command we cannot judge that names a place of ours, as a program text might.
fn mention(known: &Ours<'_>, simple: &Simple) -> Option<String> {
    if simple.level != Level::Unknown || simple.text.starts_with("git commit") {
        return None;
    }
    let state = known.state.to_string_lossy();
    let ours = [state.as_ref(), ".local/state/turnback", "refs/checkpoints", ".config/turnback"];
    let named = ours.into_iter().find(|name| !name.is_empty() && simple.text.contains(name))?;
    Some(format!("it names `{named}`, and nobody can tell what it does there"))
}

/// Whether something at `place` (absolute) can go that we need.
fn path_threat(ours: &Ours<'_>, place: &Path, can_contain: bool) -> Option<String> {
    // Most paths lead where they say.
    let led = Some(ours.real.place(place)).filter(|led| led != place);
    let places = || [Some(place), led.as_deref()].into_iter().flatten();
    let is_met = |own: &Path| places().any(|place| meets(place, own, can_contain));
    let is_state = |own: PathBuf| own != ours.state && is_met(&own);
    if is_met(ours.state)
        || is_state(ours.real.place(ours.state))
        || ours.real.of(ours.state).is_ok_and(is_state)
    {
        return Some("your checkpoints are kept there".to_owned());
    }
    let mut dirs = ours.settings.iter().filter_map(|file| file.parent());
    if ours.settings.iter().any(|file| is_met(file)) || dirs.any(|dir| place == dir) {
        return Some("turnback's settings are there".to_owned());
    }
    places().find_map(|place| place_threat(ours, place))
}

fn meets(place: &Path, own: &Path, can_contain: bool) -> bool {
    place.starts_with(own) || can_contain && own.starts_with(place)
}

/// The same for what is known by its name.
fn place_threat(ours: &Ours<'_>, place: &Path) -> Option<String> {
    if place.file_name().is_some_and(|name| name == "turnback")
        && place.parent().and_then(Path::file_name).is_some_and(|dir| dir == "bin")
    {
        return Some("it is turnback itself".to_owned());
    }
    hook_threat(ours, place)
}

/// A file with a hook line of ours, or a directory with such a file.
fn hook_threat(ours: &Ours<'_>, place: &Path) -> Option<String> {
    let tops = [ours.home, Some(ours.root)].into_iter().flatten();
    let place_names = |top: &Path| {
        // What is above both a project and its hooks goes with them, and is asked about as such.
        let below = place.strip_prefix(top).ok().filter(|below| *below != Path::new(""))?;
        let around = HOOK_FILES.iter().filter(|name| is_above(below, name));
        around.map(|name| top.join(name)).find(|file| names_us(file))
    };
    let is_one = HOOK_FILES.iter().any(|name| ends_with(place, name));
    let it = Some(place.to_owned()).filter(|_| is_one && names_us(place));
    let file = it.or_else(|| tops.into_iter().find_map(place_names))?;
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Some(format!("turnback's hook is registered in `{name}` there"))
}

/// Whether the last names of `place`, which has none that say nothing, are those of `name`. By
/// their bytes: there are many names, and a `Path` is taken apart for each.
fn ends_with(place: &Path, name: &str) -> bool {
    let above = place.as_os_str().as_bytes().strip_suffix(name.as_bytes());
    above.is_some_and(|above| above.is_empty() || above.ends_with(b"/"))
}

/// Whether the file `name` is somewhere below the directory `below`.
fn is_above(below: &Path, name: &str) -> bool {
    let rest = name.as_bytes().strip_prefix(below.as_os_str().as_bytes());
    rest.is_some_and(|rest| rest.starts_with(b"/"))
}

fn names_us(file: &Path) -> bool {
    let bytes = read_small(file, HOOK_FILE_MAX_BYTES).ok().flatten().unwrap_or_default();
    bytes.windows(b"turnback".len()).any(|part| part == b"turnback")
}

fn absolute(ours: &Ours<'_>, path: &Path) -> PathBuf {
    let mut whole = PathBuf::new();
    for component in ours.cwd.join(path).components() {
        match component {
            Component::ParentDir => drop(whole.pop()),
            Component::CurDir => (),
            other => whole.push(other),
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::{Intent, Language},
        shell::{self, Scope},
    };

    fn threat_of(command: &str) -> Option<String> {
        let home = Path::new("/home/me");
        let ours = Ours {
            state: Path::new("/home/me/.local/state/turnback"),
            settings: &[],
            home: Some(home),
            cwd: Path::new("/home/me/p"),
            root: Path::new("/home/me/p"),
            real: &Real::default(),
        };
        let scope = Scope { home: Some("/home/me".to_owned()), ..Scope::default() };
        let intent = Intent::Run { command: command.to_owned(), language: Language::Shell };
        let effect = shell::effect(&intent, &scope);
        threat(&ours, &effect, &[])
    }

    #[test]
    fn whatever_reaches_for_us_is_a_threat() {
        for command in [
            "rm -rf ~/.local",
            "rm -rf ~",
            "rm -rf /home/me/.local/state/turnback/objects",
            "cd ~/.local/state && rm -rf turnback",
            "echo x > ~/.local/state/turnback/journal",
            "mv ~/.local /tmp/x",
            "chmod -R 000 ~/.local/state/turnback",
            "git --git-dir ~/.local/state/turnback/repositories/x update-ref -d refs/checkpoints/main/y",
            "git -C ~/.local/state/turnback/repositories/x update-ref -d refs/checkpoints/main/y",
            "cd ~/.local/state/turnback/repositories/x && git update-ref -d refs/checkpoints/main/y",
            "rm -rf ~/.local/state/turnback/repositories",
            "rm -rf ~/.local/state/turnback/repositories/x/refs",
            "turnback clear --yes",
            "turnback prune --all",
            "/usr/local/bin/turnback uninstall",
            "sh -c 'turnback restore latest --yes'",
            "TURNBACK=off make",
            "export TURNBACK_HOME=/tmp/x",
            "env TURNBACK=off claude -p hi",
            "python3 -c 'import shutil; shutil.rmtree(\"/home/me/.local/state/turnback\")'",
            "rm ~/.cargo/bin/turnback",
        ] {
            assert!(threat_of(command).is_some(), "{command}");
        }
    }

    #[test]
    fn reading_and_everyday_work_is_free() {
        for command in [
            "turnback list",
            "turnback show latest",
            "turnback diff 1",
            "turnback explain -- rm -rf x",
            "turnback create -m x",
            "turnback restore --help",
            "cat ~/.local/state/turnback/journal",
            "ls -la ~/.local/state/turnback",
            "git --git-dir ~/.local/state/turnback/repositories/x for-each-ref refs/checkpoints",
            "git --git-dir ~/.local/state/turnback/repositories/x show refs/checkpoints/main/y:files/a",
            "git for-each-ref --format='delete %(refname)' | git update-ref --stdin",
            "rm -rf .git/refs",
            "git update-ref -d refs/heads/old",
            "git commit -m 'keep refs/checkpoints/main'",
            "rg TURNBACK=off src",
            "rm -rf .git",
            "rm -rf node_modules",
            "rm -rf src/turnback",
            "rm -rf /home/me/p/.claude",
            "rm ~/.local/share/x",
            "cargo build",
        ] {
            assert_eq!(threat_of(command), None, "{command}");
        }
    }

    #[test]
    fn names_of_hook_files_are_compared_whole() {
        for place in [
            "/p/.claude/settings.json",
            "/p/x.claude/settings.json",
            "/settings.json",
            "/p",
            "/p/crush.json",
            "/p/xcrush.json",
            "/p/.crush.json",
            "/.devin/hooks.json",
        ] {
            for name in HOOK_FILES {
                assert_eq!(
                    ends_with(Path::new(place), name),
                    Path::new(place).ends_with(name),
                    "{place} {name}"
                );
            }
        }
        for below in [".claude", ".cla", ".config/opencode", ".config", "crush.json", ".devin"] {
            for name in HOOK_FILES {
                let is_above = is_above(Path::new(below), name);
                let whole = *name != below && Path::new(name).starts_with(below);
                assert_eq!(is_above, whole, "{below} {name}");
            }
        }
    }
}
