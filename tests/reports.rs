//! What people are told is what happens: an undo names what it does not bring back, a list counts
//! what the agent did, and what is said of files that are not held is true.

use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::{Value, json};

use crate::{
    evidence::{begins, ends, event, ours, project, run, writes},
    support::{
        real::git,
        temp::{noise, special, write},
        world::{Output, World},
    },
};

pub(crate) fn prompts(world: &mut World, turn: &str) {
    event(world, "UserPromptSubmit", turn, "", &json!({}), "");
}

fn removes(world: &mut World, turn: &str, path: &str) {
    run(world, turn, &format!("rm {path}"), |world| {
        fs::remove_file(world.root().join(path)).unwrap();
    });
}

pub(crate) fn listed(world: &mut World, args: &[&str]) -> Value {
    let told = ours(world, &[&["list", "--json"], args].concat(), 0).stdout;
    serde_json::from_str(&told).unwrap()
}

fn slash_undo(world: &mut World) -> Output {
    world.wait(1);
    world.run_in(&world.root(), &["slash", "undo", "--stdin"], "\nBEFOREHAND_END\n")
}

/// The user changes `b` and makes `mine` between two calls of a turn, and the second call removes both.
fn work_in_mid_turn() -> World {
    let mut world = project();
    writes(&mut world, "one", "a", "the agent's");
    world.write("b", "mine");
    world.write("mine", "mine");
    run(&mut world, "one", "rm b mine", |world| {
        for path in ["b", "mine"] {
            fs::remove_file(world.root().join(path)).unwrap();
        }
    });
    world
}

#[test]
fn an_undo_goes_back_to_what_only_a_later_step_of_the_turn_holds() {
    let mut world = work_in_mid_turn();
    let named = "to the work of others since: b, mine (`beforehand restore ";
    for (args, exit) in [(["undo", "--dry-run"], 0), (["undo", "--yes"], 3)] {
        let told = ours(&mut world, &args, exit).stdout;
        assert!(told.contains(named), "{args:?}: {told}");
    }
    assert_eq!(["a", "b", "mine"].map(|path| world.read(path)), ["first", "mine", "mine"]);
    ours(&mut world, &["redo", "--yes"], 0);
    assert_eq!(world.read("a"), "the agent's");
    assert!(!world.root().join("b").exists() && !world.root().join("mine").exists());
}

#[test]
fn an_undo_by_force_names_what_only_a_later_step_of_the_turn_holds() {
    let mut world = work_in_mid_turn();
    let step = listed(&mut world, &["--calls"])[0].clone();
    assert_eq!([&step["number"], &step["summary"]], ["1.2", "rm b mine"]);
    let id = &step["id"].as_str().unwrap()[..8];
    let command = format!("restore {id} -- b mine");
    let named = format!("is not restored, and is held: b, mine; `beforehand {command}`");
    for (args, exit) in [(["undo", "--force", "--dry-run"], 0), (["undo", "--force", "--yes"], 3)] {
        let told = ours(&mut world, &args, exit).stdout;
        assert!(told.contains(&named), "{args:?}: {told}");
    }
    assert_eq!(["a", "b"].map(|path| world.read(path)), ["first", "first"]);
    let args: Vec<&str> = ["restore", id, "--yes", "--", "b", "mine"].into();
    ours(&mut world, &args, 0);
    assert_eq!(["b", "mine"].map(|path| world.read(path)), ["mine", "mine"]);
    let told = ours(&mut world, &["restore", "1", "--dry-run"], 0).stdout;
    assert!(!told.contains("is not restored, and is held"), "it is there again: {told}");
}

#[test]
fn what_users_remove_or_change_again_in_mid_turn_is_not_named() {
    let mut world = project();
    writes(&mut world, "one", "a", "the agent's");
    world.write("gone", "mine");
    world.write("again", "mine");
    run(&mut world, "one", "make", |_| ());
    fs::remove_file(world.root().join("gone")).unwrap();
    world.write("again", "mine, once more");
    let told = ours(&mut world, &["undo", "--yes"], 0).stdout;
    assert!(!told.contains("is not restored, and is held"), "{told}");
    assert_eq!(world.read("again"), "mine, once more");
}

