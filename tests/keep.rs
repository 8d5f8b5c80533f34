//! `beforehand fork --keep`: what a fork has changed comes back into its project.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use beforehand::fs::remove_tree;
use serde_json::Value;

use crate::{
    evidence::{ours, run, writes},
    support::{
        real::git,
        temp::{chmod, link, on_disk, write},
        world::{Output, World},
    },
};

/// Six lines, of which some were changed.
fn six(changed: &[usize]) -> String {
    let line = |n| if changed.contains(&n) { format!("changed {n}\n") } else { format!("{n}\n") };
    (0..6).map(line).collect()
}

/// A project in both kinds of store, and a fork of it from before its last turn.
fn forked() -> [World; 2] {
    [World::new(), World::with_git()].map(|mut world| {
        write(&world.settings(), "deadline = \"60s\"\n");
        for name in ["text", "both", "renamed", "ours"] {
            world.write(name, six(&[]));
        }
        world.write("binary", [0, 1, 2]);
        world.write("gone/a", "a");
        world.write("mode", "m");
        link(&world.root().join("link"), "text");
        run(&mut world, "zero", "make nothing", |_| ());
        writes(&mut world, "one", "turn", "of the agent");
        ours(&mut world, &["fork", "1", "--no-conversation"], 0);
        world
    })
}

fn fork(world: &World) -> PathBuf {
    world.root().with_file_name("shop-fork-1")
}

/// What an agent may do in a fork.
fn work(fork: &Path) {
    write(&fork.join("text"), six(&[0]));
    write(&fork.join("both"), six(&[2]));
    fs::rename(fork.join("renamed"), fork.join("new name")).unwrap();
    write(&fork.join("ours"), six(&[5]));
    write(&fork.join("binary"), [0, 3]);
    remove_tree(&fork.join("gone")).unwrap();
    chmod(&fork.join("mode"), 0o755);
    fs::remove_file(fork.join("link")).unwrap();
    link(&fork.join("link"), "both");
    write(&fork.join("new/deep/file\n"), "new");
    fs::create_dir(fork.join("empty")).unwrap();
}

/// What a user may do in the project meanwhile.
fn meanwhile(root: &Path) {
    write(&root.join("text"), six(&[4]));
    write(&root.join("both"), six(&[2, 3]));
    write(&root.join("renamed"), six(&[4]));
    fs::rename(root.join("ours"), root.join("moved")).unwrap();
    write(&root.join("mine"), "mine");
}

fn read(dir: &Path, name: &str) -> String {
    fs::read_to_string(dir.join(name)).unwrap()
}

fn in_fork(world: &mut World, args: &[&str]) -> Output {
    let fork = fork(world);
    world.wait(1);
    world.run_in(&fork, args, "")
}

/// The actions of a plan or a report, by path.
fn actions(text: &str) -> Vec<(String, String)> {
    let value: Value = serde_json::from_str(text).unwrap();
    let text = |step: &Value, name: &str| step[name].as_str().unwrap().to_owned();
    let steps = value["steps"].as_array().unwrap().iter();
    steps.map(|step| (text(step, "path"), text(step, "action"))).collect()
}

