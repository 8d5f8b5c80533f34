//! What names a checkpoint: numbers, ids, messages and times, for every command alike; and the line that
//! does what was meant where a path was given.

use beforehand::process::Exit;
use chrono::Local;

use crate::support::world::{Output, World};

/// Takes a checkpoint of a file with this text, and returns its id.
fn save(world: &mut World, text: &str, more: &[&str]) -> String {
    world.write("src/a", text);
    let output = world.run(&[&["create"], more].concat());
    assert_eq!(output.exit, Exit::Ok, "{}", output.stderr);
    output.stdout.trim().to_owned()
}

/// The checkpoint that a name stands for.
fn found(world: &mut World, name: &str) -> String {
    let output = world.run(&["show", name, "--json"]);
    assert_eq!(output.exit, Exit::Ok, "{name}: {}", output.stderr);
    let shown: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    shown["id"].as_str().unwrap().to_owned()
}

fn refused(world: &mut World, args: &[&str]) -> String {
    let Output { exit, stderr, .. } = world.run(args);
    assert_ne!(exit, Exit::Ok, "{args:?}");
    stderr
}

#[test]
fn a_message_names_its_checkpoint() {
    let mut world = World::new();
    let lunch = save(&mut world, "one", &["-m", "before lunch"]);
    world.wait(60);
    let tea = save(&mut world, "two", &["tea"]);
    world.wait(60);
    save(&mut world, "three", &[]);
    assert_eq!(found(&mut world, "before lunch"), lunch);
    assert_eq!(found(&mut world, "tea"), tea);
    let restored = world.run(&["restore", "before lunch", "--yes", "--force"]);
    assert_eq!((restored.exit, &*world.read("src/a")), (Exit::Ok, "one"), "{}", restored.stderr);
    // One that is named like a time, or like an id.
    for name in ["12:00", "cafe"] {
        world.wait(60);
        let id = save(&mut world, name, &["-m", name]);
        assert_eq!(found(&mut world, name), id);
    }
    world.wait(60);
    let other = save(&mut world, "four", &["-m", "tea"]);
    let said = refused(&mut world, &["show", "tea"]);
    assert!(said.contains("`tea` matches 2 checkpoints"), "{said}");
    assert!(said.contains(&format!("{other}, {tea}")), "{said}");
}

#[test]
fn a_time_names_the_last_state_at_or_before_it() {
    let mut world = World::new();
    let mut taken = Vec::new();
    for text in ["one", "two", "three"] {
        let id = save(&mut world, text, &[]);
        taken.push((world.now().with_timezone(&Local).format("%H:%M").to_string(), id));
        world.wait(60 * 60);
    }
    let listed = world.run(&["list"]).stdout;
    for (time, id) in &taken {
        let row = listed.lines().find(|line| line.contains(&id[..4])).unwrap();
        assert!(row.contains(time), "{row}");
        assert_eq!(found(&mut world, time), *id, "as it is listed");
    }
    let ids: Vec<&str> = taken.iter().map(|(_, id)| id.as_str()).collect();
    for (name, id) in
        [("1h", ids[2]), ("90m", ids[1]), ("2 hours ago", ids[1]), ("179 min", ids[0])]
    {
        assert_eq!(found(&mut world, name), id, "{name}");
    }
    let day = world.now().with_timezone(&Local).format("%Y-%m-%d").to_string();
    world.wait(24 * 60 * 60);
    assert_eq!(found(&mut world, "yesterday"), found(&mut world, &day));
    let said = refused(&mut world, &["restore", "3d", "--yes"]);
    assert!(said.contains("no checkpoint from 3d or before"), "{said}");
    assert!(said.contains("the oldest is from"), "{said}");
    let restored = world.run(&["restore", "1d", "--yes", "--force"]);
    assert_eq!((restored.exit, &*world.read("src/a")), (Exit::Ok, "three"));
}

#[test]
fn a_path_is_answered_with_the_line_that_was_meant() {
    let mut world = World::new();
    world.agent_writes("1", "src/a", "mine");
    world.agent_writes("2", "src/a", "theirs");
    for is_there in [true, false] {
        for (args, line) in [
            (&["restore", "src/a"][..], "`beforehand restore 1 -- src/a`"),
            (&["diff", "src/a"], "`beforehand diff 1 -- src/a`"),
            (&["show", "src/a"], "`beforehand diff 1 -- src/a`"),
            (&["revert", "src/a"], "`beforehand revert 1 -- src/a`"),
            (&["undo", "src/a"], "`beforehand undo -- src/a`"),
        ] {
            let said = refused(&mut world, args);
            assert!(said.contains(line), "{is_there} {args:?}: {said}");
        }
        if is_there {
            world.before_bash("3", "rm src/a");
            std::fs::remove_file(world.root().join("src/a")).unwrap();
        }
    }
    let said = refused(&mut world, &["restore", "src/other"]);
    assert!(said.contains("no checkpoint `src/other`"), "{said}");
    assert_eq!(world.run(&["restore", "1", "--yes", "--", "src/a"]).exit, Exit::Ok);
    assert_eq!(world.read("src/a"), "theirs");
}

#[test]
fn a_difference_without_a_name_is_the_one_since_the_last_turn() {
    let mut world = World::new();
    world.agent_writes("1", "src/a", "mine");
    world.wait(60);
    world.agent_writes("2", "src/a", "theirs");
    let named = world.run(&["diff", "1"]).stdout;
    assert!(named.contains("+theirs"), "{named}");
    assert_eq!(world.run(&["diff"]).stdout, named);
    assert_eq!(world.run(&["diff", "--", "src"]).stdout, named);
}
