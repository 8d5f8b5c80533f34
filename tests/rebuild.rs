//! Restores of repositories: which are restored, replaced, removed or left alone, and what the
//! restore reports.

use std::path::{Path, PathBuf};

use crate::{
    repository::{dies_at, repository, runs},
    support::{
        real::{beforehand, git, skip, try_git},
        temp::{Files, link, on_disk, write},
        world::World,
    },
};

/// The agent runs a command, before and after which it calls us.
fn agent_runs(world: &mut World, line: &str) {
    let root = world.root();
    for event in ["PreToolUse", "PostToolUse"] {
        let payload = serde_json::json!({
            "session_id": "s", "cwd": root, "hook_event_name": event, "tool_name": "Bash",
            "tool_input": { "command": line }, "tool_use_id": line, "prompt_id": line,
            "tool_response": {},
        });
        world.wait(1);
        world.run_in(&root, &["hook", "--agent", "claude-code"], &payload.to_string());
        if event == "PreToolUse" {
            git(world, &root, line);
        }
    }
}

#[test]
fn a_nested_repository_gives_way_to_what_took_its_place() {
    let mut world = repository();
    world.write("nest/f", "inner\n");
    git(&world, &world.root().join("nest"), "git init -q && git add -A && git commit -qm inner");
    agent_runs(&mut world, "rm -rf nest && echo file > nest");
    runs(&mut world, &["undo", "--yes"]);
    assert_eq!(git(&world, &world.root().join("nest"), "git log --format=%s"), "inner");
    runs(&mut world, &["redo", "--yes"]);
    assert_eq!(world.read("nest"), "file\n");
    runs(&mut world, &["undo", "--yes"]);
    git(&world, &world.root(), "rm -rf nest");
    runs(&mut world, &["restore", "1", "--yes"]);
    runs(&mut world, &["undo", "--yes"]);
    assert!(!world.root().join("nest").exists(), "no directory was there");
}

#[test]
fn a_repository_made_since_stays_and_is_named() {
    let mut world = repository();
    agent_runs(&mut world, "git init -q vendor && echo v > vendor/v && git init -q .");
    let plan = runs(&mut world, &["undo", "--dry-run"]);
    assert!(plan.contains("vendor/.git/   a repository made since"), "{plan}");
    assert!(!plan.contains("remove    vendor/ "), "{plan}");
    let done = runs(&mut world, &["undo", "--yes"]);
    assert!(done.contains("left: vendor/.git, a repository made since"), "{done}");
    assert!(!world.root().join("vendor/v").exists() && world.root().join("vendor/.git").exists());
    let plan = runs(&mut world, &["restore", "1", "--exact", "--dry-run"]);
    assert!(plan.contains("0 paths would change"), "{plan}");
    // Where there is nothing else to take back, too.
    agent_runs(&mut world, "git init -q other");
    let passed = world.run(&["undo", "--dry-run"]).stderr;
    assert!(passed.contains("left: other/.git, a repository made since"), "{passed}");
}

#[test]
fn a_repository_outside_the_project_is_held_before_it_is_replaced() {
    let mut world = repository();
    let beside = world.root().with_file_name("o2");
    write(&beside.join("f"), "f\n");
    git(
        &world,
        &beside,
        "git init -q -b main && git add -A && git commit -qm f && git branch side",
    );
    let branches = |world: &World| git(world, &beside, "git branch --format='%(refname:short)'");
    agent_runs(&mut world, "git -C ../o2 branch -q -D side");
    assert_eq!(branches(&world), "main");
    runs(&mut world, &["restore", "1", "--outside", "--repository", "--yes"]);
    assert_eq!(branches(&world), "main\nside");
    runs(&mut world, &["undo", "--yes"]);
    assert_eq!(branches(&world), "main");
    // Without the option it is named.
    git(&world, &beside, "rm -rf .git && git init -q -b other");
    let left = runs(&mut world, &["restore", "1", "--yes"]);
    assert!(
        left.contains("not restored (--outside does it)") && left.contains("o2/.git"),
        "{left}"
    );
    runs(&mut world, &["restore", "1", "--outside", "--yes"]);
    assert_eq!(branches(&world), "main\nside");
}

