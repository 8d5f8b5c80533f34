//! The picker in a real terminal, with real keys.

use beforehand::process::{Exit, Terminal};
use rustix::process::{Pid, Signal, kill_process};

use crate::{
    evidence::{run, writes},
    support::{
        dice::{Dice, wished},
        tmux::Tmux,
        world::World,
    },
};

/// Three turns: one edits a file, one deletes a directory, one makes a file with an evil name.
fn three_turns() -> World {
    let mut world = World::new();
    world.set("TERM", "screen");
    world.set("LC_ALL", "C.UTF-8");
    world.write("src/cart.ts", "one\ntwo\nthree\n");
    world.write("assets/logo.svg", "<svg/>\n");
    world.agent_writes("t1", "src/cart.ts", "one\n2\nthree\nfour\n");
    world.wait(60);
    world.before_bash("t2", "rm -rf assets");
    remove(&world, "assets");
    world.wait(60);
    world.agent_writes("t3", "a\u{1b}[2J\nb", "x\n");
    world
}

#[expect(clippy::disallowed_methods, reason = "what an agent does, in the test's own directory")]
fn remove(world: &World, path: &str) {
    std::fs::remove_dir_all(world.root().join(path)).unwrap();
}

/// Waits until the picker is no longer on the screen.
fn gone(tmux: &Tmux) {
    tmux.until("the shell", |screen| !screen.contains("Enter choose"));
}

/// What `stty` says of the terminal, once the prompt is back.
fn stty(tmux: &Tmux, mark: &str) -> String {
    tmux.line(&format!("clear; echo $? {mark} $(stty -g) {mark}-end"));
    let is_said = |screen: &str| screen.matches(&format!("{mark}-end")).count() == 1;
    let screen = tmux.until("what stty says", |screen| {
        is_said(screen) && !screen.contains("stty -g") && screen.trim_end().ends_with('$')
    });
    let said = screen.replace('\n', "");
    said.split(mark).nth(1).unwrap().trim().to_owned()
}

#[test]
fn a_turn_is_chosen_and_gone_back_to() {
    let world = three_turns();
    let Some(tmux) = Tmux::with_sh(&world, (80, 24)) else { return };
    tmux.line("beforehand rewind");
    let screen = tmux.sees("since then:");
    assert!(screen.contains("3 turns"), "{screen}");
    assert!(screen.contains("a\\u{1b}[2J\\nb"), "an evil name is harmless:\n{screen}");
    tmux.press(&["Down", "Down"]);
    tmux.sees("-two");
    // What is typed searches.
    tmux.press(&["c", "a", "r", "t"]);
    tmux.sees("/ cart");
    tmux.press(&["Escape"]);
    tmux.until("no search", |screen| !screen.contains("/ cart"));
    tmux.press(&["End", "Enter"]);
    let screen = tmux.sees("paths would change");
    assert!(screen.contains("› 1  files only"), "{screen}");
    assert!(screen.contains("restore   src/cart.ts"), "{screen}");
    tmux.press(&["Enter"]);
    let screen = tmux.sees("undo with: beforehand undo");
    assert!(screen.contains("restored"), "{screen}");
    assert_eq!(world.read("src/cart.ts"), "one\ntwo\nthree\n");
    assert_eq!(world.read("assets/logo.svg"), "<svg/>\n");
    tmux.line("beforehand undo --yes");
    tmux.sees("redo with: beforehand redo");
    assert_eq!(world.read("src/cart.ts"), "one\n2\nthree\nfour\n");
}

