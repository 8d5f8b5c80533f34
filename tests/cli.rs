//! The output of the commands: help, lists, plans, errors, exit codes.

use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt as _};

use beforehand::process::{Exit, Terminal};

use crate::support::{
    subcommands,
    temp::{chmod, write},
    world::World,
};

/// Two turns: one edits a file, the other deletes a directory and adds a file.
fn two_turns(mut world: World) -> World {
    world.write("src/cart.ts", "one\ntwo\nthree\n");
    world.write("assets/logo.svg", "<svg/>\n");
    assert_eq!(world.agent_writes("t1", "src/cart.ts", "one\n2\nthree\nfour\n").trim(), "{}");
    world.wait(60);
    assert_eq!(world.before_bash("t2", "rm -rf assets").trim(), "{}");
    remove(&world, "assets");
    world.write("new.txt", "new\n");
    world.wait(120);
    world
}

#[expect(clippy::disallowed_methods, reason = "what an agent does, in the test's own directory")]
fn remove(world: &World, path: &str) {
    fs::remove_dir_all(world.root().join(path)).unwrap();
}

#[test]
fn help_is_short() {
    let mut world = World::new();
    insta::assert_snapshot!(world.see(&["--help"]));
    insta::assert_snapshot!(world.see(&["list", "--help"]));
    for name in subcommands() {
        let output = world.run(&[&name, "--help"]);
        assert_eq!((output.exit, &*output.stderr), (Exit::Ok, ""), "{name}");
        assert!(output.stdout.lines().count() <= 60, "{}", output.stdout);
    }
}

#[test]
fn a_list_has_a_row_for_each_turn() {
    let mut world = two_turns(World::with_git());
    insta::assert_snapshot!(world.see(&["list"]));
    insta::assert_snapshot!(world.see(&["list", "--json"]));
    insta::assert_snapshot!(world.see(&["list", "--limit", "1", "--session", "s2"]));
}

#[test]
fn a_list_says_what_was_asked_for() {
    let mut world = World::new();
    let event = |world: &mut World, name: &str, turn: &str, prompt: &str| {
        let payload = serde_json::json!({
            "session_id": "s1", "cwd": world.root(), "hook_event_name": name, "prompt_id": turn,
            "prompt": prompt, "tool_name": "Bash", "tool_use_id": turn,
            "tool_input": { "command": format!("make {}", "very ".repeat(40)) },
        });
        world.wait(60);
        let args = ["hook", "--agent", "claude-code"];
        assert_eq!(world.run_in(&world.root(), &args, &payload.to_string()).exit, Exit::Ok);
    };
    let prompts = ["clean up\n\n  the build\u{1b}[2J", &"on ".repeat(60)];
    for (n, prompt) in prompts.into_iter().enumerate() {
        let turn = format!("t{n}");
        event(&mut world, "UserPromptSubmit", &turn, prompt);
        event(&mut world, "PreToolUse", &turn, prompt);
        world.write("a", &turn);
    }
    let long = format!("{}…", "on ".repeat(24).trim_end());
    let listed = world.run(&["list"]).stdout;
    let rows: Vec<Vec<&str>> = listed.lines().map(|row| row.split("  ").collect()).collect();
    assert_eq!(rows[0][3], long, "{listed}");
    assert_eq!(rows[1][3], "clean up the build\\u{1b}[2J", "{listed}");
    // Nobody pads what no table is drawn of.
    assert!(!listed.contains("   ") && listed.starts_with("1  "), "{listed}");
    let calls = world.run(&["list", "--calls"]).stdout;
    assert_eq!(calls.matches("before Bash make very").count(), 2, "{calls}");
    let json: serde_json::Value =
        serde_json::from_str(&world.run(&["list", "--json"]).stdout).unwrap();
    assert_eq!(json[1]["prompt"], prompts[0]);
    let typed = "list\nBEFOREHAND_END\n";
    let slash = world.run_in(&world.root(), &["slash", "checkpoint", "--stdin"], typed).stdout;
    assert!(slash.contains("  clean up the build\\u{1b}[2J") && !slash.contains("   "), "{slash}");
    world.terminal = Terminal { stdout: true, columns: Some(60), ..Terminal::default() };
    let drawn = world.run(&["list"]).stdout;
    // The line with the project's path is as long as that of the temporary directory makes it.
    let mut others = drawn.lines().filter(|line| !line.ends_with("code/shop"));
    assert!(others.all(|line| line.chars().count() <= 60), "{drawn}");
    let table = drawn.lines().skip_while(|row| !row.starts_with("  #  id"));
    assert_eq!(table.filter(|row| row.starts_with("  ")).count(), 3, "{drawn}");
}

