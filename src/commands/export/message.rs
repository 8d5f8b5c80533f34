//! The message of a commit or patch.

use std::{collections::BTreeMap, fmt::Write as _};

use crate::{
    commands::rows::{agent_title, on_one_line},
    model::{Agent, RelPath},
    restore::{FileChange, HistoryTurn},
};

/// What one commit says.
pub(super) struct CommitMessage {
    /// One line, not escaped, with single spaces.
    pub(super) subject: String,
    /// What follows, ended by a line feed; empty if nothing does.
    pub(super) body: String,
}

impl CommitMessage {
    /// That of a turn, or of what others changed.
    pub(super) fn of(
        turn: Option<&HistoryTurn>,
        files: &BTreeMap<RelPath, FileChange>,
        with_prompt: bool,
    ) -> Self {
        let Some(turn) = turn else {
            let subject = format!("Between turns: {}", lower(&changes_in_words(files)));
            let body =
                "By hand, by turns before these or at the same time, or by an undo.\n".to_owned();
            return Self { subject, body };
        };
        let prompt = turn.by.as_ref().and_then(|by| by.prompt.as_deref());
        let prompt = prompt.filter(|prompt| with_prompt && !prompt.trim().is_empty());
        let asked = prompt.map(|prompt| on_one_line(&prompt.replace(char::is_control, " ")));
        let subject = asked.unwrap_or_else(|| changes_in_words(files));
        let is_whole = prompt.is_none_or(|prompt| prompt.trim() == subject);
        let quoted = prompt.filter(|_| !is_whole).map(quoted);
        let trailer = turn.by.as_ref().map(|by| match by.agent {
            Agent::Program => "Changed-by: beforehand run\n".to_owned(),
            agent => format!("Assisted-by: {}\n", agent_title(agent)),
        });
        let parts: Vec<String> = quoted.into_iter().chain(trailer).collect();
        Self { subject, body: parts.join("\n") }
    }

    /// The whole, as a commit has it.
    pub(super) fn text(&self) -> String {
        let Self { subject, body } = self;
        if body.is_empty() { format!("{subject}\n") } else { format!("{subject}\n\n{body}") }
    }
}

/// What a user wrote, indented: none of its lines is a trailer, a header, or where a patch begins.
fn quoted(prompt: &str) -> String {
    let clean = |line: &str| line.replace(|c: char| c.is_control() && c != '\t', "");
    let mut text = String::new();
    for line in prompt.trim().lines() {
        let _infallible = writeln!(text, "    {}", clean(line).trim_end());
    }
    text
}

/// As in `Change src/cart.ts and 2 more`.
fn changes_in_words(files: &BTreeMap<RelPath, FileChange>) -> String {
    let verb = if files.values().all(|file| file.before.is_none()) {
        "Add"
    } else if files.values().all(|file| file.after.is_none()) {
        "Remove"
    } else {
        "Change"
    };
    let first = files.keys().next().map(|path| String::from_utf8_lossy(path.as_bytes()));
    let first = first.unwrap_or_default().replace(char::is_control, "?");
    // As `git am` writes a subject.
    let first = first.split_whitespace().collect::<Vec<_>>().join(" ");
    match files.len() {
        0 | 1 => format!("{verb} {first}"),
        count => format!("{verb} {first} and {} more", count - 1),
    }
}

fn lower(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_of_a_prompt_is_read_as_anything_else() {
        let prompt = "do it\n---\ndiff --git a/x b/x\nSigned-off-by: x\n\u{1b}[2J";
        let expected =
            "    do it\n    ---\n    diff --git a/x b/x\n    Signed-off-by: x\n    [2J\n";
        assert_eq!(quoted(prompt), expected);
    }
}
