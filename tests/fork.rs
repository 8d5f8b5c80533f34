//! `beforehand fork`: another directory as it was before a turn, with a repository of its own.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use beforehand::fs::remove_tree;
use serde_json::Value;

use crate::{
    evidence::{ours, run, writes},
    support::{
        real::git,
        temp::{Files, chmod, link, on_disk, write},
        world::World,
    },
};

/// A project in both kinds of store.
fn projects() -> [World; 2] {
    [World::new(), World::with_git()].map(|mut world| {
        write(&world.settings(), "deadline = \"60s\"\n");
        world.write("a", "first");
        world.write("dir/deep/b", "first");
        world.write("run.sh", "#!/bin/sh\n");
        chmod(&world.root().join("run.sh"), 0o750);
        link(&world.root().join("link"), "dir/deep/b");
        fs::create_dir(world.root().join("empty")).unwrap();
        run(&mut world, "zero", "make nothing", |_| ());
        world
    })
}

fn beside(world: &World, name: &str) -> PathBuf {
    world.root().with_file_name(name)
}

/// What is in a directory, git's own aside.
fn files(dir: &Path) -> Files {
    let mut files = on_disk(dir);
    files.retain(|path, _| path.split(|byte| *byte == b'/').all(|name| name != b".git"));
    files
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_fork_has_the_files_from_before_the_turn_and_the_project_stays_as_it_is() {
    for mut world in projects() {
        let then = files(&world.root());
        writes(&mut world, "one", "a", "second");
        writes(&mut world, "two", "new", "third");
        remove_tree(&world.root().join("dir")).unwrap();
        let now = on_disk(&world.root());
        let plan = ours(&mut world, &["fork", "2", "--dry-run", "--no-conversation"], 0);
        assert!(plan.stdout.contains("would fork 4 files as before turn 2"), "{}", plan.stdout);
        let fork = beside(&world, "shop-fork-2");
        assert!(!fork.exists(), "a dry run makes nothing");
        let done = ours(&mut world, &["fork", "2", "--no-conversation"], 0);
        assert!(done.stdout.contains("shop-fork-2"), "{}", done.stdout);
        assert!(files(&fork) == then, "{}", done.stdout);
        assert!(on_disk(&world.root()) == now, "byte for byte");
        let listed = ours(&mut world, &["fork", "--list", "--json"], 0).stdout;
        assert_eq!(parsed(&listed)["forks"][0]["is_there"], true, "{listed}");
        // The second has a name of its own.
        ours(&mut world, &["fork", "2", "--no-conversation"], 0);
        assert!(files(&beside(&world, "shop-fork-2-2")) == then);
    }
}

#[test]
fn a_fork_is_a_root_of_its_own_at_once() {
    for mut world in projects() {
        writes(&mut world, "one", "a", "second");
        let fork = beside(&world, "try");
        ours(&mut world, &["fork", "1", fork.to_str().unwrap(), "--no-conversation"], 0);
        let input = serde_json::json!({ "command": "rm -rf dir" });
        let payload = serde_json::json!({
            "session_id": "t", "cwd": fork, "hook_event_name": "PreToolUse", "tool_name": "Bash",
            "tool_input": input, "tool_use_id": "1", "prompt_id": "p",
        });
        world.wait(1);
        let args = ["hook", "--agent", "claude-code"];
        assert_eq!(world.run_in(&fork, &args, &payload.to_string()).stdout, "{}");
        let before = files(&fork);
        remove_tree(&fork.join("dir")).unwrap();
        let now = on_disk(&world.root());
        let back = world.run_in(&fork, &["restore", "1", "--yes", "--force"], "");
        assert_eq!(back.exit.code(), 0, "{}{}", back.stdout, back.stderr);
        assert!(files(&fork) == before);
        assert!(on_disk(&world.root()) == now);
    }
}

#[test]
fn a_directory_that_will_not_do_is_refused_and_nothing_is_made() {
    for mut world in projects() {
        writes(&mut world, "one", "a", "second");
        let full = beside(&world, "full");
        write(&full.join("mine"), "mine");
        write(&beside(&world, "file"), "mine");
        let all = on_disk(world.root().parent().unwrap());
        for (dir, why) in [
            ("../full", "is not empty"),
            ("../file", "is no directory"),
            ("inner", "is inside the project"),
            (".git/x", "is"),
            ("../none/x", "cannot find"),
            ("../../home/.local/state/beforehand/x", "no place for files"),
        ] {
            let done = ours(&mut world, &["fork", "1", dir], 1);
            assert!(done.stderr.contains(why) || dir == ".git/x", "{dir}: {}", done.stderr);
            let is_told = done.stderr.contains("/full/shop-fork");
            assert_eq!(is_told, dir == "../full", "what to name instead: {}", done.stderr);
        }
        ours(&mut world, &["fork", "99"], 1);
        assert!(on_disk(world.root().parent().unwrap()) == all);
        assert!(ours(&mut world, &["fork", "--list"], 0).stdout.starts_with("no forks"));
    }
}

#[test]
fn a_fork_without_its_conversation_is_no_error() {
    let [mut world, _] = projects();
    writes(&mut world, "one", "a", "second");
    let done = ours(&mut world, &["fork", "1"], 3);
    assert!(done.stderr.contains("note: the conversation is not forked: "), "{}", done.stderr);
    assert!(!done.stderr.contains("error: "), "{}", done.stderr);
    assert!(beside(&world, "shop-fork-1").exists());
}

#[test]
fn what_a_program_makes_again_is_named_as_missing_in_the_fork() {
    for mut world in projects() {
        world.write("package.json", "{}");
        world.write("node_modules/lib/index.js", "lib");
        writes(&mut world, "one", "a", "second");
        let done = ours(&mut world, &["fork", "1", "--no-conversation"], 0);
        assert!(
            done.stderr.contains("missing, because it was not held: node_modules"),
            "{}",
            done.stderr
        );
        assert!(!beside(&world, "shop-fork-1/node_modules").exists());
    }
}

#[test]
fn a_dropped_fork_is_held_and_can_be_brought_back() {
    for mut world in projects() {
        writes(&mut world, "one", "a", "second");
        ours(&mut world, &["fork", "1", "--no-conversation"], 0);
        let fork = beside(&world, "shop-fork-1");
        write(&fork.join("work"), "of its own");
        fs::remove_file(fork.join("a")).unwrap();
        let (then, now) = (files(&fork), on_disk(&world.root()));
        ours(&mut world, &["fork", "--drop", "shop-fork-1"], 1);
        assert!(files(&fork) == then, "without a yes nothing happens");
        let done = ours(&mut world, &["fork", "--drop", "shop-fork-1", "--yes"], 0);
        assert!(!fork.exists(), "{}", done.stdout);
        assert!(on_disk(&world.root()) == now);
        assert!(ours(&mut world, &["fork", "--list"], 0).stdout.starts_with("no forks"));
        ours(&mut world, &["restore", "latest", "--root", fork.to_str().unwrap(), "--yes"], 0);
        assert!(files(&fork) == then, "all of it");
    }
}

#[test]
fn what_cannot_be_held_of_a_fork_is_asked_about() {
    for mut world in projects() {
        writes(&mut world, "one", "a", "second");
        ours(&mut world, &["fork", "1", "--no-conversation"], 0);
        let big = beside(&world, "shop-fork-1/big");
        write(&world.settings(), "deadline = \"60s\"\nexclude = [\"big\"]\n");
        write(&big, "not held");
        let done = ours(&mut world, &["fork", "--drop", "shop-fork-1", "--yes"], 1);
        assert!(done.stderr.contains("not held: big"), "{}", done.stderr);
        assert!(big.exists() && beside(&world, "shop-fork-1/a").exists());
        ours(&mut world, &["fork", "--drop", "shop-fork-1", "--yes", "--force"], 0);
        assert!(!beside(&world, "shop-fork-1").exists());
    }
}

/// Some files are in no checkpoint whatever the settings say.
#[test]
fn what_no_checkpoint_ever_has_stays_in_a_fork_or_is_named() {
    for mut world in projects() {
        writes(&mut world, "one", "a", "second");
        ours(&mut world, &["fork", "1", "--no-conversation"], 0);
        let fork = beside(&world, "shop-fork-1");
        let never = [".beforehand-tmp-repository/x", ".git/index.lock", ".git/objects/note"];
        for name in never {
            write(&fork.join(name), "mine");
        }
        write(&fork.join("package.json"), "{}");
        write(&fork.join("node_modules/mine"), "mine");
        let before = on_disk(&fork);
        let plan = ours(&mut world, &["fork", "--drop", "shop-fork-1", "--dry-run"], 0).stdout;
        assert!(plan.contains("not held: node_modules"), "{plan}");
        for name in never {
            assert!(plan.contains(&format!("for it is never held: {name}")), "{plan}");
        }
        assert!(on_disk(&fork) == before, "a dry run removes nothing");
        let done = ours(&mut world, &["fork", "--drop", "shop-fork-1", "--yes"], 1);
        assert!(done.stderr.contains("not held: node_modules"), "{}", done.stderr);
        for name in never {
            assert!(done.stderr.contains(&format!("never held: {name}")), "{}", done.stderr);
            assert_eq!(fs::read_to_string(fork.join(name)).unwrap(), "mine");
        }
        ours(&mut world, &["fork", "--drop", "shop-fork-1", "--yes", "--force"], 0);
        assert!(!fork.exists());
    }
}

#[test]
fn a_fork_whose_directory_is_another_one_by_now_is_only_forgotten() {
    for mut world in projects() {
        writes(&mut world, "one", "a", "second");
        ours(&mut world, &["fork", "1", "--no-conversation"], 0);
        let fork = beside(&world, "shop-fork-1");
        fs::rename(&fork, beside(&world, "away")).unwrap();
        write(&fork.join("mine"), "mine");
        let done = ours(&mut world, &["fork", "--drop", "shop-fork-1", "--yes"], 0);
        assert!(done.stdout.contains("its directory was already gone"), "{}", done.stdout);
        assert_eq!(fs::read_to_string(fork.join("mine")).unwrap(), "mine");
    }
}

#[test]
fn a_fork_that_was_killed_has_a_name_and_can_be_dropped() {
    for point in ["entered", "directory", "files", "repositories", "hold", "finish"] {
        for mut world in projects() {
            writes(&mut world, "one", "a", "second");
            let now = on_disk(&world.root());
            let died = Command::new(env!("CARGO_BIN_EXE_beforehand"))
                .args(["fork", "1", "../try", "--no-conversation"])
                .current_dir(world.root())
                .env_clear()
                .envs(&world.env)
                .env("BEFOREHAND_TEST_CRASH_AT", format!("fork-{point}"))
                .output()
                .unwrap();
            assert!(died.status.code().is_none(), "{point} is never reached");
            assert!(on_disk(&world.root()) == now, "{point}");
            let listed = ours(&mut world, &["fork", "--list"], 0).stdout;
            assert!(listed.contains("try") && listed.contains("unfinished"), "{point}: {listed}");
            ours(&mut world, &["fork", "1", "../try", "--no-conversation"], 1);
            ours(&mut world, &["fork", "--drop", "try", "--yes"], 0);
            assert!(!beside(&world, "try").exists(), "{point}");
            ours(&mut world, &["fork", "1", "../try", "--no-conversation"], 0);
        }
    }
}

/// A copy that it was writing is no work of the user's.
#[test]
fn a_fork_that_was_killed_while_it_wrote_a_file_can_be_dropped() {
    for mut world in projects() {
        writes(&mut world, "one", "a", "second");
        let died = Command::new(env!("CARGO_BIN_EXE_beforehand"))
            .args(["fork", "1", "../try", "--no-conversation"])
            .current_dir(world.root())
            .env_clear()
            .envs(&world.env)
            .env("BEFOREHAND_TEST_CRASH_AT", "apply-rename")
            .output()
            .unwrap();
        assert!(died.status.code().is_none(), "never reached");
        let names = beforehand::fs::names_in(&beside(&world, "try"));
        assert!(
            names.iter().any(|name| name.to_string_lossy().starts_with(".beforehand-tmp-")),
            "{names:?}"
        );
        ours(&mut world, &["fork", "--drop", "try", "--yes"], 0);
        assert!(!beside(&world, "try").exists());
    }
}

#[test]
fn a_project_and_its_fork_that_were_moved_together_find_each_other() {
    for mut world in projects() {
        writes(&mut world, "one", "a", "second");
        ours(&mut world, &["fork", "1", "../try", "--no-conversation"], 0);
        write(&beside(&world, "try").join("new"), "new");
        let above = world.root().parent().unwrap().to_owned();
        let moved = above.with_file_name("moved");
        fs::rename(&above, &moved).unwrap();
        let done = world.run_in(&moved.join("try"), &["fork", "--keep", "--dry-run"], "");
        assert!(done.stdout.contains("add       new"), "{}{}", done.stdout, done.stderr);
        let listed = world.run_in(&moved.join("shop"), &["fork", "--list"], "").stdout;
        assert!(listed.contains("moved/try") && !listed.contains("gone"), "{listed}");
        let done = world.run_in(&moved.join("shop"), &["fork", "--keep", "try", "--yes"], "");
        assert_eq!(done.exit.code(), 0, "{}{}", done.stdout, done.stderr);
        assert_eq!(fs::read_to_string(moved.join("shop/new")).unwrap(), "new");
    }
}

#[test]
fn a_drop_that_was_killed_can_be_done_again() {
    for point in ["held", "cleared", "removed"] {
        for mut world in projects() {
            writes(&mut world, "one", "a", "second");
            ours(&mut world, &["fork", "1", "../try", "--no-conversation"], 0);
            let died = Command::new(env!("CARGO_BIN_EXE_beforehand"))
                .args(["fork", "--drop", "try", "--yes"])
                .current_dir(world.root())
                .env_clear()
                .envs(&world.env)
                .env("BEFOREHAND_TEST_CRASH_AT", format!("drop-{point}"))
                .output()
                .unwrap();
            assert!(died.status.code().is_none(), "{point} is never reached");
            ours(&mut world, &["fork", "--drop", "try", "--yes"], 0);
            assert!(!beside(&world, "try").exists(), "{point}");
        }
    }
}

#[test]
fn what_is_written_while_a_fork_is_dropped_stays() {
    for mut world in projects() {
        writes(&mut world, "one", "a", "second");
        ours(&mut world, &["fork", "1", "../try", "--no-conversation"], 0);
        let done = Command::new(env!("CARGO_BIN_EXE_beforehand"))
            .args(["fork", "--drop", "try", "--yes"])
            .current_dir(world.root())
            .env_clear()
            .envs(&world.env)
            .env("PATH", "/usr/bin:/bin")
            .env("BEFOREHAND_TEST_RUN_AT", "drop-held:echo late >../try/a; echo late >../try/new")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(1), "{said}");
        for name in ["a", "new"] {
            assert_eq!(fs::read_to_string(beside(&world, "try").join(name)).unwrap(), "late\n");
            assert!(
                said.contains(&format!("while the fork was dropped, or never held: {name}")),
                "{said}"
            );
        }
        ours(&mut world, &["fork", "--drop", "try", "--yes"], 0);
        assert!(!beside(&world, "try").exists());
    }
}