#[test]
fn what_a_fork_changed_comes_back_with_what_was_done_here_and_an_undo_takes_it_back_whole() {
    for is_here in [true, false] {
        for mut world in forked() {
            let (root, fork) = (world.root(), fork(&world));
            work(&fork);
            meanwhile(&root);
            let (before, there) = (on_disk(&root), on_disk(&fork));
            let dry = ["fork", "--keep", "--dry-run", "--json"];
            let plan = if is_here { world.run(&dry) } else { in_fork(&mut world, &dry) };
            assert!(on_disk(&root) == before && on_disk(&fork) == there, "a dry run does nothing");
            let deed = ["fork", "--keep", "shop-fork-1", "--yes", "--json"];
            let done = if is_here { world.run(&deed) } else { in_fork(&mut world, &deed) };
            assert_eq!(done.exit.code(), 3, "{}{}", done.stdout, done.stderr);
            assert_eq!(actions(&plan.stdout), actions(&done.stdout), "the plan is the deed");
            assert!(on_disk(&fork) == there, "the fork stays as it is");
            assert_eq!(read(&root, "text"), six(&[0, 4]));
            assert_eq!(read(&root, "both"), six(&[2, 3]), "nothing in a conflict is changed");
            assert_eq!(read(&root, "new name"), six(&[4]), "renamed there, changed here");
            assert_eq!(read(&root, "moved"), six(&[5]), "renamed here, changed there");
            assert_eq!(fs::read(root.join("binary")).unwrap(), [0, 3]);
            assert_eq!(fs::read_link(root.join("link")).unwrap(), Path::new("both"));
            assert_eq!(read(&root, "new/deep/file\n"), "new");
            assert_eq!((&*read(&root, "mine"), &*read(&root, "turn")), ("mine", "of the agent"));
            for gone in ["gone", "renamed", "ours"] {
                assert!(!root.join(gone).exists(), "{gone}");
            }
            assert!(root.join("empty").is_dir());
            let after = on_disk(&root);
            ours(&mut world, &["undo", "--yes"], 0);
            assert!(on_disk(&root) == before, "an undo takes all of it back");
            ours(&mut world, &["redo", "--yes"], 0);
            assert!(on_disk(&root) == after);
        }
    }
}

#[test]
fn conflicts_are_listed_and_marked_only_if_asked() {
    for mut world in forked() {
        let (root, fork) = (world.root(), fork(&world));
        write(&fork.join("both"), "theirs\n");
        write(&root.join("both"), "ours\n");
        fs::remove_file(fork.join("text")).unwrap();
        write(&root.join("text"), six(&[1]));
        write(&fork.join("new"), "one\n");
        write(&root.join("new"), "two\n");
        write(&fork.join("binary"), [0, 1]);
        write(&root.join("binary"), [0, 2]);
        let before = on_disk(&root);
        let done = ours(&mut world, &["fork", "--keep", "--yes"], 3);
        assert!(
            done.stdout.starts_with("nothing was brought; 4 conflicts kept: "),
            "{}",
            done.stdout
        );
        assert!(on_disk(&root) == before);
        let done = ours(&mut world, &["fork", "--keep", "--yes", "--merge"], 3);
        let marked = read(&root, "both");
        assert!(
            marked.contains("<<<<<<<") && marked.contains("ours\n") && marked.contains("theirs\n")
        );
        assert!(done.stdout.contains("conflicts marked in: both"), "{}", done.stdout);
        assert!(
            !read(&root, "new").contains("<<<<"),
            "without a common beginning there is no merge"
        );
        ours(&mut world, &["undo", "--yes"], 0);
        assert!(on_disk(&root) == before);
    }
}

#[test]
fn lines_that_were_brought_from_a_fork_are_said_to_be() {
    for mut world in forked() {
        let (root, fork) = (world.root(), fork(&world));
        write(&fork.join("text"), six(&[0]));
        write(&root.join("text"), six(&[4]));
        ours(&mut world, &["fork", "--keep", "--yes"], 0);
        let said = ours(&mut world, &["blame", "text"], 0);
        let told = said.stdout + &said.stderr;
        let [brought, mine] = ["changed 0", "changed 4"]
            .map(|line| told.lines().find(|it| it.ends_with(line)).unwrap());
        assert!(brought.starts_with("unknown") && mine.starts_with("you"), "{told}");
        assert!(told.contains("\nunknown  brought from a fork\n"), "{told}");
    }
}

