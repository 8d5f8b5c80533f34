//! Maintenance that is killed, that runs beside saves, and that leaves repositories intact for git.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use beforehand::{process::Exit, state::StateDir};
use serde_json::json;

use crate::{
    maintenance::{ids, live, run_maintenance},
    support::{
        real,
        temp::{on_disk, write},
        world::World,
    },
};

/// Where a round can be killed, and how often it comes there in [`full`].
const POINTS: [(&str, u32); 4] =
    [("maintenance-slice", 1), ("forget-record", 6), ("sweep-object", 3), ("maintenance-write", 1)];

/// A project with eight checkpoints of which one may stay.
fn full(mut world: World) -> World {
    for n in 0..8 {
        world.write("a", format!("{n}").repeat(1000));
        world.write(".env", format!("secret {n}"));
        world.wait(1);
        let output = world.run(&["create"]);
        assert_eq!(output.exit, Exit::Ok, "{}", output.stderr);
    }
    world.set("BEFOREHAND_MAX_TOTAL_SIZE", "1");
    world
}

/// A round in a process of its own that dies at `point`; tells whether it came there.
fn killed_at(world: &World, point: &str) -> bool {
    let status = Command::new(env!("CARGO_BIN_EXE_beforehand"))
        .arg("maintain")
        .current_dir("/")
        .env_clear()
        .envs(&world.env)
        .env("BEFOREHAND_TEST_CRASH_AT", point)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    status.code().is_none()
}

/// The names of everything in the store but what tells times.
fn names(world: &World) -> Vec<String> {
    let files = on_disk(&world.state()).into_keys();
    let names = files.map(|name| String::from_utf8(name).unwrap());
    names.filter(|name| name.starts_with("objects/") || name.starts_with("repositories/")).collect()
}

fn is_sound(world: &mut World, point: &str) {
    let output = world.run(&["check", "--read-data"]);
    assert_eq!(output.exit, Exit::Ok, "{point}: {}{}", output.stdout, output.stderr);
}

#[test]
fn a_round_killed_anywhere_leaves_work_for_the_next_and_nothing_else() {
    for make in [World::new, World::with_git] {
        for (point, times) in POINTS {
            for nth in 1..=times {
                let point = format!("{point}:{nth}");
                let mut world = full(make());
                let all = ids(&mut world);
                assert!(killed_at(&world, &point), "{point} is never reached");
                is_sound(&mut world, &point);
                assert_eq!(ids(&mut world)[0], all[0], "{point}: the newest stays");
                run_maintenance(&world);
                assert_eq!(ids(&mut world), all[..1], "{point}");
                is_sound(&mut world, &point);
                let left = names(&world);
                run_maintenance(&world);
                assert_eq!(names(&world), left, "{point}: nothing is left to do");
                world.write("a", "on it goes");
                assert_eq!(world.run(&["create"]).exit, Exit::Ok, "{point}");
            }
        }
    }
}

#[test]
fn a_root_that_is_half_removed_is_removed_by_the_next_round() {
    let mut world = full(World::new());
    world.set("BEFOREHAND_RETENTION", "1d");
    fs::rename(world.root(), world.root().with_file_name("away")).unwrap();
    run_maintenance(&world);
    let place = StateDir::new(world.state()).root_at(&world.root());
    world.wait(25 * 60 * 60);
    // Time passes, and nothing goes yet.
    world.set("BEFOREHAND_DELETE_ORPHANS", "no");
    run_maintenance(&world);
    world.set("BEFOREHAND_DELETE_ORPHANS", "yes");
    assert!(place.dir().is_dir());
    world.wait(25 * 60 * 60);
    assert!(killed_at(&world, "maintenance-remove-orphan"), "it is never reached");
    assert!(place.dir().is_dir(), "all or nothing");
    run_maintenance(&world);
    assert!(!place.dir().exists());
}

#[test]
fn hooks_and_rounds_beside_each_other_lose_nothing() {
    for mut world in [World::new(), World::with_git()] {
        world.write("f", "0");
        world.set("BEFOREHAND_MAX_TOTAL_SIZE", "1");
        world.set("BEFOREHAND_DEADLINE", "60s");
        world.set("BEFOREHAND_STORE", "auto");
        let done = AtomicBool::new(false);
        let shared = &world;
        thread::scope(|scope| {
            let hooks: Vec<_> = (0..4)
                .map(|session| scope.spawn(move || (0..8).for_each(|n| call(shared, session, n))))
                .collect();
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    run_maintenance(shared);
                }
            });
            let ended: Vec<_> = hooks.into_iter().map(thread::ScopedJoinHandle::join).collect();
            // First, so that a hook that failed does not leave the others at it for ever.
            done.store(true, Ordering::Relaxed);
            ended.into_iter().for_each(Result::unwrap);
        });
        is_sound(&mut world, "storm");
        run_maintenance(&world);
        assert_eq!(ids(&mut world).len(), 1);
        is_sound(&mut world, "storm");
    }
}

