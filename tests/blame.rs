//! `beforehand blame`: each line has the writer that alone can have written it, or none.

use std::fs;

use beforehand::{
    fs::{now_ns, stat_path},
    scan::is_racy,
};
use serde_json::{Value, json};

use crate::{
    evidence::{begins, ends, event, ours, run, warm, writes},
    support::{
        real::git,
        temp::{link, noise, write},
        world::World,
    },
};

/// A project in both kinds of store, in which the session `s` is known to say when a call is done.
fn projects() -> [World; 2] {
    [World::new(), World::with_git()].map(|mut world| {
        write(&world.settings(), "deadline = \"60s\"\n");
        world.write("a", "one\ntwo\nthree\n");
        run(&mut world, "zero", "make nothing", |_| ());
        world
    })
}

/// The writer of each line of a file, in a word: a turn by its name.
pub(crate) fn writers(world: &mut World, path: &str) -> Vec<String> {
    let told = ours(world, &["blame", path, "--json"], 0).stdout;
    let told: Value = serde_json::from_str(&told).unwrap();
    let writer = |line: &Value| match line["writer"].as_str().unwrap() {
        "turn" => line["turn"]["turn"].as_str().unwrap().to_owned(),
        other => other.to_owned(),
    };
    told["lines"].as_array().unwrap().iter().map(writer).collect()
}

#[test]
fn a_line_is_the_turns_yours_or_older() {
    for mut world in projects() {
        writes(&mut world, "one", "a", "one\nONE\ntwo\nthree\n");
        world.write("a", "one\nONE\ntwo\nmine\nthree\n");
        run(&mut world, "two", "make", |world| {
            world.write("a", "one\nONE\ntwo\nmine\nthree\nTWO\n");
            world.write("new", "TWO\n");
        });
        world.write("a", "mine\none\nONE\ntwo\nmine\nthree\nTWO\n");
        let expected = ["you", "before", "one", "before", "you", "before", "two"];
        assert_eq!(writers(&mut world, "a"), expected);
        assert_eq!(writers(&mut world, "new"), ["two"]);
    }
}

#[test]
fn what_a_restore_brings_back_has_the_writer_it_had() {
    for mut world in projects() {
        writes(&mut world, "one", "a", "one\nONE\ntwo\nthree\n");
        world.write("a", "one\nONE\ntwo\nmine\nthree\n");
        run(&mut world, "two", "make", |world| world.write("a", "TWO\n"));
        ours(&mut world, &["undo", "--yes"], 0);
        let expected = ["before", "one", "before", "you", "before"];
        assert_eq!(writers(&mut world, "a"), expected);
        ours(&mut world, &["redo", "--yes"], 0);
        assert_eq!(writers(&mut world, "a"), ["two"]);
        ours(&mut world, &["undo", "--yes"], 0);
        ours(&mut world, &["revert", "2", "--yes"], 0);
        assert_eq!(world.read("a"), "one\ntwo\nmine\nthree\n");
        assert_eq!(writers(&mut world, "a"), ["before", "before", "you", "before"]);
    }
}

/// What a merge left is held until the next checkpoint has it, and what a revert renames back keeps its writers.
#[test]
fn what_a_restore_merged_or_renamed_has_the_writers_it_had() {
    for mut world in projects() {
        writes(&mut world, "one", "a", "one\nONE\ntwo\nthree\n");
        writes(&mut world, "two", "a", "one\nONE\ntwo\nthree\nTWO\n");
        ours(&mut world, &["revert", "2", "--yes"], 0);
        world.write("a", "mine\none\ntwo\nthree\nTWO\n");
        let expected = ["you", "before", "before", "before", "two"];
        assert_eq!(writers(&mut world, "a"), expected);
        let root = world.root();
        run(&mut world, "three", "mv a b", |_| {
            fs::rename(root.join("a"), root.join("b")).unwrap();
        });
        writes(&mut world, "four", "b", "mine\none\ntwo\nthree\nTWO\nFOUR\n");
        ours(&mut world, &["revert", "2", "--yes"], 0);
        assert_eq!(world.read("a"), "mine\none\ntwo\nthree\nTWO\nFOUR\n");
        assert_eq!(writers(&mut world, "a"), [&expected[..], &["four"]].concat());
    }
}