#[test]
fn a_list_of_calls_has_a_row_for_each_step() {
    let mut world = work_in_mid_turn();
    let calls = ours(&mut world, &["list", "--calls"], 0).stdout;
    assert_eq!(calls.lines().count(), 2, "{calls}");
    assert!(calls.contains("before Bash rm b mine"), "{calls}");
    assert_eq!(ours(&mut world, &["list"], 0).stdout.lines().count(), 1);
}

#[test]
fn what_a_later_step_holds_within_the_budget_comes_back() {
    let mut world = World::with_git();
    world.write(".gitignore", "*.bin\n");
    world.write("a", "first");
    for number in 0..4 {
        world.write(&format!("cache/{number}.bin"), noise(number, 19_000_000));
    }
    writes(&mut world, "one", "a", "the agent's");
    run(&mut world, "one", "rm -rf cache", |world| {
        beforehand::fs::remove_tree(&world.root().join("cache")).unwrap();
    });
    let done = ours(&mut world, &["undo", "--yes"], 0).stdout;
    let files = fs::read_dir(world.root().join("cache")).map_or(0, Iterator::count);
    assert_eq!(files, 4, "{done}");
    assert!(!done.contains("not held"), "{done}");
}

/// A file that no checkpoint holds is deleted in a turn of its own.
fn gone_for_good() -> World {
    let mut world = project();
    write(&world.settings(), "deadline = \"60s\"\n");
    world.write("large", noise(1, 70_000_000));
    writes(&mut world, "one", "a", "the agent's");
    run(&mut world, "two", "make clean", |world| {
        fs::remove_file(world.root().join("large")).unwrap();
    });
    world
}

#[test]
fn what_is_gone_is_called_gone_wherever_it_is_told() {
    let mut world = gone_for_good();
    let gone = "gone, and was not held: large (70.0 MB";
    let told = ours(&mut world, &["restore", "1", "--dry-run"], 0).stdout;
    assert!(told.contains(gone), "{told}");
    let told = ours(&mut world, &["diff", "1"], 0);
    assert!(told.stderr.contains(gone), "{}{}", told.stdout, told.stderr);
    let told: Value =
        serde_json::from_str(&ours(&mut world, &["diff", "1", "--json"], 0).stdout).unwrap();
    assert_eq!([&told[0]["path"], &told[0]["change"]], ["large", "not-held"]);
    assert_eq!(listed(&mut world, &[])[0]["changed"], 1);
}

#[test]
fn no_other_turn_is_undone_unasked_for_one_that_cannot_be() {
    let mut world = gone_for_good();
    let told = slash_undo(&mut world).stdout;
    assert!(told.contains("cannot be undone: gone, and was not held: large"), "{told}");
    assert_eq!(world.read("a"), "the agent's");
    ours(&mut world, &["undo", "--yes"], 1);
    assert_eq!(world.read("a"), "the agent's");
    // Somebody who is asked sees what it would be.
    let told = ours(&mut world, &["undo", "--dry-run"], 0);
    assert!(told.stderr.contains("skipped turn 1, \""), "{}", told.stderr);
    assert!(told.stdout.contains("restore   a"), "{}", told.stdout);
}

#[test]
fn the_first_call_of_a_session_that_is_cut_off_claims_nothing() {
    let mut world = World::new();
    world.write("b", "first");
    prompts(&mut world, "new/one");
    begins(&mut world, "new/one", "make");
    world.write("b", "mine");
    event(&mut world, "Stop", "new/one", "", &json!({}), "");
    let plan = ours(&mut world, &["undo", "--dry-run"], 0).stdout;
    assert!(plan.contains("perhaps by an interrupted or concurrent call (use --force)"), "{plan}");
    ours(&mut world, &["undo", "--yes"], 3);
    assert_eq!(world.read("b"), "mine");
    ours(&mut world, &["undo", "--yes", "--force"], 0);
    assert_eq!(world.read("b"), "first");
}

