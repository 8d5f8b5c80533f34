//! The steps of a turn: `list --steps`, and what `show`, `diff` and `restore` make of `N.K`.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::{
    evidence::{begins, ends, event, ours, run, warm, writes},
    support::{
        real::{beforehand, git},
        temp::{noise, write},
        world::World,
    },
};

/// A project in both kinds of store, and in it a turn of four steps: two edits of one file, a command, and
/// one more edit.
fn projects() -> [World; 2] {
    [World::new(), World::with_git()].map(|mut world| {
        write(&world.settings(), "deadline = \"60s\"\n");
        world.write("a", "one\ntwo\n");
        world.write("b", "kept\n");
        run(&mut world, "zero", "make nothing", |_| ());
        writes(&mut world, "one", "a", "one\n2\n");
        writes(&mut world, "one", "a", "one\n2\nthree\n");
        run(&mut world, "one", "rm b", |world| {
            fs::remove_file(world.root().join("b")).unwrap();
        });
        writes(&mut world, "one", "d/new", "new\n");
        writes(&mut world, "one", "a", "1\n2\nthree\n");
        world
    })
}

/// A project in both kinds of store, with a file that the agent leaves alone, and the first step of a turn.
fn beside_mine() -> [World; 2] {
    [World::new(), World::with_git()].map(|mut world| {
        write(&world.settings(), "deadline = \"60s\"\n");
        world.write("a", "one\n");
        world.write("mine", "mine\n");
        run(&mut world, "zero", "make nothing", |_| ());
        writes(&mut world, "one", "a", "two\n");
        world
    })
}

fn steps(world: &mut World, args: &[&str]) -> Vec<Value> {
    let args: Vec<&str> = ["list", "--json", "--steps"].iter().chain(args).copied().collect();
    let told = ours(world, &args, 0).stdout;
    serde_json::from_str(&told).unwrap()
}

/// Whether a file is there, and what is in it.
fn text(world: &World, path: &str) -> Option<String> {
    fs::read_to_string(world.root().join(path)).ok()
}

#[test]
fn each_call_of_a_turn_is_a_step_with_what_it_changed() {
    for mut world in projects() {
        let told = steps(&mut world, &[]);
        let column = |name: &str| told.iter().map(|step| step[name].clone()).collect::<Vec<_>>();
        assert_eq!(column("number"), ["1.1", "1.2", "1.3", "1.4", "1.5"]);
        assert_eq!(column("tool"), ["Write", "Write", "Bash", "Write", "Write"]);
        assert_eq!(column("summary"), ["a", "a", "rm b", "d/new", "a"]);
        assert_eq!(column("changed"), [1, 1, 1, 1, 1]);
        assert_eq!(column("added"), [1, 1, 0, 1, 1]);
        assert_eq!(column("removed"), [1, 0, 1, 0, 1]);
        assert_eq!(column("held"), [true, true, true, true, true]);
        let exact: Vec<bool> = told.iter().map(|step| step["id"].is_string()).collect();
        assert_eq!(exact, [true, false, true, false, false]);
        assert_eq!(steps(&mut world, &["1"]), told);
    }
}

#[test]
fn a_list_with_calls_numbers_checkpoints_by_their_steps() {
    for mut world in projects() {
        let told = ours(&mut world, &["list", "--calls", "--json"], 0).stdout;
        let told: Vec<Value> = serde_json::from_str(&told).unwrap();
        let numbers: Vec<&Value> = told.iter().map(|row| &row["number"]).collect();
        assert_eq!(numbers, [&json!("1.3"), &json!(1)]);
        let shown = ours(&mut world, &["show", "1.3", "--json"], 0).stdout;
        let shown: Value = serde_json::from_str(&shown).unwrap();
        assert_eq!((&shown["id"], &shown["step"]["id"]), (&told[0]["id"], &told[0]["id"]));
    }
}

