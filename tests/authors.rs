//! Whose a change is where several are at work, where calls are cut off, and where the log of calls is
//! damaged.

use std::{fs, os::unix::fs::symlink, path::PathBuf};

use serde_json::json;

use crate::{
    evidence::{begins, ends, event, ours, project, run, writes},
    maintenance::run_maintenance,
    reports::{listed, prompts, repository},
    support::{
        real::{beforehand, git},
        temp::{noise, on_disk, write},
        world::World,
    },
};

/// A directory that a write had to make, while another session's command runs.
#[test]
fn a_directory_that_another_session_made_is_not_the_agents() {
    let mut world = project();
    writes(&mut world, "t/zero", "c", "c");
    begins(&mut world, "s/one", "make");
    writes(&mut world, "t/one", "made/by/x", "the other session's");
    world.write("a", "the agent's");
    ends(&mut world, "s/one", "make");
    fs::remove_file(world.root().join("made/by/x")).unwrap();
    let plan = ours(&mut world, &["undo", "--session", "s", "--dry-run"], 0).stdout;
    assert!(plan.contains("made by another session"), "{plan}");
    ours(&mut world, &["undo", "--session", "s", "--yes"], 0);
    assert_eq!(world.read("a"), "first");
    assert!(world.root().join("made/by").is_dir());
    ours(&mut world, &["undo", "--session", "t", "--yes"], 0);
    assert!(!world.root().join("made").exists());
}

/// A look before the call that was cut off shows what a person did, and the call did not change it.
#[test]
fn what_was_there_before_a_call_that_was_cut_off_is_no_doubt_of_its() {
    for world in [project(), repository()] {
        let mut world = world;
        writes(&mut world, "one", "a", "the agent's");
        world.write("b", "mine");
        world.write("new", "mine");
        begins(&mut world, "one", "make");
        world.write("late", "perhaps mine");
        let plan = ours(&mut world, &["undo", "--dry-run"], 0).stdout;
        let row = |path: &str| {
            let row = plan.lines().find(|row| row.split_whitespace().nth(1) == Some(path));
            row.unwrap_or_default().to_owned()
        };
        assert!(row("b").ends_with("changed since, not by the agent"), "{plan}");
        assert!(row("new").contains("not made by the agent"), "{plan}");
        assert!(row("late").contains("perhaps by an interrupted or concurrent call"), "{plan}");
        ours(&mut world, &["undo", "--yes", "--force"], 0);
        let now = ["a", "b", "new"].map(|path| world.read(path));
        assert_eq!(now, ["first", "first", "mine"]);
        assert!(!world.root().join("late").exists());
    }
}

/// The look after a command finds nothing changed since the last checkpoint, which is younger than the command.
#[test]
fn what_a_command_made_before_a_checkpoint_by_hand_is_its_own() {
    for world in [project(), repository()] {
        let mut world = world;
        writes(&mut world, "zero", "c", "the agent's");
        begins(&mut world, "one", "make");
        world.write("b", "the agent's");
        world.write("new", "the agent's");
        // A younger stamp proves nothing, and the look would read the file again.
        std::thread::sleep(std::time::Duration::from_millis(50));
        ours(&mut world, &["create", "-m", "by hand"], 0);
        ends(&mut world, "one", "make");
        let blamed = ours(&mut world, &["blame", "b"], 0).stdout;
        ours(&mut world, &["undo", "--yes"], 0);
        assert_eq!(world.read("b"), "first", "{blamed}");
        assert!(!world.root().join("new").exists(), "{blamed}");
    }
}

/// The agent's hooks were installed while a command ran, or its first prompt was not told of.
#[test]
fn a_command_that_is_cut_off_after_the_first_prompt_that_is_told_of_claims_nothing() {
    let mut world = World::new();
    world.write("b", "first");
    begins(&mut world, "s/one", "make");
    prompts(&mut world, "s/two");
    world.write("b", "mine");
    ours(&mut world, &["undo", "--yes"], 3);
    assert_eq!(world.read("b"), "mine");
}

