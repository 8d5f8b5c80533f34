//! Paths outside the root: what a call affects there, however its command line names them.

use beforehand::process::Exit;
use serde_json::{Value, json};
use std::fs;

use crate::support::{
    real::git,
    temp::{Files, on_disk, write},
    world::World,
};

/// A repository with a commit, and beside it another one that has everything git can lose.
fn two_repositories() -> World {
    let world = World::new();
    world.write("a", "one\n");
    let clean = "#!/bin/sh\nset -e\ncd \"$(dirname \"$0\")\"\nrm -rf \"CODE/other\"\n";
    let code = world.root().parent().unwrap().to_str().unwrap().to_owned();
    world.write("tools/clean.sh", clean.replace("CODE", &code));
    world.write("tools/again.sh", "#!/usr/bin/env bash\nbash tools/clean.sh \"$@\"\n");
    git(&world, &world.root(), "git init -q -b main && git add -A && git commit -qm one");
    let other = world.root().with_file_name("other");
    for (path, text) in [("o", "o\n"), ("sub/p", "p\n"), (".gitignore", ".env\n")] {
        write(&other.join(path), text);
    }
    git(
        &world,
        &other,
        "git init -q -b main && git add -A && git commit -qm theirs && echo s >> o && git stash -q \
         && git branch br && echo dirty >> o && echo new > staged && git add staged && \
         echo u > untracked && echo e > .env",
    );
    world
}

/// The files of the other project, without its repository.
fn files(world: &World) -> Files {
    let mut files = on_disk(&world.root().with_file_name("other"));
    files.retain(|path, _| !path.starts_with(b".git/") && path != b".git");
    files
}

const TELL: &str = "git status --porcelain && git for-each-ref && git stash list && git reflog";

/// What an agent says it does. What happens is always the worst: the directory is gone.
const LINES: [&str; 38] = [
    "git -C ../other reset --hard",
    "git -C ../other/sub reset --hard",
    "printf '%s' 'rm -rf ../other' > s.sh; sh s.sh",
    "cd ../other && git checkout -- .",
    "pushd ../other; rm -rf *",
    "rsync -a --delete e/ ../other/",
    "unzip -qo x.zip -d ../other",
    "make -C ../other clean",
    "GIT_WORK_TREE=../other GIT_DIR=../other/.git git checkout -f",
    "export GIT_WORK_TREE=../other; git checkout -f",
    "sh -c 'cd ../other; rm -rf *'",
    "rm -rf \"$(pwd)/../other\"",
    "cd `pwd`/../other && rm -rf *",
    "D=$(realpath ../other); rm -rf \"$D\"",
    "cd \"$(dirname \"$PWD\")/other\" && rm -rf *",
    "rm -rf \"$(git rev-parse --show-toplevel)/../other\"",
    "cd ../$(echo other) && rm -rf *",
    "rm -rf \"$UNSET/../other\"",
    "x=../OTHER; rm -rf ${x,,}",
    "x=../ather; rm -rf \"${x/a/o}\"",
    "x=--/other; rm -rf ${x//-/.}",
    "rm -rf ${PWD%/shop}/other",
    "D=${PWD/%shop/other}; rm -rf \"$D\"",
    "x=a/../other/b; y=${x#a/}; rm -rf \"${y:0:-2}\"",
    "shopt -s extglob\nrm -rf ../!(shop|none)",
    "ln -s ../other o; rm -rf o/*",
    "mkdir x; ln -s ../../other x/o; rm -rf x/o/*",
    "find ../other -type f | xargs rm -f",
    "ls ../other | python3 clean.py",
    "test -d ../other && rm -rf $_",
    "for d in ../oth*; do rm -rf \"$d\"; done",
    "python3 -c \"import shutil; shutil.rmtree('../other')\"",
    "rm -rf ~/../code/other",
    "bash tools/clean.sh",
    "tools/clean.sh --all | tee log",
    "cd tools && . ./clean.sh",
    "sudo env A=1 sh -e tools/again.sh",
    "tools/again.sh",
];

#[test]
fn a_directory_outside_is_held_however_a_line_names_it() {
    for line in LINES {
        let mut world = two_repositories();
        let other = world.root().with_file_name("other");
        let (before, state) = (files(&world), git(&world, &other, TELL));
        let answer: Value = serde_json::from_str(&world.before_bash("t", line)).unwrap();
        assert_eq!(answer, json!({}), "{line}");
        git(&world, &world.root(), "rm -rf ../other");
        let output = world.run(&["restore", "latest", "--yes", "--outside"]);
        assert_eq!(output.exit, Exit::Ok, "{line}: {}{}", output.stdout, output.stderr);
        assert_eq!(files(&world), before, "{line}");
        assert_eq!(git(&world, &other, TELL), state, "{line}");
    }
}

