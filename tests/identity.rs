//! Projects that are moved, copied, mounted twice or created again, and the checkpoints they have.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use beforehand::{
    error::Error,
    fs::Lock,
    process::Exit,
    state::StateDir,
    store::record::identity::{IdentityMatch, Registry},
};
use serde_json::json;

use crate::support::{
    real::{before, beforehand, git, skip, try_git},
    temp::write,
    world::{Output, World},
};

/// The agent is about to run a command line in `dir`; then its first word's arguments are gone.
fn agent_removes(world: &World, dir: &Path, turn: &str, names: &[&str]) {
    let command = format!("rm {}", names.join(" "));
    let payload = before(dir, "s1", turn, "Bash", &json!({ "command": command }));
    let output = world.run_in(dir, &["hook", "--agent", "claude-code"], &payload);
    assert_eq!((output.exit, &*output.stdout, &*output.stderr), (Exit::Ok, "{}", ""));
    for name in names {
        fs::remove_file(dir.join(name)).unwrap();
    }
}

/// A project of which the agent has removed `a` and the ignored `.env`.
fn damaged(world: &World, dir: &Path) {
    write(&dir.join(".gitignore"), ".env\n");
    write(&dir.join(".env"), "secret");
    write(&dir.join("a"), "a");
    write(&dir.join("sub/b"), "b");
    agent_removes(world, dir, "t1", &["a", ".env"]);
}

fn beside(world: &World, name: &str) -> PathBuf {
    world.root().parent().unwrap().join(name)
}

fn move_to(world: &World, name: &str) -> PathBuf {
    renamed(&world.root(), name)
}

fn renamed(from: &Path, name: &str) -> PathBuf {
    let to = from.with_file_name(name);
    fs::rename(from, &to).unwrap();
    to
}

#[track_caller]
fn succeeds(output: &Output) {
    assert_eq!(output.exit, Exit::Ok, "{}{}", output.stdout, output.stderr);
}

/// How many checkpoints a list has.
#[track_caller]
fn listed(world: &World, dir: &Path) -> usize {
    let output = world.run_in(dir, &["list"], "");
    succeeds(&output);
    output.stdout.lines().count()
}

/// Goes there and back again, with everything that was held.
#[track_caller]
fn is_restored(world: &World, dir: &Path) {
    succeeds(&world.run_in(dir, &["restore", "1", "--yes"], ""));
    for (name, text) in [("a", "a"), (".env", "secret"), ("sub/b", "b")] {
        assert_eq!(fs::read_to_string(dir.join(name)).unwrap(), text, "{name}");
    }
    succeeds(&world.run_in(dir, &["undo", "--yes"], ""));
    assert!(!dir.join("a").exists());
}

