//! `--patch`: what is chosen of a plan is done, held first and taken back as a whole; nothing else is.
//!
//! `BEFOREHAND_CASES` and `BEFOREHAND_SEED` run more random ones, or one again; `BEFOREHAND_FIRST` begins at
//! another seed.

use std::{fs, path::Path};

use beforehand::process::Exit;

use crate::{
    evidence::{ours, run, writes},
    support::{
        dice::{Dice, wished},
        real::git,
        temp::{chmod, link, on_disk, write},
        world::{Output, World},
    },
};

/// Thirty lines, with some of them another way.
fn lines(changed: &[(usize, &str)]) -> String {
    let line = |n| match changed.iter().find(|(at, _)| *at == n) {
        Some((_, text)) => format!("{text}\n"),
        None => format!("line {n}\n"),
    };
    (1..=30).map(line).collect()
}

/// A turn changed lines 3 and 6, which are one hunk, and line 20 of `a`; made `new`; removed `old`.
fn one_turn(mut world: World) -> World {
    write(&world.settings(), "deadline = \"60s\"\n");
    world.write("a", lines(&[]));
    world.write("old", "old\n");
    run(&mut world, "one", "make", |world| {
        world.write("a", lines(&[(3, "three"), (6, "six"), (20, "twenty")]));
        world.write("new", "new\n");
        remove(world, "old");
    });
    world
}

fn projects() -> [World; 2] {
    [one_turn(World::new()), one_turn(World::with_git())]
}

fn remove(world: &World, path: &str) {
    fs::remove_file(world.root().join(path)).unwrap();
}

#[track_caller]
fn asked(world: &mut World, args: &[&str], keys: &str, exit: Exit) -> Output {
    world.wait(1);
    let done = world.run_asked(args, &mut keys.as_bytes());
    assert_eq!(done.exit, exit, "{args:?}: {}{}", done.stdout, done.stderr);
    done
}

#[test]
fn the_chosen_hunks_are_restored_and_nothing_else() {
    for mut world in projects() {
        let before = on_disk(&world.root());
        let done = asked(&mut world, &["restore", "1", "-p"], "n\ny\nn\ny\n", Exit::Ok);
        assert_eq!(world.read("a"), lines(&[(3, "three"), (6, "six")]));
        assert!(world.root().join("new").exists());
        assert_eq!(world.read("old"), "old\n");
        assert!(done.stdout.contains("restored 2 paths"), "{}", done.stdout);
        ours(&mut world, &["undo", "--yes"], 0);
        assert!(on_disk(&world.root()) == before, "undo takes back exactly what was chosen");
        ours(&mut world, &["redo", "--yes"], 0);
        assert_eq!(world.read("a"), lines(&[(3, "three"), (6, "six")]));
    }
}

#[test]
fn the_rest_of_what_was_chosen_from_is_no_conflict_later() {
    for mut world in projects() {
        asked(&mut world, &["restore", "1", "-p"], "n\ny\nn\ny\n", Exit::Ok);
        ours(&mut world, &["restore", "1", "--yes"], 0);
        assert_eq!(world.read("a"), lines(&[]));
        assert!(!world.root().join("new").exists());
    }
}

