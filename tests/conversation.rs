//! Restores with the conversation: what is written, and what is left alone.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use beforehand::process::Terminal;

use crate::support::{
    real::bound_by_permissions,
    temp::{on_disk, special, write},
    tmux::Tmux,
    world::{Output, World},
};

const SESSION: &str = "edfd27ab-7af7-4d25-89e7-0fc557e16b04";
const FIRST: &str = "e573904b-569c-4101-9415-94899267fd9d";
const SECOND: &str = "d0b16c11-5c77-4eec-be20-ad252d2f8e0b";

/// Where the agent keeps its conversations.
fn talks(world: &World) -> PathBuf {
    world.root().parent().unwrap().with_file_name("home").join(".claude/projects/shop")
}

fn transcript(world: &World) -> PathBuf {
    talks(world).join(format!("{SESSION}.jsonl"))
}

fn event(world: &mut World, turn: &str, name: &str) {
    let path = world.root().join("a");
    let payload = serde_json::json!({
        "session_id": SESSION, "cwd": world.root(), "hook_event_name": name, "prompt_id": turn,
        "transcript_path": transcript(world), "prompt": "SECOND-PROMPT", "tool_name": "Write",
        "tool_input": { "file_path": path, "content": "" }, "tool_use_id": turn,
        "tool_response": {},
    });
    world.wait(1);
    let args = ["hook", "--agent", "claude-code"];
    let output = world.run_in(&world.root(), &args, &payload.to_string());
    assert_eq!(output.stdout, "{}", "{}", output.stderr);
}

/// Two turns, in each of which the agent wrote `a`.
fn two_turns() -> World {
    two_turns_in(World::new())
}

fn two_turns_in(mut world: World) -> World {
    let kept = fs::read(format!("fixtures/transcripts/claude-code/{SESSION}.jsonl")).unwrap();
    world.write("a", "at first");
    for turn in [FIRST, SECOND] {
        event(&mut world, turn, "UserPromptSubmit");
        event(&mut world, turn, "PreToolUse");
        world.write("a", turn);
        event(&mut world, turn, "PostToolUse");
    }
    write(&transcript(&world), kept);
    world
}

fn restore(world: &mut World, number: &str) -> Output {
    world.run(&["restore", number, "--yes", "--conversation"])
}

/// The conversations beside the original.
fn forks(world: &World) -> Vec<PathBuf> {
    let entries = fs::read_dir(talks(world)).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| *path != transcript(world)).collect()
}

#[test]
fn the_conversation_alone_goes_back_and_the_files_stay() {
    let mut world = two_turns();
    let (files, original) = (on_disk(&world.root()), fs::read(transcript(&world)).unwrap());
    let plan = world.run(&["restore", "1", "--conversation-only", "--dry-run"]);
    assert!(plan.stdout.contains("would be forked before \"SECOND-PROMPT\""), "{}", plan.stdout);
    assert!(forks(&world).is_empty());
    let done = world.run(&["restore", "1", "--conversation-only"]);
    assert_eq!((done.exit.code(), &*done.stderr), (0, ""), "{}", done.stdout);
    assert!(done.stdout.contains("with: claude --resume "), "{}", done.stdout);
    assert_eq!(forks(&world).len(), 1);
    assert!(on_disk(&world.root()) == files && fs::read(transcript(&world)).unwrap() == original);
    let list = world.run(&["list", "--all"]).stdout;
    assert!(
        !list.contains("before a restore"),
        "nothing was overwritten, so nothing is held: {list}"
    );
    fs::remove_file(transcript(&world)).unwrap();
    let none = world.run(&["restore", "1", "--conversation-only"]);
    assert_eq!(none.exit.code(), 1, "{}{}", none.stdout, none.stderr);
}

#[test]
fn a_fork_of_the_project_goes_on_with_the_conversation_there() {
    let mut world = two_turns();
    let root = world.root().to_string_lossy().into_owned();
    let named = format!("\"cwd\":\"{root}\"");
    let text = fs::read_to_string(transcript(&world)).unwrap();
    let first = text.replacen('{', &format!("{{{named},"), 1);
    write(&transcript(&world), &first);
    assert!(world.run(&["fork", "1", "--dry-run"]).exit.code() == 0);
    let done = world.run(&["fork", "1"]);
    assert_eq!(done.exit.code(), 0, "{}{}", done.stdout, done.stderr);
    let fork = format!("{root}-fork-1");
    assert!(
        done.stdout.contains(&format!("with: cd {fork} && claude --resume ")),
        "{}",
        done.stdout
    );
    let listed = world.run(&["fork", "--list"]).stdout;
    assert!(listed.contains("claude --resume"), "{listed}");
    let [made] = &forks(&world)[..] else { panic!("{:?}", forks(&world)) };
    let made = fs::read_to_string(made).unwrap();
    assert!(made.contains(&format!("\"cwd\":\"{fork}\"")) && !made.contains(&named), "{made}");
    assert_eq!(fs::read_to_string(transcript(&world)).unwrap(), first);
}