#[test]
fn a_restore_goes_to_right_before_a_step_and_an_undo_comes_back() {
    for mut world in projects() {
        let states = [
            ("1.1", "one\ntwo\n", Some("kept\n"), None),
            ("1.2", "one\n2\n", Some("kept\n"), None),
            ("1.3", "one\n2\nthree\n", Some("kept\n"), None),
            ("1.4", "one\n2\nthree\n", None, None),
            ("1.5", "one\n2\nthree\n", None, Some("new\n")),
        ];
        for (step, a, b, new) in states {
            let plan = ours(&mut world, &["restore", step, "--dry-run"], 0);
            assert_eq!(world.read("a"), "1\n2\nthree\n", "{}", plan.stdout);
            ours(&mut world, &["restore", step, "--yes"], 0);
            let there = ["a", "b", "d/new"].map(|path| text(&world, path));
            assert_eq!(there, [Some(a), b, new].map(|it| it.map(str::to_owned)), "{step}");
            ours(&mut world, &["undo", "--yes"], 0);
            let there = ["a", "b", "d/new"].map(|path| text(&world, path));
            let now = [Some("1\n2\nthree\n"), None, Some("new\n")];
            assert_eq!(there, now.map(|it| it.map(str::to_owned)), "{step}");
        }
    }
}

#[test]
fn what_others_changed_after_the_step_is_a_conflict_as_in_every_restore() {
    for mut world in projects() {
        world.write("a", "1\n2\nthree\nmine\n");
        ours(&mut world, &["restore", "1.5", "--yes"], 3);
        assert_eq!(world.read("a"), "1\n2\nthree\nmine\n");
        ours(&mut world, &["restore", "1.5", "--merge", "--yes"], 0);
        assert_eq!(world.read("a"), "one\n2\nthree\nmine\n");
        ours(&mut world, &["undo", "--yes"], 0);
        ours(&mut world, &["restore", "1.2", "--force", "--yes"], 0);
        assert_eq!(world.read("a"), "one\n2\n");
    }
}

#[test]
fn what_changed_around_a_step_at_an_unknown_time_stays_and_is_named() {
    for mut world in beside_mine() {
        writes(&mut world, "one", "a", "three\n");
        world.write("mine", "later\n");
        writes(&mut world, "one", "a", "four\n");
        let told = steps(&mut world, &[]);
        assert_eq!([&told[1], &told[2]].map(|step| &step["held"]), [false, false]);
        assert_eq!(told[1]["not_held"][0]["path"], "mine");
        let plan = ours(&mut world, &["restore", "1.2", "--yes", "--force"], 3);
        assert!(plan.stdout.contains("mine"), "{}", plan.stdout);
        assert_eq!(["a", "mine"].map(|path| world.read(path)), ["two\n", "later\n"]);
        let said = ours(&mut world, &["diff", "1.2"], 0).stderr;
        assert!(said.contains("note: mine: changed around that time"), "{said}");
    }
}

#[test]
fn what_is_held_between_turns_tells_what_was_there_before_a_step() {
    for mut world in beside_mine() {
        writes(&mut world, "one", "b", "three\n");
        warm(&mut world, &["--ended"]);
        world.write("a", "two\nmine\n");
        world.write("mine", "later\n");
        run(&mut world, "two", "make more", |_| ());
        let told = steps(&mut world, &["2"]);
        assert_eq!([&told[0], &told[1]].map(|step| &step["held"]), [true, true], "{told:?}");
        ours(&mut world, &["restore", "2.2", "--yes", "--force"], 0);
        assert_eq!(["a", "mine"].map(|path| world.read(path)), ["two\n", "mine\n"]);
    }
}

