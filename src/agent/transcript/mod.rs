//! Conversations as agents keep them, and forks of them: the part before one turn, under another
//! name, as bytes.
//!
//! Pure: bytes and a [`CutPoint`] go in, bytes and the command that takes the fork up come out. Every
//! format here is a line of JSON for each thing that happened; which lines begin a turn, and which
//! before those already belong to it, is each agent's own. Nothing is written anew: lines are kept
//! as they are, but for the name of the session where it stands as a whole string.

pub(super) mod calls;
mod claude_code;
mod codex;
mod copilot_cli;
mod elsewhere;
mod gemini_cli;
mod pi;
mod qwen_code;
mod server;
#[cfg(test)]
mod tests;

pub use calls::{CallEvent, ConversationLog, workdir};
pub use elsewhere::{moved, place_for};
pub use server::{Asked, SERVE, ask, is_served, resume};

use std::fmt;

use chrono::{DateTime, Utc};

use crate::model::Agent;

/// Where to cut a conversation: before this turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutPoint<'a> {
    /// The session it must be of.
    pub session: &'a str,
    /// The turn, as the agent names it, if it does.
    pub turn: Option<&'a str>,
    /// How the user's words begin.
    pub prompt: Option<&'a str>,
    /// How long the conversation was when the turn began, in bytes.
    pub position: Option<u64>,
    /// A moment within the turn.
    pub at: DateTime<Utc>,
}

/// The part of a conversation before a turn, under another name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fork {
    /// What the file is called, which lies beside the original or in a directory of its own.
    pub file_name: String,
    /// What is in it.
    pub bytes: Vec<u8>,
    /// The user's words that are not in it any more, shortened.
    pub prompt: String,
    /// The command that takes it up.
    pub resume: Vec<String>,
}

/// Why a conversation cannot be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoFork {
    /// We do not know this agent's way of keeping conversations.
    UnknownFormat,
    /// The file, or its name, is not what this agent would have written for this session.
    OtherSession,
    /// A line before the turn, counted from 1, is not JSON.
    NotJson(usize),
    /// No turn in it is the one that is looked for.
    NoSuchTurn,
    /// It is the first turn: nothing would be left.
    FirstTurn,
}

impl fmt::Display for NoFork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownFormat => write!(f, "beforehand does not know how this agent keeps it"),
            Self::OtherSession => write!(f, "it is not a conversation of this session"),
            Self::NotJson(line) => write!(f, "line {line} of it is not JSON"),
            Self::NoSuchTurn => write!(f, "that turn is not in it"),
            Self::FirstTurn => write!(f, "that was its first turn; nothing is left to go on from"),
        }
    }
}

impl std::error::Error for NoFork {}

/// A way of keeping conversations.
trait Format: Sync {
    /// What a line is; `None` if it is not JSON, or not an object.
    fn row(&self, line: &[u8]) -> Option<TranscriptLine>;

    /// Where the part before the turn ends that begins at line `turn`, which is that line in most.
    fn end(&self, _lines: &[&[u8]], turn: usize) -> usize {
        turn
    }

    /// What the fork's file is called, if `old` is a name this agent gives a file of `session`.
    fn file_name(&self, old: &str, session: &str, new: &str) -> Option<String>;

    /// The command that takes up the session called `new`.
    fn resume(&self, new: &str) -> Vec<String>;
}

/// One line of a conversation, as far as cutting goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct TranscriptLine {
    what: TranscriptLineKind,
    at: Option<DateTime<Utc>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum TranscriptLineKind {
    /// The user's words, or what stands for the beginning of a turn.
    Turn {
        /// As the agent names it, where it does.
        id: Option<String>,
        /// The words, where they are in it.
        prompt: String,
    },
    /// Bookkeeping that belongs to the turn after it, if it stands right before one.
    Lead,
    /// Words of the user's that wait for the agent.
    Queued,
    /// The agent has taken up what waited.
    Dequeued,
    /// Anything else.
    #[default]
    Other,
}

