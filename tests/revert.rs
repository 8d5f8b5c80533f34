//! `beforehand revert`: one turn is taken back, what was done since stays.

use std::{fs, os::unix::fs::PermissionsExt};

use beforehand::process::Exit;
use serde_json::{Value, json};

use crate::{
    evidence::{begins, ends, event, ours, run, writes},
    support::{
        real::git,
        temp::{chmod, link, on_disk, write},
        world::{Output, World},
    },
};

/// Ten lines, with some of them another way.
fn lines(changed: &[(usize, &str)]) -> String {
    let line = |n| match changed.iter().find(|(at, _)| *at == n) {
        Some((_, text)) => format!("{text}\n"),
        None => format!("line {n}\n"),
    };
    (1..=10).map(line).collect()
}

/// A project in both kinds of store, in which the session `s` is known to say when a call is done.
fn projects() -> [World; 2] {
    [World::new(), World::with_git()].map(|mut world| {
        write(&world.settings(), "deadline = \"60s\"\n");
        world.write("a", lines(&[]));
        world.write("b", lines(&[]));
        // So that their stamps prove something: an edit of a file with a younger one takes another checkpoint.
        std::thread::sleep(std::time::Duration::from_millis(50));
        run(&mut world, "zero", "make nothing", |_| ());
        world
    })
}

/// Reverts, and checks that the plan says the same and that an undo is the identity.
#[track_caller]
fn revert(world: &mut World, args: &[&str], exit: u8) -> Output {
    let before = on_disk(&world.root());
    let with = |more: &[&'static str]| {
        let dashes = args.iter().position(|arg| *arg == "--").unwrap_or(args.len());
        [&["revert"], &args[..dashes], more, &args[dashes..]].concat()
    };
    let plan = ours(world, &with(&["--dry-run", "--json"]), 0).stdout;
    assert!(on_disk(&world.root()) == before, "a dry run changes nothing");
    let done = ours(world, &with(&["--yes", "--json"]), exit);
    let parsed = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
    let (plan, came) = (parsed(&plan), parsed(&done.stdout));
    let acts = |value: &Value| -> Vec<String> {
        let steps = value["steps"].as_array().unwrap().iter();
        steps.map(|step| format!("{} {}", step["action"], step["path"])).collect()
    };
    assert_eq!(acts(&plan), acts(&came), "what is announced is what is done");
    let after = on_disk(&world.root());
    if before != after {
        ours(world, &["undo", "--yes"], 0);
        assert!(on_disk(&world.root()) == before, "undo is the identity");
        ours(world, &["redo", "--yes"], 0);
        assert!(on_disk(&world.root()) == after, "and redo is exact");
    }
    done
}

#[test]
fn one_turn_goes_and_what_came_after_it_stays() {
    for mut world in projects() {
        writes(&mut world, "one", "a", &lines(&[(1, "ONE")]));
        writes(&mut world, "two", "a", &lines(&[(1, "ONE"), (10, "TEN")]));
        world.write("a", lines(&[(1, "ONE"), (5, "mine"), (10, "TEN")]));
        world.write("mine", "mine");
        revert(&mut world, &["2"], 0);
        assert_eq!(world.read("a"), lines(&[(5, "mine"), (10, "TEN")]));
        assert_eq!([world.read("b"), world.read("mine")], [lines(&[]), "mine".to_owned()]);
        revert(&mut world, &["1"], 0);
        assert_eq!(world.read("a"), lines(&[(5, "mine")]));
        let again = ours(&mut world, &["revert", "1", "--yes"], 0).stdout;
        assert_eq!(again, "nothing that turn 1 changed in files is left to take back\n");
    }
}

#[test]
fn what_nobody_touched_since_goes_back_as_a_whole() {
    for mut world in projects() {
        let root = world.root();
        world.write("bin", "\0first");
        world.write("d/x", "x");
        link(&root.join("l"), "a");
        chmod(&root.join("b"), 0o644);
        let before = on_disk(&root);
        run(&mut world, "one", "make all", |world| {
            world.write("bin", "\0second");
            world.write("new/deep/file", "new");
            fs::remove_file(root.join("l")).unwrap();
            link(&root.join("l"), "b");
            chmod(&root.join("b"), 0o755);
            fs::remove_file(root.join("d/x")).unwrap();
            fs::remove_dir(root.join("d")).unwrap();
            world.write("a", "all of it");
        });
        writes(&mut world, "two", "later", "later");
        revert(&mut world, &["2"], 0);
        fs::remove_file(root.join("later")).unwrap();
        assert!(on_disk(&root) == before);
    }
}

