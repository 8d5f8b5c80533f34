//! Many at once: hooks of one turn, of one session, of many, in linked worktrees, beside the user's
//! own git and beside our own commands. No checkpoint is lost, and no git command fails because of
//! us.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Child,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use beforehand::process::Exit;
use serde_json::{Value, json};

use crate::support::{
    real::{answer, before, beforehand, git, hook, start_hook, try_git},
    temp::{on_disk, write},
    world::World,
};

fn repository() -> World {
    let world = World::new();
    for number in 0..20 {
        world.write(&format!("src/{number}"), format!("{number}\n").repeat(50));
    }
    git(&world, &world.root(), "git init -q -b main && git add -A && git commit -qm one");
    world.write("src/1", "changed\n");
    world.write("new", "untracked\n");
    world
}

/// The agent is about to run an unknown program.
fn before_unknown(dir: &Path, session: &str, turn: &str) -> String {
    before(dir, session, turn, "Bash", &json!({ "command": "./build.sh" }))
}

/// Starts them all, then waits for them all: none has anything to say, so each call is held.
#[track_caller]
fn all_at_once(world: &World, calls: &[(PathBuf, String)]) {
    let started: Vec<Child> =
        calls.iter().map(|(dir, payload)| start_hook(world, dir, payload)).collect();
    for child in started {
        assert_eq!(answer(child), json!({}));
    }
}

/// The ids of all checkpoints of a directory.
fn listed(world: &World, dir: &Path) -> Vec<String> {
    let output = beforehand(world, dir, &["list", "--json", "--all"]).output().unwrap();
    let list: Value = serde_json::from_slice(&output.stdout).unwrap_or(json!([]));
    let ids = list.as_array().unwrap().iter();
    ids.map(|one| one["id"].as_str().unwrap().to_owned()).collect()
}