#[test]
fn the_turns_of_a_session_are_undone_one_after_the_other() {
    let mut world = project();
    writes(&mut world, "s/one", "a", "one");
    writes(&mut world, "s/two", "b", "two");
    writes(&mut world, "t/one", "c", "the other session's");
    let undo = ["undo", "--session", "s", "--yes"];
    ours(&mut world, &undo, 0);
    assert_eq!(["a", "b"].map(|path| world.read(path)), ["one", "first"]);
    ours(&mut world, &undo, 0);
    assert_eq!(["a", "b"].map(|path| world.read(path)), ["first", "first"]);
    assert_eq!(world.read("c"), "the other session's");
    let none = ours(&mut world, &["undo", "--session", "zz", "--yes"], 1).stderr;
    assert!(none.contains("no turn of a session `zz…`"), "{none}");
}

/// The older turn of one session is taken back while the newer one of another stands.
#[test]
fn an_undo_of_one_session_leaves_what_that_of_another_put_back() {
    for beside in ["a", "../out/a"] {
        let mut world = project();
        write(&world.root().with_file_name("out").join("a"), "first");
        let made = world.root().join(beside).with_file_name("made");
        run(&mut world, "s/one", &format!("rm {beside}; touch {}", made.display()), |world| {
            let path = world.root().join(beside);
            write(&made, "agent");
            let _gone = fs::remove_file(path);
        });
        run(&mut world, "s/one", "echo agent > b", |world| world.write("b", "agent"));
        writes(&mut world, "t/one", "c", "the other session's");
        let look = |world: &World| {
            let text = |path: &str| fs::read_to_string(world.root().join(path)).ok();
            (text(beside), text("b"), fs::read_to_string(&made).ok())
        };
        ours(&mut world, &["undo", "--session", "s", "--yes"], 0);
        let back = look(&world);
        assert_eq!((back.1.as_deref(), &back.2), (Some("first"), &None));
        ours(&mut world, &["undo", "--session", "t", "--yes"], 0);
        assert_eq!(look(&world), back, "{beside}");
        assert!(!world.root().join("c").exists());
    }
}

#[test]
fn a_list_says_why_it_has_no_rows() {
    let mut world = project();
    let none = ours(&mut world, &["list", "--session", "zz"], 0).stderr;
    assert!(none.contains("no checkpoint of a session `zz…`"), "{none}");
    let none = ours(&mut world, &["list", "--limit", "0"], 0).stderr;
    assert!(none.contains("1 turn"), "{none}");
}

#[test]
fn a_list_counts_what_the_agent_did() {
    let mut world = project();
    writes(&mut world, "one", "a", "the agent's");
    world.write("b", "mine");
    world.write("mine", "mine");
    assert_eq!(listed(&mut world, &[])[0]["changed"], 1, "until now");
    writes(&mut world, "two", "c", "the agent's");
    let rows = listed(&mut world, &[]);
    assert_eq!([&rows[0]["changed"], &rows[1]["changed"]], [1, 1]);
    // What the agent removes counts, what the user removes does not.
    removes(&mut world, "three", "c");
    fs::remove_file(world.root().join("mine")).unwrap();
    assert_eq!(listed(&mut world, &[])[0]["changed"], 1);
}

#[test]
fn a_list_counts_for_a_turn_what_others_went_on_with_and_not_what_an_undo_put_back() {
    let mut world = project();
    writes(&mut world, "one", "a", "the agent's");
    world.write("a", "mine");
    writes(&mut world, "two", "b", "the agent's");
    run(&mut world, "three", "make nothing", |_| ());
    ours(&mut world, &["undo", "--yes"], 0);
    writes(&mut world, "four", "c", "the agent's");
    let told = listed(&mut world, &[]);
    let counts: Vec<_> = told.as_array().unwrap().iter().map(|row| &row["changed"]).collect();
    assert_eq!(counts, [1, 0, 1, 1], "{told}");
}