#[test]
fn of_a_turn_that_was_undone_nothing_is_left() {
    for mut world in projects() {
        writes(&mut world, "one", "a", &lines(&[(3, "THREE"), (4, "FOUR")]));
        ours(&mut world, &["undo", "--yes"], 0);
        world.write("a", lines(&[(3, "mine")]));
        writes(&mut world, "two", "b", "two");
        let told = ours(&mut world, &["revert", "2", "--yes"], 0).stdout;
        assert_eq!(told, "nothing that turn 2 changed in files is left to take back\n");
        ours(&mut world, &["revert", "1", "--yes"], 0);
        assert_eq!([world.read("a"), world.read("b")], [lines(&[(3, "mine")]), lines(&[])]);
    }
}

#[test]
fn a_later_turn_is_not_named_for_what_you_changed_before_it() {
    for mut world in projects() {
        writes(&mut world, "one", "a", &lines(&[(3, "THREE")]));
        world.write("a", lines(&[(3, "mine")]));
        writes(&mut world, "two", "a", &lines(&[(3, "mine"), (9, "NINE")]));
        let plan = ours(&mut world, &["revert", "2", "--dry-run"], 0).stdout;
        assert!(plan.contains("keep      a   changed since, and conflicts"), "{plan}");
    }
}

#[test]
fn what_a_later_turn_builds_on_stays_and_the_turn_is_named() {
    for mut world in projects() {
        run(&mut world, "one", "make", |world| {
            world.write("a", lines(&[(3, "THREE")]));
            world.write("b", lines(&[(3, "THREE")]));
            world.write("new", "one\n");
            world.write("bin", "\0one");
        });
        writes(&mut world, "two", "a", &lines(&[(3, "THREE"), (9, "NINE")]));
        writes(&mut world, "three", "a", &lines(&[(3, "THREE!"), (9, "NINE")]));
        writes(&mut world, "three", "new", "one\ntwo\n");
        world.write("bin", "\0mine");
        let plan = ours(&mut world, &["revert", "3", "--dry-run"], 0).stdout;
        assert!(plan.contains("keep      a     turn 1 builds on this (--merge marks"), "{plan}");
        assert!(plan.contains("keep      bin   changed since, and conflicts"), "{plan}");
        assert!(plan.contains("keep      new   turn 1 builds on this\n"), "{plan}");
        let done = revert(&mut world, &["3"], 3).stdout;
        let done: Value = serde_json::from_str(&done).unwrap();
        assert_eq!(done["built_on"][0]["turn"], 1, "{done}");
        assert_eq!(world.read("a"), lines(&[(3, "THREE!"), (9, "NINE")]));
        assert_eq!(world.read("b"), lines(&[]), "what does not conflict goes");
        assert_eq!(["new", "bin"].map(|path| world.read(path)), ["one\ntwo\n", "\0mine"]);
        revert(&mut world, &["3", "--merge", "--", "a"], 3);
        let marked = world.read("a");
        assert!(marked.contains("<<<<<<<") && marked.contains("THREE!\n"), "{marked}");
        assert!(marked.contains("line 3\n") && marked.contains("NINE\n"), "{marked}");
    }
}

#[test]
fn a_conflict_with_the_user_is_said_to_be_one() {
    for mut world in projects() {
        writes(&mut world, "one", "a", &lines(&[(3, "THREE")]));
        world.write("a", lines(&[(3, "mine")]));
        let said = ours(&mut world, &["revert", "1", "--yes"], 3).stdout;
        assert!(said.contains("conflicts with it"), "{said}");
        assert_eq!(world.read("a"), lines(&[(3, "mine")]));
    }
}

