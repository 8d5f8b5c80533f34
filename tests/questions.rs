//! A call is asked about when bytes that nothing holds may be lost, and only then; and `explain`
//! says beforehand what the hook answers.

use std::{collections::BTreeSet, fs};

use beforehand::process::Exit;
use serde_json::{Value, json};

use crate::support::{
    real::git,
    temp::{chmod, write},
    world::World,
};

/// A repository in which too large files are ignored, untracked, and beside what the lines are about.
fn project() -> World {
    let world = World::new();
    world.write(".gitignore", "data/\n*.db\n*.log\nnode_modules/\n");
    world.write("a", "one\n");
    world.write("src/b", "two\n");
    world.write("empty.sh", "exit 0\n");
    world.write("tools/wipe.sh", "#!/bin/sh\nrm -f \"$1\"\nrm -rf data\n");
    world.write("tools/tidy.sh", "#!/bin/sh\nrm -rf src/tmp empty.sh\n");
    git(&world, &world.root(), "git init -q -b main && git add -A && git commit -qm one");
    world.write("data/small", "x\n");
    world.write("src/debug.log", "x\n");
    world.write("notes", "untracked\n");
    for name in ["data/huge.bin", "huge.db", "raw/huge.raw"] {
        world.write(name, "");
        let file = fs::File::create(world.root().join(name)).unwrap();
        file.set_len(2 << 30).unwrap();
    }
    world
}

/// The decision of the hook, and what it says.
fn answer(world: &World, dir: &str, line: &str) -> (String, String) {
    answer_in(world, dir, line, "default")
}

/// The same in a permission mode of the agent.
fn answer_in(world: &World, dir: &str, line: &str, mode: &str) -> (String, String) {
    let cwd = world.root().join(dir);
    let payload = json!({
        "session_id": "s1", "cwd": cwd, "prompt_id": line, "hook_event_name": "PreToolUse",
        "permission_mode": mode,
        "tool_name": "Bash", "tool_input": { "command": line }, "tool_use_id": line,
    });
    let output = world.run_in(&cwd, &["hook", "--agent", "claude-code"], &payload.to_string());
    assert_eq!((output.exit, &*output.stderr), (Exit::Ok, ""), "{line}");
    let answer: Value = serde_json::from_str(&output.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let inner = &answer["hookSpecificOutput"];
    (text(&inner["permissionDecision"]), text(&inner["permissionDecisionReason"]))
}

/// What the user is told, in a session of its own.
fn message(world: &World, line: &str) -> String {
    let payload = json!({
        "session_id": line, "cwd": world.root(), "hook_event_name": "PreToolUse",
        "tool_name": "Bash", "tool_input": { "command": line }, "tool_use_id": line,
    });
    let args = ["hook", "--agent", "claude-code"];
    let output = world.run_in(&world.root(), &args, &payload.to_string());
    let answer: Value = serde_json::from_str(&output.stdout).unwrap();
    answer["systemMessage"].as_str().unwrap_or_default().to_owned()
}

/// What `explain` says of it.
fn explained(world: &World, dir: &str, line: &str) -> (String, String) {
    let cwd = world.root().join(dir);
    let told = world.run_in(&cwd, &["explain", "--json", line], "").stdout;
    let told: Value = serde_json::from_str(&told).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&told["answer"]).replace("none", ""), text(&told["note"]))
}