#[test]
fn a_list_says_the_same_of_a_plain_directory() {
    let [mut git, mut plain] = [World::with_git(), World::new()].map(two_turns);
    let shown = |world: &mut World| world.see(&["list"]).replace("(git)", "(files)");
    assert_eq!(shown(&mut git), shown(&mut plain));
    assert_eq!(git.see(&["diff", "2"]), plain.see(&["diff", "2"]));
    let restore = ["restore", "2", "--dry-run"];
    assert_eq!(git.see(&restore), plain.see(&restore));
}

#[test]
fn all_shows_what_was_held_before_a_restore() {
    let mut world = two_turns(World::new());
    assert_eq!(world.run(&["restore", "1", "--yes"]).exit, Exit::Ok);
    insta::assert_snapshot!(world.see(&["list", "--all"]));
    let json: serde_json::Value =
        serde_json::from_str(&world.run(&["list", "--all", "--json"]).stdout).unwrap();
    assert_eq!(json[0]["cause"], "before-restore");
    assert!(json[0]["number"].is_null());
    let json: serde_json::Value =
        serde_json::from_str(&world.run(&["list", "--json"]).stdout).unwrap();
    assert_eq!((&json[0]["number"], &json[0]["turn"]), (&1.into(), &"t2".into()));
}

#[test]
fn everywhere_finds_what_is_gone() {
    let mut world = two_turns(World::new());
    let elsewhere = world.root().parent().unwrap().join("other");
    fs::rename(world.root(), &elsewhere).unwrap();
    fs::create_dir(world.root().parent().unwrap().join("third")).unwrap();
    let third = world.root().parent().unwrap().join("third");
    let output = world.run_in(&third, &["list", "--everywhere"], "");
    assert_eq!(output.exit, Exit::Ok, "{}", output.stderr);
    assert!(output.stdout.contains("code/shop — gone\n"), "{}", output.stdout);
    assert!(output.stdout.contains("before Bash rm -rf assets"), "{}", output.stdout);
    fs::rename(&elsewhere, world.root()).unwrap();
    assert_eq!(world.run(&["list"]).exit, Exit::Ok);
}

#[test]
fn show_says_what_a_checkpoint_holds() {
    let mut world = two_turns(World::with_git());
    insta::assert_snapshot!(world.see(&["show", "1"]));
    let json: serde_json::Value =
        serde_json::from_str(&world.run(&["show", "2", "--json"]).stdout).unwrap();
    assert_eq!((&json["files"], &json["store"]), (&2.into(), &"git".into()));
}

#[test]
fn a_diff_shows_files_lines_and_names() {
    let mut world = two_turns(World::new());
    insta::assert_snapshot!(world.see(&["diff", "2"]));
    insta::assert_snapshot!(world.see(&["diff", "2", "--stat"]));
    insta::assert_snapshot!(world.see(&["diff", "2", "1", "--name-only"]));
    insta::assert_snapshot!(world.see(&["diff", "2", "--json", "--", "src"]));
    insta::assert_snapshot!(world.see(&["diff", "1", "1"]));
}

