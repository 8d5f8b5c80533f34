//! Ignored and large files are held with the root and restored with it, whatever a call says about
//! them.

use std::fs;

use crate::support::{
    real::git,
    temp::{Files, chmod, link, noise, on_disk, write},
    world::World,
};

/// Half a megabyte in ignored files of many sorts, named by nothing that a call says.
fn fill(world: &World) {
    world.write(".gitignore", "data/\n*.db\n.env\nbuild/\ncache/\nfresh\n");
    world.write("a", "one\n");
    world.write("src/b", "two\n");
    world.write(".env", "secret\n");
    chmod(&world.root().join(".env"), 0o600);
    world.write("app.db", noise(1, 20_000));
    world.write("app.db-wal", noise(2, 10_000));
    for number in 0..40 {
        world.write(&format!("data/{number}.csv"), noise(number, 2_000));
    }
    world.write("data/deep/er/x", "x\n");
    link(&world.root().join("data/link"), "deep/er/x");
    fs::create_dir(world.root().join("data/empty")).unwrap();
    world.write("build/out.o", noise(3, 5_000));
    world.write("Makefile", "clean:\n\trm -rf build app.db data\n");
    world.write("clean.sh", "for f in data/*; do : > \"$f\"; done 2>/dev/null; rm -f .env\n");
    chmod(&world.root().join("clean.sh"), 0o755);
}

fn repository() -> World {
    let world = World::new();
    fill(&world);
    let commits = "git init -q -b main && git add -A && git commit -qm one && git checkout -qb \
                   other && echo tracked > fresh && echo other > app.db && git add -f fresh \
                   app.db && git commit -qm other && git checkout -q main";
    let kept = fs::read(world.root().join("app.db")).unwrap();
    git(&world, &world.root(), commits);
    world.write("app.db", kept);
    world.write("fresh", "ignored\n");
    world
}

fn plain() -> World {
    let world = World::new();
    fill(&world);
    world
}

/// All of the root but for what is git's own.
fn files(world: &World) -> Files {
    let mut files = on_disk(&world.root());
    files.retain(|path, _| !path.split(|&byte| byte == b'/').any(|name| name == b".git"));
    files
}

/// The agent runs a line; what it does is taken back. The answer of the hook.
fn there_and_back(world: &mut World, line: &str) -> String {
    let before = files(world);
    let answer = world.before_bash(line, line);
    if answer.contains("\"deny\"") || answer.contains("\"ask\"") {
        return answer;
    }
    git(world, &world.root(), &format!("bash -c {} || true", shell_words::quote(line)));
    let done = world.run(&["restore", "latest", "--exact", "--force", "--yes"]);
    let after = files(world);
    for (path, file) in &before {
        let name = String::from_utf8_lossy(path);
        assert!(after.get(path) == Some(file), "{line}: {name}: {done:?}");
    }
    let made = after.keys().filter(|path| !before.contains_key(*path));
    let made: Vec<_> = made.map(|path| String::from_utf8_lossy(path)).collect();
    assert!(made.is_empty(), "{line}: {made:?}: {done:?}");
    answer
}

/// None of them names what it destroys in a way that can be read off the line.
const LINES: &[&str] = &[
    "find data -type f -exec rm {} +",
    "ls data/*.csv | xargs rm",
    "shopt -s extglob; rm -rf !(a)",
    "cd absent; rm -rf data/* .env",
    "make clean",
    "./clean.sh",
    "rm -rf \"$(pwd)/data\" $(echo app.db)",
    "python3 -c 'import shutil; shutil.rmtree(\"data\")'",
    "perl -e 'unlink glob \"*.db*\"'",
    "for f in *.db .e*; do mv \"$f\" data/1.csv; done",
    "d=data; find \"$d\" -name '*.csv' -delete",
    "rm -rf data && mkdir data && echo new > data/1.csv",
    "rm -rf data && echo file > data",
    "truncate -s 0 data/*.csv",
    "chmod -R a+x data && chmod 644 .env",
    "echo '*' >> .gitignore; rm -rf data .env",
    "echo > .gitignore; rm -rf data app.db",
];

#[test]
fn what_is_ignored_comes_back_whatever_the_line_says() {
    let mut world = repository();
    for line in LINES.iter().chain(&["git checkout -qf other", "git clean -fdxq"]) {
        let answer = there_and_back(&mut world, line);
        assert!(!answer.contains("\"ask\""), "{line}: {answer}");
        git(&world, &world.root(), "git checkout -q main 2>/dev/null || true");
    }
}

#[test]
fn what_is_ignored_in_a_plain_directory_comes_back_too() {
    let mut world = plain();
    for line in LINES {
        let answer = there_and_back(&mut world, line);
        assert!(!answer.contains("\"ask\""), "{line}: {answer}");
    }
}

