//! `xAI`'s Grok Build. Second-hand notes on 1.0.5; not run.
//!
//! Its own hooks send camel case; whether those of Claude Code and Cursor, which it loads by
//! default, send their owners' spelling is unverified, so both are read. It waits 5 seconds for a
//! hook. Exit code 2 denies, with the reason on standard error.

use serde::Deserialize;

use super::input::Input;
use super::payload::{self, AgentPayload, Heard, hear};
use super::wire::Text;
use super::{BadPayload, Dialect, EventKind, HookAnswer, claude_code, reply};
use crate::model::{Agent, Intent, Language};

/// The dialect of Grok Build.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::GrokBuild,
    name: "grok-build",
    title: "Grok Build",
    asks: false,
    tells_ends: true,
    keeps_shell: true,
    hear: hear::<GrokPayload>,
    intent,
    answer: |kind, decision| reply::by_exit_code(kind, decision, HookAnswer::nothing()),
};

/// Maps a tool to what it wants: its own, or Claude Code's.
fn intent(tool: &str, input: &Input) -> Intent {
    match tool {
        "search_replace" => input.edit(&["file_path"]),
        "write" => input.write(&["file_path"]),
        "run_terminal_command" => input.run(&["command"], Language::Shell),
        "read_file" | "list_dir" | "grep" => Intent::Read,
        _ => claude_code::intent(tool, input),
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct GrokPayload {
    #[serde(alias = "hookEventName")]
    hook_event_name: Text,
    #[serde(alias = "sessionId")]
    session_id: Text,
    #[serde(alias = "promptId")]
    prompt_id: Text,
    cwd: Text,
    #[serde(alias = "permissionMode")]
    permission_mode: Text,
    #[serde(alias = "workspaceRoot")]
    workspace_root: Text,
    #[serde(alias = "transcriptPath")]
    transcript_path: Text,
    prompt: Text,
    #[serde(alias = "toolName")]
    tool_name: Text,
    #[serde(alias = "toolUseId")]
    tool_use_id: Text,
    #[serde(alias = "toolInput")]
    tool_input: Input,
    #[serde(alias = "toolInputTruncated")]
    tool_input_truncated: Text,
}

impl AgentPayload for GrokPayload {
    fn kind(&self) -> Result<EventKind, BadPayload> {
        payload::kind(&self.hook_event_name, &self.tool_name)
    }

    fn heard(self) -> Heard {
        // What was cut off a command may be what destroys.
        let input =
            if self.tool_input_truncated.is_true() { Input::default() } else { self.tool_input };
        Heard {
            session: self.session_id,
            turn: self.prompt_id,
            cwd: self.cwd,
            roots: self.workspace_root.path().into_iter().collect(),
            transcript: self.transcript_path,
            mode: self.permission_mode,
            prompt: self.prompt,
            call: self.tool_use_id,
            tool: self.tool_name,
            input,
            ..Heard::default()
        }
    }
}
