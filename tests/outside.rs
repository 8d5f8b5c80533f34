//! The store stands outside what it protects: whatever one command line does to a project and its
//! `.git` together, every checkpoint stays listed and brings back files, index, branches, stashes
//! and history. And nothing but a restore ever writes below the user's `.git`.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::{fs::MetadataExt, process::CommandExt},
    path::Path,
    process::{Command, Output, Stdio},
};

use beforehand::{process::Exit, state::StateDir};
use serde_json::{Value, json};

use crate::support::{
    real::{before, beforehand, git, hook},
    temp::{Files, chmod, noise, on_disk, write},
    world::World,
};

/// The user that tests are who must not be root.
const OTHER_USER: u32 = 12345;

/// A repository with commits, a stash, a branch, a tag, something staged, untracked and ignored.
fn project_in(world: World) -> World {
    world.write(".gitignore", ".env\nbuild/\n");
    world.write("a", "one\n");
    world.write("src/b", "two\n");
    git(
        &world,
        &world.root(),
        "git init -q -b main && git add -A && git commit -qm one && echo x >> a && git stash -q \
         && git branch other && git tag v1 && git tag -am annotated v2 && echo 2 >> src/b \
         && git commit -qam two && echo d > d && git add d && echo u > untracked",
    );
    world.write(".env", "secret\n");
    world.write("src/b", "changed\n");
    world
}

/// The same with so much history that it is linked, not copied at once.
fn large_in(world: World) -> World {
    let world = project_in(world);
    for number in 0..5 {
        world.write(&format!("large/{number}"), noise(number, 1 << 20));
    }
    git(
        &world,
        &world.root(),
        "git add large && git commit -qm large -- large && git -c gc.writeCommitGraph=false gc -q",
    );
    world
}

/// With the store on the project's file system, and on another one.
fn worlds() -> Vec<World> {
    [Some(World::new()), World::without_links()].into_iter().flatten().collect()
}

/// Everything git tells of a repository, and that nothing is wrong with it.
#[track_caller]
fn told_in(world: &World, dir: &Path) -> String {
    git(
        world,
        dir,
        "git status --porcelain && git fsck --strict --no-dangling 2>&1 && \
         git for-each-ref && git log --all --format='%H %s' && git stash list && git reflog && \
         git ls-files -s && git config --list --local && git branch -vv",
    )
}

#[track_caller]
fn told(world: &World) -> String {
    told_in(world, &world.root())
}

fn files(world: &World) -> Files {
    let mut files = on_disk(&world.root());
    files.retain(|path, _| !path.starts_with(b".git/") && path != b".git");
    files
}

/// The agent is about to run a command line, and runs it: here, as `deed` says.
#[track_caller]
fn agent_runs(world: &mut World, turn: &str, line: &str, deed: &str) {
    let answer = world.before_bash(turn, line);
    assert!(!answer.contains("NOT protected"), "{line}: {answer}");
    world.wait(1);
    // In a place that stays.
    let line = format!("cd {} && {{ {deed}\n}}", world.root().display());
    git(world, world.root().parent().unwrap(), &line);
}

/// Runs one command beside the project, for the project.
#[track_caller]
fn runs(world: &World, args: &[&str]) -> String {
    let root = world.root();
    let beside = root.parent().unwrap();
    let output = match args[0] {
        "create" => world.run_in(&root, args, ""),
        "check" => world.run_in(beside, args, ""),
        "undo" | "redo" | "show" => world.run_in(&root, args, ""),
        _ => world.run_in(beside, &[args, &["--root", root.to_str().unwrap()]].concat(), ""),
    };
    assert_eq!(output.exit, Exit::Ok, "{args:?}: {}{}", output.stdout, output.stderr);
    output.stdout
}

#[track_caller]
fn goes_back(world: &World, id: &str) {
    runs(world, &["restore", id, "--yes", "--force", "--exact"]);
}

/// The ids of all checkpoints, newest first.
#[track_caller]
fn listed(world: &World) -> Vec<String> {
    let list: Value = serde_json::from_str(&runs(world, &["list", "--json", "--all"])).unwrap();
    let ids = list.as_array().unwrap().iter();
    ids.map(|one| one["id"].as_str().unwrap().to_owned()).collect()
}