fn log(world: &World) -> PathBuf {
    let all = on_disk(&world.state()).into_keys().map(|path| String::from_utf8(path).unwrap());
    let mut logs = all.filter(|path| path.ends_with("attribution/log"));
    world.state().join(logs.next().unwrap())
}

/// Damages the lines of the log that have some text in them, in place.
fn damage(world: &World, text: &str) {
    let log = log(world);
    let lines = fs::read_to_string(&log).unwrap();
    let damaged = |line: &str| line.replace("\"at\"", "\"\u{1}t\"");
    let lines: Vec<_> = lines
        .split('\n')
        .map(|line| if line.contains(text) { damaged(line) } else { line.to_owned() })
        .collect();
    write(&log, lines.join("\n"));
}

#[test]
fn where_the_log_is_damaged_nobody_is_taken_for_the_author() {
    // Where the agent's own line is lost, and where the line that tells that somebody's file was there.
    for (text, kept) in [("\"left\":{\"path\":\"x\"", "x"), ("\"by\":\"\"", "x")] {
        let mut world = project();
        world.write("x", "mine");
        writes(&mut world, "one", "a", "the agent's");
        world.write("x", "mine, too");
        writes(&mut world, "one", "x", "mine, too");
        ours(&mut world, &["check"], 0);
        damage(&world, text);
        let done = ours(&mut world, &["undo", "--yes"], 3).stdout;
        assert!(done.contains(kept), "{done}");
        assert_eq!(world.read("x"), "mine, too");
        let told = ours(&mut world, &["check"], 1).stdout;
        assert!(told.contains("attribution/log: ") && told.contains("cannot be read"), "{told}");
        let repaired = ours(&mut world, &["check", "--repair"], 0).stderr;
        assert!(repaired.contains("of attribution/log that cannot be read"), "{repaired}");
        ours(&mut world, &["check"], 0);
        // It is still not known who did what until then, and of what comes later it is.
        ours(&mut world, &["undo", "--yes"], 3);
        assert_eq!(world.read("x"), "mine, too");
        world.write("c", "mine");
        writes(&mut world, "two", "b", "the agent's");
        ours(&mut world, &["undo", "--yes"], 0);
        assert_eq!(world.read("b"), "first");
    }
}

/// A symlink in the place of a file that no checkpoint holds.
#[test]
fn what_gave_way_to_a_symlink_is_gone_for_good() {
    let mut world = project();
    world.write("large", noise(1, 70_000_000));
    writes(&mut world, "one", "a", "the agent's");
    let told = run(&mut world, "two", "make", |world| {
        fs::remove_file(world.root().join("large")).unwrap();
        symlink("a", world.root().join("large")).unwrap();
    });
    assert!(told.contains("gone for good: 1 file that no checkpoint holds"), "{told}");
    writes(&mut world, "three", "a", "the agent's, again");
    let told = ours(&mut world, &["diff", "3", "1"], 0).stderr;
    assert!(told.contains("gone, and was not held: large (70.0 MB"), "{told}");
}

/// What the settings leave out is held because a call names it.
#[test]
fn a_redo_takes_away_again_what_is_excluded_and_an_undo_brought_back() {
    for world in [project(), repository()] {
        let mut world = world;
        write(&world.settings(), "deadline = \"60s\"\nexclude = [\"*.excl\"]\n");
        world.write("x.excl", "excluded");
        world.write("d/y.excl", "excluded");
        run(&mut world, "one", "rm -r x.excl d; make", |world| {
            world.write("a", "the agent's");
            fs::remove_file(world.root().join("x.excl")).unwrap();
            beforehand::fs::remove_tree(&world.root().join("d")).unwrap();
        });
        let then = on_disk(&world.root());
        ours(&mut world, &["undo", "--yes"], 0);
        let back = ["x.excl", "d/y.excl"].map(|path| world.read(path));
        assert_eq!(back, ["excluded", "excluded"]);
        ours(&mut world, &["redo", "--yes"], 0);
        let now: Vec<_> = on_disk(&world.root()).into_keys().collect();
        assert_eq!(now, then.into_keys().collect::<Vec<_>>());
    }
}