#[test]
fn a_named_path_brings_the_repositories_at_or_below_it_back() {
    let mut world = repository();
    world.write("nest/f", "inner\n");
    let nest = world.root().join("nest");
    git(&world, &nest, "git init -q && git add -A && git commit -qm inner");
    runs(&mut world, &["create"]);
    git(&world, &world.root(), "rm -rf .git");
    git(&world, &nest, "rm -rf .git && git init -q");
    runs(&mut world, &["restore", "latest", "--yes", "--", "nest"]);
    assert_eq!(git(&world, &nest, "git log --format=%s"), "inner");
    assert!(!world.root().join(".git").exists(), "nobody named it");
    runs(&mut world, &["restore", "latest", "--yes", "--", ".git"]);
    assert_eq!(git(&world, &world.root(), "git log --format=%s"), "one");
}

#[test]
fn branches_tags_and_stashes_that_are_gone_are_named_with_the_way_back() {
    let mut world = repository();
    let stashes = "echo x >> a && git stash -q && echo y >> a && git stash -q";
    git(&world, &world.root(), &format!("git branch feat && git tag v1 && {stashes}"));
    agent_runs(&mut world, "git branch -q -D feat && git tag -d v1 >&2 && git stash drop -q");
    let undo = runs(&mut world, &["undo", "--dry-run"]);
    assert!(undo.contains("recreate  feat") && !undo.contains("gone since"), "{undo}");
    let plan = runs(&mut world, &["restore", "1", "--dry-run"]);
    assert!(plan.contains("gone since: feat, v1, 1 stash; `beforehand restore "), "{plan}");
    assert!(plan.contains("everything else is as it was"), "{plan}");
    let done = runs(&mut world, &["restore", "1", "--yes"]);
    assert!(done.contains("gone since: feat, v1, 1 stash"), "{done}");
    let done = runs(&mut world, &["restore", "1", "--repository", "--yes"]);
    assert!(!done.contains("gone since"), "{done}");
    assert_eq!(git(&world, &world.root(), "git stash list | wc -l && git branch | wc -l"), "2\n2");
    assert!(!runs(&mut world, &["restore", "1", "--dry-run"]).contains("gone since"));
}

#[test]
fn a_repository_that_was_copied_away_and_back_and_went_on_is_the_same() {
    let mut world = repository();
    git(&world, &world.root(), "git branch topic");
    runs(&mut world, &["create"]);
    git(&world, &world.root(), "cp -a .git ../kept && rm -rf .git && cp -a ../kept .git");
    git(&world, &world.root(), "git branch -q -D topic && git commit -q --allow-empty -m own");
    let done = runs(&mut world, &["restore", "1", "--yes"]);
    assert!(
        !done.contains("the repository is back") && done.contains("gone since: topic"),
        "{done}"
    );
    assert_eq!(git(&world, &world.root(), "git log -1 --format=%s"), "own");
    // What a repository loses that is replaced is named, in the plan and in the end.
    let others = "git branch new HEAD~1 && git tag v2 && git stash list && echo x > a && git stash -q \
                  && echo s > s && git add s && git checkout -q --detach && git commit -q \
                  --allow-empty -m loose && echo t > t && git add t";
    git(&world, &world.root(), others);
    for args in [["--dry-run"], ["--yes"]] {
        let said = runs(&mut world, &[&["restore", "1", "--repository"], &args[..]].concat());
        assert!(
            said.contains("main loses 1 commit made since: ") && said.contains(" own\n"),
            "{said}"
        );
        assert!(said.contains("HEAD loses 2 commits made since: "), "{said}");
        let others = "made since, and removed: new, v2, 1 stash, what is staged; `beforehand undo` brings it";
        assert!(said.contains(others), "{said}");
    }
}