#[test]
fn a_fork_can_be_brought_back_again_and_after_an_undo() {
    for mut world in forked() {
        let (root, fork) = (world.root(), fork(&world));
        write(&fork.join("text"), six(&[0]));
        write(&fork.join("new"), "1");
        ours(&mut world, &["fork", "--keep", "--yes"], 0);
        // The same line again, and what was added goes.
        write(&fork.join("text"), "again\n");
        fs::remove_file(fork.join("new")).unwrap();
        ours(&mut world, &["fork", "--keep", "--yes"], 0);
        assert_eq!(read(&root, "text"), "again\n");
        assert!(!root.join("new").exists());
        // Back to how it began.
        write(&fork.join("text"), six(&[]));
        ours(&mut world, &["fork", "--keep", "--yes"], 0);
        assert_eq!(read(&root, "text"), six(&[]));
        write(&fork.join("text"), six(&[3]));
        ours(&mut world, &["fork", "--keep", "--yes"], 0);
        ours(&mut world, &["undo", "--yes"], 0);
        assert_eq!(read(&root, "text"), six(&[]));
        let plan = ours(&mut world, &["fork", "--keep", "--dry-run"], 0);
        assert!(plan.stdout.contains("change    text"), "{}", plan.stdout);
        write(&root.join("text"), six(&[5]));
        ours(&mut world, &["fork", "--keep", "--yes"], 0);
        assert_eq!(read(&root, "text"), six(&[3, 5]));
        let nothing = ours(&mut world, &["fork", "--keep", "--yes"], 0);
        assert!(
            nothing.stdout.contains("has changed nothing that is not here"),
            "{}",
            nothing.stdout
        );
    }
}

#[test]
fn what_conflicted_once_conflicts_until_it_is_settled() {
    for mut world in forked() {
        let (root, fork) = (world.root(), fork(&world));
        write(&fork.join("both"), six(&[2]));
        write(&root.join("both"), "mine\n");
        write(&fork.join("new"), "1");
        for n in ["1", "2"] {
            write(&fork.join("new"), n);
            let done = ours(&mut world, &["fork", "--keep", "--yes"], 3);
            assert!(done.stdout.contains("1 conflict kept: both"), "{}", done.stdout);
            assert_eq!((&*read(&root, "both"), &*read(&root, "new")), ("mine\n", n));
        }
    }
}

#[test]
fn a_file_with_another_name_on_each_side_conflicts_until_it_is_settled() {
    for mut world in forked() {
        let (root, fork) = (world.root(), fork(&world));
        fs::rename(root.join("renamed"), root.join("here")).unwrap();
        fs::rename(fork.join("renamed"), fork.join("there")).unwrap();
        write(&fork.join("text"), six(&[0]));
        for times in 1..=2 {
            let done = ours(&mut world, &["fork", "--keep", "--yes", "--json"], 3);
            let actions = actions(&done.stdout);
            let kept = ("there".to_owned(), "keep".to_owned());
            assert!(actions.contains(&kept), "{times}: {actions:?}");
            assert!(!root.join("there").exists() && root.join("here").exists(), "{times}");
        }
    }
}

#[test]
fn only_what_is_named_comes_and_the_rest_later() {
    for mut world in forked() {
        let (root, fork) = (world.root(), fork(&world));
        world.write(".gitignore", "*.log\n");
        write(&fork.join(".gitignore"), "*.log\n");
        write(&fork.join("text"), six(&[0]));
        write(&fork.join("new"), "new");
        write(&fork.join("a.log"), "log");
        ours(&mut world, &["fork", "--keep", "--yes", "--", "new"], 0);
        assert_eq!((&*read(&root, "new"), &*read(&root, "text")), ("new", &*six(&[])));
        let slip = ours(&mut world, &["fork", "--keep", "--yes", "--", "mode"], 1);
        assert!(slip.stderr.contains("the fork has not changed `mode`"), "{}", slip.stderr);
        let done = ours(&mut world, &["fork", "--keep", "--yes"], 0);
        assert_eq!(read(&root, "text"), six(&[0]));
        let stays = "stays in the fork: a.log: new and ignored";
        assert!(done.stdout.contains(stays) && !root.join("a.log").exists(), "{}", done.stdout);
        world.set("BEFOREHAND_MAX_FILE_SIZE", "1KB");
        world.set("BEFOREHAND_MAX_VICTIM_SIZE", "2KB");
        write(&fork.join("large"), vec![7; 40_000]);
        let large = ours(&mut world, &["fork", "--keep", "--dry-run"], 0).stdout;
        assert!(large.contains("stays in the fork: large: too large"), "{large}");
        let named = in_fork(&mut world, &["fork", "--keep", "--yes", "--", "a.log", "large"]);
        assert_eq!(named.exit.code(), 0, "{}", named.stderr);
        assert_eq!(fs::read(root.join("large")).unwrap().len(), 40_000);
        assert_eq!(read(&root, "a.log"), "log");
        ours(&mut world, &["undo", "--yes"], 0);
        assert!(!root.join("a.log").exists() && !root.join("large").exists(), "what was brought");
    }
}

