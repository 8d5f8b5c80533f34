//! `beforehand export`: each turn is a commit or a patch, and git makes the same of both.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
};

use beforehand::{fs::remove_tree, model::Kind};
use serde_json::{Value, json};

use crate::{
    evidence::{begins, ends, event, ours, run, writes},
    support::{
        dice::{Dice, wished},
        real::{git, try_git},
        temp::{Files, Seen, chmod, link, noise, on_disk, write},
        world::World,
    },
};

/// A repository with a commit, and a user whom git knows.
fn project() -> World {
    let mut world = World::with_git();
    known_to_git(&world);
    world.write("a", "one\ntwo\nthree\n");
    world.write(".gitignore", "*.log\n");
    git(&world, &world.root(), "git add -A && git commit -qm first");
    run(&mut world, "zero", "make nothing", |_| ());
    world
}

pub(crate) fn known_to_git(world: &World) {
    write(&world.settings(), "deadline = \"60s\"\n");
    let included = "[user]\n\temail = ada@example.com\n";
    write(&world.home().join(".gitconfig"), "[user]\n\tname = Ada Ł\n[include]\n\tpath = more\n");
    write(&world.home().join("more"), included);
}

/// All of a repository but what an export adds.
fn git_files(world: &World, branch: &str) -> Files {
    let mut files = on_disk(&world.root());
    let branch = format!(".git/refs/heads/{branch}").into_bytes();
    files.retain(|path, _| !path.starts_with(b".git/objects") && *path != branch);
    files
}

fn exported(world: &mut World, args: &[&str]) -> Value {
    world.wait(1);
    let done = world.run(&[&["export", "--json"], args].concat());
    serde_json::from_str(&done.stdout).unwrap_or_else(|_| panic!("{}", done.stderr))
}

/// Takes patches on a fresh clone at a commit, and gives the tree and author of each commit.
fn taken(world: &World, dir: &Path, base: &str) -> String {
    let clone = world.root().join("../clone");
    let base = &git(world, &world.root(), &format!("git rev-parse {base}"));
    let _none = remove_tree(&clone);
    let (root, patches) = (world.root(), dir.display());
    git(world, &root, &format!("git clone -q . ../clone && cd ../clone && git checkout -q {base}"));
    git(world, &clone, &format!("git am -q {patches}/*.patch"));
    log(world, &clone, &format!("{base}..HEAD"))
}

fn log(world: &World, dir: &Path, range: &str) -> String {
    git(world, dir, &format!("git log --format='%T %an <%ae> %ad %B' {range}"))
}

#[test]
fn a_file_that_you_renamed_stays_in_the_series_by_its_new_name() {
    let mut world = project();
    let root = world.root();
    writes(&mut world, "one", "b", "of the agent\nand more\n");
    fs::rename(root.join("b"), root.join("c")).unwrap();
    writes(&mut world, "two", "a", "two\n");
    fs::rename(root.join("c"), root.join("d")).unwrap();
    world.write("mine", "mine\n");
    writes(&mut world, "three", "a", "three\n");
    let told = exported(&mut world, &["3..1", "--branch", "turns"]);
    let files = git(&world, &root, "git ls-tree -r --name-only turns");
    assert_eq!(files, ".gitignore\na\nd", "{told:#}");
    assert_eq!(git(&world, &root, "git show turns:d"), "of the agent\nand more");
    let files = git(&world, &root, "git ls-tree -r --name-only turns");
    assert_eq!(files, ".gitignore\na\nd");
    let left = &told["left_out"];
    assert_eq!((&left[0]["path"], &left[1]), (&json!("mine"), &Value::Null));
}