#[test]
fn a_directory_outside_is_held_that_a_line_reaches_over_a_link() {
    for line in [
        "find link/ -type f -delete",
        "find link/ -name '*' -exec rm -rf {} +",
        "find */ -type f -delete",
        "sed -i s/./X/ */*",
        "ls */* | xargs rm -f",
        "ls -d */ | xargs -I{} rm -rf {}sub",
        "grep -rl . */ | xargs sed -i s/./X/",
    ] {
        let mut world = World::with_git();
        let out = world.root().with_file_name("out");
        for (path, text) in [("o", "o\n"), ("sub/p", "p\n")] {
            write(&out.join(path), text);
        }
        std::os::unix::fs::symlink("../out", world.root().join("link")).unwrap();
        let before = on_disk(&out);
        world.before_bash("t", line);
        git(&world, &world.root(), &format!("{line} 2>/dev/null; true"));
        assert_ne!(on_disk(&out), before, "{line}");
        let output = world.run(&["restore", "latest", "--yes", "--outside"]);
        assert_eq!(output.exit, Exit::Ok, "{line}: {}{}", output.stdout, output.stderr);
        assert_eq!(on_disk(&out), before, "{line}");
    }
}

/// Codex tells it in its transcript alone, others beside the command.
#[test]
fn a_directory_in_which_the_agent_runs_a_line_is_held() {
    for (agent, line) in [
        ("codex", "make clean"),
        ("codex", "git reset --hard"),
        ("codex", "rm -rf sub o"),
        ("opencode", "make clean"),
        ("opencode", "ls; git clean -fdx"),
    ] {
        let world = two_repositories();
        let other = world.root().with_file_name("other");
        let (before, state) = (files(&world), git(&world, &other, TELL));
        let arguments = json!({ "cmd": line, "workdir": "../other" }).to_string();
        let told = json!({ "type": "response_item", "payload": {
            "type": "function_call", "name": "exec_command", "call_id": "c1", "arguments": arguments,
        }});
        let transcript = world.home().join("rollout.jsonl");
        write(&transcript, format!("{{}}\n{told}\n{{}}\n"));
        let mut input = json!({ "command": line });
        if agent == "opencode" {
            input["workdir"] = "../other".into();
        }
        let payload = json!({
            "session_id": "s", "cwd": world.root(), "turn_id": "t", "tool_use_id": "c1",
            "hook_event_name": "PreToolUse", "tool_name": if agent == "codex" { "Bash" } else { "bash" },
            "tool_input": input, "transcript_path": transcript,
        });
        let args = ["hook", "--agent", agent];
        let output = world.run_in(&world.root(), &args, &payload.to_string());
        assert_eq!((output.exit, &*output.stderr), (Exit::Ok, ""), "{agent}: {line}");
        git(&world, &world.root(), "rm -rf ../other");
        let args = ["restore", "latest", "--yes", "--outside"];
        let output = world.run_in(&world.root(), &args, "");
        assert_eq!(output.exit, Exit::Ok, "{agent}: {line}: {}{}", output.stdout, output.stderr);
        assert_eq!(files(&world), before, "{agent}: {line}: {}", output.stdout);
        assert_eq!(git(&world, &other, TELL), state, "{agent}: {line}");
    }
}

#[test]
fn a_repository_that_a_later_call_of_the_turn_reached_comes_back_with_the_turn() {
    let mut world = two_repositories();
    let other = world.root().with_file_name("other");
    let (before, state) = (files(&world), git(&world, &other, TELL));
    world.before_bash("t", "make");
    world.write("a", "made\n");
    world.before_bash("t", "rm -rf ../other");
    git(&world, &world.root(), "rm -rf ../other");
    let output = world.run(&["restore", "1", "--force", "--yes", "--outside"]);
    assert_eq!(output.exit, Exit::Ok, "{}{}", output.stdout, output.stderr);
    assert_eq!((world.read("a"), files(&world)), ("one\n".to_owned(), before));
    assert_eq!(git(&world, &other, TELL), state);
}