/// The names of the states of all roots, links among them.
fn entries(world: &World) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(world.state().join("roots"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    found.sort();
    found
}

fn place_of(world: &World, path: &Path) -> PathBuf {
    registry(world).place_of(path)
}

fn registry(world: &World) -> Registry {
    Registry::roots(&StateDir::new(world.state()))
}

#[test]
fn a_project_that_moved_has_its_checkpoints() {
    for world in [World::new(), World::with_git()] {
        damaged(&world, &world.root());
        let new = move_to(&world, "moved");
        assert_eq!(listed(&world, &new), 1);
        is_restored(&world, &new);
        assert_eq!(entries(&world), [place_of(&world, &new)]);
        let everywhere = world.run_in(&new, &["list", "--everywhere"], "");
        assert!(everywhere.stdout.contains("code/moved\n"), "{}", everywhere.stdout);
        assert!(!everywhere.stdout.contains("gone"), "{}", everywhere.stdout);
    }
}

#[test]
fn it_has_them_below_another_directory_and_from_a_directory_in_it() {
    let world = World::new();
    damaged(&world, &world.root());
    let code = beside(&world, "");
    let above = code.parent().unwrap().join("elsewhere");
    fs::rename(&code, &above).unwrap();
    assert_eq!(listed(&world, &above.join("shop/sub")), 1);
    is_restored(&world, &above.join("shop"));
}

#[test]
fn it_has_them_though_its_repository_is_gone_as_well() {
    let world = World::new();
    let root = world.root();
    git(&world, &root, "git init -q -b main && git commit -q --allow-empty -m one");
    write(&root.join(".gitignore"), ".env\n");
    write(&root.join(".env"), "secret");
    let command = json!({ "command": "mv ../shop ../moved && rm -rf ../moved/.git .git .env" });
    let payload = before(&root, "s1", "t1", "Bash", &command);
    world.run_in(&root, &["hook", "--agent", "claude-code"], &payload);
    let new = move_to(&world, "moved");
    fs::rename(new.join(".git"), beside(&world, "trash")).unwrap();
    fs::remove_file(new.join(".env")).unwrap();
    assert_eq!(listed(&world, &new), 1);
    succeeds(&world.run_in(&new, &["restore", "1", "--yes"], ""));
    assert_eq!(git(&world, &new, "git log --format=%s"), "one");
    assert_eq!(fs::read_to_string(new.join(".env")).unwrap(), "secret");
}

#[test]
fn a_hook_finds_them_as_well() {
    for world in [World::new(), World::with_git()] {
        damaged(&world, &world.root());
        let new = move_to(&world, "moved");
        agent_removes(&world, &new, "t2", &["sub/b"]);
        assert_eq!((listed(&world, &new), entries(&world).len()), (2, 1));
        succeeds(&world.run_in(&new, &["restore", "2", "--yes"], ""));
        assert_eq!(fs::read_to_string(new.join(".env")).unwrap(), "secret");
    }
}

#[test]
fn a_look_in_the_background_finds_them_as_well() {
    let world = World::new();
    damaged(&world, &world.root());
    let new = move_to(&world, "moved");
    let dir = new.to_string_lossy().into_owned();
    let args = ["warm", "--agent", "claude-code", "--session", "s2", "--dir", &dir];
    succeeds(&world.run_in(&new, &args, ""));
    assert_eq!(entries(&world), [place_of(&world, &new)]);
}

/// A copy of the project, both with something destroyed.
fn damaged_copy(world: &World) -> PathBuf {
    damaged(world, &world.root());
    let copy = beside(world, "copy");
    let done = Command::new("cp").arg("-a").args([&world.root(), &copy]).status().unwrap();
    assert!(done.success());
    copy
}

#[test]
fn a_copy_is_told_where_the_checkpoints_are_and_changes_nothing() {
    let world = World::new();
    let copy = damaged_copy(&world);
    for args in [&["list"][..], &["restore", "1", "--yes"], &["undo", "--yes"]] {
        let told = world.run_in(&copy, args, "");
        assert_eq!(told.stdout, "", "{args:?}");
        assert!(told.stderr.contains("a copy of"), "{args:?}: {}", told.stderr);
        let original = world.root().to_string_lossy().into_owned();
        let hint = format!("`beforehand list --root {original}`");
        assert!(told.stderr.contains(&hint), "{args:?}: {}", told.stderr);
        assert!(!copy.join("a").exists());
    }
    agent_removes(&world, &copy, "t2", &["sub/b"]);
    assert_eq!((listed(&world, &copy), listed(&world, &world.root())), (1, 1));
    is_restored(&world, &world.root());
    // What the hint says works.
    let root = world.root().to_string_lossy().into_owned();
    let list = world.run_in(&copy, &["list", "--root", &root], "").stdout;
    let id = list.split_whitespace().nth(1).unwrap();
    let args = ["restore", "--root", &root, id, "--into", "../fresh"];
    succeeds(&world.run_in(&copy, &args, ""));
    assert_eq!(fs::read_to_string(beside(&world, "fresh/.env")).unwrap(), "secret");
}

#[test]
fn a_copy_of_a_repository_is_told_the_same() {
    let world = World::with_git();
    let copy = damaged_copy(&world);
    for args in [&["list"][..], &["restore", "1", "--yes"], &["undo", "--yes"]] {
        let told = world.run_in(&copy, args, "");
        assert_eq!(told.stdout, "", "{args:?}");
        assert!(told.stderr.contains("a copy of"), "{args:?}: {}", told.stderr);
    }
    is_restored(&world, &world.root());
}

#[test]
fn a_new_directory_at_the_old_path_begins_anew() {
    let world = World::new();
    damaged(&world, &world.root());
    let new = move_to(&world, "moved");
    fs::create_dir(world.root()).unwrap();
    write(&world.root().join("other"), "other");
    assert_eq!(listed(&world, &new), 1);
    is_restored(&world, &new);
    agent_removes(&world, &world.root(), "t2", &["other"]);
    assert_eq!((listed(&world, &new), listed(&world, &world.root())), (1, 1));
}

#[test]
fn if_the_new_directory_was_first_the_old_one_is_told_where_its_checkpoints_are() {
    let world = World::new();
    damaged(&world, &world.root());
    let new = move_to(&world, "moved");
    write(&world.root().join("other"), "other");
    agent_removes(&world, &world.root(), "t2", &["other"]);
    assert_eq!(listed(&world, &world.root()), 2);
    let hint = format!("`beforehand list --root {}`", world.root().to_string_lossy());
    for args in [&["list"][..], &["restore", "1", "--yes"], &["undo", "--yes"]] {
        let told = world.run_in(&new, args, "");
        assert_eq!(told.stdout, "", "{args:?}");
        assert!(told.stderr.contains("was at") && told.stderr.contains(&hint), "{}", told.stderr);
    }
    // Back at its path it is what the checkpoints are of.
    fs::rename(world.root(), beside(&world, "aside")).unwrap();
    fs::rename(new, world.root()).unwrap();
    succeeds(&world.run_in(&world.root(), &["restore", "2", "--yes"], ""));
    assert_eq!(fs::read_to_string(world.root().join(".env")).unwrap(), "secret");
}

#[test]
fn a_directory_made_again_is_found_by_its_path() {
    let world = World::new();
    damaged(&world, &world.root());
    let gone = move_to(&world, "trash");
    for text in ["", "somebody's"] {
        fs::create_dir(world.root()).unwrap();
        if !text.is_empty() {
            write(&world.root().join("theirs"), text);
        }
        assert_eq!(listed(&world, &world.root()), 1);
        is_restored(&world, &world.root());
        assert_eq!(world.root().join("theirs").exists(), !text.is_empty());
        fs::rename(world.root(), gone.with_extension(format!("{}", text.len()))).unwrap();
    }
}

#[test]
fn two_projects_that_changed_places_are_found_by_path_and_told_apart() {
    let world = World::new();
    let other = beside(&world, "other");
    damaged(&world, &world.root());
    write(&other.join("o"), "o");
    agent_removes(&world, &other, "t1", &["o"]);
    let aside = beside(&world, "aside");
    for (from, to) in
        [(world.root(), &aside), (other.clone(), &world.root()), (aside.clone(), &other)]
    {
        fs::rename(from, to).unwrap();
    }
    for (here, there) in [(world.root(), &other), (other.clone(), &world.root())] {
        let told = world.run_in(&here, &["list"], "");
        assert_eq!(told.stdout.lines().count(), 1);
        let hint = format!("`beforehand list --root {}`", there.to_string_lossy());
        assert!(told.stderr.contains("was at") && told.stderr.contains(&hint), "{}", told.stderr);
    }
    assert_eq!(entries(&world).len(), 2);
}

#[test]
fn a_worktree_that_moved_has_its_checkpoints() {
    for line in [
        "git worktree move ../linked ../moved",
        "mv ../linked ../moved && git worktree repair ../moved",
    ] {
        let world = World::new();
        let root = world.root();
        world.write("a", "a");
        let made = "git init -q -b main && git add -A && git commit -qm one && git worktree add -q ../linked";
        git(&world, &root, made);
        let linked = beside(&world, "linked");
        damaged(&world, &linked);
        git(&world, &root, line);
        let new = beside(&world, "moved");
        assert_eq!(listed(&world, &new), 1, "{line}");
        is_restored(&world, &new);
    }
}

#[test]
fn of_several_that_come_at_once_one_renames_it_and_all_find_it() {
    let world = World::new();
    damaged(&world, &world.root());
    let new = move_to(&world, "moved");
    let found: Vec<IdentityMatch> = std::thread::scope(|scope| {
        let each = || registry(&world).resolve(&new).unwrap();
        let all: Vec<_> = (0..8).map(|_| scope.spawn(each)).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let is_moved = |found: &&IdentityMatch| matches!(found, IdentityMatch::Moved { .. });
    assert_eq!(found.iter().filter(is_moved).count(), 1, "{found:?}");
    assert!(found.iter().all(|it| is_moved(&it) || *it == IdentityMatch::ByPath), "{found:?}");
    assert_eq!(entries(&world), [place_of(&world, &new)]);
}

#[test]
fn it_is_not_renamed_while_a_sweep_marks_what_is_needed() {
    let world = World::new();
    damaged(&world, &world.root());
    let new = move_to(&world, "moved");
    let lock = Lock::acquire(&world.state().join("objects.lock"), Instant::now()).unwrap();
    assert!(matches!(registry(&world).resolve(&new), Err(Error::Busy { .. })));
    assert_eq!(entries(&world), [place_of(&world, &world.root())]);
    // Nothing is lost: the commands say where it is, and the next one finds it.
    let told = world.run_in(&new, &["list"], "");
    assert!(told.stderr.contains("was at"), "{}", told.stderr);
    drop(lock);
    assert_eq!(listed(&world, &new), 1);
}

#[test]
fn killed_at_any_step_it_is_found_by_the_next_command() {
    for point in ["adopt-describe", "adopt-rename", "adopt-sync"] {
        let world = World::new();
        damaged(&world, &world.root());
        let new = move_to(&world, "moved");
        let mut command = beforehand(&world, &new, &["list"]);
        let killed = command.env("BEFOREHAND_TEST_CRASH_AT", point).output().unwrap();
        assert_eq!(killed.status.code(), None, "{point} is never reached");
        // Whatever comes first, a round of housekeeping takes it for a project that is there.
        assert_eq!(world.run_in(Path::new("/"), &["maintain"], "").exit, Exit::Ok);
        assert_eq!(listed(&world, &new), 1, "{point}");
        is_restored(&world, &new);
        assert_eq!(entries(&world), [place_of(&world, &new)], "{point}");
    }
}

/// As a file system without birth times, or an older version, would have left it.
fn forget_birth(world: &World, path: &Path) {
    let file = place_of(world, path).join("root.json");
    let mut json: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert!(json["birth"].is_i64(), "{json}");
    json.as_object_mut().unwrap().remove("birth");
    write(&file, json.to_string());
}

#[test]
fn without_a_birth_time_a_match_is_offered_and_not_adopted() {
    let world = World::new();
    damaged(&world, &world.root());
    forget_birth(&world, &world.root());
    let new = move_to(&world, "moved");
    let old = world.root().to_string_lossy().into_owned();
    for args in [&["list"][..], &["restore", "1", "--yes"], &["undo", "--yes"]] {
        let told = world.run_in(&new, args, "");
        assert_eq!(told.stdout, "", "{args:?}");
        assert!(told.stderr.contains("may be the one that was at"), "{args:?}: {}", told.stderr);
        assert!(
            told.stderr.contains(&format!("`beforehand list --root {old}`")),
            "{}",
            told.stderr
        );
    }
    assert_eq!(entries(&world), [place_of(&world, &world.root())]);
    let elsewhere = world.run_in(&new, &["restore", "--root", &old, "1", "--into", "x"], "");
    succeeds(&elsewhere);
    assert_eq!(fs::read_to_string(new.join("x/.env")).unwrap(), "secret");
}

#[test]
fn a_second_path_of_one_directory_is_a_link_that_counts_once() {
    let world = World::new();
    damaged(&world, &world.root());
    // A symlink that is not resolved: as good as a bind mount, whose paths cannot be either.
    let second = beside(&world, "second");
    symlink(world.root(), &second).unwrap();
    let found = registry(&world).resolve(&second).unwrap();
    assert_eq!(found, IdentityMatch::Alias { of: world.root() });
    let link = place_of(&world, &second);
    assert_eq!(fs::read_link(&link).unwrap(), place_of(&world, &world.root()).file_name().unwrap());
    assert_eq!(registry(&world).resolve(&second).unwrap(), found);
    let everywhere = world.run_in(Path::new("/"), &["list", "--everywhere"], "");
    assert_eq!(everywhere.stdout.matches("rm a .env").count(), 1, "{}", everywhere.stdout);
    let status = world.run_in(&world.root(), &["status"], "");
    assert_eq!(status.stdout.matches("1 checkpoint").count(), 1, "{}", status.stdout);
    // Unmounted, the second path is one of its own.
    fs::remove_file(&second).unwrap();
    fs::create_dir(&second).unwrap();
    assert_eq!(registry(&world).resolve(&second).unwrap(), IdentityMatch::Nowhere);
    assert!(!link.is_symlink());
}

#[test]
fn a_bind_mount_has_the_checkpoints_of_the_first_path() {
    let world = World::new();
    damaged(&world, &world.root());
    let second = beside(&world, "second");
    fs::create_dir(&second).unwrap();
    let may_mount = "unshare -rm mount --bind shop second";
    if try_git(&world, &beside(&world, ""), may_mount).is_err() {
        skip("this user cannot mount");
        return;
    }
    let run = |line: &str| {
        let (program, mount) = (env!("CARGO_BIN_EXE_beforehand"), "mount --bind shop second");
        let line = format!("{mount} && cd second && t() {{ {program} \"$@\"; }} && {line}");
        let state = world.state();
        let home = state.ancestors().nth(3).unwrap();
        let output = Command::new("unshare")
            .args(["-rm", "sh", "-c", &line])
            .current_dir(beside(&world, ""))
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("BEFOREHAND_AUTO_PRUNE", "off")
            .env("HOME", home)
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{line}: {told}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(run("t list").lines().count(), 1);
    run("t restore 1 --yes");
    assert_eq!(fs::read_to_string(world.root().join(".env")).unwrap(), "secret");
    // What is taken at one path is there at the other, and where the project is stays the same.
    run("echo new > new && t create");
    assert_eq!(listed(&world, &world.root()), 2);
    let everywhere = world.run_in(Path::new("/"), &["list", "--everywhere"], "");
    assert!(everywhere.stdout.contains("code/shop\n"), "{}", everywhere.stdout);
    // Here, where nothing is mounted, the second path is an empty directory with nothing to restore.
    assert_eq!(listed(&world, &second), 0);
    assert_eq!(listed(&world, &world.root()), 2);
}