#[track_caller]
fn create(world: &mut World) -> String {
    world.wait(1);
    runs(world, &["create"]).trim().to_owned()
}

/// Every checkpoint reads, and git finds nothing wrong with our repositories.
#[track_caller]
fn is_sound(world: &World) {
    runs(world, &["check", "--read-data"]);
    for entry in fs::read_dir(world.state().join("repositories")).unwrap() {
        let dir = entry.unwrap().path();
        git(
            world,
            world.root().parent().unwrap(),
            &format!("git --git-dir={} fsck --strict --no-dangling", dir.display()),
        );
    }
}

/// What an agent says it does, and what that does.
const LINES: [(&str, &str); 9] = [
    // Both empty the directory and put another project there.
    ("rsync -a --delete ../other/ ./", "find . -mindepth 1 -delete; cp -a ../other/. ."),
    ("rsync -a --delete ../repository/ ./", "find . -mindepth 1 -delete; cp -a ../repository/. ."),
    ("find . -type f | xargs rm -f", "find . -type f -print0 | xargs -0 rm -f"),
    ("./wipe.sh", "rm -rf ./* .[!.]*"),
    ("rm -rf .git && git init && git add -A && git commit -m new", NEW),
    ("cd .. && rm -rf shop && git clone repository shop", CLONE),
    ("mv .git ../elsewhere && rm -rf src", "mv .git ../elsewhere && rm -rf src"),
    ("python3 clean.py", "rm -rf .git/objects .git/HEAD .git/index src"),
    ("make clean", ": > .git/HEAD; : > .git/config; rm -rf .git/refs a"),
];
const NEW: &str = "rm -rf .git && git init -q -b main && git add -A && git commit -qm new";
const CLONE: &str = "cd .. && rm -rf shop && git clone -q repository shop";

#[test]
fn whatever_one_line_does_to_project_and_repository_every_checkpoint_comes_back() {
    for (line, deed) in LINES {
        for world in worlds() {
            let mut world = project_in(world);
            let beside = world.root().parent().unwrap().to_owned();
            write(&beside.join("other/x"), "another project\n");
            write(&beside.join("repository/y"), "another repository\n");
            let dir = beside.join("repository");
            git(&world, &dir, "git init -q -b main && git add -A && git commit -qm theirs");
            let (first_files, first_state) = (files(&world), told(&world));
            let first = create(&mut world);
            world.write("a", "between\n");
            git(&world, &world.root(), "git commit -qm three -- a && git branch third");
            let (before, state) = (files(&world), told(&world));
            agent_runs(&mut world, "t1", line, deed);
            let after = files(&world);
            assert!(after != before || deed == NEW, "{line}");
            // Ignored files are held if a line names them, and by a requested checkpoint.
            let known = |mut files: Files| {
                files.remove(&b".env"[..]);
                files
            };
            let before = known(before);
            let ids = listed(&world);
            assert!(ids.len() >= 2 && ids.contains(&first), "{line}: {ids:?}");
            runs(&world, &["check", "--read-data"]);
            goes_back(&world, "latest");
            assert_eq!(known(files(&world)), before, "{line}");
            assert_eq!(told(&world), state, "{line}");
            runs(&world, &["undo", "--yes"]);
            assert_eq!(known(files(&world)), known(after), "{line}, undone");
            runs(&world, &["redo", "--yes"]);
            assert_eq!((known(files(&world)), told(&world)), (before, state), "{line}, redone");
            // An older one, too, once more from nothing.
            git(&world, &beside, "rm -rf shop");
            goes_back(&world, &first);
            assert_eq!((files(&world), told(&world)), (first_files, first_state), "{line}, first");
            is_sound(&world);
        }
    }
}

#[test]
fn a_new_repository_in_its_place_comes_back_with_undo() {
    for (deed, log) in [(NEW, "new"), (CLONE, "theirs")] {
        for world in worlds() {
            let mut world = project_in(world);
            let dir = world.root().with_file_name("repository");
            write(&dir.join("y"), "another repository\n");
            git(&world, &dir, "git init -q -b main && git add -A && git commit -qm theirs");
            let state = told(&world);
            agent_runs(&mut world, "t1", "./build.sh", deed);
            let after = (files(&world), told(&world));
            // It is told before anything is done.
            let plan = runs(&world, &["restore", "latest", "--dry-run"]);
            assert!(plan.contains("another repository"), "{plan}");
            goes_back(&world, "latest");
            assert_eq!(told(&world), state);
            runs(&world, &["undo", "--yes"]);
            assert_eq!((files(&world), told(&world)), after);
            assert_eq!(git(&world, &world.root(), "git log --format=%s"), log);
            runs(&world, &["redo", "--yes"]);
            assert_eq!(told(&world), state);
        }
    }
}