#[test]
fn the_terminal_is_given_back_however_it_ends() {
    let mut world = three_turns();
    let Some(tmux) = Tmux::with_sh(&world, (80, 24)) else { return };
    let before = stty(&tmux, "T0");
    let starts = |line: &str| {
        tmux.line(line);
        tmux.sees("since then:");
    };
    for (n, key) in ["Escape", "C-c"].iter().enumerate() {
        starts("beforehand rewind");
        tmux.press(&[key]);
        gone(&tmux);
        assert_eq!(stty(&tmux, &format!("K{n}")), before, "{key}");
    }
    // A signal ends it as it ends other programs.
    for (name, signal) in [("T", Signal::TERM), ("I", Signal::INT), ("H", Signal::HUP)] {
        let file = world.root().with_file_name("pid");
        starts(&format!("sh -c 'echo $$ > {}; exec beforehand rewind'", file.display()));
        let pid = std::fs::read_to_string(&file).unwrap().trim().parse().unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
        gone(&tmux);
        assert_eq!(stty(&tmux, &format!("S{name}")), before, "{name}");
    }
    // Stopped and continued, by a key and from outside.
    starts("beforehand rewind");
    tmux.press(&["C-z"]);
    gone(&tmux);
    assert_eq!(stty(&tmux, "Z"), before, "stopped");
    starts("fg");
    tmux.press(&["Down", "Escape"]);
    gone(&tmux);
    assert_eq!(stty(&tmux, "F"), before, "continued");
    // A bug leaves its words on the user's own screen.
    for place in ["picker", "picker-look"] {
        world.set("BEFOREHAND_TEST_BUG_AT", place);
        tmux.line(&format!("BEFOREHAND_TEST_BUG_AT={place} beforehand rewind; echo exit $?"));
        let screen = tmux.sees("exit 70");
        assert!(screen.contains("as a test wished"), "{screen}");
        assert_eq!(stty(&tmux, &format!("B{place}")), before, "{place}");
    }
}

#[test]
fn a_repository_that_is_gone_is_in_the_plan_and_comes_back() {
    let mut world = World::with_git();
    world.set("TERM", "screen");
    world.set("LC_ALL", "C.UTF-8");
    world.write("a.txt", "one\n");
    let head = world.read(".git/HEAD");
    world.before_bash("t1", "rm -rf .git");
    remove(&world, ".git");
    let Some(tmux) = Tmux::with_sh(&world, (80, 24)) else { return };
    tmux.line("beforehand rewind");
    tmux.sees("since");
    tmux.press(&["Enter"]);
    tmux.sees("the repository");
    tmux.press(&["Enter"]);
    gone(&tmux);
    tmux.until("the end", |screen| screen.trim_end().ends_with('$'));
    assert_eq!(world.read(".git/HEAD"), head);
}

#[test]
fn a_terminal_may_change_its_size() {
    let world = three_turns();
    let Some(tmux) = Tmux::with_sh(&world, (80, 24)) else { return };
    tmux.line("beforehand rewind");
    tmux.sees("since then:");
    tmux.resize(120, 40);
    tmux.until("a line for every row", |screen| screen.matches('│').count() == 36);
    tmux.resize(40, 10);
    tmux.until("the turns alone", |screen| !screen.contains("since then:"));
    tmux.resize(20, 5);
    tmux.sees("this terminal is");
    tmux.resize(80, 24);
    tmux.sees("since then:");
    tmux.press(&["Escape"]);
    gone(&tmux);
}

/// Forty lines, of which those at some places are another.
fn lines(changed: &[usize]) -> String {
    (0..40)
        .map(|n| if changed.contains(&n) { format!("new {n}\n") } else { format!("{n}\n") })
        .collect()
}

/// A turn changed three places of `a`, far apart, and `b`; it made `new` and removed `old`.
fn a_turn_with_hunks() -> World {
    let mut world = World::new();
    world.set("TERM", "screen");
    world.set("LC_ALL", "C.UTF-8");
    for (path, text) in [("a", lines(&[])), ("b", "b\n".to_owned()), ("old", "old\n".to_owned())] {
        world.write(path, text);
    }
    run(&mut world, "one", "make", |world| {
        world.write("a", lines(&[3, 20, 36]));
        world.write("b", "other\n");
        world.write("new", "new\n");
        remove_file(world, "old");
    });
    world
}