/// Nothing is damaged, neither ours nor git's, and no lock or half of a file is left.
#[track_caller]
fn all_is_well(world: &World, dir: &Path) {
    let output = beforehand(world, dir, &["check", "--read-data"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    git(world, dir, "git fsck --strict --no-dangling 2>&1");
    let git_dir = git(world, dir, "git rev-parse --path-format=absolute --git-common-dir");
    let left: Vec<_> =
        on_disk(Path::new(&git_dir)).into_keys().filter(|it| is_litter(it)).collect();
    assert_eq!(left, Vec::<Vec<u8>>::new());
    let left: Vec<_> =
        on_disk(&world.state()).into_keys().filter(|it| is_half_written(it)).collect();
    assert_eq!(left, Vec::<Vec<u8>>::new());
    let private = world.private_of(Path::new(&git_dir));
    git(world, dir, &format!("git --git-dir={} fsck --strict --no-dangling", private.display()));
    // Files to lock by; they stay.
    let stays = [b"maintenance.lock".to_vec(), b"refs.lock".to_vec()];
    let is_ours = |it: &Vec<u8>| is_litter(it) && !stays.contains(it);
    let left: Vec<_> = on_disk(&private).into_keys().filter(is_ours).collect();
    assert_eq!(left, Vec::<Vec<u8>>::new());
}

fn is_litter(path: &[u8]) -> bool {
    path.ends_with(b".lock") || path.windows(4).any(|part| part == b"tmp_")
}

fn is_half_written(path: &[u8]) -> bool {
    path.windows(5).any(|part| part == b".tmp-" || part == b"/tmp-")
}

#[test]
fn sixty_four_calls_of_one_turn_make_one_checkpoint() {
    let world = repository();
    let (root, before) = (world.root(), on_disk(&world.root().join("src")));
    let call = || (root.clone(), before_unknown(&root, "s", "t"));
    all_at_once(&world, &[(); 64].map(|()| call()));
    assert_eq!(listed(&world, &root).len(), 1);
    all_is_well(&world, &root);
    fs::remove_file(root.join("src/1")).unwrap();
    let done = beforehand(&world, &root, &["restore", "1", "--yes"]).output().unwrap();
    assert!(done.status.success());
    assert_eq!(on_disk(&root.join("src")), before);
}

#[test]
fn calls_of_many_turns_and_sessions_find_what_is_held() {
    let world = repository();
    let root = world.root();
    let calls: Vec<_> = (0..24)
        .map(|n| (root.clone(), before_unknown(&root, &format!("s{}", n % 12), &format!("t{n}"))))
        .collect();
    all_at_once(&world, &calls);
    // Each session has its own, though nothing changed in between.
    let count = listed(&world, &root).len();
    assert!((12..=24).contains(&count), "{count}");
    world.write("src/2", "later\n");
    all_at_once(&world, &calls);
    let more = listed(&world, &root).len() - count;
    assert!((12..=24).contains(&more), "{more}");
    all_is_well(&world, &root);
}

#[test]
fn plain_directories_take_many_at_once() {
    let world = World::new();
    let root = world.root();
    world.write("a", "a");
    let calls: Vec<_> =
        (0..24).map(|n| (root.clone(), before_unknown(&root, &format!("s{n}"), "t"))).collect();
    all_at_once(&world, &calls);
    assert_eq!(listed(&world, &root).len(), 24);
    let output = beforehand(&world, &root, &["check", "--read-data"]).output().unwrap();
    assert!(output.status.success());
}

#[test]
fn linked_worktrees_keep_to_themselves_at_the_same_time() {
    let world = repository();
    let trees: Vec<PathBuf> = (0..4)
        .map(|n| {
            let dir = world.root().with_file_name(format!("linked{n}"));
            let line = format!("git worktree add -q --detach {}", dir.display());
            git(&world, &world.root(), &line);
            write(&dir.join("own"), format!("{n}"));
            dir
        })
        .collect();
    let calls: Vec<_> = (0..24)
        .map(|n| {
            let dir = trees[n % 4].clone();
            let payload = before_unknown(&dir, &format!("s{n}"), "t");
            (dir, payload)
        })
        .collect();
    all_at_once(&world, &calls);
    for (n, dir) in trees.iter().enumerate() {
        assert_eq!(listed(&world, dir).len(), 6, "{n}: one for each session");
        fs::remove_file(dir.join("own")).unwrap();
        let done = beforehand(&world, dir, &["restore", "1", "--yes"]).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        assert_eq!(fs::read_to_string(dir.join("own")).unwrap(), n.to_string());
    }
    assert_eq!(listed(&world, &world.root()), Vec::<String>::new());
    all_is_well(&world, &world.root());
}

/// Signals the end when it is dropped, so that no thread runs on after a failed test.
struct Until<'a>(&'a AtomicBool);

impl Drop for Until<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `line` again and again until `calls` have been answered; why it failed, if it did.
fn beside(world: &World, line: &str, rounds: usize) -> Result<usize, String> {
    let (root, over) = (world.root(), AtomicBool::new(false));
    thread::scope(|scope| {
        let user = scope.spawn(|| {
            let mut times = 0;
            while !over.load(Ordering::Relaxed) || times == 0 {
                try_git(world, &root, line)?;
                times += 1;
            }
            Ok(times)
        });
        let until = Until(&over);
        for round in 0..rounds {
            let file = world.root().join("by-agent");
            write(&file, format!("{round}"));
            let call =
                |n| (root.clone(), before_unknown(&root, &format!("s{n}"), &round.to_string()));
            all_at_once(world, &[0, 1, 2, 3].map(call));
        }
        drop(until);
        user.join().unwrap()
    })
}

#[test]
fn the_users_commits_and_rebases_go_on_beside_us() {
    let world = repository();
    let line = "set -e; date +%N > mine; git add mine; git commit -qm x -- mine; git branch -f b; \
                git commit -q --amend -m y; git stash list; git status --porcelain > /dev/null; \
                git checkout -q -B side HEAD; git rebase -q b > /dev/null 2>&1 || \
                { git rebase --abort; exit 1; }; git checkout -q -B main";
    git(&world, &world.root(), "git add -A && git commit -qm all");
    let times = beside(&world, line, 5).unwrap();
    assert!(times > 0);
    all_is_well(&world, &world.root());
    assert!(listed(&world, &world.root()).len() >= 5);
}

#[test]
fn the_users_gc_takes_nothing_of_ours_while_we_save() {
    let world = repository();
    let line =
        "git reflog expire --expire=now --all && git gc -q --prune=now && git pack-refs --all";
    beside(&world, line, 5).unwrap();
    let ids = listed(&world, &world.root());
    // A gc that drops reflogs is a change, too.
    assert!(ids.len() >= 5, "{ids:?}");
    git(&world, &world.root(), "git gc -q --prune=now");
    all_is_well(&world, &world.root());
    let done =
        beforehand(&world, &world.root(), &["restore", &ids[ids.len() - 1], "--yes", "--force"])
            .output();
    assert!(done.unwrap().status.success());
    assert_eq!(world.read("by-agent"), "0");
}

#[test]
fn hooks_go_on_while_checkpoints_are_pruned_and_listed() {
    let world = repository();
    let root = world.root();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for args in [&["prune", "--keep", "2"][..], &["list"], &["status"]] {
            let (world, root, over) = (&world, &root, &over);
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    let done = beforehand(world, root, args).output().unwrap();
                    let said = String::from_utf8_lossy(&done.stderr);
                    assert!(matches!(done.status.code(), Some(0 | 1)), "{args:?}: {said}");
                    assert!(!said.contains("panicked"), "{args:?}: {said}");
                }
            });
        }
        let _until = Until(&over);
        for round in 0..6 {
            world.write("by-agent", format!("{round}"));
            let call =
                |n| (root.clone(), before_unknown(&root, &format!("s{n}"), &round.to_string()));
            all_at_once(&world, &[0, 1, 2, 3].map(call));
        }
    });
    all_is_well(&world, &root);
    let ids = listed(&world, &root);
    world.write("by-agent", "broken");
    let done =
        beforehand(&world, &root, &["restore", &ids[0], "--yes", "--force"]).output().unwrap();
    assert!(done.status.success());
    assert_eq!(world.read("by-agent"), "5");
}

