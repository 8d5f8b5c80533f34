//! The payload with which each agent announces that it is about to run a command, as recorded or
//! documented in `fixtures/payloads`.

use std::path::Path;

use serde_json::Value;

/// One agent's payload.
pub(super) struct AgentPayload {
    /// As in `--agent NAME`.
    pub(super) agent: &'static str,
    /// The event under which the hook is registered; for Cline, the name of the script.
    pub(super) event: &'static str,
    /// `DIR` stands for the project, `COMMAND` for the command line.
    text: &'static str,
    /// The variable in which the agent names the project instead.
    pub(super) dir_variable: Option<&'static str>,
}

const fn payload(agent: &'static str, event: &'static str, text: &'static str) -> AgentPayload {
    AgentPayload { agent, event, text, dir_variable: None }
}

/// Every agent that has hooks.
pub(super) const PAYLOADS: &[AgentPayload] = &[
    payload(
        "claude-code",
        "PreToolUse",
        r#"{"session_id":"doctor","cwd":"DIR","prompt_id":"1","permission_mode":"default",
        "hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"COMMAND"},
        "tool_use_id":"1"}"#,
    ),
    payload(
        "codex",
        "PreToolUse",
        r#"{"session_id":"doctor","turn_id":"1","cwd":"DIR","hook_event_name":"PreToolUse",
        "permission_mode":"default","tool_name":"Bash","tool_input":{"command":"COMMAND"},
        "tool_use_id":"1"}"#,
    ),
    payload(
        "gemini-cli",
        "BeforeTool",
        r#"{"session_id":"doctor","cwd":"DIR","hook_event_name":"BeforeTool",
        "tool_name":"run_shell_command","tool_input":{"command":"COMMAND"}}"#,
    ),
    payload(
        "qwen-code",
        "PreToolUse",
        r#"{"session_id":"doctor","cwd":"DIR","hook_event_name":"PreToolUse","prompt_id":"1",
        "permission_mode":"default","tool_name":"run_shell_command",
        "tool_input":{"command":"COMMAND","is_background":false},"tool_use_id":"1"}"#,
    ),
    payload(
        "copilot-cli",
        "preToolUse",
        r#"{"sessionId":"doctor","timestamp":1795175038773,"cwd":"DIR","toolName":"bash",
        "toolArgs":{"command":"COMMAND"}}"#,
    ),
    payload(
        "opencode",
        "",
        r#"{"agent":"opencode","session_id":"doctor","message_id":"1","cwd":"DIR","worktree":"DIR",
        "hook_event_name":"tool.execute.before","call_id":"1","tool_name":"bash",
        "tool_input":{"command":"COMMAND"}}"#,
    ),
    payload(
        "cline",
        "PreToolUse",
        r#"{"taskId":"doctor","workspaceRoots":["DIR"],"hookName":"tool_call",
        "tool_call":{"id":"1","name":"run_commands","input":{"commands":["COMMAND"]}},
        "preToolUse":{"toolName":"run_commands","parameters":{"commands":"[\"COMMAND\"]"}}}"#,
    ),
    payload(
        "hermes",
        "pre_tool_call",
        r#"{"hook_event_name":"pre_tool_call","tool_name":"terminal",
        "tool_input":{"command":"COMMAND"},"session_id":"doctor","cwd":"DIR",
        "extra":{"task_id":"doctor","tool_call_id":"1","turn_id":"1"}}"#,
    ),
    payload(
        "cursor",
        "preToolUse",
        r#"{"conversation_id":"doctor","generation_id":"1","workspace_roots":["DIR"],
        "hook_event_name":"preToolUse","tool_name":"Shell",
        "tool_input":{"command":"COMMAND","working_directory":"DIR"},"tool_use_id":"1","cwd":"DIR"}"#,
    ),
    payload(
        "windsurf",
        "pre_run_command",
        r#"{"agent_action_name":"pre_run_command","trajectory_id":"doctor","execution_id":"1",
        "tool_info":{"command_line":"COMMAND","cwd":"DIR"}}"#,
    ),
    payload(
        "kiro",
        "preToolUse",
        r#"{"hook_event_name":"preToolUse","cwd":"DIR","session_id":"doctor",
        "tool_name":"execute_bash","tool_input":{"command":"COMMAND"}}"#,
    ),
    payload(
        "factory-droid",
        "PreToolUse",
        r#"{"session_id":"doctor","cwd":"DIR","permission_mode":"auto-high",
        "hook_event_name":"PreToolUse","tool_name":"Execute","tool_input":{"command":"COMMAND"}}"#,
    ),
    payload(
        "crush",
        "PreToolUse",
        r#"{"event":"PreToolUse","session_id":"doctor","cwd":"DIR","tool_name":"bash",
        "tool_input":{"command":"COMMAND"}}"#,
    ),
    payload(
        "goose",
        "PreToolUse",
        r#"{"event":"PreToolUse","session_id":"doctor","working_dir":"DIR","tool_name":"shell",
        "tool_input":{"command":"COMMAND"}}"#,
    ),
    payload(
        "antigravity",
        "PreToolUse",
        r#"{"toolCall":{"name":"run_command","args":{"CommandLine":"COMMAND","Cwd":"DIR"}},
        "stepIdx":1,"conversationId":"doctor","workspacePaths":["DIR"]}"#,
    ),
    payload(
        "grok-build",
        "PreToolUse",
        r#"{"hookEventName":"pre_tool_use","sessionId":"doctor","cwd":"DIR","workspaceRoot":"DIR",
        "promptId":"1","permissionMode":"default","toolName":"run_terminal_command",
        "toolInput":{"command":"COMMAND"},"toolUseId":"1","toolInputTruncated":false}"#,
    ),
    AgentPayload {
        dir_variable: Some("DEVIN_PROJECT_DIR"),
        ..payload(
            "devin-cli",
            "PreToolUse",
            r#"{"hook_event_name":"PreToolUse","tool_name":"exec","tool_input":{"command":"COMMAND"},
            "tool_use_id":"1","session_id":"doctor","prompt_id":"1"}"#,
        )
    },
    payload(
        "vscode-agent",
        "PreToolUse",
        r#"{"hook_event_name":"PreToolUse","session_id":"doctor","tool_name":"run_in_terminal",
        "tool_input":{"command":"COMMAND","mode":"sync"},"tool_use_id":"1","cwd":"DIR"}"#,
    ),
    AgentPayload {
        dir_variable: Some("AMPLIFIER_PROJECT_DIR"),
        ..payload(
            "amplifier",
            "PreToolUse",
            r#"{"tool_name":"Bash","tool_input":{"command":"COMMAND"},"session_id":"doctor"}"#,
        )
    },
    payload(
        "pi",
        "",
        r#"{"agent":"pi","hook_event_name":"tool_call","session_id":"doctor","turn_id":"1","cwd":"DIR",
        "call_id":"1","tool_name":"bash","tool_input":{"command":"COMMAND"}}"#,
    ),
    payload(
        "openclaw",
        "",
        r#"{"agent":"openclaw","hook_event_name":"before_tool_call","session_id":"doctor",
        "turn_id":"1","cwd":"DIR","call_id":"1","tool_name":"exec",
        "tool_input":{"command":"COMMAND"}}"#,
    ),
    payload(
        "kilo",
        "",
        r#"{"agent":"kilo","hook_event_name":"tool.execute.before","session_id":"doctor",
        "message_id":"1","cwd":"DIR","worktree":"DIR","call_id":"1","tool_name":"bash",
        "tool_input":{"command":"COMMAND"}}"#,
    ),
    payload(
        "vibe",
        "pre_tool",
        r#"{"session_id":"doctor","cwd":"DIR","hook_event_name":"pre_tool",
        "tool_name":"file_system.bash","tool_call_id":"1","tool_input":{"command":"COMMAND"}}"#,
    ),
    payload(
        "auggie",
        "PreToolUse",
        r#"{"hook_event_name":"PreToolUse","conversation_id":"doctor","workspace_roots":["DIR"],
        "tool_name":"launch-process","tool_input":{"command":"COMMAND","cwd":"DIR"}}"#,
    ),
    payload(
        "openhands",
        "PreToolUse",
        r#"{"event_type":"PreToolUse","tool_name":"terminal","tool_input":{"command":"COMMAND"},
        "session_id":"doctor","working_dir":"DIR"}"#,
    ),
    payload(
        "kimi",
        "PreToolUse",
        r#"{"hook_event_name":"PreToolUse","session_id":"doctor","cwd":"DIR","tool_name":"Bash",
        "tool_input":{"command":"COMMAND"},"tool_call_id":"1"}"#,
    ),
    payload(
        "qoder",
        "PreToolUse",
        r#"{"session_id":"doctor","cwd":"DIR","hook_event_name":"PreToolUse","tool_name":"Bash",
        "tool_input":{"command":"COMMAND"}}"#,
    ),
    payload(
        "letta",
        "PreToolUse",
        r#"{"event_type":"PreToolUse","working_directory":"DIR","agent_id":"doctor",
        "tool_call_id":"1","tool_name":"Bash","tool_input":{"command":"COMMAND"}}"#,
    ),
    payload(
        "command-code",
        "PreToolUse",
        r#"{"session_id":"doctor","cwd":"DIR","hook_event_name":"PreToolUse","tool_use_id":"1",
        "tool_name":"shell_command","tool_input":{"command":"COMMAND"}}"#,
    ),
];

impl AgentPayload {
    /// The payload for a command in a project.
    pub(super) fn payload(&self, dir: &Path, command: &str) -> String {
        let dir = Value::from(dir.to_string_lossy()).to_string();
        self.text.replace("\"DIR\"", &dir).replace("COMMAND", command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        agent::{Markers, by_name},
        install::ROWS,
        model::{Event, Intent, Language},
    };

    #[test]
    fn every_agent_announces_the_command_in_its_own_words() {
        for row in ROWS {
            let known = PAYLOADS.iter().find(|payload| payload.agent == row.agent);
            let known = known.unwrap_or_else(|| panic!("{} has no payload", row.agent));
            let text = known.payload(Path::new("/p/\"q\""), "rm -rf a");
            let dialect = by_name(row.agent).unwrap();
            let Event::ToolCall(call) =
                dialect.parse(text.as_bytes(), &Markers::default()).unwrap()
            else {
                panic!("{}: {text}", row.agent)
            };
            let command = "rm -rf a".to_owned();
            let wanted = Intent::Run { command, language: Language::Shell };
            assert_eq!(call.intent, wanted, "{}", row.agent);
        }
    }
}
