//! `restore --head`: when the branch goes back, when it does not, and that it comes back.

use std::{fs, path::Path};

use gix::objs::{Commit, Tree};

use crate::{
    repository::{packed, runs},
    support::{
        real::git,
        temp::write,
        world::{Output, World},
    },
};

/// A repository with a branch, its commits made without git.
struct Repo {
    world: World,
    commits: Vec<String>,
}

impl Repo {
    /// One commit, and then a checkpoint.
    fn new() -> Self {
        let mut repo = Self { world: World::with_git(), commits: Vec::new() };
        repo.commit();
        repo.world.write("a", "then");
        repo.world.run(&["create"]);
        repo
    }

    fn git(&self, name: &str) -> std::path::PathBuf {
        self.world.root().join(".git").join(name)
    }

    fn branch(&self) -> String {
        let head = fs::read_to_string(self.git("HEAD")).unwrap();
        head.trim().strip_prefix("ref: ").unwrap().to_owned()
    }

    /// Where the branch stands.
    fn tip(&self) -> String {
        fs::read_to_string(self.git(&self.branch())).unwrap().trim().to_owned()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.git("logs").join(self.branch())).unwrap()
    }

    /// Commits nothing, on top of the tip.
    fn commit(&mut self) {
        let repo = gix::open(self.world.root()).unwrap();
        let tree = repo.write_object(Tree::empty()).unwrap().detach();
        let time = format!("{} +0000", 1_700_000_000 + self.commits.len());
        let who = gix::actor::SignatureRef { name: "A".into(), email: "a@b.c".into(), time: &time };
        let who = who.to_owned().unwrap();
        let parents = self.commits.last().map(|id| id.parse().unwrap()).into_iter().collect();
        let commit = Commit {
            tree,
            parents,
            author: who.clone(),
            committer: who,
            encoding: None,
            message: "m".into(),
            extra_headers: Vec::new(),
        };
        let id = repo.write_object(&commit).unwrap().to_string();
        let old = self.commits.last().cloned().unwrap_or_else(|| "0".repeat(40));
        let line = format!("{old} {id} A <a@b.c> {time}\tcommit: m\n");
        let log = self.git("logs").join(self.branch());
        let log_before = fs::read_to_string(&log).unwrap_or_default();
        write(&log, log_before + &line);
        write(&self.git(&self.branch()), format!("{id}\n"));
        self.commits.push(id);
    }

    fn restore(&mut self) -> Output {
        self.world.wait(1);
        self.world.run(&["restore", "latest", "--yes", "--head"])
    }

    fn refused(&mut self, why: &str) {
        let (tip, log) = (self.tip(), self.log());
        let output = self.restore();
        assert_eq!(output.exit.code(), 1, "{why}: {}", output.stdout);
        assert!(output.stderr.contains(why), "{why}: {}", output.stderr);
        assert_eq!((self.tip(), self.log()), (tip, log), "{why}");
        assert_eq!(self.world.read("a"), "now", "{why}: nothing was restored either");
    }
}

/// Two commits and a change since the checkpoint.
fn moved_on() -> Repo {
    let mut repo = Repo::new();
    repo.commit();
    repo.commit();
    repo.world.write("a", "now");
    repo
}

#[test]
fn head_never_moves_unasked_and_the_way_back_is_named() {
    let mut repo = moved_on();
    let done = repo.world.run(&["restore", "latest", "--yes"]);
    assert_eq!((repo.tip(), repo.world.read("a")), (repo.commits[2].clone(), "then".to_owned()));
    let way = format!("2 commits made since: git reset --soft {} takes", &repo.commits[0][..7]);
    assert!(done.stdout.contains(&way), "{}", done.stdout);
}

#[test]
fn a_plan_that_moves_the_branch_alone_says_no_less() {
    let mut repo = moved_on();
    repo.world.write("a", "then");
    let plan = repo.world.run(&["restore", "latest", "--dry-run", "--head"]).stdout;
    assert!(plan.contains("goes back to ") && !plan.contains("nothing to do"), "{plan}");
}