#[test]
fn a_diff_shows_what_is_not_text() {
    let mut world = World::new();
    world.write("bin", b"\0\x01");
    world.write("run.sh", "#!/bin/sh\n");
    std::os::unix::fs::symlink("run.sh", world.root().join("link")).unwrap();
    world.run(&["create"]);
    world.write("bin", b"\0\x01\x02");
    chmod(&world.root().join("run.sh"), 0o755);
    fs::remove_file(world.root().join("link")).unwrap();
    std::os::unix::fs::symlink("bin", world.root().join("link")).unwrap();
    fs::create_dir(world.root().join("empty")).unwrap();
    insta::assert_snapshot!(world.see(&["diff", "latest"]));
}

#[test]
fn every_diff_escapes_a_name_that_is_not_text() {
    let mut world = World::new();
    world.run(&["create"]);
    write(&world.root().join(OsStr::from_bytes(b"caf\xe9")), "x\n");
    for options in [&["--stat"][..], &["--name-only"], &[]] {
        let shown = world.run(&[&["diff", "latest"], options].concat()).stdout;
        assert!(shown.contains(r"caf\xe9"), "{options:?}: {shown}");
    }
}

#[test]
fn what_became_ignored_is_not_gone() {
    let mut world = World::with_git();
    world.write("log.txt", "one\n");
    world.write("kept.txt", "same\n");
    world.run(&["create"]);
    world.write(".gitignore", "*.txt\n");
    world.write("log.txt", "two\n");
    let output = world.run(&["diff", "1", "--json"]);
    let changes: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    let changes: Vec<_> =
        changes.as_array().unwrap().iter().map(|one| (&one["path"], &one["change"])).collect();
    let text = |text: &str| serde_json::Value::from(text);
    assert_eq!(
        changes,
        [(&text(".gitignore"), &text("added")), (&text("log.txt"), &text("changed"))]
    );
}

#[test]
fn what_was_counted_once_is_counted_again_when_it_is_lost() {
    let mut world = two_turns(World::new());
    let first = world.see(&["list", "--json"]);
    let files = crate::support::temp::on_disk(&world.state()).into_keys();
    let stats = files.map(|path| String::from_utf8(path).unwrap());
    let stats = stats.into_iter().find(|path| path.ends_with("stats.json")).unwrap();
    let path = world.state().join(stats);
    assert_eq!(world.see(&["list", "--json"]), first);
    write(&path, "not json");
    assert_eq!(world.see(&["list", "--json"]), first);
    // It is for display only, but it is believed.
    let text = fs::read_to_string(&path).unwrap();
    write(&path, text.replace("[1,0,[2,1]]", "[9,0,[9,9]]"));
    assert!(world.see(&["list"]).contains("9 files  +9 −9"));
}

#[test]
fn a_plan_is_shown_and_nothing_done_without_a_yes() {
    let mut world = two_turns(World::new());
    insta::assert_snapshot!(world.see(&["restore", "2", "--dry-run"]));
    insta::assert_snapshot!(world.see(&["restore", "2"]));
    assert_eq!(world.read("src/cart.ts"), "one\n2\nthree\nfour\n");
    insta::assert_snapshot!(world.see(&["restore", "2", "--yes"]));
    assert_eq!(world.read("src/cart.ts"), "one\ntwo\nthree\n");
    insta::assert_snapshot!(world.see(&["undo", "--yes"]));
    assert_eq!(world.read("src/cart.ts"), "one\n2\nthree\nfour\n");
}

#[test]
fn errors_say_what_why_and_what_next() {
    let mut world = World::new();
    insta::assert_snapshot!(world.see(&["show", "fade"]));
    insta::assert_snapshot!(world.see(&["show", "latets"]));
    insta::assert_snapshot!(world.see(&["restore", "1"]));
    insta::assert_snapshot!(world.see(&["undo"]));
    assert_eq!(world.run(&["lisst"]).exit, Exit::Usage);
    assert_eq!(world.run(&["list", "--nonsense"]).exit, Exit::Usage);
    assert_eq!(world.run(&["hook", "--nonsense"]).exit, Exit::Ok, "2 would block the agent");
}

