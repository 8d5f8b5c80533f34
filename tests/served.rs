//! A restore that has the agent's own server fork the conversation.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    thread::{self, JoinHandle},
};

use crate::support::{
    real,
    temp::{chmod, write},
    world::{Output, World},
};

/// A server that gives these answers, one a connection, and returns what it was asked.
fn server(answers: &'static [(u16, &str)]) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    let serve = move || {
        let answer = |(status, body): &(u16, &str)| {
            let (stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(&stream);
            let (mut head, mut length) = (Vec::new(), 0);
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                let line = line.trim_end().to_owned();
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
                    length = value.parse().unwrap();
                }
                if line.is_empty() {
                    break;
                }
                head.push(line);
            }
            let mut sent = vec![0; length];
            reader.read_exact(&mut sent).unwrap();
            let size = body.len();
            write!(&stream, "HTTP/1.1 {status} X\r\nContent-Length: {size}\r\n\r\n{body}").unwrap();
            format!("{} {}", head[0], String::from_utf8(sent).unwrap())
        };
        answers.iter().map(answer).collect()
    };
    (address, thread::spawn(serve))
}

fn event(world: &mut World, turn: &str, name: &str, server: &str) {
    let payload = serde_json::json!({
        "agent": "opencode", "hook_event_name": name, "session_id": "ses_old", "message_id": turn,
        "cwd": world.root(), "server": server, "prompt": format!("words of {turn}"),
        "call_id": turn, "tool_name": "write", "tool_input": { "filePath": "a", "content": "" },
    });
    world.wait(1);
    let output =
        world.run_in(&world.root(), &["hook", "--agent", "opencode"], &payload.to_string());
    assert_eq!(output.stdout, "{}", "{}", output.stderr);
}

/// Two turns, in each of which the agent wrote `a`.
fn two_turns(server: &str) -> World {
    let mut world = World::new();
    world.write("a", "at first");
    for turn in ["msg_1", "msg_2"] {
        event(&mut world, turn, "chat.message", server);
        event(&mut world, turn, "tool.execute.before", server);
        world.write("a", turn);
        event(&mut world, turn, "tool.execute.after", server);
    }
    world
}

fn restore(world: &mut World) -> Output {
    world.run(&["restore", "1", "--yes", "--conversation"])
}