fn remove_file(world: &World, path: &str) {
    std::fs::remove_file(world.root().join(path)).unwrap();
}

#[test]
fn files_and_hunks_are_chosen_with_the_space_bar() {
    let world = a_turn_with_hunks();
    let Some(tmux) = Tmux::with_sh(&world, (80, 24)) else { return };
    tmux.line("beforehand rewind");
    tmux.sees("since then:");
    tmux.press(&["Enter"]);
    tmux.sees("paths would change");
    tmux.press(&["Space"]);
    let screen = tmux.sees("0 of 4 marked");
    assert!(screen.contains("› [ ] restore  a "), "{screen}");
    tmux.press(&["Enter"]);
    tmux.sees("1 of 3 · 0 marked");
    tmux.press(&["Down", "Space"]);
    tmux.sees("2 of 3 · 1 marked");
    tmux.press(&["Left", "End", "Space"]);
    let screen = tmux.sees("2 of 4 marked");
    assert!(
        screen.contains("› [x] recreate old") && screen.contains("[~] restore  a "),
        "{screen}"
    );
    tmux.press(&["r"]);
    let screen = tmux.sees("2 paths would change");
    assert!(screen.contains("in part, as you chose"), "{screen}");
    tmux.press(&["Enter"]);
    let screen = tmux.sees("undo with: beforehand undo");
    assert!(screen.contains("restored 2 paths"), "{screen}");
    assert_eq!(world.read("a"), lines(&[3, 36]));
    assert_eq!((&*world.read("b"), &*world.read("old")), ("other\n", "old\n"));
    assert_eq!(world.read("new"), "new\n");
    tmux.line("clear; beforehand undo --yes");
    tmux.sees("redo with: beforehand redo");
    assert_eq!(world.read("a"), lines(&[3, 20, 36]));
    assert!(!world.root().join("old").exists());
}

#[test]
fn a_hunk_is_split_on_the_screen_and_one_part_of_it_restored() {
    let mut world = World::new();
    world.set("TERM", "screen");
    world.set("LC_ALL", "C.UTF-8");
    world.write("a", lines(&[]));
    run(&mut world, "one", "make", |world| world.write("a", lines(&[3, 5, 7])));
    let Some(tmux) = Tmux::with_sh(&world, (80, 30)) else { return };
    tmux.line("beforehand rewind");
    tmux.sees("since then:");
    tmux.press(&["Enter", "Space"]);
    tmux.sees("0 of 1 marked");
    tmux.press(&["Enter"]);
    tmux.sees("1 of 1 · 0 marked");
    tmux.press(&["s"]);
    tmux.sees("1 of 3 · 0 marked");
    tmux.press(&["s"]);
    tmux.sees("this hunk cannot be split");
    tmux.press(&["Down", "Space"]);
    tmux.sees("2 of 3 · 1 marked");
    tmux.press(&["r"]);
    tmux.sees("1 path would change");
    tmux.press(&["Enter"]);
    tmux.sees("undo with: beforehand undo");
    assert_eq!(world.read("a"), lines(&[3, 7]));
}

#[test]
fn what_has_changed_since_it_was_shown_is_not_done() {
    let world = a_turn_with_hunks();
    let Some(tmux) = Tmux::with_sh(&world, (80, 24)) else { return };
    let part = |seen: &str| {
        tmux.press(&["a"]);
        tmux.sees("4 of 4 marked");
        tmux.press(&["r"]);
        tmux.sees(seen)
    };
    tmux.line("beforehand rewind");
    tmux.sees("since then:");
    tmux.press(&["Enter", "Space"]);
    tmux.sees("0 of 4 marked");
    world.write("b", "mine\n");
    part("`b` has changed since it was shown");
    // Back there, the plan is another one: the user's own change stays.
    tmux.press(&["Escape"]);
    tmux.sees("0 of 3 marked");
    tmux.press(&["a", "r"]);
    tmux.sees("3 paths would change");
    world.write("a", "mine\n");
    tmux.press(&["Enter"]);
    tmux.sees("error: `a` has changed since it was shown");
    assert_eq!((&*world.read("a"), &*world.read("b")), ("mine\n", "mine\n"));
    assert!(world.root().join("new").exists() && !world.root().join("old").exists());
}

