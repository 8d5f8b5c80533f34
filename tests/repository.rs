//! Restores of a `.git`: unusual files in it, parts of it, damaged packs, and other files in the
//! place of our own.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use beforehand::{process::Exit, state::StateDir};
use rustix::fs::FileType;

use crate::support::{
    real::{beforehand, git},
    temp::{noise, special, write},
    world::World,
};

/// A repository with one commit.
pub(crate) fn repository() -> World {
    let world = World::new();
    world.write("a", "one\n");
    git(&world, &world.root(), "git init -q -b main && git add -A && git commit -qm one");
    world
}

/// The same with a pack that is too large to be copied at once.
pub(crate) fn packed() -> World {
    let world = repository();
    for number in 0..5 {
        world.write(&format!("large/{number}"), noise(number, 1 << 20));
    }
    git(&world, &world.root(), "git add -A && git commit -qm large && git gc -q");
    world
}

#[track_caller]
pub(crate) fn runs(world: &mut World, args: &[&str]) -> String {
    let output = world.run(args);
    assert_eq!(output.exit, Exit::Ok, "{args:?}: {}{}", output.stdout, output.stderr);
    output.stdout + &output.stderr
}

#[track_caller]
pub(crate) fn fails(world: &mut World, args: &[&str]) -> String {
    let output = world.run(args);
    assert_ne!(output.exit, Exit::Ok, "{args:?}: {}", output.stdout);
    output.stderr + &output.stdout
}

/// The files of one extension in a directory.
pub(crate) fn files(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let all = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    all.filter(|path| path.extension().is_some_and(|end| end == extension)).collect()
}

/// Changes a file that may not be written, without giving it another inode.
pub(crate) fn overwrite(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
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
    let lib = "git init -q lib && cd lib && echo 1 > l && git add l && git commit -qm l";
    git(&world, &beside, lib);
    git(
        &world,
        &world.root(),
        "git -c protocol.file.allow=always submodule --quiet add ../lib sub && git commit -qm sub \
         && cd sub && echo mine > l && git commit -qam mine && echo later > l \
         && git worktree add -q --detach ../../subtree && touch ../../subtree/new \
         && git -C ../../subtree add new && cd .. && git worktree add -q ../tree",
    );
    let tell = "git -C sub log --format=%H && git -C sub status --porcelain && git status \
                --porcelain && git -C ../tree status --porcelain && git -C sub fsck --strict \
                && git -C ../subtree status --porcelain";
    let before = git(&world, &world.root(), tell);
    runs(&mut world, &["create"]);
    for what in ["modules sub/.git", "modules", "worktrees", "modules/sub/worktrees"] {
        git(&world, &world.root(), &format!("rm -rf .git/{what}"));
        runs(&mut world, &["restore", "latest", "--yes"]);
        assert_eq!(git(&world, &world.root(), tell), before, "{what}");
    }
}

