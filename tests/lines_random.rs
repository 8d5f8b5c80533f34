//! Whatever a line of real programs does, the checkpoint before it brings every byte back: random
//! lines, run for real in a sandbox, against a copy of the project from before.
//!
//! A sample runs in CI. `BEFOREHAND_LINES` runs that many cases and tells of each that fails,
//! `BEFOREHAND_LINES_FROM` begins at another seed, `BEFOREHAND_SEED` runs one again and shows its script.

#![expect(clippy::print_stderr, reason = "it says how much it really ran")]

mod grammar;
mod project;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    process::Stdio,
};

use beforehand::{model::Kind, process::Exit};
use serde_json::{Value, json};

use crate::support::{
    dice::{Dice, wished},
    real::try_git,
    sandbox::confined,
    temp::{Files, Seen, on_disk, write},
    world::World,
};
use project::Project;

/// How a case ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    /// Everything came back.
    Held,
    /// The line was asked about, which leaves the decision to a person.
    Asked,
    /// The line was judged read-only, and was.
    Read,
}

/// What is compared: every file but what git keeps for itself, and what git says of each repository.
#[derive(PartialEq, Eq)]
struct State {
    files: Files,
    /// Every directory called `.git`.
    git_dirs: BTreeSet<String>,
    repositories: BTreeMap<&'static str, Result<String, String>>,
}

/// Files of a `.git` that are the user's own words, and never written by git on the way.
const ADMINISTRATION: &[&str] =
    &["config", "description", "HEAD", "info/exclude", "hooks/pre-commit"];

const TOLD: &str = "git for-each-ref; git symbolic-ref -q HEAD || git rev-parse HEAD; git stash list; \
    git reflog --all; git ls-files -s; git status --porcelain -uno; git fsck --strict --no-dangling";

fn state(world: &World, code: &Path) -> State {
    let mut files = on_disk(code);
    let is_git_dir = |(path, seen): (&Vec<u8>, &Seen)| {
        let is_one = path.ends_with(b"/.git") && seen.kind == Kind::Directory;
        is_one.then(|| String::from_utf8_lossy(path).into_owned())
    };
    let git_dirs = files.iter().filter_map(is_git_dir).collect();
    files.retain(|path, seen| {
        let path = String::from_utf8_lossy(path);
        let inside = path
            .split_once(".git/")
            .filter(|(before, _)| before.is_empty() || before.ends_with('/'));
        // The modes of directories that git makes as it likes are its own.
        let is_git_dir = path.ends_with(".git") && seen.kind == Kind::Directory;
        match inside {
            Some((_, name)) => ADMINISTRATION.contains(&name),
            None => !is_git_dir,
        }
    });
    let told = |place: &&'static str| {
        // Without locks, or the look itself would write.
        let line = format!("export GIT_OPTIONAL_LOCKS=0; set -e; {TOLD}");
        let is_one = code.join(place).join(".git").exists();
        let told = is_one.then(|| try_git(world, &code.join(place), &line));
        (*place, told.unwrap_or_else(|| Err("no repository".to_owned())))
    };
    let repositories = ["shop", "shop/sub", "shop/.wt/x", "other"].iter().map(told).collect();
    State { files, git_dirs, repositories }
}

/// The kinds of bytes that differ, and where: what is to blame is mostly told by the kind.
fn differences(root: &str, before: &State, now: &State) -> BTreeMap<&'static str, Vec<String>> {
    let mut found: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let made = repositories_made(before, now);
    let paths: BTreeSet<&Vec<u8>> = before.files.keys().chain(now.files.keys()).collect();
    for path in paths {
        let (then, here) = (before.files.get(path), now.files.get(path));
        let name = String::from_utf8_lossy(path).into_owned();
        // A restore leaves alone, and names, what was made outside and repositories made since.
        let stays = !name.starts_with(root) || made.iter().any(|dir| name.starts_with(dir));
        if then != here && !(then.is_none() && stays) {
            let how = match (then, here) {
                (Some(_), None) => "gone",
                (None, Some(_)) => "left over",
                (Some(then), Some(here)) if then.bytes == here.bytes => "mode",
                _ => "bytes",
            };
            // The mode of the root itself, or of a file that leads to a repository, is not held.
            if how == "mode" && (name == root || name.ends_with("/.git")) {
                continue;
            }
            found.entry(project::kind(&name)).or_default().push(format!("{name} ({how})"));
        }
    }
    for (place, told) in &before.repositories {
        let here = &now.repositories[place];
        if told.is_ok() && told != here {
            let lines = |told: &Result<String, String>| -> BTreeSet<String> {
                let (Ok(text) | Err(text)) = told;
                text.lines().map(str::to_owned).collect()
            };
            let (then, here) = (lines(told), lines(here));
            let lacks = then.difference(&here).next().map(|line| format!("lacks {line:?}"));
            let has = here.difference(&then).next().map(|line| format!("has {line:?}"));
            let shown = [lacks, has].into_iter().flatten().collect::<Vec<_>>().join(", ");
            let kind = if *place == "other" { "outside-git" } else { "git" };
            found.entry(kind).or_default().push(format!("{place}: {shown}"));
        }
    }
    found
}