#[test]
fn what_a_nested_repository_or_submodule_has_staged_otherwise_is_named() {
    let mut world = repository();
    let beside = world.root().with_file_name("lib");
    write(&beside.join("l"), "l\n");
    git(&world, &beside, "git init -q -b main && git add -A && git commit -qm l");
    let add = "git -c protocol.file.allow=always submodule --quiet add ../lib sub";
    git(&world, &world.root(), &format!("git init -q nest && {add} && git commit -qm sub"));
    for name in ["nest", "sub"] {
        let line = "git commit -q --allow-empty -m x && echo new > f && git add f";
        git(&world, &world.root().join(name), line);
    }
    runs(&mut world, &["create"]);
    git(&world, &world.root(), "git -C nest status && git -C sub status");
    let plan = runs(&mut world, &["restore", "1", "--dry-run"]);
    assert!(!plan.contains("staged"), "{plan}");
    git(&world, &world.root(), "git -C nest reset -q && git -C sub reset -q");
    let plan = runs(&mut world, &["restore", "1", "--dry-run"]);
    assert!(plan.contains("staged differently then: nest/.git; `beforehand restore "), "{plan}");
    assert!(plan.contains("staged differently then: .git/modules/sub; "), "{plan}");
    runs(&mut world, &["restore", "1", "--repository", "--yes"]);
    for name in ["nest", "sub"] {
        let dir = world.root().join(name);
        assert_eq!(git(&world, &dir, "git diff --cached --name-only"), "f", "{name}");
    }
}

#[test]
fn a_repository_that_lost_files_of_its_commit_is_broken() {
    let mut world = repository();
    runs(&mut world, &["create"]);
    for object in ["HEAD^{tree}", "HEAD:a"] {
        let line = format!(
            "id=$(git rev-parse '{object}') && rm -f .git/objects/${{id%${{id#??}}}}/${{id#??}}"
        );
        git(&world, &world.root(), &line);
        let done = runs(&mut world, &["restore", "1", "--yes"]);
        assert!(done.contains("the repository is back"), "{object}: {done}");
        git(&world, &world.root(), "git fsck");
    }
}

#[test]
fn what_led_nowhere_at_the_checkpoint_is_no_reason_to_replace_a_repository() {
    let mut world = repository();
    git(&world, &world.root(), &format!("echo {} > .git/refs/heads/lost", "1".repeat(40)));
    runs(&mut world, &["create"]);
    let plan = runs(&mut world, &["restore", "1", "--dry-run"]);
    assert!(plan.contains("everything is as it was"), "{plan}");
    // What leads nowhere since is one.
    git(&world, &world.root(), &format!("echo {} > .git/refs/heads/main", "2".repeat(40)));
    let done = runs(&mut world, &["restore", "1", "--yes"]);
    assert!(done.contains("the repository is back"), "{done}");
}

#[test]
fn a_repository_with_reftable_that_is_broken_or_another_comes_back() {
    let mut world = World::new();
    world.write("a", "one\n");
    let init = "git init -q --ref-format=reftable && git add -A && git commit -qm";
    if try_git(&world, &world.root(), &format!("{init} one")).is_err() {
        skip("this git is too old for reftable");
        return;
    }
    world.write("s", "s\n");
    git(&world, &world.root(), "git add s");
    runs(&mut world, &["create"]);
    let told = runs(&mut world, &["show", "1"]);
    assert!(told.contains("reftable: a restore names no commits made since"), "{told}");
    let staged = |world: &World| git(world, &world.root(), "git diff --cached --name-only");
    git(&world, &world.root(), "git reset -q");
    let plan = runs(&mut world, &["restore", "1", "--dry-run"]);
    assert!(plan.contains("staged differently then: .git; "), "{plan}");
    let another = format!("rm -rf .git && {init} another");
    for deed in ["rm -rf .git/reftable/*", "rm .git/reftable/*.ref", &another] {
        git(&world, &world.root(), deed);
        let done = runs(&mut world, &["restore", "1", "--yes"]);
        assert!(done.contains("the repository is back"), "{deed}: {done}");
        assert_eq!(git(&world, &world.root(), "git log --format=%s"), "one", "{deed}");
        assert_eq!(staged(&world), "s", "{deed}");
        let plan = runs(&mut world, &["restore", "1", "--dry-run"]);
        assert!(plan.contains("everything is as it was"), "{deed}: {plan}");
    }
}

