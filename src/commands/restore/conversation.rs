//! With `--conversation`: a fork of the transcript, cut before the turn that is undone.
//!
//! The original is never written. Reading and cutting, which can fail, come before any file is changed.
//! The fork is written last, under a new name.

use std::{
    ffi::OsStr,
    io::Read,
    path::{Path, PathBuf},
};

use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};

use super::server_fork;
use crate::{
    agent::{
        by_agent,
        transcript::{self, Asked, CutPoint, Fork, NoFork},
    },
    commands::Project,
    error::{Error, Result},
    fs::{Dir, c_name, create_new_synced, create_private_dirs, is_own, now_ns, read_small},
    ledger,
    maintenance::conversations,
    model::{Agent, By, Checkpoint},
    process::{Process, RunningProgram},
    state::hex,
    ui,
};

/// About a month of conversation. A larger file is not read into memory.
const SIZE_MAX_BYTES: u64 = 512 << 20;
/// The few lines a session has beside its conversation.
const COMPANION_MAX_BYTES: u64 = 1 << 20;

/// A fork that is ready to be made.
pub(crate) enum ConversationFork {
    /// We write it.
    Written(Box<PendingFork>),
    /// The agent's server makes it.
    Served {
        /// What it is asked.
        asked: Asked,
        session: String,
        /// The user's words that will not be in it any more.
        prompt: String,
        /// The server, if it was started for this.
        _running: Option<RunningProgram>,
    },
    /// Nothing was said before that turn: a new one takes its place.
    New {
        /// What begins it.
        command: Vec<String>,
        prompt: String,
    },
}