#[test]
fn directories_that_come_and_go_with_a_file_are_not_counted() {
    let mut world = project();
    run(&mut world, "one", "make", |world| world.write("d/e/f/x", "x"));
    let plan = ours(&mut world, &["undo", "--dry-run"], 0).stdout;
    assert!(plan.contains("remove    d/e/f/x") && plan.contains("\n1 path would change"), "{plan}");
    let done = ours(&mut world, &["undo", "--yes"], 0).stdout;
    assert!(done.contains("restored 1 path from"), "{done}");
    assert!(!world.root().join("d").exists());
}

/// The agent changed the first line of a text, and so did its user, after it.
fn conflict() -> World {
    let mut world = project();
    writes(&mut world, "one", "b", "the agent's\n2\n");
    world.write("b", "mine\n2\n");
    world.write("made", "mine");
    world
}

#[test]
fn a_plan_advises_what_its_command_has() {
    let mut world = conflict();
    let plan = ours(&mut world, &["undo", "--dry-run"], 0).stdout;
    assert!(plan.contains("not by the agent (use --merge or --force)"), "{plan}");
    assert!(!plan.contains("--markers") && !plan.contains("--exact"), "{plan}");
    let plan = ours(&mut world, &["restore", "1", "--dry-run"], 0).stdout;
    assert!(plan.contains("(use --merge or --force)") && plan.contains("(--exact"), "{plan}");
    let plan = ours(&mut world, &["restore", "1", "--dry-run", "--merge"], 0).stdout;
    assert!(plan.contains("conflicts with it (use --markers or --force)"), "{plan}");
    let done = ours(&mut world, &["undo", "--yes"], 3).stdout;
    assert!(done.contains("1 path made since kept: made (`beforehand restore "), "{done}");
}

#[test]
fn marked_conflicts_are_named_and_no_success() {
    let mut world = conflict();
    let args = ["restore", "1", "--merge", "--markers"];
    let plan = ours(&mut world, &[&args[..], &["--dry-run"]].concat(), 0).stdout;
    assert!(plan.contains("conflicts are marked"), "{plan}");
    let done = ours(&mut world, &[&args[..], &["--yes"]].concat(), 3).stdout;
    assert!(done.contains("conflicts marked in: b\n"), "{done}");
    assert!(world.read("b").starts_with("<<<<<<<"));
}

#[test]
fn a_difference_of_a_path_that_was_never_there_is_a_slip() {
    let mut world = project();
    writes(&mut world, "one", "a", "the agent's");
    let told = ours(&mut world, &["diff", "1", "--", "scr/a"], 1).stderr;
    assert!(told.contains("`scr/a` was not there at"), "{told}");
    writes(&mut world, "two", "b", "the agent's");
    let told = ours(&mut world, &["diff", "2", "1", "--", "scr/a"], 1).stderr;
    assert!(told.contains("`scr/a` was not there at"), "{told}");
    let same = ours(&mut world, &["diff", "1", "--", "a"], 0).stderr;
    assert!(same.contains("nothing differs"), "{same}");
}

#[test]
fn explain_names_what_would_not_be_held() {
    let mut world = project();
    world.write("package.json", "{}");
    world.write("node_modules/x/package.json", "{}");
    let told = ours(&mut world, &["explain", "rm -rf node_modules"], 0).stdout;
    assert!(told.contains("but not:    node_modules (can be made again)"), "{told}");
    let told = ours(&mut world, &["explain", "rm a"], 0).stdout;
    assert!(told.contains("would hold: the whole of"), "{told}");
}

#[test]
fn status_tells_of_the_last_prune_and_not_of_itself() {
    let mut world = project();
    world.write("large", noise(1, 70_000_000));
    for number in ["1", "2", "3"] {
        writes(&mut world, number, "a", number);
    }
    world.run_started();
    ours(&mut world, &["prune", "--keep", "1"], 0);
    let told = ours(&mut world, &["status"], 0).stdout;
    assert!(told.contains("last prune just now: 3 checkpoints dropped"), "{told}");
    assert!(told.contains("too much to hold unless a call names it: large"), "{told}");
    assert!(!told.contains("beforehand status"), "{told}");
}