#[test]
fn the_branch_goes_back_and_comes_again() {
    let mut repo = moved_on();
    let plan = repo.world.run(&["restore", "latest", "--dry-run", "--head"]).stdout;
    let said = format!("goes back to {}, behind 2 commits; its reflog", &repo.commits[0][..7]);
    assert!(plan.contains(&said), "{plan}");
    let done = repo.restore();
    assert_eq!((done.exit.code(), &*done.stderr), (0, ""), "{}", done.stdout);
    assert_eq!((repo.tip(), repo.world.read("a")), (repo.commits[0].clone(), "then".to_owned()));
    let last = repo.log().lines().last().unwrap().to_owned();
    let moved = format!("{} {} beforehand <", repo.commits[2], repo.commits[0]);
    assert!(last.starts_with(&moved) && last.contains("beforehand: restore to "), "{last}");
    let at_head = fs::read_to_string(repo.git("logs/HEAD")).unwrap();
    assert!(at_head.lines().last().unwrap().starts_with(&moved), "{at_head}");
    for (step, tip, text) in [("undo", 2, "now"), ("redo", 0, "then"), ("undo", 2, "now")] {
        repo.world.wait(1);
        let done = repo.world.run(&[step, "--yes"]);
        assert_eq!((done.exit.code(), &*done.stderr), (0, ""), "{step}: {}", done.stdout);
        assert_eq!(
            (repo.tip(), &*repo.world.read("a")),
            (repo.commits[tip].clone(), text),
            "{step}"
        );
    }
}

/// As `git gc` leaves it, when no reflog keeps the commits any more.
#[test]
fn an_undo_moves_no_branch_to_a_commit_that_is_gone() {
    let mut repo = moved_on();
    repo.restore();
    let gone = &repo.commits[2];
    fs::remove_file(repo.git("objects").join(&gone[..2]).join(&gone[2..])).unwrap();
    repo.world.wait(1);
    let done = repo.world.run(&["undo", "--yes"]);
    assert_eq!(repo.tip(), repo.commits[0], "{}{}", done.stdout, done.stderr);
}

#[test]
fn an_undo_leaves_a_branch_alone_that_has_moved_on() {
    let mut repo = moved_on();
    repo.restore();
    repo.commits.truncate(1);
    repo.commit();
    let done = repo.world.run(&["undo", "--yes"]);
    assert_eq!(done.exit.code(), 0, "{}", done.stderr);
    assert_eq!((repo.tip(), &*repo.world.read("a")), (repo.commits[1].clone(), "now"));
    let told = done.stdout.matches("which is not below it now").count();
    assert_eq!(told, 1, "{}", done.stdout);
}

#[test]
fn pushed_commits_are_not_left_behind() {
    let mut repo = moved_on();
    // The tip itself, then only the commit below it, then one on top of it; loose or packed.
    for pushed in [2, 1] {
        let id = repo.commits[pushed].clone();
        write(&repo.git("refs/remotes/origin/main"), format!("{id}\n"));
        repo.refused("commits since then are on origin/main");
    }
    fs::rename(repo.git("refs/remotes/origin/main"), repo.git("kept-ref")).unwrap();
    repo.commit();
    let on_top = repo.commits.pop().unwrap();
    write(&repo.git(&repo.branch()), format!("{}\n", repo.commits[2]));
    let packed =
        format!("# pack-refs with: peeled fully-peeled sorted \n{on_top} refs/remotes/up/x\n");
    write(&repo.git("packed-refs"), packed);
    repo.refused("commits since then are on up/x");
    // What was there before is no reason.
    let packed = format!("{} refs/remotes/up/x\n", repo.commits[0]);
    write(&repo.git("packed-refs"), packed);
    assert_eq!(repo.restore().exit.code(), 0);
    assert_eq!(repo.tip(), repo.commits[0]);
}

#[test]
fn what_else_keeps_a_branch_where_it_is() {
    type Break = fn(&mut Repo);
    let reasons: [(&str, Break); 6] = [
        ("has no reflog", |repo| {
            let log = repo.git("logs").join(repo.branch());
            fs::rename(&log, repo.git("kept-log")).unwrap();
            fs::create_dir(&log).unwrap();
        }),
        ("a merge is in progress", |repo| write(&repo.git("MERGE_HEAD"), repo.tip())),
        ("a rebase is in progress", |repo| fs::create_dir(repo.git("rebase-merge")).unwrap()),
        ("HEAD is on no branch now, and was on", |repo| {
            write(&repo.git("HEAD"), repo.tip());
        }),
        ("HEAD is on other now, and was on", |repo| {
            write(&repo.git("refs/heads/other"), repo.tip());
            write(&repo.git("HEAD"), "ref: refs/heads/other\n");
        }),
        ("has no commit now", |repo| fs::rename(repo.git(&repo.branch()), repo.git("x")).unwrap()),
    ];
    for (why, make) in reasons {
        let mut repo = moved_on();
        make(&mut repo);
        let head = fs::read(repo.git("HEAD")).unwrap();
        let output = repo.restore();
        assert_eq!(output.exit.code(), 1, "{why}: {}", output.stdout);
        assert!(output.stderr.contains(why), "{why}: {}", output.stderr);
        assert_eq!(fs::read(repo.git("HEAD")).unwrap(), head);
        assert_eq!(repo.world.read("a"), "now", "{why}: nothing was restored either");
    }
}