#[test]
fn what_a_line_only_looks_at_is_not_held_where_all_it_changes_is_known() {
    for line in ["ls -d ../other; rm a", "cat ../other/o && make", "git -C ../other log; rm -f b*"]
    {
        let mut world = two_repositories();
        world.before_bash("t", line);
        let shown = world.run(&["show", "latest", "--json"]).stdout;
        let shown: Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(shown["outside"], json!([]), "{line}");
    }
}

#[test]
fn what_was_staged_elsewhere_is_named_and_comes_back_with_the_repository() {
    let mut world = two_repositories();
    let other = world.root().with_file_name("other");
    let (before, state) = (files(&world), git(&world, &other, "git ls-files -s"));
    world.before_bash("t", "git -C ../other reset --hard");
    git(&world, &other, "git reset -q --hard");
    let output = world.run(&["restore", "latest", "--yes", "--outside"]);
    assert_eq!(files(&world), before);
    let said = output.stdout + &output.stderr;
    assert!(said.contains("staged differently then: ") && said.contains("--repository"), "{said}");
    let output = world.run(&["restore", "latest", "--yes", "--outside", "--repository"]);
    assert_eq!(output.exit, Exit::Ok, "{}", output.stderr);
    assert_eq!(git(&world, &other, "git ls-files -s"), state);
}

/// A repository with a linked worktree and a repository of its own in ignored directories of it.
fn with_ignored_repositories() -> World {
    let world = World::new();
    world.write(".gitignore", ".claude/\nbuild/\n");
    world.write("a", "one\n");
    world.write("build/lib/f", "theirs\n");
    git(
        &world,
        &world.root(),
        "git init -q -b main && git add -A && git commit -qm one && git worktree add -q \
         .claude/worktrees/x -b x && cd .claude/worktrees/x && echo dirty >> a && echo n > new && \
         echo s > staged && git add staged && cd ../../../build/lib && git init -q && git add -A \
         && git commit -qm theirs && echo u > untracked",
    );
    world
}

/// The hook before a command in some directory of the session that began in the project.
fn before_command(world: &mut World, cwd: &std::path::Path, turn: &str, command: &str) {
    world.wait(1);
    let payload =
        crate::support::real::before(cwd, "s1", turn, "Bash", &json!({ "command": command }));
    let output = world.run_in(cwd, &["hook", "--agent", "claude-code"], &payload);
    assert_eq!((output.stdout.trim(), output.exit), ("{}", Exit::Ok));
}

#[test]
fn a_repository_in_an_ignored_directory_is_a_root_of_its_own() {
    let tell = "git status --porcelain && git for-each-ref && git ls-files -s";
    for place in [".claude/worktrees/x", "build/lib"] {
        for (cwd, line) in [
            (place, "./clean.sh".to_owned()),
            (place, "make".to_owned()),
            ("", format!("cd {place} && ./clean.sh")),
            ("", format!("make -C {place} clean")),
            ("", format!("git -C ./{place} clean -fdx")),
            ("", format!("sh -c 'cd \"{place}\"; npm run clean'")),
            (".claude", format!("cd ../{place} && make")),
        ] {
            let mut world = with_ignored_repositories();
            let (root, inner) = (world.root(), world.root().join(place));
            before_command(&mut world, &root, "t0", "make");
            let on = |dir: &std::path::Path| {
                let mut files = on_disk(dir);
                files.retain(|path, _| !path.starts_with(b".git"));
                files
            };
            let (before, state) = (on(&inner), git(&world, &inner, tell));
            before_command(&mut world, &root.join(cwd), "t1", &line);
            git(&world, &inner, "git rm -rfq . ; rm -rf *");
            assert_ne!(on(&inner), before);
            let named = format!("note: the turn also changed {}", inner.display());
            let outer = world.run_in(&root, &["undo", "--yes"], "").stderr;
            assert!(outer.contains(&named), "{line}: {outer}");
            let done = world.run_in(&inner, &["undo", "--yes"], "");
            assert_eq!(done.exit, Exit::Ok, "{line}: {}", done.stderr);
            assert_eq!(on(&inner), before, "{line} in {cwd}");
            assert_eq!(git(&world, &inner, tell), state, "{line} in {cwd}");
            let outer = world.run_in(&root, &["undo", "--yes"], "").stderr;
            assert!(!outer.contains(&named), "{line}: {outer}");
        }
    }
}