#[test]
fn modes_and_bytes_are_taken_back_each_for_itself() {
    for mut world in projects() {
        let mode = |world: &World| {
            fs::metadata(world.root().join("a")).unwrap().permissions().mode() & 0o777
        };
        chmod(&world.root().join("a"), 0o644);
        run(&mut world, "one", "make", |world| chmod(&world.root().join("a"), 0o755));
        writes(&mut world, "two", "a", &lines(&[(2, "TWO")]));
        revert(&mut world, &["2"], 0);
        assert_eq!((mode(&world), world.read("a")), (0o644, lines(&[(2, "TWO")])));
        chmod(&world.root().join("a"), 0o600);
        revert(&mut world, &["1"], 0);
        assert_eq!((mode(&world), world.read("a")), (0o600, lines(&[])));
    }
}

#[test]
fn what_was_renamed_is_found() {
    for mut world in projects() {
        let root = world.root();
        // The turn renames, and another goes on with it.
        run(&mut world, "one", "mv a moved/a", |world| {
            fs::create_dir(root.join("moved")).unwrap();
            fs::rename(root.join("a"), world.root().join("moved/a")).unwrap();
        });
        writes(&mut world, "two", "moved/a", &lines(&[(9, "NINE")]));
        revert(&mut world, &["2"], 0);
        assert_eq!(world.read("a"), lines(&[(9, "NINE")]));
        assert!(!root.join("moved").exists());
        // The turn changes a file, and another renames it.
        writes(&mut world, "three", "b", &lines(&[(1, "ONE")]));
        run(&mut world, "four", "mv b c", |world| {
            fs::rename(root.join("b"), world.root().join("c")).unwrap();
        });
        world.write("c", lines(&[(1, "ONE"), (8, "mine")]));
        revert(&mut world, &["2"], 0);
        assert_eq!(world.read("c"), lines(&[(8, "mine")]));
        assert!(!root.join("b").exists());
    }
}

/// The paths that stay, and why.
fn kept_in(told: &str) -> Vec<(String, String)> {
    let told: Value = serde_json::from_str(told).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let steps = told["steps"].as_array().unwrap().iter().filter(|step| step["action"] == "keep");
    steps.map(|step| (text(&step["path"]), text(&step["why"]))).collect()
}

fn moves(world: &mut World, turn: &str, from: &str, to: &str) {
    run(world, turn, &format!("mv {from} {to}"), |world| {
        let [from, to] = [from, to].map(|path| world.root().join(path));
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::rename(from, to).unwrap();
    });
}

#[test]
fn what_the_turn_made_goes_by_whatever_name_later_calls_gave_it() {
    for mut world in projects() {
        writes(&mut world, "one", "made", "made\n");
        moves(&mut world, "two", "made", "d/made");
        moves(&mut world, "three", "d/made", "last");
        revert(&mut world, &["3"], 0);
        assert!(!world.root().join("last").exists());
        // Another goes on with it, or it took the place of another file.
        writes(&mut world, "four", "made", "made\n");
        moves(&mut world, "five", "made", "moved");
        writes(&mut world, "six", "moved", "made\nSIX\n");
        let kept = revert(&mut world, &["3"], 3).stdout;
        assert_eq!(kept_in(&kept), [("moved".to_owned(), "turn 1 builds on this".to_owned())]);
        writes(&mut world, "seven", "made", "made again\n");
        moves(&mut world, "eight", "made", "b");
        let kept = revert(&mut world, &["2"], 3).stdout;
        let why = "the turn left it, and turn 1 renamed it since";
        assert_eq!(kept_in(&kept), [("b".to_owned(), why.to_owned())]);
        assert_eq!(world.read("b"), "made again\n");
    }
}

#[test]
fn what_the_user_may_have_renamed_stays_and_is_named() {
    for mut world in projects() {
        writes(&mut world, "one", "made", "made\nby the turn\n");
        let [made, mine] = ["made", "mine"].map(|path| world.root().join(path));
        fs::rename(made, mine).unwrap();
        let kept = revert(&mut world, &["1"], 3).stdout;
        let why = "it seems to be what the turn left, renamed since";
        assert_eq!(kept_in(&kept), [("mine".to_owned(), why.to_owned())]);
        let said = ours(&mut world, &["undo"], 1).stderr;
        assert!(said.contains("of no turn and no restore is anything left to undo"), "{said}");
        assert_eq!(world.read("mine"), "made\nby the turn\n");
    }
}