/// What another session may have changed, or an undo brought back, was there before it had its new name.
#[test]
fn who_renames_a_file_has_not_written_its_lines_whoever_else_may_have_had_a_part() {
    for mut world in projects() {
        let root = world.root();
        let renames = |from: &str, to: &str| fs::rename(root.join(from), root.join(to)).unwrap();
        let input = json!({ "file_path": root.join("a"), "content": "" });
        event(&mut world, "PreToolUse", "t/open", "Edit", &input, "open");
        run(&mut world, "one", "mv a b", |_| renames("a", "b"));
        assert_eq!(writers(&mut world, "b"), ["unknown"; 3]);
        begins(&mut world, "t/open", "make");
        run(&mut world, "two", "mv b c", |_| renames("b", "c"));
        assert_eq!(writers(&mut world, "c"), ["unknown"; 3]);
        let told = ours(&mut world, &["blame", "c", "--json"], 0).stdout;
        let told: Value = serde_json::from_str(&told).unwrap();
        let candidates = told["lines"][0]["candidates"].as_array().unwrap();
        assert!(candidates.len() > 1, "{told}");
    }
    for mut world in projects() {
        let root = world.root();
        let renames = |from: &str, to: &str| fs::rename(root.join(from), root.join(to)).unwrap();
        writes(&mut world, "one", "other", "ONE\n");
        renames("a", "mine");
        ours(&mut world, &["undo", "--yes"], 0);
        run(&mut world, "two", "make", |_| renames("mine", "b"));
        assert_eq!(writers(&mut world, "b"), ["before"; 3]);
    }
}

/// Lines that one call moved on, and put others in their place.
#[test]
fn lines_that_left_a_file_that_was_replaced_have_their_writers_or_none() {
    for mut world in projects() {
        world.write("a", "the first line\nthe second line\n");
        writes(&mut world, "one", "other", "ONE\n");
        run(&mut world, "two", "mv a b; printf new > a", |world| {
            fs::rename(world.root().join("a"), world.root().join("b")).unwrap();
            world.write("a", "new text\n");
        });
        assert_eq!(writers(&mut world, "b"), ["you"; 2]);
        assert_eq!(writers(&mut world, "a"), ["two"]);
    }
}

/// Of two names that it had, it came from the last one; of two files that are the same, from either.
#[test]
fn a_file_that_is_renamed_twice_in_a_turn_keeps_its_writers() {
    for mut world in projects() {
        writes(&mut world, "one", "a", "one\nONE\ntwo\n");
        writes(&mut world, "two", "same", "one\nONE\ntwo\n");
        let root = world.root();
        for (from, to) in [("a", "b"), ("b", "c")] {
            run(&mut world, "three", "make", |_| {
                fs::rename(root.join(from), root.join(to)).unwrap();
            });
        }
        assert_eq!(writers(&mut world, "c"), ["before", "one", "before"]);
        run(&mut world, "four", "make", |_| {
            fs::rename(root.join("c"), root.join("d")).unwrap();
            fs::remove_file(root.join("same")).unwrap();
        });
        assert_eq!(writers(&mut world, "d"), ["unknown"; 3]);
    }
}

#[test]
fn what_several_may_have_written_is_nobodys_and_they_are_named() {
    for mut world in projects() {
        begins(&mut world, "one", "make");
        world.write("a", "one\ntwo\nthree\nperhaps mine\n");
        writes(&mut world, "two", "b", "TWO\n");
        world.write("a", "one\ntwo\nthree\nperhaps mine\nmine\n");
        let expected = ["before", "before", "before", "unknown", "you"];
        assert_eq!(writers(&mut world, "a"), expected);
        let said = ours(&mut world, &["blame", "a"], 0);
        assert!(said.stderr.contains("unknown  one of: turn 2, you\n"), "{}", said.stderr);
        let told = ours(&mut world, &["blame", "a", "-L", "4,4", "--json"], 0).stdout;
        let told: Value = serde_json::from_str(&told).unwrap();
        let candidates = &told["lines"][0]["candidates"];
        assert_eq!((&candidates[0]["turn"], &candidates[1]), (&json!("one"), &json!("you")));
    }
}