/// Where there is a repository that was not there before, or what a line left of one: all of its
/// directory, or, around files that were, its `.git` alone.
fn repositories_made(before: &State, now: &State) -> Vec<String> {
    // What is copied of a linked worktree is a file that leads to its repository.
    let is_pointer = |(path, seen): &(&Vec<u8>, &Seen)| {
        let is_new = !before.files.contains_key(*path);
        is_new && path.ends_with(b"/.git") && seen.kind == Kind::File
    };
    let pointers = now.files.iter().filter(is_pointer);
    let pointers = pointers.map(|(path, _)| String::from_utf8_lossy(path).into_owned());
    let made = now.git_dirs.difference(&before.git_dirs).cloned().chain(pointers);
    let was = |dir: &str| before.files.contains_key(dir.as_bytes());
    made.map(|git| match git.strip_suffix("/.git") {
        Some(dir) if !was(dir) => dir.to_owned(),
        Some(_) | None => git,
    })
    .collect()
}

/// What a hook answered to a line: its decision, if it has one.
fn ask(world: &World, cwd: &Path, event: &str, turn: &str, line: &str) -> Option<String> {
    let payload = json!({
        "session_id": "s1", "cwd": cwd, "prompt_id": turn, "hook_event_name": event,
        "tool_name": "Bash", "tool_input": { "command": line }, "tool_use_id": line,
        "tool_response": {},
    });
    // After a line, the directory of a call may be gone.
    let there = cwd.ancestors().find(|dir| dir.exists()).unwrap();
    let output = world.run_in(there, &["hook", "--agent", "claude-code"], &payload.to_string());
    assert_eq!((output.exit, &*output.stderr), (Exit::Ok, ""), "{line}");
    if wished("BEFOREHAND_SEED").is_some() {
        eprint!("{event}: {}", output.stdout);
    }
    let answer: Value = serde_json::from_str(&output.stdout).unwrap();
    answer["hookSpecificOutput"]["permissionDecision"].as_str().map(str::to_owned)
}

