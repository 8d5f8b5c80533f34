//! The form of a fact about a program: [`ProgramRow`]. The facts themselves are in `table`.

use super::verdict::{CommandCall, CommandVerdict};
use super::walk::ShellWalk;
use crate::model::TargetAction;

/// What a program does with its operands.
#[derive(Clone, Copy)]
pub(super) enum Rule {
    /// Looks at them.
    Reads,
    /// Looks, if there are at most so many; with more we cannot tell.
    ReadsAtMost(usize),
    /// Looks at so many, and writes the next.
    ReadsThenWrites(usize),
    /// Rewrites them. In a directory, it finds the files of its own kind itself.
    Formats,
    /// Does this to all but the first so many.
    Changes(TargetAction, usize),
    /// Makes them.
    Makes,
    /// Copies all but the last to the last.
    Copies,
    /// Moves all but the last to the last.
    Moves,
    /// Can lose data that its operands do not name.
    Destroys,
    /// Runs the operands as a command, after so many of its own.
    Wraps(usize),
    /// Has sub-commands.
    Sub(&'static [ProgramRow]),
    /// Needs more than a row.
    By(fn(&mut ShellWalk<'_>, &CommandCall<'_>) -> CommandVerdict),
    /// Can do anything.
    Unknown,
}

/// One fact.
pub(super) struct ProgramRow {
    /// The programs it is about, separated by blanks; sub-commands of two words by commas.
    pub(super) names: &'static str,
    /// Their flags.
    pub(super) flags: &'static str,
    /// What they do.
    pub(super) rule: Rule,
    /// Why, as a fragment of a sentence.
    pub(super) why: &'static str,
    /// The [`mark`] of each name.
    marks: u64,
}

impl ProgramRow {
    /// Whether the row is about this program or sub-command.
    pub(super) fn is(&self, name: &str) -> bool {
        // Every row is asked, and the hook waits: names are compared only where one can be equal.
        let Some(first) = name.as_bytes().first() else { return false };
        if self.marks & mark(*first, name.len()) == 0 {
            return false;
        }
        if self.names.contains(',') {
            return self.names.split(',').any(|known| known.trim() == name);
        }
        self.names.split(' ').any(|known| known == name)
    }
}

/// Writes a row.
pub(super) const fn row(
    names: &'static str,
    flags: &'static str,
    rule: Rule,
    why: &'static str,
) -> ProgramRow {
    ProgramRow { names, flags, rule, why, marks: marks_of(names) }
}

/// One bit for the first letter and the length of a name.
const fn mark(first: u8, length: usize) -> u64 {
    1 << ((first as usize * 7 + length) % 64)
}

const fn marks_of(names: &str) -> u64 {
    let names = names.as_bytes();
    let separator = separator(names);
    let mut marks = 0;
    let mut start = 0;
    let mut at = 0;
    while at <= names.len() {
        if at == names.len() || names[at] == separator {
            if start < at {
                marks |= mark(names[start], at - start);
            }
            start = at + 1;
        } else if start == at && names[at] == b' ' {
            // After a comma.
            start += 1;
        }
        at += 1;
    }
    marks
}

/// The byte between two names.
const fn separator(names: &[u8]) -> u8 {
    let mut at = 0;
    while at < names.len() {
        if names[at] == b',' {
            return b',';
        }
        at += 1;
    }
    b' '
}
