//! The operations: how one round of each goes, and what it may take.

use std::{fmt, fs, io, process::Command};

use crate::{place::Place, tree::Tree};

/// What beforehand does, in the order of the table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    /// A call of a tool that only reads.
    Read,
    /// An edit of a file that the turn already holds.
    Covered,
    /// A checkpoint where nothing changed since the last.
    Same,
    /// A checkpoint after ten files changed.
    Ten,
    /// A checkpoint where there is none.
    First,
    /// Fifty files are recreated, fifty rewritten, and five removed.
    Restore,
    /// `list --limit 50`.
    List,
    /// `status`.
    Status,
}

/// One round: wall milliseconds.
pub(crate) struct Round {
    pub(crate) floor: f64,
    pub(crate) ours: f64,
    /// Other programs, by name.
    pub(crate) others: Vec<(&'static str, f64)>,
}

impl Operation {
    /// In the order in which they are run: each finds what the ones before it have left.
    pub(crate) const ALL: [Self; 8] = [
        Self::First,
        Self::Same,
        Self::Ten,
        Self::Restore,
        Self::Covered,
        Self::Read,
        Self::List,
        Self::Status,
    ];

    /// The name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Covered => "covered",
            Self::Same => "same",
            Self::Ten => "ten",
            Self::First => "first",
            Self::Restore => "restore",
            Self::List => "list",
            Self::Status => "status",
        }
    }

    /// Whether it is worth its time in this tree.
    pub(crate) fn is_run_in(self, tree: Tree) -> bool {
        match self {
            Self::List | Self::Status => matches!(tree, Tree::Real(_) | Tree::Plain | Tree::Many),
            Self::First | Self::Restore if tree == Tree::Many => false,
            // What is large is written once, and takes minutes.
            _ => tree != Tree::Large || matches!(self, Self::First | Self::Same),
        }
    }

    /// Whether its instructions are counted.
    pub(crate) fn is_counted(self) -> bool {
        matches!(self, Self::Read | Self::Covered)
    }

    /// How much of its floor it may take.
    pub(crate) fn goal(self) -> Option<f64> {
        match self {
            Self::Read | Self::Covered | Self::List | Self::Status => None,
            Self::Same | Self::Ten | Self::First | Self::Restore => Some(1.3),
        }
    }

    /// How much of another program's time it may take.
    pub(crate) fn goal_to(self, tree: Tree, other: &str) -> Option<f64> {
        match (self, tree, other) {
            (Self::First, Tree::Loose, "git") => Some(1.5),
            // Git does not hold what is ignored.
            (Self::First, Tree::Held, _) => None,
            (Self::First, _, "cold git") => Some(0.6),
            (Self::First, _, "cp -a") => Some(0.5),
            _ => None,
        }
    }

    /// How many inodes it may make.
    pub(crate) fn inodes_max(self, tree: Tree) -> Option<u64> {
        match self {
            Self::First if tree == Tree::Plain => Some(20),
            Self::Ten => Some(3),
            _ => None,
        }
    }

    /// How many system calls it may make.
    pub(crate) fn calls_max(self) -> Option<u64> {
        matches!(self, Self::Read | Self::Covered).then_some(60)
    }

    /// Brings everything to the state in which the operation is run.
    pub(crate) fn prepare(self, place: &mut Place) -> io::Result<()> {
        match self {
            Self::First => place.forget(),
            Self::Same => {
                place.fill_if_many()?;
                place.settle()
            }
            Self::Ten => {
                place.fill_if_many()?;
                place.settle()?;
                place.change_ten()
            }
            Self::Restore => {
                place.settle()?;
                let id = place.printed()?;
                fs::write(place.beside("id"), id.trim_end().lines().last().unwrap_or_default())?;
                place.ruin()
            }
            Self::Read => Ok(()),
            Self::Covered => {
                place.settle()?;
                // The first of its turn takes the checkpoint.
                place.time(&mut self.command(place, &[])?)?;
                place.settle()
            }
            Self::List | Self::Status => place.fill(),
        }
    }

    /// beforehand's own command, with a program that watches it in front.
    pub(crate) fn command(self, place: &Place, watcher: &[String]) -> io::Result<Command> {
        Ok(match self {
            Self::First | Self::Same | Self::Ten => place.beforehand(watcher, &["create"]),
            Self::Restore => {
                let id = fs::read_to_string(place.beside("id"))?;
                place.beforehand(watcher, &["restore", &id, "--yes", "--exact"])
            }
            Self::List => place.beforehand(watcher, &["list", "--limit", "50"]),
            Self::Status => place.beforehand(watcher, &["status"]),
            Self::Read | Self::Covered => {
                let mut command = place.beforehand(watcher, &["hook", "--agent", "claude-code"]);
                command.stdin(place.payload(if self == Self::Read { "Read" } else { "Edit" })?);
                command
            }
        })
    }

    /// Runs the floor, beforehand and the others once each.
    pub(crate) fn round(self, place: &mut Place) -> io::Result<Round> {
        let is_git = place.tree.is_git();
        let mut others = Vec::new();
        self.prepare(place)?;
        let floor = match self {
            Self::Read | Self::Covered => place.floor(&["nothing"])?,
            Self::Same => place.floor(&["stat", &place.beside("known")])?,
            // What is known is looked at as when nothing changed, and the rest is written.
            Self::Ten | Self::Restore => {
                let written = self.floor_of_writing(place)?;
                written + self.same(place)?
            }
            Self::First => {
                let hash = if is_git { "sha1" } else { "sha256" };
                let new = fs::read_to_string(place.beside("new"))?;
                let hashed = place.floor(&["hash", hash, &place.beside("files")])?;
                let to = place.beside("written");
                hashed + if new == "0" { 0.0 } else { place.floor(&["file", &new, &to])? }
            }
            Self::List | Self::Status => place.floor(&["print", &place.beside("records")])?,
        };
        match self {
            Self::Same | Self::Ten if is_git => others.push(("git", place.git_snapshot()?)),
            Self::First if is_git => {
                // The repository's index knows nothing of what is large, so it would be the same twice.
                if place.tree != Tree::Large {
                    others.push(("git", place.git_first()?));
                }
                others.push(("cold git", place.git_cold()?));
            }
            Self::First => others.push(("cp -a", place.copy()?)),
            Self::Restore if is_git => {
                others.push(("git", place.git_restore()?));
                place.verify()?;
                place.ruin()?;
            }
            Self::List if is_git => others.push(("git", place.git_list()?)),
            _ => (),
        }
        let mut command = self.command(place, &[])?;
        place.sync()?;
        let ours = place.time(&mut command)?;
        if self == Self::Restore {
            place.verify()?;
        }
        Ok(Round { floor, ours, others })
    }

    /// Writes what the operation has to write, and no more.
    fn floor_of_writing(self, place: &mut Place) -> io::Result<f64> {
        if self == Self::Ten {
            let length = place.ten_bytes()?.to_string();
            return place.floor(&["file", &length, &place.beside("written")]);
        }
        let floor = place.floor(&["restore", &place.beside("contents"), &place.beside("removed")]);
        place.verify()?;
        floor
    }

    /// beforehand's own time where nothing changed; then everything is as prepared again.
    fn same(self, place: &mut Place) -> io::Result<f64> {
        place.settle()?;
        let same = place.time(&mut place.beforehand(&[], &["create"]))?;
        self.prepare(place)?;
        Ok(same)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "a tool that only reads",
            Self::Covered => "an edit that is covered",
            Self::Same => "nothing changed",
            Self::Ten => "ten files changed",
            Self::First => "first checkpoint",
            Self::Restore => "restore of 100 files",
            Self::List => "list of 50",
            Self::Status => "status",
        })
    }
}