/// What happens to a person's file of mid-turn that the agent goes on with, by its own tool or a command.
#[test]
fn a_persons_file_of_mid_turn_outlasts_what_the_agent_added_to_it() {
    for by_tool in [true, false] {
        for world in [project(), repository()] {
            let mut world = world;
            writes(&mut world, "one", "a", "the agent's");
            world.write("notes", "mine\n");
            world.write("b", "mine\n");
            if by_tool {
                for path in ["notes", "b"] {
                    let file = world.root().join(path);
                    let input = json!({ "file_path": file, "old_string": "", "new_string": "" });
                    event(&mut world, "PreToolUse", "one", "Edit", &input, path);
                    world.write(path, "mine\nthe agent's\n");
                    event(&mut world, "PostToolUse", "one", "Edit", &input, path);
                }
            } else {
                run(&mut world, "one", "echo \"the agent's\" | tee -a notes b", |world| {
                    world.write("notes", "mine\nthe agent's\n");
                    world.write("b", "mine\nthe agent's\n");
                });
            }
            let before = on_disk(&world.root());
            let plan = ours(&mut world, &["undo", "--dry-run"], 0).stdout;
            let row = plan.lines().find(|row| row.contains("restore   notes")).unwrap();
            assert!(row.ends_with("to what was made since, not by the agent"), "{plan}");
            let told = ours(&mut world, &["undo", "--yes"], 3).stdout;
            let now = ["a", "notes", "b"].map(|path| world.read(path));
            assert_eq!(now, ["first", "mine\n", "mine\n"], "{told}");
            ours(&mut world, &["redo", "--yes"], 0);
            assert_eq!(on_disk(&world.root()), before);
            ours(&mut world, &["restore", "1", "--yes", "--force"], 3);
            assert_eq!(["a", "b"].map(|path| world.read(path)), ["first", "first"]);
            assert!(!world.root().join("notes").exists());
            ours(&mut world, &["undo", "--yes"], 0);
            assert_eq!(on_disk(&world.root()), before);
        }
    }
}

/// What happens to what a person did between two turns and the agent of the later one went on with, when
/// both are taken back.
#[test]
fn a_persons_work_between_two_turns_outlasts_what_the_later_one_made_of_it() {
    for world in [project(), repository()] {
        let mut world = world;
        writes(&mut world, "one", "a", "the agent's");
        world.write("made", "mine\n");
        world.write("b", "mine\n");
        world.write("dir/gone", "mine\n");
        writes(&mut world, "two", "made", "mine\nthe agent's\n");
        run(&mut world, "two", "make", |world| {
            world.write("b", "mine\nthe agent's\n");
            beforehand::fs::remove_tree(&world.root().join("dir")).unwrap();
        });
        writes(&mut world, "three", "made", "three");
        let before = on_disk(&world.root());
        let plan = ours(&mut world, &["restore", "3", "--dry-run"], 0).stdout;
        let row = plan.lines().find(|row| row.contains("restore   made")).unwrap_or(&plan);
        assert!(row.ends_with("made since, not by the agent"), "{plan}");
        let told = ours(&mut world, &["restore", "3", "--yes"], 3).stdout;
        let now = ["a", "made", "b", "dir/gone"].map(|path| world.read(path));
        assert_eq!(now, ["first", "mine\n", "mine\n", "mine\n"], "{told}");
        ours(&mut world, &["undo", "--yes"], 0);
        assert_eq!(on_disk(&world.root()), before);
        ours(&mut world, &["restore", "3", "--yes", "--", "made"], 3);
        assert_eq!(["a", "made"].map(|path| world.read(path)), ["the agent's", "mine\n"]);
        ours(&mut world, &["undo", "--yes"], 0);
        ours(&mut world, &["restore", "3", "--yes", "--force"], 3);
        assert_eq!(["a", "b"].map(|path| world.read(path)), ["first", "first"]);
        assert!(!world.root().join("made").exists());
        ours(&mut world, &["undo", "--yes"], 0);
        assert_eq!(on_disk(&world.root()), before);
    }
}