/// Where a line runs, the line, and whether something of what is not held may be lost.
const LINES: &[(&str, &str, bool)] = &[
    ("", "touch huge.db", false),
    ("", "touch data/huge.bin", false),
    ("", "mkdir -p data raw src/new", false),
    ("", "mkdir data", false),
    ("", "ln -s src data/link", false),
    ("", "rm -f *", true),
    ("", "rm -f *.sh", false),
    ("", "rm -f a notes", false),
    ("", "rm -f data raw", false),
    ("", "rm -f [adr]*", false),
    ("", "rm -rf [adr]*", true),
    ("", "rm -fr data", true),
    ("", "rm --recursive raw", true),
    ("", "rm data/*", true),
    ("", "rmdir data", false),
    ("", "unlink data", false),
    ("", "unlink huge.db", true),
    ("", "cd src && rm -f *", false),
    ("src", "rm -f *", false),
    ("src", "rm -rf *", false),
    ("src", "rm -f ../*.db", true),
    ("", "git clean -n", false),
    ("", "git clean -fd", true),
    ("", "git clean -fd src data", false),
    ("", "git clean -fdx src", false),
    ("", "git clean -fdx src data", true),
    ("", "git clean -fdq -- src", false),
    ("", "git clean -fd raw", true),
    ("", "git clean -ffdx", true),
    ("", "git clean -fdX ':/src'", true),
    ("", "git rm -rq src", false),
    ("", "git rm -rqf --ignore-unmatch data", false),
    ("", "mv huge.db other.db", false),
    ("", "cp a huge.db", true),
    ("", "echo x >> huge.db", false),
    ("", "echo x > huge.db", true),
    ("", "truncate -s 0 huge.db", true),
    ("", "chmod 600 huge.db", false),
    ("", "make", false),
    ("", "ls", false),
    ("", "find . -delete", true),
    ("", "find data -type f -delete", true),
    ("src", "find .. -mindepth 1 -depth -type f -delete", true),
    ("", "find data -type f -exec rm {} +", true),
    ("", "find src data/small -delete", false),
    ("", "find . -name '*.pyc' -delete", false),
    ("", "find . -type f ! -name '*.db' -delete", false),
    ("", "find . -type f -exec grep -q x {} \\; -delete", false),
    ("", "find . -type f -exec chmod 600 {} +", false),
    ("", "find . -type f -exec make {} +", false),
    ("", "find . -type f | xargs rm", false),
    ("", "rm $(ls)", false),
    ("", "sh tools/wipe.sh", true),
    ("", "./tools/wipe.sh x && ls", true),
    ("src", "../tools/wipe.sh", true),
    ("", "source tools/wipe.sh", true),
    ("", "tools/tidy.sh; make", false),
];

#[test]
fn what_can_lose_nothing_is_not_asked_about() {
    let world = project();
    for (dir, line, asks) in LINES {
        let (decision, why) = answer(&world, dir, line);
        let wanted = if *asks { "ask" } else { "" };
        assert_eq!(decision, wanted, "{line}: {why}");
        assert_eq!(why.contains("not held: "), *asks, "{line}: {why}");
    }
    // A pattern makes an option of such a name.
    world.write("-r", "");
    assert_eq!(answer(&world, "", "rm *").0, "ask");
    git(&world, &world.root(), "rm huge.db");
    assert_eq!(answer(&world, "", "rm *").0, "ask");
    git(&world, &world.root(), "rm ./-r");
    assert_eq!(answer(&world, "", "rm *").0, "");
}

/// Where a line runs, the line, and whether a file that nothing holds is named to a formatter.
const FORMATTERS: &[(&str, &str, bool)] = &[
    ("", "gofmt -w .", false),
    ("", "gofmt -w ./", false),
    ("src", "goimports -w ..", false),
    ("", "cd data && shfmt -w .", false),
    ("", "black .", false),
    ("", "isort . src", false),
    ("", "autopep8 -ir .", false),
    ("", "stylua .", false),
    ("", "prettier --write .", false),
    ("", "prettier --write d?ta s*", false),
    ("", "npx prettier --write .", false),
    ("", "eslint --fix .", false),
    ("", "rubocop -a .", false),
    ("", "cargo fmt", false),
    ("", "rustfmt src/b", false),
    ("", "ruff format", false),
    ("", "ruff format .", false),
    ("", "ruff check --fix --no-cache .", false),
    ("", "clang-format -i *.sh", false),
    ("", "find . -name '*.go' -exec gofmt -w {} +", false),
    ("", "git ls-files | xargs gofmt -w", false),
    ("", "black . huge.db", true),
    ("", "gofmt -w huge.db", true),
    ("", "prettier --write *.db", true),
    ("", "clang-format -i raw/*.raw", true),
];