#[test]
fn a_broken_repository_that_names_objects_otherwise_is_another() {
    let mut world = repository();
    runs(&mut world, &["create"]);
    let line = "rm -rf .git && git init -q --object-format=sha256 && git add -A && git commit -qm o \
                && rm -rf .git/objects/??";
    git(&world, &world.root(), line);
    runs(&mut world, &["restore", "1", "--yes"]);
    assert_eq!(git(&world, &world.root(), "git log --format=%s"), "one");
    runs(&mut world, &["undo", "--yes"]);
    runs(&mut world, &["redo", "--yes"]);
    assert_eq!(git(&world, &world.root(), "git log --format=%s"), "one");
}

#[test]
fn a_git_file_that_became_something_else_leads_to_its_repository_again() {
    for line in ["rm wt/.git && git init -q wt", "echo 'gitdir: ../o/.git' > wt/.git"] {
        let mut world = repository();
        git(&world, &world.root(), "git init -q o && git worktree add -q wt && echo 2 > wt/a");
        let wt = world.root().join("wt");
        let tell = "git rev-parse --git-dir && git status --porcelain && git log --format=%H";
        let before = git(&world, &wt, tell);
        runs(&mut world, &["create"]);
        git(&world, &world.root(), line);
        let there = on_disk(&wt);
        runs(&mut world, &["restore", "1", "--yes"]);
        assert_eq!(git(&world, &wt, tell), before, "{line}");
        runs(&mut world, &["undo", "--yes"]);
        let names = |files: Files| files.into_keys().collect::<Vec<_>>();
        assert_eq!(names(on_disk(&wt)), names(there), "{line}");
    }
}

#[test]
fn what_leads_nowhere_is_held_before_it_is_replaced() {
    let mut world = repository();
    git(&world, &world.root(), "git worktree add -q wt");
    runs(&mut world, &["create"]);
    world.write("wt/.git", "only here\n");
    runs(&mut world, &["restore", "1", "--yes"]);
    git(&world, &world.root().join("wt"), "git status");
    runs(&mut world, &["undo", "--yes"]);
    assert_eq!(world.read("wt/.git"), "only here\n");
    runs(&mut world, &["redo", "--yes"]);
    git(&world, &world.root().join("wt"), "git status");
}

#[test]
fn a_git_file_or_link_that_leads_nowhere_comes_back() {
    for mut world in [repository(), World::new()] {
        let root = world.root();
        for name in ["file", "link"] {
            world.write(&format!("{name}/f"), "f\n");
        }
        world.write("file/.git", "gitdir: ../../gone/.git/worktrees/file\n");
        link(&root.join("link/.git"), "../gone");
        runs(&mut world, &["create"]);
        let there = on_disk(&root);
        runs(&mut world, &["restore", "1", "--dry-run"]);
        git(&world, &root, "rm -rf file link/.git");
        let gone = on_disk(&root);
        runs(&mut world, &["restore", "1", "--yes"]);
        assert_eq!(on_disk(&root), there);
        runs(&mut world, &["undo", "--yes"]);
        assert_eq!(on_disk(&root), gone);
        runs(&mut world, &["redo", "--yes"]);
        // What was made there since is the user's, and stays.
        git(&world, &root, "rm file/.git && git init -q file");
        let done = runs(&mut world, &["restore", "1", "--yes"]);
        assert!(done.contains("left: file/.git, a repository made since"), "{done}");
        assert!(root.join("file/.git/HEAD").is_file());
    }
}

#[test]
fn a_change_of_a_git_file_that_leads_nowhere_is_a_new_checkpoint() {
    for mut world in [repository(), World::new()] {
        world.write("sub/.git", "gitdir: ../gone\n");
        runs(&mut world, &["create"]);
        world.write("sub/.git", "gitdir: ../other\n");
        world.wait(1);
        runs(&mut world, &["create"]);
        git(&world, &world.root(), "rm sub/.git");
        runs(&mut world, &["restore", "latest", "--yes"]);
        assert_eq!(world.read("sub/.git"), "gitdir: ../other\n");
    }
}

