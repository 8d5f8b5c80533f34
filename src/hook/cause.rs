//! Why a checkpoint is taken: the tool, the command line or the edit, for its record.

use super::Hook;
use crate::{
    ledger::{Ledger, Use},
    model::{By, Cause, Checkpoint, Intent, Reach, Reason},
};

/// A command line, a path or a message is cut there for the list.
const SUMMARY_CHARS_MAX: usize = 300;

impl Hook<'_, '_> {
    pub(super) fn cause(&self, ledger: Option<&Ledger>) -> Cause {
        Cause {
            reason: Reason::Call,
            by: Some(self.by(ledger)),
            tool: Some(self.call.tool.clone()),
            summary: self.summary(),
            of: None,
        }
    }

    fn by(&self, ledger: Option<&Ledger>) -> By {
        let context = &self.call.context;
        // A sub-agent may name a file of its own, which the user never spoke in.
        let is_sub = context.subagent.is_some();
        let known = ledger.filter(|_| is_sub).and_then(Ledger::transcript);
        By {
            agent: context.agent,
            session: context.session.clone(),
            turn: ledger.and_then(Ledger::turn).or_else(|| context.turn.clone()),
            subagent: context.subagent.clone(),
            prompt: ledger.and_then(Ledger::prompt).map(str::to_owned),
            transcript: known.or_else(|| context.transcript.clone()),
            position: ledger.and_then(Ledger::position),
        }
    }

    pub(super) fn use_of(&self, ledger: &Ledger, checkpoint: &Checkpoint, reach: &Reach) -> Use {
        Use {
            checkpoint: checkpoint.id,
            root: reach.root.path().to_owned(),
            by: self.by(Some(ledger)),
            at: self.process.now,
            tool: Some(self.call.tool.clone()),
            summary: self.summary(),
        }
    }

    /// The call in one line.
    fn summary(&self) -> Option<String> {
        let text = match &self.call.intent {
            Intent::Run { command, .. } => command.clone(),
            Intent::Write(paths) | Intent::Edit(paths) => {
                let names = paths.iter().map(|path| {
                    let path = path.strip_prefix(&self.cwd).unwrap_or(path);
                    path.to_string_lossy().into_owned()
                });
                names.collect::<Vec<_>>().join(" ")
            }
            Intent::Read | Intent::Unknown => return None,
        };
        Some(text.chars().take(SUMMARY_CHARS_MAX).collect())
    }
}