#[test]
fn each_of_several_checkpoints_brings_the_whole_project_back() {
    for world in worlds() {
        let mut world = project_in(world);
        let mut then = Vec::new();
        for number in 0..4 {
            world.write("a", format!("{number}\n"));
            git(
                &world,
                &world.root(),
                "git commit -qam more && git tag t$(git rev-list --count HEAD)",
            );
            let state = (files(&world), told(&world));
            then.push((create(&mut world), state));
        }
        for (id, state) in then.into_iter().rev() {
            git(&world, world.root().parent().unwrap(), "rm -rf shop");
            goes_back(&world, &id);
            assert_eq!((files(&world), told(&world)), state);
        }
        is_sound(&world);
    }
}

#[test]
fn a_nested_repository_is_held_at_every_checkpoint() {
    for world in worlds() {
        let mut world = project_in(world);
        world.write("vendor/lib/f", "inner\n");
        let inner = world.root().join("vendor/lib");
        git(&world, &inner, "git init -q && git add -A && git commit -qm inner");
        let mut then = Vec::new();
        for number in 0..3 {
            world.write("a", format!("{number}\n"));
            if number == 2 {
                git(&world, &inner, "git commit -q --allow-empty -m second && git branch b");
            }
            let state = told_in(&world, &inner);
            then.push((create(&mut world), state));
        }
        for (id, state) in then {
            git(&world, &world.root(), "rm -rf vendor");
            goes_back(&world, &id);
            assert_eq!(told_in(&world, &inner), state);
            assert_eq!(world.read("vendor/lib/f"), "inner\n");
        }
        // Emptied by a line that names neither.
        let before = told_in(&world, &inner);
        agent_runs(&mut world, "t1", "./wipe.sh", "rm -rf vendor/lib/.git/objects vendor/lib/f");
        goes_back(&world, "latest");
        assert_eq!(told_in(&world, &inner), before);
        is_sound(&world);
    }
}

#[test]
fn a_main_repository_that_a_linked_worktree_removes_comes_back() {
    for world in worlds() {
        let mut world = project_in(world);
        let main = world.root().with_file_name("main");
        fs::rename(world.root(), &main).unwrap();
        git(&world, &main, "git worktree add -q ../shop other");
        world.write("new", "n\n");
        git(&world, &world.root(), "git add new");
        let (before, state, of_main) = (files(&world), told(&world), on_disk(&main));
        let history = told_in(&world, &main);
        agent_runs(&mut world, "t1", "rm -rf ../main", "rm -rf ../main");
        assert_eq!(listed(&world).len(), 1);
        runs(&world, &["restore", "latest", "--yes", "--force", "--outside"]);
        assert_eq!((files(&world), told(&world)), (before, state));
        let is_theirs = |path: &[u8]| !path.starts_with(b".git/") && path != b".git";
        for (path, seen) in of_main.iter().filter(|(path, _)| is_theirs(path)) {
            let path = main.join(String::from_utf8(path.clone()).unwrap());
            assert_eq!(fs::read(&path).ok(), Some(seen.bytes.clone()).filter(|_| path.is_file()));
        }
        assert_eq!(told_in(&world, &main), history);
        is_sound(&world);
    }
}

