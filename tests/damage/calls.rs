//! Damage as the next call meets it: it is noticed, held anew, or told.

use std::{
    fs,
    path::{Path, PathBuf},
};

use beforehand::process::Exit;
use serde_json::json;

use super::{block, is_kind, overwrite, own_files, private_git, project, repository};
use crate::{
    maintenance::run_maintenance,
    support::{real, world::World},
};

/// All packs of ours.
fn own_packs(world: &World) -> Vec<PathBuf> {
    let packs = own_files(world, "/pack").into_iter();
    packs.filter(|it| is_kind(it, "pack") || it.parent().unwrap().ends_with("packs")).collect()
}

/// A way in which a pack can be damaged.
type PackHarm = (&'static str, fn(&Path));

/// Packs of ours, emptied, cut, replaced or gone: the next call holds everything anew before it runs, also an edit
/// of a file that its turn holds.
#[test]
fn a_pack_that_is_damaged_is_noticed_by_the_next_call() {
    fn cut(pack: &Path) {
        let bytes = fs::read(pack).unwrap();
        overwrite(pack, &bytes[..bytes.len() / 2]);
    }
    fn zero(pack: &Path) {
        overwrite(pack, vec![0; fs::read(pack).unwrap().len()]);
    }
    let harms: [PackHarm; 6] = [
        ("emptied", |pack| overwrite(pack, "")),
        ("cut", cut),
        ("zeroed", zero),
        ("a pipe", |pack| block(pack, 0)),
        ("a directory", |pack| block(pack, 3)),
        ("gone", |pack| fs::remove_file(pack).unwrap()),
    ];
    for (how, harm) in harms {
        for is_git in [false, true] {
            for is_edit in [false, true] {
                let mut world = project(if is_git { World::with_git() } else { World::new() });
                let case = format!("{how}, git: {is_git}, edit: {is_edit}");
                for turn in ["t2", "t3"] {
                    assert_eq!(world.before_bash(turn, "make"), "{}", "{case}");
                }
                for pack in own_packs(&world) {
                    harm(&pack);
                }
                if is_edit {
                    world.agent_writes("t3", "dir/a", "fourth\n");
                } else {
                    assert_eq!(world.before_bash("t4", "rm -rf dir .env"), "{}", "{case}");
                    beforehand::fs::remove_tree(&world.root().join("dir")).unwrap();
                    fs::remove_file(world.root().join(".env")).unwrap();
                }
                let done = world.run(&["restore", "latest", "--yes", "--force"]);
                assert_eq!(done.exit, Exit::Ok, "{case}: {}{}", done.stdout, done.stderr);
                assert_eq!(world.read("dir/a"), "third\n", "{case}");
                assert_eq!(world.read(".env"), "secret\n", "{case}");
            }
        }
    }
}

#[test]
fn what_is_in_the_way_of_a_file_of_ours_is_set_aside_by_the_next_call() {
    for part in ["sessions/", "roots/", "objects.lock", "root.json"] {
        for how in 2..5 {
            let mut world = project(World::new());
            let mut files = own_files(&world, part);
            files.retain(|path| {
                is_kind(path, "lock") || path.ends_with("lock") || part == "root.json"
            });
            assert_eq!(files.len(), 1, "{part}: {files:?}");
            block(&files[0], how);
            world.write("dir/a", "fourth\n");
            assert_eq!(world.before_bash("t2", "rm -rf dir"), "{}", "{part} {how}");
            beforehand::fs::remove_tree(&world.root().join("dir")).unwrap();
            let done = world.run(&["restore", "latest", "--yes", "--force"]);
            assert_eq!(done.exit, Exit::Ok, "{part} {how}: {}{}", done.stdout, done.stderr);
            assert_eq!(world.read("dir/a"), "fourth\n", "{part} {how}");
            let name = files[0].file_name().unwrap().to_str().unwrap();
            let aside = files[0].with_file_name(format!("{name}.aside-1"));
            // A new name is in the place of a link by itself.
            let is_replaced = how == 2 && part == "root.json";
            assert!(aside.symlink_metadata().is_ok() || is_replaced, "{part} {how}");
        }
    }
}

/// A byte flipped inside of a file changes nothing that a call compares.
#[test]
fn a_flipped_byte_is_found_by_maintenance_and_held_anew() {
    for mut world in [project(World::new()), repository()] {
        for turn in ["t2", "t3"] {
            assert_eq!(world.before_bash(turn, "make"), "{}");
        }
        for pack in &own_packs(&world) {
            let mut bytes = fs::read(pack).unwrap();
            bytes[20] ^= 1;
            overwrite(pack, bytes);
        }
        // As many runs as it takes to come around.
        for _ in 0..15 {
            run_maintenance(&world);
        }
        assert_eq!(world.before_bash("t4", "rm -rf dir .env"), "{}");
        beforehand::fs::remove_tree(&world.root().join("dir")).unwrap();
        fs::remove_file(world.root().join(".env")).unwrap();
        let done = world.run(&["restore", "latest", "--yes", "--force"]);
        assert_eq!(done.exit, Exit::Ok, "{}{}", done.stdout, done.stderr);
        assert_eq!((&*world.read("dir/a"), &*world.read(".env")), ("third\n", "secret\n"));
    }
}

#[test]
fn a_checkpoint_without_its_record_says_that_it_is_incomplete() {
    let mut world = repository();
    world.write("dir/a", "later\n");
    assert_eq!(world.run(&["create", "-m", "last"]).exit, Exit::Ok);
    let latest = world.run(&["list"]).stdout;
    let id = latest.split_whitespace().nth(1).unwrap().to_owned();
    let record = own_files(&world, "checkpoints/").into_iter();
    let record = record.into_iter().find(|path| path.to_str().unwrap().contains(&id)).unwrap();
    fs::remove_file(record).unwrap();
    // The private part of the record is a copy of what is lost.
    private_git(
        &world,
        "git for-each-ref --format='delete %(refname)' refs/private | git update-ref --stdin",
    );
    let listed = world.run(&["list", "--all"]).stdout;
    assert!(listed.contains("record lost"), "{listed}");
    let shown = world.run(&["show", &id]).stdout;
    assert!(shown.contains("its record is lost"), "{shown}");
    world.write("dir/a", "other\n");
    fs::remove_file(world.root().join(".env")).unwrap();
    let restored = world.run(&["restore", &id, "--yes", "--force"]);
    assert_eq!(restored.exit, Exit::Conflicts, "{}{}", restored.stdout, restored.stderr);
    assert!(restored.stdout.contains("is incomplete"), "{}{}", restored.stdout, restored.stderr);
    assert_eq!(world.read("dir/a"), "later\n");
}

/// No answer stops them, but the agent waits for one.
#[test]
fn a_hook_that_is_stuck_answers_every_event() {
    let world = project(World::new());
    let events = [
        json!({ "hook_event_name": "UserPromptSubmit", "prompt": "go on" }),
        json!({ "hook_event_name": "PostToolUse", "tool_name": "Bash",
                "tool_input": { "command": "make" }, "tool_response": "" }),
        json!({ "hook_event_name": "Stop" }),
    ];
    for event in events {
        let mut payload = json!({ "session_id": "s", "cwd": world.root(), "prompt_id": "t9" });
        payload.as_object_mut().unwrap().extend(event.as_object().unwrap().clone());
        let mut hook = real::beforehand(&world, &world.root(), &["hook", "--agent", "claude-code"]);
        hook.env("BEFOREHAND_DEADLINE", "100ms");
        hook.env("BEFOREHAND_TEST_RUN_AT", "replace-file:exec sleep 5 > /dev/null 2>&1");
        let mut hook = hook.spawn().unwrap();
        let payload = payload.to_string();
        std::io::Write::write_all(&mut hook.stdin.take().unwrap(), payload.as_bytes()).unwrap();
        let answer = real::answer(hook).to_string();
        assert!(answer.contains("was stuck"), "{event}: {answer}");
    }
}

/// Whatever it is that does not come back, the agent gets an answer, and it names what the call would lose.
#[test]
fn a_hook_that_is_stuck_answers_all_the_same() {
    let world = project(World::new());
    world.write("dir/a", "fourth\n");
    let line = format!("rm {}", world.root().join("dir/a").display());
    let payload = real::before(&world.root(), "s", "t9", "Bash", &json!({ "command": line }));
    let mut hook = real::beforehand(&world, &world.root(), &["hook", "--agent", "claude-code"]);
    hook.env("BEFOREHAND_DEADLINE", "100ms");
    hook.env("BEFOREHAND_TEST_RUN_AT", "pack-write:exec sleep 5 > /dev/null 2>&1");
    let mut hook = hook.spawn().unwrap();
    std::io::Write::write_all(&mut hook.stdin.take().unwrap(), payload.as_bytes()).unwrap();
    let answer = real::answer(hook).to_string();
    assert!(answer.contains("\"ask\"") && answer.contains("was stuck"), "{answer}");
    assert!(answer.contains("not held: dir/a"), "{answer}");
}
