//! The restore engine: from a request to a plan, and from a plan to files, index, branch and
//! repositories as they were. Whatever it overwrites is held first. It never prints.

mod announced;
mod authors;
mod content;
mod execute;
mod head;
mod hold;
mod inner;
mod interrupted;
mod look;
mod merge;
mod model_note;
mod outside;
mod prepare;
mod side;
mod unreadable;

pub(crate) use content::{bytes_now, bytes_then, is_state};
pub(crate) use execute::{Report, execute};
pub(crate) use interrupted::{
    Before, Settled, Toward, before, is_interrupted, resume, retain_steps,
};
pub(crate) use prepare::{Advice, Prepared, left_out, prepare, refuse_unknown};

use crate::{
    model::CheckpointId,
    plan::{Options, Picked},
};

/// What a restore is to do.
#[expect(clippy::struct_excessive_bools, reason = "each is a wish of its own")]
pub(crate) struct Request {
    /// The word that led to it: `restore`, `undo` or `redo`.
    pub(crate) verb: &'static str,
    /// What the user said about what others did since.
    pub(crate) options: Options,
    /// Whether conflicts of a merge are written down between marks.
    pub(crate) markers: bool,
    /// The part of the root it is about.
    pub(crate) picked: Picked,
    /// Whether the index is restored as well.
    pub(crate) index: bool,
    /// Whether what lies outside the root is put back as well.
    pub(crate) outside: bool,
    /// Whether the branch HEAD is on is taken back as well.
    pub(crate) head: bool,
    /// Whether the repository is made as it was, though it is whole. One that is gone, broken or
    /// another one is in any case.
    pub(crate) repository: bool,
    /// When a restore is taken back: the checkpoint it went to. What that restore created goes.
    pub(crate) of_restore: Option<CheckpointId>,
}

impl Request {
    /// Whether a turn is taken back, and nothing but what was done in it.
    fn is_of_turn(&self) -> bool {
        self.verb == "undo" && self.of_restore.is_none()
    }
}
