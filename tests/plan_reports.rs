//! What plans and reports say of restores that cannot be done in full: what is damaged, what stays,
//! and what may be done about it.

use std::{
    fs::{self, File, FileTimes},
    path::PathBuf,
    time::SystemTime,
};

use crate::{
    evidence::{begins, ours, project, run, writes},
    reports::listed,
    reports_of_others::nested,
    repository::repository,
    support::{
        packs,
        real::git,
        temp::{chmod, link, noise, on_disk, withhold, write},
        world::World,
    },
};

/// The only file of ours in `objects` of which `is_it` is true.
fn object(world: &World, is_it: impl Fn(&[u8]) -> bool) -> PathBuf {
    packs::unpack(&world.state());
    let paths = on_disk(&world.state().join("objects")).into_keys();
    let paths = paths.map(|path| String::from_utf8(path).unwrap());
    let paths = paths.map(|path| world.state().join("objects").join(path));
    let mut fitting =
        paths.filter(|path| path.is_file() && fs::read(path).is_ok_and(|bytes| is_it(&bytes)));
    let found = fitting.next().unwrap();
    assert!(fitting.next().is_none());
    found
}

fn remove(world: &World, path: &str) {
    fs::remove_file(world.root().join(path)).unwrap();
}

/// The directory in which only a later step of the turn has something cannot be read.
#[test]
fn a_restore_does_what_it_can_where_a_later_step_is_damaged() {
    for args in [&["undo"][..], &["restore", "1"]] {
        let mut world = project();
        world.write("large", noise(1, 20 << 20));
        world.write("d/x", "x");
        writes(&mut world, "one", "a", "the agent's");
        world.write("d/mine", "mine");
        run(&mut world, "one", "rm large d/mine", |world| {
            remove(world, "large");
            remove(world, "d/mine");
        });
        let is_d = |bytes: &[u8]| bytes.starts_with(b"f ") && bytes.ends_with(b" x\n");
        let has_mine = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains(" mine\n");
        fs::remove_file(object(&world, |bytes| is_d(bytes) && has_mine(bytes))).unwrap();
        let plan = ours(&mut world, &[args, &["--dry-run"]].concat(), 0).stdout;
        let damaged = "not restored: what only checkpoint ";
        assert!(plan.contains("recreate  large") && plan.contains(damaged), "{plan}");
        let done = ours(&mut world, &[args, &["--yes"]].concat(), 3).stdout;
        assert!(done.contains(damaged) && done.contains(", which is damaged; "), "{done}");
        assert_eq!(world.read("a"), "first");
        assert!(world.root().join("large").exists() && !world.root().join("d/mine").exists());
        assert!(!done.contains("was not held"), "{done}");
    }
}

/// What the user wants kept is not advised to be removed.
#[test]
fn nothing_is_advised_that_contradicts_the_command() {
    let mut world = project();
    writes(&mut world, "one", "a", "the agent's");
    run(&mut world, "one", "make", |world| world.write("new", "the agent's"));
    world.write("mine", "mine");
    for (args, is_advised) in
        [(&["restore", "1", "--keep-new"][..], false), (&["restore", "1"], true)]
    {
        let plan = ours(&mut world, &[args, &["--dry-run"]].concat(), 0).stdout;
        let done = ours(&mut world, &[args, &["--yes"]].concat(), 0).stdout;
        for told in [plan, done] {
            assert_eq!(told.contains("--exact"), is_advised, "{told}");
            assert!(told.contains("mine"), "{told}");
        }
        ours(&mut world, &["undo", "--yes"], 0);
    }
}

