//! The environment variables that tell which agent really runs us, and where.
//!
//! A marker is inherited by everything an agent starts, other agents included. So it proves only
//! that its agent is *among* those that started us. A correction therefore needs more: that the
//! agent is known to load the configuration in question, and that the agent this configuration
//! belongs to left no marker of its own.

use std::ffi::OsString;
use std::path::PathBuf;

use super::{Dialect, by_agent};
use crate::model::Agent;

/// The environment variables that matter to a dialect, as they were when we started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Markers(Vec<(&'static str, OsString)>);

/// The agents that run another agent's hook lines: how each is recognized, and how the owner is.
struct Correction {
    configured: Agent,
    own: Option<&'static str>,
    marker: &'static str,
    real: Agent,
}

/// Known cases. Copilot CLI was seen doing it; Gemini CLI converts Claude's hooks with its own
/// `hooks migrate`; that Grok Build and Devin load Claude's, and Grok Build Cursor's, is
/// second-hand. Cursor can import Claude's hooks too, but has no known marker.
const CORRECTIONS: &[Correction] = &[
    claude_hooks_run_by(Agent::CopilotCli, "COPILOT_CLI"),
    claude_hooks_run_by(Agent::GrokBuild, "GROK_SESSION_ID"),
    claude_hooks_run_by(Agent::Devin, "DEVIN_PROJECT_DIR"),
    claude_hooks_run_by(Agent::QwenCode, "QWEN_CODE_SESSION_ID"),
    claude_hooks_run_by(Agent::GeminiCli, "GEMINI_SESSION_ID"),
    Correction {
        configured: Agent::Cursor,
        own: None,
        marker: "GROK_SESSION_ID",
        real: Agent::GrokBuild,
    },
];

/// Variables by which an agent says that it asks no questions, and the values that mean it. Claude Code
/// sets its own in every hook (seen in 2.1.329 with `-p`); Copilot CLI's is documented. Silence
/// proves nothing.
const UNATTENDED: &[(Agent, &str, &[&str])] = &[
    (Agent::ClaudeCode, "CLAUDE_CODE_SESSION_ATTENDED", &["0"]),
    (Agent::CopilotCli, "COPILOT_ALLOW_ALL", &["true", "1", "yes", "on", "y"]),
];

/// Agents that ask, and say in no way whether a person is there: neither by a mode in the payload
/// nor by a variable (Copilot CLI 1.0.102 with `-p`, run).
const SILENT: &[Agent] = &[Agent::CopilotCli, Agent::VsCodeAgent, Agent::OpenClaw];

/// Where each agent says its project is. `CLAUDE_PROJECT_DIR` is also set by others.
const PROJECT_DIRS: &[(Agent, &str)] = &[
    (Agent::ClaudeCode, "CLAUDE_PROJECT_DIR"),
    (Agent::GeminiCli, "GEMINI_PROJECT_DIR"),
    (Agent::QwenCode, "GEMINI_PROJECT_DIR"),
    (Agent::CopilotCli, "COPILOT_PROJECT_DIR"),
    (Agent::FactoryDroid, "DROID_PROJECT_DIR"),
    (Agent::GrokBuild, "CLAUDE_PROJECT_DIR"),
    (Agent::Devin, "DEVIN_PROJECT_DIR"),
    (Agent::Amplifier, "AMPLIFIER_PROJECT_DIR"),
];

/// Every variable of these tables, once: each hook looks them all up.
const NAMES: &[&str] = &[
    "CLAUDECODE",
    "COPILOT_CLI",
    "GROK_SESSION_ID",
    "DEVIN_PROJECT_DIR",
    "QWEN_CODE_SESSION_ID",
    "GEMINI_SESSION_ID",
    "CLAUDE_CODE_SESSION_ATTENDED",
    "COPILOT_ALLOW_ALL",
    "CLAUDE_PROJECT_DIR",
    "GEMINI_PROJECT_DIR",
    "COPILOT_PROJECT_DIR",
    "DROID_PROJECT_DIR",
    "AMPLIFIER_PROJECT_DIR",
];

/// A row for the hooks of Claude Code.
const fn claude_hooks_run_by(real: Agent, marker: &'static str) -> Correction {
    Correction { configured: Agent::ClaudeCode, own: Some("CLAUDECODE"), marker, real }
}

impl Markers {
    /// Reads them with the given look-up. Empty ones do not count.
    pub fn read(look_up: impl Fn(&str) -> Option<OsString>) -> Self {
        let found = NAMES.iter().filter_map(|name| Some((*name, look_up(name)?)));
        Self(found.filter(|(_, value)| !value.is_empty()).collect())
    }

