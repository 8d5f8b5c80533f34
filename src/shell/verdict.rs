//! What the tables are asked, and how they answer.

use std::borrow::Cow;

use super::flags::Field;
use crate::model::{Level, Target};

/// What a command can read from its standard input.
#[derive(Clone, Debug)]
pub(super) enum CommandInput {
    /// Whatever the whole line gets.
    Inherited,
    /// What another command prints.
    Pipe,
    /// A file, or something else we do not look into.
    File,
    /// This text.
    Text(String),
}

/// A command with all its words, the name first.
pub(super) struct CommandCall<'a> {
    /// The words; never empty.
    pub(super) words: &'a [Field],
    /// What it reads.
    pub(super) stdin: &'a CommandInput,
}

impl<'a> CommandCall<'a> {
    /// The words after the name.
    pub(super) fn args(&self) -> &'a [Field] {
        self.words.get(1..).unwrap_or_default()
    }
}

/// The verdict on one command.
#[derive(Clone, Debug)]
pub(super) struct CommandVerdict {
    /// How bad it is.
    pub(super) level: Level,
    /// Why, as a fragment of a sentence.
    pub(super) reason: Cow<'static, str>,
    /// What it does it to.
    pub(super) targets: Vec<Target>,
}

fn verdict(
    level: Level,
    reason: impl Into<Cow<'static, str>>,
    targets: Vec<Target>,
) -> CommandVerdict {
    CommandVerdict { level, reason: reason.into(), targets }
}

/// Leaves files alone.
pub(super) fn reads(reason: impl Into<Cow<'static, str>>) -> CommandVerdict {
    verdict(Level::ReadOnly, reason, Vec::new())
}

/// Makes new files.
pub(super) fn creates(
    reason: impl Into<Cow<'static, str>>,
    targets: Vec<Target>,
) -> CommandVerdict {
    verdict(Level::Creates, reason, targets)
}

/// Can lose data.
pub(super) fn destroys(
    reason: impl Into<Cow<'static, str>>,
    targets: Vec<Target>,
) -> CommandVerdict {
    verdict(Level::Destroys, reason, targets)
}

/// Cannot be told.
pub(super) fn unknown(reason: impl Into<Cow<'static, str>>) -> CommandVerdict {
    verdict(Level::Unknown, reason, Vec::new())
}
