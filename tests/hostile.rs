//! A hostile project, repository or environment: nothing of theirs runs, blocks or redirects us,
//! and other users cannot read our files.

#![expect(clippy::disallowed_methods, reason = "directories of the tests' own")]

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use beforehand::process::Exit;
use rustix::fs::FileType;
use serde_json::{Value, json};

use crate::support::{
    real::{answer, before, beforehand, git, hook, skip, start_hook},
    temp::{chmod, on_disk, special, write},
    world::World,
};

fn repository() -> World {
    let world = World::new();
    world.write("src/a", "one\n");
    world.write(".gitignore", "*.log\n");
    git(&world, &world.root(), "git init -q -b main && git add -A && git commit -qm one");
    world.write("src/a", "two\n");
    world
}

fn before_rm(world: &World, turn: &str) -> String {
    before(&world.root(), "s", turn, "Bash", &json!({ "command": "rm -rf src" }))
}

/// Every command that looks at a project or changes it, each in a process of its own.
fn everything(world: &World) {
    hook(world, &world.root(), &before_rm(world, "t"));
    fs::remove_dir_all(world.root().join("src")).unwrap();
    for args in [
        &["create", "-m", "x"][..],
        &["list"],
        &["show", "latest"],
        &["diff", "latest~1"],
        &["status"],
        &["check", "--read-data"],
        &["restore", "latest~1", "--yes", "--force"],
        &["undo", "--yes"],
        &["redo", "--yes"],
        &["doctor"],
        &["prune", "--keep", "1"],
    ] {
        let done = beforehand(world, &world.root(), args).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.code().is_some_and(|code| code <= 3), "{args:?}: {said}");
    }
}

/// A program that says that it ran.
fn trap(world: &World) -> (PathBuf, PathBuf) {
    let (program, mark) =
        (world.state().with_file_name("trap"), world.state().with_file_name("RAN"));
    write(&program, format!("#!/bin/sh\necho \"$0 $*\" >> {}\ncat\n", mark.display()));
    chmod(&program, 0o755);
    (program, mark)
}

#[test]
fn no_program_that_a_repository_configures_ever_runs() {
    let world = repository();
    let (program, mark) = trap(&world);
    let program = program.display();
    let git_dir = world.root().join(".git");
    for name in [
        "pre-commit", "post-commit", "post-checkout", "post-index-change", "reference-transaction",
        "post-rewrite", "pre-auto-gc", "fsmonitor-watchman",
    ] {
        let hook = git_dir.join("hooks").join(name);
        write(&hook, format!("#!/bin/sh\nexec {program} {name}\n"));
        chmod(&hook, 0o755);
    }
    write(
        &world.root().join(".gitattributes"),
        "* filter=evil diff=evil merge=evil text eol=crlf\n",
    );
    let included = git_dir.join("included");
    write(&included, format!("[core]\n\tpager = {program}\n[alias]\n\tstatus = !{program}\n"));
    let config = format!(
        "[core]\n\tfsmonitor = {program}\n\thooksPath = {hooks}\n\tpager = {program}\n\teditor = \
         {program}\n\tsshCommand = {program}\n\taskPass = {program}\n[filter \"evil\"]\n\tclean = \
         {program}\n\tsmudge = {program}\n\tprocess = {program}\n\trequired = true\n[diff]\n\t\
         external = {program}\n[diff \"evil\"]\n\ttextconv = {program}\n\tcommand = {program}\n\
         [merge \"evil\"]\n\tdriver = {program}\n[gpg]\n\tprogram = {program}\n[commit]\n\tgpgSign \
         = true\n[credential]\n\thelper = {program}\n[include]\n\tpath = included\n[includeIf \
         \"gitdir:/\"]\n\tpath = included\n[gc]\n\tauto = 1\n[remote \"o\"]\n\turl = \
         ext::{program}\n\tmirror = true\n",
        hooks = git_dir.join("hooks").display(),
    );
    let own = fs::read_to_string(git_dir.join("config")).unwrap();
    write(&git_dir.join("config"), own + &config);
    write(&git_dir.join("config.worktree"), &config);
    everything(&world);
    assert!(!mark.exists(), "{}", fs::read_to_string(&mark).unwrap());
    assert_eq!(world.read("src/a"), "two\n");
}

