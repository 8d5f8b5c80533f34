//! What a call can destroy is held, or the user is asked: through the whole program, with real
//! files and real git.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Stdio},
};

use beforehand::process::Exit;

use crate::support::{
    subcommands,
    temp::{chmod, count, on_disk, write},
    world::World,
};

fn sh(world: &World, dir: &Path, line: &str) -> String {
    let output = Command::new("sh")
        .args(["-c", line])
        .current_dir(dir)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", world.state().parent().unwrap())
        .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_NAME"), "a")))
        .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_EMAIL"), "a@b")))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn git(world: &World, line: &str) -> String {
    sh(world, &world.root(), line)
}

/// A repository with commits, a stash, a branch, a tag, something staged and something ignored.
fn project() -> World {
    let world = World::new();
    world.write(".gitignore", "*.db\n.env\nnode_modules/\nbuild/\ndata/\n");
    world.write("a", "one\n");
    world.write("src/b", "two\n");
    git(
        &world,
        "git init -q -b main && git add -A && git commit -qm one && echo x >> a && git stash -q \
         && git branch other && git tag v1 && echo d > d && git add d",
    );
    world.write(".env", "secret\n");
    chmod(&world.root().join(".env"), 0o600);
    world.write("x.db", "data\n");
    world
}

/// Everything git would tell of a repository, and that nothing is wrong with it.
fn told(world: &World) -> String {
    git(
        world,
        "git fsck --strict 2>&1; git for-each-ref; git stash list; git \
         reflog; git status --porcelain --ignored; git ls-files -s; git config --list --local",
    )
}

fn files(world: &World) -> crate::support::temp::Files {
    let mut files = on_disk(&world.root());
    files.retain(|path, _| !path.starts_with(b".git/") && path != b".git");
    files
}

fn restored(world: &mut World, args: &[&str]) {
    let output = world.run(&[&["restore", "latest", "--yes"], args].concat());
    assert_eq!(output.exit, Exit::Ok, "{}{}", output.stdout, output.stderr);
}

