//! What is held of a `.git` and comes back: odd files in it, parts of it, damaged packs, and what
//! stands at the places of our own files.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::FileType;
use turnback::process::Exit;

use crate::support::{
    real::{git, try_git, turnback},
    temp::{noise, special, write},
    world::World,
};

/// A repository with one commit.
fn repository() -> World {
    let world = World::new();
    world.write("a", "one\n");
    git(&world, &world.root(), "git init -q -b main && git add -A && git commit -qm one");
    world
}

/// The same with a pack that is too large to be copied at once.
fn packed() -> World {
    let world = repository();
    for number in 0..5 {
        world.write(&format!("large/{number}"), noise(number, 1 << 20));
    }
    git(&world, &world.root(), "git add -A && git commit -qm large && git gc -q");
    world
}

#[track_caller]
fn runs(world: &mut World, args: &[&str]) -> String {
    let output = world.run(args);
    assert_eq!(output.exit, Exit::Ok, "{args:?}: {}{}", output.stdout, output.stderr);
    output.stdout + &output.stderr
}

#[track_caller]
fn fails(world: &mut World, args: &[&str]) -> String {
    let output = world.run(args);
    assert_ne!(output.exit, Exit::Ok, "{args:?}: {}", output.stdout);
    output.stderr + &output.stdout
}

/// The files of one extension in a directory.
fn files(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let all = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    all.filter(|path| path.extension().is_some_and(|end| end == extension)).collect()
}

/// Changes a file that may not be written, without giving it another inode.
fn overwrite(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    let file = fs::OpenOptions::new().write(true).truncate(true).open(path).unwrap();
    std::io::Write::write_all(&mut { file }, &bytes).unwrap();
}

#[test]
fn a_file_of_git_that_is_too_large_is_named_every_time_and_never_replaced() {
    let mut world = repository();
    let large = world.root().join(".git/large");
    fs::File::create(&large).unwrap().set_len((64 << 20) + 1).unwrap();
    for _ in 0..3 {
        world.wait(1);
        let said = runs(&mut world, &["create"]);
        assert!(said.contains(".git/large"), "{said}");
    }
    for damage in ["true", "rm .git/HEAD"] {
        git(&world, &world.root(), damage);
        let said = fails(&mut world, &["restore", "latest", "--yes", "--repository"]);
        assert!(said.contains("cannot hold `.git/large` first"), "{damage}: {said}");
        assert_eq!(large.metadata().unwrap().len(), (64 << 20) + 1, "{damage}");
    }
}

#[test]
fn what_no_checkpoint_has_is_carried_over() {
    let mut world = packed();
    let dot_git = world.root().join(".git");
    let keep = files(&dot_git.join("objects/pack"), "pack")[0].with_extension("keep");
    write(&keep, "for a reason\n");
    special(&dot_git.join("pipe"), FileType::Fifo, 0o600);
    runs(&mut world, &["create"]);
    runs(&mut world, &["restore", "latest", "--yes", "--repository"]);
    assert_eq!(fs::read_to_string(keep).unwrap(), "for a reason\n");
    assert!(!dot_git.join("pipe").metadata().unwrap().is_file());
    git(&world, &world.root(), "git fsck --strict");
}

#[test]
fn a_large_file_of_an_extension_is_linked_and_half_a_copy_is_none() {
    let mut world = repository();
    let below = "lfs/objects/aa/bb";
    let theirs = world.root().join(".git").join(below).join("aabb");
    write(&theirs, noise(1, 5 << 20));
    runs(&mut world, &["create"]);
    let ours = world.private().join("linked").join(below);
    let linked = ours.join("aabb").metadata().unwrap();
    assert_eq!(linked.ino(), theirs.metadata().unwrap().ino(), "copied, though it is large");
    write(&ours.join("aacc.tmp-1-0"), "half a fi");
    runs(&mut world, &["restore", "latest", "--yes", "--repository"]);
    assert_eq!(fs::read(&theirs).unwrap(), noise(1, 5 << 20));
    assert!(!theirs.with_file_name("aacc.tmp-1-0").exists());
}