#[test]
fn a_prune_leaves_the_checkpoint_of_a_call_that_runs() {
    let mut world = project();
    begins(&mut world, "one", "make");
    // The other session has a checkpoint of its own.
    world.write("c", "mine");
    for number in ["1", "2", "3"] {
        writes(&mut world, &format!("t/{number}"), "b", number);
    }
    let told = ours(&mut world, &["prune", "--keep", "1"], 0).stdout;
    assert!(told.contains("a call is under way"), "{told}");
    world.write("a", "the agent's");
    ends(&mut world, "one", "make");
    ours(&mut world, &["undo", "--session", "s", "--yes"], 3);
    assert_eq!(world.read("a"), "first");
}

#[test]
fn a_redo_puts_a_file_where_an_undo_put_a_repository() {
    let mut world = project();
    world.write(".gitignore", "*.tmp\n");
    run(&mut world, "t/one", "make", |world| {
        git(world, &world.root(), "git init -q i.tmp && echo nested > i.tmp/n");
    });
    let input = json!({ "file_path": world.root().join("i.tmp"), "content": "" });
    event(&mut world, "PreToolUse", "s/two", "Write", &input, "w");
    beforehand::fs::remove_tree(&world.root().join("i.tmp")).unwrap();
    world.write("i.tmp", "a file");
    event(&mut world, "PostToolUse", "s/two", "Write", &input, "w");
    ours(&mut world, &["undo", "--yes"], 0);
    assert!(world.root().join("i.tmp/.git").is_dir());
    ours(&mut world, &["redo", "--yes"], 0);
    assert_eq!(world.read("i.tmp"), "a file");
}

/// A repository with `a` and `b`, committed.
pub(crate) fn repository() -> World {
    let mut world = World::with_git();
    // However slow this machine is at the moment: the look after a call takes a part of it.
    write(&world.settings(), "deadline = \"60s\"\n");
    world.write("a", "first");
    world.write("b", "first");
    world.write(".gitignore", "*.log\n");
    git(&world, &world.root(), "git add -A && git commit -qm all");
    prompts(&mut world, "zero");
    world
}

/// The index holds a link to a commit, as that of every project with a submodule does.
#[test]
fn what_a_person_did_in_a_project_with_a_submodule_is_kept_and_named() {
    let mut world = repository();
    let link = "160000,1234567890123456789012345678901234567890,n";
    git(&world, &world.root(), &format!("git update-index --add --cacheinfo {link}"));
    removes(&mut world, "one", "a");
    world.write("b", "a person's");
    let told = ours(&mut world, &["undo", "--yes"], 0).stdout;
    assert!(told.contains("1 path changed by others kept: b"), "{told}");
    assert_eq!(["a", "b"].map(|path| world.read(path)), ["first", "a person's"]);
}

#[test]
fn what_a_call_that_was_cut_off_may_have_made_is_a_conflict() {
    let mut world = repository();
    writes(&mut world, "one", "a", "the agent's");
    prompts(&mut world, "two");
    begins(&mut world, "two", "echo 7 > seven; sleep 9");
    world.write("seven", "7");
    let told = ours(&mut world, &["undo", "--yes"], 3).stdout;
    assert!(told.contains("1 conflict kept: seven"), "{told}");
    assert_eq!(["a", "seven"].map(|path| world.read(path)), ["the agent's", "7"]);
    ours(&mut world, &["undo", "--yes", "--force"], 0);
    assert!(!world.root().join("seven").exists());
}

#[test]
fn a_turn_that_took_commits_away_is_not_passed_over() {
    let mut world = repository();
    git(&world, &world.root(), "git commit -qm two --allow-empty");
    writes(&mut world, "one", "a", "the agent's");
    run(&mut world, "two", "git reset -q --soft HEAD~1", |world| {
        git(world, &world.root(), "git reset -q --soft HEAD~1");
    });
    let told = ours(&mut world, &["undo", "--yes"], 1).stderr;
    assert!(told.contains("turn 1, \"") && told.contains("undo --head` moves "), "{told}");
    assert_eq!(world.read("a"), "the agent's");
    let told = ours(&mut world, &["restore", "1", "--dry-run"], 0).stdout;
    assert!(told.contains("everything else is as it was"), "{told}");
}