#[test]
fn a_checkpoint_without_a_branch_moves_none() {
    let mut plain = World::new();
    plain.write("a", "then");
    plain.run(&["create"]);
    let output = plain.run(&["restore", "1", "--yes", "--head"]);
    assert!(output.stderr.contains("does not say where it stood"), "{}", output.stderr);
    let mut unborn = World::with_git();
    unborn.write("a", "then");
    unborn.run(&["create"]);
    let output = unborn.run(&["restore", "1", "--yes", "--head"]);
    assert!(output.stderr.contains("had no commit then"), "{}", output.stderr);
    assert!(Path::new(&unborn.root()).join(".git/HEAD").exists());
}

#[test]
fn a_move_that_was_cut_off_is_finished_or_taken_back() {
    for point in ["apply-rename", "restore-head", "restore-index", "restore-end"] {
        for (flag, tip, text) in [("--continue", 0, "then"), ("--abort", 2, "now")] {
            let mut repo = moved_on();
            let killed = std::process::Command::new(env!("CARGO_BIN_EXE_beforehand"))
                .args(["restore", "latest", "--yes", "--head"])
                .current_dir(repo.world.root())
                .env_clear()
                .envs(&repo.world.env)
                .env("BEFOREHAND_TEST_CRASH_AT", format!("{point}:1"))
                .output()
                .unwrap();
            assert_eq!(killed.status.code(), None, "{point} is never reached");
            let done = repo.world.run(&["restore", flag]);
            assert_eq!((done.exit.code(), &*done.stderr), (0, ""), "{point} {flag}");
            let there = (repo.tip(), repo.world.read("a"));
            assert_eq!(there, (repo.commits[tip].clone(), text.to_owned()), "{point} {flag}");
            if flag == "--continue" {
                repo.world.wait(1);
                repo.world.run(&["undo", "--yes"]);
                assert_eq!(repo.tip(), repo.commits[2], "{point}: undo brings it back");
            }
        }
    }
}

/// A restore that is killed while it moves the branch leaves the locks of HEAD and of the branch.
#[test]
fn the_locks_of_a_killed_move_go_and_those_of_others_stay() {
    for flag in ["--continue", "--abort"] {
        let mut repo = moved_on();
        let branch = fs::read_to_string(repo.git("HEAD")).unwrap();
        let branch = branch.trim().strip_prefix("ref: ").unwrap().to_owned();
        let killed = std::process::Command::new(env!("CARGO_BIN_EXE_beforehand"))
            .args(["restore", "latest", "--yes", "--head"])
            .current_dir(repo.world.root())
            .env_clear()
            .envs(&repo.world.env)
            .env("BEFOREHAND_TEST_CRASH_AT", "restore-head:1")
            .output()
            .unwrap();
        assert_eq!(killed.status.code(), None);
        let locks = [repo.git("HEAD.lock"), repo.git(&format!("{branch}.lock"))];
        write(&locks[0], "");
        write(&locks[1], format!("{}\n", "1".repeat(40)));
        let refused = repo.world.run(&["restore", "--continue"]);
        assert_ne!(refused.exit.code(), 0, "another program moves the branch");
        assert!(locks[1].exists());
        write(&locks[0], "");
        write(&locks[1], format!("{}\n", repo.commits[0]));
        let done = repo.world.run(&["restore", flag]);
        assert_eq!((done.exit.code(), &*done.stderr), (0, ""), "{flag}");
        assert!(locks.iter().all(|lock| !lock.exists()), "{flag}");
        assert_eq!(repo.tip(), repo.commits[if flag == "--abort" { 2 } else { 0 }], "{flag}");
    }
}

/// The commit is gone from the repository, and comes back with it.
#[test]
fn the_branch_comes_back_with_the_repository_after_a_gc() {
    for away in [
        "git reset -q --hard HEAD~1",
        "git commit -qa --amend -m other",
        "git checkout -qf -b other HEAD~1 && git branch -qD main",
        "git checkout -qf --detach HEAD~1",
    ] {
        let mut world = packed();
        world.write("a", "two\n");
        runs(&mut world, &["create"]);
        let there = "git rev-parse HEAD && git symbolic-ref HEAD && git status --porcelain -- a";
        let before = git(&world, &world.root(), there);
        let gc = "git reflog expire --expire=now --all && git gc -q --prune=now";
        git(&world, &world.root(), &format!("{away} && {gc}"));
        world.wait(1);
        let args = ["restore", "latest", "--head", "--repository", "--yes", "--force"];
        runs(&mut world, &args);
        assert_eq!(git(&world, &world.root(), there), before, "{away}");
        git(&world, &world.root(), "git fsck --strict");
        world.wait(1);
        runs(&mut world, &["undo", "--yes"]);
    }
}