#[test]
fn a_step_that_wrote_outside_the_project_says_what_and_where() {
    for mut world in projects() {
        let outside = world.root().with_file_name("notes");
        let wrote = |world: &mut World, text: &str| {
            let input = json!({ "file_path": outside, "content": text });
            event(world, "PreToolUse", "one", "Write", &input, text);
            write(&outside, text);
            event(world, "PostToolUse", "one", "Write", &input, text);
        };
        wrote(&mut world, "one\n");
        wrote(&mut world, "two\nthree\n");
        let told = steps(&mut world, &[]);
        assert_eq!(told[6]["summary"], json!(outside));
        let counts = |step: &Value| ["changed", "added", "removed"].map(|it| step[it].clone());
        assert_eq!(
            [counts(&told[5]), counts(&told[6])],
            [[1, 1, 0], [1, 2, 1]].map(|it| it.map(Value::from))
        );
        let shown = ours(&mut world, &["show", "1.7"], 0).stdout;
        assert!(shown.contains(&outside.to_string_lossy()[..]), "{shown}");
        let said = ours(&mut world, &["diff", "1.7", "--step"], 0).stdout;
        assert!(said.contains("\n-one\n+two\n+three\n"), "{said}");
        // A later checkpoint does not hold it; the turn's own work is counted all the same.
        let all = |world: &mut World| {
            let rows = ours(world, &["list", "--json"], 0).stdout;
            let rows: Value = serde_json::from_str(&rows).unwrap();
            counts(rows.as_array().unwrap().iter().find(|row| row["turn"] == "one").unwrap())
        };
        let before = all(&mut world);
        writes(&mut world, "two", "b", "two\n");
        write(&outside, "mine\n");
        assert_eq!(all(&mut world), before);
    }
}

#[test]
fn a_restore_goes_to_right_before_a_step_outside_the_project_too() {
    for mut world in projects() {
        let place = |name: &str| world.root().with_file_name(name);
        let (notes, new) = (place("notes"), place("new"));
        write(&notes, "first\n");
        let wrote = |world: &mut World, path: &Path, text: &str| {
            let input = json!({ "file_path": path, "content": text });
            event(world, "PreToolUse", "one", "Write", &input, text);
            write(path, text);
            event(world, "PostToolUse", "one", "Write", &input, text);
        };
        let now = || [&notes, &new].map(|path| fs::read_to_string(path).ok());
        let there =
            |notes: Option<&str>, new: Option<&str>| [notes, new].map(|it| it.map(str::to_owned));
        wrote(&mut world, &notes, "one\n");
        wrote(&mut world, &new, "a\n");
        wrote(&mut world, &notes, "two\n");
        wrote(&mut world, &new, "b\n");
        wrote(&mut world, &notes, "three\n");
        let end = there(Some("three\n"), Some("b\n"));
        assert_eq!(now(), end);
        for (step, then) in [
            ("1.7", there(Some("one\n"), None)),
            ("1.8", there(Some("one\n"), Some("a\n"))),
            ("1.9", there(Some("two\n"), Some("a\n"))),
            ("1.10", there(Some("two\n"), Some("b\n"))),
        ] {
            let plan = ours(&mut world, &["restore", step, "--dry-run"], 0).stdout;
            assert!(plan.contains("needs --outside"), "{plan}");
            let done = ours(&mut world, &["restore", step, "--outside", "--yes"], 0).stdout;
            assert_eq!(now(), then, "{step}: {done}");
            ours(&mut world, &["undo", "--yes"], 0);
            assert_eq!(now(), end, "{step}");
        }
        // What a person did meanwhile stays.
        write(&notes, "mine\n");
        ours(&mut world, &["restore", "1.9", "--outside", "--yes"], 3);
        assert_eq!(now(), there(Some("mine\n"), Some("a\n")));
    }
}

#[test]
fn what_a_checkpoint_left_out_is_not_held_before_its_step_either() {
    let mut world = World::with_git();
    write(
        &world.settings(),
        "deadline = \"60s\"\nmax_file_size = \"1 MB\"\nmax_victim_size = \"1 MB\"\n",
    );
    world.write("large", "x".repeat(1_100_000));
    run(&mut world, "one", "rm -f la*", |world| {
        fs::remove_file(world.root().join("large")).unwrap();
    });
    let told = steps(&mut world, &[]);
    assert_eq!(
        (&told[0]["held"], &told[0]["not_held"][0]["path"]),
        (&json!(false), &json!("large"))
    );
    let shown = ours(&mut world, &["show", "1.1"], 0).stdout;
    assert!(
        shown.contains("except 1 path not held") && shown.contains("\nnot held   large: "),
        "{shown}"
    );
}