/// In a directory it looks for files of its own kind, and what is left out for its size is none.
#[test]
fn a_formatter_of_a_directory_is_not_asked_about() {
    let world = project();
    for (dir, line, is_refused) in FORMATTERS {
        let (decision, why) = answer_in(&world, dir, line, "bypassPermissions");
        assert_eq!(decision, if *is_refused { "deny" } else { "" }, "{line}: {why}");
        let told = message(&world, line);
        assert!(*is_refused || !dir.is_empty() || !told.contains("not held: "), "{line}: {told}");
        assert_eq!(explained(&world, dir, line).0 == "ask", *is_refused, "{line}");
    }
    let line = format!("black {}", world.root().display());
    assert_eq!(answer_in(&world, "../../home", &line, "bypassPermissions").0, "", "outside");
    // The hooks that `install --project` wrote stay what they are.
    world.write(".claude/settings.json", "{\"command\": \"beforehand hook --agent claude-code\"}");
    let (decision, why) = answer_in(&world, "", "prettier --write .", "bypassPermissions");
    assert_eq!(decision, "", "{why}");
}

/// Where a line runs, the line, and whether git replaces `huge.db` or something in `data` by it: the branch
/// `other` has both, and `main` neither.
const CHECKOUTS: &[(&str, &str, bool)] = &[
    ("", "git reset -q --hard", false),
    ("", "git reset -q other", false),
    ("", "git reset -q --hard other", true),
    ("src", "git reset -q --hard other", true),
    ("", "git reset -q --hard other~", false),
    ("", "git reset -q --hard v1", true),
    ("", "git reset -q --hard $x", true),
    ("", "git checkout -qf other", true),
    ("", "git checkout -qf main", false),
    ("", "git checkout -q -", true),
    ("", "git checkout -q other -- .", true),
    ("", "git checkout -q other -- src", false),
    ("", "git checkout -q -- .", false),
    ("", "git restore -s other .", true),
    ("src", "git restore -s other .", false),
    ("", "git restore .", false),
    ("", "git switch -q --discard-changes other", true),
    ("", "git read-tree -u --reset other", true),
    ("", "git merge -q other", true),
    ("", "git merge -q main", false),
    ("", "git pull -q", true),
    ("", "git rebase -q other", true),
    ("", "git cherry-pick other", true),
    ("", "git revert --no-edit HEAD", false),
    ("", "git stash", false),
    ("", "cd src && git checkout -qf other", true),
    ("", "cd inner && git reset -q --hard other", false),
];

#[test]
fn what_git_puts_in_place_of_a_file_is_asked_about_if_a_commit_has_that_file() {
    let world = project();
    let blob = "$(echo x | git hash-object -w --stdin)";
    let adds = ["huge.db", "data/huge.bin", "data/none"]
        .map(|path| format!("git update-index --add --cacheinfo 100644,{blob},{path}"));
    // `git commit` would read all of the large files.
    let commit = "git branch other $(git commit-tree -p HEAD -m two $(git write-tree))";
    let lines = [&*adds.join(" && "), commit, "git read-tree HEAD"];
    git(&world, &world.root(), &lines.join(" && "));
    git(&world, &world.root(), "git tag -am v1 v1 other && git init -q inner");
    for (dir, line, asks) in CHECKOUTS {
        let (decision, why) = answer(&world, dir, line);
        assert_eq!(decision, if *asks { "ask" } else { "" }, "{line}: {why}");
        assert_eq!(why.contains("not held: "), *asks, "{line}: {why}");
    }
}