#[test]
fn what_two_commands_at_once_left_is_of_neither() {
    for mut world in projects() {
        begins(&mut world, "s/one", "make");
        begins(&mut world, "t/two", "make more");
        world.write("a", "one\ntwo\nthree\nNEW\n");
        world.write("c", "C\n");
        ends(&mut world, "s/one", "make");
        ends(&mut world, "t/two", "make more");
        assert_eq!(writers(&mut world, "a")[3], "unknown");
        writes(&mut world, "t/two", "a", "one\ntwo\nthree\nNEW\nTWO\n");
        assert_eq!(writers(&mut world, "a")[3..], ["unknown", "two"]);
    }
}

/// The look after a command does not note again what was noted of another call meanwhile.
#[test]
fn what_was_written_while_a_command_ran_is_not_called_the_users() {
    for mut world in [World::new(), World::with_git()] {
        write(&world.settings(), "deadline = \"60s\"\n");
        world.write("a", "one\n");
        begins(&mut world, "s/one", "make all");
        writes(&mut world, "t/two", "new", "TWO\n");
        // It takes a checkpoint, and the look after the other command finds nothing changed since, as far as a
        // stamp tells: at once it would tell nothing.
        let stamps = [world.root(), world.root().join("new")].map(|it| stat_path(&it).unwrap());
        while stamps.iter().any(|stamp| is_racy(stamp, now_ns())) {
            std::thread::yield_now();
        }
        run(&mut world, "t/two", "make more", |_| ());
        event(&mut world, "Stop", "t/two", "", &json!({}), "");
        ends(&mut world, "s/one", "make all");
        event(&mut world, "Stop", "s/one", "", &json!({}), "");
        assert_eq!(writers(&mut world, "new"), ["two"], "its edit names the file");
    }
}

#[test]
fn a_renamed_file_keeps_the_writers_of_its_lines() {
    for mut world in projects() {
        let root = world.root();
        writes(&mut world, "one", "a", "one\ntwo\nthree\nONE\n");
        run(&mut world, "two", "mv a b", |world| {
            fs::rename(root.join("a"), root.join("b")).unwrap();
            world.write("b", "one\ntwo\nthree\nONE\nTWO\n");
        });
        assert_eq!(writers(&mut world, "b"), ["before", "before", "before", "one", "two"]);
        fs::rename(root.join("b"), root.join("c")).unwrap();
        world.write("c", "one\ntwo\nthree\nONE\nTWO\nmine\n");
        let expected = ["before", "before", "before", "one", "two", "you"];
        assert_eq!(writers(&mut world, "c"), expected);
        run(&mut world, "three", "make", |_| ());
        assert_eq!(writers(&mut world, "c"), expected, "as it was seen later");
        let told = ours(&mut world, &["blame", "c", "-L", "4,4", "--json"], 0).stdout;
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!(
            (&told["lines"][0]["path"], &told["lines"][0]["path_line"]),
            (&json!("a"), &json!(4))
        );
    }
}

#[test]
fn where_a_part_of_the_log_is_lost_only_what_is_older_is_known() {
    for mut world in projects() {
        writes(&mut world, "one", "a", "one\ntwo\nthree\nONE\n");
        let roots = fs::read_dir(world.state().join("roots")).unwrap();
        let log =
            roots.map(|root| root.unwrap().path().join("attribution/log")).find(|it| it.exists());
        let log = log.unwrap();
        let text = fs::read_to_string(&log).unwrap();
        write(&log, text + "\n{\"at\":\n");
        assert_eq!(writers(&mut world, "a"), ["before", "before", "before", "unknown"]);
        let said = ours(&mut world, &["blame", "a"], 0).stderr;
        assert!(said.contains("a part of the log of calls cannot be read"), "{said}");
    }
}

#[test]
fn a_file_written_anew_where_the_user_had_removed_it_is_the_turns() {
    for mut world in projects() {
        writes(&mut world, "one", "a", "ONE\n");
        fs::remove_file(world.root().join("a")).unwrap();
        writes(&mut world, "one", "a", "one\nONE\n");
        assert_eq!(writers(&mut world, "a"), ["one", "one"]);
    }
}

#[test]
fn where_not_every_call_is_noted_nothing_is_said_to_be_the_users() {
    for mut world in projects() {
        write(&world.settings(), "deadline = \"60s\"\n[triggers]\nbefore_shell = \"never\"\n");
        world.write("a", "one\ntwo\nthree\nperhaps mine\n");
        writes(&mut world, "one", "a", "one\ntwo\nthree\nperhaps mine\nONE\n");
        assert_eq!(writers(&mut world, "a")[2..], ["before", "unknown", "one"]);
    }
}

