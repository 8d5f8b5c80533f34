//! Files outside the project have the rules of all others: what people did after the agent stays
//! and is named, types are as they were, undo and redo are the identity.

use std::{fs, os::unix::fs::symlink, path::PathBuf};

use serde_json::{Value, json};

use crate::support::{
    dice::{Dice, wished},
    real::git,
    temp::{Files, on_disk, write},
    world::{Output, World},
};

/// A project and a directory `out` beside it. The session is known to say when a call is done.
fn project() -> World {
    let mut world = World::new();
    world.write("a", "first");
    write(&out(&world).join("x"), "first");
    write(&out(&world).join("d/y"), "first");
    run(&mut world, "zero", "make nothing", "true");
    world
}

fn out(world: &World) -> PathBuf {
    world.root().with_file_name("out")
}

fn event(world: &mut World, name: &str, turn: &str, tool: &str, input: &Value, id: &str) {
    world.wait(1);
    let payload = json!({
        "session_id": "s", "cwd": world.root(), "hook_event_name": name, "tool_name": tool,
        "tool_input": input, "tool_use_id": id, "prompt_id": turn, "tool_response": {},
    });
    world.run_in(&world.root(), &["hook", "--agent", "claude-code"], &payload.to_string());
}

/// A command begins and does what it says, or something else; and then it is not heard of again.
fn begins(world: &mut World, turn: &str, command: &str, does: &str) {
    let input = json!({ "command": command });
    event(world, "PreToolUse", turn, "Bash", &input, &format!("{turn} {command}"));
    git(world, &world.root(), does);
}

fn run(world: &mut World, turn: &str, command: &str, does: &str) {
    begins(world, turn, command, does);
    let input = json!({ "command": command });
    event(world, "PostToolUse", turn, "Bash", &input, &format!("{turn} {command}"));
}

/// The agent runs a command line that does just what it says.
fn runs(world: &mut World, turn: &str, line: &str) {
    run(world, turn, line, line);
}

#[track_caller]
fn ours(world: &mut World, args: &[&str], exit: u8) -> Output {
    world.wait(1);
    let done = world.run(args);
    assert_eq!(done.exit.code(), exit, "{args:?}: {}{}", done.stdout, done.stderr);
    done
}

fn text(world: &World, path: &str) -> String {
    fs::read_to_string(out(world).join(path)).unwrap_or_default()
}

fn beside(world: &World) -> Files {
    let mut all = on_disk(out(world).parent().unwrap());
    all.retain(|path, _| path.starts_with(b"out"));
    all
}

#[test]
fn what_a_person_did_outside_after_the_agent_is_kept_and_named() {
    for args in [&["undo", "--yes"][..], &["restore", "1", "--outside", "--yes"]] {
        let mut world = project();
        runs(&mut world, "one", "echo agent > ../out/x; echo agent > ../out/d/y");
        write(&out(&world).join("x"), "mine");
        let done = ours(&mut world, args, 3);
        assert_eq!([text(&world, "x"), text(&world, "d/y")], ["mine", "first"], "{args:?}");
        assert!(done.stdout.contains("1 conflict kept: ") && done.stdout.contains("/out/x"));
        let plan = ours(&mut world, &["restore", "1", "--outside", "--dry-run"], 0).stdout;
        assert!(plan.contains("outside the project; changed since, not by the agent"), "{plan}");
        ours(&mut world, &["restore", "1", "--outside", "--force", "--yes"], 0);
        assert_eq!(text(&world, "x"), "first");
        ours(&mut world, &["undo", "--yes"], 0);
        assert_eq!(text(&world, "x"), "mine");
    }
}

#[test]
fn what_a_person_changed_after_an_undo_outlasts_the_redo() {
    let mut world = project();
    runs(&mut world, "one", "rm ../out/x ../out/d/y");
    ours(&mut world, &["undo", "--yes"], 0);
    write(&out(&world).join("x"), "mine");
    ours(&mut world, &["redo", "--yes"], 3);
    assert_eq!(text(&world, "x"), "mine");
    assert!(!out(&world).join("d/y").exists(), "redone");
}