#[test]
fn a_plan_tells_that_the_index_goes_back() {
    let mut world = repository();
    world.write("a", "staged");
    git(&world, &world.root(), "git add a");
    run(&mut world, "one", "git reset -q", |world| {
        git(world, &world.root(), "git reset -q");
    });
    let told = ours(&mut world, &["restore", "1", "--dry-run"], 0).stdout;
    assert!(told.contains("git's index goes back") && !told.contains("as it was"), "{told}");
    let told = ours(&mut world, &["restore", "1", "--yes"], 0).stdout;
    assert!(told.contains("all files are as they were") && told.contains("staged"), "{told}");
    let told = ours(&mut world, &["restore", "1", "--dry-run"], 0).stdout;
    assert!(told.contains("everything is as it was"), "{told}");
}

#[test]
fn what_stays_because_it_is_ignored_is_named() {
    let mut world = repository();
    writes(&mut world, "one", "a", "the agent's");
    world.write("mine.log", "a person's");
    for heading in ["restored 1 path from", "everything else is as it was"] {
        let told = ours(&mut world, &["restore", "1", "--exact", "--yes"], 0).stdout;
        let is_named = told.contains("1 ignored path made since kept: mine.log");
        assert!(told.contains(heading) && is_named, "{told}");
    }
}

/// A pipe has no content by which it could be known.
#[test]
fn a_pipe_that_the_agent_made_and_removed_again_is_not_the_users_work() {
    let mut world = repository();
    let pipe = world.root().join("pipe");
    run(&mut world, "one", "mkfifo pipe", |_| {
        special(&pipe, rustix::fs::FileType::Fifo, 0o644);
    });
    run(&mut world, "one", "echo x > a; rm pipe", |world| {
        world.write("a", "the agent's");
        fs::remove_file(&pipe).unwrap();
    });
    let told = ours(&mut world, &["undo", "--yes"], 0).stdout;
    assert!(!told.contains("is not restored, and is held"), "{told}");
    assert_eq!(world.read("a"), "first");
}

/// The worktree's part of the repository comes back, and what else of it is gone is still named.
#[test]
fn a_worktree_that_comes_back_tells_of_its_branch() {
    let mut world = repository();
    let root = world.root();
    git(&world, &root, "git worktree add -q wt -b side && echo staged > wt/new && echo x > s");
    git(&world, &root, "git -C wt add new && git add s");
    let line = "git worktree remove --force wt && git branch -D side && git rm -qf --cached s";
    run(&mut world, "one", line, |world| drop(git(world, &root, line)));
    let done = ours(&mut world, &["restore", "1", "--yes"], 0).stdout;
    assert!(done.contains("gone since: side; `beforehand restore "), "{done}");
    assert!(done.contains("--repository` brings it back"), "{done}");
    assert_eq!(done.matches(".git/worktrees/wt\n").count(), 1, "{done}");
    git(&world, &root, "git diff --cached --quiet -- s && exit 1; git -C wt diff --quiet");
    ours(&mut world, &["restore", "1", "--repository", "--yes"], 0);
    git(&world, &root, "test \"$(git -C wt rev-parse HEAD)\" = \"$(git rev-parse side)\"");
    git(&world, &root, "git -C wt status --short | grep -qx 'A  new'");
}