/// What a person made in mid-turn and the agent removed again, and is no file.
#[test]
fn a_persons_link_and_directory_of_mid_turn_come_back() {
    for world in [project(), repository()] {
        let mut world = world;
        writes(&mut world, "one", "a", "the agent's");
        let place = |name: &str| world.root().join(name);
        let [link, outer, inner] = ["link", "outer", "outer/inner"].map(place);
        symlink("a", &link).unwrap();
        fs::create_dir_all(&inner).unwrap();
        run(&mut world, "one", "rm link; rmdir outer/inner outer", |_| {
            fs::remove_file(&link).unwrap();
            fs::remove_dir(&inner).unwrap();
            fs::remove_dir(&outer).unwrap();
        });
        let before = on_disk(&world.root());
        let plan = ours(&mut world, &["undo", "--dry-run"], 0).stdout;
        let told = ours(&mut world, &["undo", "--yes"], 3).stdout;
        assert!(link.is_symlink() && inner.is_dir(), "{plan}{told}");
        assert_eq!(world.read("a"), "first");
        ours(&mut world, &["redo", "--yes"], 0);
        assert_eq!(on_disk(&world.root()), before);
    }
}

/// The directory that the agent made, and removed together with what a person had put into it.
#[test]
fn a_persons_file_of_mid_turn_comes_back_with_the_directories_on_the_way() {
    let ends = [("", ""), ("apply-rename", "--abort"), ("apply-directory", "--continue")];
    for (killed, end) in ends {
        let mut world = project();
        run(&mut world, "one", "make", |world| world.write("made/by/x", "the agent's"));
        world.write("made/by/notes", "mine");
        run(&mut world, "one", "rm -r made; make", |world| {
            beforehand::fs::remove_tree(&world.root().join("made")).unwrap();
            world.write("a", "the agent's");
        });
        let before = on_disk(&world.root());
        if !killed.is_empty() {
            let mut command = beforehand(&world, &world.root(), &["undo", "--yes"]);
            command.env("BEFOREHAND_TEST_CRASH_AT", killed).output().unwrap();
            ours(&mut world, &["restore", end], 0);
        }
        if end != "--continue" {
            assert_eq!(on_disk(&world.root()), before);
            ours(&mut world, &["undo", "--yes"], 3);
        }
        assert_eq!(["a", "made/by/notes"].map(|path| world.read(path)), ["first", "mine"]);
        assert!(!world.root().join("made/by/x").exists());
        ours(&mut world, &["redo", "--yes"], 0);
        assert_eq!(on_disk(&world.root()), before);
    }
}

/// Another session's file is held by another session's checkpoint, and the agent writes it anew.
#[test]
fn another_sessions_file_of_mid_turn_outlasts_what_the_agent_made_of_it() {
    let mut world = project();
    writes(&mut world, "s/one", "a", "s");
    writes(&mut world, "t/zero", "made", "the other session's");
    begins(&mut world, "t/one", "make nothing");
    writes(&mut world, "s/one", "made", "s");
    ours(&mut world, &["undo", "--session", "s", "--yes"], 3);
    assert_eq!([world.read("a"), world.read("made")], ["first", "the other session's"]);
}

/// The agent made of another's work what had been there at the beginning of its turn.
#[test]
fn what_others_made_comes_back_where_the_agent_made_it_what_it_was_before() {
    let mut world = project();
    writes(&mut world, "s/one", "a", "s");
    writes(&mut world, "t/one", "b", "the other session's");
    writes(&mut world, "s/one", "b", "first");
    let before = on_disk(&world.root());
    ours(&mut world, &["undo", "--session", "s", "--yes"], 3);
    assert_eq!([world.read("a"), world.read("b")], ["first", "the other session's"]);
    ours(&mut world, &["redo", "--yes"], 0);
    assert_eq!(on_disk(&world.root()), before);
}