fn format_of(agent: Agent) -> Option<&'static dyn Format> {
    Some(match agent {
        Agent::ClaudeCode => &claude_code::ClaudeTranscript,
        Agent::Codex => &codex::CodexTranscript,
        Agent::GeminiCli => &gemini_cli::GeminiTranscript,
        Agent::QwenCode => &qwen_code::QwenTranscript,
        Agent::CopilotCli => &copilot_cli::CopilotTranscript,
        Agent::Pi => &pi::PiTranscript,
        Agent::OpenCode
        | Agent::Cline
        | Agent::Hermes
        | Agent::Cursor
        | Agent::Windsurf
        | Agent::Kiro
        | Agent::FactoryDroid
        | Agent::Crush
        | Agent::Goose
        | Agent::Antigravity
        | Agent::GrokBuild
        | Agent::Devin
        | Agent::VsCodeAgent
        | Agent::Amplifier
        | Agent::OpenClaw
        | Agent::Kilo
        | Agent::Vibe
        | Agent::Auggie
        | Agent::OpenHands
        | Agent::Kimi
        | Agent::Qoder
        | Agent::Letta
        | Agent::CommandCode
        | Agent::Program => return None,
    })
}

/// Whether conversations of this agent can be forked.
pub fn can_fork(agent: Agent) -> bool {
    format_of(agent).is_some()
}

/// Whether an agent gives a conversation of `session` this file name.
pub fn is_name_of(agent: Agent, name: &str, session: &str) -> bool {
    let format = format_of(agent).filter(|_| is_plain(session));
    format.is_some_and(|format| format.file_name(name, session, session).is_some())
}

/// The file beside a conversation that the fork needs as well. Such a conversation has a directory
/// of its own, which is called like its session.
pub fn companion(agent: Agent) -> Option<&'static str> {
    (agent == Agent::CopilotCli).then_some("workspace.yaml")
}

/// Cuts the conversation `text`, which is kept in a file called `name`, and calls the rest `new`.
///
/// # Errors
///
/// Why it cannot be done.
pub fn fork(
    agent: Agent,
    name: &str,
    text: &[u8],
    cut: CutPoint<'_>,
    new: &str,
) -> Result<Fork, NoFork> {
    let format = format_of(agent).ok_or(NoFork::UnknownFormat)?;
    let file_name = Some(new).filter(|_| is_plain(cut.session));
    let file_name = file_name.and_then(|new| format.file_name(name, cut.session, new));
    let file_name = file_name.ok_or(NoFork::OtherSession)?;
    let lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
    let rows: Vec<Option<TranscriptLine>> = lines.iter().map(|line| format.row(line)).collect();
    let turn = find(&rows, &lines, cut).ok_or(NoFork::NoSuchTurn)?;
    let mut end = format.end(&lines, turn);
    while end > 0 && is_lead(rows[end - 1].as_ref()) {
        end -= 1;
    }
    if let Some(bad) = rows[..end].iter().position(Option::is_none) {
        return Err(NoFork::NotJson(bad + 1));
    }
    if !rows[..end].iter().flatten().any(TranscriptLine::is_turn) {
        return Err(NoFork::FirstTurn);
    }
    let kept = without_waiting(&rows[..end]);
    let kept: Vec<u8> = kept.into_iter().flat_map(|at| lines[at].iter().copied()).collect();
    let quoted = |name: &str| format!("\"{name}\"").into_bytes();
    if find_bytes(&kept, &quoted(cut.session)).is_none() {
        return Err(NoFork::OtherSession);
    }
    Ok(Fork {
        file_name,
        bytes: replace_all(&kept, &quoted(cut.session), &quoted(new)),
        prompt: rows[turn].as_ref().map(TranscriptLine::prompt).unwrap_or_default().to_owned(),
        resume: format.resume(new),
    })
}