/// It is known only when the line runs, and then it is too late.
#[test]
fn what_a_call_deletes_without_naming_it_is_told_of_before() {
    let world = project();
    let told = |dir: &str, line: &str| {
        let cwd = world.root().join(dir);
        let payload = json!({
            "session_id": line, "cwd": cwd, "prompt_id": line, "hook_event_name": "PreToolUse",
            "tool_name": "Bash", "tool_input": { "command": line }, "tool_use_id": line,
        });
        world.run_in(&cwd, &["hook", "--agent", "claude-code"], &payload.to_string()).stdout
    };
    for (dir, line, program) in [
        ("", "find . -mtime +3 -delete", "find"),
        ("", "find data -type f | xargs rm", "rm"),
        ("", "rm $(git ls-files -oi --exclude-standard)", "rm"),
        ("", "find . -type f | while read -r f; do rm \"$f\"; done", "rm"),
        ("", "rm -rf \"data/$x\"", "rm"),
        ("src", "cd ..; ls | xargs rm -rf", "rm"),
    ] {
        let told = told(dir, line);
        let said = format!("data/huge.bin (2.1 GB, over max_victim_size) — {program} may delete");
        assert!(told.contains(&said) && !told.contains("permission"), "{line}: {told}");
    }
    for (dir, line) in [
        ("", "rm -rf \"src/$x\""),
        ("src", "ls | xargs rm -rf"),
        ("", "find src -name x -delete"),
        ("", "find . -name '*.bak' -delete"),
        ("", "find . -type f -exec sed -i 1d {} +"),
        ("", "echo x > \"$x\""),
        ("", "make clean"),
    ] {
        let told = told(dir, line);
        assert!(!told.contains("not held"), "{line}: {told}");
    }
}

#[test]
fn explain_says_what_the_hook_answers() {
    let world = project();
    let others = [
        ("", "rm -rf ~/.local", true),
        ("", "rm -rf ../../home/.local/state/beforehand", true),
        ("src", "beforehand clear --yes", true),
    ];
    for (dir, line, asks) in LINES.iter().chain(&others) {
        // Before there is a checkpoint, and after.
        for has_one in [false, true] {
            let foreseen = explained(&world, dir, line);
            assert_eq!(foreseen.0 == "ask", *asks, "{line}, {has_one}: {}", foreseen.1);
            let real = answer(&world, dir, line);
            assert_eq!(foreseen.0, real.0, "{line}: {} {}", foreseen.1, real.1);
            let is_question = |text: &&str| text.contains("not held") || text.contains("reaches");
            let questions = |text: &str| {
                let bare = |line: &str| line.trim_start_matches("beforehand: ").to_owned();
                // What the session has not heard comes last.
                text.lines().filter(is_question).map(bare).collect::<BTreeSet<_>>()
            };
            if *asks {
                assert_eq!(questions(&foreseen.1), questions(&real.1), "{line}");
                assert!(!questions(&real.1).is_empty(), "{line}");
            }
        }
    }
}

#[test]
fn explain_leaves_no_trace() {
    let mut world = project();
    chmod(&world.root().join("a"), 0o600);
    let told = world.run(&["explain", "rm -rf ~/.local data"]).stdout;
    assert!(told.contains("would ask: not held: data/huge.bin"), "{told}");
    assert!(told.contains("would ask: this call reaches for beforehand itself"), "{told}");
    assert!(!world.state().exists());
}