#[test]
fn what_was_renamed_by_the_turn_and_again_is_a_conflict() {
    for mut world in projects() {
        moves(&mut world, "one", "a", "new");
        writes(&mut world, "one", "new", &lines(&[(1, "ONE")]));
        moves(&mut world, "two", "new", "d/newer");
        let kept = revert(&mut world, &["2"], 3).stdout;
        let why = "the turn left it, and turn 1 renamed it since";
        assert_eq!(kept_in(&kept), [("d/newer".to_owned(), why.to_owned())]);
        assert!(!world.root().join("a").exists());
        assert_eq!(world.read("d/newer"), lines(&[(1, "ONE")]));
    }
}

#[test]
fn a_directory_stays_with_what_others_put_in_it() {
    for mut world in projects() {
        writes(&mut world, "one", "new/x", "x");
        world.write("new/mine", "mine");
        revert(&mut world, &["1"], 0);
        assert_eq!(world.read("new/mine"), "mine");
        assert!(!world.root().join("new/x").exists());
    }
}

#[test]
fn what_the_user_did_in_the_middle_of_the_turn_stays() {
    for mut world in projects() {
        writes(&mut world, "one", "a", &lines(&[(1, "ONE")]));
        world.write("a", lines(&[(1, "ONE"), (5, "mine")]));
        writes(&mut world, "one", "a", &lines(&[(1, "ONE"), (5, "mine"), (10, "TEN")]));
        run(&mut world, "one", "make", |world| world.write("b", lines(&[(1, "ONE")])));
        world.write("b", lines(&[(1, "ONE"), (5, "mine")]));
        run(&mut world, "one", "make more", |world| {
            world.write("b", lines(&[(1, "ONE"), (5, "mine"), (10, "TEN")]));
        });
        revert(&mut world, &["1"], 0);
        for path in ["a", "b"] {
            assert_eq!(world.read(path), lines(&[(5, "mine")]), "{path}");
        }
    }
}

#[test]
fn turns_of_two_sessions_are_taken_back_one_by_one() {
    for mut world in projects() {
        run(&mut world, "other/zero", "make nothing", |_| ());
        begins(&mut world, "one", "make one");
        writes(&mut world, "other/two", "b", &lines(&[(2, "TWO")]));
        writes(&mut world, "other/two", "a", &lines(&[(2, "TWO")]));
        ends(&mut world, "one", "make one");
        writes(&mut world, "one", "a", &lines(&[(2, "TWO"), (9, "NINE")]));
        let listed = ours(&mut world, &["list", "--json"], 0).stdout;
        let listed: Value = serde_json::from_str(&listed).unwrap();
        let of = |session: &str| {
            let all = listed.as_array().unwrap();
            let found = all.iter().position(|row| row["session"] == session).unwrap();
            (found + 1).to_string()
        };
        let other = of("other");
        ours(&mut world, &["revert", &other, "--yes", "--", "a"], 0);
        assert_eq!(world.read("a"), lines(&[(9, "NINE")]));
        assert_eq!(world.read("b"), lines(&[(2, "TWO")]), "only what is named");
    }
}

#[test]
fn what_two_commands_at_once_may_have_made_is_of_neither() {
    for mut world in projects() {
        run(&mut world, "other/zero", "make nothing", |_| ());
        writes(&mut world, "one", "b", &lines(&[(2, "TWO")]));
        begins(&mut world, "one", "make one");
        begins(&mut world, "other/two", "make two");
        world.write("a", lines(&[(1, "ONE")]));
        ends(&mut world, "one", "make one");
        ends(&mut world, "other/two", "make two");
        let listed = ours(&mut world, &["list", "--json"], 0).stdout;
        let listed: Value = serde_json::from_str(&listed).unwrap();
        let is_one = |row: &Value| row["turn"] == "one";
        let number = listed.as_array().unwrap().iter().position(is_one).unwrap() + 1;
        let said = revert(&mut world, &[&number.to_string()], 3).stdout;
        assert!(said.contains("not known what the turn left"), "{said}");
        assert_eq!([world.read("a"), world.read("b")], [lines(&[(1, "ONE")]), lines(&[])]);
    }
}