#[test]
fn another_repository_beside_the_project_comes_back() {
    for world in worlds() {
        let mut world = project_in(world);
        let other = world.root().with_file_name("other-repo");
        write(&other.join("f"), "theirs\n");
        git(
            &world,
            &other,
            "git init -q -b main && git add -A && git commit -qm theirs && git tag x",
        );
        let (before, state) = (on_disk(&other), told_in(&world, &other));
        agent_runs(&mut world, "t1", "rm -rf ../other-repo", "rm -rf ../other-repo");
        // Files outside are left alone unless the user asks for them, and that is said.
        let root = world.root();
        let left = world.run_in(&root, &["restore", "latest", "--yes"], "");
        assert!(!other.exists());
        assert!(
            format!("{}{}", left.stdout, left.stderr).contains("--outside"),
            "{}{}",
            left.stdout,
            left.stderr
        );
        runs(&world, &["restore", "latest", "--yes", "--outside"]);
        assert_eq!(told_in(&world, &other), state);
        assert_eq!(on_disk(&other).get(&b"f"[..]), before.get(&b"f"[..]));
        is_sound(&world);
    }
}

#[test]
fn nothing_the_users_git_does_takes_anything_from_us() {
    let expire = "git reflog expire --expire=now --all";
    let lines = [
        "git gc -q --prune=now".to_owned(),
        "git repack -qad && git prune --expire=now".to_owned(),
        format!("git stash clear; {expire}; git gc -q --prune=now --aggressive"),
        format!(
            "git checkout -qf --orphan new && git commit -qm new && git branch -qD main other && \
             git tag -d v1 v2 && git stash clear; {expire}; git gc -q --prune=now"
        ),
        format!(
            "git stash -qu; FILTER_BRANCH_SQUELCH_WARNING=1 git filter-branch -f --index-filter \
             'git rm -q --cached --ignore-unmatch src/b' -- --all >/dev/null 2>&1; git \
             for-each-ref --format='delete %(refname)' refs/original refs/stash | git update-ref \
             --stdin; {expire}; git repack -qad; git prune --expire=now"
        ),
        "git pack-refs --all; git multi-pack-index write; git commit-graph write; git \
         maintenance run --task=gc"
            .to_owned(),
    ];
    for line in &lines {
        for (world, is_large) in
            worlds().into_iter().zip([false; 2]).chain(worlds().into_iter().zip([true; 2]))
        {
            let mut world = if is_large { large_in(world) } else { project_in(world) };
            let (before, state) = (files(&world), told(&world));
            let first = create(&mut world);
            git(&world, &world.root(), line);
            world.write("a", "later\n");
            let second = create(&mut world);
            let (later, later_state) = (files(&world), told(&world));
            // Maintenance meets what gc has left, twice.
            for _ in 0..2 {
                beforehand::store::maintain(&StateDir::new(world.state()), u64::MAX).unwrap();
                is_sound(&world);
            }
            git(&world, world.root().parent().unwrap(), "rm -rf shop");
            goes_back(&world, &first);
            assert_eq!((files(&world), told(&world)), (before, state), "{line}");
            git(&world, world.root().parent().unwrap(), "rm -rf shop");
            goes_back(&world, &second);
            assert_eq!((files(&world), told(&world)), (later, later_state), "{line}");
        }
    }
}

/// Every file and directory with its bytes, and when it last changed.
fn footprint(dir: &Path) -> (Files, BTreeMap<Vec<u8>, (i64, i64)>) {
    let files = on_disk(dir);
    let when = |path: &Path| {
        let found = fs::symlink_metadata(path).unwrap();
        (found.mtime(), found.mtime_nsec())
    };
    let mut times: BTreeMap<Vec<u8>, _> = files
        .keys()
        .map(|path| (path.clone(), when(&dir.join(String::from_utf8(path.clone()).unwrap()))))
        .collect();
    times.insert(Vec::new(), when(dir));
    (files, times)
}