#[test]
fn what_cannot_be_blamed_is_refused() {
    for mut world in projects() {
        world.write("binary", "a\0b");
        world.write("empty", "");
        link(&world.root().join("link"), "a");
        fs::create_dir(world.root().join("dir")).unwrap();
        let said = |world: &mut World, args: &[&str], exit| ours(world, args, exit).stderr;
        for (file, why) in [
            ("binary", "`binary` is a binary file"),
            ("link", "`link` is no file"),
            ("dir", "`dir` is no file"),
            ("none", "`none` is not there"),
            ("/etc/passwd", "`/etc/passwd` is no file of "),
        ] {
            let said = said(&mut world, &["blame", file], 1);
            assert!(said.contains(why) && said.contains("hint: "), "{said}");
        }
        assert!(said(&mut world, &["blame", "a", "-L", "9"], 1).contains("`a` has only 3 lines"));
        assert!(said(&mut world, &["blame", "a", "-L", "3,2"], 64).contains("no range of lines"));
        assert_eq!(writers(&mut world, "empty"), [""; 0]);
    }
    let mut world = World::new();
    world.write("a", "a");
    assert!(ours(&mut world, &["blame", "a"], 1).stderr.contains("no checkpoints yet"));
}

#[test]
fn a_large_text_that_is_not_kept_leaves_its_lines_unknown_until_it_is_held() {
    for mut world in projects() {
        let line = |n: u64| format!("{:?}\n", noise(n, 64));
        let large: String = (0..1_000).map(line).collect();
        assert!(large.len() > 256 << 10, "no more is kept of what a command left");
        world.write("large", &large);
        run(&mut world, "one", "make", |world| world.write("large", large.clone() + "ONE\n"));
        world.write("large", large.clone() + "ONE\nmine\n");
        run(&mut world, "two", "make", |world| {
            world.write("large", large.clone() + "ONE\nmine\nTWO\n");
        });
        let told = writers(&mut world, "large");
        assert_eq!(told[999..], ["you", "unknown", "unknown", "two"]);
    }
}

/// A history with a prompt, and one of each writer.
fn story() -> World {
    let mut world = World::new();
    write(&world.settings(), "deadline = \"60s\"\n");
    world.write("src/cart.ts", "export function total(items) {\n  return 0\n}\n");
    run(&mut world, "zero", "make nothing", |_| ());
    let prompt =
        |world: &mut World, turn| event(world, "UserPromptSubmit", turn, "", &json!({}), "");
    prompt(&mut world, "one");
    let new = "export function total(items) {\n  // a line that is longer than the terminal is \
               wide, as lines are now and then\n  return 0\n}\n";
    writes(&mut world, "one", "src/cart.ts", new);
    world.write("src/cart.ts", new.replace("return 0", "return 1"));
    prompt(&mut world, "two");
    begins(&mut world, "two", "make");
    world.write("src/cart.ts", new.replace("return 0", "return 1") + "// \u{1b}[31m\n");
    world
}

#[test]
fn blame_fits_a_terminal() {
    let mut world = story();
    world.terminal.stdout = true;
    world.terminal.columns = Some(80);
    insta::assert_snapshot!(world.see(&["blame", "src/cart.ts"]));
}

#[test]
fn blame_is_read_by_what_reads_gits() {
    let mut world = story();
    let said = world.see(&["blame", "src/cart.ts", "--porcelain"]);
    let id = regex::Regex::new("[a-f][0-9a-f]{15}0{24}").unwrap();
    insta::assert_snapshot!(id.replace_all(&said, "ID-WITH-24-ZEROS"));
}

/// The first word of each line; ids by the order in which they come, with their numbers.
fn porcelain_shape(said: &str) -> Vec<String> {
    let mut ids: Vec<&str> = Vec::new();
    let shape = said.lines().map(|line| match line.split_once(' ') {
        _ if line.starts_with('\t') => line.to_owned(),
        Some((id, numbers)) if id.len() == 40 => {
            let known = ids.iter().position(|it| *it == id);
            let at = known.unwrap_or_else(|| {
                ids.push(id);
                ids.len() - 1
            });
            format!("{at}: {numbers}")
        }
        Some((name, _)) => name.to_owned(),
        None => line.to_owned(),
    });
    shape.filter(|line| line != "previous").collect()
}

