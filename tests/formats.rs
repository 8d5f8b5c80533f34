//! Frozen samples of everything we write, in `fixtures/formats`: each reads for ever. A newer one
//! is listed and never written to.
//!
//! A sample is a project with its state directory as an earlier beforehand left them, with `dot-git`
//! for `.git`. `BEFOREHAND_FREEZE=v2 cargo test freeze` writes the next ones.

use std::{
    fs,
    path::{Path, PathBuf},
};

use beforehand::{process::Exit, state::hash_name};
use serde_json::{Value, json};

use crate::{
    maintenance::run_maintenance,
    support::{
        real::{before, beforehand, git, hook},
        temp::{chmod, on_disk, write},
        world::World,
    },
};

/// Where the samples are.
fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/formats")
}

/// Copies what a sample can hold: files and directories.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let (from, to) = (entry.path(), to.join(thawed(&entry.file_name().to_string_lossy())));
        if entry.file_type().unwrap().is_dir() {
            copy(&from, &to);
        } else {
            write(&to, fs::read(&from).unwrap());
        }
    }
}

/// Git keeps nothing called `.git`, and believes a `.gitignore`.
fn thawed(name: &str) -> String {
    name.strip_prefix("dot-git").map_or_else(|| name.to_owned(), |rest| format!(".git{rest}"))
}

fn frozen(name: &str) -> String {
    name.strip_prefix(".git").map_or_else(|| name.to_owned(), |rest| format!("dot-git{rest}"))
}

/// A world in which a sample lies where its writer would have put it.
fn thaw(sample: &Path) -> World {
    let world = World::new();
    copy(&sample.join("project"), &world.root());
    copy(&sample.join("state"), &world.state());
    for name in ["objects", "refs/heads", "refs/tags"] {
        if world.root().join(".git").exists() {
            fs::create_dir_all(world.root().join(".git").join(name)).unwrap();
        }
    }
    let roots = world.state().join("roots");
    let old = fs::read_dir(&roots).unwrap().flatten().next().unwrap().path();
    let name = hash_name(&[world.root().as_os_str().as_encoded_bytes()]);
    fs::rename(old, roots.join(name)).unwrap();
    world
}

/// Every sample there is, by its path.
fn every_sample() -> Vec<PathBuf> {
    let dirs = |dir: &Path| {
        let entries = fs::read_dir(dir).unwrap().flatten().map(|entry| entry.path());
        entries.filter(|path| path.is_dir()).collect::<Vec<_>>()
    };
    let mut all: Vec<_> = dirs(&samples()).iter().flat_map(|version| dirs(version)).collect();
    all.sort();
    all
}

fn messages(world: &mut World) -> Vec<(String, String)> {
    let listed = world.run(&["list", "--json", "--all"]);
    let list: Value = serde_json::from_str(&listed.stdout).unwrap();
    let told = |one: &Value| {
        let text = |key: &str| one[key].as_str().unwrap_or_default().to_owned();
        (text("cause"), text("summary"))
    };
    list.as_array().unwrap().iter().map(told).collect()
}

#[test]
fn every_frozen_sample_reads() {
    let all = every_sample();
    assert!(all.len() >= 2, "{all:?}");
    for sample in all {
        let mut world = thaw(&sample);
        let whole = world.run(&["check", "--read-data"]);
        assert_eq!(whole.exit, Exit::Ok, "{}: {}", sample.display(), whole.stdout);
        let expected = fs::read_to_string(sample.join("list.json")).unwrap();
        let expected: Vec<(String, String)> = serde_json::from_str(&expected).unwrap();
        assert_eq!(messages(&mut world), expected, "{}", sample.display());
        let said = world.run(&["list"]).stderr;
        assert!(said.contains("restore --continue"), "{}: {said}", sample.display());
        assert_eq!(world.run(&["restore", "--abort"]).exit, Exit::Ok);
        let id = fs::read_to_string(sample.join("first")).unwrap();
        let done = world.run(&["restore", id.trim(), "--yes", "--exact", "--force"]);
        assert_eq!(done.exit, Exit::Ok, "{}: {}", sample.display(), done.stderr);
        let then = [("a", "one\n"), ("d/b", "two\n"), (".env", "secret\n"), ("odd \\ name", "x")];
        for (path, text) in then {
            assert_eq!(world.read(path), text, "{}: {path}", sample.display());
        }
        assert_eq!(world.run(&["undo", "--yes"]).exit, Exit::Ok);
        let said = world.run(&["status", "--json"]);
        assert!(said.stdout.contains("\"checkpoints\""), "{}", said.stdout);
    }
}