#[test]
fn a_day_of_ours_writes_nothing_below_the_users_git() {
    for world in worlds() {
        let mut world = large_in(world);
        let root = world.root();
        // The first look of git itself writes into the index.
        git(&world, &root, "git status --porcelain");
        let before_us = footprint(&root.join(".git"));
        let counted = git(&world, &root, "git count-objects -v && git for-each-ref");
        let mirror = root.with_file_name("mirror");
        for turn in 0..4 {
            for line in ["./build.sh", "rm -rf src", "git reset --hard", "rm -rf .git", "make"] {
                world.write("by-agent", format!("{turn} {line}"));
                let turn = format!("t{turn}");
                hook(
                    &world,
                    &root,
                    &before(&root, "s", &turn, "Bash", &json!({ "command": line })),
                );
                let done = before(&root, "s", &turn, "Bash", &json!({ "command": line }))
                    .replace("PreToolUse", "PostToolUse");
                hook(&world, &root, &done);
            }
            world.wait(3600);
            world.run_started();
        }
        for args in [
            &["create", "-m", "x"][..],
            &["list", "--all"],
            &["show", "latest"],
            &["diff", "latest~1"],
            &["status"],
            &["check", "--read-data"],
            &["restore", "latest~3", "--yes", "--force", "--no-index"],
            &["undo", "--yes"],
            &["prune", "--keep", "2"],
            &["check", "--repair"],
            &["doctor"],
            &["maintain"],
            &["clear", "--yes"],
        ] {
            let done = beforehand(&world, &root, args).output().unwrap();
            let said = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.code().is_some_and(|code| code <= 3), "{args:?}: {said}");
            let now = footprint(&root.join(".git"));
            let differs =
                |(path, seen): &(&Vec<u8>, &(i64, i64))| before_us.1.get(*path) != Some(*seen);
            let changed: Vec<_> = now.1.iter().filter(differs).map(|(path, _)| path).collect();
            assert!(now == before_us, "{args:?} wrote below .git: {changed:?}");
        }
        assert_eq!(git(&world, &root, "git count-objects -v && git for-each-ref"), counted);
        git(&world, &root, "git clone -q --bare . ../mirror && git push -q --mirror ../mirror");
        let refs = git(&world, &mirror, "git for-each-ref --format='%(refname)'");
        assert!(!refs.contains("checkpoints") && !refs.contains("beforehand"), "{refs}");
    }
}

#[test]
fn what_is_ours_is_private_and_what_is_linked_lies_in_a_private_directory() {
    for world in worlds() {
        let mut world = large_in(world);
        create(&mut world);
        beforehand::store::maintain(&StateDir::new(world.state()), u64::MAX).unwrap();
        let mut seen = 0;
        for (path, found) in on_disk(&world.state()) {
            let path = world.state().join(String::from_utf8(path).unwrap());
            let links = fs::symlink_metadata(&path).unwrap().nlink();
            let most = if path.is_dir() { 0o700 } else { 0o600 };
            assert!(
                found.permissions & !most == 0 || path.is_file() && links > 1,
                "{:o} {}",
                found.permissions,
                path.display()
            );
            seen += 1;
        }
        assert!(seen > 20, "{seen}");
    }
}

#[test]
fn a_small_repository_survives_what_writes_into_its_files() {
    let truncate = "find .git -type f -exec truncate -s0 {} +";
    for line in [truncate, "find .git -type f -exec shred -n1 {} +"] {
        for world in worlds() {
            let mut world = project_in(world);
            let (before, state) = (files(&world), told(&world));
            agent_runs(&mut world, "t1", "./clean.sh", &format!("{line}; rm -rf src"));
            runs(&world, &["check", "--read-data"]);
            goes_back(&world, "latest");
            assert_eq!((files(&world), told(&world)), (before, state), "{line}");
            is_sound(&world);
        }
    }
}

#[test]
fn after_maintenance_no_file_of_a_checkpoint_is_lost_with_what_was_linked() {
    for line in ["truncate -s0", "truncate -s100", "shred -n1"] {
        for world in worlds() {
            let mut world = large_in(world);
            let before = files(&world);
            let staged = git(&world, &world.root(), "git ls-files -s");
            let first = create(&mut world);
            assert!(beforehand::store::maintain(&StateDir::new(world.state()), u64::MAX).unwrap());
            world.write("a", "later\n");
            let second = create(&mut world);
            let later = files(&world);
            git(
                &world,
                &world.root(),
                &format!("find .git -type f -exec {line} {{}} +; rm -rf src"),
            );
            assert!(listed(&world).len() >= 2, "{line}");
            for (id, then) in [(first, before), (second, later)] {
                // The history that was only borrowed is damaged, which the exit says.
                let root = world.root();
                let args = [
                    "restore",
                    &id,
                    "--yes",
                    "--force",
                    "--exact",
                    "--root",
                    root.to_str().unwrap(),
                ];
                let done = world.run_in(root.parent().unwrap(), &args, "");
                let is_damaged =
                    [&done.stdout, &done.stderr].iter().any(|it| it.contains("damaged"));
                let expected = if is_damaged { Exit::Conflicts } else { Exit::Ok };
                assert_eq!(done.exit, expected, "{line}: {}{}", done.stdout, done.stderr);
                assert_eq!(files(&world), then, "{line}");
            }
            assert_eq!(git(&world, &world.root(), "git ls-files -s"), staged, "{line}");
            // New checkpoints do not rely on what is broken.
            git(&world, &world.root(), "rm -rf .git && git init -q");
            world.write("a", "last\n");
            let last = files(&world);
            create(&mut world);
            git(&world, &world.root(), "rm -rf a src large");
            goes_back(&world, "latest");
            assert_eq!(files(&world), last, "{line}");
        }
    }
}