#[test]
fn a_fork_has_branches_and_index_as_they_were_and_commits_stay_in_it() {
    let mut world = World::new();
    write(&world.settings(), "deadline = \"60s\"\n");
    let root = world.root();
    world.write("a", "one\n");
    git(
        &world,
        &root,
        "git init -qb main && git add . && git commit -qm first && git branch other",
    );
    world.write("a", "staged\n");
    git(&world, &root, "git add a");
    world.write("a", "unstaged\n");
    let (status, head) = (git(&world, &root, "git status --porcelain"), "git rev-parse HEAD");
    let first = git(&world, &root, head);
    writes(&mut world, "one", "a", "agent\n");
    git(&world, &root, "git commit -qam second && git branch -qD other");
    let now = on_disk(&root);
    let plan = ours(&mut world, &["fork", "1", "--no-conversation", "--dry-run", "--json"], 0);
    let done = ours(&mut world, &["fork", "1", "--no-conversation", "--json"], 0);
    assert!(on_disk(&root) == now);
    let [plan, done] = [plan, done].map(|said| parsed(&said.stdout));
    for field in ["repositories", "conversation", "files", "missing", "dir"] {
        assert_eq!(plan[field], done[field], "the plan is the deed");
    }
    assert_eq!(plan["repositories"][0], ".git");
    let fork = beside(&world, "shop-fork-1");
    assert_eq!(git(&world, &fork, head), first);
    assert_eq!(git(&world, &fork, "git status --porcelain"), status);
    assert_eq!(git(&world, &fork, "git show :a"), "staged");
    assert_eq!(git(&world, &fork, "git branch --format='%(refname:short)'"), "main\nother");
    git(&world, &fork, "git fsck --strict && git commit -qam 'in the fork'");
    assert!(on_disk(&root) == now, "a commit in the fork is none in the project");
    git(&world, &root, "git fetch -q ../shop-fork-1 main");
    assert_eq!(git(&world, &root, "git log -1 --format=%s FETCH_HEAD"), "in the fork");
}