/// The agent changes the mode of one file and the text of both, then a person goes on with both.
#[test]
fn a_merge_takes_back_modes_and_is_done_once() {
    let mut world = project();
    world.write("c", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    let line = "chmod 600 a; sed -i s/2/two/ c; chmod 755 c";
    run(&mut world, "one", line, |world| drop(git(world, &world.root(), line)));
    world.write("a", "first, and mine");
    world.write("c", world.read("c") + "mine\n");
    ours(&mut world, &["restore", "1", "--merge", "--yes"], 0);
    let mode = |path: &str| fs::metadata(world.root().join(path)).unwrap().permissions().mode();
    assert_eq!([mode("a") & 0o777, mode("c") & 0o777], [0o644, 0o644]);
    assert_eq!(world.read("c"), "1\n2\n3\n4\n5\n6\n7\n8\n9\nmine\n");
    let again = ours(&mut world, &["restore", "1", "--merge", "--yes"], 0).stdout;
    assert!(again.contains("everything else is as it was"), "{again}");
}

#[test]
fn a_difference_tells_of_modes_and_of_what_is_gone_for_good() {
    let mut world = project();
    world.write("d/x", "x");
    world.write("package.json", "{}");
    world.write("node_modules/q", "q");
    let line = "chmod 700 d; rm -r node_modules";
    run(&mut world, "one", line, |world| drop(git(world, &world.root(), line)));
    let told = ours(&mut world, &["diff", "1"], 0);
    assert_eq!(told.stdout, "d: mode 755 → 700\n");
    assert!(told.stderr.contains("gone, and was not held: node_modules"), "{}", told.stderr);
    assert_eq!(listed(&mut world, &[])[0]["changed"], 1);
}

#[test]
fn files_written_elsewhere_are_told_as_any_others() {
    let mut world = project();
    writes(&mut world, "one", "a", "the agent's");
    let into = world.home().join("into");
    let into = into.to_str().unwrap();
    let none = ours(&mut world, &["restore", "1", "--into", into, "--", "nope"], 1).stderr;
    assert!(none.contains("`nope` was not there"), "{none}");
    let told = ours(&mut world, &["restore", "1", "--into", into, "--json"], 0).stdout;
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!((&told["files"], &told["missed"]), (&json!(2), &json!([])));
}

#[test]
fn a_list_tells_turns_from_what_people_asked_for() {
    let mut world = project();
    writes(&mut world, "one", "a", "the agent's");
    ours(&mut world, &["create", "-m", "mine"], 0);
    let told = ours(&mut world, &["list"], 0).stderr;
    assert!(told.contains("1 turn, 1 by hand"), "{told}");
}

/// A person's checkpoint between turns or before all of them is no beginning of a turn.
#[test]
fn a_checkpoint_that_a_person_asked_for_takes_no_turn() {
    for begins in [&["one"][..], &[]] {
        let mut world = project();
        world.write("c", "first");
        for turn in begins {
            writes(&mut world, turn, "made", "the agent's");
        }
        ours(&mut world, &["create", "-m", "before lunch"], 0);
        removes(&mut world, "two", "c");
        removes(&mut world, "two", "a");
        let rows = listed(&mut world, &[]);
        let prompts = rows.as_array().unwrap().iter().filter(|row| row["turn"] == "two").count();
        assert_eq!(prompts, 1, "{rows}");
        ours(&mut world, &["undo", "--yes"], 0);
        assert_eq!([world.read("a"), world.read("c")], ["first", "first"]);
        assert_eq!(world.root().join("made").exists(), !begins.is_empty());
    }
}

/// Nothing changes in the project, so one checkpoint would do for all of them.
#[test]
fn turns_that_work_outside_alone_are_undone_one_by_one() {
    for sessions in [["s/one", "s/two"], ["s/one", "t/one"]] {
        let mut world = project();
        let out = world.root().with_file_name("out");
        write(&out.join("kept"), "mine");
        for (turn, name) in sessions.iter().zip(["1", "2"]) {
            let line = format!("echo {name} > ../out/{name}");
            run(&mut world, turn, &line, |world| drop(git(world, &world.root(), &line)));
        }
        let there = || ["1", "2"].map(|name| out.join(name).exists());
        ours(&mut world, &["undo", "--yes"], 0);
        assert_eq!(there(), [true, false]);
        ours(&mut world, &["undo", "--session", "s", "--yes"], 0);
        assert_eq!(there(), [false, false]);
        // After a restore that changed nothing in the project either.
        ours(&mut world, &["redo", "--yes"], 0);
        removes(&mut world, "three", "a");
        removes(&mut world, "three", "b");
        ours(&mut world, &["undo", "--yes"], 0);
        assert_eq!([world.read("a"), world.read("b")], ["first", "first"]);
        assert_eq!(there(), [true, false]);
    }
}

/// Git directories that are not called `.git`: what an agent pushed may be what others build on.
#[test]
fn an_undo_takes_nothing_out_of_a_git_directory() {
    for place in ["../remote.git", "remote.git"] {
        let mut world = repository();
        let root = world.root();
        git(&world, &root, &format!("git init -q --bare {place}"));
        prompts(&mut world, "one");
        let push = format!("git push -q {place} HEAD:refs/heads/main");
        run(&mut world, "one", &format!("echo agent > a; {push}"), |world| {
            world.write("a", "agent");
            git(world, &root, &push);
        });
        let mate = root.with_file_name("mate");
        let clones = format!("git clone -q -b main {place} {}", mate.display());
        git(&world, &root, &clones);
        git(&world, &mate, "echo m > m && git add m && git commit -qm mate && git push -q");
        let mut bare = root.clone();
        bare.push(place);
        let before = git(&world, &bare, "git log --all --format=%s");
        let shown = world.run(&["undo", "--dry-run"]).stdout;
        let undone = world.run(&["undo", "--yes"]);
        assert_eq!(world.read("a"), "first", "{}{}", undone.stdout, undone.stderr);
        assert!(shown.contains("git's own"), "{shown}");
        git(&world, &bare, "git fsck --strict");
        assert_eq!(git(&world, &bare, "git log --all --format=%s"), before);
    }
}

/// The project's own git directory has another name: HEAD and branches stay all the same.
#[test]
fn an_undo_moves_no_branch_of_a_separate_git_directory() {
    let mut world = World::new();
    world.write("a", "first");
    let root = world.root();
    git(&world, &root, "git init -q --separate-git-dir=.store . && git add a");
    git(&world, &root, "git commit -qm one");
    prompts(&mut world, "one");
    let line = "echo agent > a; git commit -qam agent; git branch feat";
    run(&mut world, "one", line, |world| drop(git(world, &root, line)));
    let before = git(&world, &root, "git log --all --format=%s%d");
    world.run(&["undo", "--yes"]);
    assert_eq!(world.read("a"), "first");
    git(&world, &root, "git fsck --strict");
    assert_eq!(git(&world, &root, "git log --all --format=%s%d"), before);
}

/// What was made since is what `.git` leads to now.
#[test]
fn a_git_directory_behind_a_link_stays_whole() {
    let mut world = repository();
    prompts(&mut world, "one");
    run(&mut world, "one", "mv .git .old; ln -s .old .git; echo agent > a", |world| {
        git(world, &world.root(), "mv .git .old && ln -s .old .git && echo agent > a");
    });
    world.run(&["undo", "--yes"]);
    assert_eq!(world.read("a"), "first");
    git(&world, &world.root(), "git fsck --strict && git status");
}

/// A file too large to be looked at after a call is not said to be somebody else's.
#[test]
fn of_a_file_too_large_to_be_read_it_is_not_known_who_made_it() {
    let mut world = repository();
    prompts(&mut world, "one");
    run(&mut world, "one", "make; rm b", |world| {
        fs::remove_file(world.root().join("b")).unwrap();
        world.write("c", noise(1, 16_000_000));
        world.write("d", noise(2, 16_000_001));
    });
    let plan = ours(&mut world, &["restore", "1", "--dry-run"], 0).stdout;
    assert!(plan.contains("c   made by the agent; held first"), "{plan}");
    assert!(plan.contains("d   not known who made it (--exact removes it)"), "{plan}");
    ours(&mut world, &["undo", "--yes"], 0);
    assert_eq!(world.read("b"), "first");
}