#[test]
fn the_questions_are_those_of_git() {
    let mut world = one_turn(World::new());
    let done = asked(&mut world, &["restore", "1", "--patch"], "?\ns\nn\ny\nd\nq\n", Exit::Ok);
    insta::assert_snapshot!(world.redact(&done.stdout), @r"
    restoring checkpoint id-1 (just now) in /world/code/shop

    --- a/a
    +++ b/a
    @@ -1,9 +1,9 @@
     line 1
     line 2
    -three
    +line 3
     line 4
     line 5
    -six
    +line 6
     line 7
     line 8
     line 9
    @@ -1,5 +1,5 @@
     line 1
     line 2
    -three
    +line 3
     line 4
     line 5
    @@ -4,6 +4,6 @@
     line 4
     line 5
    -six
    +line 6
     line 7
     line 8
     line 9
    @@ -17,7 +17,7 @@
     line 17
     line 18
     line 19
    -twenty
    +line 20
     line 21
     line 22
     line 23

    --- a/new
    +++ /dev/null
    @@ -1 +0,0 @@
    -new
    restored 1 path from id-1
    undo with: beforehand undo
    ");
    assert!(done.stderr.contains("\ns - split it into smaller ones\n"), "{}", done.stderr);
    let questions: Vec<&str> = done.stderr.split("]? ").filter(|it| it.contains('(')).collect();
    let questions = questions.iter().map(|it| &it[it.find('(').unwrap()..]).collect::<Vec<_>>();
    insta::assert_snapshot!(questions.join("]\n"), @r"
    (1/2) Restore this hunk [y,n,q,a,d,j,J,g,s,e,p,?]
    (1/2) Restore this hunk [y,n,q,a,d,j,J,g,s,e,p,?]
    (1/3) Restore this hunk [y,n,q,a,d,j,J,g,e,p,?]
    (2/3) Restore this hunk [y,n,q,a,d,j,J,K,g,e,p,?]
    (3/3) Restore this hunk [y,n,q,a,d,K,g,e,p,?]
    (1/1) Remove this file [y,n,q,a,d,p,?
    ");
    assert_eq!(world.read("a"), lines(&[(3, "three"), (20, "twenty")]));
}

#[test]
fn keys_lead_to_other_hunks_and_back() {
    let mut world = one_turn(World::new());
    // Split; to the last; it is taken; back to the first, which is left; the second is taken after all.
    let keys = "s\nJ\nJ\ny\ng 1\nn\nk\ny\nq\n";
    asked(&mut world, &["restore", "1", "-p", "--", "a"], keys, Exit::Ok);
    assert_eq!(world.read("a"), lines(&[(3, "three")]));
}

#[test]
fn all_of_a_file_or_none_of_it_is_one_key() {
    for mut world in projects() {
        asked(&mut world, &["restore", "1", "-p"], "a\nn\nn\n", Exit::Ok);
        assert_eq!(world.read("a"), lines(&[]));
        ours(&mut world, &["undo", "--yes"], 0);
        asked(&mut world, &["restore", "1", "-p"], "d\ny\nn\n", Exit::Ok);
        assert_eq!(world.read("a"), lines(&[(3, "three"), (6, "six"), (20, "twenty")]));
        assert!(!world.root().join("new").exists());
    }
}

fn checkpoint_ids(world: &mut World) -> Vec<String> {
    let listed = ours(world, &["list", "--all", "--json"], 0).stdout;
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let ids = listed.as_array().unwrap().iter().map(|one| one["id"].to_string());
    ids.collect()
}

#[test]
fn without_an_answer_nothing_is_changed() {
    for mut world in projects() {
        let before = on_disk(&world.root());
        let checkpoints = checkpoint_ids(&mut world);
        for keys in ["", "y\n", "n\nn\nn\nn\n", "q\n", "d\nn\nn\n"] {
            asked(&mut world, &["restore", "1", "-p"], keys, Exit::Failed);
            assert!(on_disk(&world.root()) == before, "{keys:?}");
        }
        assert_eq!(checkpoint_ids(&mut world), checkpoints, "and nothing is held for it");
    }
}

#[test]
fn it_asks_a_person_and_nothing_that_contradicts_it() {
    let mut world = one_turn(World::new());
    for args in [&["restore", "1", "-p"][..], &["undo", "-p"], &["revert", "1", "-p"]] {
        let refused = ours(&mut world, args, 64);
        assert!(refused.stderr.contains("`--patch` needs a terminal"), "{}", refused.stderr);
    }
    for more in ["--yes", "--json", "--head", "--repository", "--conversation", "--into=x"] {
        asked(&mut world, &["restore", "1", "-p", more], "y\n", Exit::Usage);
    }
    for more in ["--yes", "--json"] {
        asked(&mut world, &["undo", "-p", more], "y\n", Exit::Usage);
        asked(&mut world, &["revert", "1", "-p", more], "y\n", Exit::Usage);
    }
}

#[test]
fn a_dry_run_shows_what_was_chosen() {
    let mut world = one_turn(World::new());
    let before = on_disk(&world.root());
    let shown = asked(&mut world, &["restore", "1", "-p", "--dry-run"], "n\ny\nn\nn\n", Exit::Ok);
    assert!(
        shown.stdout.contains("merge     a     +1 −1   in part, as you chose"),
        "{}",
        shown.stdout
    );
    assert!(shown.stdout.contains("keep      new   not chosen"), "{}", shown.stdout);
    assert!(shown.stdout.contains("1 path would change, 2 kept"), "{}", shown.stdout);
    assert!(on_disk(&world.root()) == before);
}

#[test]
fn undo_and_revert_take_back_the_chosen_part_of_a_turn() {
    for args in [&["undo", "-p"][..], &["revert", "1", "-p"]] {
        for mut world in projects() {
            let before = on_disk(&world.root());
            asked(&mut world, args, "y\nn\nn\nn\n", Exit::Ok);
            assert_eq!(world.read("a"), lines(&[(20, "twenty")]), "{args:?}");
            assert!(world.root().join("new").exists() && !world.root().join("old").exists());
            let back = if args[0] == "undo" { "redo" } else { "undo" };
            ours(&mut world, &[back, "--yes"], 0);
            assert!(on_disk(&world.root()) == before, "{args:?}");
        }
    }
}

#[test]
fn the_rest_of_a_turn_is_undone_after_a_part_of_it() {
    for mut world in projects() {
        let before = on_disk(&world.root());
        asked(&mut world, &["undo", "-p"], "y\nn\nn\nn\n", Exit::Ok);
        let told = ours(&mut world, &["list"], 0).stdout;
        assert!(!told.contains("[undone]"), "{told}");
        asked(&mut world, &["undo", "-p"], "y\nn\ny\n", Exit::Ok);
        assert_eq!(world.read("a"), lines(&[]));
        assert!(world.root().join("new").exists() && world.root().join("old").exists());
        ours(&mut world, &["undo", "--yes"], 0);
        assert!(!world.root().join("new").exists());
        let told = ours(&mut world, &["list"], 0).stdout;
        assert!(told.contains("[undone]"), "{told}");
        for _ in 0..3 {
            ours(&mut world, &["redo", "--yes"], 0);
        }
        assert!(on_disk(&world.root()) == before);
        ours(&mut world, &["redo", "--yes"], 1);
    }
}

#[test]
fn a_part_of_a_reverted_turn_keeps_what_came_after_it() {
    for mut world in projects() {
        let text = lines(&[(3, "three"), (6, "six"), (20, "twenty"), (29, "later")]);
        writes(&mut world, "two", "a", &text);
        asked(&mut world, &["revert", "2", "-p"], "n\ny\nq\n", Exit::Ok);
        assert_eq!(world.read("a"), lines(&[(3, "three"), (6, "six"), (29, "later")]));
        asked(&mut world, &["revert", "2", "-p", "--", "a"], "y\n", Exit::Ok);
        assert_eq!(world.read("a"), lines(&[(29, "later")]), "and then the other part");
    }
}

#[test]
fn what_others_changed_is_asked_about_only_if_it_may_be_overwritten() {
    for mut world in projects() {
        let mine = lines(&[(3, "three"), (6, "six"), (20, "twenty"), (29, "mine")]);
        world.write("a", &mine);
        let done = asked(&mut world, &["restore", "1", "-p"], "n\ny\n", Exit::Conflicts);
        assert!(done.stdout.contains("1 conflict kept: a"), "{}", done.stdout);
        assert_eq!(world.read("a"), mine);
        asked(&mut world, &["restore", "1", "-p", "--force", "--", "a"], "n\ny\ny\n", Exit::Ok);
        assert_eq!(world.read("a"), lines(&[(3, "three"), (6, "six")]));
        let again = ours(&mut world, &["restore", "1", "--yes", "--", "a"], 3).stdout;
        assert!(again.contains("1 conflict kept: a"), "what was left of it may be theirs: {again}");
    }
}

#[test]
fn a_hunk_is_edited_in_the_users_own_editor() {
    let mut world = one_turn(World::new());
    world.set("VISUAL", "my-editor --wait 'a b'");
    world.edits(|text| text.replace("+line 3\n", "+a third one\n"));
    asked(&mut world, &["restore", "1", "-p", "--", "a"], "e\nn\n", Exit::Ok);
    assert_eq!(world.read("a"), lines(&[(3, "a third one"), (20, "twenty")]));
    let started = world.started();
    let command = started.iter().find(|command| command[0] == "my-editor").unwrap();
    assert_eq!(command[..3], ["my-editor", "--wait", "a b"]);
    assert!(!Path::new(&command[3]).exists(), "the file is gone");
    ours(&mut world, &["undo", "--yes"], 0);
    world.edits(|text| text.replace(" line 4\n", " something else\n"));
    let told = asked(&mut world, &["restore", "1", "-p", "--", "a"], "e\nn\nn\n", Exit::Failed);
    assert!(told.stderr.contains("not those of the file"), "{}", told.stderr);
}

#[test]
fn a_repository_and_the_index_are_no_part_of_it() {
    let mut world = World::with_git();
    world.write("a", "one\n");
    run(&mut world, "one", "rm", |world| {
        world.write("a", "two\n");
        fs::rename(world.root().join(".git"), world.home().join("git")).unwrap();
    });
    let done = asked(&mut world, &["restore", "1", "-p"], "y\n", Exit::Ok);
    assert!(done.stderr.contains("repositories stay as they are"), "{}", done.stderr);
    assert_eq!(world.read("a"), "one\n");
    assert!(!world.root().join(".git").exists());
}

/// A random turn, the answers, and what the files come to be with them.
struct Case {
    keys: String,
    wanted: Vec<(String, Is)>,
    is_any: bool,
}

#[derive(Clone, Debug)]
enum Is {
    Nothing,
    File(Vec<u8>, u32),
    Link(&'static str),
}

impl Is {
    fn put(&self, path: &Path) {
        let _gone = fs::remove_file(path);
        match self {
            Self::Nothing => (),
            Self::File(bytes, mode) => {
                write(path, bytes);
                chmod(path, *mode);
            }
            Self::Link(text) => link(path, text),
        }
    }
}

/// A text whose places are changed each for itself; some are so near that they are one hunk.
fn random_text(dice: &mut Dice, keys: &mut String, is_any: &mut bool) -> [Is; 3] {
    const PLACES: [usize; 4] = [4, 6, 18, 28];
    let odd: &[u8] = [&b""[..], b"\xff", b"\r", &[b'x'; 3000]][dice.below(4)];
    let end: &[u8] = if dice.below(3) == 0 { b"" } else { b"\n" };
    let changed: Vec<bool> = PLACES.iter().map(|_| dice.below(3) > 0).collect();
    let mut taken: Vec<bool> = changed.iter().map(|is| *is && dice.below(2) == 0).collect();
    let modes = [0o644, if dice.below(4) == 0 { 0o755 } else { 0o644 }];
    let mut mode = modes[1];
    let is_text_changed = changed.contains(&true);
    let mut answer = |is: bool, keys: &mut String| {
        keys.push_str(if is { "y\n" } else { "n\n" });
        *is_any |= is;
    };
    if modes[0] != modes[1] {
        let is = dice.below(2) == 0;
        answer(is, keys);
        mode = if is { modes[0] } else { modes[1] };
    }
    if is_text_changed {
        if changed[0] && changed[1] {
            if dice.below(2) == 0 {
                keys.push_str("s\n");
                answer(taken[0], keys);
            } else {
                taken[1] = taken[0];
            }
            answer(taken[1], keys);
        } else if changed[0] || changed[1] {
            answer(taken[0] || taken[1], keys);
        }
        for n in (2..4).filter(|n| changed[*n]) {
            answer(taken[n], keys);
        }
    }
    let text = |is: &dyn Fn(usize) -> bool| {
        let line = |n: usize| {
            let place = PLACES.iter().position(|at| *at == n);
            let word = if place.is_some_and(is) { "new" } else { "line" };
            [format!("{word} {n}").as_bytes(), odd].concat()
        };
        let lines: Vec<Vec<u8>> = (1..=28).map(line).collect();
        [&lines.join(&b'\n')[..], end].concat()
    };
    let then = text(&|_| false);
    let now = text(&|place| changed[place]);
    let wanted = text(&|place| changed[place] && !taken[place]);
    [Is::File(then, modes[0]), Is::File(now, modes[1]), Is::File(wanted, mode)]
}

/// A file that is all or nothing.
fn random_whole(dice: &mut Dice, keys: &mut String, is_any: &mut bool) -> [Is; 3] {
    let any = |dice: &mut Dice| match dice.below(5) {
        0 => Is::Nothing,
        1 => Is::Link(["a", "nowhere"][dice.below(2)]),
        2 => Is::File(vec![0, u8::try_from(dice.below(3)).unwrap()], 0o644),
        _ => Is::File(vec![0, 1, 2], [0o644, 0o600][dice.below(2)]),
    };
    let (then, now) = (any(dice), any(dice));
    if format!("{then:?}") == format!("{now:?}") {
        return [then.clone(), now.clone(), now];
    }
    let is = dice.below(2) == 0;
    keys.push_str(if is { "y\n" } else { "n\n" });
    *is_any |= is;
    let wanted = if is { then.clone() } else { now.clone() };
    [then, now, wanted]
}

fn random_case(world: &mut World, dice: &mut Dice) -> Case {
    write(&world.settings(), "deadline = \"60s\"\n");
    let (mut keys, mut wanted, mut is_any) = (String::new(), Vec::new(), false);
    let mut all = Vec::new();
    // In the order of the questions.
    for path in ["a", "b", "d/e/w", "d/t", "w", "x"] {
        let [then, now, want] = match path {
            "a" | "b" | "d/t" => random_text(dice, &mut keys, &mut is_any),
            _ => random_whole(dice, &mut keys, &mut is_any),
        };
        fs::create_dir_all(world.root().join(path).parent().unwrap()).unwrap();
        then.put(&world.root().join(path));
        wanted.push((path.to_owned(), want));
        all.push((path, now));
    }
    run(world, "one", "make", |world| {
        for (path, now) in &all {
            now.put(&world.root().join(path));
        }
    });
    Case { keys, wanted, is_any }
}

#[test]
fn random_answers_do_what_they_say_and_an_undo_is_the_identity() {
    let first = wished("BEFOREHAND_SEED").or(wished("BEFOREHAND_FIRST")).unwrap_or(1);
    let cases = match wished("BEFOREHAND_SEED") {
        Some(_) => 1,
        None => wished("BEFOREHAND_CASES").unwrap_or(8),
    };
    for seed in first..first + cases {
        let mut dice = Dice::new(seed);
        let mut world = if seed % 2 == 0 { World::new() } else { World::with_git() };
        let then = random_case(&mut world, &mut dice);
        let verb =
            [&["restore", "1", "-p"][..], &["undo", "-p"], &["revert", "1", "-p"]][dice.below(3)];
        let before = on_disk(&world.root());
        let exit = if then.is_any { Exit::Ok } else { Exit::Failed };
        world.wait(1);
        let done = world.run_asked(verb, &mut then.keys.as_bytes());
        let told = format!("seed {seed}, {verb:?}: {}{}", done.stdout, done.stderr);
        if then.keys.is_empty() {
            assert!(on_disk(&world.root()) == before, "{told}");
            continue;
        }
        assert_eq!(done.exit, exit, "{told}");
        let after = on_disk(&world.root());
        let expected = World::new();
        for (path, is) in &then.wanted {
            let place = expected.root().join(path);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            is.put(&place);
        }
        for (path, _) in &then.wanted {
            let at = |root: &Path| {
                let place = root.join(path);
                let found = place.symlink_metadata().ok()?;
                let link = fs::read_link(&place).ok();
                let mode = std::os::unix::fs::PermissionsExt::mode(&found.permissions());
                Some((mode, link, fs::read(&place).ok().filter(|_| found.is_file())))
            };
            assert_eq!(at(&world.root()), at(&expected.root()), "{path}: {told}");
        }
        if then.is_any {
            let (back, forth) = if verb[0] == "undo" { ("redo", "undo") } else { ("undo", "redo") };
            ours(&mut world, &[back, "--yes"], 0);
            assert!(on_disk(&world.root()) == before, "{told}");
            if verb[0] != "undo" {
                ours(&mut world, &[forth, "--yes"], 0);
                assert!(on_disk(&world.root()) == after, "{told}");
            }
        }
    }
}

/// Thirty lines of which some are changed, removed, or have new ones before them.
fn random_lines(dice: &mut Dice) -> [String; 2] {
    let (mut then, mut now) = (String::new(), String::new());
    for n in 1..=30 {
        let line = format!("line {n}\n");
        then.push_str(&line);
        match dice.below(12) {
            0 => now.push_str(&format!("another {n}\n")),
            1 => (),
            2 => now.push_str(&format!("before {n}\n{line}")),
            _ => now.push_str(&line),
        }
    }
    [then, now]
}

/// After the last hunk, git goes back to the first even if that is decided, so `j` and `K` are left out.
#[test]
fn the_same_answers_do_what_they_do_in_git_restore() {
    let first = wished("BEFOREHAND_SEED").or(wished("BEFOREHAND_FIRST")).unwrap_or(1);
    let cases = match wished("BEFOREHAND_SEED") {
        Some(_) => 1,
        None => wished("BEFOREHAND_CASES").unwrap_or(12),
    };
    for seed in first..first + cases {
        let mut dice = Dice::new(seed);
        let mut world = World::with_git();
        write(&world.settings(), "deadline = \"60s\"\n");
        let files = ["a", "b"].map(|path| (path, random_lines(&mut dice)));
        for (path, [then, _]) in &files {
            world.write(path, then);
        }
        git(&world, &world.root(), "git add -A && git commit -qm one");
        run(&mut world, "one", "make", |world| {
            for (path, [_, now]) in &files {
                world.write(path, now);
            }
        });
        git(&world, &world.root(), "cp -r . ../git");
        let mut keys = String::new();
        for _ in 0..dice.below(30) {
            keys += dice.pick(&["y", "y", "n", "n", "s", "s", "e", "?", "a", "d", "q"]);
            keys += "\n";
        }
        // At the end of the answers git does what was chosen, and we do nothing.
        keys += &"q\n".repeat(2);
        world.set("VISUAL", "true");
        world.edits(str::to_owned);
        let done = world.run_asked(&["restore", "1", "-p"], &mut keys.as_bytes());
        let dir = world.root().with_file_name("git");
        let line = format!("printf '{keys}' | EDITOR=true git restore -p 2>&1");
        let gits = git(&world, &dir, &line);
        for (path, _) in &files {
            let wanted = fs::read_to_string(dir.join(path)).unwrap();
            let told = format!("seed {seed}, {keys:?}\n{}{}\n{gits}", done.stdout, done.stderr);
            assert_eq!(world.read(path), wanted, "{path}: {told}");
        }
    }
}
