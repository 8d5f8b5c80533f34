//! What agents, people and beforehand do, one step at a time, and how a step is told as a script.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use crate::support::{
    dice::Dice,
    temp::{chmod, link, write},
};

/// Where things happen. What ends in `.tmp` is ignored at first.
const PATHS: [&str; 10] =
    ["a", "b", "d", "d/x", "d/y", "i.tmp", "d/j.tmp", "e", "e/f/g", "e/k.tmp"];
const RULES: [&str; 4] = ["*.tmp\n", "", "*.tmp\nd/\n", "a\n*.tmp\n!i.tmp\n"];
pub(super) const SESSIONS: [&str; 2] = ["s0", "s1"];
/// Calls that can be under way at once.
pub(super) const SLOTS: usize = 2;

/// One change of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Edit {
    Write(&'static str, usize),
    Remove(&'static str),
    Mkdir(&'static str),
    Link(&'static str, usize),
    Mode(&'static str, u32),
    Rename(&'static str, &'static str),
    Ignore(usize),
    Nest(&'static str),
}

/// What an agent calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    /// Its own tool, which names the file.
    Write(&'static str, usize),
    /// A command line that says what it does.
    Shell(Vec<Edit>),
    /// One that does not.
    Make(Vec<Edit>),
}

/// One command of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ours {
    /// The checkpoint that so many in the list are newer than.
    Restore {
        back: usize,
        flags: Vec<&'static str>,
        path: Option<&'static str>,
    },
    Undo,
    UndoSession(usize),
    /// Killed at a point and then finished or taken back.
    Killed {
        back: usize,
        point: &'static str,
        ends: &'static str,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The hook before a call.
    Begin {
        slot: usize,
        session: usize,
        tool: Tool,
    },
    /// The call, and the hook after it.
    End(usize),
    /// The call, and no hook after it.
    Cut(usize),
    /// The call does not happen.
    Refuse(usize),
    /// The user asks for something new.
    Prompt(usize),
    /// The agent has finished.
    Stop(usize),
    User(Edit),
    Git(&'static str),
    /// What beforehand does in the background.
    Background,
    Prune,
    /// A command, which may be taken back after it and done again.
    Ours(Ours, usize),
}

fn path(dice: &mut Dice) -> &'static str {
    PATHS[dice.below(PATHS.len())]
}

fn edit(dice: &mut Dice) -> Edit {
    match dice.below(20) {
        0..=7 => Edit::Write(path(dice), dice.below(50)),
        8..=11 => Edit::Remove(path(dice)),
        12 | 13 => Edit::Mkdir(path(dice)),
        14 => Edit::Link(path(dice), dice.below(3)),
        15 => Edit::Mode(path(dice), [0o600, 0o644, 0o755, 0o700][dice.below(4)]),
        16 | 17 => Edit::Rename(path(dice), path(dice)),
        18 => Edit::Ignore(dice.below(RULES.len())),
        _ if dice.is(3) => Edit::Nest(path(dice)),
        _ => Edit::Write(path(dice), dice.below(50)),
    }
}

fn edits(dice: &mut Dice) -> Vec<Edit> {
    (0..=dice.below(3)).map(|_| edit(dice)).collect()
}

fn tool(dice: &mut Dice) -> Tool {
    match dice.below(3) {
        0 => Tool::Write(path(dice), dice.below(50)),
        1 => Tool::Shell(edits(dice)),
        _ => Tool::Make(edits(dice)),
    }
}

const POINTS: [&str; 8] = [
    "restore-announced", "restore-held", "restore-begun", "apply-vacate", "apply-write",
    "apply-rename", "restore-index", "restore-end",
];

fn ours(dice: &mut Dice) -> Ours {
    let back = dice.below(6);
    match dice.below(16) {
        0..=5 => Ours::Undo,
        6 => Ours::UndoSession(dice.below(2)),
        7..=12 => Ours::Restore { back, flags: Vec::new(), path: None },
        13 => Ours::Restore { back, flags: vec!["--exact", "--force"], path: None },
        14 => Ours::Restore { back, flags: Vec::new(), path: Some(path(dice)) },
        _ => {
            let ends = dice.pick(&["--continue", "--abort"]);
            let ends = if ends == "--abort" { "--abort" } else { "--continue" };
            Ours::Killed { back, point: POINTS[dice.below(POINTS.len())], ends }
        }
    }
}

/// Some steps that follow each other as they do in life.
fn next(dice: &mut Dice, is_git: bool, steps: &mut Vec<Step>) {
    let session = dice.below(5) / 4;
    match dice.below(30) {
        0..=13 => {
            let slot = dice.below(SLOTS);
            steps.push(Step::Begin { slot, session, tool: tool(dice) });
            if dice.is(8) {
                return;
            }
            steps.push(match dice.below(10) {
                0 => Step::Cut(slot),
                1 => Step::Refuse(slot),
                _ => Step::End(slot),
            });
        }
        14 => steps.push(Step::End(dice.below(SLOTS))),
        15..=17 => steps.push(Step::Prompt(session)),
        18 => steps.push(Step::Stop(session)),
        19..=22 => steps.push(Step::User(edit(dice))),
        23 if is_git => {
            let lines = ["git add -A", "git commit -qam c", "git checkout -q -- .", "git reset -q"];
            steps.push(Step::Git(lines[dice.below(lines.len())]));
        }
        23 => steps.push(Step::User(edit(dice))),
        24 if dice.is(4) => steps.push(Step::Prune),
        24 => steps.push(Step::Background),
        _ => {
            let ours = ours(dice);
            steps.push(Step::Ours(ours, dice.below(3)));
        }
    }
}

/// About so many steps.
pub(super) fn steps(dice: &mut Dice, count: usize, is_git: bool) -> Vec<Step> {
    let mut steps = Vec::new();
    while steps.len() < count {
        next(dice, is_git, &mut steps);
    }
    steps
}

fn remove(path: &Path) {
    let Ok(data) = path.symlink_metadata() else { return };
    if data.is_dir() {
        beforehand::fs::remove_tree(path).unwrap();
    } else {
        std::fs::remove_file(path).unwrap();
    }
}

/// Whether something can be put at `path` once what is there is gone.
fn is_reachable(root: &Path, path: &str) -> bool {
    let above = Path::new(path).ancestors().skip(1);
    above.map(|dir| root.join(dir)).all(|dir| match dir.symlink_metadata() {
        Ok(data) => data.is_dir(),
        Err(err) => err.kind() != std::io::ErrorKind::NotADirectory,
    })
}

fn text(number: usize) -> String {
    format!("{number}\nline\n")
}

/// Does it, if it can be done.
pub(super) fn apply(root: &Path, edit: &Edit) {
    match edit {
        Edit::Ignore(_) => (),
        Edit::Write(path, _)
        | Edit::Mkdir(path)
        | Edit::Link(path, _)
        | Edit::Nest(path)
        | Edit::Rename(_, path)
        | Edit::Remove(path)
        | Edit::Mode(path, _) => {
            if !is_reachable(root, path) {
                return;
            }
        }
    }
    let at = |path: &str| root.join(path);
    match edit {
        Edit::Write(path, number) => put(&at(path), &text(*number)),
        Edit::Remove(path) => remove(&at(path)),
        Edit::Mkdir(path) => {
            if !at(path).is_dir() || at(path).is_symlink() {
                remove(&at(path));
                std::fs::create_dir_all(at(path)).unwrap();
            }
        }
        Edit::Link(path, number) => {
            remove(&at(path));
            std::fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            link(&at(path), ["a", "d/x", "nowhere"][*number]);
        }
        Edit::Mode(path, mode) => {
            let is_dir = at(path).is_dir();
            if at(path).symlink_metadata().is_ok_and(|data| !data.is_symlink()) {
                chmod(&at(path), if is_dir { mode | 0o700 } else { *mode });
            }
        }
        Edit::Rename(from, to) => rename(root, from, to),
        Edit::Ignore(rule) => put(&at(".gitignore"), RULES[*rule]),
        Edit::Nest(path) => {
            remove(&at(path));
            std::fs::create_dir_all(at(path)).unwrap();
            let options = gix::create::Options::default();
            gix::create::into(at(path), gix::create::Kind::WithWorktree, options).unwrap();
            write(&at(path).join("n"), "nested\n");
        }
    }
}

fn put(path: &Path, text: &str) {
    if path.symlink_metadata().is_ok_and(|data| !data.is_file()) {
        remove(path);
    }
    write(path, text);
}

fn rename(root: &Path, from: &str, to: &str) {
    let (old, new): (PathBuf, PathBuf) = (root.join(from), root.join(to));
    let is_within = new.starts_with(&old) || old.starts_with(&new);
    if old.symlink_metadata().is_err() || is_within || !is_reachable(root, from) {
        return;
    }
    remove(&new);
    std::fs::create_dir_all(new.parent().unwrap()).unwrap();
    std::fs::rename(old, new).unwrap();
}

impl fmt::Display for Edit {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(path, number) => write!(to, "printf '{number}\\nline\\n' > {path}"),
            Self::Remove(path) => write!(to, "rm -rf {path}"),
            Self::Mkdir(path) => write!(to, "mkdir -p {path}"),
            Self::Link(path, number) => {
                write!(to, "ln -sfn {} {path}", ["a", "d/x", "nowhere"][*number])
            }
            Self::Mode(path, mode) => write!(to, "chmod {mode:o} {path}"),
            Self::Rename(from, into) => write!(to, "mv -fT {from} {into}"),
            Self::Ignore(rule) => write!(to, "printf {:?} > .gitignore", RULES[*rule]),
            Self::Nest(path) => write!(to, "git init -q {path}; echo nested > {path}/n"),
        }
    }
}

/// Several as one line.
pub(super) fn line(edits: &[Edit]) -> String {
    edits.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl fmt::Display for Step {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Begin { slot, session, tool } => {
                let session = SESSIONS[*session];
                match tool {
                    Tool::Write(path, number) => {
                        write!(to, "{session} call {slot}: Write {path} = {number}")
                    }
                    Tool::Shell(edits) => write!(to, "{session} call {slot}: Bash {}", line(edits)),
                    Tool::Make(edits) => {
                        write!(to, "{session} call {slot}: Bash make  # {}", line(edits))
                    }
                }
            }
            Self::End(slot) => write!(to, "   call {slot} runs and ends"),
            Self::Cut(slot) => write!(to, "   call {slot} runs and is interrupted"),
            Self::Refuse(slot) => write!(to, "   call {slot} is refused"),
            Self::Prompt(session) => write!(to, "{}: a new turn", SESSIONS[*session]),
            Self::Stop(session) => write!(to, "{}: the agent stops", SESSIONS[*session]),
            Self::User(edit) => write!(to, "user: {edit}"),
            Self::Git(line) => write!(to, "user: {line}"),
            Self::Background => write!(to, "what was started in the background"),
            Self::Prune => write!(to, "beforehand prune --keep 3"),
            Self::Ours(ours, then) => write!(to, "beforehand {ours:?}, and back: {then}"),
        }
    }
}