#[test]
fn the_part_of_a_submodule_or_worktree_comes_back_by_itself() {
    let mut world = repository();
    let beside = world.root().parent().unwrap().to_owned();
    git(
        &world,
        &beside,
        "git init -q lib && cd lib && echo 1 > l && git add l && git commit -qm l",
    );
    git(
        &world,
        &world.root(),
        "git -c protocol.file.allow=always submodule --quiet add ../lib sub && git commit -qm sub \
         && cd sub && echo mine > l && git commit -qam mine && echo later > l \
         && cd .. && git worktree add -q ../tree",
    );
    let tell = "git -C sub log --format=%H && git -C sub status --porcelain && git status \
                --porcelain && git -C ../tree status --porcelain && git -C sub fsck --strict";
    let before = git(&world, &world.root(), tell);
    runs(&mut world, &["create"]);
    for line in ["rm -rf .git/modules sub/.git", "rm -rf .git/modules", "rm -rf .git/worktrees"] {
        git(&world, &world.root(), line);
        runs(&mut world, &["restore", "latest", "--yes"]);
        assert_eq!(git(&world, &world.root(), tell), before, "{line}");
    }
}

#[test]
fn a_part_that_was_cut_off_is_no_part_yet() {
    let mut world = repository();
    git(&world, &world.root(), "git worktree add -q tree");
    runs(&mut world, &["create"]);
    git(&world, &world.root(), "rm -rf .git/worktrees");
    let mut restore = turnback(&world, &world.root(), &["restore", "1", "--yes"]);
    restore.env("TURNBACK_TEST_CRASH_AT", "repository-part");
    assert_eq!(restore.output().unwrap().status.code(), None, "it is never reached");
    assert!(!world.root().join(".git/worktrees").exists());
    runs(&mut world, &["restore", "--continue"]);
    git(&world, &world.root().join("tree"), "git status");
    assert!(!world.root().join(".git/.turnback-tmp-repository").exists());
}

#[test]
fn a_save_relies_on_no_pack_that_was_cut_short() {
    for change in [Vec::clear, |bytes: &mut Vec<u8>| *bytes.last_mut().unwrap() ^= 1] {
        let mut world = packed();
        let bytes = fs::read(world.root().join("large/3")).unwrap();
        git(&world, &world.root(), "git rm -q large/3 && git commit -qm without");
        runs(&mut world, &["create"]);
        let pack = &files(&world.root().join(".git/objects/pack"), "pack")[0];
        overwrite(pack, change);
        // Only the broken pack has these.
        world.write("again", &bytes);
        world.wait(1);
        runs(&mut world, &["create"]);
        fs::remove_file(world.root().join("again")).unwrap();
        runs(&mut world, &["restore", "latest", "--yes"]);
        assert_eq!(fs::read(world.root().join("again")).unwrap(), bytes);
    }
}

#[test]
fn of_a_damaged_pack_comes_back_what_there_was() {
    let mut world = packed();
    runs(&mut world, &["create"]);
    let pack = files(&world.root().join(".git/objects/pack"), "pack")[0].clone();
    overwrite(&pack, |bytes| *bytes.last_mut().unwrap() ^= 1);
    world.write("later", "one more\n");
    world.wait(1);
    runs(&mut world, &["create"]);
    git(&world, &world.root(), "rm -rf .git");
    runs(&mut world, &["restore", "latest", "--yes"]);
    assert!(pack.with_extension("idx").is_file(), "no index, and so nothing of the history");
    // Git reads no pack that does not end as its index says; with that put right it reads all of it.
    overwrite(&pack, |bytes| *bytes.last_mut().unwrap() ^= 1);
    git(&world, &world.root(), "git fsck --strict && git show HEAD:large/1 > /dev/null");
}