    /// Whether this agent said that no person answers questions, or that all is allowed.
    pub fn unattended(&self, agent: Agent) -> bool {
        let mut rows = UNATTENDED.iter().filter(|(owner, ..)| *owner == agent);
        rows.any(|(_, name, values)| {
            let told = self.get(name).map(|value| value.to_string_lossy().to_ascii_lowercase());
            told.is_some_and(|told| values.contains(&&*told))
        })
    }

    /// Whether this agent may ask where no person is, without our knowing.
    pub fn may_ask_ignored(agent: Agent) -> bool {
        SILENT.contains(&agent)
    }

    /// Where this agent says its project is.
    pub(super) fn project_dir(&self, agent: Agent) -> Option<PathBuf> {
        let (_, name) = PROJECT_DIRS.iter().find(|(owner, _)| *owner == agent)?;
        self.get(name).map(PathBuf::from)
    }

    fn get(&self, name: &str) -> Option<&OsString> {
        self.0.iter().find(|(found, _)| *found == name).map(|(_, value)| value)
    }
}

/// The dialect of the agent that really runs us, if it is another than the hook line says.
pub fn corrected(dialect: &'static Dialect, markers: &Markers) -> &'static Dialect {
    let fits = |row: &&Correction| {
        row.configured == dialect.agent
            && markers.get(row.marker).is_some()
            && row.own.is_none_or(|own| markers.get(own).is_none())
    };
    CORRECTIONS.iter().find(fits).map_or(dialect, |row| by_agent(row.real))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::agent::by_name;

    fn markers(set: &[&str]) -> Markers {
        Markers::read(|name| set.contains(&name).then(|| OsString::from("1")))
    }

    #[test]
    fn a_foreign_configuration_is_recognised_by_its_marker() {
        let cases: &[(&str, &[&str], &str)] = &[
            ("claude-code", &[], "claude-code"),
            ("claude-code", &["CLAUDECODE"], "claude-code"),
            ("claude-code", &["COPILOT_CLI"], "copilot-cli"),
            ("claude-code", &["GROK_SESSION_ID"], "grok-build"),
            ("claude-code", &["DEVIN_PROJECT_DIR"], "devin-cli"),
            ("cursor", &["GROK_SESSION_ID"], "grok-build"),
            // Claude Code in the shell of Copilot CLI, or the other way round: we cannot tell.
            ("claude-code", &["CLAUDECODE", "COPILOT_CLI"], "claude-code"),
            // Codex loads no other agent's hooks: Copilot is only its grandparent.
            ("codex", &["COPILOT_CLI", "CLAUDECODE"], "codex"),
            ("claude-code", &["CLAUDE_PROJECT_DIR"], "claude-code"),
        ];
        for (configured, set, real) in cases {
            let found = corrected(by_name(configured).unwrap(), &markers(set));
            assert_eq!(found.name, *real, "{configured} with {set:?}");
        }
    }

    #[test]
    fn every_variable_is_looked_up_once() {
        let corrections = CORRECTIONS.iter().flat_map(|row| [Some(row.marker), row.own]).flatten();
        let unattended = UNATTENDED.iter().map(|(_, name, _)| *name);
        let used: BTreeSet<&str> = corrections
            .chain(unattended)
            .chain(PROJECT_DIRS.iter().map(|(_, name)| *name))
            .collect();
        assert_eq!(NAMES.iter().copied().collect::<BTreeSet<_>>(), used);
        assert_eq!(NAMES.len(), used.len());
    }

    #[test]
    fn who_is_not_there_cannot_answer() {
        let set = |marker: &'static str, value: &'static str| {
            Markers::read(move |name| (name == marker).then(|| OsString::from(value)))
        };
        for (agent, marker, value, is_unattended) in [
            (Agent::ClaudeCode, "CLAUDE_CODE_SESSION_ATTENDED", "0", true),
            (Agent::ClaudeCode, "CLAUDE_CODE_SESSION_ATTENDED", "1", false),
            // Copilot CLI in the shell of Claude Code.
            (Agent::CopilotCli, "CLAUDE_CODE_SESSION_ATTENDED", "0", false),
            (Agent::CopilotCli, "COPILOT_ALLOW_ALL", "True", true),
            (Agent::CopilotCli, "COPILOT_ALLOW_ALL", "0", false),
            (Agent::ClaudeCode, "COPILOT_ALLOW_ALL", "true", false),
        ] {
            assert_eq!(set(marker, value).unattended(agent), is_unattended, "{marker}={value}");
        }
        assert!(!Markers::default().unattended(Agent::ClaudeCode));
    }
}
