//! What people are told of repositories that are gone, of other sessions' work, and of what stays
//! undecided.

use std::{
    fs::{self, File, FileTimes},
    os::unix::fs::symlink,
    path::Path,
    time::{Instant, SystemTime},
};

use beforehand::fs::Lock;
use serde_json::{Value, json};

use crate::{
    evidence::{begins, ours, project, run, writes},
    reports::{listed, prompts, repository},
    support::{
        real::git,
        temp::{noise, on_disk, write},
        world::World,
    },
};

fn remove_tree(world: &World, path: &str) {
    beforehand::fs::remove_tree(&world.root().join(path)).unwrap();
}

/// A repository with another one in `sub`.
pub(crate) fn nested() -> World {
    let mut world = repository();
    git(&world, &world.root(), "git init -q sub && cd sub && echo x > x && git add x");
    git(&world, &world.root(), "git -C sub commit -qm x");
    run(&mut world, "zero", "make nothing", |_| ());
    world
}

#[test]
fn commits_are_told_of_wherever_they_were_made() {
    let mut world = nested();
    let root = world.root();
    git(&world, &root, "git -c protocol.file.allow=always submodule --quiet add ./sub part");
    git(&world, &root, "git commit -qm part");
    run(&mut world, "zero", "make nothing", |_| ());
    let line = "echo y > a; for d in . sub part; do git -C $d commit -q --allow-empty -m y; done";
    run(&mut world, "one", line, |world| drop(git(world, &root, line)));
    let plan = ours(&mut world, &["undo", "--dry-run"], 0).stdout;
    let told = ours(&mut world, &["diff", "1"], 0).stderr;
    for told in [plan, told] {
        for dir in ["sub", "part"] {
            let said = format!("{dir}: 1 commit made since: git -C {dir} reset --soft ");
            assert!(told.contains(&said), "{dir}: {told}");
        }
        assert!(told.contains("\n1 commit made since") || told.starts_with("1 commit"), "{told}");
    }
    let part = ours(&mut world, &["diff", "1", "--", "part"], 0).stderr;
    assert_eq!(part.matches("made since").count(), 1, "{part}");
}

#[test]
fn a_repository_that_is_gone_is_told_of() {
    for path in ["sub/.git", ".git"] {
        let mut world = nested();
        run(&mut world, "one", &format!("rm -rf {path}"), |world| remove_tree(world, path));
        let told = ours(&mut world, &["diff", "1"], 0);
        let (from, to) = (format!("{path}: gone; `beforehand restore "), "` brings it back\n");
        assert!(told.stdout.starts_with(&from) && told.stdout.ends_with(to), "{}", told.stdout);
        assert_eq!(told.stdout.lines().count() + told.stderr.lines().count(), 1, "{}", told.stderr);
        let named = ours(&mut world, &["diff", "1", "--name-only", "--", path], 0).stdout;
        assert_eq!(named, format!("{path}\n"));
        assert_eq!(listed(&mut world, &[])[0]["changed"], 1);
        world.terminal.stdout = true;
        assert!(world.run(&["list"]).stdout.contains("1 repository"));
        // Another turn does not make it less.
        writes(&mut world, "two", "a", "the agent's");
        let told = ours(&mut world, &["diff", "2", "1"], 0).stdout;
        assert_eq!(told, format!("{path}: gone\n"));
        let rows = listed(&mut world, &[]);
        assert_eq!([&rows[0]["changed"], &rows[1]["changed"]], [1, 1], "{rows}");
    }
}

#[test]
fn a_repository_that_a_person_removed_counts_for_no_turn() {
    let mut world = nested();
    writes(&mut world, "one", "a", "the agent's");
    remove_tree(&world, "sub/.git");
    assert_eq!(listed(&mut world, &[])[0]["changed"], 1);
    let told = ours(&mut world, &["diff", "1", "--name-only"], 0).stdout;
    assert_eq!(told, "a\nsub/.git\n");
}