#[test]
fn the_conversation_is_forked_before_the_turn_and_the_original_left_alone() {
    let mut world = two_turns();
    let before = fs::read(transcript(&world)).unwrap();
    let plan = world.run(&["restore", "1", "--dry-run", "--conversation"]);
    assert!(plan.stdout.contains("would be forked before \"SECOND-PROMPT\""), "{}", plan.stdout);
    assert!(forks(&world).is_empty());
    let done = restore(&mut world, "1");
    assert_eq!((done.exit.code(), &*done.stderr), (0, ""), "{}", done.stdout);
    assert_eq!(world.read("a"), FIRST, "the files are those before the turn");
    let [fork] = &forks(&world)[..] else { panic!("{:?}", forks(&world)) };
    let name = fork.file_stem().unwrap().to_str().unwrap();
    let said =
        format!("resume the conversation before \"SECOND-PROMPT\" with: claude --resume {name}\n");
    assert!(done.stdout.ends_with(&said), "{}", done.stdout);
    assert_eq!(fs::metadata(fork).unwrap().permissions().mode() & 0o7777, 0o600);
    let text = fs::read_to_string(fork).unwrap();
    assert!(text.contains("first done") && !text.contains("SECOND") && text.contains(name));
    assert_eq!(fs::read(transcript(&world)).unwrap(), before);
    assert_eq!(world.run(&["undo", "--yes"]).exit.code(), 0);
    assert_eq!(world.read("a"), SECOND, "undo is about the files");
}

#[test]
fn without_a_yes_nothing_is_forked() {
    let mut world = two_turns();
    let output = world.run(&["restore", "1", "--conversation"]);
    assert_eq!(output.exit.code(), 1);
    assert_eq!((forks(&world).len(), &*world.read("a")), (0, SECOND));
}

#[test]
fn files_that_are_as_they_were_do_not_keep_the_conversation() {
    let mut world = two_turns();
    world.run(&["restore", "1", "--yes"]);
    let done = restore(&mut world, "1");
    assert!(done.stdout.contains("claude --resume"), "{}{}", done.stdout, done.stderr);
    assert_eq!(forks(&world).len(), 1);
}

#[test]
fn what_is_no_conversation_keeps_no_file_from_coming_back() {
    type Break = fn(&Path);
    #[expect(clippy::disallowed_methods, reason = "a file of the test's own")]
    let broken: [(&str, Break); 7] = [
        ("Claude Code has deleted it", |path| fs::remove_file(path).unwrap()),
        ("symbolic link", |path| {
            fs::rename(path, path.with_extension("moved")).unwrap();
            symlink(path.with_extension("moved"), path).unwrap();
        }),
        ("not a regular file", |path| {
            fs::remove_file(path).unwrap();
            special(path, rustix::fs::FileType::Fifo, 0o600);
        }),
        ("not a regular file", |path| {
            fs::remove_file(path).unwrap();
            fs::create_dir(path).unwrap();
        }),
        ("larger than", |path| {
            let file = fs::OpenOptions::new().write(true).open(path).unwrap();
            file.set_len(600 << 20).unwrap();
        }),
        ("line 1 of it is not JSON", |path| {
            let text = fs::read(path).unwrap();
            fs::write(path, [b"\0\xff{\n", &text[..]].concat()).unwrap();
        }),
        ("that turn is not in it", |path| fs::write(path, "[]").unwrap()),
    ];
    for (why, break_it) in broken {
        let mut world = two_turns();
        break_it(&transcript(&world));
        let before = (on_disk(&world.root()), forks(&world));
        let unasked = world.run(&["restore", "1", "--conversation"]);
        assert_eq!(unasked.exit.code(), 1, "{why}: {}", unasked.stdout);
        let args = ["restore", "1", "--conversation"];
        let refused = world.run_asked(&args, &mut "n\n".as_bytes());
        assert_eq!(refused.exit.code(), 1, "{why}: {}", refused.stdout);
        assert_eq!((on_disk(&world.root()), forks(&world)), before, "{why}");
        let output = restore(&mut world, "1");
        assert_eq!(output.exit.code(), 3, "{why}: {}", output.stdout);
        assert!(output.stderr.contains(why), "{why}: {}", output.stderr);
        assert_eq!((&*world.read("a"), forks(&world)), (FIRST, before.1), "{why}");
        world.wait(1);
        assert_eq!(world.run(&["undo", "--yes"]).exit.code(), 0);
        let asked = world.run_asked(&args, &mut "y\ny\n".as_bytes());
        assert_eq!((asked.exit.code(), &*world.read("a")), (3, FIRST), "{why}: {}", asked.stderr);
    }
}