#[test]
fn porcelain_has_the_shape_of_gits() {
    let [_, mut world] = projects();
    let root = world.root();
    git(&world, &root, "git add a && git commit -qm zero");
    writes(&mut world, "one", "a", "one\nONE\ntwo\nthree\nfour\nfive\n");
    git(&world, &root, "git commit -qam one");
    let gits = git(&world, &root, "git blame --porcelain a");
    let ours = ours(&mut world, &["blame", "a", "--porcelain"], 0).stdout;
    assert_eq!(porcelain_shape(&ours), porcelain_shape(&gits), "{ours}\n{gits}");
}

#[test]
fn a_file_that_the_user_renamed_between_turns_keeps_its_writers() {
    let old = "one\ntwo\nthree\n";
    for mut world in projects() {
        writes(&mut world, "one", "a", &format!("{old}ONE\n"));
        warm(&mut world, &["--ended"]);
        fs::rename(world.root().join("a"), world.root().join("moved")).unwrap();
        let expected = ["before", "before", "before", "one"];
        assert_eq!(writers(&mut world, "moved"), expected, "before it was noted");
        warm(&mut world, &[]);
        assert_eq!(writers(&mut world, "moved"), expected, "noted at the prompt");
        world.write("moved", format!("{old}ONE\nmine\n"));
        let expected = ["before", "before", "before", "one", "you"];
        assert_eq!(writers(&mut world, "moved"), expected, "changed since");
        writes(&mut world, "two", "b", "TWO\n");
        assert_eq!(writers(&mut world, "moved"), expected, "after a call");
        writes(&mut world, "two", "moved", &format!("{old}ONE\nmine\nTWO\n"));
        let expected = ["before", "before", "before", "one", "you", "two"];
        assert_eq!(writers(&mut world, "moved"), expected, "after an edit of it");
    }
}

#[test]
fn a_program_that_was_run_is_called_by_its_name() {
    for mut world in projects() {
        world.edits(|text| format!("{text}RUN\n"));
        let file = world.root().join("a");
        ours(&mut world, &["run", "--name", "the codemod", "edit", file.to_str().unwrap()], 0);
        let said = ours(&mut world, &["blame", "a"], 0);
        let told = said.stdout + &said.stderr;
        assert!(told.contains("beforehand run, ") && told.contains(": the codemod\n"), "{told}");
        let porcelain = ours(&mut world, &["blame", "a", "--porcelain"], 0).stdout;
        assert!(porcelain.contains("author beforehand run\n"), "{porcelain}");
    }
}

#[test]
fn a_line_of_yours_has_the_time_by_which_it_was_there() {
    for mut world in projects() {
        writes(&mut world, "one", "b", "ONE\n");
        let before = world.now;
        world.wait(600);
        world.write("a", "one\nmine\ntwo\nthree\n");
        let time = |world: &mut World| {
            let told = ours(world, &["blame", "a", "-L", "2,2", "--porcelain"], 0).stdout;
            let line = told.lines().find_map(|line| line.strip_prefix("author-time ")).unwrap();
            line.parse::<i64>().unwrap()
        };
        assert_eq!(time(&mut world), world.now.timestamp(), "now");
        writes(&mut world, "two", "b", "TWO\n");
        let until = world.now.timestamp();
        world.wait(600);
        assert!((before.timestamp() + 600..=until).contains(&time(&mut world)));
        let told = ours(&mut world, &["blame", "a", "-L", "2,2", "--json"], 0).stdout;
        let told: Value = serde_json::from_str(&told).unwrap();
        let [since, until] =
            ["since", "until"].map(|key| told["lines"][0][key].as_str().unwrap().to_owned());
        assert!(since < until, "{told}");
    }
}

#[test]
fn a_range_of_an_empty_file_is_refused_as_git_does() {
    let [mut world, _] = projects();
    world.write("empty", "");
    let said = ours(&mut world, &["blame", "empty", "-L", "1,1"], 1).stderr;
    assert!(said.contains("`empty` has only 0 lines"), "{said}");
    assert_eq!(ours(&mut world, &["blame", "empty"], 0).stdout, "");
}

