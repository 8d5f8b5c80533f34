//! Another file system inside a project: named, asked about, never taken for the project's own. In
//! a mount namespace of our own; where there is none, these tests have nothing to show.

use std::process::{Command, Output};

use serde_json::Value;

use crate::support::world::World;

/// What every script begins with.
const BEGIN: &str = r#"
set -e
create() { "$TB" create -m "$1" >/dev/null 2>&1; }
hook() {
    printf '{"session_id":"s1","cwd":"%s","prompt_id":"%s","hook_event_name":"PreToolUse",
        "tool_name":"Bash","tool_input":{"command":"%s"},"tool_use_id":"x"}' "$PWD" "$1" "$2" |
        "$TB" hook --agent claude-code
}
mounted() { mount -t tmpfs none mnt; mkdir -p mnt/d; echo z > mnt/d/z; echo data > mnt/f; }
"#;

fn is_there() -> bool {
    let mut tried = Command::new("unshare");
    tried.args(["-rm", "mount", "-t", "tmpfs", "none", "/mnt"]);
    tried.output().is_ok_and(|output| output.status.success())
}

/// Runs a script in the project, where it may mount.
fn run(world: &World, script: &str) -> String {
    let script = format!("{BEGIN}{script}");
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", &script]).current_dir(world.root()).env_clear();
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin").envs(&world.env);
    command.env("TB", env!("CARGO_BIN_EXE_beforehand")).env("BEFOREHAND_AUTO_PRUNE", "off");
    let Output { status, stdout, stderr } = command.output().unwrap();
    assert!(status.success(), "{script}\n{}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

/// A plain directory and a repository, each with a directory that something can be mounted on.
fn projects() -> Vec<World> {
    if !is_there() {
        return Vec::new();
    }
    [World::new(), World::with_git()]
        .map(|world| {
            world.write("src/a", "a");
            world.write("mnt/under", "u");
            world.write("mnt/deep/er", "u");
            world
        })
        .into()
}

fn not_held(shown: &str) -> Vec<(String, String)> {
    let shown: Value = serde_json::from_str(shown).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let skipped = shown["skipped"].as_array().unwrap();
    skipped.iter().map(|it| (text(&it["path"]), text(&it["reason"]))).collect()
}

/// The directory it is in does not change when something is mounted or taken off.
#[test]
fn what_is_mounted_over_a_directory_that_was_seen_before_is_named_until_it_is_gone() {
    for world in projects() {
        let there = [("mnt".to_owned(), "other-file-system".to_owned())];
        let shown = run(&world, "create one; mounted; create two; \"$TB\" show latest --json");
        assert_eq!(not_held(&shown), there);
        let shown = run(&world, "mounted; create three; create four; \"$TB\" show latest --json");
        assert_eq!(not_held(&shown), there);
        let shown = run(&world, "create five; \"$TB\" show latest --json");
        assert_eq!(not_held(&shown), []);
        let files =
            run(&world, "rm -r mnt; \"$TB\" restore latest --yes > /dev/null; find mnt -type f");
        assert_eq!(files.lines().count(), 2, "what was under it is held again: {files}");
    }
}

#[test]
fn a_call_that_destroys_it_is_asked_about_or_holds_it() {
    for world in projects() {
        let answer = run(&world, "mounted; hook t1 'make all'; echo");
        assert!(answer.contains("is on another file system, and so is not held: mnt"), "{answer}");
        let answer = run(&world, "mounted; hook t2 'make more'");
        assert_eq!(answer.trim(), "{}", "said once a session");
        let answer = run(&world, "mounted; hook t3 'rm -rf ../shop'");
        assert!(answer.contains("ask") && answer.contains("not held: mnt"), "{answer}");
        let shown = run(&world, "mounted; hook t4 'rm -rf mnt' >&2; \"$TB\" show latest --json");
        assert_eq!(not_held(&shown), [], "what is named is held");
        let line = "mounted; truncate -s 3G mnt/big; dd if=/dev/urandom of=mnt/big bs=1M count=70 \
                    conv=notrunc 2>&2; hook t5 'rm -rf mnt'";
        let answer = run(&world, line);
        assert!(answer.contains("ask") && answer.contains("not held: mnt/big"), "{answer}");
    }
}

/// A file that something is mounted on cannot be replaced.
#[test]
fn what_could_not_be_restored_is_not_counted() {
    for world in projects() {
        let script = r#"create one; echo mine > src/a; echo b > b; mount --bind b src/a
            "$TB" restore 1 --force --yes 2>&1 || true"#;
        let said = run(&world, script);
        assert!(said.contains("nothing was restored"), "{said}");
        assert!(said.contains("warning: not restored: src/a"), "{said}");
    }
}