#[test]
fn after_a_call_that_was_cut_off_what_is_outside_is_kept_and_named() {
    let mut world = project();
    begins(&mut world, "one", "sed -i s/first/agent/ ../out/x", "true");
    write(&out(&world).join("x"), "mine");
    run(&mut world, "one", "make", "echo agent > a");
    let done = ours(&mut world, &["undo", "--yes"], 3);
    assert_eq!((text(&world, "x"), world.read("a")), ("mine".into(), "first".into()));
    assert!(done.stdout.contains("/out/x"), "{}", done.stdout);
    let plan = ours(&mut world, &["restore", "1", "--outside", "--dry-run"], 0).stdout;
    assert!(plan.contains("perhaps by an interrupted or concurrent call"), "{plan}");
}

#[test]
fn an_edit_outside_is_the_agents_until_a_person_goes_on() {
    let mut world = project();
    let input = json!({ "file_path": out(&world).join("x"), "content": "agent" });
    event(&mut world, "PreToolUse", "one", "Write", &input, "w");
    write(&out(&world).join("x"), "agent");
    event(&mut world, "PostToolUse", "one", "Write", &input, "w");
    ours(&mut world, &["undo", "--yes"], 0);
    assert_eq!(text(&world, "x"), "first");
    ours(&mut world, &["redo", "--yes"], 0);
    write(&out(&world).join("x"), "mine");
    ours(&mut world, &["restore", "1", "--outside", "--yes"], 3);
    assert_eq!(text(&world, "x"), "mine");
}

/// What a line does to types outside, and undo, redo and undo again.
#[test]
fn types_outside_are_as_they_were_and_undo_is_the_identity() {
    let lines = [
        "rm -rf ../out; echo x > ../out",
        "rm -rf ../out/d; ln -s x ../out/d",
        "rm ../out/x; mkdir -p ../out/x/y; echo z > ../out/x/y/z",
        "rm -rf ../out; ln -s shop ../out",
        "rm ../out/link; echo z > ../out/link",
        "rm -rf ../out",
        "mv ../out/x ../out/w; chmod 700 ../out/d; echo new > ../out/d/new",
        // What was in it is still reached through its name, or nothing is.
        "mv ../out/d ../out/other; ln -s other ../out/d",
        "rm -rf ../out/d; ln -s d ../out/d",
    ];
    for line in lines {
        let mut world = project();
        symlink("x", out(&world).join("link")).unwrap();
        let before = beside(&world);
        // Named as a whole, so that all of it is held.
        let named = "rm -rf ../out";
        run(&mut world, "one", named, line);
        let after = beside(&world);
        assert!(before != after, "{line}");
        for (step, expected) in
            [("undo", &before), ("redo", &after), ("undo", &before), ("redo", &after)]
        {
            ours(&mut world, &[step, "--yes"], 0);
            assert_eq!(&beside(&world), expected, "{line}: {step}");
        }
    }
}

#[test]
fn a_restore_outside_can_be_undone() {
    let mut world = project();
    runs(&mut world, "one", "rm ../out/x; rm a");
    ours(&mut world, &["restore", "1", "--yes", "--outside"], 0);
    assert_eq!(text(&world, "x"), "first");
    ours(&mut world, &["undo", "--yes"], 0);
    assert!(!out(&world).join("x").exists() && !world.root().join("a").exists());
    ours(&mut world, &["redo", "--yes"], 0);
    assert_eq!((text(&world, "x"), world.read("a")), ("first".into(), "first".into()));
}

#[test]
fn what_is_new_in_a_held_directory_outside_is_named_and_goes_with_exact() {
    let mut world = project();
    run(&mut world, "one", "rm -rf ../out", "rm ../out/x; echo agent > ../out/d/agents");
    write(&out(&world).join("d/mine"), "mine");
    let plan = ours(&mut world, &["restore", "1", "--outside", "--dry-run"], 0).stdout;
    assert!(plan.contains("/out/d/mine   outside the project; not made by the agent"), "{plan}");
    ours(&mut world, &["restore", "1", "--outside", "--yes"], 0);
    assert_eq!([text(&world, "x"), text(&world, "d/mine")], ["first", "mine"]);
    assert!(!out(&world).join("d/agents").exists(), "the agent's");
    ours(&mut world, &["restore", "1", "--outside", "--exact", "--yes"], 0);
    assert!(!out(&world).join("d/mine").exists());
    ours(&mut world, &["undo", "--yes"], 0);
    assert_eq!(text(&world, "d/mine"), "mine");
}