/// A file that no checkpoint holds gives way to a symlink, a new one or one of long ago.
#[test]
fn an_unheld_file_with_a_symlink_in_its_place_is_gone() {
    for line in ["rm large; ln -s a large", "mv -f link large"] {
        let mut world = project();
        world.write("large", noise(1, 70_000_000));
        symlink("a", world.root().join("link")).unwrap();
        let before = FileTimes::new().set_modified(SystemTime::UNIX_EPOCH);
        File::open(world.root().join("large")).unwrap().set_times(before).unwrap();
        git(&world, &world.root(), "touch -h -d @1000 link");
        writes(&mut world, "one", "a", "the agent's");
        run(&mut world, "one", "make", |world| drop(git(world, &world.root(), line)));
        let gone = "gone, and was not held: large (70.0 MB";
        for args in [&["restore", "1", "--dry-run"][..], &["undo", "--dry-run"]] {
            let told = ours(&mut world, args, 0).stdout;
            assert!(told.contains(gone) && !told.contains("changed, and"), "{line}: {told}");
        }
        let told = ours(&mut world, &["diff", "1"], 0).stderr;
        assert!(told.contains(gone), "{line}: {told}");
    }
}

/// What was not read is not said to be whole, nor to restore in full.
#[test]
fn a_check_claims_no_more_than_it_looked_at() {
    for store in ["auto", "files"] {
        let mut world = project();
        world.set("BEFOREHAND_STORE", store);
        writes(&mut world, "one", "a", "the agent's");
        writes(&mut world, "two", "b", "the agent's");
        let unread = "contents were not read (--read-data reads every byte)";
        let plain = ours(&mut world, &["check", "--repair"], 0).stdout;
        assert!(plain.ends_with(&format!("nothing missing; {unread}\n")), "{plain}");
        let read = ours(&mut world, &["check", "--read-data"], 0).stdout;
        assert!(read.contains("all whole") && !read.contains(unread), "{read}");
        // One file is gone, and perhaps others are not what they should be.
        let id = listed(&mut world, &[])[0]["id"].as_str().unwrap().to_owned();
        let mut files =
            on_disk(&world.state()).into_keys().map(|it| String::from_utf8(it).unwrap());
        let record = files.find(|path| path.ends_with(&format!("{id}.json"))).unwrap();
        write(&world.state().join(record), "{}");
        let plain = ours(&mut world, &["check"], 1).stdout;
        assert!(plain.contains("lack nothing; ") && plain.contains(unread), "{plain}");
        assert!(!plain.contains("restore in full"), "{plain}");
        let read = ours(&mut world, &["check", "--read-data"], 1).stdout;
        assert!(read.contains("whole and restore in full"), "{read}");
    }
}

/// An undo of all that one session did marks each of its turns, and is about nothing that it did not touch.
#[test]
fn a_session_that_is_undone_is_undone_in_all_its_turns() {
    let mut world = project();
    run(&mut world, "s/one", "make a", |world| world.write("a", "s"));
    run(&mut world, "t/one", "make b", |world| world.write("b", "t"));
    run(&mut world, "s/two", "make c", |world| world.write("c", "s"));
    let whole = ["undo", "--whole-session", "--session", "s", "--yes"];
    let said = ours(&mut world, &whole, 0).stdout;
    assert!(said.contains("1 path changed by others kept: b\n"), "{said}");
    let now = |world: &World| ["a", "b"].map(|path| world.read(path));
    assert_eq!(now(&world), ["first", "t"]);
    let rows = ours(&mut world, &["list", "--json"], 0).stdout;
    let rows: Value = serde_json::from_str(&rows).unwrap();
    let undone: Vec<_> = rows.as_array().unwrap().iter().map(|row| &row["undone"]).collect();
    assert_eq!(undone, [true, false, true]);
    ours(&mut world, &["undo", "--yes"], 0);
    assert_eq!(now(&world), ["first", "first"], "the turn of the other session is next");
    ours(&mut world, &["redo", "--yes"], 0);
    ours(&mut world, &["redo", "--yes"], 0);
    assert_eq!(now(&world), ["s", "t"]);
}

/// What only a later turn named outside the project goes back with the turns before it.
#[test]
fn what_a_later_turn_named_outside_goes_back_with_the_session() {
    let mut world = project();
    let place = world.root().with_file_name("notes");
    write(&place, "precious");
    run(&mut world, "s/one", "make a", |world| world.write("a", "s"));
    run(&mut world, "s/two", "echo clobbered > ../notes", |_| write(&place, "clobbered"));
    let plan = ours(&mut world, &["restore", "2", "--outside", "--dry-run"], 0).stdout;
    assert!(plan.contains("notes   outside the project"), "{plan}");
    ours(&mut world, &["undo", "--whole-session", "--yes"], 0);
    assert_eq!(fs::read_to_string(&place).unwrap(), "precious");
}