#[test]
fn a_pipe_among_our_packs_is_named_and_cleared_away() {
    let mut world = packed();
    runs(&mut world, &["create"]);
    for dir in ["objects/pack", "linked/objects/pack"] {
        let pipe = world.private().join(dir).join("pack-1.idx");
        special(&pipe, FileType::Fifo, 0o600);
        world.write("a", format!("{dir}\n"));
        world.wait(1);
        fails(&mut world, &["create"]);
        let said = fails(&mut world, &["check"]);
        assert!(said.contains("pack-1.idx"), "{said}");
        runs(&mut world, &["check", "--repair"]);
        assert!(pipe.symlink_metadata().is_err());
        runs(&mut world, &["create"]);
    }
}

#[test]
fn an_unreadable_log_of_a_restore_is_put_aside() {
    let mut world = repository();
    runs(&mut world, &["create"]);
    let roots = world.state().join("roots");
    let log = fs::read_dir(roots).unwrap().next().unwrap().unwrap().path().join("restore-log");
    write(&log, "{");
    fails(&mut world, &["check"]);
    let said = runs(&mut world, &["check", "--repair"]);
    assert!(said.contains("restore-log.damaged"), "{said}");
    assert_eq!(fs::read_to_string(log.with_extension("damaged")).unwrap(), "{");
    world.write("a", "two\n");
    runs(&mut world, &["restore", "latest", "--yes", "--force"]);
    assert_eq!(world.read("a"), "one\n");
}

#[test]
fn a_refused_restore_leaves_modes_as_they_were() {
    let mut world = repository();
    let dot_git = world.root().join(".git");
    let large = dot_git.join("large");
    fs::File::create(&large).unwrap().set_len((64 << 20) + 1).unwrap();
    runs(&mut world, &["create"]);
    fs::set_permissions(dot_git.join("config"), fs::Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(dot_git.join("refs"), fs::Permissions::from_mode(0o000)).unwrap();
    fails(&mut world, &["restore", "latest", "--yes", "--repository"]);
    for name in ["config", "refs"] {
        let mode = dot_git.join(name).metadata().unwrap().mode() & 0o7777;
        assert_eq!(mode, 0, "{name}");
    }
}

#[test]
fn a_key_that_nobody_knows_frees_nothing() {
    let mut world = repository();
    world.write("untracked", noise(1, 100_000));
    runs(&mut world, &["create"]);
    let roots = world.state().join("roots");
    let root = fs::read_dir(roots).unwrap().next().unwrap().unwrap().path();
    let record = files(&root.join("checkpoints"), "json")[0].clone();
    let whole = fs::read_to_string(&record).unwrap();
    for key in ["repositories", "tree", "store"] {
        let broken = whole.replacen(&format!("\"{key}\""), &format!("\"{key}_\""), 1);
        assert_ne!(broken, whole, "{key}");
        fs::set_permissions(&record, fs::Permissions::from_mode(0o600)).unwrap();
        write(&record, broken);
        fails(&mut world, &["check"]);
        world.run(&["prune"]);
        write(&record, &whole);
        git(&world, &world.root(), "rm -rf .git untracked");
        runs(&mut world, &["restore", "latest", "--yes"]);
        assert_eq!(fs::read(world.root().join("untracked")).unwrap(), noise(1, 100_000), "{key}");
        git(&world, &world.root(), "git fsck --strict");
    }
}

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
    let passed = world.run(&["undo", "--dry-run"]).stderr;
    assert!(passed.contains("gone since: feat, v1, 1 stash"), "{passed}");
    let plan = runs(&mut world, &["restore", "1", "--dry-run"]);
    assert!(plan.contains("gone since: feat, v1, 1 stash; `turnback restore "), "{plan}");
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
    for args in [["--dry-run"], ["--yes"]] {
        let said = runs(&mut world, &[&["restore", "1", "--repository"], &args[..]].concat());
        assert!(
            said.contains("main loses 1 commit made since: ") && said.contains(" own\n"),
            "{said}"
        );
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
    assert!(plan.contains("staged otherwise then: nest/.git; `turnback restore "), "{plan}");
    assert!(plan.contains("staged otherwise then: .git/modules/sub; "), "{plan}");
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
        // This git is too old.
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
    assert!(plan.contains("staged otherwise then: .git; "), "{plan}");
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