#[test]
fn status_says_whether_this_is_protected() {
    let mut world = two_turns(World::new());
    let status = world.run(&["status"]);
    assert_eq!(status.exit, Exit::Ok, "{}", status.stderr);
    assert!(status.stdout.contains("2 checkpoints"), "{}", status.stdout);
    assert!(status.stdout.contains("no trouble in the last 7 days"), "{}", status.stdout);
    let home = world.root().join("../../home");
    // The hook was called, but by what is not in any agent's settings.
    assert!(status.stdout.contains("if an agent still calls"), "{}", status.stdout);
    let at_home = world.run_in(&fs::canonicalize(home).unwrap(), &["status"], "");
    assert_eq!(at_home.exit, Exit::Failed, "{}", at_home.stdout);
    assert!(at_home.stdout.contains("not protected"), "{}", at_home.stdout);
    world.set("BEFOREHAND", "off");
    assert_eq!(world.run(&["status"]).exit, Exit::Failed);
}

#[test]
fn a_checkpoint_keeps_its_name_and_the_next_turn_has_its_own() {
    let mut world = World::new();
    world.write("d/a", "one");
    assert_eq!(world.run(&["create", "-m", "mine"]).exit, Exit::Ok);
    world.before_bash("t1", "rm -rf d");
    for (number, named) in [("1", "before Bash rm -rf d"), ("2", "\"mine\"")] {
        for args in [&["list"][..], &["show", number]] {
            let said = world.run(args).stdout;
            assert!(said.contains(named), "{said}");
        }
    }
}

#[test]
fn nothing_is_called_protected_before_an_agent_calls() {
    let mut world = World::new();
    world.write("a", "one");
    assert_eq!(world.run(&["create"]).exit, Exit::Ok);
    let status = world.run(&["status"]);
    assert_eq!(status.exit, Exit::Ok, "nothing is wrong: {}", status.stdout);
    let said = "not protected: no agent calls beforehand yet: run `beforehand install`";
    assert!(status.stdout.contains(said), "{}", status.stdout);
    assert_eq!(world.run(&["install", "claude-code", "--yes"]).exit, Exit::Ok);
    let status = world.run(&["status"]);
    assert_eq!(status.exit, Exit::Ok, "{}", status.stdout);
    assert!(!status.stdout.contains("not protected"), "{}", status.stdout);
}

#[test]
fn trouble_is_told_by_status() {
    let mut world = World::new();
    let hook = world.run_in(&world.root(), &["hook", "--agent", "claude-code"], "not json");
    assert_eq!(hook.exit, Exit::Ok);
    let status = world.run(&["status"]).stdout;
    assert!(status.contains("last trouble"), "{status}");
}

#[test]
fn check_finds_what_is_damaged() {
    let mut world = two_turns(World::new());
    insta::assert_snapshot!(world.see(&["check"]));
    let records: Vec<_> = crate::support::temp::on_disk(&world.state()).into_keys().collect();
    let record = records.iter().map(|path| String::from_utf8(path.clone()).unwrap());
    let record = record.into_iter().find(|path| path.contains("checkpoints/")).unwrap();
    write(&world.state().join(record), "{}");
    let output = world.run(&["check", "--read-data"]);
    assert_eq!(output.exit, Exit::Failed);
    assert!(output.stdout.contains("1 of 2 checkpoints are whole"), "{}", output.stdout);
}

#[test]
fn config_shows_where_values_come_from_and_refuses_slips() {
    let mut world = World::new();
    world.set("BEFOREHAND_DEDUPE", "strict");
    write(&world.settings(), "retention = \"3d\"\n");
    let shown = world.see(&["config"]);
    let lines =
        |key: &str| shown.lines().find(|line| line.contains(key)).unwrap().trim().to_owned();
    let lines = ["dedupe", "retention", "max_files"].map(lines).join("\n");
    insta::assert_snapshot!(lines);
    write(&world.settings(), "retenion = \"3d\"\n");
    insta::assert_snapshot!(world.see(&["config"]));
}