fn verdict(answer: &str) -> String {
    let json: serde_json::Value = serde_json::from_str(answer).unwrap();
    json["hookSpecificOutput"]["permissionDecision"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn ignored_victims_come_back_with_their_modes() {
    let mut world = project();
    world.write("build/o", "output");
    let before = files(&world);
    let cases =
        [("t1", "rm .env"), ("t2", ": > x.db"), ("t3", "rm -f *.db .e*"), ("t4", "rm -rf build")];
    for (turn, command) in cases {
        assert_eq!(world.before_bash(turn, command).trim(), "{}", "{command}");
        git(&world, command);
        assert_ne!(files(&world), before, "{command}");
        restored(&mut world, &[]);
        assert_eq!(files(&world), before, "{command}");
    }
}

#[test]
fn a_repository_comes_back_when_its_git_directory_is_gone() {
    let mut world = project();
    let (before, state) = (files(&world), told(&world));
    assert_eq!(world.before_bash("t1", "rm -rf .git src").trim(), "{}");
    git(&world, "rm -rf .git src");
    restored(&mut world, &[]);
    assert_eq!(files(&world), before);
    assert_eq!(told(&world), state);
    // It is held again, and no less for having been gone once.
    git(&world, "git gc -q --prune=now");
    let ours = format!("git --git-dir={} for-each-ref refs/checkpoints", world.private().display());
    assert!(git(&world, &ours).lines().count() >= 1);
    assert_eq!(world.before_bash("t2", "rm -rf .git").trim(), "{}");
    git(&world, "rm -rf .git");
    restored(&mut world, &[]);
    git(&world, "git fsck --strict");
}

#[test]
fn a_whole_project_comes_back() {
    let mut world = project();
    let (before, state) = (files(&world), told(&world));
    let root = world.root();
    let line = format!("rm -rf {}", root.display());
    assert_eq!(world.before_bash("t1", &line).trim(), "{}");
    sh(&world, root.parent().unwrap(), &line);
    let args = ["restore", "latest", "--dry-run", "--root", "shop", "--json"];
    let planned = world.run_in(root.parent().unwrap(), &args, "");
    let planned: serde_json::Value = serde_json::from_str(&planned.stdout).unwrap();
    let steps = planned["steps"].as_array().unwrap();
    assert!(steps.iter().all(|step| step["action"] == "recreate"), "{steps:?}");
    let named =
        |path: &[u8]| steps.iter().any(|step| step["path"].as_str().unwrap().as_bytes() == path);
    assert!(before.keys().all(|path| path.is_empty() || named(path)), "{steps:?}");
    assert_eq!(planned["repositories"].as_array().unwrap().len(), 1);
    assert!(!root.exists());
    let args = ["restore", "latest", "--yes", "--root", "shop", "--", "none"];
    assert_eq!(world.run_in(root.parent().unwrap(), &args, "").exit, Exit::Failed);
    assert!(!root.exists(), "a restore that fails leaves no directory behind");
    let args = ["restore", "latest", "--yes", "--root", "shop"];
    let output = world.run_in(root.parent().unwrap(), &args, "");
    assert_eq!(output.exit, Exit::Ok, "{}", output.stderr);
    assert_eq!(files(&world), before);
    assert_eq!(told(&world), state);
}

#[test]
fn create_is_enough_to_survive_the_loss_of_the_repository() {
    let mut world = project();
    let (before, state) = (files(&world), told(&world));
    let first = world.run(&["create"]).stdout;
    assert_eq!(world.run(&["create"]).stdout, first, "nothing has changed");
    git(&world, "rm -rf .git ./* .[!.]*");
    restored(&mut world, &[]);
    assert_eq!((files(&world), told(&world)), (before, state));
}

#[test]
fn a_damaged_repository_is_mended() {
    for damage in [
        "rm -rf .git/objects .git/HEAD src",
        "rm -rf .git/HEAD .git/index .git/logs src",
        "git pack-refs --all; git gc -q; rm -rf .git/objects .git/refs .git/packed-refs",
    ] {
        let mut world = project();
        let (before, state) = (files(&world), told(&world));
        world.before_bash("t1", damage);
        git(&world, damage);
        restored(&mut world, &[]);
        assert_eq!((files(&world), told(&world)), (before, state), "{damage}");
    }
}

#[test]
fn dropped_commits_and_refs_are_no_loss() {
    let mut world = project();
    let before = files(&world);
    assert_eq!(world.before_bash("t1", "git reflog expire --all; git gc --prune=now").trim(), "{}");
    let lost = git(&world, "git rev-parse stash@{0}");
    git(&world, "git stash drop -q; git reflog expire --expire=now --all; git gc -q --prune=now");
    let ours = format!("git --git-dir={} cat-file -t {}", world.private().display(), lost.trim());
    assert_eq!(git(&world, &ours), "commit\n", "{lost} is held");
    git(&world, "rm -rf .git/refs/* .git/packed-refs src");
    restored(&mut world, &[]);
    assert_eq!(files(&world), before);
}

#[test]
fn a_nested_repository_comes_back_with_its_history() {
    let mut world = project();
    world.write("vendor/lib/f", "inner\n");
    git(&world, "cd vendor/lib && git init -q && git add -A && git commit -qm inner");
    let before = files(&world);
    assert_eq!(world.before_bash("t1", "rm -rf vendor").trim(), "{}");
    let head = git(&world, "git -C vendor/lib rev-parse HEAD");
    git(&world, "rm -rf vendor");
    restored(&mut world, &[]);
    assert_eq!(git(&world, "git -C vendor/lib rev-parse HEAD"), head);
    git(&world, "git -C vendor/lib fsck --strict");
    assert_eq!(files(&world).len(), before.len());
}

#[test]
fn a_linked_worktree_comes_back() {
    let mut world = project();
    let main = world.root().parent().unwrap().join("main");
    fs::rename(world.root(), &main).unwrap();
    sh(&world, &main, "git worktree add -q ../shop other");
    world.write("new", "n\n");
    world.write(".env", "secret\n");
    let before = files(&world);
    let line = format!("rm -rf {}", world.root().display());
    assert_eq!(world.before_bash("t1", &line).trim(), "{}");
    sh(&world, &main, &line);
    let output = world.run_in(&main, &["restore", "latest", "--yes", "--root", "../shop"], "");
    assert_eq!(output.exit, Exit::Ok, "{}", output.stderr);
    assert_eq!(files(&world), before);
    assert_eq!(git(&world, "git status --porcelain"), "?? new\n");
}

#[test]
fn a_file_outside_the_root_comes_back() {
    let mut world = project();
    let file = world.root().join("../other/rc");
    write(&file, "set x\n");
    chmod(&file, 0o640);
    assert_eq!(world.before_bash("t1", "sed -i s/x/y/ ../other/rc").trim(), "{}");
    write(&file, "set y\n");
    chmod(&file, 0o600);
    restored(&mut world, &["--outside"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "set x\n");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn what_is_written_through_a_link_is_held() {
    let mut world = project();
    let file = world.root().join("../other/real");
    write(&file, "old\n");
    std::os::unix::fs::symlink("../other/real", world.root().join("link")).unwrap();
    assert_eq!(world.before_bash("t1", "echo new > link").trim(), "{}");
    write(&file, "new\n");
    restored(&mut world, &["--outside"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "old\n");
}

#[test]
fn the_user_is_asked_about_what_cannot_be_held_and_nothing_else() {
    let mut world = project();
    let big = fs::File::create(world.root().join("big.db")).unwrap();
    big.set_len(2 << 30).unwrap();
    fs::create_dir_all(world.root().join("build")).unwrap();
    let built = fs::File::create(world.root().join("build/o")).unwrap();
    built.set_len(2 << 30).unwrap();
    world.write("node_modules/x/y", "z");
    world.write("package.json", "{}");
    for (command, wanted) in [
        ("rm big.db", "ask"),
        ("rm *.db", "ask"),
        (": > big.db", "ask"),
        ("rm -rf .", "ask"),
        ("rm -rf ..", "ask"),
        ("rm -rf ~", "ask"),
        ("mv big.db c.db", ""),
        ("echo x >> big.db", ""),
        ("cp a ~/", ""),
        ("rm \"$FILE\"", ""),
        ("find . -name '*.o' -delete", ""),
        ("git clean -fdx", "ask"),
        ("rm -rf node_modules", ""),
        ("rm -rf build", ""),
        ("rm -rf src .env x.db", ""),
    ] {
        let answer = world.before_bash("t1", command);
        assert_eq!(verdict(&answer), wanted, "{command}: {answer}");
    }
    let answer = world.before_bash("t1", "rm big.db");
    assert!(answer.contains("not held: big.db (2.1 GB, over max_victim_size) — rm would"));
    world.set("CLAUDE_CODE_SESSION_ATTENDED", "0");
    assert_eq!(verdict(&world.before_bash("t2", "rm big.db")), "deny", "nobody could answer");
    write(&world.settings(), "cannot_hold = \"deny\"\n");
    assert_eq!(verdict(&world.before_bash("t3", "rm big.db")), "deny");
}

#[test]
fn the_user_is_asked_when_nothing_at_all_can_be_saved() {
    let mut world = project();
    write(&world.state(), "a file where our directory should be");
    world.write("node_modules/x/y", "z");
    world.write("package.json", "{}");
    let answer = world.before_bash("t1", "rm -rf src x.db");
    assert_eq!(verdict(&answer), "ask", "{answer}");
    assert!(
        answer.contains("x.db (5 bytes, nothing could be saved) — rm would delete it"),
        "{answer}"
    );
    for command in ["rm -rf node_modules", "rm gone", "touch new", "rm \"$X\""] {
        let answer = world.before_bash("t1", command);
        assert_eq!(verdict(&answer), "", "{command}: {answer}");
        assert!(answer.contains("NOT protected"), "{command}: {answer}");
    }
}

/// A command of ours that nothing is known of would run for an agent without a question.
#[test]
fn every_subcommand_but_the_reading_ones_is_asked_about() {
    let reading = [
        "list", "show", "diff", "blame", "explain", "status", "doctor", "check", "create", "find",
        "config", "init", "demo", "hook",
    ];
    let mut world = project();
    for name in subcommands() {
        // What `run` runs is looked for in its own words.
        let command = match name.as_str() {
            "run" => "beforehand run beforehand prune".to_owned(),
            name => format!("beforehand {name} x"),
        };
        let expected = if reading.contains(&name.as_str()) { "" } else { "ask" };
        let answer = world.before_bash("t1", &command);
        assert_eq!(verdict(&answer), expected, "{command}: {answer}");
    }
}

#[test]
fn it_defends_itself_and_reading_is_free() {
    let mut world = project();
    world.write(".claude/settings.json", "{\"command\":\"beforehand hook --agent claude-code\"}");
    write(&world.settings(), "notify = \"trouble\"\n");
    assert_eq!(world.before_bash("t1", "rm -rf src").trim(), "{}");
    for command in [
        "rm -rf ~/.local",
        "rm -rf ~/.lo*",
        "rm -rf ~/.config/beforehand",
        "rm -rf .claude",
        "sed -i /beforehand/d .claude/settings.json",
        "git --git-dir ~/.local/state/beforehand/repositories/x update-ref -d refs/checkpoints/main/y",
        "rm -rf ~/.local/state/beforehand/repositories/*",
        "find ~/.local/state/beforehand -type f -delete",
        "find ~/.local -delete",
        "find ~ -name '*.pyc' -delete",
        "beforehand slash rollback -- 2",
        "beforehand clear --yes",
        "beforehand rewind",
        "BEFOREHAND=off make",
    ] {
        let answer = world.before_bash("t2", command);
        assert_eq!(verdict(&answer), "ask", "{command}: {answer}");
    }
    let file = world.root().join(".claude/settings.json");
    let input = serde_json::json!({ "file_path": file, "content": "{}" });
    assert_eq!(verdict(&world.hook("t2", "Write", &input)), "ask");
    for command in [
        "beforehand list",
        "cat ~/.local/state/beforehand/journal",
        "rm -rf .git",
        "rm -rf .git/refs/*",
        "find ~/code -name '*.pyc' -delete",
    ] {
        assert_eq!(verdict(&world.before_bash("t3", command)), "", "{command}");
    }
    write(&world.settings(), "self_defence = \"deny\"\n");
    assert_eq!(verdict(&world.before_bash("t4", "beforehand undo --yes")), "deny");
}

#[test]
fn a_private_repository_that_no_checkpoint_needs_is_dropped() {
    let mut world = project();
    world.run(&["create"]);
    let private = world.private();
    assert!(count(&private.join("linked/objects")) > 5);
    let root = beforehand::model::Root::new(world.root(), beforehand::root::kind_of(&world.root()));
    let state = beforehand::state::StateDir::new(world.state());
    let store =
        beforehand::store::open(&root, &state, beforehand::model::StoreChoice::Auto).unwrap();
    let ids: Vec<_> = store.list().unwrap().iter().map(|checkpoint| checkpoint.id).collect();
    store.remove(&ids).unwrap();
    assert!(!private.exists());
}

#[test]
fn a_directory_outside_that_a_line_names_is_held() {
    let mut world = project();
    let other = world.root().join("../other");
    fs::create_dir_all(&other).unwrap();
    write(&other.join("f"), "theirs\n");
    let absolute = fs::canonicalize(&other).unwrap();
    for line in [
        "git -C ../other reset --hard",
        "cd ../other && git checkout -- .",
        "pushd ../other; make clean",
        "rsync -a --delete src/ ../other/",
        "cp -r src/. ../other",
        "tar xf a.tar -C ../other",
        "git worktree remove --force ../other",
        "make --directory=../other",
        "git --work-tree=../other checkout -f",
        "python3 -c \"import shutil; shutil.rmtree('../other')\"",
        "f() { rm -rf ../other; }; f",
        "no-such-tool \"$PWD/../other\"",
        "find ../other -type f -exec rm {} +",
        "cd nowhere; no-such-tool ../other",
    ] {
        let told = world.run(&["explain", "--json", line]).stdout;
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        let named = told["would_hold"]["named"].as_array().unwrap();
        let is_named = |path: &serde_json::Value| {
            path.as_str().is_some_and(|path| Path::new(path) == absolute)
        };
        assert!(named.iter().any(is_named), "{line}: {named:?}");
    }
}