/// Runs a command in a process of its own while another program runs a shell command at a point.
fn while_at(world: &World, args: &[&str], point: &str, line: &str) -> (String, Vec<PathBuf>) {
    let who = "export PATH=/usr/local/bin:/usr/bin:/bin GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b \
               GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; set -e; touch ../came; ";
    let mut command = beforehand(world, &world.root(), args);
    command.env("BEFOREHAND_TEST_RUN_AT", format!("{point}:{who}{line}"));
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{line}: {said}");
    std::fs::remove_file(world.root().join("../came")).unwrap();
    (said, set_aside(&world.root()))
}

fn set_aside(dir: &Path) -> Vec<PathBuf> {
    let all = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    all.filter(|path| path.to_str().unwrap().contains(".git.before-restore-")).collect()
}

/// A repository that `restore 1 --repository` takes back: it has lost a branch.
fn to_be_replaced() -> World {
    let mut world = repository();
    git(&world, &world.root(), "git branch side");
    runs(&mut world, &["create"]);
    git(&world, &world.root(), "git branch -q -D side && echo 2 > staged && git add staged");
    world
}

#[test]
fn a_repository_that_is_changed_in_the_moment_it_is_replaced_is_set_aside() {
    let lines = [
        "git commit -q --allow-empty -m mine",
        "git rm -q --cached staged",
        "git config my.own yes",
        "git tag mine",
        "rm .git/HEAD",
    ];
    for line in lines {
        let world = to_be_replaced();
        let args = ["restore", "1", "--repository", "--yes"];
        let (said, aside) = while_at(&world, &args, "repository", line);
        assert!(said.contains("has content that no checkpoint holds: it is now"), "{said}");
        assert_eq!(git(&world, &world.root(), "git branch --list side | wc -l").trim(), "1");
        let [aside] = &aside[..] else { panic!("{line}: {aside:?}") };
        assert!(said.contains(aside.file_name().unwrap().to_str().unwrap()), "{said}");
        let it = format!("cp -r '{}' ../aside && cd .. && mkdir w", aside.display());
        git(&world, &world.root(), &it);
        let tell =
            "export GIT_DIR=../aside; git log --format=%s; git ls-files; git config -l; git tag";
        let told = try_git(&world, &world.root().join("../w"), tell).unwrap_or_default();
        match line.split(' ').nth(1).unwrap() {
            "commit" => assert!(told.starts_with("mine\n"), "{told}"),
            "rm" => assert!(!told.contains("staged"), "{told}"),
            "config" => assert!(told.contains("my.own=yes"), "{told}"),
            "tag" => assert!(told.ends_with("mine\n"), "{told}"),
            _ => assert!(!aside.join("HEAD").exists()),
        }
    }
}

#[test]
fn what_is_as_it_was_held_is_not_set_aside() {
    // An object without a name comes along; what git knows of files' stamps is no change.
    for line in ["true", "touch a && git status -s", "echo own | git hash-object -w --stdin"] {
        let mut world = to_be_replaced();
        let args = ["restore", "1", "--repository", "--yes"];
        let (said, aside) = while_at(&world, &args, "repository", line);
        assert!(aside.is_empty() && !said.contains("changed after"), "{line}: {said}");
        runs(&mut world, &["undo", "--yes"]);
        assert_eq!(git(&world, &world.root(), "git diff --cached --name-only"), "staged");
        if line.starts_with("echo own") {
            git(&world, &world.root(), "git cat-file -e $(echo own | git hash-object --stdin)");
        }
    }
}

#[test]
fn a_repository_that_is_changed_in_the_moment_it_is_removed_is_set_aside() {
    let mut world = repository();
    let nest = "git init -q nest && cd nest && echo 1 > n && git add n && git commit -qm one";
    git(&world, &world.root(), nest);
    runs(&mut world, &["create"]);
    git(&world, &world.root(), "rm -rf nest");
    runs(&mut world, &["restore", "1", "--yes"]);
    let commit = "git -C nest commit -q --allow-empty -m mine";
    while_at(&world, &["undo", "--yes"], "repository-removed", commit);
    let aside = set_aside(&world.root().join("nest"));
    let tell = format!("git --git-dir='{}' log --format=%s", aside[0].display());
    assert_eq!(git(&world, &world.root(), &tell), "mine\none");
}

