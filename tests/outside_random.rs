//! Whatever one command line does to a work tree and its `.git`, the checkpoint before it brings
//! everything back, and undo takes that back: random lines against what git itself says.
//!
//! `BEFOREHAND_CASES` and `BEFOREHAND_SEED` run more of them, or one again.

use std::path::Path;

use crate::support::{
    dice::{Dice, wished},
    real::{git, try_git},
    temp::{Files, on_disk, write},
    world::World,
};

/// A repository with history, branches, a tag, a stash, and something staged, changed and new.
fn project(dice: &mut Dice) -> World {
    let world = World::new();
    let run = |line: &str| drop(git(&world, &world.root(), line));
    world.write(".gitignore", "*.log\n");
    run("git init -q -b main");
    for commit in 0..=dice.below(4) {
        world.write(&format!("d{}/f{commit}", dice.below(3)), format!("{commit}\n"));
        world.write("a", format!("{commit}\nline\n"));
        run("git add -A && git commit -qm c");
        if dice.is(2) {
            run(&format!("git branch b{commit}"));
        }
    }
    if dice.is(2) {
        run("git tag v1 && git tag -a -m annotated v2");
    }
    if dice.is(2) {
        run("echo stashed >> a && git stash -q");
    }
    if dice.is(3) {
        run("git gc -q");
    }
    if dice.is(3) {
        run("git checkout -q --detach");
    }
    if dice.is(2) {
        run("echo staged > s && git add s && echo more >> s");
    }
    if dice.is(2) {
        run("echo changed >> a && echo new > n && mkdir -p e/m");
    }
    if dice.is(3) {
        run("git init -q sub && cd sub && echo s > s && git add s && git commit -qm s");
    }
    world
}

/// One line that destroys something.
fn line(dice: &mut Dice, root: &Path) -> String {
    let files: Vec<String> = on_disk(&root.join(".git"))
        .into_iter()
        .filter(|(_, file)| file.kind == beforehand::model::Kind::File)
        .map(|(path, _)| String::from_utf8(path).unwrap())
        .collect();
    let file = if files.is_empty() { "HEAD" } else { &files[dice.below(files.len())] };
    match dice.below(22) {
        0 => "rm -rf .git".to_owned(),
        1 => "mv .git ../away".to_owned(),
        2 => "rm -rf .git && git init -q && git add -A && git commit -qm other".to_owned(),
        3 => "find . -mindepth 1 -delete".to_owned(),
        4 => "git reflog expire --expire=now --all; git gc -q --prune=now".to_owned(),
        5 => "for b in $(git branch --format='%(refname:short)' | grep -v '('); do git branch -D \
              $b; done; git tag -d v1; git stash clear; git reflog expire --expire=now --all; git \
              gc -q --prune=now; true"
            .to_owned(),
        6 => format!("chmod u+w '.git/{file}'; : > '.git/{file}'"),
        7 => format!("rm -f '.git/{file}'"),
        8 => format!("chmod u+w '.git/{file}'; echo garbage > '.git/{file}'"),
        9 => "rm -rf .git/objects".to_owned(),
        10 => "rm -rf .git/refs .git/packed-refs".to_owned(),
        11 => "find .git -type f -exec chmod u+w {} + -exec truncate -s0 {} +".to_owned(),
        12 => "rm -rf .git && git clone -q --bare . .git 2>/dev/null; true".to_owned(),
        13 => "git checkout -q --orphan o && git rm -rqf . ; true".to_owned(),
        14 => "git reset -q --hard; git clean -fdxq".to_owned(),
        15 => "git commit -qam later; git commit -q --amend -m amended --allow-empty".to_owned(),
        16 => "git update-ref -d HEAD; true".to_owned(),
        17 => "rm -rf .git && git init -q --object-format=sha256 && git add -A && git commit -qm o"
            .to_owned(),
        18 => "rm -f .git/HEAD; chmod 700 .git".to_owned(),
        19 => "rm -rf .git/objects/pack; echo x > .git/packed-refs".to_owned(),
        20 => {
            "git worktree add -q ../wt$RANDOM 2>/dev/null; git switch -q -c new; echo z > z; git \
               add z; git commit -qm z"
                .to_owned()
        }
        _ => format!("git config core.bare {}", dice.pick(&["true", "false", "maybe"])),
    }
}

