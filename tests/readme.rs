//! Checks the README against the program.

use std::fs;

use turnback::{
    cli,
    config::KEYS,
    process::{Exit, Terminal},
};

use crate::support::world::World;

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
    for name in cli::subcommands() {
        assert!(text.contains(&format!("turnback {name}")), "`turnback {name}` is missing");
    }
    for key in KEYS {
        assert!(text.contains(&format!("`{}`", key.name)), "the setting `{}` is missing", key.name);
    }
    let exits = [Exit::Ok, Exit::Failed, Exit::Denied, Exit::Conflicts, Exit::Usage, Exit::Bug];
    for exit in exits {
        let row = format!("| {} |", exit as u8);
        assert!(text.contains(&row), "the exit code {} is missing", exit as u8);
    }
}

#[test]
fn every_command_in_it_exists() {
    let commands = commands();
    assert!(commands.iter().any(|line| line == "cargo run --release -- demo"));
    assert!(commands.iter().any(|line| line == "cargo test"));
    let mut world = World::new();
    let temp = world.root();
    world.set("TMPDIR", &temp.to_string_lossy());
    for line in commands.iter().filter_map(|line| line.strip_prefix("turnback ")) {
        let words = shell_words::split(line).unwrap();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        // One of them is for a terminal only, and this one can do no more than lines.
        let is_terminal = words[0] == "rewind";
        world.terminal = Terminal { stdin: is_terminal, stdout: is_terminal, ..world.terminal };
        let output = world.run(&words);
        assert_ne!(output.exit, Exit::Usage, "turnback {line}: {}", output.stderr);
        assert_ne!(output.exit, Exit::Bug, "turnback {line}: {}", output.stderr);
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