#[test]
fn a_fork_of_a_linked_worktree_stands_alone() {
    let mut world = World::new();
    write(&world.settings(), "deadline = \"60s\"\n");
    let (root, main) = (world.root(), beside(&world, "main"));
    fs::remove_dir(&root).unwrap();
    let setup = "git init -qb main main && cd main && echo 1 >a && git add . && git commit -qm first \
                 && git worktree add -q ../shop -b feature && git worktree add -q ../third -b third";
    git(&world, root.parent().unwrap(), setup);
    git(&world, &root, "echo 2 >a && git commit -qam second && echo 3 >a && git add a");
    writes(&mut world, "one", "a", "agent\n");
    let all = on_disk(root.parent().unwrap());
    ours(&mut world, &["fork", "1", "--no-conversation"], 0);
    let fork = beside(&world, "shop-fork-1");
    assert_eq!(git(&world, &fork, "git symbolic-ref --short HEAD"), "feature");
    assert_eq!(git(&world, &fork, "git status --porcelain"), "M  a");
    assert_eq!(git(&world, &fork, "git worktree list | wc -l"), "1");
    git(&world, &fork, "git commit -qam third && git fsck");
    let mut after = on_disk(root.parent().unwrap());
    after.retain(|path, _| !path.starts_with(b"shop-fork-1"));
    assert!(after == all, "neither worktree nor repository was touched");
    let listed = git(&world, &main, "git worktree list | wc -l");
    assert_eq!(listed, "3");
}