fn files(root: &Path) -> Files {
    let mut files = on_disk(root);
    // What an index knows of files' stamps is not kept.
    files.retain(|path, _| {
        !path.starts_with(b".git/") && path != b".git" && !path.ends_with(b"/.git/index")
    });
    files
}

/// What git says of a repository; `Err` where it does not take it for one.
fn told(world: &World) -> Result<String, String> {
    try_git(
        world,
        &world.root(),
        "set -e; [ ! -d sub/.git ] || git -C sub ls-files -s; git for-each-ref; git symbolic-ref -q HEAD || git rev-parse HEAD; git stash list; \
         git reflog --all; git ls-files -s; git log --all --format='%H %s'; git status --porcelain; \
         git fsck --strict --no-dangling",
    )
}

#[track_caller]
fn run(world: &mut World, args: &[&str], about: &str) {
    let output = world.run(args);
    let code = output.exit.code();
    assert_eq!(code, 0, "{about}\n{args:?}\n{}{}", output.stdout, output.stderr);
}

fn case(seed: u64) {
    let mut dice = Dice::new(seed);
    let mut world = project(&mut dice);
    let store = if seed % 4 == 3 { "files" } else { "auto" };
    write(&world.settings(), format!("store = \"{store}\"\n"));
    let root = world.root();
    let before = (files(&root), told(&world).unwrap());
    run(&mut world, &["create", "-m", "before"], "before");
    let lines: Vec<String> = (0..=dice.below(2)).map(|_| line(&mut dice, &root)).collect();
    let about = format!("BEFOREHAND_SEED={seed} ({store}): {}", lines.join(" ;; "));
    for line in &lines {
        let _whatever = try_git(&world, &root, line);
    }
    let after = (files(&root), told(&world));
    // A second life for what is to be found again.
    if dice.is(3) {
        write(&root.join("later"), "made afterwards");
    }
    let late = files(&root);
    let id = checkpoint(&mut world);
    run(&mut world, &["restore", &id, "--yes", "--exact", "--force", "--repository"], &about);
    assert_eq!(files(&root), before.0, "{about}");
    assert_eq!(told(&world).as_ref(), Ok(&before.1), "{about}");
    run(&mut world, &["undo", "--yes", "--force"], &about);
    assert_eq!(files(&root), late, "undo of {about}");
    if let (_, Ok(after)) = &after {
        let now = told(&world).unwrap_or_else(|err| panic!("undo of {about}: {err}"));
        let without_status = |text: &str| -> Vec<String> {
            text.lines().filter(|line| *line != "?? later").map(str::to_owned).collect()
        };
        assert_eq!(without_status(&now), without_status(after), "undo of {about}");
    }
    run(&mut world, &["redo", "--yes", "--force"], &about);
    assert_eq!(files(&root), before.0, "redo of {about}");
    assert_eq!(told(&world).as_ref(), Ok(&before.1), "redo of {about}");
    let damage = world.run(&["check", "--read-data"]);
    // An object that was broken when it was borrowed is told of, and is nobody's.
    let mut told = damage.stdout.lines().skip(1);
    let is_sound = damage.stdout.contains("all whole")
        || damage.exit.code() != 0
            && told.all(|it| {
                !it.starts_with("  ")
                    || it.contains("borrowed from the user's")
                    || it.contains("note: ")
            });
    assert!(is_sound, "{about}\n{}{}", damage.stdout, damage.stderr);
    let _gone = beforehand::fs::remove_tree(&root.join("../away"));
}

/// The id of the checkpoint that was taken by hand.
fn checkpoint(world: &mut World) -> String {
    let listed = world.run(&["list", "--all", "--json"]).stdout;
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let all = listed.as_array().unwrap();
    let is_it = |it: &&serde_json::Value| it.to_string().contains("before");
    all.iter().find(is_it).unwrap()["id"].as_str().unwrap().to_owned()
}

#[test]
fn whatever_a_line_does_everything_comes_back_and_can_be_undone() {
    if let Some(seed) = wished("BEFOREHAND_SEED") {
        return case(seed);
    }
    for seed in 0..wished("BEFOREHAND_CASES").unwrap_or(20) {
        case(seed);
    }
}