#[test]
fn what_was_put_into_a_directory_keeps_it() {
    for mut world in forked() {
        let (root, fork) = (world.root(), fork(&world));
        remove_tree(&fork.join("gone")).unwrap();
        write(&fork.join("gone"), "a file");
        write(&root.join("gone/mine"), "mine");
        let before = on_disk(&root);
        let done = ours(&mut world, &["fork", "--keep", "--yes"], 3);
        assert_eq!(read(&root, "gone/mine"), "mine", "{}", done.stdout);
        ours(&mut world, &["undo", "--yes"], 0);
        assert!(on_disk(&root) == before);
        fs::remove_file(root.join("gone/mine")).unwrap();
        ours(&mut world, &["fork", "--keep", "--yes"], 0);
        assert_eq!(read(&root, "gone"), "a file");
    }
}

#[test]
fn a_keep_that_was_killed_can_be_finished_or_taken_back() {
    let points = [
        "keep-held", "restore-announced", "restore-held", "restore-begun", "apply-vacate",
        "apply-directory", "restore-head", "restore-end", "keep-done",
    ];
    for point in points {
        for (toward, mut world) in ["--abort", "--continue"].into_iter().zip(forked()) {
            let (root, fork) = (world.root(), fork(&world));
            work(&fork);
            meanwhile(&root);
            let before = on_disk(&root);
            ours(&mut world, &["fork", "--keep", "--yes"], 3);
            let after = on_disk(&root);
            ours(&mut world, &["undo", "--yes"], 0);
            let died = Command::new(env!("CARGO_BIN_EXE_beforehand"))
                .args(["fork", "--keep", "--yes"])
                .current_dir(world.root())
                .env_clear()
                .envs(&world.env)
                .env("BEFOREHAND_TEST_CRASH_AT", point)
                .output()
                .unwrap();
            assert!(died.status.code().is_none(), "{point} is never reached");
            let said = world.run(&["restore", toward]);
            let is_over = point == "keep-done";
            if said.exit.code() == 1 && !is_over {
                assert!(on_disk(&root) == before, "{point}: {}", said.stderr);
            } else if toward == "--abort" && !is_over {
                assert!(on_disk(&root) == before, "{point}: {}", said.stdout);
            } else {
                assert!(on_disk(&root) == after, "{point}: {}", said.stdout);
                ours(&mut world, &["undo", "--yes"], 0);
                assert!(on_disk(&root) == before, "{point}");
            }
            ours(&mut world, &["fork", "--keep", "--yes"], 3);
            assert!(on_disk(&root) == after, "{point}: again");
        }
    }
}

#[test]
fn what_changes_in_the_fork_meanwhile_stops_it_before_anything_is_changed() {
    for world in forked() {
        let (root, fork) = (world.root(), fork(&world));
        write(&fork.join("text"), six(&[0]));
        let before = on_disk(&root);
        let done = Command::new(env!("CARGO_BIN_EXE_beforehand"))
            .args(["fork", "--keep", "--yes"])
            .current_dir(world.root())
            .env_clear()
            .envs(&world.env)
            .env("PATH", "/usr/bin:/bin")
            .env("BEFOREHAND_TEST_RUN_AT", "keep-planned:echo late >../shop-fork-1/text")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(1), "{said}");
        assert!(said.contains("changed during the restore"), "{said}");
        assert!(on_disk(&root) == before);
    }
}

