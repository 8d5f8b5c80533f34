//! Compares the lines of two texts and counts additions and deletions.

use std::{collections::HashMap, fmt, time::Instant};

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

use crate::ui::number;

/// Numbers of added and deleted lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineCounts {
    /// Added lines.
    pub added: u64,
    /// Deleted lines.
    pub removed: u64,
}

impl fmt::Display for LineCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A minus sign as wide as the plus sign.
        write!(f, "+{} −{}", number(self.added), number(self.removed))
    }
}

/// Larger texts are counted, not compared, because the result would be too long to read.
const BYTES_MAX: usize = 4 << 20;

/// As [`BYTES_MAX`].
pub(super) const LINES_MAX: usize = 100_000;

/// A NUL in this part makes a file binary, as in git.
const LOOKED_AT: usize = 8000;

pub(super) fn is_binary(bytes: &[u8]) -> bool {
    bytes.iter().take(LOOKED_AT).any(|byte| *byte == 0)
}

pub(super) fn is_large(text: &[u8]) -> bool {
    text.len() > BYTES_MAX || text.split(|byte| *byte == b'\n').nth(LINES_MAX).is_some()
}

/// Splits into lines, each with its newline: a last line without one is a different line.
pub(super) fn split(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

pub(super) fn compare(old: &[&[u8]], new: &[&[u8]], deadline: Option<Instant>) -> Vec<DiffOp> {
    capture_diff_slices_deadline(Algorithm::Myers, old, new, deadline)
}

pub(super) fn tally(ops: &[DiffOp]) -> LineCounts {
    let mut lines = LineCounts::default();
    for op in ops.iter().filter(|op| !matches!(op, DiffOp::Equal { .. })) {
        lines.added += op.new_range().len() as u64;
        lines.removed += op.old_range().len() as u64;
    }
    lines
}

/// Counts each line's occurrences on both sides, wherever they are.
pub(super) fn counted(old: &[u8], new: &[u8]) -> LineCounts {
    let mut counts: HashMap<&[u8], i64> = HashMap::new();
    for line in new.split_inclusive(|byte| *byte == b'\n') {
        *counts.entry(line).or_default() += 1;
    }
    for line in old.split_inclusive(|byte| *byte == b'\n') {
        *counts.entry(line).or_default() -= 1;
    }
    let mut lines = LineCounts::default();
    for count in counts.into_values() {
        if count > 0 {
            lines.added += count.unsigned_abs();
        } else {
            lines.removed += count.unsigned_abs();
        }
    }
    lines
}