/// As it is once something is held: patterns fit what is there.
#[test]
fn patterns_and_searches_that_lead_to_us_are_asked_about() {
    let world = project();
    answer(&world, "", "make");
    let home = world.home();
    world.write("../../home/.claude/settings.json", "beforehand hook");
    world.write("../../home/.claude/notes.md", "x");
    std::os::unix::fs::symlink(home.join(".local"), world.root().join("link")).unwrap();
    let home = home.to_str().unwrap();
    for line in [
        "ls -d ~/.local/state/* | xargs rm -rf",
        "ls -d ~/.l*/st*/* | xargs rm -rf",
        "rm -rf ~/.l*/st*/*",
        "rm -rf ~/.[l]*",
        "rm -rf ~/.lo{cal,x}/state",
        "d=~/.local/state; for x in $d/*; do rm -rf \"$x\"; done",
        "for x in ~/.*; do rm -rf $x; done",
        "find link/ -type f | xargs rm",
        "python3 -c \"import glob, os; [os.remove(f) for f in glob.glob('link/state/*')]\"",
        "python3 -c \"import glob, os; [os.remove(f) for f in glob.glob(os.path.expanduser('~/.c*/*.json'))]\"",
        "node -e \"require('fs').rmSync(process.env.HOME, {recursive: true})\"",
        "find ~/.claude -type f -delete",
        "find ~/.claude -name '*.json' | xargs sed -i d",
        "echo 'enabled = false' > ~/.config/beforehand/config.toml",
        "echo 'enabled = false' | tee ~/.config/beforehand/config.toml",
        &format!("find {home} -type f | xargs rm"),
        &format!("cd {home}/.local && rm -rf state"),
        &format!("cd {home} && find . -type f | xargs rm"),
    ] {
        let (decision, why) = answer(&world, "", line);
        assert_eq!(decision, "ask", "{line}: {why}");
        assert!(why.contains("reaches for beforehand itself"), "{line}: {why}");
    }
    for line in [
        "ls -d ~/.local/state/*",
        "cat ~/.claude/settings.json | head",
        "rm -f ~/.claude/notes.md",
        "find ~/.config -type f | xargs sed -i d",
        "ls ~/*.txt | xargs cat > all.txt",
        "find . -name '*.o' | xargs rm -f",
    ] {
        let (decision, why) = answer(&world, "", line);
        assert_eq!(decision, "", "{line}: {why}");
    }
}

#[test]
fn that_max_files_is_reached_is_said_once() {
    let mut world = World::new();
    write(&world.settings(), "max_files = 3\n");
    for name in ["a", "b", "c", "d/e", "d/f"] {
        world.write(name, "x\n");
    }
    let told = world.before_bash("t1", "make");
    assert!(told.contains("more files than `max_files` (3)"), "{told}");
    world.write("g", "x\n");
    let told = world.before_bash("t2", "make");
    assert!(!told.contains("max_files"), "{told}");
    let shown = world.run(&["show", "latest"]).stdout;
    assert!(shown.contains("over max_files"), "{shown}");
    write(&world.settings(), "max_files = 30\n");
    let told = world.before_bash("t3", "make");
    assert!(!told.contains("max_files"), "{told}");
}

/// A directory outside the project that is held in part: what is in it and left out may be all there is of it.
#[test]
fn a_directory_of_which_not_all_is_held_is_asked_about() {
    let world = project();
    let many = world.root().join("../many");
    fs::create_dir(&many).unwrap();
    write(&world.settings(), "deadline = \"60s\"\n");
    for n in 0..10_000 {
        fs::File::create(many.join(format!("{n}"))).unwrap();
    }
    let (decision, why) = answer(&world, "", "rm -rf ../many");
    assert!(decision == "ask" && why.contains("too much to hold"), "{decision}: {why}");
    let of_less = answer(&world, "", "rm -rf ../many/1 ../many/2");
    assert_eq!(of_less, Default::default(), "these are held");
}