/// Two sessions at work, one after the other: what the other one did is told as such, and stays.
#[test]
fn the_work_of_another_session_is_told_as_such() {
    let mut world = project();
    world.write("shared", "first");
    world.write("gone", "first");
    run(&mut world, "t/zero", "make nothing", |_| ());
    run(&mut world, "s/one", "make mine", |world| {
        world.write("a", "s");
        world.write("shared", "s");
        world.write("both", "s");
    });
    run(&mut world, "t/one", "make theirs", |world| {
        world.write("b", "t");
        world.write("shared", "t");
        world.write("new", "t");
        world.write("both", "t");
        fs::remove_file(world.root().join("gone")).unwrap();
    });
    world.write("mine", "a person's");
    let plan = ours(&mut world, &["undo", "--session", "s", "--dry-run"], 0).stdout;
    let rows = |plan: &str| -> Vec<String> {
        let rows = plan.lines().filter(|row| row.starts_with("  "));
        rows.map(|row| row.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    };
    assert_eq!(
        rows(&plan),
        [
            "restore a +1 −1",
            "recreate gone deleted since, by another session",
            "keep b changed since, by another session",
            "keep both made since, then changed (--force removes it)",
            "keep mine not made by the agent",
            "keep new made by another session",
            "keep shared changed since, by another session (use --merge or --force)",
        ]
    );
    let told = ours(&mut world, &["undo", "--session", "s", "--dry-run", "--json"], 0).stdout;
    let told: Value = serde_json::from_str(&told).unwrap();
    let steps = told["steps"].as_array().unwrap();
    let author = |path: &str| &steps.iter().find(|step| step["path"] == path).unwrap()["author"];
    assert_eq!(["b", "mine", "new"].map(author), ["session", "other", "session"]);
    ours(&mut world, &["undo", "--session", "s", "--yes"], 3);
    let now = ["a", "b", "shared", "both", "new", "mine", "gone"].map(|path| world.read(path));
    assert_eq!(now, ["first", "t", "t", "t", "t", "a person's", "first"]);
}

/// Codex runs a command, from its beginning to its end.
fn codex(world: &mut World, command: &str, does: impl FnOnce(&World)) {
    let event = |world: &mut World, name: &str| {
        world.wait(1);
        let payload = json!({
            "session_id": "c", "turn_id": "one", "cwd": world.root(), "hook_event_name": name,
            "tool_name": "Bash", "tool_input": { "command": command }, "tool_use_id": command,
            "tool_response": "",
        });
        world.run_in(&world.root(), &["hook", "--agent", "codex"], &payload.to_string());
    };
    event(world, "PreToolUse");
    does(world);
    event(world, "PostToolUse");
}

/// A step of a turn beside Codex and a program of the user's, each of which went on with a file.
#[test]
fn others_are_told_by_their_names() {
    let mut world = project();
    world.write("theirs", "first");
    world.edits(|_| "the program's".to_owned());
    run(&mut world, "s/one", "make", |world| world.write("a", "s"));
    let file = world.root().join("theirs").to_str().unwrap().to_owned();
    ours(&mut world, &["run", "fix", "it", &file], 0);
    writes(&mut world, "s/one", "theirs", "s");
    writes(&mut world, "s/one", "a", "s, too");
    codex(&mut world, "make all", |world| world.write("new", "codex"));
    let row = |plan: &str, path: &str| {
        let row = plan.lines().find(|row| row.split_whitespace().nth(1) == Some(path));
        row.unwrap_or_default().split_whitespace().skip(2).collect::<Vec<_>>().join(" ")
    };
    let turn = |world: &mut World| {
        let all = listed(world, &[]);
        let mut rows = all.as_array().unwrap().iter();
        rows.find(|row| row["session"] == "s").unwrap()["number"].to_string()
    };
    let turn = turn(&mut world);
    let plan = ours(&mut world, &["restore", &turn, "--dry-run"], 0).stdout;
    assert_eq!(row(&plan, "new"), "made by Codex (--exact removes it)", "{plan}");
    let run = "to what was made since, by `beforehand run fix it ";
    assert!(row(&plan, "theirs").contains(run), "{plan}");
    for step in ["2", "3"] {
        let plan = ours(&mut world, &["restore", &format!("{turn}.{step}"), "--dry-run"], 0).stdout;
        assert_eq!(row(&plan, "new"), "made by Codex (--exact removes it)", "{plan}");
        assert!(row(&plan, "a").starts_with("+1"), "{plan}");
    }
}

/// Of what was done after a restore, its undo knows that, and not that it was no agent's.
#[test]
fn what_was_done_after_a_restore_is_told_as_such() {
    let mut world = project();
    writes(&mut world, "one", "a", "the agent's");
    writes(&mut world, "one", "c", "the agent's");
    writes(&mut world, "one", "d", "the agent's");
    ours(&mut world, &["undo", "--yes"], 0);
    world.write("a", "after the undo");
    world.write("new", "after the undo");
    let plan = ours(&mut world, &["redo", "--dry-run"], 0).stdout;
    assert!(plan.contains("a     changed since the undo (use --force)"), "{plan}");
    assert!(plan.contains("new   made since the undo\n"), "{plan}");
    assert!(plan.contains("recreate  c\n") && plan.contains("recreate  d\n"), "{plan}");
    assert!(!plan.contains("not by the agent"), "{plan}");
    ours(&mut world, &["redo", "--yes", "--force"], 0);
    fs::remove_file(world.root().join("b")).unwrap();
    fs::remove_file(world.root().join("d")).unwrap();
    let plan = ours(&mut world, &["undo", "--dry-run"], 0).stdout;
    assert!(plan.contains("remove    c"), "{plan}");
    assert!(plan.contains("deleted since the redo\n"), "{plan}");
    assert!(!plan.contains("the agent"), "{plan}");
}

/// It may have been made by the call, or by a program of the user's.
#[test]
fn an_ignored_file_that_a_call_may_have_made_that_was_cut_off_is_not_passed_over() {
    let mut world = repository();
    writes(&mut world, "one", "a", "the agent's");
    prompts(&mut world, "two");
    begins(&mut world, "two", "make; sleep 9");
    world.write("seven.log", "7");
    let plan = ours(&mut world, &["undo", "--dry-run"], 0).stdout;
    let row =
        "seven.log   made since, perhaps by an interrupted or concurrent call (--force removes it)";
    assert!(plan.contains(row), "{plan}");
    let told = ours(&mut world, &["undo", "--yes"], 3).stdout;
    assert!(told.contains("1 conflict kept: seven.log"), "{told}");
    assert_eq!(["a", "seven.log"].map(|path| world.read(path)), ["the agent's", "7"]);
    ours(&mut world, &["restore", "1", "--exact", "--yes"], 0);
    assert_eq!(world.read("seven.log"), "7", "it is ignored");
    ours(&mut world, &["undo", "--yes", "--force"], 0);
    assert!(!world.root().join("seven.log").exists());
    assert_eq!(world.read("a"), "the agent's");
}

#[test]
fn a_prune_beside_maintenance_says_so_and_the_next_one_frees_the_rest() {
    for command in [&["prune", "--keep", "1"][..], &["clear", "--yes"]] {
        let mut world = repository();
        for turn in 0..3 {
            world.write("b", noise(turn, 300_000));
            writes(&mut world, &turn.to_string(), "a", &turn.to_string());
        }
        let lock = world.private().join("maintenance.lock");
        let held = Lock::acquire(&lock, Instant::now()).unwrap();
        let told = ours(&mut world, command, 0);
        assert!(told.stderr.contains("another beforehand is at work on the store"), "{command:?}");
        assert!(told.stderr.contains("hint: run `beforehand prune` again"), "{}", told.stderr);
        drop(held);
        let told = ours(&mut world, &["prune"], 0).stderr;
        assert!(told.starts_with("nothing to drop; "), "{told}");
        assert!(told.ends_with("B freed\n") && !told.contains("another"), "{told}");
        assert!(!ours(&mut world, &["prune"], 0).stderr.contains("freed"));
    }
}

/// A command line that can mean nothing ends with 64, one of something that is not there with 1.
#[test]
fn what_makes_no_sense_is_told_from_what_cannot_be_done() {
    let mut world = project();
    writes(&mut world, "one", "a", "the agent's");
    let nonsense: [&[&str]; 13] = [
        &["restore", "latest~x", "--dry-run"],
        &["restore", "1", "--markers"],
        &["restore", "1", "--yes", "--", "/"],
        &["restore", "1", "--into", "nope/.."],
        &["restore", "1", "--into", "new", "--", "/tmp/x"],
        &["diff", "1", "-1"],
        &["list", "--limit", "many"],
        &["prune", "--keep", "many"],
        &["prune", "--older-than", "soon"],
        &["prune", "--max-size", "big"],
        &["install", "nosuch"],
        &["uninstall", "nosuch"],
        &["nosuch"],
    ];
    for args in nonsense {
        let told = ours(&mut world, args, 64);
        assert!(told.stdout.is_empty() && told.stderr.starts_with("error: "), "{args:?}");
    }
    let impossible: [&[&str]; 14] = [
        &["diff", "1", "", "--stat"],
        &["restore", "0"],
        &["show", "1.0"],
        &["restore", "zzz"],
        &["diff", "zzz"],
        &["restore", "99"],
        &["restore", "abcd"],
        &["restore", "1", "--", "nope"],
        &["restore", "1", "--into", "."],
        &["show", "1.99"],
        &["diff", "latest~99"],
        &["find", "nope"],
        &["redo"],
        &["undo", "--session", "zz"],
    ];
    for args in impossible {
        ours(&mut world, args, 1);
    }
}

/// In `work`, a clone of `bare` beside the project, with another file and a commit of it, pushed to `branch`.
fn pushes(world: &World, bare: &Path, work: &str, branch: &str) {
    let line = format!(
        "test -d {work} || git clone -q {} {work}; cd {work} && echo {branch} >> {work} && \
         git add . && git commit -qm {work} && git push -q origin HEAD:refs/heads/{branch}",
        bare.display()
    );
    git(world, world.root().parent().unwrap(), &line);
}

/// The root is a bare repository itself: what others pushed on top of the agent's commit stays whole.
#[test]
fn an_undo_in_a_bare_repository_leaves_its_refs_and_objects() {
    let mut world = World::new();
    let root = world.root();
    git(&world, &root, "git init -q --bare -b main .");
    pushes(&world, &root, "agent", "main");
    run(&mut world, "zero", "make nothing", |_| ());
    run(&mut world, "one", "make; rm description", |world| {
        pushes(world, &root, "agent", "main");
        fs::remove_file(root.join("description")).unwrap();
    });
    pushes(&world, &root, "mate", "mates");
    let before = git(&world, &root, "git log --all --format=%s%d");
    let plan = ours(&mut world, &["undo", "--dry-run"], 0).stdout;
    let stays = "keep      refs/heads/main ";
    assert!(plan.contains(stays) && plan.contains("git's own: HEAD, branches and"), "{plan}");
    ours(&mut world, &["undo", "--yes"], 0);
    assert!(root.join("description").exists());
    git(&world, &root, "git fsck --strict");
    assert_eq!(git(&world, &root, "git log --all --format=%s%d"), before);
}

/// A bare repository in the project: a ref goes back that nobody else moved, packed or not.
#[test]
fn an_undo_of_a_push_takes_back_no_later_one() {
    for (later, packs) in [(false, false), (true, false), (true, true)] {
        let mut world = project();
        let bare = world.root().join("bare");
        git(&world, &world.root(), "git init -q --bare -b main bare");
        pushes(&world, &bare, "agent", "main");
        run(&mut world, "zero", "make nothing", |_| ());
        let then = git(&world, &bare, "git rev-parse main");
        run(&mut world, "one", "make", |world| {
            pushes(world, &bare, "agent", "main");
            world.write("a", "the agent's");
        });
        pushes(&world, &bare, "mate", if later { "main" } else { "mates" });
        if packs {
            git(&world, &bare, "git pack-refs --all");
        }
        let now = git(&world, &bare, "git rev-parse main");
        let plan = ours(&mut world, &["undo", "--dry-run"], 0).stdout;
        let says = plan.contains("a ref goes back; its commits stay");
        assert_eq!(says, !later, "{later} {packs}: {plan}");
        ours(&mut world, &["undo", "--yes"], if later && !packs { 3 } else { 0 });
        assert_eq!(world.read("a"), "first");
        git(&world, &bare, "git fsck --strict");
        let main = git(&world, &bare, "git rev-parse main");
        assert_eq!(main, if later { now } else { then }, "{packs}");
    }
}

/// A push over a packed ref makes a loose one: it goes with an undo, and comes back with a redo.
#[test]
fn a_packed_ref_that_a_push_moved_goes_back() {
    let mut world = project();
    let bare = world.root().join("bare");
    git(&world, &world.root(), "git init -q --bare -b main bare");
    pushes(&world, &bare, "agent", "main");
    git(&world, &bare, "git pack-refs --all");
    run(&mut world, "zero", "make nothing", |_| ());
    let then = git(&world, &bare, "git rev-parse main");
    run(&mut world, "one", "make", |world| pushes(world, &bare, "agent", "main"));
    let left = git(&world, &bare, "git rev-parse main");
    let plan = ours(&mut world, &["undo", "--dry-run"], 0).stdout;
    assert!(plan.contains("a ref goes back; its commits stay"), "{plan}");
    for (verb, expected, keeps) in
        [("undo", &then, true), ("redo", &left, false), ("undo", &then, false)]
    {
        let done = ours(&mut world, &[verb, "--yes"], 0).stdout;
        assert_eq!(git(&world, &bare, "git rev-parse main"), *expected, "{verb}: {done}");
        assert_eq!(done.contains("of git's own kept: bare/"), keeps, "{verb}: {done}");
        git(&world, &bare, "git fsck --strict");
    }
}

#[test]
fn what_an_undo_kept_is_taken_back_by_the_command_it_names() {
    let mut world = project();
    run(&mut world, "zero", "make nothing", |_| ());
    run(&mut world, "one", "make", |world| world.write("a", "one"));
    run(&mut world, "two", "make more", |world| {
        world.write("b", "two");
        world.write("c", "two");
    });
    world.write("b", "the user's");
    let done = ours(&mut world, &["undo", "--yes"], 3).stdout;
    let named =
        done.lines().find_map(|line| line.strip_prefix("to restore what was kept: beforehand "));
    let words: Vec<&str> = named.unwrap_or_else(|| panic!("{done}")).split(' ').collect();
    ours(&mut world, &[&["restore", "--yes"], &words[1..]].concat(), 0);
    let there = |path: &str| world.root().join(path).exists().then(|| world.read(path));
    assert_eq!(there("a").as_deref(), Some("one"));
    assert_eq!((there("b").as_deref(), there("c")), (Some("first"), None));
}

/// The advice names the file from where the command runs, which need not be the root.
#[test]
fn what_is_advised_in_a_subdirectory_is_of_the_same_file() {
    let mut world = project();
    run(&mut world, "zero", "make nothing", |_| ());
    run(&mut world, "one", "make", |world| {
        world.write("b", "agent");
        world.write("[d]/b", "agent");
        world.write("a", "agent");
    });
    world.write("b", "the user's");
    world.write("[d]/b", "the user's");
    let dir = world.root().join("[d]");
    let done = world.run_in(&dir, &["undo", "--yes"], "").stdout;
    let named = done.lines().find_map(|line| line.split_once("what was kept: beforehand "));
    let words = shell_words::split(named.unwrap_or_else(|| panic!("{done}")).1).unwrap();
    let words: Vec<&str> = words[1..].iter().map(String::as_str).collect();
    let forced = world.run_in(&dir, &[&["restore", "--yes"], &words[..]].concat(), "");
    assert_eq!(forced.exit.code(), 0, "{done}{}", forced.stderr);
    assert_eq!(world.read("b"), "first", "{done}");
    assert!(!dir.join("b").exists(), "{done}");
}

#[test]
fn what_is_only_called_like_a_temporary_file_is_held() {
    let mut world = project();
    let files = [".beforehand-tmp-x", "d/.beforehand-tmp-notes/f", ".beforehand-tmp-repository-2"];
    for path in files {
        world.write(path, path);
    }
    run(&mut world, "one", "make clean", |world| {
        for path in files {
            fs::remove_file(world.root().join(path)).unwrap();
        }
    });
    ours(&mut world, &["undo", "--yes"], 0);
    for path in files {
        assert_eq!(world.read(path), path);
    }
}

#[test]
fn the_advised_restore_of_a_name_with_brackets_is_of_that_file_alone() {
    let mut world = project();
    for path in ["app/[id]/page", "app/i/page"] {
        world.write(path, "then");
    }
    run(&mut world, "one", "make", |world| {
        for path in ["app/[id]/page", "app/i/page"] {
            world.write(path, "now");
        }
    });
    let found = ours(&mut world, &["find", "--json", "app/[[]id]/page"], 0).stdout;
    let found: Value = serde_json::from_str(&found).unwrap();
    let text = found.to_string();
    let start = text.find("beforehand restore ").unwrap_or_else(|| panic!("{text}"));
    let command: Value =
        serde_json::Deserializer::from_str(&text[start - 1..]).into_iter().next().unwrap().unwrap();
    let words = shell_words::split(command.as_str().unwrap()).unwrap();
    let words: Vec<&str> = words[1..].iter().map(String::as_str).chain(["--yes"]).collect();
    let (last, rest) = words.split_last().unwrap();
    let at = rest.iter().position(|word| *word == "--").unwrap();
    ours(&mut world, &[&rest[..at], &[*last], &rest[at..]].concat(), 0);
    assert_eq!(
        (world.read("app/[id]/page"), world.read("app/i/page")),
        ("then".into(), "now".into())
    );
}

/// The parts of linked worktrees in a bare repository beside the project. What a person does in one
/// afterwards is never taken apart.
#[test]
fn worktrees_of_a_repository_outside_come_back_and_stay_whole() {
    let mut world = World::new();
    let root = world.root();
    let above = root.parent().unwrap().to_owned();
    git(&world, &above, "git init -q src && git -C src commit -q --allow-empty -m one");
    git(&world, &above, "git clone -q --bare src bare && git -C bare branch feat");
    fs::remove_dir(&root).unwrap();
    git(&world, &above, "git -C bare worktree add -q -b work \"$PWD/shop\" && ls shop");
    git(&world, &above, "git -C bare worktree add -q ../other feat");
    world.write("staged", "staged");
    git(&world, &root, "git add staged");
    run(&mut world, "one", "rm -rf ../bare/worktrees", |_| {
        beforehand::fs::remove_tree(&above.join("bare/worktrees")).unwrap();
    });
    ours(&mut world, &["undo", "--yes"], 0);
    assert_eq!(git(&world, &root, "git status --short"), "A  staged");
    let other = above.join("other");
    git(&world, &other, "git checkout -q --detach && git commit -q --allow-empty -m mine");
    let mine = git(&world, &other, "git rev-parse HEAD");
    let redone = world.run(&["redo", "--yes"]).stdout;
    assert!(redone.contains("of git's own kept: "), "{redone}");
    assert_eq!(git(&world, &other, "git rev-parse HEAD"), mine, "{redone}");
}

#[test]
fn a_root_that_is_a_linked_worktree_comes_back_with_its_index() {
    let mut world = World::new();
    let root = world.root();
    let main = root.with_file_name("main");
    fs::create_dir(&main).unwrap();
    git(&world, &main, "git init -q && git commit -q --allow-empty -m one");
    fs::remove_dir(&root).unwrap();
    git(&world, &main, "git worktree add -q ../shop");
    world.write("staged", "staged");
    git(&world, &root, "git add staged");
    world.write("new", "new");
    run(&mut world, "one", "git worktree remove --force ../shop", |world| {
        git(world, &main, "git worktree remove --force ../shop");
    });
    let args = ["restore", "latest", "--yes", "--root", root.to_str().unwrap()];
    let back = world.run_in(&main, &args, "");
    assert_eq!(back.exit.code(), 0, "{}{}", back.stdout, back.stderr);
    assert_eq!(git(&world, &root, "git status --short"), "A  staged\n?? new");
    assert_eq!((world.read("staged"), world.read("new")), ("staged".into(), "new".into()));
}

#[test]
fn a_worktree_outside_that_a_line_removes_comes_back_whole() {
    for line in ["git worktree remove --force ../other", "rm -rf ../other"] {
        let mut world = World::with_git();
        let root = world.root();
        let other = root.with_file_name("other");
        git(&world, &root, "git commit -q --allow-empty -m one");
        git(&world, &root, "git worktree add -q --detach ../other");
        git(
            &world,
            &other,
            "git commit -q --allow-empty -m two && touch new staged && git add staged",
        );
        let look = "git rev-parse HEAD && git status --short";
        let before = git(&world, &other, look);
        run(&mut world, "one", line, |world| {
            git(world, &root, line);
        });
        ours(&mut world, &["restore", "1", "--yes", "--outside"], 0);
        assert_eq!(git(&world, &other, look), before, "{line}");
    }
}