#[test]
fn a_large_file_that_git_does_not_track_is_held_though_nothing_names_it() {
    for mut world in [repository(), plain()] {
        world.write("model.bin", noise(7, 12 << 20));
        world.write("run.py", "import os; os.truncate('model.bin', 0)\n");
        there_and_back(&mut world, "python3 run.py");
    }
}

#[test]
fn no_number_of_files_is_cut_in_silence() {
    let mut world = repository();
    for number in 0..1_500 {
        world.write(&format!("data/{number}.csv"), format!("{number}\n"));
    }
    let answer = there_and_back(&mut world, "rm data/*.csv");
    assert_eq!(answer.trim(), "{}");
}

#[test]
fn what_a_program_makes_again_is_left_out_by_its_mark_alone() {
    let mut world = repository();
    world.write(".gitignore", "node_modules/\nenv/\n*.cache/\ntarget/\n");
    world.write("node_modules/a/index.js", "made\n");
    world.write("sub/node_modules/a/index.js", "mine\n");
    world.write("env/pyvenv.cfg", "home = /usr\n");
    world.write("env/lib/x.py", "made\n");
    world.write("my.cache/x", "mine\n");
    world.write("my.cache/CACHEDIR.TAG", "Signature: another\n");
    world.write("a.cache/x", "made\n");
    world.write("a.cache/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55\n# mine");
    world.write("target/x", "mine\n");
    world.write("package.json", "{}\n");
    world.run(&["create"]);
    let shown = world.run(&["show", "1"]).stdout;
    git(&world, &world.root(), "rm -rf node_modules sub env *.cache target");
    world.run(&["restore", "1", "--yes"]);
    let root = world.root();
    let is_there = |path: &str| root.join(path).exists();
    assert!(!is_there("node_modules") && !is_there("env") && !is_there("a.cache"), "{shown}");
    assert!(is_there("sub/node_modules/a/index.js") && is_there("my.cache/x"), "{shown}");
    assert!(is_there("target/x") && shown.contains("node_modules"), "{shown}");
}

#[test]
fn what_is_over_the_budget_is_named_and_asked_about() {
    for mut world in [repository(), plain()] {
        for number in 0..5_100 {
            write(&world.root().join(format!("cache/{number}")), "x");
        }
        fs::File::create(world.root().join("huge.db")).unwrap().set_len(2 << 30).unwrap();
        world.run(&["create"]);
        let shown = world.run(&["show", "1"]).stdout;
        assert!(shown.contains("cache") && shown.contains("huge.db"), "{shown}");
        assert!(!shown.contains("cache/1"), "a directory is named whole: {shown}");
        for line in ["rm huge.db", "rm *.db"] {
            let answer = world.before_bash(line, line);
            assert!(answer.contains("huge.db"), "{line}: {answer}");
            assert!(answer.contains("\"ask\""), "{line}: {answer}");
        }
        for line in ["make", "./clean.sh", "rm -rf src"] {
            let answer = world.before_bash(line, line);
            assert!(!answer.contains("\"ask\""), "{line}: {answer}");
        }
        // It fits as soon as it is small enough.
        fs::remove_file(world.root().join("huge.db")).unwrap();
        for number in 100..5_100 {
            fs::remove_file(world.root().join(format!("cache/{number}"))).unwrap();
        }
        let before = files(&world);
        world.before_bash("t", "./clean-all");
        git(&world, &world.root(), "rm -rf cache");
        world.run(&["restore", "latest", "--yes"]);
        assert!(files(&world) == before);
    }
}

#[test]
fn what_was_held_stays_held_when_smaller_files_come() {
    let mut world = repository();
    for number in 0..4 {
        world.write(&format!("data/{number}.bin"), noise(number, 15 << 20));
    }
    world.run(&["create"]);
    for number in 0..10 {
        world.write(&format!("data/new{number}.bin"), noise(number, 1 << 20));
    }
    world.run(&["create"]);
    let shown = world.run(&["show", "latest"]).stdout;
    assert!(shown.contains("data/ (7 paths, 7.3 MB, ignored"), "{shown}");
    assert!(world.run(&["status"]).stdout.contains("not held: data/ (7 paths"));
}

/// A mark that is gone proves nothing, nor does that of another directory.
#[test]
fn what_takes_the_place_of_an_environment_is_held() {
    for line in [
        "rm -rf cache && mkdir cache && echo precious > cache/file",
        "rm cache/pyvenv.cfg && echo precious > cache/file",
    ] {
        let mut world = repository();
        world.write("cache/pyvenv.cfg", "home = /usr/bin");
        world.run(&["create"]);
        git(&world, &world.root(), line);
        let before = files(&world);
        world.run(&["create"]);
        git(&world, &world.root(), "rm -rf cache");
        world.run(&["restore", "latest", "--yes"]);
        assert!(files(&world) == before, "{line}");
    }
}