/// One call that has something to save; it must not fail whatever goes on beside it.
fn call(world: &World, session: usize, n: usize) {
    world.write(&format!("s{session}"), format!("{n}"));
    world.write(&format!(".env{session}"), format!("{n}"));
    let payload = json!({
        "session_id": format!("s{session}"), "cwd": world.root(), "prompt_id": format!("t{n}"),
        "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": "x",
        "tool_input": { "command": "make" },
    });
    let args = ["hook", "--agent", "claude-code"];
    let output = world.run_in(&world.root(), &args, &payload.to_string());
    assert_eq!((output.exit, &*output.stderr), (Exit::Ok, ""));
    assert!(!output.stdout.contains("NOT protected"), "{}", output.stdout);
}

/// Runs git in the project; `None`, and a word, where there is no git.
fn git(world: &World, args: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@b"])
        .args(args)
        .current_dir(world.root())
        .env_remove("GIT_DIR")
        .env("HOME", world.state())
        .output();
    let Ok(output) = output else {
        #[expect(clippy::disallowed_methods, reason = "set by .ci/run")]
        let is_required = std::env::var_os("BEFOREHAND_REQUIRE_GIT").is_some();
        assert!(!is_required, "there is no git");
        #[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
        {
            eprintln!("skipped: there is no git");
        }
        return None;
    };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "git {args:?}: {said}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn what_was_held_and_then_committed_survives_a_round_and_gc() {
    let mut world = World::with_git();
    let root = StateDir::new(world.state()).root_at(&world.root());
    world.write("wanted", "held first, then committed\n");
    for n in 0..22 {
        // Enough for a pack each time.
        for file in 0..80 {
            world.write(&format!("d/f{file}"), format!("{n} {file}"));
        }
        world.wait(1);
        assert_eq!(world.run(&["create"]).exit, Exit::Ok);
    }
    if git(&world, &["add", "wanted"]).is_none() {
        return;
    }
    git(&world, &["commit", "-qm", "wanted"]);
    let packs = |world: &World| {
        let dir = world.private().join("objects/pack");
        let names = fs::read_dir(dir).into_iter().flatten().flatten();
        names
            .filter(|name| Path::new(&name.file_name()).extension().is_some_and(|it| it == "pack"))
            .count()
    };
    world.set("BEFOREHAND_MAX_TOTAL_SIZE", "1");
    world.run_started();
    run_maintenance(&world);
    assert!(packs(&world) <= 16, "{} packs", packs(&world));
    assert_eq!(fs::read_dir(root.checkpoints()).unwrap().count(), 1);
    git(&world, &["fsck", "--strict", "--no-dangling"]);
    git(&world, &["gc", "-q", "--prune=now"]);
    git(&world, &["fsck", "--strict", "--no-dangling"]);
    let shown = git(&world, &["show", "HEAD:wanted"]);
    assert_eq!(shown.as_deref(), Some("held first, then committed\n"));
    is_sound(&mut world, "gc");
}

/// The refs of worktrees in the project's private repository.
fn refs(world: &World) -> Vec<String> {
    let line = format!(
        "git --git-dir={} for-each-ref --format='%(refname)' refs/checkpoints refs/anchors",
        world.private().display()
    );
    let all = real::git(world, &world.root(), &line);
    let is_of_a_worktree = |name: &&str| *name != "refs/anchors/administration";
    all.lines().filter(is_of_a_worktree).map(str::to_owned).collect()
}

#[test]
fn a_linked_worktree_that_was_removed_leaves_no_refs_behind() {
    for (way, pruned) in [("round", false), ("round", true), ("clear", false)] {
        let mut world = World::new();
        world.write("a", "main");
        let root = world.root();
        real::git(&world, &root, "git init -q -b main && git add -A && git commit -qm one");
        real::git(&world, &root, "git worktree add -q ../linked");
        let linked = root.with_file_name("linked");
        assert_eq!(world.run(&["create"]).exit, Exit::Ok);
        write(&linked.join("a"), "only in the worktree");
        assert_eq!(world.run_in(&linked, &["create"], "").exit, Exit::Ok);
        let ours = |name: &String| {
            name.starts_with("refs/checkpoints/main/") || name == "refs/anchors/main"
        };
        assert_eq!(refs(&world).iter().filter(|name| !ours(name)).count(), 2);
        fs::rename(&linked, linked.with_extension("away")).unwrap();
        if pruned {
            real::git(&world, &root, "git worktree prune");
        }
        if way == "clear" {
            let args = ["clear", "--root", linked.to_str().unwrap(), "--yes"];
            assert_eq!(world.run(&args).exit, Exit::Ok);
        } else {
            live(&mut world, 14);
            assert_eq!(refs(&world).len(), 4, "it may yet come back");
            live(&mut world, 3);
        }
        let left = refs(&world);
        assert!(left.len() == 2 && left.iter().all(ours), "{way} {pruned}: {left:?}");
        real::git(&world, &root, "git gc -q --prune=now && git fsck --strict");
        assert_eq!(world.run(&["check", "--read-data"]).exit, Exit::Ok);
    }
}