#[test]
fn a_fork_that_cannot_be_written_is_said_after_the_files() {
    let world = two_turns();
    let mut command = bound_by_permissions();
    command.arg(env!("CARGO_BIN_EXE_beforehand")).args(["restore", "1", "--yes", "--conversation"]);
    command.current_dir(world.root()).envs(&world.env);
    fs::set_permissions(talks(&world), fs::Permissions::from_mode(0o500)).unwrap();
    let output = command.output().unwrap();
    fs::set_permissions(talks(&world), fs::Permissions::from_mode(0o700)).unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*world.read("a")), (Some(1), FIRST), "{told}");
    assert!(told.contains("the files are restored"), "{told}");
}

#[test]
fn before_the_first_turn_is_a_new_conversation_and_by_hand_is_none() {
    let mut world = two_turns();
    let first = restore(&mut world, "2");
    let told =
        "nothing was said before \"SECOND-PROMPT\"; a new conversation begins with: claude\n";
    assert!(first.stdout.ends_with(told), "{}", first.stdout);
    assert_eq!((first.exit.code(), forks(&world).len(), &*world.read("a")), (0, 0, "at first"));
    world.run(&["create", "-m", "by hand"]);
    let by_hand = restore(&mut world, "1");
    assert!(by_hand.stderr.contains("belongs to no conversation"), "{}", by_hand.stderr);
    assert_eq!(by_hand.exit.code(), 3, "the files are restored");
}