#[test]
fn a_part_that_was_cut_off_is_no_part_yet() {
    let mut world = repository();
    git(&world, &world.root(), "git worktree add -q tree");
    runs(&mut world, &["create"]);
    git(&world, &world.root(), "rm -rf .git/worktrees");
    let mut restore = beforehand(&world, &world.root(), &["restore", "1", "--yes"]);
    restore.env("BEFOREHAND_TEST_CRASH_AT", "repository-part");
    assert_eq!(restore.output().unwrap().status.code(), None, "it is never reached");
    assert!(!world.root().join(".git/worktrees").exists());
    runs(&mut world, &["restore", "--continue"]);
    git(&world, &world.root().join("tree"), "git status");
    let left = fs::read_dir(world.root().join(".git")).unwrap();
    let mut names = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(names.all(|name| !name.starts_with(".beforehand-tmp-")));
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
    assert_eq!(world.run(&["restore", "latest", "--yes"]).exit, Exit::Conflicts);
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
fn an_unknown_key_frees_nothing() {
    let mut world = repository();
    world.write("untracked", noise(1, 100_000));
    runs(&mut world, &["create"]);
    let roots = world.state().join("roots");
    let root = fs::read_dir(roots).unwrap().next().unwrap().unwrap().path();
    let record = files(&root.join("checkpoints"), "json")[0].clone();
    let whole = fs::read_to_string(&record).unwrap();
    let copy = git(&world, &world.private(), "git for-each-ref --format='%(refname)' refs/private");
    git(&world, &world.private(), &format!("git update-ref -d {copy}"));
    for key in ["repositories", "tree", "store", "private"] {
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

#[test]
fn a_branch_may_have_any_name() {
    let mut world = repository();
    git(
        &world,
        &world.root(),
        "for name in tmp_fix index docs/index FETCH_HEAD gc.pid feature/objects feature/config \
         x/objects/pack/y logs/refs; do git branch $name; done; git worktree add -q ../tmp_tree",
    );
    runs(&mut world, &["create"]);
    git(
        &world,
        &world.root(),
        "git commit -q --allow-empty -m two; for name in index tmp_fix; do git branch -f $name; done",
    );
    world.wait(1);
    runs(&mut world, &["create"]);
    let before = git(&world, &world.root(), "git for-each-ref && git worktree list");
    git(&world, &world.root(), "rm -rf .git");
    runs(&mut world, &["restore", "latest", "--yes"]);
    assert_eq!(git(&world, &world.root(), "git for-each-ref && git worktree list"), before);
    git(&world, &world.root(), "git fsck --strict");
}

#[test]
fn objects_are_held_wherever_they_lie_below_git() {
    let mut world = packed();
    let beside = world.root().parent().unwrap().to_owned();
    git(
        &world,
        &beside,
        "git init -q lib && cd lib && echo 1 > l && git add l && git commit -qm l && cd ../shop && \
         git worktree add -q ../tree && cd ../tree && \
         git -c protocol.file.allow=always submodule --quiet add ../lib sub && git commit -qm sub \
         && cd sub && echo mine > l && git commit -qam mine && cd ../../shop && \
         git clone -q --mirror ../lib .git/backup && cd .git && git init -q . && git init -q inner",
    );
    let tell = "git -C ../tree/sub log --format=%H && git -C ../tree/sub fsck --strict && git -C \
                .git/backup fsck --strict && git -C .git/backup for-each-ref && git fsck --strict";
    let before = git(&world, &world.root(), tell);
    runs(&mut world, &["create"]);
    git(&world, &world.root(), "rm -rf .git");
    runs(&mut world, &["restore", "latest", "--yes"]);
    assert_eq!(git(&world, &world.root(), tell), before);
    assert!(world.root().join(".git/inner/.git/HEAD").is_file());
}

#[test]
fn of_a_directory_that_is_none_of_objects_nothing_is_borrowed() {
    let mut world = repository();
    let other = world.root().parent().unwrap().join("other");
    for name in ["secret", "pack/secret", "ab/secret", "pack/pack-1/secret"] {
        write(&other.join(name), noise(1, 1000));
    }
    write(&world.root().join(".git/objects/info/alternates"), format!("{}\n", other.display()));
    runs(&mut world, &["create"]);
    let found = git(&world, &world.state(), "find . -name 'secret*'");
    assert_eq!(found, "");
}

#[test]
fn what_gc_took_stays_as_long_as_a_checkpoint_needs_it() {
    let mut world = packed();
    git(&world, &world.root(), "rm -rf large && git add -A && git commit -qm without");
    runs(&mut world, &["create"]);
    world.wait(1);
    world.write("a", "two\n");
    runs(&mut world, &["create"]);
    let log = "git log --stat --format=%H";
    let before = git(&world, &world.root(), log);
    git(
        &world,
        &world.root(),
        "git checkout -q --orphan new && git commit -qm new && git branch -D main && \
         git reflog expire --expire=now --all && git gc -q --prune=now",
    );
    // The oldest goes, and the other one needs what the gc took.
    runs(&mut world, &["prune", "--keep", "1"]);
    beforehand::store::maintain(&StateDir::new(world.state()), u64::MAX).unwrap();
    git(&world, &world.root(), "rm -rf .git");
    runs(&mut world, &["restore", "latest", "--yes"]);
    assert_eq!(git(&world, &world.root(), log), before);
    git(&world, &world.root(), "git fsck --strict");
}

#[test]
fn what_is_missing_among_borrowed_objects_is_borrowed_again() {
    for dir in ["linked/objects/pack", "linked/objects"] {
        let mut world = packed();
        git(&world, &world.root(), "git rm -qr large && git commit -qm without");
        world.wait(1);
        runs(&mut world, &["create"]);
        let log = "git log --stat && git fsck --strict";
        let before = git(&world, &world.root(), log);
        let files = format!("find {dir} -type f -delete");
        git(&world, &world.private(), &files);
        world.wait(1);
        runs(&mut world, &["create"]);
        git(&world, &world.root(), "rm -rf .git");
        runs(&mut world, &["restore", "latest", "--yes"]);
        assert_eq!(git(&world, &world.root(), log), before, "{dir}");
    }
}

#[test]
fn history_that_was_destroyed_is_not_given_up_for_room() {
    let mut world = packed();
    git(&world, &world.root(), "git rm -qr large && git commit -qm without");
    runs(&mut world, &["create"]);
    let log = "git log --stat && git fsck --strict --no-dangling";
    let before = git(&world, &world.root(), log);
    for line in ["rm -rf .git", "git init -q -b main && git add -A && git commit -qm new"] {
        git(&world, &world.root(), line);
        if line.contains("init") {
            world.wait(1);
            runs(&mut world, &["create"]);
        }
        beforehand::store::repository::give_up_history(&StateDir::new(world.state())).unwrap();
    }
    runs(&mut world, &["restore", "2", "--yes"]);
    assert_eq!(git(&world, &world.root(), log), before);
}

#[test]
fn a_repository_in_an_ignored_directory_is_held_when_a_call_names_it() {
    let mut world = repository();
    world.write(".gitignore", "vendor/\n");
    git(
        &world,
        &world.root(),
        "git init -q vendor/lib && cd vendor/lib && echo 1 > l && git add l && git commit -qm l && \
         echo 2 > l && git stash -q",
    );
    let tell = "git log --format=%H && git stash list && git fsck --strict";
    let nested = world.root().join("vendor/lib");
    let before = git(&world, &nested, tell);
    for line in ["rm -rf vendor/lib", "rm -rf vendor"] {
        world.before_bash(line, line);
        git(&world, &world.root(), line);
        runs(&mut world, &["restore", "1", "--yes"]);
        assert_eq!(git(&world, &nested, tell), before, "{line}");
    }
}

#[test]
fn bytes_are_the_files_own_whatever_git_makes_of_them() {
    for store in ["auto", "files"] {
        let mut world = repository();
        write(&world.settings(), format!("store = \"{store}\"\n"));
        // Untracked, as those of the user and of the system are.
        write(&world.root().join(".git/info/exclude"), ".gitattributes\n");
        world.write(".gitattributes", "* text=auto\n");
        world.write("crlf", "one\r\ntwo\r\n");
        // Git looks at a file's stamp once it is old enough to prove something.
        std::thread::sleep(std::time::Duration::from_millis(1100));
        git(&world, &world.root(), "git add -A && git commit -qm two && rm .gitattributes");
        runs(&mut world, &["create"]);
        runs(&mut world, &["check", "--read-data"]);
        fs::remove_file(world.root().join("crlf")).unwrap();
        runs(&mut world, &["restore", "latest", "--yes"]);
        assert_eq!(world.read("crlf"), "one\r\ntwo\r\n", "{store}");
    }
}

/// Runs a command in a process of its own that dies at `point`; tells whether it came there.
pub(crate) fn dies_at(world: &World, args: &[&str], point: &str) -> bool {
    let output = Command::new(env!("CARGO_BIN_EXE_beforehand"))
        .args(args)
        .current_dir(world.root())
        .env_clear()
        .envs(&world.env)
        .env("BEFOREHAND_TEST_CRASH_AT", point)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    output.status.code().is_none()
}

#[test]
fn a_repository_of_ours_that_was_made_by_half_is_made_again() {
    let mut world = repository();
    assert!(dies_at(&world, &["create"], "make-repository"), "it is never reached");
    runs(&mut world, &["create"]);
    git(&world, &world.root(), "rm -rf .git a");
    runs(&mut world, &["restore", "latest", "--yes"]);
    git(&world, &world.root(), "git fsck --strict && git diff --exit-code");
}

/// A repository with many checkpoints, and a gc of the user's since.
fn replaced() -> World {
    let mut world = packed();
    for number in 0..18 {
        world.write("a", format!("{number}\n"));
        world.wait(1);
        runs(&mut world, &["create"]);
    }
    git(&world, &world.root(), "git commit -qam more && git repack -qadf && git prune-packed");
    world.wait(1);
    runs(&mut world, &["create"]);
    world
}

#[test]
fn maintenance_killed_anywhere_loses_nothing() {
    for point in ["make-own", "put-together", "let-go", "maintained"] {
        let mut world = replaced();
        let before = git(&world, &world.root(), "git log --stat && git for-each-ref");
        assert!(dies_at(&world, &["maintain"], point), "{point} is never reached");
        runs(&mut world, &["check", "--read-data"]);
        git(&world, &world.root(), "rm -rf .git a large");
        runs(&mut world, &["restore", "latest", "--yes"]);
        let after = git(&world, &world.root(), "git log --stat && git for-each-ref");
        assert_eq!(after, before, "{point}");
        git(&world, &world.root(), "git fsck --strict && git diff --exit-code");
        beforehand::store::maintain(&StateDir::new(world.state()), u64::MAX).unwrap();
        runs(&mut world, &["check", "--read-data"]);
    }
}

#[test]
fn a_sweep_killed_anywhere_leaves_nothing_that_is_half_there() {
    for (point, args) in [
        ("sweep-pack", &["prune", "--keep", "2"][..]),
        ("sweep-object", &["prune", "--keep", "2"]),
        ("sweep-repository", &["clear", "--yes"]),
    ] {
        let mut world = replaced();
        assert!(dies_at(&world, args, point), "{point} is never reached");
        for text in ["soon\n", "later\n"] {
            world.write("a", text);
            world.wait(1);
            runs(&mut world, &["create"]);
        }
        runs(&mut world, &["check", "--read-data"]);
        runs(&mut world, &["prune", "--keep", "1"]);
        let names = fs::read_dir(world.state().join("repositories")).unwrap();
        assert_eq!(names.count(), 1, "{point}");
        git(&world, &world.root(), "rm -rf .git a large");
        runs(&mut world, &["restore", "latest", "--yes"]);
        assert_eq!(world.read("a"), "later\n");
        git(&world, &world.root(), "git fsck --strict");
    }
}

#[test]
fn a_checkpoint_is_said_to_be_where_it_is() {
    let mut world = repository();
    runs(&mut world, &["create", "-m", "one"]);
    git(&world, &world.root(), "mv .git ../away");
    let in_repository = |world: &mut World, checkpoint: &str| {
        let shown = runs(world, &["show", checkpoint]);
        assert!(shown.contains("in a private repository"), "{shown}");
        let json = runs(world, &["show", checkpoint, "--json"]);
        assert!(json.contains("\"store\": \"git\""), "{json}");
    };
    in_repository(&mut world, "1");
    world.write("a", "without a repository\n");
    world.wait(1);
    runs(&mut world, &["create", "-m", "two"]);
    in_repository(&mut world, "1");
    let listed = runs(&mut world, &["list"]);
    assert!(listed.contains("(git)"), "{listed}");
}

#[test]
fn kept_as_files_the_index_comes_back_with_the_repository_and_show_says_so() {
    let mut world = repository();
    write(&world.settings(), "store = \"files\"\n");
    world.write("a", "staged\n");
    git(&world, &world.root(), "git add a");
    runs(&mut world, &["create"]);
    let shown = runs(&mut world, &["show", "1"]);
    assert!(shown.contains("own store: your settings say so"), "{shown}");
    assert!(shown.contains("what was staged is restored only with the repository"), "{shown}");
    git(&world, &world.root(), "git reset -q");
    runs(&mut world, &["restore", "1", "--yes", "--repository"]);
    assert_eq!(git(&world, &world.root(), "git diff --cached --name-only").trim(), "a");
    // A change of the index alone is one.
    let index =
        |world: &World| git(world, &world.root(), "git ls-files -s; git -C sub ls-files -s");
    git(&world, &world.root(), "git init -q sub && echo x > sub/f && echo y > sub/g && echo z > b");
    for line in ["git add b", "git -C sub add f", "git -C sub add g"] {
        let before = runs(&mut world, &["create"]);
        git(&world, &world.root(), line);
        world.wait(1);
        let (id, staged) = (runs(&mut world, &["create"]), index(&world));
        assert_ne!(id, before, "{line}");
        git(&world, &world.root(), "git status; git -C sub status; touch sub/f; git -C sub status");
        assert_eq!(runs(&mut world, &["create"]), id, "a refresh is none: {line}");
        git(&world, &world.root(), "git read-tree HEAD; git -C sub read-tree --empty");
        runs(&mut world, &["restore", id.trim(), "--yes", "--repository"]);
        assert_eq!(index(&world), staged, "{line}");
    }
    // What is in a private repository is so whatever the settings say by now.
    let mut world = repository();
    runs(&mut world, &["create"]);
    write(&world.settings(), "store = \"files\"\n");
    let shown = runs(&mut world, &["show", "1"]);
    assert!(shown.contains("stored     in a private repository\n"), "{shown}");
    assert!(!shown.contains("what was staged"), "{shown}");
}

/// Removes what was borrowed of an object.
fn lose(world: &World, object: &str) {
    let dir = world.private().join("linked/objects");
    fs::remove_file(dir.join(&object[..2]).join(&object[2..])).unwrap();
}

/// The name of an object in the project's repository.
fn named(world: &World, revision: &str) -> String {
    git(world, &world.root(), &format!("git rev-parse {revision}")).trim().to_owned()
}

#[test]
fn history_that_is_not_held_any_more_is_named() {
    // What is lost, whether that is told without reading everything, and of which ref.
    for (line, lost, is_tip, name) in [
        ("true", "HEAD", true, ".git/HEAD: it leads to"),
        ("true", "HEAD~1", false, ".git/HEAD: of its history"),
        ("true", "HEAD~1^{tree}", false, ".git/HEAD: of its history"),
        ("true", "HEAD~1:a", false, ".git/HEAD: of its history"),
        ("git tag -a t -m t", "t", true, ".git/refs/tags/t: it leads to"),
        ("git branch b HEAD~1 && git pack-refs --all", "b", true, ".git/refs/heads/b: it leads"),
        ("echo x > a && git stash -q", "stash", true, ".git/refs/stash: it leads to"),
        ("git checkout -q --detach", "HEAD", true, ".git/HEAD: it leads to"),
    ] {
        let mut world = repository();
        world.write("a", "two\n");
        git(&world, &world.root(), "git commit -qam two");
        git(&world, &world.root(), line);
        runs(&mut world, &["create"]);
        runs(&mut world, &["check", "--read-data"]);
        let object = named(&world, lost);
        lose(&world, &object);
        if is_tip {
            let said = fails(&mut world, &["check"]);
            assert!(said.contains(name) && said.contains(&object), "{lost}: {said}");
        } else {
            runs(&mut world, &["check"]);
        }
        let said = fails(&mut world, &["check", "--read-data"]);
        assert!(said.contains(name) && said.contains(&object), "{lost}: {said}");
        assert!(said.contains("every checkpoint is damaged"), "{lost}: {said}");
    }
}

#[test]
fn a_repository_that_comes_back_without_its_commit_is_said_to() {
    let mut world = repository();
    runs(&mut world, &["create"]);
    let commit = named(&world, "HEAD");
    lose(&world, &commit);
    let told = format!("without {commit}, which HEAD led to: not held");
    git(&world, &world.root(), "rm -rf .git");
    let planned = runs(&mut world, &["restore", "latest", "--dry-run"]);
    assert!(planned.contains(&told), "{planned}");
    let done = runs(&mut world, &["restore", "latest", "--yes"]);
    assert!(done.contains("the repository is back") && done.contains(&told), "{done}");
    // What was put back lacks it too, and that is no excuse.
    let said = fails(&mut world, &["check"]);
    assert!(said.contains("HEAD: it leads to"), "{said}");
    let root = world.root();
    fs::rename(&root, root.with_extension("away")).unwrap();
    let (home, root) = (world.home(), root.to_str().unwrap().to_owned());
    let args = ["restore", "latest", "--root", &root, "--dry-run"];
    let planned = world.run_in(&home, &args, "");
    assert!((planned.stdout + &planned.stderr).contains(&told));
}

#[test]
fn history_that_the_repository_never_had_is_no_damage() {
    let mut world = repository();
    world.write("a", "two\n");
    git(&world, &world.root(), "git commit -qam two");
    let beside = world.root().parent().unwrap().to_owned();
    let from = format!("file://{}", world.root().display());
    git(&world, &world.root(), "git config uploadpack.allowFilter true");
    let clones = [
        ("shallow", "--depth 1", false),
        ("partial", "--filter=blob:none", false),
        ("b", "", true),
    ];
    for (name, args, note) in clones {
        git(&world, &beside, &format!("git clone -q {args} {from} {name}"));
        let clone = beside.join(name);
        if note {
            let first = named(&world, "HEAD~1");
            let lose = format!(
                "mv .git/objects/pack pack && for p in pack/*.pack; do git unpack-objects -q < $p; \
                 done; rm -rf pack; rm .git/objects/{}/{}",
                &first[..2],
                &first[2..]
            );
            git(&world, &clone, &lose);
        }
        world.wait(1);
        assert_eq!(world.run_in(&clone, &["create"], "").exit, Exit::Ok, "{args}");
        let checked = world.run_in(&clone, &["check", "--read-data"], "");
        assert_eq!(checked.exit, Exit::Ok, "{args}: {}", checked.stdout);
        let is_told = checked.stdout.contains("the repository itself does not have it either");
        assert_eq!(is_told, note, "{args}: {}", checked.stdout);
    }
    // What was broken when it was held, and is another one by now.
    git(&world, &world.root(), "rm -rf .git/objects");
    world.wait(1);
    runs(&mut world, &["create"]);
    git(&world, &world.root(), "rm -rf .git && git init -q && git add -A && git commit -qm new");
    let said = runs(&mut world, &["check", "--read-data"]);
    assert!(said.contains("note: .git/HEAD") && said.contains("could not work with"), "{said}");
}

#[test]
fn the_history_of_a_submodule_is_looked_at_too() {
    let mut world = repository();
    let beside = world.root().parent().unwrap().to_owned();
    let line = "git init -q lib && cd lib && echo 1 > l && git add l && git commit -qm l";
    git(&world, &beside, line);
    git(
        &world,
        &world.root(),
        "git -c protocol.file.allow=always submodule --quiet add ../lib sub && git commit -qm sub \
         && cd sub && echo mine > l && git commit -qam mine",
    );
    runs(&mut world, &["create"]);
    runs(&mut world, &["check", "--read-data"]);
    let commit = git(&world, &world.root(), "git -C sub rev-parse HEAD").trim().to_owned();
    let objects = world.private().join("linked/modules/sub/objects");
    fs::remove_file(objects.join(&commit[..2]).join(&commit[2..])).unwrap();
    let said = fails(&mut world, &["check"]);
    assert!(said.contains(".git/modules/sub/") && said.contains(&commit), "{said}");
}