#[test]
fn commits_made_in_a_fork_are_named_with_the_command_that_fetches_them() {
    let mut world = World::new();
    write(&world.settings(), "deadline = \"60s\"\n");
    let root = world.root();
    world.write("a", "one\n");
    git(&world, &root, "git init -qb main && git add . && git commit -qm first");
    writes(&mut world, "one", "a", "agent\n");
    ours(&mut world, &["fork", "1", "--no-conversation"], 0);
    let fork = fork(&world);
    git(&world, &fork, "echo new >b && git add b && git commit -qm 'in the fork'");
    git(&world, &fork, "git init -q inner && echo x >inner/x");
    let head = git(&world, &root, "git rev-parse HEAD");
    let status = git(&world, &root, "git diff --cached");
    let done = ours(&mut world, &["fork", "--keep", "--yes"], 0).stdout;
    assert_eq!(read(&root, "b"), "new\n");
    assert!(done.contains("1 commit on main: ") && done.contains(" in the fork\n"), "{done}");
    assert!(done.contains("inner: a repository made in the fork"), "{done}");
    assert!(!root.join("inner").exists());
    let fetch = done.lines().find_map(|line| line.strip_prefix("  git fetch ")).unwrap();
    git(&world, &root, &format!("git fetch -q {fetch}"));
    assert_eq!(git(&world, &root, "git log -1 --format=%s FETCH_HEAD"), "in the fork");
    assert_eq!(git(&world, &root, "git rev-parse HEAD"), head, "HEAD does not move");
    assert_eq!(git(&world, &root, "git diff --cached"), status, "and nothing is staged");
}

#[test]
fn a_fork_that_is_not_there_or_not_meant_is_said_and_nothing_is_changed() {
    for mut world in forked() {
        let (root, fork) = (world.root(), fork(&world));
        let before = on_disk(&root);
        let none = ours(&mut world, &["fork", "--keep", "none", "--yes"], 1);
        assert!(none.stderr.contains("no fork `none`"), "{}", none.stderr);
        ours(&mut world, &["fork", "1", "../other", "--no-conversation"], 0);
        let many = ours(&mut world, &["fork", "--keep", "--yes"], 64);
        assert!(many.stderr.contains("more than one fork"), "{}", many.stderr);
        remove_tree(&fork).unwrap();
        let gone = ours(&mut world, &["fork", "--keep", "shop-fork-1", "--yes"], 1);
        assert!(gone.stderr.contains("is gone"), "{}", gone.stderr);
        assert!(on_disk(&root) == before);
    }
}

#[test]
fn of_a_conflict_it_is_said_which_side_removed_the_file() {
    for mut world in forked() {
        let (root, fork) = (world.root(), fork(&world));
        fs::remove_file(fork.join("text")).unwrap();
        write(&root.join("text"), six(&[1]));
        write(&fork.join("both"), six(&[1]));
        fs::remove_file(root.join("both")).unwrap();
        let plan = ours(&mut world, &["fork", "--keep", "--dry-run"], 0).stdout;
        assert!(plan.contains("changed here, removed in the fork"), "{plan}");
        assert!(plan.contains("removed here, changed in the fork"), "{plan}");
    }
}

/// What lies below a conflict stays in the fork with it, whether something or nothing is in its place.
#[test]
fn what_lies_below_a_conflict_goes_with_it() {
    for is_made_again in [false, true] {
        let mut world = forked().into_iter().next().unwrap();
        let (root, fork) = (world.root(), fork(&world));
        for dir in [&root, &fork] {
            fs::remove_file(dir.join("gone/a")).unwrap();
        }
        write(&fork.join("gone/a/deep/file"), "new");
        fs::remove_dir(root.join("gone")).unwrap();
        if is_made_again {
            write(&root.join("gone/a"), "mine");
        }
        let before = on_disk(&root);
        ours(&mut world, &["fork", "--keep", "--yes"], 3);
        assert_eq!(on_disk(&root), before);
        ours(&mut world, &["restore", "--continue"], 1);
    }
}

#[test]
fn what_the_project_has_in_place_of_a_directory_keeps_away_what_the_fork_put_there() {
    for mut world in forked() {
        let (root, fork) = (world.root(), fork(&world));
        write(&fork.join("gone/b"), "new");
        write(&fork.join("text"), six(&[0]));
        remove_tree(&root.join("gone")).unwrap();
        write(&root.join("gone"), "mine");
        let done = ours(&mut world, &["fork", "--keep", "--yes"], 3);
        assert!(done.stdout.contains("1 conflict kept: gone/b"), "{}", done.stdout);
        assert_eq!([read(&root, "gone"), read(&root, "text")], ["mine".to_owned(), six(&[0])]);
        assert!(!world.run(&["list"]).stderr.contains("interrupted"));
    }
}