#[test]
fn what_the_environment_says_of_git_is_ignored() {
    let mut world = repository();
    let (program, mark) = trap(&world);
    let elsewhere = world.root().with_file_name("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let (program, away) = (program.display().to_string(), elsewhere.display().to_string());
    for (name, value) in [
        ("GIT_DIR", &*away),
        ("GIT_WORK_TREE", &away),
        ("GIT_INDEX_FILE", &format!("{away}/index")),
        ("GIT_OBJECT_DIRECTORY", &format!("{away}/objects")),
        ("GIT_ALTERNATE_OBJECT_DIRECTORIES", "/dev"),
        ("GIT_NAMESPACE", "../x"),
        ("GIT_EXTERNAL_DIFF", &program),
        ("GIT_PAGER", &program),
        ("PAGER", &program),
        ("EDITOR", &program),
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "core.fsmonitor"),
        ("GIT_CONFIG_VALUE_0", &program),
        ("GIT_CONFIG_PARAMETERS", &format!("'core.fsmonitor={program}'")),
        ("GIT_TRACE", &format!("{away}/trace")),
    ] {
        world.set(name, value);
    }
    everything(&world);
    assert!(!mark.exists());
    assert!(on_disk(&elsewhere).is_empty());
    let line = format!("git --git-dir={} for-each-ref", world.private().display());
    let refs = git(&world, &world.root(), &format!("{line} refs/checkpoints | wc -l"));
    assert!(refs.parse::<u32>().unwrap() >= 2, "they are in the project's own private repository");
}

/// Answers one call, which must be over long before an agent's own limit.
#[track_caller]
fn in_time(world: &World, what: &str) -> Value {
    let started = std::time::Instant::now();
    let said = hook(world, &world.root(), &before_rm(world, what));
    assert!(started.elapsed().as_secs() < 10, "{what} was waited for");
    said
}