#[test]
fn a_repository_that_the_root_holds_is_no_root_of_its_own() {
    let mut world = World::new();
    world.write("vendor/lib/f", "theirs\n");
    let inner = world.root().join("vendor/lib");
    git(&world, &world.root(), "git init -q && cd vendor/lib && git init -q && git add -A");
    let root = world.root();
    before_command(&mut world, &root, "t0", "make");
    before_command(&mut world, &inner, "t1", "make");
    before_command(&mut world, &root, "t2", "cd vendor/lib && make");
    let roots = fs::read_dir(world.state().join("roots")).unwrap().count();
    assert_eq!(roots, 1);
}

#[test]
fn what_a_database_keeps_beside_its_file_is_held_with_it() {
    let mut world = two_repositories();
    let other = world.root().with_file_name("other");
    for name in ["app.db", "app.db-wal", "app.db-shm", "app.db-journal", "app.dbx"] {
        write(&other.join(name), name);
    }
    world.before_bash("t", "sqlite3 ../other/app.db 'DROP TABLE t'");
    let shown: Value =
        serde_json::from_str(&world.run(&["show", "latest", "--json"]).stdout).unwrap();
    let held: Vec<&str> =
        shown["outside"].as_array().unwrap().iter().filter_map(|it| it.as_str()).collect();
    let names: Vec<&str> = held.iter().filter_map(|path| path.rsplit('/').next()).collect();
    assert_eq!(names, ["app.db", "app.db-journal", "app.db-shm", "app.db-wal"]);
}

#[test]
fn no_secret_enters_the_users_repository() {
    let mut world = World::new();
    world.write("tracked.env", "S3CRET-one\n");
    world.write("nested/.env", "S3CRET-two\n");
    git(
        &world,
        &world.root(),
        "git init -q -b main && git add tracked.env && git commit -qm one && git update-index \
         --skip-worktree tracked.env && echo S3CRET-three > tracked.env && cd nested && git init \
         -q && git add -f .env && git commit -qm nested && echo S3CRET-four > .env",
    );
    let repositories = [".git", "nested/.git"].map(|path| world.root().join(path));
    let before = repositories.each_ref().map(|path| on_disk(path));
    world.before_bash("t", "rm -rf *");
    world.wait(1);
    assert_eq!(world.run(&["create"]).exit, Exit::Ok);
    world.write("tracked.env", "S3CRET-five\n");
    world.before_bash("t2", "./build.sh");
    assert_eq!(repositories.each_ref().map(|path| on_disk(path)), before);
    for path in ["tracked.env", "nested/.env"] {
        fs::remove_file(world.root().join(path)).unwrap();
    }
    assert_eq!(world.run(&["restore", "latest", "--yes"]).exit, Exit::Ok);
    assert_eq!(
        ["tracked.env", "nested/.env"].map(|path| world.read(path)),
        ["S3CRET-five\n", "S3CRET-four\n"]
    );
}

/// By the last part of its path, or as git lists it.
#[test]
fn a_linked_worktree_is_held_however_git_is_told_of_it() {
    let listed = "git worktree list | tail -n +2 | cut -d' ' -f1";
    for line in [
        "git worktree remove --force wt".to_owned(),
        format!("{listed} | xargs -n1 git worktree remove --force"),
        format!("{listed} | while read d; do rm -rf \"$d\"; done"),
    ] {
        let mut world = World::with_git();
        let root = world.root();
        world.write("a", "one\n");
        git(&world, &root, "git add -A && git commit -qm one && git worktree add -q ../wt");
        write(&root.join("../wt/new"), "mine\n");
        before_command(&mut world, &root, "t", &line);
        git(&world, &root, &line);
        assert!(!root.join("../wt/new").exists(), "{line}");
        let done = world.run_in(&root, &["undo", "--yes"], "");
        assert_eq!(done.exit, Exit::Ok, "{line}: {}", done.stderr);
        let back = fs::read_to_string(root.join("../wt/new")).unwrap_or_default();
        assert_eq!(back, "mine\n", "{line}");
    }
}

/// Program text that comes by a directory in its own words: the names in it are looked for there too.
#[test]
fn a_file_outside_is_held_that_a_program_text_puts_together() {
    let mut world = two_repositories();
    let other = world.root().with_file_name("other");
    write(&other.join("o.txt"), "theirs");
    let text = "from pathlib import Path; (Path.cwd().parent/'other'/'o.txt').unlink()";
    world.before_bash("t", &format!("python3 -c \"{text}\""));
    let shown: Value =
        serde_json::from_str(&world.run(&["show", "latest", "--json"]).stdout).unwrap();
    let path = other.join("o.txt").display().to_string();
    let outside = shown["outside"].as_array().unwrap();
    assert!(outside.iter().any(|it| *it == json!(path)), "{outside:?}");
}