/// The command that begins a new conversation with this agent; `None` if its conversations
/// cannot be forked.
pub fn beginning(agent: Agent) -> Option<Vec<String>> {
    let resume = if is_served(agent) {
        SERVE.map(str::to_owned).into()
    } else {
        format_of(agent)?.resume("")
    };
    resume.into_iter().next().map(|program| vec![program])
}

/// Puts another session's name into a file that goes with a conversation.
pub fn renamed(text: &[u8], session: &str, new: &str) -> Vec<u8> {
    replace_all(text, session.as_bytes(), new.as_bytes())
}

impl TranscriptLine {
    fn is_turn(&self) -> bool {
        matches!(self.what, TranscriptLineKind::Turn { .. })
    }

    fn prompt(&self) -> &str {
        match &self.what {
            TranscriptLineKind::Turn { prompt, .. } => prompt,
            TranscriptLineKind::Lead
            | TranscriptLineKind::Queued
            | TranscriptLineKind::Dequeued
            | TranscriptLineKind::Other => "",
        }
    }
}

fn is_lead(row: Option<&TranscriptLine>) -> bool {
    row.is_some_and(|row| {
        matches!(
            row.what,
            TranscriptLineKind::Lead | TranscriptLineKind::Queued | TranscriptLineKind::Dequeued
        )
    })
}

/// A name that we may make a file's of. Agents give their sessions such names; a payload could
/// give any.
fn is_plain(session: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (8..=128).contains(&session.len()) && session.bytes().all(is_plain)
}

/// The line at which the turn begins: the one with its name; else the one that begins with its
/// words where the turn is known to have begun; else the last one before the moment.
fn find(rows: &[Option<TranscriptLine>], lines: &[&[u8]], cut: CutPoint<'_>) -> Option<usize> {
    let turns: Vec<(usize, &TranscriptLine)> = rows
        .iter()
        .enumerate()
        .filter_map(|(at, row)| Some((at, row.as_ref().filter(|row| row.is_turn())?)))
        .collect();
    let is_named = |row: &TranscriptLine| match &row.what {
        TranscriptLineKind::Turn { id: Some(id), .. } => cut.turn == Some(id),
        TranscriptLineKind::Turn { id: None, .. }
        | TranscriptLineKind::Lead
        | TranscriptLineKind::Queued
        | TranscriptLineKind::Dequeued
        | TranscriptLineKind::Other => false,
    };
    if let Some((at, _)) = turns.iter().find(|(_, row)| is_named(row)) {
        return Some(*at);
    }
    let by_place = cut.position.zip(cut.prompt).and_then(|(position, prompt)| {
        let mut ends = Vec::with_capacity(lines.len());
        for line in lines {
            ends.push(ends.last().copied().unwrap_or(0) + line.len() as u64);
        }
        // Its line is the first after the place, or, where it was written before the agent told
        // us, the last before it.
        let after = turns.partition_point(|(at, _)| ends[*at] <= position);
        let near = [Some(after), after.checked_sub(1)].into_iter().flatten();
        let near = near.filter_map(|at| turns.get(at));
        near.into_iter()
            .find(|(_, row)| !prompt.is_empty() && row.prompt().starts_with(prompt))
            .map(|(at, _)| *at)
    });
    let by_time = || {
        let before = |row: &TranscriptLine| row.at.is_some_and(|at| at <= cut.at);
        turns.iter().rev().find(|(_, row)| before(row)).map(|(at, _)| *at)
    };
    by_place.or_else(by_time)
}