#[test]
fn each_turn_is_a_commit_and_git_takes_the_patches() {
    let mut world = project();
    let root = world.root();
    world.write("a", "mine\none\ntwo\nthree\n");
    writes(&mut world, "one", "a", "mine\none\nONE\nthree\n");
    world.write("a", "mine\none\nONE\nthree\nlast\n");
    world.write("notes", "of the user\n");
    writes(&mut world, "two", "b", "new\n");
    run(&mut world, "three", "make", |world| {
        world.write("a", "mine\nTHREE\nONE\nthree\nlast\n");
        world.write("x.log", "ignored\n");
        world.write(".env", "SECRET=1\n");
    });
    let before = git_files(&world, "turns");
    let told = exported(&mut world, &["3..1", "--branch", "turns"]);
    assert!(git_files(&world, "turns") == before, "HEAD, index and files are as they were");
    let subjects: Vec<&str> = told["commits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["subject"].as_str().unwrap())
        .collect();
    let expected =
        ["Between turns: change a", "Change a", "Between turns: change a", "Add b", "Change a"];
    assert_eq!(subjects, expected);
    let left: Vec<String> = told["left_out"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| format!("{}: {}", it["path"].as_str().unwrap(), it["reason"].as_str().unwrap()))
        .collect();
    assert_eq!(left, [".env: private", "x.log: ignored", "notes: no-turn"]);
    git(&world, &root, "git fsck --strict --no-dangling");
    let branch = log(&world, &root, "main..turns");
    assert!(branch.contains("Ada Ł <ada@example.com>"), "{branch}");
    assert_eq!(branch.matches("Assisted-by: Claude Code").count(), 3, "{branch}");
    assert!(!branch.contains("go on"), "no prompts: {branch}");
    assert_eq!(git(&world, &root, "git show turns:a"), "mine\nTHREE\nONE\nthree\nlast");
    let files = git(&world, &root, "git ls-tree -r --name-only turns");
    assert_eq!(files, ".gitignore\na\nb");
    exported(&mut world, &["1..3", "--patches", "../out"]);
    let clone = taken(&world, &root.join("../out"), "main");
    assert_eq!(clone, branch);
    event(&mut world, "UserPromptSubmit", "four", "", &Value::Null, "");
    writes(&mut world, "four", "b", "newer\n");
    exported(&mut world, &["1", "--branch", "with/prompts", "--prompts"]);
    let last = log(&world, &root, "-1 with/prompts");
    assert!(last.contains("go on\n\nAssisted-by: Claude Code"), "{last}");
}

#[test]
fn what_was_taken_back_is_left_out_and_said() {
    let mut world = project();
    writes(&mut world, "one", "a", "ONE\n");
    writes(&mut world, "two", "a", "TWO\n");
    writes(&mut world, "two", "b", "of two\n");
    ours(&mut world, &["undo", "--yes"], 0);
    let told = exported(&mut world, &["2..1", "--branch", "turns"]);
    let commits = told["commits"].as_array().unwrap();
    assert_eq!((commits.len(), &commits[0]["turn"]), (1, &json!(2)), "{told:#}");
    assert_eq!(git(&world, &world.root(), "git show turns:a"), "ONE");
    assert_eq!(told["left_out"], json!([{ "path": "b", "reason": "taken-back" }]));
    assert_eq!((&told["unchanged_turns"], &told["undone_turns"]), (&json!([1]), &json!([1])));
    let said = ours(&mut world, &["export", "1", "--branch", "none"], 1).stderr;
    assert!(said.contains("note: turn 1 was undone, and has no commit\n"), "{said}");
    ours(&mut world, &["redo", "--yes"], 0);
    let told = exported(&mut world, &["2..1", "--branch", "again"]);
    assert_eq!((&told["undone_turns"], &told["left_out"]), (&json!([]), &json!([])), "{told:#}");
    assert_eq!(git(&world, &world.root(), "git show again:a again:b"), "TWO\nof two");
}

#[test]
fn of_a_turn_no_state_is_exported_that_it_did_not_leave() {
    let mut world = project();
    run(&mut world, "one", "make", |world| world.write("a", "on the way\n"));
    let large = noise(1, 300 << 10);
    run(&mut world, "one", "make more", |world| {
        world.write("a", large);
        world.write("b", "of one\n");
    });
    world.write("a", "mine\n");
    writes(&mut world, "two", "a", "two\n");
    let told = exported(&mut world, &["2..1", "--branch", "turns"]);
    let commits = told["commits"].as_array().unwrap().iter();
    let files = commits.map(|it| (it["turn"].as_u64(), it["files"][0]["path"].as_str().unwrap()));
    let expected = [(Some(2), "b"), (None, "a"), (Some(1), "a")];
    assert_eq!(files.collect::<Vec<_>>(), expected, "{told:#}");
    assert_eq!(told["mixed"], json!([{ "path": "a", "turns": [2] }]));
    let said = ours(&mut world, &["export", "2..1", "--branch", "again"], 0).stderr;
    let why = "note: a: what turn 2 left is not held: it is with what followed, between turns\n";
    assert!(said.contains(why), "{said}");
}

#[test]
fn turns_at_the_same_time_are_in_the_order_of_their_changes() {
    let mut world = project();
    writes(&mut world, "s/one", "b", "one\n");
    writes(&mut world, "t/two", "a", "TWO\n");
    writes(&mut world, "s/one", "a", "TWO\nONE\n");
    let told = exported(&mut world, &["2..1", "--branch", "turns"]);
    let subjects: Vec<&Value> =
        told["commits"].as_array().unwrap().iter().map(|it| &it["subject"]).collect();
    assert_eq!(subjects, ["Change a", "Change a and 1 more"], "{told:#}");
    assert_eq!(git(&world, &world.root(), "git show turns^:a turns:a"), "TWO\nTWO\nONE");
}

#[test]
fn what_is_below_a_file_that_is_left_out_is_left_out_too() {
    let mut world = project();
    let root = world.root();
    world.write("d", "a file\n");
    git(&world, &root, "git add -A && git commit -qm d && rm d && mkdir d");
    writes(&mut world, "one", "d/x", "in a directory\n");
    let told = exported(&mut world, &["1", "--branch", "turns"]);
    let files = git(&world, &root, "git ls-tree -r --name-only turns");
    assert_eq!(files, ".gitignore\na\nd/x", "what made room is there: {told:#}");
    write(&world.settings(), "deadline = \"60s\"\nprivate = [\"d\"]\n");
    let told = exported(&mut world, &["1", "--branch", "none"]);
    assert_eq!(told["commits"], json!([]), "{told:#}");
    let left =
        json!([{ "path": "d", "reason": "private" }, { "path": "d/x", "reason": "conflict" }]);
    assert_eq!(told["left_out"], left, "{told:#}");
}

#[test]
fn what_leads_to_nothing_is_refused_and_changes_nothing() {
    let mut world = project();
    writes(&mut world, "one", "a", "ONE\n");
    git(&world, &world.root(), "git branch there && git branch deep/er && git pack-refs --all");
    let before = on_disk(&world.root());
    for (args, exit, why) in [
        (&["1", "--branch", "there"][..], 1, "is there already"),
        (&["1", "--branch", "main"], 1, "is there already"),
        (&["1", "--branch", "deep"], 1, "begins or ends within it"),
        (&["1", "--branch", "main/x"], 1, "begins or ends within it"),
        (&["1", "--branch", "a..b"], 1, "is no name that a branch can have"),
        (&["1", "--branch", "../../x"], 1, "is no name that a branch can have"),
        (&["1", "--branch=-x"], 1, "is no name that a branch can have"),
        (&["9", "--branch", "x"], 1, "no checkpoint `9`"),
        (&["1.2", "--branch", "x"], 64, "names no turns"),
        (&["1", "--patches", "."], 1, "is not empty"),
        (&["1", "--patches", ".git/x"], 1, "is no place for files"),
        (&["1"], 64, "--patches DIR writes patches"),
        (&["1", "--branch", "x", "--patches", "../y"], 64, "cannot be used with"),
    ] {
        let said = ours(&mut world, &[&["export"], args].concat(), exit).stderr;
        assert!(said.contains(why), "{args:?}: {said}");
    }
    begins(&mut world, "two", "make");
    let said = ours(&mut world, &["export", "1", "--branch", "x"], 1).stderr;
    assert!(said.contains("turn 1 is still running, or was interrupted"), "{said}");
    ends(&mut world, "two", "make");
    fs::remove_file(world.home().join("more")).unwrap();
    let said = ours(&mut world, &["export", "1", "--branch", "x"], 1).stderr;
    assert!(said.contains("git has no name and address for you"), "{said}");
    assert!(on_disk(&world.root()) == before);
}

#[test]
fn a_plain_directory_has_patches_and_no_branch() {
    let mut world = World::new();
    known_to_git(&world);
    world.write("a", "one\n");
    run(&mut world, "zero", "make nothing", |_| ());
    writes(&mut world, "one", "a", "two\n");
    let said = ours(&mut world, &["export", "1", "--branch", "x"], 1).stderr;
    assert!(said.contains("is no git repository, and has no branches"), "{said}");
    exported(&mut world, &["1", "--patches", "../out"]);
    world.write("a", "one\n");
    git(&world, &world.root(), "git apply ../out/0001-Change-a.patch");
    assert_eq!(world.read("a"), "two\n");
}

#[test]
fn what_git_stores_in_another_form_is_left_out() {
    let mut world = project();
    let root = world.root();
    world.write(".gitattributes", "*.bin filter=lfs\ncrlf.txt text eol=crlf\n");
    world.write("crlf.txt", "one\ntwo\n");
    git(
        &world,
        &root,
        "git add -A && git commit -qm attributes && rm crlf.txt && git checkout crlf.txt",
    );
    assert_eq!(world.read("crlf.txt"), "one\r\ntwo\r\n");
    run(&mut world, "one", "make", |world| {
        world.write("crlf.txt", "one\r\ntwo\r\nthree\r\n");
        world.write("d/x.bin", "large");
    });
    let told = exported(&mut world, &["1", "--branch", "turns"]);
    assert_eq!(told["left_out"][0]["reason"], "converted");
    assert_eq!(told["commits"].as_array().unwrap().len(), 1, "line ends are no change: {told}");
    assert_eq!(git(&world, &root, "git show turns:crlf.txt"), "one\ntwo\nthree");
}

/// Names and contents that patches have trouble with.
const NAMES: &[&str] = &[
    "plain", "d/deep/file", "a b ", "tab\there", "quo\"te\\", "\u{e9}t\u{e9}", "-dash",
    "new\nline", "d", "x/y",
];

fn content(dice: &mut Dice) -> Vec<u8> {
    let lines = |dice: &mut Dice, end: &str| {
        let mut text = String::new();
        for _ in 0..dice.below(12) {
            text.push_str(dice.pick(&["a", "b", "-- ", "From x", "---", "", "diff --git a/x b/x"]));
            text.push_str(end);
        }
        text
    };
    match dice.below(9) {
        0 => Vec::new(),
        1 => lines(dice, "\r\n").into_bytes(),
        2 => [b"\0\xff".to_vec(), lines(dice, "\n").into_bytes()].concat(),
        3 => format!("{}no end", lines(dice, "\n")).into_bytes(),
        4 => b"\xe9\n\xff\n".to_vec(),
        5 => lines(dice, "\r").into_bytes(),
        _ => lines(dice, "\n").into_bytes(),
    }
}

/// Makes directories of all above a path, whatever is there.
fn room(path: &Path) {
    let above = path.parent().unwrap();
    for dir in above.ancestors().collect::<Vec<_>>().into_iter().rev() {
        if dir.symlink_metadata().is_ok_and(|found| !found.is_dir()) {
            fs::remove_file(dir).unwrap();
        }
    }
    fs::create_dir_all(above).unwrap();
}

/// Changes something somewhere.
pub(crate) fn change(world: &World, dice: &mut Dice) {
    let path = world.root().join(dice.pick(NAMES));
    room(&path);
    let is_there = path.symlink_metadata();
    match (dice.below(7), &is_there) {
        (0, Ok(found)) if found.is_file() => {
            chmod(&path, if found.permissions().mode() & 0o100 == 0 { 0o755 } else { 0o644 });
        }
        (1, Ok(found)) if found.is_dir() => remove_tree(&path).unwrap(),
        (1, Ok(_)) => fs::remove_file(&path).unwrap(),
        (2, Ok(found)) if !found.is_dir() => {
            let to = world.root().join(dice.pick(&["moved", "plain", "d/deep/moved"]));
            room(&to);
            // Nothing can be moved below itself.
            let _moved = fs::rename(&path, to);
        }
        (what, found) => {
            match found {
                Ok(found) if found.is_dir() => remove_tree(&path).unwrap(),
                Ok(_) => fs::remove_file(&path).unwrap(),
                Err(_) => (),
            }
            if what == 3 {
                link(&path, dice.pick(&["plain", "no where", "../x\n"]));
            } else {
                write(&path, content(dice));
            }
        }
    }
}

/// What git would have of the project: modes and contents by path.
pub(crate) fn as_git_has_it(world: &World) -> BTreeMap<String, (u32, Vec<u8>)> {
    let root = world.root();
    let files = on_disk(&root).into_iter().filter(|(path, _)| !path.starts_with(b".git"));
    let entry = |(path, seen): (Vec<u8>, Seen)| {
        let mode = match (seen.kind, seen.permissions & 0o100) {
            (Kind::Link, _) => 0o120_000,
            (Kind::File, 0) => 0o100_644,
            (Kind::File, _) => 0o100_755,
            (_, _) => return None,
        };
        Some((String::from_utf8(path).unwrap(), (mode, seen.bytes)))
    };
    files.filter_map(entry).collect()
}

/// A turn, and the project right before and right after it.
type Truth = (BTreeMap<String, (u32, Vec<u8>)>, BTreeMap<String, (u32, Vec<u8>)>);

/// The paths that a turn changed.
fn changes((before, after): &Truth) -> BTreeSet<&str> {
    let all = before.keys().chain(after.keys()).map(String::as_str);
    all.filter(|path| before.get(*path) != after.get(*path)).collect()
}

/// Runs one history, exports it both ways, and holds it against the truth.
fn history(seed: u64) {
    let mut dice = Dice::new(seed);
    let mut world = World::with_git();
    known_to_git(&world);
    world.write("plain", "one\ntwo\n");
    (0..dice.below(8)).for_each(|_| change(&world, &mut dice));
    let root = world.root();
    git(&world, &root, "git add -A && git commit -q --allow-empty -m first");
    (0..dice.below(3)).for_each(|_| change(&world, &mut dice));
    run(&mut world, "zero", "make nothing", |_| ());
    let mut truth: BTreeMap<String, Truth> = BTreeMap::new();
    let count = 1 + dice.below(4);
    // Where what a turn left is not held before the user changes it, it may be in no commit of its own.
    let is_held = !dice.is(4);
    for turn in 1..=count {
        let name = format!("turn{turn}");
        let before = as_git_has_it(&world);
        for call in 0..=dice.below(2) {
            begins(&mut world, &name, &format!("make {call}"));
            (0..=dice.below(3)).for_each(|_| change(&world, &mut dice));
            ends(&mut world, &name, &format!("make {call}"));
        }
        if is_held {
            // As in the background, when the turn has ended.
            let dir = world.root().to_str().unwrap().to_owned();
            let args = ["warm", "--agent", "claude-code", "--session", "s", "--ended", "--dir"];
            ours(&mut world, &[&args[..], &[&dir]].concat(), 0);
        }
        truth.insert(name, (before, as_git_has_it(&world)));
        (0..dice.below(3)).for_each(|_| change(&world, &mut dice));
    }
    let out = ours(&mut world, &["list", "--json"], 0).stdout;
    let listed: Value = serde_json::from_str(&out).unwrap();
    // One that found nothing changed, and changed nothing, is in no row.
    let names: Vec<&str> =
        listed.as_array().unwrap().iter().map(|it| it["turn"].as_str().unwrap()).collect();
    let range = format!("{}..1", names.iter().filter(|name| **name != "zero").count());
    let before = git_files(&world, "turns");
    let done = world.run(&["export", &range, "--branch", "turns", "--json"]);
    assert!(git_files(&world, "turns") == before, "seed {seed}");
    let told: Value = serde_json::from_str(&done.stdout)
        .unwrap_or_else(|_| panic!("seed {seed}: {}{out}", done.stderr));
    let commits = told["commits"].as_array().unwrap().clone();
    if commits.is_empty() {
        return;
    }
    git(&world, &root, "git fsck --strict --no-dangling");
    let mut count_seen = 0;
    for commit in commits.iter().filter(|commit| !commit["turn"].is_null()) {
        let number = usize::try_from(commit["turn"].as_u64().unwrap()).unwrap();
        let turn @ (before, after) = &truth[names[number - 1]];
        let (name, changed) = (commit["name"].as_str().unwrap(), changes(turn));
        let files = commit["files"].as_array().unwrap();
        let paths: Vec<&str> = files.iter().map(|file| file["path"].as_str().unwrap()).collect();
        count_seen += paths.len();
        let is_its = |path: &&str| changed.contains(*path);
        assert!(paths.iter().all(is_its), "seed {seed}, {name}: {told:#}");
        for (tree, state) in [(format!("{name}^"), before), (name.to_owned(), after)] {
            for path in &paths {
                let found = in_git(&world, &tree, path);
                assert_eq!(found.as_ref(), state.get(*path), "seed {seed}, {tree} {path:?}");
            }
        }
    }
    let is_others = |it: &Value| it["reason"] == "no-turn" || !is_held && it["reason"] == "unheld";
    assert!(told["left_out"].as_array().unwrap().iter().all(is_others), "{told:#}");
    let all: usize = truth.values().map(|turn| changes(turn).len()).sum();
    let is_right = count_seen == all || count_seen < all && !is_held;
    assert!(is_right, "seed {seed}: {count_seen} of {all}: {told:#}");
    ours(&mut world, &["export", &range, "--patches", "../out"], 0);
    let clone = taken(&world, &root.join("../out"), "main");
    assert_eq!(clone, log(&world, &root, "main..turns"), "seed {seed}");
}

/// A file of a commit.
fn in_git(world: &World, tree: &str, path: &str) -> Option<(u32, Vec<u8>)> {
    in_git_at(world, &world.root(), tree, path)
}

/// A file of a commit of some repository.
pub(crate) fn in_git_at(
    world: &World,
    dir: &Path,
    tree: &str,
    path: &str,
) -> Option<(u32, Vec<u8>)> {
    let quoted = format!("'{}'", path.replace('\'', "'\\''"));
    let line = git(world, dir, &format!("git ls-tree {tree} -- {quoted}"));
    let (mode, rest) = line.split_once(' ')?;
    let id = rest.strip_prefix("blob ")?.split('\t').next()?;
    let out = world.root().join("../blob");
    try_git(world, dir, &format!("git cat-file blob {id} > {}", out.display())).unwrap();
    Some((u32::from_str_radix(mode, 8).unwrap(), fs::read(out).unwrap()))
}

#[test]
fn git_makes_of_the_patches_what_the_turns_made() {
    let (first, cases) = (wished("BEFOREHAND_FIRST").unwrap_or(0), wished("BEFOREHAND_CASES"));
    for seed in first..first + cases.unwrap_or(6) {
        history(seed);
    }
}

/// A repository that is gone was one all the same.
#[test]
fn what_was_in_a_repository_of_its_own_is_left_out() {
    let mut world = project();
    world.write("sub/f", "theirs\n");
    git(&world, &world.root(), "cd sub && git init -q && git add -A && git commit -qm sub");
    writes(&mut world, "one", "a", "one\nONE\n");
    writes(&mut world, "one", "sub/f", "ONE\n");
    run(&mut world, "two", "rm -rf sub", |world| {
        git(world, &world.root(), "rm -rf sub");
    });
    writes(&mut world, "three", "a", "one\nTHREE\n");
    let patches = world.root().join("../patches");
    let told = exported(&mut world, &["3..1", "--patches", patches.to_str().unwrap()]);
    let left: Vec<&Value> = told["left_out"].as_array().unwrap().iter().collect();
    assert!(left.iter().any(|it| it["path"] == "sub/f"), "{told}");
    let all =
        fs::read_dir(&patches).unwrap().map(|it| fs::read_to_string(it.unwrap().path()).unwrap());
    assert!(!all.collect::<String>().contains("sub/f"), "{told}");
}
