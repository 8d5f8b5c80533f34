//! GitHub's Copilot CLI. Run against 1.0.102, with both spellings and with Claude Code's hooks.
//!
//! The spelling of an event in the hook file selects the payload: `preToolUse` gets camel case and
//! no event name, `PreToolUse` gets snake case, Claude's tool names, and still Copilot's own
//! argument names. Any exit code but 0 denies. There is no turn id and no call id. A sub-agent's
//! calls come under a session of their own, and name the session that started it, which may be another
//! sub-agent's.
//!
//! VS Code's agent loads the same hook files, and sends and reads its own form (its documentation and
//! source, 2026-10; not run).
//!
//! On Windows `PowerShell` commands are reported as `Bash` in the second spelling.

use super::files::{self, AgentFiles, entries, home_or};
use super::hooks::{self, HookTemplate};
use super::json::places;
use super::payload::{FIELDS, Fields};
use super::reply::{self, AnswerForm, NoteForm, RefusalForm};
use super::settings::{is_set, project, system, user};
use super::{
    CLAUDE, ConversationLog, Dialect, SubagentSessions, calls, edit, patch, run, run_in, trial,
    vscode_agent, write,
};
use crate::model::{Agent, Language};

/// The row of Copilot CLI.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::CopilotCli,
    name: "copilot-cli",
    title: "Copilot CLI",
    asks: true,
    subagents: SubagentSessions::Separate,
    fields: &Fields {
        parent_session: &places(["parent_agent_id"]),
        subagent_mark: &places(["parent_agent_id"]),
        ..FIELDS
    },
    // In both spellings.
    reads: &[
        &[
            "view", "Read", "glob", "grep", "Glob", "Grep", "web_fetch", "report_intent",
            "read_bash",
        ],
        vscode_agent::READS,
    ],
    tools: &[
        &[
            write("create", &["path", "file_path"]),
            write("Write", &["path", "file_path"]),
            edit("edit", &["path"]),
            edit("str_replace_editor", &["path"]),
            patch("apply_patch", &["patch", "input"]),
            edit("Edit", &["path", "file_path"]),
            // It stands for `apply_patch` too.
            patch("Edit", &["patch", "input"]),
            run("bash", &["command"]),
            run("Bash", &["command"]),
            run_in("powershell", &["command"], Language::PowerShell),
        ],
        vscode_agent::TOOLS,
    ],
    answer: AnswerForm {
        refusal: RefusalForm::PermissionTwice,
        note: NoteForm::Progress,
        ..reply::CLAUDE
    },
    trial: trial(
        "preToolUse",
        r#"{"sessionId":"doctor","timestamp":1795175038773,"cwd":"DIR","toolName":"bash",
        "toolArgs":{"command":"COMMAND"}}"#,
    ),
    conversations: Some(ConversationLog { dir: "session-state", read: calls::copilot_cli }),
    files: AgentFiles {
        base: home_or(".copilot", "COPILOT_HOME", ""),
        programs: &["copilot"],
        user: &[entries("hooks/beforehand.json")],
        project: &[entries(".github/hooks/beforehand.json")],
        watched: &["config.json", "settings.json"],
        watched_project: &[".github/copilot/settings.json"],
        ..files::PLAIN
    },
    hooks: HookTemplate {
        events: &[
            "sessionStart", "userPromptSubmitted", "preToolUse", "postToolUse", "agentStop",
            "sessionEnd",
        ],
        hook: r#"{"type":"command","bash":"LINE","powershell":"LINE","timeoutSec":30}"#,
        top: r#"{"version":1}"#,
        ..hooks::FLAT
    },
    settings: &[
        system("etc/github-copilot/policy.d/*.json"),
        project(".github/copilot/settings.local.json"),
        project(".github/copilot/settings.json"),
        user("settings.json"),
        user("config.json"),
    ],
    hook_files: &[
        user("hooks/*.json"),
        user("installed-plugins/*/*/hooks.json"),
        user("installed-plugins/*/*/hooks/hooks.json"),
        project(".github/hooks/*.json"),
        project(".claude/settings.json"),
        project(".claude/settings.local.json"),
    ],
    switches: &[is_set(&["disableAllHooks"], true)],
    ..CLAUDE
};