#[test]
fn a_turn_is_taken_back_alone_and_some_of_it_too() {
    let mut world = a_turn_with_hunks();
    run(&mut world, "two", "make more", |world| world.write("later", "later\n"));
    let Some(tmux) = Tmux::with_sh(&world, (80, 24)) else { return };
    let opens = || {
        tmux.line("clear; beforehand rewind");
        tmux.sees("since then:");
        tmux.press(&["End", "Enter"]);
        tmux.sees("Back to 2:");
        tmux.press(&["Up", "Up", "Up"]);
        tmux.until("the plan", |screen| {
            screen.contains("Take back turn 2:") && screen.contains("paths would change")
        })
    };
    let screen = opens();
    assert!(screen.contains("this turn alone") && !screen.contains("later"), "{screen}");
    tmux.press(&["Space"]);
    tmux.sees("0 of 4 marked");
    tmux.press(&["Down", "Space", "r"]);
    tmux.sees("1 path would change");
    tmux.press(&["Enter"]);
    tmux.sees("undo with: beforehand undo");
    assert_eq!((&*world.read("b"), world.read("a")), ("b\n", lines(&[3, 20, 36])));
    opens();
    tmux.press(&["Enter"]);
    tmux.sees("undo with: beforehand undo");
    assert_eq!((world.read("a"), &*world.read("later")), (lines(&[]), "later\n"));
}

#[test]
fn a_turn_unfolds_into_steps_and_one_is_gone_back_to() {
    let mut world = World::new();
    world.set("TERM", "screen");
    world.set("LC_ALL", "C.UTF-8");
    for (path, text) in [("a", "a\n"), ("b", "b\n"), ("c", "c\n")] {
        world.write(path, text);
    }
    for (path, text) in [("a", "first\n"), ("b", "second\n"), ("c", "third\n")] {
        writes(&mut world, "one", path, text);
    }
    let Some(tmux) = Tmux::with_sh(&world, (80, 24)) else { return };
    tmux.line("beforehand rewind");
    let screen = tmux.sees("since then: 3 files");
    assert!(screen.contains("Tab steps"), "{screen}");
    tmux.press(&["Tab"]);
    let screen = tmux.sees("1.3");
    assert!(screen.contains("1.1") && screen.contains("Write b"), "{screen}");
    // The second step began with `a` written already.
    tmux.press(&["Down", "Down"]);
    let screen = tmux.sees("since then: 2 files");
    assert!(screen.contains("before step 1.2"), "{screen}");
    tmux.press(&["Enter"]);
    let screen = tmux.sees("2 paths would change");
    assert!(screen.contains("Back to 1.2: Write b"), "{screen}");
    // Of these, `c` alone.
    tmux.press(&["Space"]);
    tmux.sees("0 of 2 marked");
    tmux.press(&["Down", "Space", "r"]);
    tmux.sees("1 path would change");
    tmux.press(&["Enter"]);
    tmux.sees("undo with: beforehand undo");
    let files = || ["a", "b", "c"].map(|path| world.read(path)).concat();
    assert_eq!(files(), "first\nsecond\nc\n");
    tmux.line("clear; beforehand rewind");
    tmux.sees("since then:");
    tmux.press(&["Tab"]);
    tmux.sees("1.3");
    tmux.press(&["Down", "Down", "Enter"]);
    tmux.sees("1 path would change");
    tmux.press(&["Enter"]);
    tmux.sees("undo with: beforehand undo");
    assert_eq!(files(), "first\nb\nc\n");
}

/// Where the files of a random plan differ, far enough apart to be hunks of their own.
const PLACES: [usize; 4] = [2, 14, 26, 38];