#[test]
fn a_step_is_shown_with_what_it_did_by_itself() {
    for mut world in projects() {
        let did = ours(&mut world, &["diff", "1.2", "--step", "--stat"], 0).stdout;
        assert!(did.ends_with("1 file  +1 −0\n"), "{did}");
        let between = ours(&mut world, &["diff", "1.2", "1.5", "--name-only"], 0).stdout;
        assert_eq!(between, "a\nb\nd/new\n");
        let since = ours(&mut world, &["diff", "1.5"], 0).stdout;
        assert!(since.contains("-one") && since.contains("+1"), "{since}");
        let shown = ours(&mut world, &["show", "1.2"], 0).stdout;
        assert!(shown.starts_with("step       1.2 of 5, Write a\n"), "{shown}");
    }
}

#[test]
fn what_is_no_step_is_refused_and_changes_nothing() {
    for mut world in projects() {
        ours(&mut world, &["create", "-m", "by hand"], 0);
        for (args, said) in [
            (&["restore", "2.9", "--yes"][..], "error: turn 2 has no step 9: it has 5\n"),
            (&["restore", "9.2", "--yes"], "error: no checkpoint `9.2`\n"),
            (
                &["restore", "1.2", "--yes"],
                "error: 1 is a checkpoint taken by hand; it has no steps",
            ),
            (&["list", "--steps", "1"], "error: 1 is a checkpoint taken by hand; it has no steps"),
            (&["fork", "2.2", "--yes"], "error: step 2.2 has no checkpoint of its own\n"),
            (
                &["restore", "2.2", "--yes", "--head"],
                "error: step 2.2 has no checkpoint of its own, and so no place of HEAD",
            ),
            (&["diff", "2", "--step"], "error: --step is about one step of a turn"),
        ] {
            world.wait(1);
            let done = world.run(args);
            assert!(done.stderr.starts_with(said), "{args:?}: {}", done.stderr);
            assert_eq!(world.read("a"), "1\n2\nthree\n");
        }
    }
}

#[test]
fn a_step_that_has_not_ended_is_told_so_and_can_be_gone_back_to() {
    for mut world in projects() {
        begins(&mut world, "two", "make");
        world.write("a", "make\n");
        let told = steps(&mut world, &["1"]);
        assert_eq!((&told[0]["done"], &told[0]["changed"]), (&json!(false), &Value::Null));
        let said = world.run(&["diff", "1.1", "--step"]).stderr;
        assert!(said.starts_with("error: what step 1.1 did is not known"), "{said}");
        ends(&mut world, "two", "make");
        let told = steps(&mut world, &["1"]);
        assert_eq!((&told[0]["done"], &told[0]["changed"]), (&json!(true), &json!(1)));
    }
}

#[test]
fn of_calls_that_ran_at_once_one_has_the_change_and_all_name_the_others() {
    for mut world in projects() {
        begins(&mut world, "two", "make one");
        begins(&mut world, "two", "make two");
        world.write("a", "made\n");
        ends(&mut world, "two", "make two");
        world.write("new", "made\n");
        ends(&mut world, "two", "make one");
        run(&mut world, "two", "make three", |world| world.write("c", "made\n"));
        let told = steps(&mut world, &["1"]);
        let column = |name: &str| told.iter().map(|step| step[name].clone()).collect::<Vec<_>>();
        assert_eq!(column("summary"), ["make one", "make two", "make three"]);
        assert_eq!(column("changed"), [1, 1, 1]);
        assert_eq!(column("overlaps"), [json!(["1.2"]), json!(["1.1"]), json!([])]);
        assert_eq!(column("later"), [0, 0, 0]);
        let text = ours(&mut world, &["list", "--steps", "1"], 0).stdout;
        assert!(text.contains("1 file  +1 −0, or 1.2 did"), "{text}");
        let shown = ours(&mut world, &["show", "1.2"], 0).stdout;
        assert!(shown.contains("1 file  +1 −3, or 1.1 did"), "{shown}");
        let rows = ours(&mut world, &["list", "--json"], 0).stdout;
        let rows: Vec<Value> = serde_json::from_str(&rows).unwrap();
        assert_eq!(rows[0]["changed"], 3, "{}", rows[0]);
    }
}