/// More files than a pattern tells apart: by whatever name a line reaches them.
#[test]
fn very_many_files_are_asked_about_however_a_line_reaches_them() {
    let world = World::with_git();
    write(&world.settings(), "deadline = \"60s\"\n");
    world.write(".gitignore", "data\n");
    world.write("new/a", "y");
    fs::create_dir(world.root().join("data")).unwrap();
    for n in 0..10_001 {
        fs::File::create(world.root().join(format!("data/f{n}"))).unwrap();
    }
    for line in [
        "rm data/*",
        "rm -f data/f*",
        "for f in data/*; do rm \"$f\"; done",
        "mv data ../d && rm -rf ../d",
        "find data -name 'f1*' -delete",
        "find . -name data -exec rm -rf {} +",
        "find . -name 'd*' | xargs rm -rf",
    ] {
        let (decision, why) = answer(&world, "", line);
        assert_eq!(decision, "ask", "{line}: {why}");
    }
    for line in ["cp -r new/. data", "mv data ../d && rm -rf ../e"] {
        let (answer, told) = (answer(&world, "", line), message(&world, line));
        assert!(answer.0.is_empty() && !told.contains("for good"), "{line}: {told}");
    }
}

#[test]
fn what_is_too_large_is_asked_about_however_a_line_reaches_it() {
    let world = World::with_git();
    write(&world.settings(), "deadline = \"60s\"\nmax_victim_size = \"1 MB\"\n");
    world.write(".gitignore", "data\n*.big\n");
    world.write("data/f", "x");
    world.write("a.big", "x".repeat(1_100_000));
    world.write("sub/c.big", "x".repeat(1_100_000));
    world.write("new/a.big", "y");
    world.write("new/sub/c.big", "y");
    for archive in ["cf ../new.tar -C new .", "czf ../new.tgz -C new sub", "cf ../other.tar new"] {
        git(&world, &world.root(), &format!("tar {archive}"));
    }
    for line in [
        "mv a.big .. && rm ../a.big",
        "mv a.big ../b; > ../b",
        "find . -name '*.big' -delete",
        "find . -type f -name 'a*' -exec rm {} +",
        "find . -name '*.big' | xargs rm",
        "find . -name '*g' -print0 | sort -z | xargs -0 rm -f",
        "find . -name sub -exec rm -rf {} +",
        "find . -name '*.pyc' -delete; find . -name '*.big' -delete",
        "cp -r new/. .",
        "cp -rT new .",
        "cd new && cp -a . ..",
        "cp -r new/sub .",
        "rsync -a new/ .",
        "rsync -a new/sub .",
        "tar xf ../new.tar",
        "cd new && tar xzf ../../new.tgz -C ..",
    ] {
        let (decision, why) = answer(&world, "", line);
        assert_eq!(decision, "ask", "{line}: {why}");
        assert!(!why.contains(".git (") && !why.contains("4 KB"), "{line}: {why}");
    }
    for line in [
        "find . -name '*.pyc' -delete",
        "find . -name '*.pyc' | xargs rm",
        "find . -name '*.pyc' -exec rm {} \\;",
        "cp -r new/. data",
        "cp -r new other",
        "rsync -a new .",
        "tar xf ../other.tar",
        "tar xf ../none.tar",
        "tar xf ../new.tar -C data",
        "tar xf ../new.tar --skip-old-files",
        "mv a.big b.big",
        "rm -f ../d; mv a.big ../d; echo x >> y",
    ] {
        let (answer, told) = (answer(&world, "", line), message(&world, line));
        assert!(answer.0.is_empty() && !told.contains("for good"), "{line}: {told}");
    }
    // What comes before the name is not bound to it, and what comes after may change it.
    for line in [
        "find . ! -name '*.pyc' -delete",
        "find . -name x -o -size +1 -delete",
        "find . -delete -name '*.pyc'",
        "find . -print -name '*.pyc' | xargs rm",
        "find . -name '*.c' | sed 's/c$/big/' | xargs rm",
        "find . -name '*.c' -printf '%h\\n' | xargs rm -rf",
        "find . -name '*.c' -exec dirname {} + | xargs rm -rf",
        "find . -name '*.c' | xargs dirname | xargs rm -rf",
    ] {
        let told = message(&world, line);
        assert!(told.contains("a.big") && told.contains("may delete it for good"), "{told}");
    }
}