#[test]
fn what_a_person_put_in_the_place_of_a_directory_outside_stays() {
    let mut world = project();
    runs(&mut world, "one", "rm ../out/x; echo agent > a");
    fs::remove_file(out(&world).join("d/y")).unwrap();
    fs::remove_dir(out(&world).join("d")).unwrap();
    fs::remove_dir(out(&world)).unwrap();
    write(&out(&world), "mine");
    let done = ours(&mut world, &["undo", "--yes"], 3);
    assert!(done.stdout.contains("/out/x"), "{}", done.stdout);
    assert_eq!(
        (fs::read_to_string(out(&world)).unwrap(), world.read("a")),
        ("mine".into(), "first".into())
    );
}

/// One change of something outside, as a command line; it fails where it cannot be done.
fn change(dice: &mut Dice) -> String {
    let paths = ["", "/x", "/d", "/d/y", "/d/y/z", "/e/f", "/w"];
    let mut path = || format!("../out{}", paths[dice.below(paths.len())]);
    let (one, other) = (path(), path());
    let number = dice.below(1000);
    match dice.below(7) {
        0 | 1 => format!("echo {number} > {one}"),
        2 => format!("rm -rf {one}"),
        3 => format!("rm -rf {one}; mkdir -p {one}; echo {number} > {one}/n"),
        4 => format!("rm -rf {one}; ln -s {} {one}", ["x", "d", ".", "e/f"][dice.below(4)]),
        5 => format!("chmod 70{} {one}", dice.below(8)),
        _ => format!("mv -T {one} {other}"),
    }
}

/// Some changes, one after the other.
fn changes(dice: &mut Dice) -> String {
    let all = (0..=dice.below(3)).map(|_| format!("{{ {}; }} 2> /dev/null", change(dice)));
    format!("{}; true", all.collect::<Vec<_>>().join("; "))
}

/// `BEFOREHAND_CASES` and `BEFOREHAND_SEED` run more of them, or one again.
#[test]
fn whatever_agents_and_people_do_outside_is_told_apart() {
    let (first, count) = match wished("BEFOREHAND_SEED") {
        Some(seed) => (seed, 1),
        None => (0, wished("BEFOREHAND_CASES").unwrap_or(12)),
    };
    for seed in first..first + count {
        let mut dice = Dice::new(seed);
        let mut world = project();
        let was = beside(&world);
        let (agents, mine) = (changes(&mut dice), changes(&mut dice));
        // The line names all of the directory, or just what it changes.
        let line = if dice.below(2) == 0 { "rm -rf ../out" } else { &agents };
        run(&mut world, "one", line, &agents);
        let left = beside(&world);
        git(&world, &world.root(), &mine);
        let is = beside(&world);
        world.wait(1);
        let done = world.run(&["undo", "--yes"]);
        let becomes = beside(&world);
        let told = format!("seed {seed}: {agents}\n{mine}\n{}{}", done.stdout, done.stderr);
        for path in [&was, &is, &becomes].into_iter().flat_map(Files::keys) {
            let at = |files: &Files| files.get(path).cloned();
            let named = format!("{}: {told}", String::from_utf8_lossy(path));
            assert!([at(&was), at(&is)].contains(&at(&becomes)), "something new, {named}");
            let is_mine = at(&left) != at(&is) && at(&is).is_some();
            assert!(!is_mine || at(&becomes) == at(&is), "not kept, {named}");
            let is_blocked = becomes.iter().any(|(other, seen)| {
                let stays = Some(seen) == is.get(other) && Some(seen) != left.get(other);
                let is_near = other.starts_with(path) || path.starts_with(other);
                stays && is_near
            });
            // What the line does not name and the agent left alone is not held.
            let is_wanted = line == "rm -rf ../out" || at(&was) != at(&left);
            let is_back = at(&becomes) == at(&was);
            assert!(!is_wanted || is_mine || is_blocked || is_back, "not restored, {named}");
        }
        assert!([0, 1, 3].contains(&(done.exit.code())), "{told}");
        if done.stdout.contains("redo with") {
            ours(&mut world, &["redo", "--yes"], 0);
            assert!(beside(&world) == is, "redone, {told}");
        }
    }
}