/// The bytes of a file are not to be had for a while.
#[test]
fn what_is_not_done_is_not_called_done() {
    let mut world = project();
    world.write("b", "before");
    writes(&mut world, "one", "a", "the agent's");
    writes(&mut world, "one", "b", "the agent's");
    let held = object(&world, |bytes| bytes == b"before");
    let away = withhold(&held);
    let part = ours(&mut world, &["undo", "--yes"], 1);
    assert!(!part.stdout.contains("redo with"), "{}", part.stdout);
    assert!(part.stderr.contains("restore --continue` retries"), "{}", part.stderr);
    let more = ours(&mut world, &["restore", "--continue"], 1);
    assert!(more.stdout.contains(" is not finished: 1 path not restored\n"), "{}", more.stdout);
    assert!(!more.stdout.contains("undo with"), "{}", more.stdout);
    assert!(more.stderr.contains("restore --continue` retries"), "{}", more.stderr);
    fs::rename(&away, &held).unwrap();
    let done = ours(&mut world, &["restore", "--continue"], 0).stdout;
    assert!(done.starts_with("finished the undo to ") && done.contains("redo with"), "{done}");
    assert_eq!(["a", "b"].map(|path| world.read(path)), ["first", "before"]);
}

/// What is in the store no more: to try again would be of no use.
#[test]
fn what_cannot_come_back_is_said_beforehand() {
    for path in ["a", "b"] {
        let mut world = project();
        world.write("b", "before");
        writes(&mut world, "one", "a", "the agent's");
        writes(&mut world, "one", "b", "the agent's");
        let before: &[u8] = if path == "a" { b"first" } else { b"before" };
        fs::remove_file(object(&world, |bytes| bytes == before)).unwrap();
        let plan = ours(&mut world, &["restore", "1", "--dry-run"], 0).stdout;
        let left = format!("  leave     {path}   its content is missing from the store\n");
        assert!(plan.contains(&left) && plan.contains("\n1 path would change, 1 kept\n"), "{plan}");
        let done = ours(&mut world, &["undo", "--yes"], 1);
        let warned = format!("not restored: {path}: its content is missing from the store\n");
        assert!(done.stderr.contains(&warned), "{}", done.stderr);
        assert!(!done.stderr.contains("--continue"), "{}", done.stderr);
        assert!(done.stdout.contains("restored 1 path"), "{}", done.stdout);
        let again = ours(&mut world, &["restore", "1", "--yes"], 1);
        assert_eq!(again.stdout, "nothing was restored\n");
        assert!(again.stderr.contains(&warned), "{}", again.stderr);
        ours(&mut world, &["redo", "--yes"], 0);
        assert_eq!(["a", "b"].map(|path| world.read(path)), ["the agent's"; 2]);
    }
}

/// An interrupted restore is taken back before another one, as far as that can be.
#[test]
fn a_restore_that_is_taken_back_in_part_is_told_as_such() {
    let mut world = project();
    world.write("b", "before");
    writes(&mut world, "one", "a", "the agent's");
    writes(&mut world, "one", "b", "the agent's b");
    let held = object(&world, |bytes| bytes == b"before");
    withhold(&held);
    ours(&mut world, &["restore", "1", "--yes"], 1);
    let now = object(&world, |bytes| bytes == b"the agent's");
    withhold(&now);
    let done = ours(&mut world, &["undo", "--yes"], 1);
    assert!(done.stderr.contains("aborted the interrupted restore, but for 1 path"));
    assert!(!done.stderr.contains("--continue"), "it is over: {}", done.stderr);
    let command = done.stderr.split('`').find(|it| it.starts_with("beforehand restore ")).unwrap();
    fs::rename(now.with_extension("away"), &now).unwrap();
    let words: Vec<&str> = command.split(' ').skip(1).chain(["--yes"]).collect();
    ours(&mut world, &words, 0);
    assert_eq!(world.read("a"), "the agent's");
}

/// Makes a file that no checkpoint holds, modified long ago.
fn unheld(world: &World, path: &str, size: usize) {
    world.write(path, noise(1, size));
    let before = FileTimes::new().set_modified(SystemTime::UNIX_EPOCH);
    File::options().write(true).open(world.root().join(path)).unwrap().set_times(before).unwrap();
}

#[test]
fn a_file_that_was_only_moved_is_not_called_gone() {
    let mut world = project();
    unheld(&world, "large", 70_000_000);
    unheld(&world, "gone", 70_000_008);
    writes(&mut world, "one", "a", "the agent's");
    let note = run(&mut world, "one", "make", |world| {
        fs::create_dir(world.root().join("new")).unwrap();
        fs::rename(world.root().join("large"), world.root().join("new/large")).unwrap();
        remove(world, "gone");
    });
    assert!(note.contains("gone for good: 1 file that no checkpoint holds"), "{note}");
    let moved = "probably moved since, and not held: large (70.0 MB), now new/large\n";
    let plan = ours(&mut world, &["restore", "1", "--dry-run"], 0).stdout;
    let told = ours(&mut world, &["diff", "1"], 0).stderr;
    for told in [plan, told] {
        assert!(told.contains(moved) && told.contains("gone, and was not held: gone ("), "{told}");
        assert!(!told.contains("made since, and not held"), "{told}");
    }
}