#[test]
fn the_agents_server_forks_what_it_keeps() {
    let (address, asked) = server(&[(200, "{}"), (200, r#"{"id":"ses_new"}"#)]);
    let mut world = two_turns(&address);
    let output = restore(&mut world);
    assert_eq!(output.exit.code(), 0, "{}", output.stderr);
    assert_eq!(world.read("a"), "msg_1");
    let told = "resume the conversation before \"words of msg_2\" with: opencode -s ses_new";
    assert!(output.stdout.contains(told), "{}", output.stdout);
    let asked = asked.join().unwrap();
    assert!(asked[0].starts_with("GET /session/ses_old/message/msg_2?directory=%2F"), "{asked:?}");
    assert!(asked[1].starts_with("POST /session/ses_old/fork?directory=%2F"), "{asked:?}");
    assert!(asked[1].ends_with(r#" {"messageID":"msg_2"}"#), "{asked:?}");
}

#[test]
fn a_server_that_cannot_do_it_keeps_no_file_from_coming_back() {
    let unknown = server(&[(404, "no such message")]).0;
    let gone = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    for (address, why) in [
        (unknown.as_str(), "it answered 404"),
        (gone.as_str(), "onnection refused"),
        ("http://example.org:4096", "it is not on this machine"),
    ] {
        let mut world = two_turns(address);
        let output = restore(&mut world);
        assert_eq!(output.exit.code(), 3, "{address}: {}", output.stdout);
        assert!(output.stderr.contains(why), "{address}: {}", output.stderr);
        assert!(output.stderr.contains("makes the fork"), "its own way: {}", output.stderr);
        assert_eq!(world.read("a"), "msg_1", "{address}");
    }
}

#[test]
fn where_no_server_listens_any_more_the_agents_own_is_started_for_it() {
    let gone = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let mut world = two_turns(&gone);
    let bin = world.root().parent().unwrap().join("bin");
    write(&bin.join("opencode"), "#!/bin/sh\n");
    chmod(&bin.join("opencode"), 0o755);
    let (address, asked) = server(&[(200, "{}"), (200, r#"{"id":"ses_new"}"#)]);
    world.listens_at(&address);
    let output = restore(&mut world);
    assert_eq!(output.exit.code(), 3, "it is not on the PATH");
    assert!(output.stderr.contains("it is not running, and not on"), "{}", output.stderr);
    world.run(&["undo", "--yes"]);
    world.set("PATH", bin.to_str().unwrap());
    let output = restore(&mut world);
    assert_eq!(output.exit.code(), 0, "{}", output.stderr);
    assert!(output.stdout.contains("with: opencode -s ses_new"), "{}", output.stdout);
    assert_eq!(asked.join().unwrap().len(), 2);
    let started = world.started();
    let serves = started.iter().find(|words| words.contains(&"serve".to_owned())).unwrap();
    assert!(serves[0].ends_with("bin/opencode") && serves[1] == "serve", "{serves:?}");
}

/// The real system: what is started is what answers, and it and all it started are gone after.
#[test]
fn a_server_that_was_started_is_gone_afterwards() {
    let mut world = World::new();
    let bin = world.root().parent().unwrap().join("bin");
    let pids = bin.join("pids");
    let script = format!(
        "#!/bin/sh\nsleep 600 &\necho $! $$ > {}\necho listening on http://127.0.0.1:1\nwait\n",
        pids.display()
    );
    write(&bin.join("opencode"), script);
    chmod(&bin.join("opencode"), 0o755);
    world.write("a", "at first");
    for (turn, name) in [("msg_1", "chat.message"), ("msg_1", "tool.execute.before")] {
        event(&mut world, turn, name, "http://127.0.0.1:1");
    }
    world.write("a", "now");
    event(&mut world, "msg_1", "tool.execute.after", "http://127.0.0.1:1");
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let args = ["restore", "1", "--yes", "--conversation"];
    let output = real::beforehand(&world, &world.root(), &args).env("PATH", path).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert_eq!(world.read("a"), "at first");
    let started = std::fs::read_to_string(&pids).unwrap();
    for pid in started.split_whitespace() {
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let is_gone = state.is_empty() || state.contains(") Z ");
        assert!(is_gone, "{pid} goes on: {state}");
    }
}

#[test]
fn a_fork_that_fails_is_said_after_the_files() {
    let (address, _) = server(&[(200, "{}"), (500, "")]);
    let mut world = two_turns(&address);
    let output = restore(&mut world);
    assert_eq!((output.exit.code(), &*world.read("a")), (1, "msg_1"));
    assert!(output.stderr.contains("the files are restored"), "{}", output.stderr);
    assert!(output.stderr.contains("did not fork the conversation"), "{}", output.stderr);
}

#[test]
fn a_place_that_could_never_be_found_again_spoils_no_checkpoint() {
    let mut world = World::new();
    world.write("a", "x");
    let payload = serde_json::json!({
        "session_id": "s", "cwd": world.root(), "hook_event_name": "PreToolUse",
        "transcript_path": "not/absolute.jsonl", "prompt_id": "p", "tool_name": "Write",
        "tool_input": { "file_path": world.root().join("a"), "content": "" }, "tool_use_id": "c",
    });
    world.run_in(&world.root(), &["hook", "--agent", "claude-code"], &payload.to_string());
    let checked = world.run(&["check"]);
    assert_eq!(checked.exit.code(), 0, "{}{}", checked.stdout, checked.stderr);
    assert_eq!(world.run(&["list"]).stdout.lines().count(), 1);
}