/// What each line makes where nothing was, in a turn that has a checkpoint already.
#[test]
fn what_an_agent_makes_outside_goes_with_its_turn() {
    for line in [
        "echo made > ../out/new",
        "touch ../out/new",
        "mkdir -p ../out/n/e && echo made > ../out/n/e/w",
        "mkdir ../fresh && echo made > ../fresh/x",
        "cp a ../out/new",
        "ln -s nowhere ../out/new",
        "make > ../out/log 2>&1; true",
    ] {
        for before in ["true", "echo agent > a"] {
            let mut world = project();
            let files = |world: &World| {
                let mut all = on_disk(out(world).parent().unwrap());
                all.retain(|path, _| path.starts_with(b"out") || path.starts_with(b"fresh"));
                all
            };
            let first = files(&world);
            runs(&mut world, "one", before);
            runs(&mut world, "one", line);
            let made = files(&world);
            assert!(first != made, "{line}");
            let done = ours(&mut world, &["undo", "--yes"], 0);
            assert!(files(&world) == first, "{line}: {}", done.stdout);
            ours(&mut world, &["redo", "--yes"], 0);
            assert!(files(&world) == made, "{line}");
        }
    }
}

#[test]
fn what_an_edit_makes_outside_goes_with_its_turn() {
    let mut world = project();
    runs(&mut world, "one", "echo agent > a");
    let input = json!({ "file_path": out(&world).join("n/new"), "content": "agent" });
    event(&mut world, "PreToolUse", "one", "Write", &input, "w");
    write(&out(&world).join("n/new"), "agent");
    event(&mut world, "PostToolUse", "one", "Write", &input, "w");
    let plan = ours(&mut world, &["restore", "1", "--dry-run"], 0).stdout;
    assert!(plan.contains("out/n/new   outside the project; needs --outside"), "{plan}");
    ours(&mut world, &["undo", "--yes"], 0);
    assert_eq!((world.read("a"), out(&world).join("n").exists()), ("first".into(), false));
    let plan = ours(&mut world, &["redo", "--dry-run"], 0).stdout;
    assert!(!plan.contains("not by the agent"), "{plan}");
    ours(&mut world, &["redo", "--yes"], 0);
    assert_eq!((world.read("a"), text(&world, "n/new")), ("agent\n".into(), "agent".into()));
}

#[test]
fn what_a_person_made_outside_or_went_on_with_stays() {
    let mut world = project();
    runs(&mut world, "one", "echo made > ../out/new; echo made > ../out/other");
    write(&out(&world).join("new"), "mine");
    write(&out(&world).join("person"), "mine");
    let done = ours(&mut world, &["undo", "--yes"], 3);
    assert_eq!([text(&world, "new"), text(&world, "person")], ["mine", "mine"]);
    assert!(!out(&world).join("other").exists());
    assert!(done.stdout.contains("/out/new"), "{}", done.stdout);
}

#[test]
fn what_is_made_outside_is_counted_and_shown() {
    let mut world = project();
    runs(&mut world, "one", "rm ../out/x; mkdir ../out/n; echo made > ../out/n/w");
    write(&out(&world).join("mine"), "mine");
    let told = ours(&mut world, &["diff", "1", "--stat"], 0).stdout;
    assert!(told.contains("out/n/w") && told.contains("2 files"), "{told}");
    let told = ours(&mut world, &["list", "--json"], 0).stdout;
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told[0]["changed"], 2);
    let held = ours(&mut world, &["show", "1"], 0).stdout;
    assert!(held.contains("1 file in "), "{held}");
}