#[test]
fn the_model_is_told_once_and_only_when_that_is_wanted() {
    let prompt = |world: &mut World| {
        let payload = serde_json::json!({
            "session_id": SESSION, "cwd": world.root(), "hook_event_name": "UserPromptSubmit",
            "prompt_id": "third", "prompt": "go on",
        });
        let args = ["hook", "--agent", "claude-code"];
        world.run_in(&world.root(), &args, &payload.to_string()).stdout
    };
    let mut world = two_turns();
    world.run(&["restore", "1", "--yes"]);
    assert_eq!(prompt(&mut world), "{}");
    let mut world = two_turns();
    world.set("BEFOREHAND_TELL_MODEL", "on");
    world.run(&["restore", "1", "--yes"]);
    insta::assert_snapshot!(prompt(&mut world), @r#"{"hookSpecificOutput":{"hookEventName":"UserPromptSubmit","additionalContext":"The user has restored files of this project to an earlier state. Put back as they were: a."}}"#);
    assert_eq!(prompt(&mut world), "{}");
}

#[test]
fn the_picker_takes_the_conversation_along_or_says_why_not() {
    let mut world = two_turns();
    world.set("TERM", "screen");
    world.set("LC_ALL", "C.UTF-8");
    let Some(tmux) = Tmux::with_sh(&world, (100, 30)) else { return };
    tmux.line("beforehand rewind");
    tmux.sees("since then:");
    let kept = fs::read(transcript(&world)).unwrap();
    write(&transcript(&world), "{}\n");
    tmux.press(&["End", "Enter"]);
    tmux.sees("path would change");
    tmux.press(&["2"]);
    tmux.sees("cannot fork the conversation");
    tmux.press(&["Enter"]);
    write(&transcript(&world), kept);
    tmux.press(&["End", "Enter", "Home", "Enter"]);
    tmux.until("the newest turn's plan", |screen| {
        screen.contains("Back to 1:") && screen.contains("path would change")
    });
    tmux.press(&["2"]);
    tmux.sees("would be forked before");
    tmux.press(&["Enter"]);
    let screen = tmux.sees("claude --resume");
    assert!(screen.contains("restored 1 path"), "{screen}");
    assert_eq!(forks(&world).len(), 1);
    assert_eq!(world.read("a"), FIRST);
}

#[test]
fn the_picker_takes_the_conversation_alone() {
    let mut world = two_turns();
    world.set("TERM", "screen");
    world.set("LC_ALL", "C.UTF-8");
    let files = on_disk(&world.root());
    world.terminal = Terminal { stdin: true, stdout: true, stderr: true, columns: Some(80) };
    world.set("TERM", "dumb");
    let root = world.root();
    let lines = world.run_in(&root, &["rewind"], "1\nt\n");
    assert_eq!(lines.exit.code(), 0, "{}", lines.stderr);
    assert!(lines.stdout.contains("claude --resume"), "{}", lines.stdout);
    world.set("TERM", "screen");
    if let Some(tmux) = Tmux::with_sh(&world, (80, 24)) {
        tmux.line("beforehand rewind");
        tmux.sees("since then:");
        tmux.press(&["Enter", "3"]);
        let screen = tmux.sees("would be forked before \"SECOND-PROMPT\"");
        assert!(screen.contains("the files stay as they are"), "{screen}");
        tmux.press(&["Enter"]);
        tmux.sees("claude --resume");
        assert_eq!(forks(&world).len(), 2);
    }
    assert!(on_disk(&root) == files);
}

/// The conversations that are kept.
fn kept(world: &World) -> Vec<PathBuf> {
    let entries = fs::read_dir(world.state().join("conversations")).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// The turn ends, and what that starts in the background runs.
fn ends(world: &mut World) {
    drop(world.started());
    event(world, SECOND, "Stop");
    world.run_started();
}

#[test]
fn a_conversation_that_its_agent_deletes_can_still_be_forked() {
    for world in [Some(World::new()), World::without_links()].into_iter().flatten() {
        let mut world = two_turns_in(world);
        let text = fs::read(transcript(&world)).unwrap();
        let (turn, rest) = text.split_at(text.len() / 3);
        write(&transcript(&world), turn);
        ends(&mut world);
        let [copy] = &kept(&world)[..] else { panic!("{:?}", kept(&world)) };
        let is_link = fs::metadata(copy).unwrap().nlink() == 2;
        assert_eq!(is_link, world.state().starts_with(world.home()), "no space is taken");
        let above = fs::metadata(copy.parent().unwrap()).unwrap();
        assert_eq!(above.permissions().mode() & 0o7777, 0o700);
        // The agent adds the rest, and then removes the file with its directory.
        let mut file = fs::OpenOptions::new().append(true).open(transcript(&world)).unwrap();
        file.write_all(rest).unwrap();
        event(&mut world, SECOND, "PreToolUse");
        ends(&mut world);
        assert_eq!(kept(&world).len(), 1);
        fs::remove_file(transcript(&world)).unwrap();
        fs::remove_dir(talks(&world)).unwrap();
        let done = restore(&mut world, "1");
        assert_eq!((done.exit.code(), &*done.stderr), (0, ""), "{}", done.stdout);
        assert_eq!(world.read("a"), FIRST);
        let [fork] = &forks(&world)[..] else { panic!("{:?}", forks(&world)) };
        let fork = fs::read_to_string(fork).unwrap();
        assert!(fork.contains("first done") && !fork.contains("SECOND"), "{fork}");
        let state = on_disk(&world.state().join("conversations"));
        assert!(state.into_values().next().unwrap().bytes == text, "it is only read");
    }
}

#[test]
fn a_file_that_an_agent_replaced_is_kept_anew_and_another_kind_of_file_never() {
    let mut world = two_turns();
    ends(&mut world);
    assert!(world.started().is_empty());
    let fresh = transcript(&world).with_extension("new");
    write(&fresh, "{}\n");
    fs::rename(&fresh, transcript(&world)).unwrap();
    ends(&mut world);
    let [copy] = &kept(&world)[..] else { panic!("{:?}", kept(&world)) };
    assert_eq!(fs::read_to_string(copy).unwrap(), "{}\n");
    // It could be any file: a payload says where it is.
    let others: [fn(&Path); 3] = [
        |path| symlink("/etc/hostname", path).unwrap(),
        |path| special(path, rustix::fs::FileType::Fifo, 0o600),
        |path| {
            let file = fs::File::create(path).unwrap();
            file.set_len(65 << 20).unwrap();
        },
    ];
    for replace in others {
        let mut world = two_turns();
        fs::remove_file(transcript(&world)).unwrap();
        replace(&transcript(&world));
        ends(&mut world);
        assert_eq!(kept(&world).len(), 0);
    }
    let mut world = two_turns();
    let elsewhere = talks(&world).join("id_rsa");
    fs::rename(transcript(&world), &elsewhere).unwrap();
    let payload = serde_json::json!({
        "session_id": SESSION, "cwd": world.root(), "hook_event_name": "UserPromptSubmit",
        "prompt_id": "third", "prompt": "go on", "transcript_path": elsewhere,
    });
    let args = ["hook", "--agent", "claude-code"];
    world.run_in(&world.root(), &args, &payload.to_string());
    ends(&mut world);
    assert_eq!(kept(&world).len(), 0, "no conversation has this name");
}

#[test]
fn a_kept_conversation_goes_with_the_last_checkpoint_of_its_session_or_for_want_of_space() {
    let maintain = |world: &mut World| {
        world.wait(86_400);
        assert_eq!(world.run(&["maintain"]).exit.code(), 0);
    };
    let mut world = two_turns();
    let text = fs::read_to_string(transcript(&world)).unwrap();
    write(&transcript(&world), text + &"{}\n".repeat(1 << 20));
    ends(&mut world);
    maintain(&mut world);
    assert_eq!(kept(&world).len(), 1, "its session has checkpoints");
    world.set("BEFOREHAND_MAX_TOTAL_SIZE", "2 MB");
    maintain(&mut world);
    assert_eq!(kept(&world).len(), 1, "it takes no space");
    fs::remove_file(transcript(&world)).unwrap();
    maintain(&mut world);
    assert_eq!(kept(&world).len(), 0, "now it does, and files come first");
    assert!(world.run(&["list"]).stdout.contains("SECOND-PROMPT"));

    let mut world = two_turns();
    ends(&mut world);
    world.run(&["clear", "--yes"]);
    assert_eq!(kept(&world).len(), 0, "at once, for the user wants it gone");

    let mut world = two_turns();
    ends(&mut world);
    for tier in ["TURNS", "SESSIONS"] {
        world.set(&format!("BEFOREHAND_KEEP_{tier}"), "14d");
    }
    world.wait(30 * 86_400);
    for _ in 0..40 {
        maintain(&mut world);
    }
    assert_eq!(kept(&world).len(), 0, "after the retention time");
    assert!(transcript(&world).exists());
}

/// As Gemini CLI does at its next start, whose turns have no names.
#[test]
fn a_conversation_of_gemini_is_forked_after_it_has_deleted_it() {
    const NAME: &str = "session-2026-11-21T19-55-38cca8e9.jsonl";
    let text = fs::read_to_string(format!("fixtures/transcripts/gemini-cli/{NAME}")).unwrap();
    let first: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let session = first["sessionId"].as_str().unwrap().to_owned();
    let mut world = World::new();
    let path = world.home().join(".gemini/tmp/shop/chats").join(NAME);
    let prompts = text.lines().filter_map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).ok()?;
        let at = line["timestamp"].as_str()?.parse().ok()?;
        let prompt = line["content"][0]["text"].as_str().filter(|_| line["type"] == "user")?;
        (!prompt.starts_with("<session_context>")).then(|| (at, prompt.to_owned()))
    });
    let prompts: Vec<(chrono::DateTime<chrono::Utc>, String)> = prompts.collect();
    assert_eq!(prompts.len(), 2, "{prompts:?}");
    for (at, prompt) in &prompts {
        world.now = *at;
        for name in ["BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent"] {
            world.wait(1);
            let payload = serde_json::json!({
                "session_id": session, "transcript_path": path, "cwd": world.root(),
                "hook_event_name": name, "timestamp": at, "prompt": prompt, "prompt_response": "",
                "tool_name": "write_file", "tool_response": {},
                "tool_input": { "file_path": "a", "content": prompt },
            });
            let args = ["hook", "--agent", "gemini-cli"];
            world.run_in(&world.root(), &args, &payload.to_string());
            if name == "BeforeTool" {
                world.write("a", prompt);
                write(&path, &text);
            }
        }
        world.run_started();
    }
    fs::remove_file(&path).unwrap();
    let done = restore(&mut world, "1");
    assert_eq!((done.exit.code(), &*done.stderr), (0, ""), "{}", done.stdout);
    assert!(done.stdout.contains("with: gemini --resume "), "{}", done.stdout);
    assert_eq!(world.read("a"), prompts[0].1);
    let mut made = fs::read_dir(path.parent().unwrap()).unwrap();
    let made = fs::read_to_string(made.next().unwrap().unwrap().path()).unwrap();
    assert!(made.contains(&prompts[0].1) && !made.contains(&prompts[1].1), "{made}");
}