/// It went out of the project, or took the place of another: no checkpoint holds it, so it stays.
#[test]
fn the_only_copy_of_a_moved_file_stays_where_it_is() {
    for (to, size) in [("../elsewhere", 0), ("other", 2_500_000)] {
        let mut world = project();
        let settings = "deadline = \"60s\"\nmax_file_size = \"1 MB\"\nmax_victim_size = \"2 MB\"\n";
        write(&world.settings(), settings);
        unheld(&world, "large", 3_000_000);
        if size > 0 {
            unheld(&world, to, size);
        }
        writes(&mut world, "one", "a", "the agent's");
        let place = world.root().join(to);
        let note = run(&mut world, "two", &format!("mv large {to}; echo x > b"), |world| {
            fs::rename(world.root().join("large"), &place).unwrap();
            world.write("b", "x");
        });
        assert!(!note.contains("gone for good"), "{note}");
        let plan = ours(&mut world, &["undo", "--dry-run"], 0).stdout;
        let done = ours(&mut world, &["undo", "--yes"], 0).stdout;
        for told in [plan, done] {
            let moved = "probably moved since, and not held: large (3.0 MB), now ";
            assert!(told.contains(moved) && !told.contains("gone, "), "{told}");
        }
        assert_eq!(fs::metadata(&place).unwrap().len(), 3_000_000);
        assert_eq!(world.read("b"), "first");
        fs::remove_file(place).unwrap();
    }
}

#[test]
fn a_question_names_the_program_that_destroys() {
    let mut world = project();
    write(&world.settings(), "max_file_size = \"1 MB\"\nmax_victim_size = \"2 MB\"\n");
    unheld(&world, "large", 3_000_000);
    unheld(&world, "sub/other", 3_000_000);
    for (line, named) in [
        ("cp large copy; rm large", "large (3.0 MB, over max_victim_size) — rm would delete it"),
        ("rm a; echo x > large", "large (3.0 MB, over max_victim_size) — the redirection would"),
        ("mv a b; rm -r sub", "sub/other (3.0 MB, over max_victim_size) — rm would delete it"),
    ] {
        let asked = begins(&mut world, "one", line);
        assert!(asked.contains(named), "{line}: {asked}");
    }
}

#[test]
fn what_a_redo_removes_is_not_said_to_be_left() {
    let mut world = project();
    unheld(&world, "large", 25_000_000);
    run(&mut world, "one", "rm large", |world| remove(world, "large"));
    ours(&mut world, &["undo", "--yes"], 0);
    let done = ours(&mut world, &["redo", "--yes"], 0).stdout;
    assert!(!world.root().join("large").exists() && !done.contains("left:"), "{done}");
}

#[test]
fn a_directory_that_stays_is_not_announced_to_go() {
    let mut world = project();
    run(&mut world, "one", "make", |world| {
        world.write("new/sub/large", noise(1, 70_000_000));
        world.write("new/x", "the agent's");
    });
    let plan = ours(&mut world, &["undo", "--dry-run"], 0).stdout;
    assert!(plan.contains("remove    new/x") && !plan.contains("remove    new/s"), "{plan}");
    assert!(plan.contains("keep      new/sub/   something in it"), "{plan}");
    assert!(plan.contains("\n1 path would change, 2 kept\n"), "{plan}");
    let done = ours(&mut world, &["undo", "--yes"], 0).stdout;
    assert!(done.contains("): restored 1 path from "), "{done}");
    assert!(done.contains("left: made since, and not held: new/sub/large"), "{done}");
}