/// What came after what an undo put back is nothing that the agent replaced.
#[test]
fn what_an_undo_took_back_does_not_come_back_with_the_next_one() {
    let mut world = project();
    writes(&mut world, "s/two", "made", "s");
    writes(&mut world, "t/one", "made", "the other session's");
    begins(&mut world, "t/one", "make");
    ours(&mut world, &["undo", "--session", "t", "--yes"], 0);
    assert_eq!(world.read("made"), "s");
    ours(&mut world, &["undo", "--session", "s", "--yes"], 0);
    assert!(!world.root().join("made").exists());
}

/// The root is a bare repository: objects and refs that the agent removed come back, and objects that
/// it damaged.
#[test]
fn a_bare_repository_that_the_agent_damaged_is_whole_again() {
    for line in [
        "rm -rf objects/?? objects/pack",
        "rm -rf objects refs HEAD",
        "rm -rf refs packed-refs",
        "for f in objects/??/* objects/pack/*; do chmod u+w $f; : > $f; done",
    ] {
        let mut world = World::new();
        let root = world.root();
        git(&world, &root, "git init -q --bare -b main .");
        let work = "git clone -q shop work && cd work && echo 1 > x && git add . && git commit -qm \
                    one && git push -q origin HEAD:main HEAD:other && git -C ../shop pack-refs \
                    --all && git -C ../shop repack -q && git commit -q --allow-empty -m two && \
                    git push -q origin HEAD:third";
        git(&world, root.parent().unwrap(), work);
        let before = git(&world, &root, "git log --all --format=%s%d");
        run(&mut world, "zero", "make nothing", |_| ());
        run(&mut world, "one", line, |world| drop(git(world, &root, line)));
        ours(&mut world, &["undo", "--yes"], 0);
        git(&world, &root, "git fsck --strict");
        assert_eq!(git(&world, &root, "git log --all --format=%s%d"), before, "{line}");
    }
}

/// HEAD, packed refs and configuration of a root that is a bare repository go back where that is
/// asked for, and only then.
#[test]
fn what_is_gits_own_in_a_bare_repository_goes_back_on_request() {
    let mut world = World::new();
    let root = world.root();
    git(&world, &root, "git init -q --bare -b main .");
    let work = "git clone -q shop work && cd work && git commit -q --allow-empty -m one && git push -q \
                origin HEAD:main HEAD:other && git -C ../shop pack-refs --all";
    git(&world, root.parent().unwrap(), work);
    let files = ["HEAD", "config", "packed-refs"];
    let then = files.map(|name| world.read(name));
    run(&mut world, "zero", "make nothing", |_| ());
    let line = "git branch -qD other && git config a.b c && echo broken > HEAD";
    run(&mut world, "one", line, |world| drop(git(world, &root, line)));
    let plan = ours(&mut world, &["restore", "1", "--dry-run"], 0).stdout;
    assert!(plan.contains("0 paths would change, 3 kept"), "{plan}");
    ours(&mut world, &["restore", "1", "--repository", "--yes"], 0);
    assert_eq!(files.map(|name| world.read(name)), then);
    git(&world, &root, "git rev-parse --verify -q other");
    ours(&mut world, &["undo", "--yes"], 0);
    assert_eq!(world.read("HEAD"), "broken\n");
}

/// A call that needs no checkpoint of its own, right after maintenance put the log away.
#[test]
fn what_a_covered_call_makes_is_noted_after_maintenance_too() {
    let mut world = project();
    run(&mut world, "one", "make", |world| world.write("a", "the agent's"));
    run_maintenance(&world);
    writes(&mut world, "one", "made/by/x", "the agent's");
    ours(&mut world, &["undo", "--yes"], 0);
    assert!(!world.root().join("made").exists());
}