#[test]
fn what_cannot_be_taken_back_is_refused_or_named() {
    for mut world in projects() {
        ours(&mut world, &["create", "-m", "mine"], 0);
        writes(&mut world, "one", "a", &lines(&[(1, "ONE")]));
        run(&mut world, "one", "make", |world| world.write("b", "b"));
        let before = on_disk(&world.root());
        for (given, said) in [
            ("9", "no checkpoint `9`"),
            ("1.1", "`1.1` is a step of a turn"),
            ("1.2", "`1.2` is a step of a turn"),
            ("2", "was taken by hand: it does not begin a turn"),
            ("ffff", "no checkpoint `ffff`"),
        ] {
            let done = ours(&mut world, &["revert", given, "--yes"], 1);
            assert!(done.stderr.contains(said), "{given}: {}", done.stderr);
        }
        begins(&mut world, "two", "make more");
        world.write("b", "half");
        let running = ours(&mut world, &["revert", "1", "--yes"], 1).stderr;
        assert!(running.contains("turn 1 is still running"), "{running}");
        world.write("b", "b");
        assert!(on_disk(&world.root()) == before);
    }
}

#[test]
fn what_a_call_that_was_cut_off_may_have_done_is_not_guessed() {
    for mut world in projects() {
        writes(&mut world, "one", "a", &lines(&[(1, "ONE")]));
        begins(&mut world, "one", "make");
        world.write("b", "perhaps");
        event(&mut world, "UserPromptSubmit", "two", "", &json!({}), "");
        writes(&mut world, "two", "later", "later");
        let said = ours(&mut world, &["revert", "2", "--yes"], 3).stdout;
        assert!(said.contains("1 conflict kept: b"), "{said}");
        assert_eq!(world.read("a"), lines(&[]), "that was seen");
        assert_eq!(world.read("b"), "perhaps");
    }
}

#[test]
fn a_file_of_which_the_later_state_is_not_held_stays_and_says_so() {
    for mut world in projects() {
        writes(&mut world, "one", "a", &lines(&[(1, "ONE")]));
        writes(&mut world, "one", "b", &lines(&[(1, "ONE")]));
        world.write("a", lines(&[(1, "ONE"), (9, "mine")]));
        let state = beforehand::state::StateDir::new(world.state());
        beforehand::fs::remove_tree(&state.root_at(&world.root()).contents()).unwrap();
        let said = ours(&mut world, &["revert", "1", "--dry-run"], 0).stdout;
        assert!(said.contains("what turn 1 left there is not held"), "{said}");
        revert(&mut world, &["1"], 3);
        assert_eq!(world.read("a"), lines(&[(1, "ONE"), (9, "mine")]));
        assert_eq!(world.read("b"), lines(&[]), "for this one its digest is enough");
    }
}

/// A person who goes on with a file right after a turn leaves no text of the turn; what is looked at
/// when the turn ends does.
#[test]
fn what_a_turn_left_is_looked_at_when_it_ends() {
    for mut world in projects() {
        run(&mut world, "one", "make", |world| world.write("a", lines(&[(1, "ONE")])));
        drop(world.started());
        event(&mut world, "Stop", "one", "", &json!({}), "");
        world.run_started();
        let state = beforehand::state::StateDir::new(world.state());
        beforehand::fs::remove_tree(&state.root_at(&world.root()).contents()).unwrap();
        world.write("a", lines(&[(1, "ONE"), (9, "mine")]));
        writes(&mut world, "two", "b", "later");
        revert(&mut world, &["2"], 0);
        assert_eq!(world.read("a"), lines(&[(9, "mine")]));
    }
}