#[test]
fn a_newer_one_is_listed_and_never_written_to() {
    for sample in every_sample() {
        let mut world = thaw(&sample);
        assert_eq!(world.run(&["restore", "--abort"]).exit, Exit::Ok);
        let count = messages(&mut world).len();
        let newer: Vec<(PathBuf, Vec<u8>)> = on_disk(&world.state())
            .into_keys()
            .map(|path| world.state().join(String::from_utf8(path).unwrap()))
            .filter(|path| path.extension().is_some_and(|name| name == "json"))
            .map(|path| {
                let text = fs::read_to_string(&path).unwrap();
                let mut value: Value = serde_json::from_str(&text).unwrap();
                value["version"] = json!(99);
                value["of the future"] = json!([1]);
                let bytes = serde_json::to_vec(&value).unwrap();
                chmod(&path, 0o600);
                write(&path, &bytes);
                (path, bytes)
            })
            .collect();
        assert!(newer.len() >= 4, "{newer:?}");
        assert_eq!(messages(&mut world).len(), count, "{}", sample.display());
        world.write("a", "later\n");
        let answer = world.agent_writes("t9", "a", "by the agent\n");
        assert!(!answer.contains("NOT protected"), "{answer}");
        for args in [
            &["create", "-m", "more"][..],
            &["list"],
            &["status"],
            &["undo", "--yes"],
            &["check", "--repair"],
        ] {
            let said = world.run(args);
            let gone = newer.iter().find(|(path, _)| !path.exists());
            assert!(gone.is_none(), "{args:?} removed {gone:?}: {}{}", said.stdout, said.stderr);
        }
        for (path, bytes) in newer {
            let kept = fs::read(&path).unwrap_or_else(|err| panic!("{}: {err}", path.display()));
            assert!(kept == bytes, "{} was written", path.display());
        }
    }
}

#[test]
fn a_cache_of_another_version_is_made_again() {
    let mut world = thaw(&samples().join("v2/plain"));
    world.run(&["restore", "--abort"]);
    let caches: Vec<_> = on_disk(&world.state())
        .into_keys()
        .map(|path| world.state().join(String::from_utf8(path).unwrap()))
        .filter(|path| path.file_name().is_some_and(|name| name == "cache"))
        .collect();
    for path in &caches {
        chmod(path, 0o600);
        write(path, b"bhcache9 from another time");
    }
    assert_eq!(world.run(&["check"]).exit, Exit::Ok, "it is no damage");
    world.write("a", "later\n");
    assert_eq!(world.run(&["create", "-m", "more"]).exit, Exit::Ok);
    assert!(caches.iter().all(|path| fs::read(path).unwrap().len() > 100));
}

/// Writes samples of what is written now.
#[test]
#[expect(clippy::disallowed_methods, reason = "only for a change of the format")]
fn freeze_what_is_written_now() {
    let Ok(version) = std::env::var("BEFOREHAND_FREEZE") else { return };
    for kind in ["git", "plain"] {
        let mut world = World::new();
        world.write(".gitignore", ".env\n");
        for (path, text) in [("a", "one\n"), ("d/b", "two\n"), ("odd \\ name", "x")] {
            world.write(path, text);
        }
        chmod(&world.root().join("d/b"), 0o755);
        let root = world.root();
        if kind == "git" {
            git(&world, &root, "git init -q -b main && git add -A && git commit -qm one");
            git(&world, &root, "rm -rf .git/hooks && echo staged > s && git add s");
        }
        world.write(".env", "secret\n");
        chmod(&root.join(".env"), 0o600);
        world.run(&["create", "-m", "first"]);
        let first = messages_ids(&mut world).remove(0);
        let outside = root.with_file_name("outside");
        write(&outside, "victim\n");
        let line = format!("rm -rf d .env {}", outside.display());
        let payload = before(&root, "s1", "t1", "Bash", &json!({ "command": line }));
        hook(&world, &root, &payload);
        let done = payload.replace("PreToolUse", "PostToolUse");
        fs::remove_file(root.join("d/b")).unwrap();
        hook(&world, &root, &done);
        world.agent_writes("t2", "a", "two\n");
        world.run(&["list"]);
        run_maintenance(&world);
        let mut killed = beforehand(&world, &root, &["restore", &first, "--yes", "--force"]);
        killed.env("BEFOREHAND_TEST_CRASH_AT", "apply-rename").output().unwrap();
        let sample = samples().join(&version).join(kind);
        let listed = serde_json::to_string_pretty(&messages(&mut world)).unwrap();
        write(&sample.join("list.json"), listed + "\n");
        write(&sample.join("first"), first + "\n");
        freeze(&root, &sample.join("project"));
        freeze(&world.state(), &sample.join("state"));
    }
}

fn messages_ids(world: &mut World) -> Vec<String> {
    let list: Value = serde_json::from_str(&world.run(&["list", "--json"]).stdout).unwrap();
    let ids = list.as_array().unwrap().iter();
    ids.map(|one| one["id"].as_str().unwrap().to_owned()).collect()
}

/// Copies all but what git would not keep, and what says nothing of a format.
fn freeze(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let to = to.join(frozen(&name));
        if entry.file_type().unwrap().is_dir() {
            freeze(&entry.path(), &to);
        } else if !name.ends_with("lock") {
            write(&to, fs::read(entry.path()).unwrap());
        }
    }
}