#[test]
fn what_a_command_in_the_background_may_have_done_after_its_end_is_told_of_its_step() {
    for mut world in projects() {
        run(&mut world, "two", "./serve &", |_| ());
        let told = steps(&mut world, &["1"]);
        assert_eq!((&told[0]["changed"], &told[0]["later"]), (&json!(0), &json!(0)));
        world.write("served", "later\n");
        run(&mut world, "two", "make nothing", |_| ());
        let told = steps(&mut world, &["1"]);
        assert_eq!((&told[0]["changed"], &told[0]["later"]), (&json!(0), &json!(1)));
        assert_eq!((&told[1]["changed"], &told[1]["later"]), (&json!(0), &json!(0)));
        let shown = ours(&mut world, &["show", "1.1"], 0).stdout;
        let said = "served, after its end: by what it had started, or by you";
        assert!(shown.contains("no file, 1 file later") && shown.contains(said), "{shown}");
        event(&mut world, "SessionEnd", "two", "", &json!({}), "");
        run(&mut world, "other/three", "make nothing", |_| ());
        world.write("mine", "mine\n");
        run(&mut world, "other/four", "make nothing", |_| ());
        let served = |world: &mut World| {
            let turns = ["1", "2", "3"].map(|turn| steps(world, &[turn]).remove(0));
            turns.into_iter().find(|step| step["summary"] == "./serve &").unwrap()
        };
        assert_eq!(served(&mut world)["later"], 1);
    }
}

#[test]
fn a_step_is_written_to_another_directory_without_what_is_not_known() {
    for mut world in projects() {
        let into = world.home().join("out");
        ours(&mut world, &["restore", "1.2", "--into", into.to_str().unwrap()], 0);
        assert_eq!(fs::read_to_string(into.join("a")).unwrap(), "one\n2\n");
        assert_eq!(fs::read_to_string(into.join("b")).unwrap(), "kept\n");
        assert!(!into.join("d").exists());
    }
}

/// Where what calls left is held: a file for each checkpoint.
fn contents(world: &World) -> Vec<std::path::PathBuf> {
    let state = beforehand::state::StateDir::new(world.state());
    beforehand::attribution::content_files(&state.root_at(&world.root()))
}

fn edits(world: &mut World, turn: &str, path: &str, bytes: &[u8]) {
    let input = json!({ "file_path": world.root().join(path), "content": "" });
    event(world, "PreToolUse", turn, "Write", &input, path);
    world.write(path, bytes);
    event(world, "PostToolUse", turn, "Write", &input, path);
}