/// A file is held only because a later call of the turn names it.
#[test]
fn a_difference_does_not_call_unheld_what_a_restore_brings_back() {
    let mut world = project();
    world.write("large", noise(1, 25_000_000));
    world.write("other", noise(2, 25_000_000));
    writes(&mut world, "one", "a", "the agent's");
    run(&mut world, "one", "rm large", |world| remove(world, "large"));
    run(&mut world, "one", "echo x > other", |world| world.write("other", "x"));
    let now = ours(&mut world, &["diff", "1"], 0);
    writes(&mut world, "two", "a", "once more");
    let later = ours(&mut world, &["diff", "2", "1"], 0);
    for told in [now, later] {
        assert_eq!(told.stderr, "", "{}", told.stdout);
        assert!(told.stdout.contains("large: binary file (25.0 MB) removed"), "{}", told.stdout);
        assert!(told.stdout.contains("other: binary files differ"), "{}", told.stdout);
    }
    let plan = ours(&mut world, &["restore", "2", "--dry-run"], 0).stdout;
    assert!(plan.contains("recreate  large") && plan.contains("restore   other"), "{plan}");
}

/// Another repository in the place of one that is gone: without a commit, or with a branch of the same
/// name.
#[test]
fn a_repository_that_was_replaced_is_told_of() {
    for path in ["sub", "."] {
        for commit in ["true", "git add . && git commit -qm another"] {
            let mut world = nested();
            let branch = git(&world, &world.root().join(path), "git branch --show-current");
            let init = format!("git init -q -b {branch}");
            let line = format!("cd {path} && rm -rf .git && {init} && {commit}");
            run(&mut world, "one", &line, |world| drop(git(world, &world.root(), &line)));
            let name = if path == "." { ".git" } else { "sub/.git" };
            let why = format!("it is another repository, without what {branch} led to; ");
            let told = ours(&mut world, &["diff", "1"], 0).stdout;
            assert!(told.starts_with(&format!("{name}: {why}`beforehand restore ")), "{told}");
            assert_eq!(told.lines().count(), 1, "{told}");
            let plan = ours(&mut world, &["restore", "1", "--dry-run"], 0).stdout;
            assert!(plan.contains(&format!("restore   {name}/   the repository: {why}")), "{plan}");
            assert_eq!(listed(&mut world, &[])[0]["changed"], 1);
            writes(&mut world, "two", "a", "the agent's");
            let told = ours(&mut world, &["diff", "2", "1"], 0).stdout;
            assert_eq!(told, format!("{name}: it is another repository\n"));
            assert_eq!(listed(&mut world, &[])[1]["changed"], 1);
        }
    }
}

#[test]
fn a_prune_tells_of_checkpoints_as_a_list_does() {
    let mut world = project();
    // The turn uses the checkpoint of the one before, which found nothing to do.
    run(&mut world, "one", "make one", |world| world.write("a", "1"));
    writes(&mut world, "two", "a", "2");
    let rows = listed(&mut world, &[]);
    assert_eq!(rows[1]["summary"], "make one", "{rows}");
    let told = ours(&mut world, &["prune", "--keep", "1", "--dry-run"], 0).stdout;
    let short = &rows[1]["id"].as_str().unwrap()[..4];
    let row = told.lines().find(|row| row.contains(short)).unwrap();
    assert!(row.contains("drop") && row.contains("before Bash make one"), "{told}");
}

#[test]
fn a_prune_that_cannot_make_enough_room_says_so_and_why() {
    let mut world = project();
    writes(&mut world, "one", "a", "1");
    writes(&mut world, "two", "a", "2");
    ours(&mut world, &["undo", "--yes"], 0);
    for args in [&["--dry-run"][..], &[], &[]] {
        let told = ours(&mut world, &[&["prune", "--max-size", "1 B"], args].concat(), 0);
        assert!(told.stderr.contains(", and not 1 byte: what is marked `keep`"), "{}", told.stderr);
        let kept: Vec<_> = told.stdout.lines().filter(|row| row.contains("  keep  ")).collect();
        assert_eq!(kept.len(), 2, "{}", told.stdout);
        assert!(kept[1].ends_with("the newest always stays"), "{}", told.stdout);
    }
    let told = ours(&mut world, &["prune", "--max-size", "1 GB"], 0).stderr;
    assert!(!told.contains("and not"), "{told}");
}