#[test]
fn pipes_and_gigabytes_where_git_keeps_its_files_are_survived() {
    for name in [
        ".gitignore",
        "src/.gitignore",
        ".gitattributes",
        ".git/info/exclude",
        ".git/index",
        ".git/HEAD",
        ".git/config",
        ".git/packed-refs",
        ".git/commondir",
        ".git/objects/info/alternates",
    ] {
        for huge in [false, true] {
            let world = repository();
            let path = world.root().join(name);
            // A tracked file is held however large it is.
            git(&world, &world.root(), "git rm -q --cached .gitignore && git commit -qm untracked");
            let _absent = fs::remove_file(&path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            if huge {
                fs::File::create(&path).unwrap().set_len(1 << 30).unwrap();
            } else {
                special(&path, FileType::Fifo, 0o600);
            }
            in_time(&world, name);
            fs::remove_file(world.root().join("src/a")).unwrap();
            let restore = |args: &[&str]| {
                let args = [&["restore", "1", "--yes", "--force"], args].concat();
                let done = beforehand(&world, &world.root(), &args).output().unwrap();
                (done.status.success(), String::from_utf8_lossy(&done.stderr).into_owned())
            };
            let (is_done, said) = restore(&[]);
            if !is_done {
                // A repository is only replaced if all of it can be held first.
                assert!(said.contains("cannot hold `.git/"), "{name}, huge: {huge}: {said}");
                assert!(huge && path.metadata().unwrap().len() == 1 << 30, "{name}: {said}");
                restore(&["--", "src/a"]);
            }
            let back = fs::read_to_string(world.root().join("src/a"));
            assert_eq!(back.ok().as_deref(), Some("two\n"), "{name}, huge: {huge}: {said}");
        }
    }
}

#[test]
fn pipes_and_endless_files_where_we_keep_our_own_are_survived() {
    let mut world = repository();
    world.set("BEFOREHAND_MAX_TOTAL_SIZE", "1");
    assert_eq!(world.run(&["create"]).exit, Exit::Ok);
    let root = world.root();
    fs::remove_file(root.join("src/a")).unwrap();
    let payload = before(&root, "s1", "t0", "Bash", &json!({ "command": "make" }));
    hook(&world, &root, &payload);
    everything(&world);
    let ours: Vec<PathBuf> = on_disk(&world.state())
        .into_keys()
        .map(|path| world.state().join(String::from_utf8(path).unwrap()))
        .filter(|path| {
            path.is_file() && !path.components().any(|part| part.as_os_str() == "objects")
        })
        .collect();
    assert!(ours.len() > 10, "{ours:?}");
    for (turn, path) in ours.iter().enumerate() {
        for endless in [false, true] {
            if !path.is_file() {
                // Its time was up.
                continue;
            }
            let aside = path.with_extension("aside");
            fs::rename(path, &aside).unwrap();
            if endless {
                symlink("/dev/zero", path).unwrap();
            } else {
                special(path, FileType::Fifo, 0o600);
            }
            world.write("src/a", format!("{turn} {endless}"));
            // Elsewhere a round would be begun that outlives the test.
            let auto_prune = if path.ends_with("maintenance.json") { "on" } else { "off" };
            world.set("BEFOREHAND_AUTO_PRUNE", auto_prune);
            in_time(&world, &path.display().to_string());
            for args in [&["list"][..], &["status"], &["check", "--repair"], &["maintain"]] {
                beforehand(&world, &root, args).output().unwrap();
            }
            let _replaced = fs::remove_file(path);
            fs::rename(&aside, path).unwrap();
        }
    }
    assert_eq!(world.run(&["create", "-m", "after all"]).exit, Exit::Ok);
}

#[test]
fn a_git_file_that_points_elsewhere_writes_nothing_there() {
    let victim = repository();
    git(&victim, &victim.root(), "git config core.x y");
    let before = on_disk(&victim.root());
    for pointer in [
        format!("gitdir: {}\n", victim.root().join(".git").display()),
        "gitdir: /\n".to_owned(),
        "gitdir: ../../../../../../../../proc/self\n".to_owned(),
        "gitdir: .git\n".to_owned(),
        "gitdir: \n".to_owned(),
        "\0".repeat(100),
    ] {
        let world = World::new();
        world.write("src/a", "two\n");
        write(&world.root().join(".git"), &pointer);
        in_time(&world, "pointer");
        fs::remove_file(world.root().join("src/a")).unwrap();
        let done =
            beforehand(&world, &world.root(), &["restore", "1", "--yes", "--force"]).output();
        let said = String::from_utf8_lossy(&done.unwrap().stderr).into_owned();
        assert_eq!(world.read("src/a"), "two\n", "{pointer}: {said}");
    }
    assert_eq!(on_disk(&victim.root()), before, "not a byte of it has changed");
}

#[test]
fn links_and_devices_are_neither_followed_nor_opened() {
    let world = repository();
    let root = world.root();
    symlink("loop", root.join("loop")).unwrap();
    symlink("/dev/zero", root.join("zero")).unwrap();
    symlink("/", root.join("everything")).unwrap();
    symlink("..", root.join("src/up")).unwrap();
    special(&root.join("pipe"), FileType::Fifo, 0o600);
    let _socket = std::os::unix::net::UnixListener::bind(root.join("sock")).unwrap();
    let line = "rm -rf loop zero everything src pipe sock";
    let payload = before(&root, "s", "t", "Bash", &json!({ "command": line }));
    hook(&world, &root, &payload);
    let held = on_disk(&root.join("src"));
    for name in ["loop", "zero", "everything", "pipe"] {
        fs::remove_file(root.join(name)).unwrap();
    }
    fs::remove_dir_all(root.join("src")).unwrap();
    let done = beforehand(&world, &root, &["restore", "1", "--yes", "--force"]).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(fs::read_link(root.join("everything")).unwrap(), Path::new("/"));
    assert_eq!(fs::read_link(root.join("zero")).unwrap(), Path::new("/dev/zero"));
    assert_eq!(on_disk(&root.join("src")), held);
}

#[test]
fn a_link_swapped_in_during_a_restore_leads_nowhere() {
    let world = World::new();
    let (root, outside) = (world.root(), world.root().with_file_name("outside"));
    for number in 0..40 {
        world.write(&format!("d/e/{number}"), "mine\n");
        write(&outside.join(format!("e/{number}")), "theirs\n");
    }
    let theirs = on_disk(&outside);
    assert!(beforehand(&world, &root, &["create"]).output().unwrap().status.success());
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            // What it swaps away comes back, and so on, as fast as it can.
            let (real, aside) = (root.join("d"), root.join("aside"));
            while !over.load(Ordering::Relaxed) {
                if fs::rename(&real, &aside).is_ok() {
                    let _there = symlink(&outside, &real);
                    thread::yield_now();
                    let _gone = fs::remove_file(&real);
                    let _back = fs::rename(&aside, &real);
                }
            }
            let _back = fs::rename(&aside, &real);
        });
        for _ in 0..6 {
            for number in 0..40 {
                let _swapped_away = fs::remove_file(root.join(format!("aside/e/{number}")));
            }
            let done =
                beforehand(&world, &root, &["restore", "latest", "--yes", "--force", "--exact"]);
            let _any = { done }.output().unwrap();
        }
        over.store(true, Ordering::Relaxed);
    });
    assert_eq!(on_disk(&outside), theirs);
}