/// Two files change places, or one is moved and written anew: the mover wrote none of the lines that moved.
#[test]
fn lines_that_moved_to_another_file_are_never_the_movers() {
    for mut world in projects() {
        let lines = |word: &str| [1, 2, 3, 4, 5, 6].map(|n| format!("{word} {n}\n")).concat();
        let [old, other] = ["alpha", "beta"].map(lines);
        writes(&mut world, "one", "x", &old);
        writes(&mut world, "two", "y", &other);
        let root = world.root();
        let swap = || {
            for (from, to) in [("x", "z"), ("y", "x"), ("z", "y")] {
                fs::rename(root.join(from), root.join(to)).unwrap();
            }
        };
        swap();
        for path in ["x", "y"] {
            assert!(
                writers(&mut world, path).iter().all(|it| it == "unknown"),
                "swapped by the user"
            );
        }
        run(&mut world, "three", "make swap", |_| swap());
        for path in ["x", "y"] {
            let found = writers(&mut world, path);
            assert!(found.iter().all(|it| it != "three" && it != "you"), "{found:?}");
        }
        run(&mut world, "four", "make rewrite", |world| {
            fs::remove_file(root.join("x")).unwrap();
            world.write("new", format!("{}{}", &old[..16], "written anew\n".repeat(9)));
        });
        let found = writers(&mut world, "new");
        assert_eq!(&found[..2], ["unknown", "unknown"]);
        assert!(found[2..].iter().all(|it| it == "four"), "{found:?}");
    }
}

/// However short it is, a file that goes and one that comes with the same bytes are one.
#[test]
fn a_renamed_file_of_one_line_keeps_its_writer() {
    for mut world in projects() {
        world.write("old", "x\n");
        run(&mut world, "zero", "make nothing", |_| ());
        run(&mut world, "one", "mv old new", |world| {
            fs::rename(world.root().join("old"), world.root().join("new")).unwrap();
        });
        assert_eq!(writers(&mut world, "new"), ["you"]);
    }
}

/// A file that is moved over another one is itself, whatever was there.
#[test]
fn a_file_that_is_moved_over_another_keeps_its_writers() {
    for mut world in projects() {
        world.write("like it", "1\n2\n3\nfour\n");
        world.write("another", "x\n");
        for over in ["like it", "another"] {
            world.write("old", "1\n2\n3\nfive\n");
            run(&mut world, "before it", "make nothing", |_| ());
            run(&mut world, "one", "make", |world| {
                let [old, over] = ["old", over].map(|path| world.root().join(path));
                fs::rename(old, over).unwrap();
            });
            assert!(!writers(&mut world, over).contains(&"one".to_owned()), "{over}");
        }
    }
}

/// A turn writes again what the user had taken back. Both turns found the same state, and share its checkpoint.
#[test]
fn a_line_that_is_written_again_is_the_later_turns() {
    for mut world in projects() {
        writes(&mut world, "one", "a", "one\nONE\nthree\n");
        world.write("a", "one\ntwo\nthree\n");
        writes(&mut world, "two", "a", "one\nONE\nthree\n");
        assert_eq!(writers(&mut world, "a"), ["before", "two", "before"]);
    }
}

/// Nothing is gone then: both are there, and are the other one.
#[test]
fn files_that_change_their_names_with_each_other_keep_their_writers() {
    for mut world in projects() {
        world.write("p", "p1\np2\np3\n");
        world.write("q", "q1\nq2\nq3\n");
        run(&mut world, "zero", "make nothing", |_| ());
        run(&mut world, "one", "make", |world| world.write("p", "p1\np2\np3\nT\n"));
        run(&mut world, "one", "make more", |world| {
            let [p, q, t] = ["p", "q", "t"].map(|path| world.root().join(path));
            for (from, to) in [(&p, &t), (&q, &p), (&t, &q)] {
                fs::rename(from, to).unwrap();
            }
        });
        assert_eq!(writers(&mut world, "p"), ["you"; 3]);
        assert_eq!(writers(&mut world, "q"), ["you", "you", "you", "one"]);
    }
}

/// A file that is moved away and back is the same.
#[test]
fn a_file_that_a_turn_moves_away_and_back_keeps_its_writers() {
    for mut world in projects() {
        for (number, (from, to)) in [("a", "t"), ("t", "a")].into_iter().enumerate() {
            run(&mut world, "one", &format!("make {number}"), |world| {
                fs::rename(world.root().join(from), world.root().join(to)).unwrap();
            });
        }
        assert_eq!(writers(&mut world, "a"), ["before"; 3]);
    }
}