#[test]
fn a_root_that_does_not_exist_is_named() {
    let mut world = World::new();
    for args in [&["list"][..], &["restore", "1"], &["clear"]] {
        let output = world.run(&[args, &["--root", "/no/such\u{1b}"]].concat());
        assert_eq!(output.exit, Exit::Failed);
        let expected =
            "error: `/no/such\\u{1b}` does not exist\nhint: name a directory, or run this in one\n";
        assert_eq!(output.stderr, expected);
    }
}

#[test]
fn explain_needs_no_project() {
    let mut world = World::new();
    insta::assert_snapshot!(world.see(&["explain", "cd build && rm -rf * ; git log > ../log.txt"]));
    insta::assert_snapshot!(world.see(&["explain", "--json", "--", "cat", "a b"]));
    world.env.clear();
    assert_eq!(world.run(&["explain", "rm", "-rf", "/"]).exit, Exit::Ok);
}

#[test]
fn prune_and_clear_say_what_goes() {
    let mut world = two_turns(World::new());
    insta::assert_snapshot!(world.see(&["prune", "--keep", "1", "--dry-run"]));
    insta::assert_snapshot!(world.see(&["prune", "--keep", "none"]));
    assert_eq!(world.run(&["prune", "--keep", "1"]).exit, Exit::Ok);
    insta::assert_snapshot!(world.see(&["clear"]));
    assert_eq!(world.run(&["clear", "--yes"]).exit, Exit::Ok);
    insta::assert_snapshot!(world.see(&["list"]));
}

#[test]
fn a_person_is_asked_at_a_terminal() {
    let mut world = two_turns(World::new());
    world.terminal = Terminal { stdin: true, stdout: true, stderr: true, columns: Some(80) };
    let output = world.run_in(&world.root(), &["restore", "2"], "y\n");
    assert_eq!(output.exit, Exit::Ok, "{}", output.stderr);
    assert_eq!(world.read("src/cart.ts"), "one\ntwo\nthree\n");
}

#[test]
fn a_slash_command_is_the_users_yes() {
    let mut world = two_turns(World::new());
    let slash = |world: &World, name: &str, text: &str| {
        let stdin = format!("{text}\nBEFOREHAND_END\n");
        let output = world.run_in(&world.root(), &["slash", name, "--stdin"], &stdin);
        assert_eq!((output.exit, &*output.stderr), (Exit::Ok, ""), "{text}");
        output.stdout
    };
    assert!(slash(&world, "rollback", "").contains("before Bash rm -rf assets"));
    assert!(slash(&world, "rollback", "diff 2").contains("-two\n+2\n"));
    let said = slash(&world, "rollback", "2 src/cart.ts");
    assert!(said.contains("restore   src/cart.ts"), "{said}");
    assert!(said.contains("undo with: beforehand undo"), "{said}");
    assert_eq!(world.read("src/cart.ts"), "one\ntwo\nthree\n");
    assert!(!world.root().join("assets").exists(), "only what was named");
    slash(&world, "checkpoint", "restore 1");
    assert_eq!(world.read("assets/logo.svg"), "<svg/>\n");
    assert!(slash(&world, "checkpoint", "create don't").starts_with("checkpoint "));
    assert!(slash(&world, "rollback", "99").starts_with("error: no checkpoint `99`"));
    world.write("mine", "");
    let kept = slash(&world, "rollback", "2");
    assert!(kept.contains("--exact") && world.root().join("mine").exists(), "{kept}");
    slash(&world, "rollback", "2 --exact mine");
    assert!(!world.root().join("mine").exists(), "what it advises it takes");
    assert!(slash(&world, "undo", "--dry-run").contains("mine"));
    assert!(!world.root().join("mine").exists());
    slash(&world, "undo", "--force");
    assert!(world.root().join("mine").exists());
    assert!(
        slash(&world, "undo", "2").starts_with("error: `undo` takes back the last turn as a whole")
    );
    let made = slash(&world, "fork", "2");
    let fork = world.root().with_file_name("shop-fork-2");
    assert!(made.contains("would fork") && made.contains("go on there with: cd "), "{made}");
    write(&fork.join("theirs"), "theirs");
    assert!(slash(&world, "fork", "--list").contains("shop-fork-2"));
    assert!(slash(&world, "fork", "").contains("/fork N"));
    assert!(slash(&world, "fork", "--keep").contains("brought 1 path from shop-fork-2"));
    assert_eq!(world.read("theirs"), "theirs");
    let dropped = slash(&world, "fork", "--drop shop-fork-2");
    assert!(dropped.contains("dropped the fork") && !fork.exists(), "{dropped}");
    let cut = world.run_in(&world.root(), &["slash", "rollback", "--stdin"], "2 src\n");
    assert!(cut.stdout.contains("cut short"), "{}", cut.stdout);
    let empty = world.run(&["slash", "rollback", "--"]);
    assert!(empty.stdout.contains("/rollback N"), "{}", empty.stdout);
}