#[test]
fn whatever_the_umask_what_is_ours_is_private() {
    for umask in ["000", "777", "277"] {
        for world in [repository(), World::new()] {
            world.write("src/a", "secret\n");
            world.write(".env", "secret\n");
            for payload in [before_rm(&world, "t1"), before_rm(&world, "t2")] {
                let line = format!("umask {umask}; exec \"$0\" hook --agent claude-code");
                let mut hook = Command::new("sh");
                hook.args(["-c", &line, env!("CARGO_BIN_EXE_beforehand")])
                    .env_clear()
                    .envs(&world.env);
                hook.current_dir(world.root()).stdin(std::process::Stdio::piped());
                let mut child = hook.stdout(std::process::Stdio::piped()).spawn().unwrap();
                std::io::Write::write_all(&mut child.stdin.take().unwrap(), payload.as_bytes())
                    .unwrap();
                let said = child.wait_with_output().unwrap();
                assert_eq!(String::from_utf8_lossy(&said.stdout), "{}", "umask {umask}");
            }
            everything(&world);
            let mut open = vec![world.state()];
            while let Some(path) = open.pop() {
                let found = fs::symlink_metadata(&path).unwrap();
                let bits = found.permissions().mode() & 0o7777;
                // What is linked is the repository's own, by another name.
                let is_link = found.nlink() > 1 && found.is_file();
                let most = if found.is_dir() { 0o700 } else { 0o600 };
                assert!(bits & !most == 0 || is_link, "{} has {bits:o}", path.display());
                if found.is_dir() {
                    open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
                }
            }
        }
    }
}

#[test]
fn another_user_than_the_owner_writes_nothing_into_the_repository() {
    let world = repository();
    let git_dir = world.root().join(".git");
    let owner = fs::metadata(&git_dir).unwrap().uid();
    if owner != 0 {
        skip("only root can act as another user");
        return;
    }
    git(&world, &world.root(), "chown -R 12345 .");
    let before = on_disk(&git_dir);
    hook(&world, &world.root(), &before_rm(&world, "t"));
    assert_eq!(on_disk(&git_dir), before);
    fs::remove_dir_all(world.root().join("src")).unwrap();
    let done = beforehand(&world, &world.root(), &["restore", "1", "--yes"]).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(world.read("src/a"), "two\n");
    assert_eq!(on_disk(&git_dir), before);
}

#[test]
fn ids_that_look_like_paths_stay_names() {
    let world = repository();
    let around = world.state().ancestors().nth(3).unwrap().to_owned();
    for id in ["../../../../x", "/etc/x", "a\0b", "\u{202e}\u{1b}[2J", "", &"x".repeat(5000), "."] {
        let input = json!({ "command": format!("rm -rf src # {id}") });
        let payload = before(&world.root(), id, id, "Bash", &input);
        answer(start_hook(&world, &world.root(), &payload));
    }
    let state = world.state();
    let state = state.strip_prefix(&around).unwrap().as_os_str().as_encoded_bytes().to_vec();
    let strange = on_disk(&around).into_keys().find(|path| {
        let is_way = state.starts_with(path);
        !(path.starts_with(&state) || is_way)
    });
    assert_eq!(strange, None);
    let said = beforehand(&world, &world.root(), &["list", "--all"]).output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    assert!(!said.chars().any(|c| c.is_control() && c != '\n' || c == '\u{202e}'), "{said:?}");
}

#[test]
fn of_a_path_longer_than_any_there_can_be_nothing_is_noted() {
    let world = repository();
    let path = format!("{}/{}", world.root().display(), "a/".repeat(5_000));
    let input = json!({ "file_path": path, "content": "" });
    hook(&world, &world.root(), &before(&world.root(), "s", "t", "Write", &input));
    let noted: u64 = on_disk(&world.state())
        .iter()
        .filter(|(name, _)| name.windows(5).any(|part| part == b"/left"))
        .map(|(name, _)| {
            let path = world.state().join(std::str::from_utf8(name).unwrap());
            path.symlink_metadata().unwrap().len()
        })
        .sum();
    // The directories on the way there, one by one, would come to 25 MB.
    assert!(noted < 100_000, "{noted}");
    assert!(on_disk(&world.state()).len() > 3, "there is a checkpoint all the same");
}