/// What is marked, file by file and place by place, as the user sees it.
struct Seen<'t> {
    tmux: &'t Tmux,
    marked: [[bool; 4]; 3],
}

impl Seen<'_> {
    fn row(&self, file: usize) -> String {
        let marked = self.marked[file];
        let mark = match (marked.iter().all(|it| *it), marked.iter().any(|it| *it)) {
            (true, _) => "[x]",
            (false, true) => "[~]",
            (false, false) => "[ ]",
        };
        format!("{mark} restore  f{file} ")
    }

    /// Waits until the screen says what is marked.
    fn agrees(&self) {
        let rows = [0, 1, 2].map(|file| self.row(file));
        self.tmux.until(&rows.concat(), |screen| rows.iter().all(|row| screen.contains(row)));
    }

    /// In the hunks of a file, marks some and takes marks away.
    fn choose_hunks(&mut self, dice: &mut Dice, file: usize) {
        self.tmux.press(&["Home"]);
        self.tmux.press(&["Down"; 2][..file]);
        self.tmux.until("the file", |screen| screen.contains(&format!("› {}", self.row(file))));
        self.tmux.press(&["Enter"]);
        self.tmux.sees("1 of 4 ·");
        for (at, is_marked) in self.marked[file].iter_mut().enumerate() {
            if dice.is(2) {
                self.tmux.press(&["Space"]);
                *is_marked = !*is_marked;
            }
            if at < 3 {
                self.tmux.press(&["Down"]);
                self.tmux.sees(&format!("{} of 4 ·", at + 2));
            }
        }
        let count = self.marked[file].iter().filter(|it| **it).count();
        self.tmux.sees(&format!("{count} marked"));
        self.tmux.press(&["Left"]);
        self.agrees();
    }
}

/// A line for each place, and lines between them.
fn text_of(there: impl Fn(usize) -> String) -> String {
    let line = |n: usize| PLACES.iter().position(|at| *at == n).map_or(format!("{n}"), &there);
    (0..42).map(|n| line(n) + "\n").collect()
}

/// `BEFOREHAND_CASES` and `BEFOREHAND_FIRST` run more of them, or others.
#[test]
fn what_is_marked_on_the_screen_is_what_is_restored() {
    let mut world = World::new();
    world.set("TERM", "screen");
    world.set("LC_ALL", "C.UTF-8");
    let paths = ["f0", "f1", "f2"];
    for path in paths {
        world.write(path, text_of(|at| format!("before {at}")));
    }
    let (first, cases) = (wished("BEFOREHAND_FIRST"), wished("BEFOREHAND_CASES"));
    let (first, cases) = (first.unwrap_or(1), cases.unwrap_or(3));
    let Some(tmux) = Tmux::with_sh(&world, (80, 24)) else { return };
    for seed in first..first + cases {
        let mut dice = Dice::new(seed);
        run(&mut world, &format!("turn-{seed}"), "make", |world| {
            for path in paths {
                world.write(path, text_of(|at| format!("after {at} {seed}")));
            }
        });
        let then: Vec<String> = (0..4).map(|at| format!("before {at}")).collect();
        tmux.line("clear; beforehand rewind");
        tmux.sees("since then:");
        tmux.press(&["Enter", "Space"]);
        tmux.sees("0 of 3 marked");
        let mut seen = Seen { tmux: &tmux, marked: [[false; 4]; 3] };
        for _ in 0..=dice.below(3) {
            let file = dice.below(3);
            seen.choose_hunks(&mut dice, file);
        }
        if dice.is(3) {
            tmux.press(&["a"]);
            let is_all = seen.marked.iter().flatten().all(|it| *it);
            seen.marked = [[!is_all; 4]; 3];
            seen.agrees();
        }
        if !seen.marked.iter().flatten().any(|it| *it) {
            tmux.press(&["Home", "Space"]);
            seen.marked[0] = [true; 4];
            seen.agrees();
        }
        tmux.press(&["r"]);
        tmux.sees("would change");
        tmux.press(&["Enter"]);
        tmux.sees("undo with: beforehand undo");
        for (path, marked) in paths.iter().zip(seen.marked) {
            let wanted =
                text_of(
                    |at| {
                        if marked[at] { then[at].clone() } else { format!("after {at} {seed}") }
                    },
                );
            assert_eq!(world.read(path), wanted, "{path}, seed {seed}");
        }
        for path in paths {
            world.write(path, text_of(|at| format!("before {at}")));
        }
    }
}