#[test]
fn commits_in_a_nested_repository_are_named_with_the_way_back() {
    let mut world = nested();
    let then = git(&world, &world.root(), "git -C sub rev-parse HEAD");
    let line = "cd sub && git commit -q --allow-empty -m one && git commit -q --allow-empty -m two";
    run(&mut world, "one", line, |world| {
        git(world, &world.root(), line);
        world.write("a", "the agent's");
    });
    let command = format!("git -C sub reset --soft {}", &then[..7]);
    let named = format!("sub: 2 commits made since: {command} takes them back\n");
    for args in [["undo", "--dry-run"], ["undo", "--yes"]] {
        let told = ours(&mut world, &args, 0).stdout;
        assert!(told.contains(&named), "{told}");
    }
    git(&world, &world.root(), &command);
    assert_eq!(git(&world, &world.root(), "git -C sub rev-parse HEAD"), then);
    let told = ours(&mut world, &["restore", "1", "--dry-run"], 0).stdout;
    assert!(!told.contains("commit"), "{told}");
    git(&world, &world.root(), "git -C sub commit -q --amend --allow-empty -m other");
    let told = ours(&mut world, &["restore", "1", "--dry-run"], 0).stdout;
    assert!(
        told.contains("sub: HEAD was at ") && told.contains("--repository -- sub/.git`"),
        "{told}"
    );
    let id = listed(&mut world, &[])[0]["id"].as_str().unwrap().to_owned();
    ours(&mut world, &["restore", &id, "--repository", "--yes", "--", "sub/.git"], 0);
    assert_eq!(git(&world, &world.root(), "git -C sub rev-parse HEAD"), then);
}

/// After the redo that made it again, a person commits to the repository that the agent had made.
#[test]
fn an_undo_of_a_redo_leaves_a_repository_that_others_went_on_with() {
    for goes_on in [false, true] {
        let mut world = nested();
        let line =
            "cd sub && rm -rf .git && git init -q -b agents && git add . && git commit -qm new";
        run(&mut world, "one", line, |world| drop(git(world, &world.root(), line)));
        ours(&mut world, &["undo", "--yes"], 0);
        ours(&mut world, &["redo", "--yes"], 0);
        let branch = |world: &World| git(world, &world.root(), "git -C sub branch --show-current");
        assert_eq!(branch(&world), "agents");
        if goes_on {
            git(&world, &world.root(), "git -C sub commit -q --allow-empty -m mine");
            let plan = ours(&mut world, &["undo", "--dry-run"], 0).stdout;
            let keeps = "keep      sub/.git/   changed since the redo (use --force)\n";
            assert!(plan.contains(keeps) && !plan.contains("loses"), "{plan}");
            let done = ours(&mut world, &["undo", "--yes"], 3).stdout;
            assert!(done.contains("1 conflict kept: sub/.git\n"), "{done}");
            assert_eq!(git(&world, &world.root(), "git -C sub log -1 --format=%s"), "mine");
        } else {
            ours(&mut world, &["undo", "--yes"], 0);
            assert_ne!(branch(&world), "agents");
        }
    }
}

/// The first look has no room for a file, and the one after a command has: the command did not make it.
#[test]
fn a_file_there_was_no_room_for_at_first_is_not_taken_for_the_agents() {
    let mut world = World::with_git();
    world.write(".gitignore", "*.bin\n");
    for number in 0..4 {
        world.write(&format!("cache/{number}.bin"), noise(number, 19_000_000));
    }
    // Whatever the clock of the machine says: the files are older than the checkpoint.
    world.wait(10 * 365 * 24 * 60 * 60);
    writes(&mut world, "one", "a", "the agent's");
    run(&mut world, "one", "make", |world| world.write("made", "the agent's"));
    run(&mut world, "one", "rm -rf cache", |world| {
        beforehand::fs::remove_tree(&world.root().join("cache")).unwrap();
    });
    let done = ours(&mut world, &["undo", "--yes"], 0).stdout;
    assert!(!done.contains("not held"), "{done}");
    let files = fs::read_dir(world.root().join("cache")).map_or(0, Iterator::count);
    assert_eq!(files, 4, "{done}");
}