/// Runs a line as an agent does.
fn run(world: &World, area: &Path, cwd: &Path, line: &str) {
    if !cwd.is_dir() {
        return;
    }
    let script = "cd \"$2\" && exec timeout -s KILL 20 bash -c \"$3\"";
    let status = confined(area, &world.home(), script)
        .arg(cwd)
        .arg(line)
        .env("TMPDIR", area.join("tmp"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status();
    assert!(status.unwrap().code().is_none_or(|code| code != 124), "{line} did not end");
}

/// One case; `Err` is what did not come back, by kind.
fn case(seed: u64) -> (String, Result<End, BTreeMap<&'static str, Vec<String>>>) {
    let mut dice = Dice::new(seed);
    let mut world = World::new();
    let root = world.root();
    let code = root.parent().unwrap().to_owned();
    let area = code.parent().unwrap().to_owned();
    beforehand::fs::remove_tree(&root).unwrap();
    beforehand::fs::create_private_dirs(&area.join("tmp")).unwrap();
    let project = Project::new(&mut dice);
    let made =
        try_git(&world, &code, &format!("bash -c '{}'", project.script.replace('\'', "'\\''")));
    assert!(made.is_ok(), "{made:?}\n{}", project.script);
    let cwd = if project.is_below { root.join("src") } else { root.clone() };
    let lines = grammar::lines(&mut dice, project.is_below);
    let told = lines.join("\n--- and then\n");
    // Most repositories have a private one, some are kept as plain copies.
    let store = if seed % 4 == 3 { "files" } else { "auto" };
    // However slow this machine is at the moment.
    write(&world.settings(), format!("store = \"{store}\"\ndeadline = \"60s\"\n"));
    let about = format!("seed {seed} ({}, store {store}): {told}", project.about());
    let script = format!("{}\n### in {}\n{told}\n", project.script, project.cwd());
    let before = state(&world, &code);
    let (mut has_asked, mut has_run) = (false, false);
    for line in &lines {
        world.wait(1);
        if ask(&world, &cwd, "PreToolUse", "t1", line).is_some_and(|it| it != "allow") {
            has_asked = true;
            continue;
        }
        run(&world, &area, &cwd, line);
        has_run = true;
        world.wait(1);
        ask(&world, &cwd, "PostToolUse", "t1", line);
    }
    if !rustix::process::geteuid().is_root() {
        // What its owner may not read cannot be held before it is replaced.
        let _opened = try_git(&world, &code, "find . ! -perm -u=r -exec chmod u+rwX {} ';'");
    }
    let shown = if wished("BEFOREHAND_SEED").is_some() { script } else { about };
    let about_root = if project.is_git { "shop" } else { project.cwd() };
    // A plain directory is protected where the agent works in it.
    let root = if project.is_git { &root } else { &cwd }.to_str().unwrap();
    let listed = world.run_in(&code, &["list", "--root", root, "--json"], "").stdout;
    let is_empty = serde_json::from_str::<Value>(&listed)
        .map_or(true, |it| it.as_array().is_none_or(Vec::is_empty));
    let mut end = if has_run && !has_asked { End::Held } else { End::Asked };
    if is_empty {
        end = if has_asked { End::Asked } else { End::Read };
    } else {
        let args = [
            "restore", "1", "--exact", "--force", "--yes", "--repository", "--outside", "--root",
            root,
        ];
        // A worktree in an ignored directory comes back where it is named.
        let worktree = code.join("shop/.wt/x");
        for named in [&[][..], &["--", worktree.to_str().unwrap()]] {
            if !named.is_empty() && !worktree.join(".git").exists() {
                continue;
            }
            let output = world.run_in(&code, &[&args, named].concat(), "");
            if wished("BEFOREHAND_SEED").is_some() {
                eprint!("{listed}{}{}", output.stdout, output.stderr);
            }
            if output.exit != Exit::Ok {
                let said = format!("{}{}", output.stdout, output.stderr);
                return (shown, Err([("restore", vec![said])].into()));
            }
        }
    }
    let found = differences(about_root, &before, &state(&world, &code));
    (shown, if found.is_empty() { Ok(end) } else { Err(found) })
}

#[test]
fn every_byte_comes_back_after_any_line() {
    if let Some(seed) = wished("BEFOREHAND_SEED") {
        let (script, end) = case(seed);
        eprintln!("{script}");
        assert!(end.is_ok(), "{end:#?}");
        return;
    }
    let count = wished("BEFOREHAND_LINES").unwrap_or(20);
    let from = wished("BEFOREHAND_LINES_FROM").unwrap_or(0);
    let (mut ends, mut lost) = (BTreeMap::new(), Vec::new());
    for seed in from..from + count {
        let (about, end) = case(seed);
        match end {
            Ok(end) => *ends.entry(end).or_insert(0_u64) += 1,
            Err(found) => {
                let shown = |(kind, them): (&&str, &Vec<String>)| {
                    let few: Vec<&str> = them.iter().map(String::as_str).take(4).collect();
                    format!("  {kind} ({}): {}", them.len(), few.join("; "))
                };
                let found: Vec<String> = found.iter().map(shown).collect();
                lost.push(format!("LOST {about}\n{}", found.join("\n")));
                eprintln!("{}", lost.last().unwrap());
            }
        }
    }
    eprintln!("{count} cases: {ends:?}, {} lost something", lost.len());
    assert!(lost.is_empty(), "{}", lost.join("\n"));
    // What is asked about is held by nobody but the person who is asked.
    assert!(ends.get(&End::Asked).is_none_or(|asked| *asked * 10 <= count), "{ends:?}");
}