/// Runs a command as another user, if we are root.
fn as_other_user(command: &mut Command) -> Output {
    if rustix::process::geteuid().is_root() {
        command.uid(OTHER_USER).gid(OTHER_USER);
    }
    command.stdin(Stdio::null()).output().unwrap()
}

#[test]
fn a_project_without_read_permission_is_read_from_the_store() {
    for make in [project_in, large_in] {
        let world = make(World::new());
        let root = world.root();
        let beside = root.parent().unwrap().to_owned();
        if rustix::process::geteuid().is_root() {
            let all = world.home();
            git(&world, &beside, &format!("chown -R {OTHER_USER} {} .", all.display()));
        }
        let ours = |args: &[&str]| {
            let mut command = match args[0] {
                "create" => beforehand(&world, &root, args),
                "check" => beforehand(&world, &beside, args),
                _ => beforehand(&world, &beside, &[args, &["--root", "shop"]].concat()),
            };
            let done = as_other_user(&mut command);
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            assert!(
                done.status.success(),
                "{args:?}: {said}{}",
                String::from_utf8_lossy(&done.stdout)
            );
        };
        let sh = |line: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", line]).current_dir(&beside).env_clear();
            command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", world.home());
            let done = as_other_user(&mut command);
            assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
            String::from_utf8(done.stdout).unwrap()
        };
        let before = files(&world);
        let tell = "git -C shop status --porcelain && git -C shop log --all --format=%H && git -C \
                    shop fsck --strict --no-dangling 2>&1";
        let state = sh(tell);
        ours(&["create"]);
        assert!(as_other_user(&mut beforehand(&world, &beside, &["maintain"])).status.success());
        sh("find shop -mindepth 1 -depth -exec chmod 000 {} +");
        ours(&["list"]);
        ours(&["check", "--read-data"]);
        // The repository comes back; a file that cannot be held first is reported.
        let args = ["restore", "latest", "--yes", "--force", "--root", "shop"];
        let done = as_other_user(&mut beforehand(&world, &beside, &args));
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(said.contains("not restored: a: its present content cannot be read"), "{said}");
        sh("chmod -R u+rwX shop");
        ours(&["restore", "latest", "--yes", "--force"]);
        assert_eq!(sh(tell), state);
        sh("rm -rf shop");
        ours(&["restore", "latest", "--yes", "--force"]);
        chmod(&root, 0o755);
        assert_eq!(files(&world), before);
        assert_eq!(sh(tell), state);
    }
}

#[test]
fn without_links_what_history_finds_no_room_is_told_and_files_come_back() {
    let Some(mut world) = World::without_links() else { return };
    world.write("a", "a\n");
    git(&world, &world.root(), "git init -q -b main && git add -A && git commit -qm one");
    // Forty megabytes that only history has, more than a call copies.
    for number in 0..40 {
        world.write(&format!("old/{number}"), noise(number, 1 << 20));
    }
    git(
        &world,
        &world.root(),
        "git add -A && git commit -qm old && git rm -qr old && git commit -qm gone && git gc -q",
    );
    let (before, state) = (files(&world), told(&world));
    create(&mut world);
    let shown = runs(&world, &["show", "latest"]);
    assert!(shown.contains(".git/objects"), "it is named: {shown}");
    // In the background it is copied.
    beforehand::store::maintain(&StateDir::new(world.state()), u64::MAX).unwrap();
    git(&world, world.root().parent().unwrap(), "rm -rf shop");
    goes_back(&world, "latest");
    assert_eq!((files(&world), told(&world)), (before, state));
    is_sound(&world);
}