#[test]
fn what_was_committed_while_a_restore_lay_interrupted_is_set_aside() {
    for (point, then) in [
        ("repository", "--continue"),
        ("repository-exchanged", "--continue"),
        ("repository-exchanged", "--abort"),
    ] {
        let mut world = to_be_replaced();
        assert!(dies_at(&world, &["restore", "1", "--repository", "--yes"], point));
        git(&world, &world.root(), "git commit -q --allow-empty -m mine");
        let said = runs(&mut world, &["restore", then]);
        let aside = set_aside(&world.root());
        let [aside] = &aside[..] else { panic!("{point} {then}: {aside:?}: {said}") };
        assert!(said.contains("has content that no checkpoint holds"), "{said}");
        let tell = format!("git --git-dir='{}' log --format=%s", aside.display());
        assert_eq!(git(&world, &world.root(), &tell), "mine\none", "{point} {then}");
        let side = git(&world, &world.root(), "git branch --list side");
        assert_eq!(side.is_empty(), then == "--abort", "{point} {then}");
    }
}

/// It is held, so half of it is no other repository.
#[test]
fn a_replaced_repository_of_which_a_killed_restore_deleted_a_part_goes_whole() {
    for then in ["--continue", "--abort"] {
        let mut world = to_be_replaced();
        let args = ["restore", "1", "--repository", "--yes"];
        assert!(dies_at(&world, &args, "repository-retired"), "it is never reached");
        let left = |world: &World| -> Vec<PathBuf> {
            let all = std::fs::read_dir(world.root()).unwrap().map(|entry| entry.unwrap().path());
            all.filter(|path| path.file_name().unwrap().to_str().unwrap().contains("beforehand"))
                .collect()
        };
        let [old] = &left(&world)[..] else { panic!("{:?}", left(&world)) };
        std::fs::remove_file(old.join("HEAD")).unwrap();
        beforehand::fs::remove_tree(&old.join("refs")).unwrap();
        runs(&mut world, &["restore", then]);
        assert_eq!((left(&world), set_aside(&world.root())), (vec![], vec![]), "{then}");
        let side = git(&world, &world.root(), "git branch --list side");
        assert_eq!(side.is_empty(), then == "--abort", "{then}");
        git(&world, &world.root(), "git fsck --strict");
    }
}

#[test]
fn undo_takes_back_a_git_file_that_a_restore_made() {
    let mut world = repository();
    git(&world, &world.root(), "git worktree add -q wt");
    runs(&mut world, &["create"]);
    git(&world, &world.root(), "git worktree remove --force wt");
    runs(&mut world, &["restore", "1", "--yes"]);
    git(&world, &world.root().join("wt"), "git status");
    runs(&mut world, &["undo", "--yes"]);
    assert!(!world.root().join("wt").exists());
    git(&world, &world.root(), "git status && git fsck --strict");
}

#[test]
fn undo_after_a_redo_brings_back_what_was_made_before_it() {
    let mut world = repository();
    git(
        &world,
        &world.root(),
        "git init -q nest && echo 1 > nest/n && git -C nest add n && git -C \
         nest commit -qm one",
    );
    runs(&mut world, &["create"]);
    git(&world, &world.root(), "rm -rf nest");
    runs(&mut world, &["restore", "1", "--yes"]);
    runs(&mut world, &["undo", "--yes"]);
    git(
        &world,
        &world.root(),
        "git init -q nest && echo mine > nest/m && git -C nest add m && git -C \
         nest commit -qm mine",
    );
    let before = git(&world, &world.root().join("nest"), "git log --format=%H && ls");
    runs(&mut world, &["redo", "--yes", "--force"]);
    git(&world, &world.root().join("nest"), "git cat-file -e HEAD:n");
    runs(&mut world, &["undo", "--yes"]);
    assert_eq!(git(&world, &world.root().join("nest"), "git log --format=%H && ls"), before);
}