/// The lines to keep: words that still wait for the agent at the cut would be said in the fork.
fn without_waiting(rows: &[Option<TranscriptLine>]) -> Vec<usize> {
    let mut waiting = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        match row.as_ref().map(|row| &row.what) {
            Some(TranscriptLineKind::Queued) => waiting.push(at),
            Some(TranscriptLineKind::Dequeued) if !waiting.is_empty() => drop(waiting.remove(0)),
            Some(
                TranscriptLineKind::Dequeued
                | TranscriptLineKind::Turn { .. }
                | TranscriptLineKind::Lead
                | TranscriptLineKind::Other,
            )
            | None => (),
        }
    }
    (0..rows.len()).filter(|at| waiting.binary_search(at).is_err()).collect()
}

fn find_bytes(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|here| here == wanted)
}

fn replace_all(text: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = find_bytes(rest, from) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(to);
        rest = &rest[at + from.len()..];
    }
    out.extend_from_slice(rest);
    out
}

/// The beginning of what the user said, as it is shown and compared.
fn shortened(text: &str) -> String {
    const CHARS_MAX: usize = 200;
    text.chars().take(CHARS_MAX).collect()
}

/// Reads the fields of one line that a format asks for. What is not an object is no line.
fn read<'a, T: serde::Deserialize<'a>>(line: &'a [u8]) -> Option<T> {
    // Derived readers would take an array for a struct.
    if line.trim_ascii_start().first() != Some(&b'{') {
        return None;
    }
    serde_json::from_slice(line).ok()
}

/// A moment as all of them write it.
fn moment(text: Option<&str>) -> Option<DateTime<Utc>> {
    Some(DateTime::parse_from_rfc3339(text?).ok()?.with_timezone(&Utc))
}

/// The hint that names the agent's own command to go back in a conversation. `session` and
/// `turn` are as the agent names them.
pub fn own_rewind(agent: Agent, session: &str, turn: Option<&str>) -> String {
    match agent {
        Agent::OpenCode => opencode(session, turn),
        Agent::ClaudeCode => "in Claude Code, `/rewind` goes back in the conversation".to_owned(),
        Agent::Codex => "in Codex, Esc Esc goes back in the conversation".to_owned(),
        Agent::GeminiCli => "in Gemini CLI, `/rewind` goes back in the conversation".to_owned(),
        Agent::CopilotCli => "in Copilot CLI, `/rewind` goes back in the conversation".to_owned(),
        Agent::Pi => "in pi, `/tree` goes back in the conversation".to_owned(),
        Agent::Cursor => "in Cursor, edit an earlier message and send it again".to_owned(),
        Agent::Windsurf => "in Windsurf, revert to an earlier message of the chat".to_owned(),
        Agent::Cline => "in Cline, the checkpoints in its chat restore the task alone".to_owned(),
        Agent::VsCodeAgent => "in VS Code, edit an earlier request of the chat".to_owned(),
        Agent::QwenCode
        | Agent::Hermes
        | Agent::Kiro
        | Agent::FactoryDroid
        | Agent::Crush
        | Agent::Goose
        | Agent::Antigravity
        | Agent::GrokBuild
        | Agent::Devin
        | Agent::Amplifier
        | Agent::OpenClaw
        | Agent::Kilo
        | Agent::Vibe
        | Agent::Auggie
        | Agent::OpenHands
        | Agent::Kimi
        | Agent::Qoder
        | Agent::Letta
        | Agent::CommandCode
        | Agent::Program => "begin a new conversation, and say what was put back".to_owned(),
    }
}

/// `OpenCode` forks by itself, where its server runs. The names are its own, so they are quoted for
/// a shell whatever is in them.
fn opencode(session: &str, turn: Option<&str>) -> String {
    let plain = |name: &str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    match turn.filter(|turn| plain(turn) && plain(session)) {
        Some(turn) => format!(
            "where OpenCode's server runs, `curl -X POST -H 'Content-Type: application/json' -d \
             '{{\"messageID\":\"{turn}\"}}' http://127.0.0.1:4096/session/{session}/fork` makes \
             the fork, and `opencode -s` with its id takes it up"
        ),
        None => "in OpenCode, `/undo` goes back in the conversation".to_owned(),
    }
}