#[test]
fn paths_limit_a_restore_and_may_lie_outside() {
    let mut world = project();
    runs(&mut world, "one", "rm ../out/x ../out/d/y; echo made > ../out/new; echo agent > a");
    let plan = ours(&mut world, &["restore", "1", "--outside", "--dry-run", "--", "a"], 0).stdout;
    assert!(plan.contains("restore   a") && !plan.contains("/out/"), "{plan}");
    let none = ours(&mut world, &["restore", "1", "--yes", "--", "../out/nope"], 1).stderr;
    assert!(none.contains("is not held, and is not there now"), "{none}");
    ours(&mut world, &["restore", "1", "--yes", "--", "../out/d"], 0);
    assert_eq!([text(&world, "x"), text(&world, "d/y")], ["", "first"]);
    let found = ours(&mut world, &["find", "../out/x"], 0).stdout;
    let line = found.lines().find(|line| line.contains("restore ")).unwrap().trim();
    let words: Vec<&str> = line.split(' ').skip(1).chain(["--yes"]).collect();
    let at = words.iter().position(|word| *word == "--").unwrap();
    let words = [&words[..at], &["--yes"], &words[at..words.len() - 1]].concat();
    ours(&mut world, &words, 0);
    assert_eq!((text(&world, "x"), text(&world, "new")), ("first".into(), "made\n".into()));
    assert_eq!(world.read("a"), "agent\n");
    ours(&mut world, &["undo", "--yes"], 0);
    assert_eq!([text(&world, "x"), text(&world, "d/y")], ["", "first"]);
}

/// It is larger than what is looked at.
#[test]
fn a_large_file_made_outside_takes_nothing_from_what_is_known_of_others() {
    let mut world = project();
    runs(&mut world, "one", "head -c 30000000 /dev/zero > ../out/large; echo agent > a");
    world.write("b", "mine");
    ours(&mut world, &["undo", "--yes"], 0);
    assert_eq!((world.read("a"), world.read("b")), ("first".into(), "mine".into()));
    assert!(out(&world).join("large").exists());
}

#[test]
fn what_is_made_through_a_symlink_or_beside_a_large_file_is_known() {
    for line in ["echo made > ../out/ln", "touch ../out/ln"] {
        let mut world = project();
        symlink("target", out(&world).join("ln")).unwrap();
        let first = beside(&world);
        runs(&mut world, "one", line);
        runs(&mut world, "one", "echo made > ../out/e; head -c 30000000 /dev/zero > ../out/large");
        assert!(out(&world).join("target").exists(), "{line}");
        ours(&mut world, &["undo", "--yes"], 0);
        let mut now = beside(&world);
        now.remove(&b"out/large"[..]);
        assert!(now == first, "{line}");
    }
}

/// A restore put the directory there, or a file in its place, and a person made something in it.
#[test]
fn what_a_person_made_in_a_directory_that_a_restore_put_there_stays_and_is_named() {
    for line in
        ["mkdir -p ../out/n; echo agent > a", "rm ../out/x; mkdir ../out/x; echo in > ../out/x/in"]
    {
        let mut world = project();
        runs(&mut world, "one", line);
        ours(&mut world, &["undo", "--yes"], 0);
        ours(&mut world, &["redo", "--yes"], 0);
        let dir = if line.starts_with("mkdir") { "n" } else { "x" };
        write(&out(&world).join(dir).join("mine"), "mine");
        let plan = ours(&mut world, &["undo", "--dry-run"], 0).stdout;
        assert!(plan.contains(&format!("out/{dir}/mine")), "{plan}");
        let done = world.run(&["undo", "--yes"]);
        assert!([0, 3].contains(&(done.exit.code())), "{}{}", done.stdout, done.stderr);
        assert!(!done.stderr.contains("not restored"), "{}", done.stderr);
        assert_eq!(text(&world, &format!("{dir}/mine")), "mine");
    }
}

#[test]
fn nothing_is_promised_below_what_a_person_put_in_the_place_of_a_directory() {
    let mut world = project();
    runs(&mut world, "one", "rm -rf ../out/d; echo agent > a");
    git(&world, &world.root(), "rm -rf ../out && ln -s nowhere ../out");
    let done = ours(&mut world, &["undo", "--yes"], 3);
    assert!(!done.stderr.contains("not restored"), "{}", done.stderr);
    assert!(out(&world).symlink_metadata().unwrap().is_symlink());
    ours(&mut world, &["redo", "--yes"], 0);
    assert_eq!(world.read("a"), "agent\n");
}