/// Its size would fill the budget, and nothing else would be held from then on.
#[test]
fn a_file_with_holes_counts_with_its_room_while_it_is_held() {
    let mut world = repository();
    world.write("data/disk.img", "x");
    let disk = fs::File::options().write(true).open(world.root().join("data/disk.img"));
    disk.unwrap().set_len(200 << 20).unwrap();
    // Until then its stamp proves nothing, and it is looked at anew.
    std::thread::sleep(std::time::Duration::from_millis(50));
    world.run(&["create"]);
    world.write("cache/later", "later");
    world.run(&["create"]);
    let shown = world.run(&["show", "latest"]).stdout;
    assert!(!shown.contains("ignored"), "{shown}");
}

/// Though a scan does not read again what is in the other one.
#[test]
fn two_directories_share_the_budget() {
    let mut world = repository();
    for directory in ["data", "cache"] {
        for number in 0..3 {
            world.write(&format!("{directory}/{number}.bin"), noise(number, 15 << 20));
        }
        // Until then their stamps prove nothing, and they are read again.
        std::thread::sleep(std::time::Duration::from_millis(50));
        world.run(&["create"]);
    }
    let shown = world.run(&["show", "latest"]).stdout;
    assert!(shown.contains("cache/1.bin (15.7 MB, ignored"), "{shown}");
}

/// An agent must not wait for more than a little of it.
#[test]
fn one_call_takes_a_part_and_the_next_goes_on() {
    let mut world = repository();
    for number in 0..3 {
        world.write(&format!("data/{number}.bin"), noise(number, 9 << 20));
    }
    let left = [1, 0].map(|_| {
        world.before_bash("t", "./anything");
        world.run(&["show", "latest"]).stdout.contains("data/2.bin (9.4 MB, ignored")
    });
    assert_eq!(left, [true, false]);
    let before = files(&world);
    git(&world, &world.root(), "rm -rf data");
    world.run(&["restore", "latest", "--yes"]);
    assert!(files(&world) == before);
}

/// Another agent may be at work there.
#[test]
fn a_worktree_in_an_ignored_directory_is_left_to_itself_while_it_is_there() {
    let mut world = repository();
    let add = "printf '.claude/\\n' >> .gitignore && git worktree add -q .claude/worktrees/x other";
    git(&world, &world.root(), add);
    world.before_bash("one", "make");
    let payload = serde_json::json!({
        "session_id": "s2", "cwd": world.root().join(".claude/worktrees/x"), "prompt_id": "other",
        "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": "y",
        "tool_input": { "command": "make" },
    });
    world.run_in(&world.root(), &["hook", "--agent", "claude-code"], &payload.to_string());
    world.write(".claude/worktrees/x/a", "by another agent\n");
    world.write("a", "changed\n");
    let done = world.run(&["restore", "latest", "--force", "--yes"]);
    assert_eq!(world.read("a"), "one\n");
    assert_eq!(world.read(".claude/worktrees/x/a"), "by another agent\n");
    assert!(done.stdout.contains("left: .claude/worktrees/x/, a root of its own"), "{done:?}");
    world.before_bash("two", "./clean.sh");
    git(&world, &world.root(), "rm -rf .claude");
    world.run(&["restore", "latest", "--force", "--yes"]);
    assert_eq!(world.read(".claude/worktrees/x/a"), "by another agent\n");
    let status = git(&world, &world.root().join(".claude/worktrees/x"), "git status --porcelain");
    assert_eq!(status.trim(), "M a");
}

/// A whole call of the agent: the hook is asked, something happens, and its end is told.
fn calls(world: &mut World, turn: &str, tool: &str, input: &serde_json::Value, deed: &str) {
    for event in ["PreToolUse", "PostToolUse"] {
        let payload = serde_json::json!({
            "session_id": "s", "cwd": world.root(), "hook_event_name": event, "tool_name": tool,
            "tool_input": input, "tool_use_id": format!("{turn} {input}"), "prompt_id": turn,
            "tool_response": {},
        });
        world.wait(1);
        world.run_in(&world.root(), &["hook", "--agent", "claude-code"], &payload.to_string());
        if event == "PreToolUse" {
            git(world, &world.root(), deed);
        }
    }
}

#[test]
fn what_an_earlier_turn_wrote_to_an_ignored_file_is_held() {
    let mut world = repository();
    for (turn, path) in [("one", ".env"), ("two", "a"), ("two", ".env")] {
        let input = serde_json::json!({ "file_path": world.root().join(path), "content": turn });
        calls(&mut world, turn, "Write", &input, &format!("printf {turn} > {path}"));
    }
    let done = world.run(&["undo", "--yes"]);
    assert_eq!((world.read(".env"), world.read("a")), ("one".into(), "one\n".into()), "{done:?}");
}