#[test]
fn submodules_and_nested_repositories_come_along_and_lead_nowhere_else() {
    let mut world = World::new();
    write(&world.settings(), "deadline = \"60s\"\n");
    let root = world.root();
    git(
        &world,
        root.parent().unwrap(),
        "git init -q lib && cd lib && echo 1 >l && git add . && git commit -qm lib",
    );
    git(
        &world,
        &root,
        "git init -q . && git -c protocol.file.allow=always submodule add -q ../lib sub \
         && git init -q nested && echo n >nested/n && git -C nested add . && git -C nested commit -qm n \
         && git add sub .gitmodules && git commit -qm first",
    );
    // As old versions of git wrote it.
    git(&world, &root, "echo \"gitdir: $PWD/.git/modules/sub\" >sub/.git");
    git(&world, &root, "git -C sub config core.worktree \"$PWD/sub\"");
    writes(&mut world, "one", "a", "agent\n");
    let now = on_disk(&root);
    ours(&mut world, &["fork", "1", "--no-conversation"], 0);
    let fork = beside(&world, "shop-fork-1");
    for dir in ["sub", "nested"] {
        let dir = fork.join(dir);
        let top = git(&world, &dir, "git rev-parse --show-toplevel");
        assert_eq!(Path::new(&top), fs::canonicalize(&dir).unwrap());
        git(&world, &dir, "echo 2 >>x && git add x && git commit -qm x && git fsck");
    }
    git(&world, &fork, "git status && git add sub && git commit -qm sub");
    assert!(on_disk(&root) == now, "nothing reaches the original");
}