#[test]
fn a_slash_command_prints_one_json_document() {
    let mut world = two_turns(World::new());
    let slash = |world: &mut World, words: &[&str]| -> serde_json::Value {
        let said = world.run(&[&["slash"], words].concat()).stdout;
        serde_json::from_str(&said).unwrap_or_else(|err| panic!("{err}: {said}"))
    };
    let plan = slash(&mut world, &["rollback", "--", "2", "--json", "--dry-run"]);
    assert!(plan.get("done").is_none() && plan["steps"].is_array(), "{plan}");
    assert_eq!(slash(&mut world, &["rollback", "--", "2", "--json"])["done"], 2);
    assert_eq!(slash(&mut world, &["undo", "--", "--json"])["done"], 2);
    for number in 0..100 {
        world.write(&format!("many/{number}"), "x\n");
    }
    let plan = slash(&mut world, &["rollback", "--", "2", "--json", "--dry-run", "--exact"]);
    assert!(plan["steps"].as_array().unwrap().len() > 100, "{plan}");
}

#[test]
fn what_a_name_says_is_not_believed() {
    let mut world = World::new();
    world.write("a\u{1b}[2J\nb", "x\n");
    world.run(&["create", "-m", "hi\u{1b}[2J"]);
    remove_file(&world, "a\u{1b}[2J\nb");
    for args in [&["list"][..], &["diff", "1"], &["show", "1"], &["restore", "1", "--dry-run"]] {
        let output = world.run(args);
        let said = output.stdout + &output.stderr;
        assert!(!said.contains('\u{1b}'), "{args:?}: {said}");
    }
}

fn remove_file(world: &World, path: &str) {
    fs::remove_file(world.root().join(path)).unwrap();
}

/// A home that cannot be written: no checkpoint can be taken, and status says so and what to do.
#[test]
fn nothing_is_called_protected_where_no_checkpoint_can_be_written() {
    let mut world = World::new();
    world.write("a", "one");
    let file = world.root().with_file_name("no-directory");
    write(&file, "");
    let read_only = world.root().with_file_name("read-only");
    fs::create_dir(&read_only).unwrap();
    chmod(&read_only, 0o500);
    let mut homes = vec![file];
    // Permissions do not apply to root.
    if fs::create_dir(read_only.join("x")).is_err() {
        homes.push(read_only);
    }
    for home in homes {
        world.set("HOME", home.to_str().unwrap());
        let status = world.run(&["status"]);
        assert_eq!(status.exit.code(), 1, "{}", status.stdout);
        let said = "not protected: no checkpoint can be written";
        assert!(status.stdout.contains(said), "{}", status.stdout);
        assert!(status.stdout.contains("or set `BEFOREHAND_HOME`"), "{}", status.stdout);
        let json = world.run(&["status", "--json"]).stdout;
        assert!(json.contains("\"protected\": false"), "{json}");
        let doctor = world.run(&["doctor"]).stdout;
        assert!(doctor.contains("nothing can be written in"), "{doctor}");
    }
    world.env.remove(OsStr::new("HOME"));
    let unset = world.run(&["status"]);
    assert_eq!(unset.exit.code(), 1);
    assert!(unset.stderr.contains("`HOME` is not set"), "{}", unset.stderr);
    assert!(!unset.stdout.contains("protected"), "{}", unset.stdout);
}