/// Two sessions' commands at once, and what one of them names.
#[test]
fn what_two_commands_at_once_may_have_made_is_kept_and_named() {
    let mut world = project();
    prompts(&mut world, "t/zero");
    begins(&mut world, "s/one", "make");
    begins(&mut world, "t/one", "make all; echo t > named");
    for path in ["a", "new", "named"] {
        world.write(path, "one of them's");
    }
    ends(&mut world, "s/one", "make");
    ends(&mut world, "t/one", "make all; echo t > named");
    for session in ["s", "t"] {
        let plan = ours(&mut world, &["undo", "--session", session, "--dry-run"], 0).stdout;
        for row in ["keep      a ", "keep      new "] {
            let row = plan.lines().find(|line| line.contains(row)).expect(&plan);
            assert!(row.contains("interrupted or concurrent call"), "{plan}");
        }
    }
    ours(&mut world, &["undo", "--session", "t", "--yes"], 3);
    assert_eq!(["a", "new"].map(|path| world.read(path)), ["one of them's"; 2]);
    assert!(!world.root().join("named").exists(), "its own words name that");
}

/// Both begin where the same checkpoint would do, and each changes something of its own.
#[test]
fn two_sessions_at_once_have_a_turn_each() {
    for (first, second) in [("s/one", "t/one"), ("t/one", "s/one")] {
        let mut world = project();
        // Both are known to say when a call is done.
        run(&mut world, "t/zero", "make nothing", |_| ());
        begins(&mut world, first, "make mine");
        begins(&mut world, second, "make theirs");
        world.write("b", "theirs");
        ends(&mut world, second, "make theirs");
        world.write("a", "mine");
        ends(&mut world, first, "make mine");
        let rows = listed(&mut world, &[]);
        let ones = rows.as_array().unwrap().iter().filter(|row| row["turn"] == "one");
        assert_eq!(ones.count(), 2, "{rows}");
        let session = &first[..1];
        ours(&mut world, &["undo", "--session", session, "--yes"], 3);
        assert_eq!((world.read("a"), world.read("b")), ("first".into(), "theirs".into()));
        // Both commands ran while `b` was written.
        ours(&mut world, &["undo", "--session", &second[..1], "--yes"], 3);
        assert_eq!((world.read("a"), world.read("b")), ("first".into(), "theirs".into()));
    }
}

/// The second session finds nothing changed since the checkpoint of the first, which then goes on.
#[test]
fn a_turn_keeps_its_beginning_when_another_session_begins_meanwhile() {
    let mut world = project();
    run(&mut world, "s/one", "make nothing", |_| ());
    run(&mut world, "t/one", "make nothing", |_| ());
    run(&mut world, "s/one", "make it", |world| world.write("a", "the agent's"));
    run(&mut world, "s/one", "make more", |world| world.write("c", "the agent's"));
    run(&mut world, "t/one", "make theirs", |world| world.write("b", "theirs"));
    let said = ours(&mut world, &["undo", "--session", "s", "--yes"], 0).stdout;
    assert!(said.contains("1 path changed by others kept: b"), "{said}");
    assert_eq!(["a", "b"].map(|path| world.read(path)), ["first", "theirs"]);
    assert!(!world.root().join("c").exists());
}

/// The other session's file was made while the agent's command ran, and is as it was made.
#[test]
fn what_another_session_made_meanwhile_was_not_changed_since() {
    let mut world = project();
    prompts(&mut world, "t/zero");
    begins(&mut world, "s/one", "make long");
    writes(&mut world, "t/one", "theirs", "theirs");
    world.write("mine", "the agent's");
    ends(&mut world, "s/one", "make long");
    let plan = ours(&mut world, &["undo", "--session", "s", "--dry-run"], 0).stdout;
    assert!(plan.contains("theirs   made by another session"), "{plan}");
}