/// A row of a file with the same lines names what is different.
#[test]
fn a_plan_names_permissions_and_types_that_go_back() {
    let mut world = project();
    run(&mut world, "one", "chmod 600 a; ln -sf a b", |world| {
        chmod(&world.root().join("a"), 0o600);
        remove(world, "b");
        link(&world.root().join("b"), "a");
    });
    let told = ours(&mut world, &["restore", "1", "--dry-run"], 0).stdout;
    assert!(told.contains("  restore   a   mode 600 → 644\n"), "{told}");
    assert!(told.contains("  restore   b   symlink → file\n"), "{told}");
}

/// With `--yes` nobody has seen the plan that says it.
#[test]
fn a_restore_that_was_agreed_to_in_advance_says_why_something_stays() {
    let mut world = project();
    writes(&mut world, "one", "a", "the agent's");
    writes(&mut world, "one", "b", "the agent's b");
    world.write("a", "mine");
    let told = ours(&mut world, &["restore", "1", "--yes"], 3).stdout;
    let why =
        "; 1 conflict kept: a\n  a: changed since, not by the agent (use --merge or --force)\n";
    assert!(told.contains(why), "{told}");
}

/// The sentence is the same in the plan and in the report.
#[test]
fn a_plan_says_that_the_index_stays_where_head_has_moved() {
    let mut world = nested();
    let line = "echo two > b && git add b && git commit -qm one && git rm -q --cached b";
    run(&mut world, "one", line, |world| drop(git(world, &world.root(), line)));
    for how in ["--dry-run", "--yes"] {
        let told = ours(&mut world, &["restore", "1", how], 0).stdout;
        assert!(told.contains("the index stays as it is: HEAD has moved since\n"), "{told}");
    }
}

/// The hint is for a shell that stands elsewhere, perhaps in a project of its own.
#[test]
fn a_restore_of_another_project_says_where_it_can_be_undone() {
    let mut world = project();
    writes(&mut world, "one", "a", "the agent's");
    let elsewhere = world.root().parent().unwrap().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let root = world.root();
    let root = root.to_str().unwrap();
    world.write("a", "mine");
    writes(&mut world, "one", "a", "the agent's, again");
    let told = world.run_in(&elsewhere, &["restore", "1", "--root", root, "--yes"], "").stdout;
    let there = format!("cd {root} && beforehand");
    assert!(told.contains(&format!("undo with: {there} undo\n")), "{told}");
    let further = format!("`{there} restore ");
    assert!(told.contains(&further) && told.contains("goes all the way)\n"), "{told}");
}

#[test]
fn a_restore_says_the_same_number_of_paths_to_people_and_to_scripts() {
    let mut world = project();
    writes(&mut world, "one", "d/e/new", "the agent's");
    writes(&mut world, "one", "a", "the agent's");
    for args in [["restore", "1"].as_slice(), &["undo"], &["redo"]] {
        let way = |last| [args, &["--yes", last]].concat();
        let is_undo = args[0] == "undo";
        let there_and_back = if is_undo { "redo" } else { "undo" };
        let text = ours(&mut world, &way("--yes")[..=args.len()], 0).stdout;
        let done = if is_undo { "undid the restore (just now): " } else { "" };
        assert!(text.starts_with(&format!("{done}restored 2 paths")), "{args:?}: {text}");
        ours(&mut world, &[there_and_back, "--yes"], 0);
        let done = ours(&mut world, &way("--json"), 0).stdout;
        let done: serde_json::Value = serde_json::from_str(&done).unwrap();
        assert_eq!(done["done"], 2, "{args:?}: {done}");
    }
}

/// A repository that was made anew has not the commit that HEAD stood at.
#[test]
fn a_commit_that_is_gone_is_not_promised_back() {
    let mut world = repository();
    run(&mut world, "one", "make", |world| {
        let root = world.root();
        git(world, &root, "rm -rf .git && git init -q -b main && git add -A && git commit -qm new");
    });
    let told = ours(&mut world, &["diff", "1"], 0);
    let told = told.stdout + &told.stderr;
    assert!(told.contains("a commit that is gone") && !told.contains("--head"), "{told}");
}
