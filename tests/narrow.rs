//! Terminals of 80 and of 50 columns: no line of any view is wider, but for what must stay whole.

use beforehand::process::{Exit, Terminal};
use serde_json::json;

use crate::{
    evidence::{run, writes},
    support::{real::git, temp::write, world::World},
};

/// Names and prompts that are long, of wide characters, and of characters that combine.
const DEEP: &str =
    "src/components/checkout/a directory with spaces/another-rather-long-name.component.ts";
const WIDE: &str = "文書/設計資料と議事録の一覧/とても長い名前のファイル.txt";
const COMBINED: &str =
    "cafe\u{301}/re\u{301}sume\u{301}-de-l-e\u{301}te\u{301}-de-l-anne\u{301}e-dernie\u{300}re.txt";
const PROMPT: &str = "請把購物車的價格四捨五入 and then clean up the build directory, reinstall everything, and tell me \
                      in one sentence what you re\u{301}moved";

fn prompts(world: &World, turn: &str) {
    let payload = json!({
        "session_id": "s", "cwd": world.root(), "prompt_id": turn, "prompt": PROMPT,
        "hook_event_name": "UserPromptSubmit",
    });
    let output =
        world.run_in(&world.root(), &["hook", "--agent", "claude-code"], &payload.to_string());
    assert_eq!((output.exit, &*output.stderr), (Exit::Ok, ""));
}

fn project(mut world: World, has_git: bool) -> World {
    write(&world.settings(), "deadline = \"60s\"\n[directory.\"~/x\"]\nmax_files = 500000\n");
    for path in [DEEP, WIDE, COMBINED, "kept"] {
        world.write(path, "one\ntwo\nthree\n");
    }
    if has_git {
        git(&world, &world.root(), "git init -q -b main && git add -A && git commit -qm first");
    }
    prompts(&world, "one");
    writes(&mut world, "one", DEEP, "one\n2\nthree\n");
    writes(&mut world, "one", WIDE, "1\ntwo\nthree\n");
    world.write(DEEP, "one\n2\n3\n");
    world.write(COMBINED, "mine\n");
    prompts(&world, "two");
    let line =
        format!("rm '{COMBINED}' && npm run build -- --with-a-long-option='{WIDE}' > 'kept'");
    run(&mut world, "two", &line, |world| {
        std::fs::remove_file(world.root().join(COMBINED)).unwrap();
        world.write("kept", "built\n");
        world.write("made/by/the/build/with-a-name-that-is-long-enough-to-be-wrapped.js", "x");
    });
    writes(&mut world, "two", DEEP, "one\nzwei\n3\n");
    world.write(WIDE, "mine, after the agent\n");
    // Too large to be held.
    let big =
        world.root().join("a-large-file-of-the-user-that-no-checkpoint-ever-holds-unasked.mov");
    std::fs::File::create(big).unwrap().set_len(1 << 40).unwrap();
    prompts(&world, "three");
    run(&mut world, "three", "make everything", |world| world.write("made/more", "x"));
    world
}

const VIEWS: &[&[&str]] = &[
    &["list"],
    &["list", "--all"],
    &["list", "--calls"],
    &["list", "--steps", "2"],
    &["list", "--everywhere"],
    &["show", "1"],
    &["show", "2"],
    &["show", "2.2"],
    &["diff", "3", "--stat"],
    &["diff", "3", "1", "--stat"],
    &["blame", DEEP],
    &["blame", WIDE],
    &["find", DEEP],
    &["find", "%"],
    &["find", "no/such/file/in/any/of/the/checkpoints/of/this/project.txt", "--text", "some words"],
    &["status"],
    &["check"],
    &["check", "--read-data"],
    &["doctor"],
    &["config"],
    &["config", "--explain"],
    &["explain", "rm -rf build/* && git clean -fdx ; git log > ../log.txt"],
    &["prune", "--dry-run", "--keep", "1"],
    &["uninstall", "claude-code", "--dry-run"],
    &["restore", "3", "--dry-run"],
    &["restore", "3", "--dry-run", "--force", "--exact"],
    &["restore", "2", "--dry-run", "--merge"],
    &["restore", "2.2", "--dry-run"],
    &["revert", "3", "--dry-run"],
    &["undo", "--dry-run"],
    &["restore", "no-such-checkpoint-and-a-rather-long-name-for-one-at-that", "--dry-run"],
    &[
        "fork",
        "2",
        "../a-fork-of-the-project-in-a-directory-beside-it-with-a-long-name",
        "--dry-run",
    ],
    &["export", "3..1", "--patches", "../patches-of-all-the-turns-in-a-new-directory"],
    &["fork", "2", "../a-fork-of-the-project-in-a-directory-beside-it-with-a-long-name"],
    &["fork", "--list"],
    &["restore", "3", "--yes"],
    &["list", "--all"],
    &["undo", "--yes"],
    &["undo", "--yes", "--force"],
    &["revert", "2", "--yes"],
    &["status"],
    &["clear"],
];

const COMMANDS: [&str; 4] = ["beforehand ", "git ", "cd ", "claude "];

/// What lies between spaces, between backticks, between the dots of hints, or behind `with:` stays whole.
fn must_stay_whole(line: &str) -> bool {
    let mut is_quoted = false;
    let is_gap = |c: char| {
        is_quoted ^= c == '`';
        c == ' ' && !is_quoted
    };
    let is_command = COMMANDS.iter().any(|begin| line.trim_start().starts_with(begin));
    (is_command && !line.contains(" · ")) || line.trim_start().split(is_gap).count() == 1
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let mut found = String::new();
    for (has_git, columns) in [(true, 80), (true, 50), (false, 80), (false, 50)] {
        let mut world = project(World::new(), has_git);
        world.terminal =
            Terminal { stdin: false, stdout: true, stderr: true, columns: Some(columns) };
        for view in VIEWS {
            world.wait(1);
            let output = world.run(view);
            assert_ne!(output.exit, Exit::Bug, "{view:?}");
            let said = output.stdout + &output.stderr;
            assert!(!said.is_empty(), "{view:?}");
            let is_wide = |line: &&str| beforehand::ui::cells(line) > usize::from(columns);
            let wide: Vec<&str> =
                said.lines().filter(is_wide).filter(|line| !must_stay_whole(line)).collect();
            if !wide.is_empty() {
                found.push_str(&format!(
                    "{columns} columns, {view:?}:
{}
",
                    wide.join(
                        "
"
                    )
                ));
            }
        }
    }
    assert!(found.is_empty(), "{found}");
}

#[test]
fn into_a_pipe_a_line_is_never_broken() {
    let mut world = project(World::new(), true);
    let whole = world.run(&["restore", "3", "--dry-run"]).stdout;
    world.terminal = Terminal { stderr: true, columns: Some(50), ..Terminal::default() };
    assert_eq!(world.run(&["restore", "3", "--dry-run"]).stdout, whole);
    assert!(whole.lines().any(|line| line.len() > 80 && line.contains(DEEP)), "{whole}");
}