#[test]
fn what_dead_owners_leave_needs_no_human() {
    let mut world = repository();
    let root = world.root();
    hook(&world, &root, &before_unknown(&root, "s", "t1"));
    // Killed while it waited for more input: nothing was begun.
    let mut child = start_hook(&world, &root, "{");
    child.kill().unwrap();
    child.wait().unwrap();
    // Killed in the middle of its refs, of its objects, of its record.
    let private = world.private();
    let refs = private.join("refs");
    write(&refs.join("anchors/main.lock"), "");
    write(&refs.join("checkpoints/main/a000000000000001.lock"), "");
    write(&private.join("objects/pack/tmp_pack_beforehand-1"), "half");
    write(&private.join("lock"), "a dead process");
    write(&world.state().join("objects/tmp-1-1"), "half");
    for file in fs::read_dir(world.state().join("roots")).unwrap() {
        write(&file.unwrap().path().join("lock"), "a dead process");
    }
    world.write("src/3", "more\n");
    assert_eq!(hook(&world, &root, &before_unknown(&root, "s", "t2")), json!({}));
    assert_eq!(listed(&world, &root).len(), 2);
    assert_eq!(world.run(&["prune", "--keep", "1"]).exit, Exit::Ok);
    // Maintenance in the background may be at work beside: then the prune frees nothing, and the
    // next round does it.
    let is_left = || refs.join("anchors/main.lock").exists();
    for _ in 0..600 {
        if is_left() {
            thread::sleep(std::time::Duration::from_millis(100));
            let round = world.run_in(Path::new("/"), &["maintain"], "");
            assert_eq!(round.exit, Exit::Ok, "{}", round.stderr);
        }
    }
    assert!(!is_left());
    all_is_well(&world, &root);
}

#[test]
fn a_clock_that_runs_backwards_changes_no_order() {
    for mut world in [World::new(), repository()] {
        for number in 0..4 {
            world.write("n", number.to_string());
            let message = format!("n{number}");
            assert_eq!(world.run(&["create", "-m", &message]).exit, Exit::Ok);
            world.wait(-3600);
        }
        let output = world.run(&["list", "--json"]).stdout;
        let list: Value = serde_json::from_str(&output).unwrap();
        let told: Vec<_> = list.as_array().unwrap().iter().map(|one| &one["summary"]).collect();
        assert_eq!(told, ["n3", "n2", "n1", "n0"]);
        assert_eq!(world.run(&["restore", "latest~1", "--yes", "--force"]).exit, Exit::Ok);
        assert_eq!(world.read("n"), "2");
    }
}