#[test]
fn what_was_staged_comes_back_beside_another_repository() {
    let mut world = repository();
    git(
        &world,
        &world.root(),
        "git init -q nest && echo 1 > nest/n && git -C nest add n && git -C \
         nest commit -qm one && echo new > staged && git add staged",
    );
    runs(&mut world, &["create"]);
    git(&world, &world.root(), "rm -rf nest && git reset -q");
    runs(&mut world, &["restore", "1", "--yes"]);
    git(&world, &world.root().join("nest"), "git fsck --strict");
    assert_eq!(git(&world, &world.root(), "git diff --cached --name-only").trim(), "staged");
}

#[test]
fn a_ref_that_moves_among_thousands_is_noticed() {
    let mut world = repository();
    let make = "h=$(git rev-parse HEAD); for i in $(seq 2100); do echo \"create refs/tags/g$((i%9))/$i \
                $h\"; done | git update-ref --stdin && git commit -q --allow-empty -m two";
    git(&world, &world.root(), make);
    let count = |world: &mut World| {
        world.wait(10);
        runs(world, &["create"]);
        runs(world, &["list", "--all"]).lines().count()
    };
    assert_eq!(count(&mut world), count(&mut world), "nothing has changed");
    for line in ["git tag -f g3/3 HEAD >&2", "git tag -d g4/4 >&2", "git tag g5/new"] {
        let before = count(&mut world);
        git(&world, &world.root(), line);
        assert_eq!(count(&mut world), before + 1, "{line}");
    }
}

#[test]
fn a_partial_checkpoint_does_not_replace_a_repository_that_works() {
    let mut world = repository();
    git(&world, &world.root(), "echo staged > staged && git add staged");
    world.set("BEFOREHAND_DEADLINE", "1ms");
    world.before_bash("t", "./build.sh");
    let shown = runs(&mut world, &["show", "latest"]);
    assert!(shown.contains("partial "), "{shown}");
    let refused = world.run(&["restore", "latest", "--repository", "--yes"]);
    assert_eq!(refused.exit.code(), 1, "{}", refused.stdout);
    assert!(refused.stderr.contains("is partial, and the repository"), "{}", refused.stderr);
    assert_eq!(git(&world, &world.root(), "git diff --cached --name-only"), "staged");
}

/// What goes with a repository that a restore had made, and that is removed when that is undone.
#[test]
fn commits_in_a_repository_that_a_redo_removes_are_named() {
    let mut world = repository();
    world.before_bash("t1", "rm -rf .git");
    git(&world, &world.root(), "rm -rf .git");
    runs(&mut world, &["undo", "--yes"]);
    git(&world, &world.root(), "git commit -q --allow-empty -m own");
    assert!(runs(&mut world, &["redo", "--dry-run"]).contains("keep      .git/   changed since"));
    for args in [["redo", "--force", "--dry-run"], ["redo", "--force", "--yes"]] {
        let said = runs(&mut world, &args);
        assert!(said.contains("loses 1 commit made since: ") && said.contains(" own\n"), "{said}");
    }
    assert!(!world.root().join(".git").exists());
    runs(&mut world, &["undo", "--yes"]);
    assert_eq!(git(&world, &world.root(), "git log -1 --format=%s"), "own");
}

#[test]
fn whatever_of_a_replaced_repository_goes_is_named() {
    let mut world = repository();
    runs(&mut world, &["create"]);
    let line = "git notes add -m note && git config user.name other && git worktree add -q ../tree \
                && mkdir -p .git/hooks && echo x > .git/hooks/pre-commit";
    git(&world, &world.root(), line);
    for args in [["--dry-run"], ["--yes"]] {
        let said = runs(&mut world, &[&["restore", "1", "--repository"], &args[..]].concat());
        assert!(said.contains("made since, and removed: tree, refs/notes/commits"), "{said}");
        let changed = "changed since in the repository, and replaced: config, hooks/pre-commit, worktrees/tree";
        assert!(said.contains(changed), "{said}");
    }
    runs(&mut world, &["undo", "--yes"]);
    git(&world, &world.root(), "git notes show && test -f .git/hooks/pre-commit");
}
