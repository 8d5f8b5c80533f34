//! Checks the README against the program.

use std::fs;

use beforehand::{
    config::KEYS,
    process::{Exit, Terminal},
};

use crate::support::{real::git, subcommands, temp::write, world::World};

fn readme() -> String {
    fs::read_to_string("README.md").unwrap()
}

/// What is typed in the README, without what it prints.
fn commands() -> Vec<String> {
    let text = readme();
    let fenced = text.split("```").skip(1).step_by(2);
    let lines = fenced.flat_map(str::lines).filter_map(|line| line.strip_prefix("$ "));
    lines.map(|line| line.split("  #").next().unwrap().trim().to_owned()).collect()
}

#[test]
fn every_subcommand_setting_and_exit_code_is_there() {
    let text = readme();
    for name in subcommands() {
        assert!(text.contains(&format!("beforehand {name}")), "`beforehand {name}` is missing");
    }
    for key in KEYS {
        assert!(text.contains(&format!("`{}`", key.name)), "the setting `{}` is missing", key.name);
    }
    let exits = [Exit::Ok, Exit::Failed, Exit::Denied, Exit::Conflicts, Exit::Usage, Exit::Bug];
    for exit in exits {
        let row = format!("| {} |", exit.code());
        assert!(text.contains(&row), "the exit code {} is missing", exit.code());
    }
}

/// A project as the README tells of it, with two turns of an agent in it.
fn project() -> World {
    let mut world = World::new();
    let temp = world.root();
    world.set("TMPDIR", &temp.to_string_lossy());
    world.set("CLAUDE_CONFIG_DIR", &world.home().join(".claude").to_string_lossy());
    fs::create_dir(world.home().join(".claude")).unwrap();
    git(&world, &temp, "git init -q");
    let user = "[user]\n\tname = Ada\n\temail = ada@example.com\n";
    write(&world.home().join(".gitconfig"), user);
    world.write("src/cart.ts", "// TODO\n");
    world.write("notes.md", "mine\n");
    world.write("check.sh", "! grep -q two src/list.ts\n");
    git(&world, &temp, "git add -A && git commit -qm one");
    for (turn, path) in [("one", "src/cart.ts"), ("two", "src/list.ts")] {
        world.agent_writes(turn, path, &format!("// TODO {turn}\n"));
        world.wait(1);
    }
    world
}

/// An agent that asks its user nothing wants to delete what is too large to be held.
fn refuse(world: &World, line: &str) {
    world.write("big.db", vec![1; 80 << 20]);
    let payload = serde_json::json!({
        "session_id": "s1", "cwd": world.root(), "prompt_id": "three", "tool_name": "Bash",
        "hook_event_name": "PreToolUse", "permission_mode": "bypassPermissions",
        "tool_input": { "command": line }, "tool_use_id": "x",
    });
    let args = ["hook", "--agent", "claude-code"];
    let answer = world.run_in(&world.root(), &args, &payload.to_string()).stdout;
    assert!(answer.contains("deny"), "{answer}");
}

#[test]
fn every_command_in_it_does_what_it_says() {
    let commands = commands();
    assert!(commands.iter().any(|line| line == "cargo run --release -- demo"));
    assert!(commands.iter().any(|line| line == "cargo test"));
    for line in commands.iter().filter_map(|line| line.strip_prefix("beforehand ")) {
        let words = shell_words::split(line).unwrap();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut world = project();
        world.terminal = Terminal { stdout: words[0] == "rewind", ..world.terminal };
        let first: &[&str] = match words[0] {
            "redo" => &["undo", "--yes"],
            "doctor" => &["install", "--yes"],
            "allow" => {
                refuse(&world, "rm big.db");
                &["allow"]
            }
            _ => &["list"],
        };
        assert_eq!(world.run(first).exit, Exit::Ok, "{first:?}");
        let output = world.run_asked(&words, &mut "y\ny\ny\n".as_bytes());
        // The files come back; this agent's conversation is not there.
        let talks = words.contains(&"--conversation") || words[0] == "fork";
        let expected = if talks { Exit::Conflicts } else { Exit::Ok };
        let (code, expected) = (output.exit.code(), expected.code());
        assert_eq!(code, expected, "beforehand {line}: {}{}", output.stdout, output.stderr);
    }
}

#[test]
fn the_main_command_does_its_job() {
    let mut world = World::new();
    let temp = world.root();
    world.set("TMPDIR", &temp.to_string_lossy());
    let output = world.run(&["demo"]);
    assert_eq!(output.exit, Exit::Ok, "{}{}", output.stdout, output.stderr);
    assert!(output.stdout.contains("Every byte is back"), "{}", output.stdout);
    assert!(output.stdout.lines().count() < 60, "{}", output.stdout);
    assert_eq!(fs::read_dir(temp).unwrap().count(), 0, "it clears up after itself");
}