/// A fork that is ready to be written.
pub(crate) struct PendingFork {
    fork: Fork,
    /// Where it goes.
    dir: PathBuf,
    /// What goes beside it, in a directory that is made for both.
    companion: Option<(&'static str, Vec<u8>)>,
}

/// Reads the conversation a checkpoint belongs to and cuts it.
///
/// # Errors
///
/// Says why it cannot be cut; nothing was written.
pub(crate) fn prepare(
    process: &Process<'_>,
    project: &Project,
    checkpoint: &Checkpoint,
) -> Result<ConversationFork> {
    prepare_in(process, project, checkpoint, project.root.path())
}

/// Whether a checkpoint belongs to a conversation.
pub(crate) fn has_conversation(project: &Project, checkpoint: &Checkpoint) -> bool {
    origin(project, checkpoint).is_some_and(|(by, _)| by.agent != Agent::Program)
}

/// The same for a conversation that goes on in the directory `to`: the agent finds it there, and in it that
/// directory instead of the project's.
///
/// # Errors
///
/// As [`prepare`].
pub(crate) fn prepare_in(
    process: &Process<'_>,
    project: &Project,
    checkpoint: &Checkpoint,
    to: &Path,
) -> Result<ConversationFork> {
    let root = project.root.path();
    let (by, at) = origin(project, checkpoint).ok_or_else(|| {
        Error::other(
            format!("checkpoint {} belongs to no conversation", checkpoint.id.short()),
            "without --conversation the files alone are restored",
        )
    })?;
    let turn = by.turn.as_ref().map(|turn| turn.0.as_str());
    let own_rewind = || transcript::own_rewind(by.agent, &by.session.0, turn);
    let title = by_agent(by.agent).title;
    if transcript::is_served(by.agent) {
        return serve(process, project, &by, to).map_err(|why| {
            let what = format!("{title}'s server cannot be asked to fork the conversation: {why}");
            Error::other(what, own_rewind())
        });
    }
    if !transcript::can_fork(by.agent) {
        return Err(Error::other(
            format!("a conversation with {title} cannot be forked from outside"),
            own_rewind(),
        ));
    }
    let path = conversations::original(process, by.agent, &by.session, by.transcript.clone());
    let path = path.ok_or_else(|| {
        Error::other(format!("{title} did not say where it keeps the conversation"), own_rewind())
    })?;
    let kept = |path: &Path| conversations::kept(&project.state, by.agent, &by.session, path);
    let text = match read(&path) {
        Err(err) if err.is_missing() => read(&kept(&path)).map_err(|second| {
            if second.is_missing() { gone(title, &path, own_rewind()) } else { second }
        })?,
        text => text?,
    };
    let cut = CutPoint {
        session: &by.session.0,
        turn,
        prompt: by.prompt.as_deref(),
        position: by.position,
        at,
    };
    let new = new_session(&by.session.0);
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let forked = transcript::fork(by.agent, name, &text, cut, &new);
    if let (Err(NoFork::FirstTurn), Some(command)) = (&forked, transcript::beginning(by.agent)) {
        return Ok(ConversationFork::New { command, prompt: by.prompt.unwrap_or_default() });
    }
    let fork = forked.map_err(|why| {
        let path = ui::escape_path(&path);
        Error::other(format!("cannot fork the conversation `{path}`: {why}"), own_rewind())
    })?;
    let prompt = by.prompt.clone().filter(|_| fork.prompt.is_empty());
    let bytes = transcript::moved(&fork.bytes, root, to);
    let fork = Fork { prompt: prompt.unwrap_or(fork.prompt), bytes, ..fork };
    let here = path.parent().unwrap_or_else(|| Path::new("/"));
    let here = transcript::place_for(by.agent, here, root, to);
    match transcript::companion(by.agent) {
        None => Ok(ConversationFork::written(fork, here, None)),
        Some(name) => {
            let above = here.parent().unwrap_or(&here);
            let original = path.with_file_name(name);
            let text = match read_small(&original, COMPANION_MAX_BYTES)? {
                None => read_small(&kept(&original), COMPANION_MAX_BYTES)?,
                text => text,
            };
            let text = text.unwrap_or_default();
            let text = transcript::renamed(&text, &by.session.0, &new);
            let text = transcript::moved(&text, root, to);
            Ok(ConversationFork::written(fork, above.join(&new), Some((name, text))))
        }
    }
}

/// What to ask the agent's own server, which must know the turn. Where none listens any more, one
/// is started for as long as it takes.
fn serve(
    process: &Process<'_>,
    project: &Project,
    by: &By,
    to: &Path,
) -> Result<ConversationFork, String> {
    let name = by_agent(by.agent).name;
    let turn = by.turn.as_ref().ok_or("it did not say which turn it was")?;
    let ask = |address: &str, seconds| {
        let asked = transcript::ask(address, &by.session.0, &turn.0, to);
        let asked = asked.ok_or("it is not on this machine")?;
        server_fork::look(&asked, seconds).map(|()| asked)
    };
    let address = ledger::server(&project.state, name, &by.session.0);
    let known = address.ok_or("it did not say where it listens".to_owned());
    let (asked, running) =
        match known.and_then(|address| ask(&address, server_fork::LOOK_MAX_SECONDS)) {
            Ok(asked) => (asked, None),
            Err(why) => {
                let (running, address) =
                    server_fork::start(process, to).map_err(|second| format!("{why}; {second}"))?;
                (ask(&address, server_fork::FIRST_LOOK_MAX_SECONDS)?, Some(running))
            }
        };
    let (session, prompt) = (by.session.0.clone(), by.prompt.clone().unwrap_or_default());
    Ok(ConversationFork::Served { asked, session, prompt, _running: running })
}

/// The author of the turn that begins with the checkpoint, and a moment in it: the newest turn that uses
/// it, or else the one it was taken for.
fn origin(project: &Project, checkpoint: &Checkpoint) -> Option<(By, DateTime<Utc>)> {
    let uses = ledger::uses(&project.state);
    let is_it =
        |used: &&ledger::Use| used.checkpoint == checkpoint.id && used.root == project.root.path();
    match uses.iter().find(is_it) {
        Some(newest) => Some((newest.by.clone(), newest.at)),
        None => Some((checkpoint.cause.by.clone()?, checkpoint.taken_at)),
    }
}

/// The error for a conversation that the agent has deleted and of which nothing was kept.
fn gone(title: &str, path: &Path, own_rewind: String) -> Error {
    let path = ui::escape_path(path);
    Error::other(
        format!(
            "cannot fork the conversation `{path}`: {title} has deleted it, and nothing of it was kept"
        ),
        own_rewind,
    )
}

/// Reads a conversation: a regular file of the user's own, reached by no link, of a size that
/// makes sense. A pipe is not waited for.
fn read(path: &Path) -> Result<Vec<u8>> {
    let io = |err| Error::io("read the conversation", path)(err);
    let above = Dir::open(path.parent().unwrap_or_else(|| Path::new("/"))).map_err(io)?;
    let name = path.file_name().unwrap_or_default();
    let (file, stamp) =
        above.open_file(&c_name(name.as_encoded_bytes()).map_err(io)?).map_err(io)?;
    let refuse = |why: &str| {
        let path = ui::escape_path(path);
        let hint = "without --conversation the files alone are restored";
        Err(Error::other(format!("cannot fork the conversation `{path}`: {why}"), hint))
    };
    if !is_own(&file.metadata().map_err(io)?) {
        return refuse("it belongs to another user");
    }
    if stamp.size > SIZE_MAX_BYTES {
        return refuse(&format!("it is larger than {}", ui::size(SIZE_MAX_BYTES)));
    }
    let mut text = Vec::new();
    file.take(SIZE_MAX_BYTES).read_to_end(&mut text).map_err(io)?;
    Ok(text)
}

/// A name no session has: a random UUID in form, made of the old name and the moment.
fn new_session(old: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(old.as_bytes());
    hash.update(now_ns().to_le_bytes());
    hash.update(std::process::id().to_le_bytes());
    let mut bytes: Vec<u8> = hash.finalize()[..16].to_vec();
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex = hex(&bytes);
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

impl ConversationFork {
    fn written(fork: Fork, dir: PathBuf, companion: Option<(&'static str, Vec<u8>)>) -> Self {
        Self::Written(Box::new(PendingFork { fork, dir, companion }))
    }

    /// Creates the fork, never a part of it, and returns the command that resumes it.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be made; the original is as it was.
    pub(crate) fn make(&self) -> Result<Vec<String>> {
        match self {
            Self::Written(written) => written.write().map(|()| written.fork.resume.clone()),
            Self::Served { asked, session, .. } => server_fork::fork(asked, session),
            Self::New { command, .. } => Ok(command.clone()),
        }
    }

    /// What the user has to know of it; `resume` takes it up, if it is made, once `enter` has led to its
    /// directory.
    pub(crate) fn words(&self, resume: Option<&[String]>, enter: &str) -> String {
        let prompt = match self {
            Self::Written(written) => written.fork.prompt.trim(),
            Self::Served { prompt, .. } | Self::New { prompt, .. } => prompt.trim(),
        };
        let prompt = match prompt {
            "" => "that turn".to_owned(),
            words => {
                let line = words.lines().next().unwrap_or_default();
                let short: String = line.chars().take(PROMPT_CHARS_MAX).collect();
                let more = if short.len() < words.len() { "…" } else { "" };
                format!("\"{}{more}\"", ui::escape(short.as_bytes()))
            }
        };
        if let Self::New { command, .. } = self {
            return format!(
                "nothing was said before {prompt}; a new conversation begins with: {enter}{}",
                command.join(" ")
            );
        }
        match resume {
            None => format!("the conversation would be forked before {prompt}"),
            // Plain words and a plain name: nothing in it needs quotes.
            Some(command) => {
                format!(
                    "resume the conversation before {prompt} with: {enter}{}",
                    command.join(" ")
                )
            }
        }
    }
}

impl PendingFork {
    /// Writes it where only its owner can read it.
    fn write(&self) -> Result<()> {
        create_private_dirs(&self.dir)?;
        if let Some((name, text)) = &self.companion {
            create_new_synced(&self.dir.join(name), text)?;
        }
        create_new_synced(&self.dir.join(&self.fork.file_name), &self.fork.bytes)
    }
}

/// What fits on a line beside the command.
const PROMPT_CHARS_MAX: usize = 60;
