//! What a call reaches beside the root's own files: places that its line names outside, however it
//! names them.

use serde_json::{Value, json};
use std::fs;
use turnback::process::Exit;

use crate::support::{
    real::git,
    temp::{Files, on_disk, write},
    world::World,
};

/// A repository with a commit, and beside it another one that has everything git can lose.
fn two_repositories() -> World {
    let world = World::new();
    world.write("a", "one\n");
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

/// What an agent says it does; what that does stands behind it where it is something else.
const LINES: [&str; 30] = [
    "git -C ../other reset --hard",
    "cd ../other && git checkout -- .",
    "(cd ../other; git clean -fdxq)",
    "pushd ../other; rm -rf *",
    "rsync -a --delete e/ ../other/",
    "tar xf a.tar -C ../other",
    "unzip -qo x.zip -d ../other",
    "make -C ../other clean",
    "GIT_WORK_TREE=../other GIT_DIR=../other/.git git checkout -f",
    "export GIT_WORK_TREE=../other; git checkout -f",
    "git --work-tree=../other --git-dir=../other/.git clean -fdx",
    "sh -c 'cd ../other; rm -rf *'",
    "rm -rf \"$PWD/../other\"",
    "rm -rf \"$(pwd)/../other\"",
    "cd `pwd`/../other && rm -rf *",
    "D=$(realpath ../other); rm -rf \"$D\"",
    "cd \"$(dirname \"$PWD\")/other\" && rm -rf *",
    "rm -rf \"$(git rev-parse --show-toplevel)/../other\"",
    "cd ../$(echo other) && rm -rf *",
    "rm -rf \"$UNSET/../other\"",
    "find ../other -type f | xargs rm -f",
    "ls -d ../other/* | xargs rm -rf",
    "ls ../other | python3 clean.py",
    "test -d ../other && rm -rf $_",
    "for d in ../oth*; do rm -rf \"$d\"; done",
    "env -C ../other rm -rf o sub",
    "python3 -c \"import shutil; shutil.rmtree('../other')\"",
    "mv ../other ../gone",
    "cp -rT e ../other",
    "rm -rf ~/../code/other",
];

#[test]
fn a_directory_outside_is_held_however_a_line_names_it() {
    for line in LINES {
        let mut world = two_repositories();
        let other = world.root().with_file_name("other");
        let (before, state) = (files(&world), git(&world, &other, TELL));
        let answer: Value = serde_json::from_str(&world.before_bash("t", line)).unwrap();
        assert_eq!(answer, json!({}), "{line}");
        fs::remove_dir_all(&other).unwrap();
        let output = world.run(&["restore", "latest", "--yes", "--outside"]);
        assert_eq!(output.exit, Exit::Ok, "{line}: {}{}", output.stdout, output.stderr);
        assert_eq!(files(&world), before, "{line}");
        assert_eq!(git(&world, &other, TELL), state, "{line}");
    }
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
    assert!(said.contains("staged otherwise then: ") && said.contains("--repository"), "{said}");
    let output = world.run(&["restore", "latest", "--yes", "--outside", "--repository"]);
    assert_eq!(output.exit, Exit::Ok, "{}", output.stderr);
    assert_eq!(git(&world, &other, "git ls-files -s"), state);
}