#[test]
fn a_slash_command_reverts() {
    let [mut world, _] = projects();
    writes(&mut world, "one", "a", &lines(&[(1, "ONE")]));
    writes(&mut world, "two", "a", &lines(&[(1, "ONE"), (9, "NINE")]));
    let slash = |world: &World, text: &str| {
        let stdin = format!("{text}\nBEFOREHAND_END\n");
        let output = world.run_in(&world.root(), &["slash", "revert", "--stdin"], &stdin);
        assert_eq!((output.exit, &*output.stderr), (Exit::Ok, ""), "{text}");
        output.stdout
    };
    assert!(slash(&world, "").ends_with("\n/revert N\n"));
    let said = slash(&world, "2 a");
    assert!(said.contains("reverted 1 path of turn 2\nundo with: beforehand undo"), "{said}");
    assert_eq!(world.read("a"), lines(&[(9, "NINE")]));
    assert!(slash(&world, "a").starts_with("error: "));
}

/// Empty files, single words, a copy that a person made: none of them is what the turn made, renamed.
#[test]
fn what_is_only_alike_is_no_rename() {
    for mut world in projects() {
        world.write("word", "one\n");
        world.write("gone", "keep\n");
        run(&mut world, "one", "make", |world| {
            for path in ["made/.keep", "empty"] {
                world.write(path, "");
            }
            world.write("word", "two\n");
            fs::remove_file(world.root().join("gone")).unwrap();
            world.write("long", lines(&[]));
        });
        world.write("long.bak", lines(&[]));
        world.write("mine/__init__.py", "");
        world.write("other", "person\n");
        for path in ["made/.keep", "empty", "word", "long"] {
            fs::remove_file(world.root().join(path)).unwrap();
        }
        let done = revert(&mut world, &["1"], 3);
        assert!(done.stdout.contains("word"), "{}", done.stdout);
        assert_eq!(world.read("gone"), "keep\n");
        let theirs = ["mine/__init__.py", "other", "long.bak"].map(|path| world.read(path));
        assert_eq!(theirs, [String::new(), "person\n".to_owned(), lines(&[])]);
    }
}

/// A person's directory, and a person's file, in the middle of the turn, that the agent put something else
/// in the place of.
#[test]
fn what_was_replaced_in_mid_turn_comes_back_and_the_undo_is_exact() {
    for mut world in projects() {
        writes(&mut world, "one", "a", "the agent's");
        fs::create_dir(world.root().join("dir")).unwrap();
        world.write("file", "mine");
        run(&mut world, "one", "rmdir dir; rm file; mkdir file", |world| {
            fs::remove_dir(world.root().join("dir")).unwrap();
            fs::remove_file(world.root().join("file")).unwrap();
            world.write("dir", "the agent's");
            world.write("file/x", "the agent's");
        });
        revert(&mut world, &["1"], 0);
        assert_eq!([world.read("a"), world.read("file")], [lines(&[]), "mine".to_owned()]);
        assert!(world.root().join("dir").is_dir());
    }
}

/// What a revert leaves: a repository and a branch. And what it knows nothing of.
#[test]
fn what_a_revert_cannot_take_back_is_named() {
    let mut world = crate::reports_of_others::nested();
    let line = "rm -rf sub/.git; git branch -D br; echo x > a";
    git(&world, &world.root(), "git branch br");
    run(&mut world, "one", line, |world| drop(git(world, &world.root(), line)));
    for args in [&["revert", "1", "--dry-run"][..], &["revert", "1", "--yes"]] {
        let told = ours(&mut world, args, 0).stdout;
        assert!(told.contains("left: sub/.git, a repository that is gone"), "{told}");
        assert!(told.contains("gone since: br; "), "{told}");
    }
    let logs = world.state().join("roots");
    for path in on_disk(&logs).into_keys().map(|path| String::from_utf8(path).unwrap()) {
        if path.contains("/attribution/log") {
            fs::remove_file(logs.join(path)).unwrap();
        }
    }
    let told = ours(&mut world, &["revert", "1", "--yes"], 1).stderr;
    assert!(told.contains("what the turn did is not known"), "{told}");
}