#[test]
fn random_keys_leave_the_terminal_as_it_was() {
    let world = a_turn_with_hunks();
    let Some(tmux) = Tmux::with_sh(&world, (80, 24)) else { return };
    let before = stty(&tmux, "R");
    let (first, cases) = (wished("BEFOREHAND_FIRST"), wished("BEFOREHAND_CASES"));
    let (first, cases) = (first.unwrap_or(1), cases.unwrap_or(4));
    let keys: [&[u8]; 16] = [
        b" ",
        b" ",
        b"\r",
        b"\r",
        b"r",
        b"a",
        b"\t",
        b"\x1b[A",
        b"\x1b[B",
        b"\x1b[B",
        b"\x1b[C",
        b"\x1b[D",
        b"\x1b[6~",
        b"x\x7f",
        b"\x1b[200~r\r \x1b[201~",
        b"\x0c",
    ];
    for seed in first..first + cases {
        let mut dice = Dice::new(seed);
        tmux.line("clear; beforehand rewind");
        tmux.until("the picker", |screen| screen.contains("Enter choose"));
        for _ in 0..dice.below(40) {
            tmux.bytes(keys[dice.below(keys.len())]);
        }
        // It may have ended by itself; a shell takes it as well.
        tmux.bytes(b"\x03");
        tmux.until("the prompt", |screen| screen.trim_end().ends_with('$'));
        assert_eq!(stty(&tmux, &format!("R{seed}")), before, "seed {seed}");
        let screen = tmux.screen();
        assert!(!screen.contains("panicked"), "seed {seed}: {screen}");
    }
}

#[test]
fn a_terminal_without_a_screen_is_asked_in_lines() {
    let mut world = three_turns();
    world.terminal = Terminal { stdin: true, stdout: true, stderr: true, columns: Some(80) };
    world.set("TERM", "dumb");
    let asked = |world: &World, text: &str| world.run_in(&world.root(), &["rewind"], text);
    let output = asked(&world, "99\n3\nd\nf\ny\n");
    assert_eq!(output.exit, Exit::Ok, "{}", output.stderr);
    assert!(output.stdout.contains("before Bash rm -rf assets"), "{}", output.stdout);
    assert!(output.stdout.contains("-two\n+2\n"), "{}", output.stdout);
    assert!(output.stdout.contains("undo with: beforehand undo"), "{}", output.stdout);
    assert!(output.stderr.contains("no checkpoint `99`"), "{}", output.stderr);
    assert_eq!(world.read("src/cart.ts"), "one\ntwo\nthree\n");
    assert!(output.stderr.contains("p: hunk by hunk"), "{}", output.stderr);
    // A no is a no, and so is the end of input.
    remove(&world, "assets");
    assert_eq!(asked(&world, "3\nf\nn\n").exit, Exit::Failed);
    assert_eq!(asked(&world, "").exit, Exit::Ok);
    assert!(!world.root().join("assets").exists());
}

#[test]
fn without_a_terminal_it_makes_no_sense() {
    let mut world = three_turns();
    insta::assert_snapshot!(world.see(&["rewind"]), @r"
    --- Usage
    error: `beforehand rewind` needs a terminal to draw on
    hint: `beforehand list` and `beforehand restore N` do the same in lines
    ");
    world.terminal = Terminal { stdout: true, ..Terminal::default() };
    assert_eq!(world.run(&["rewind"]).exit, Exit::Usage);
}