#[test]
fn a_file_of_up_to_a_megabyte_is_held_between_steps_and_a_larger_one_is_named() {
    for mut world in projects() {
        let large = noise(1, 1 << 20);
        edits(&mut world, "two", "large", &large);
        edits(&mut world, "two", "large", b"small");
        edits(&mut world, "two", "huge", &noise(2, (1 << 20) + 8));
        edits(&mut world, "two", "huge", b"small");
        edits(&mut world, "two", "large", b"smaller");
        ours(&mut world, &["restore", "1.2", "--yes"], 0);
        assert!(fs::read(world.root().join("large")).unwrap() == large);
        ours(&mut world, &["undo", "--yes"], 0);
        let told = steps(&mut world, &["1"]);
        assert_eq!(
            told[3]["not_held"][0],
            json!({
                "path": "huge", "why": "what it was is not held",
            })
        );
        assert_eq!([&told[3]["changed"], &told[3]["added"]], [&json!(1), &Value::Null]);
        let told = ours(&mut world, &["diff", "1.4", "--step"], 0);
        assert_eq!(told.stderr, "note: huge: changed, and not held\n");
        let told = ours(&mut world, &["diff", "1.4", "--step", "--json"], 0).stdout;
        assert!(told.contains(r#""change": "not-held""#), "{told}");
        ours(&mut world, &["restore", "1.4", "--yes"], 3);
        assert_eq!([world.read("large"), world.read("huge")], ["small", "small"]);
    }
}

#[test]
fn of_a_turn_that_left_what_is_not_held_no_lines_are_counted() {
    for mut world in [World::new(), World::with_git()] {
        write(&world.settings(), "deadline = \"60s\"\n");
        let huge = |seed| noise(seed, (1 << 20) + 8);
        world.write("huge", huge(1));
        run(&mut world, "zero", "make nothing", |_| ());
        edits(&mut world, "one", "huge", &huge(2));
        edits(&mut world, "one", "huge", &huge(3));
        run(&mut world, "one", "rm huge", |world| {
            fs::remove_file(world.root().join("huge")).unwrap();
        });
        let told: Value =
            serde_json::from_str(&ours(&mut world, &["list", "--json"], 0).stdout).unwrap();
        let counts = ["changed", "added", "removed"].map(|name| &told[0][name]);
        assert_eq!(counts, [&json!(1), &Value::Null, &Value::Null], "{}", told[0]);
    }
}

#[test]
fn where_the_contents_of_a_turn_are_full_the_next_edit_takes_a_checkpoint() {
    for mut world in projects() {
        // Eight megabytes are the limit.
        let large: Vec<Vec<u8>> = (0..14).map(|seed| noise(seed, 900_000)).collect();
        for bytes in &large {
            edits(&mut world, "two", "large", bytes);
        }
        let told = steps(&mut world, &["1"]);
        assert!(told.iter().all(|step| step["held"] == true), "{told:?}");
        let taken = told.iter().filter(|step| step["id"].is_string()).count();
        assert_eq!(taken, 2, "the first, and one where the contents were full");
        for (step, bytes) in large.iter().enumerate() {
            let step = format!("1.{}", step + 2);
            if step == "1.15" {
                break;
            }
            ours(&mut world, &["restore", &step, "--yes"], 0);
            assert!(fs::read(world.root().join("large")).unwrap() == *bytes, "{step}");
            ours(&mut world, &["undo", "--yes"], 0);
        }
    }
}

#[test]
fn what_is_held_between_steps_is_private_and_goes_with_the_checkpoint() {
    use std::os::unix::fs::PermissionsExt;
    for mut world in projects() {
        run(&mut world, "two", "make", |world| world.write("a", "two\n"));
        writes(&mut world, "two", "a", "2\n");
        let held = contents(&world);
        assert_eq!(held.len(), 4, "one for each checkpoint, with what was left after it");
        for path in &held {
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
        ours(&mut world, &["prune", "--keep", "1"], 0);
        assert_eq!(contents(&world).len(), 1);
        ours(&mut world, &["check"], 0);
        let path = contents(&world).remove(0);
        let mut bytes = fs::read(&path).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        write(&path, bytes);
        let said = ours(&mut world, &["check"], 1);
        assert!(format!("{}{}", said.stdout, said.stderr).contains("attribution/contents/"));
        ours(&mut world, &["check", "--repair"], 0);
        ours(&mut world, &["check"], 0);
    }
}

/// Before step 1.4 `a` is what an edit left, `b` is gone, and `c/new` is there; since then all three changed.
fn for_kills(mut world: World) -> World {
    write(&world.settings(), "deadline = \"60s\"\n");
    world.write("a", "one\n");
    world.write("b", "b\n");
    run(&mut world, "zero", "make nothing", |_| ());
    writes(&mut world, "one", "a", "two\n");
    let input = json!({ "file_path": world.root().join("b"), "content": "" });
    event(&mut world, "PreToolUse", "one", "Write", &input, "b");
    fs::remove_file(world.root().join("b")).unwrap();
    event(&mut world, "PostToolUse", "one", "Write", &input, "b");
    writes(&mut world, "one", "c/new", "new\n");
    writes(&mut world, "one", "a", "three\n");
    writes(&mut world, "one", "b", "again\n");
    run(&mut world, "one", "rm -r c", |world| {
        fs::remove_file(world.root().join("c/new")).unwrap();
        fs::remove_dir(world.root().join("c")).unwrap();
    });
    world
}

/// What a restore to the beginning of the turn would do next to files. The clock of the world stands still
/// while the binary's goes on, and which of them made the directory `c` first is told by time alone.
fn rows_back(world: &mut World) -> Vec<String> {
    let plan = ours(world, &["restore", "1", "--dry-run"], 0).stdout;
    let is_file = |line: &&str| line.starts_with("  ") && !line.contains(" c/ ");
    plan.lines().filter(is_file).map(str::to_owned).collect()
}

#[test]
fn a_restore_to_a_step_killed_anywhere_is_finished_or_taken_back() {
    let then = [Some("two\n"), None, Some("new\n")].map(|it| it.map(str::to_owned));
    let now = [Some("three\n"), Some("again\n"), None].map(|it| it.map(str::to_owned));
    let files = |world: &World| ["a", "b", "c/new"].map(|path| text(world, path));
    let points =
        ["restore-begun", "apply-rename:1", "apply-rename:2", "restore-index", "restore-end"];
    let is_last = |at: usize| at + 1 == points.len();
    for (at, point) in points.iter().enumerate() {
        for goes_on in if is_last(at) { &[true, false][..] } else { &[true] } {
            let mut world = for_kills(if at % 2 == 0 { World::with_git() } else { World::new() });
            let command = ["restore", "1.4", "--yes"];
            let output = beforehand(&world, &world.root(), &command)
                .env("BEFOREHAND_TEST_CRASH_AT", point)
                .output()
                .unwrap();
            assert!(output.status.code().is_none(), "{point} is never reached: {output:?}");
            let end = if *goes_on { "--continue" } else { "--abort" };
            let done = world.run(&["restore", end]);
            assert_eq!(done.exit.code(), 0, "{point}: {}", done.stderr);
            assert_eq!(files(&world), if *goes_on { then.clone() } else { now.clone() }, "{point}");
            if *goes_on {
                let mut whole = for_kills(World::new());
                // By the same clock: the killed one made what it did by the machine's.
                let done = beforehand(&whole, &whole.root(), &command).output().unwrap();
                assert!(done.status.success(), "{point}: {done:?}");
                assert_eq!(rows_back(&mut world), rows_back(&mut whole), "{point}: one author");
                let done = world.run(&["undo", "--yes"]);
                assert_eq!(done.exit.code(), 0, "{point}: {}{}", done.stdout, done.stderr);
                assert_eq!(files(&world), now, "{point}: undo is the identity");
            }
        }
    }
}

/// A session that goes on in another project leaves nothing in the log of the first one.
#[test]
fn what_a_session_edits_in_another_project_is_no_work_of_its_turn_here() {
    let mut world = World::with_git();
    write(&world.settings(), "deadline = \"60s\"\n");
    writes(&mut world, "one", "a", "the agent's\n");
    let other = world.root().with_file_name("other");
    write(&other.join("f"), "first\n");
    git(&world, &other, "git init -q");
    let input = json!({ "file_path": other.join("f"), "content": "more\n" });
    for name in ["PreToolUse", "PostToolUse"] {
        world.wait(1);
        let payload = json!({
            "session_id": "s", "cwd": other, "hook_event_name": name, "tool_name": "Write",
            "tool_input": input, "tool_use_id": "x", "prompt_id": "two", "tool_response": {},
        });
        world.run_in(&other, &["hook", "--agent", "claude-code"], &payload.to_string());
        write(&other.join("f"), "more\n");
    }
    let shown = ours(&mut world, &["list", "--json"], 0).stdout;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!([&shown[0]["turn"], &shown[0]["changed"]], [&json!("one"), &json!(1)], "{shown}");
}