#[test]
fn a_repository_that_a_turn_made_stays_and_is_named() {
    let mut world = crate::reports_of_others::nested();
    let line = "git init -q new && cd new && echo x > x && git add x && git commit -qm x";
    run(&mut world, "one", line, |world| drop(git(world, &world.root(), line)));
    git(&world, &world.root(), "git init -q mine");
    for args in [&["revert", "1", "--dry-run"][..], &["revert", "1", "--yes"]] {
        let told = ours(&mut world, args, 0).stdout;
        assert!(told.contains("new/.git") && !told.contains("mine"), "{told}");
    }
    assert!(!world.root().join("new/x").exists() && world.root().join("new/.git/HEAD").exists());
    let plan = ours(&mut world, &["restore", "1", "--dry-run"], 0).stdout;
    assert!(!plan.contains("--exact"), "{plan}");
}

/// Where a checkpoint in the background stands among the calls is not known: it begins at some time, and reads
/// each file at a later one.
#[test]
fn what_a_checkpoint_read_after_a_call_that_it_began_before_is_not_the_work_of_others() {
    for mut world in projects() {
        writes(&mut world, "other/one", "b", &lines(&[(1, "ONE")]));
        writes(&mut world, "one", "a", &lines(&[(1, "ONE")]));
        event(&mut world, "Stop", "other/one", "", &json!({}), "");
        writes(&mut world, "one", "c", "made");
        world.wait(-2);
        world.run_started();
        world.wait(2);
        event(&mut world, "Stop", "one", "", &json!({}), "");
        let taken = ours(&mut world, &["list", "--all"], 0).stdout;
        assert!(taken.contains("between turns"), "{taken}");
        revert(&mut world, &["1"], 0);
        assert_eq!(world.read("a"), lines(&[]));
        assert!(!world.root().join("c").exists());
    }
}

/// The turn renames a file, the user goes on with it, and the turn renames it on.
#[test]
fn what_the_user_did_between_two_renames_of_the_turn_goes_back_with_the_file() {
    for mut world in projects() {
        for (line, from, to) in
            [("", "a", "b1"), ("mine\n", "b1", "c1"), ("mine too\n", "c1", "d1")]
        {
            let text = world.read(from) + line;
            world.write(from, text);
            moves(&mut world, "one", from, to);
        }
        let whole = lines(&[]) + "mine\nmine too\n";
        assert_eq!(world.read("d1"), whole);
        // What the redo puts back says nothing of what is there before the turn and after it.
        ours(&mut world, &["undo", "--yes"], 3);
        ours(&mut world, &["redo", "--yes"], 0);
        revert(&mut world, &["1"], 0);
        assert_eq!(world.read("a"), whole);
        assert!(["b1", "c1", "d1"].iter().all(|path| !world.root().join(path).exists()));
    }
}

/// What others put into a file that the turn made stays with it, whatever it is called.
#[test]
fn a_file_that_the_turn_made_and_renamed_stays_if_others_had_a_part_in_it() {
    for mut world in projects() {
        writes(&mut world, "one", "b1", "1\n2\n3\n4\n");
        world.write("b1", "1\n2\n3\n4\nmine\n");
        moves(&mut world, "one", "b1", "c1");
        let told = revert(&mut world, &["1"], 3).stdout;
        assert_eq!(kept_in(&told).len(), 1, "{told}");
        assert_eq!(world.read("c1"), "1\n2\n3\n4\nmine\n");
    }
}

/// The turn moves a file over another and back, and the user changes it in between: it is not as it was before.
#[test]
fn what_the_user_did_to_a_file_that_was_moved_away_and_back_stays() {
    for mut world in projects() {
        moves(&mut world, "one", "a", "c");
        let text = world.read("c") + "mine\n";
        world.write("c", &text);
        moves(&mut world, "one", "c", "a");
        let told = revert(&mut world, &["1"], 3).stdout;
        assert_eq!(kept_in(&told).len(), 2, "{told}");
        assert_eq!(world.read("a"), text);
    }
}

/// An agent that reports no ends of calls is looked at before its next call: until then its call may run.
#[test]
fn the_turn_of_an_agent_that_reports_no_ends_is_taken_back() {
    for mut world in [World::new(), World::with_git()] {
        world.write("a", "first\n");
        for (turn, text) in [("one", "second\n"), ("one", "third\n"), ("two", "third\n")] {
            world.wait(1);
            world.before_bash(turn, "make");
            world.write("a", text);
        }
        revert(&mut world, &["2"], 0);
        assert_eq!(world.read("a"), "first\n");
    }
}
