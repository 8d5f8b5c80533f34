//! The form of a fact about a program: [`ProgramRow`]. The facts themselves are in `table`.

use memchr::memmem;

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
}

impl ProgramRow {
    /// Whether the row is about this program or sub-command.
    pub(super) fn is(&self, name: &str) -> bool {
        // Every row is asked, and the hook waits: names are told apart only where it may be one.
        if memmem::find(self.names.as_bytes(), name.as_bytes()).is_none() {
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
    ProgramRow { names, flags, rule, why }
}