/// What a server writes all the while is nothing that an undo could take back or wait for.
#[test]
fn undo_passes_over_a_turn_in_which_only_others_changed_something() {
    let mut world = repository();
    calls(&mut world, "one", "Bash", &serde_json::json!({ "command": "./x" }), "rm src/b");
    calls(&mut world, "two", "Bash", &serde_json::json!({ "command": "make" }), "true");
    world.write("app.db", "grown meanwhile");
    let done = world.run(&["undo", "--yes"]);
    assert_eq!(
        (world.read("src/b"), world.read("app.db")),
        ("two\n".into(), "grown meanwhile".into()),
        "{done:?}"
    );
}

#[test]
fn a_repository_in_an_ignored_directory_comes_back_with_the_root() {
    let mut world = repository();
    let vendor = "git init -q data/lib && cd data/lib && echo one > f && git add f && git commit \
                  -qm one && echo two > f && echo untracked > u";
    git(&world, &world.root(), vendor);
    there_and_back(&mut world, "rm data/lib/u; git -C data/lib reset -q --hard");
}

/// A clone among packages may have work that is nowhere else.
#[test]
fn a_repository_among_packages_comes_back_with_its_work() {
    let mut world = repository();
    world.write(".gitignore", "node_modules/\n.venv/\n");
    world.write("package.json", "{}\n");
    world.write("node_modules/a/index.js", "made\n");
    world.write(".venv/pyvenv.cfg", "home = /usr\n");
    world.write(".venv/lib/x.py", "made\n");
    let is_left_out = |world: &mut World, dir: &str| {
        let shown = world.run(&["show", "latest"]).stdout;
        shown.lines().any(|line| line.contains(dir) && line.contains("made again"))
    };
    world.before_bash("one", "./x");
    assert!(is_left_out(&mut world, "node_modules") && is_left_out(&mut world, ".venv"));
    for (turn, dir, place) in [
        ("two", "node_modules", "node_modules/repo"),
        ("three", "node_modules", "node_modules/@scope/repo"),
        ("four", ".venv", ".venv/src/lib"),
    ] {
        let clone = format!(
            "git init -q {place} && cd {place} && echo one > f && git add f && git commit -qm one \
             && echo work > f && echo new > g"
        );
        git(&world, &world.root(), &clone);
        world.before_bash(turn, "./x");
        assert!(!is_left_out(&mut world, dir), "{place}");
        let before = files(&world);
        git(&world, &world.root(), &format!("rm -rf {dir}"));
        world.run(&["restore", "latest", "--yes"]);
        assert!(files(&world) == before, "{place}");
        let status = git(&world, &world.root().join(place), "git log --oneline; git status -s");
        assert!(status.contains("one") && status.contains(" M f"), "{place}: {status}");
        git(&world, &world.root(), &format!("rm -rf {place}"));
    }
}

/// Wherever a line goes step by step, the repository there is a root of its own.
#[test]
fn a_repository_that_is_reached_in_two_steps_is_held_with_all_it_has() {
    let mut world = repository();
    world.write(".gitignore", "data/\n");
    for number in 0..5_100 {
        write(&world.root().join(format!("data/{number}")), "x");
    }
    let lib =
        "git init -q data/lib && cd data/lib && echo one > f && git add f && git commit -qm one";
    git(&world, &world.root(), lib);
    world.write("data/lib/f", "changed\n");
    for (turn, line) in [("one", "cd data; cd lib; ./x"), ("two", "cd data && cd lib && ./x")] {
        world.before_bash(turn, line);
        git(&world, &world.root(), "git -C data/lib reset -q --hard");
        let lib = world.root().join("data/lib");
        world.run_in(&lib, &["restore", "latest", "--force", "--yes"], "");
        assert_eq!(world.read("data/lib/f"), "changed\n", "{line}");
    }
}

#[test]
fn small_directories_are_held_before_large_ones() {
    let mut world = World::new();
    world.write(".gitignore", "a/\nb/\nc/\nzlib/\n");
    for number in 0..4_000 {
        for dir in ["a", "b", "c"] {
            write(&world.root().join(format!("{dir}/{number}")), "x");
        }
    }
    world.write("zlib/f", "small\n");
    world.run(&["create"]);
    git(&world, &world.root(), "rm -rf zlib c");
    let done = world.run(&["restore", "1", "--yes"]).stdout;
    assert_eq!(world.read("zlib/f"), "small\n");
    assert!(done.contains("gone, and was not held: c (ignored"), "{done}");
}
