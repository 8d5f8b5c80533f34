//! `xAI`'s Grok Build, 1.0.41.
//!
//! It sends every field in two spellings, and of a long input the start alone. By default it also loads
//! the hooks of Claude Code and Cursor, and waits 5 seconds for a hook. The parent reports the start of
//! a sub-agent. Exit code 2 denies, with the reason on standard error.

use super::files::{self, AgentFiles, entries, home};
use super::hooks::{self, HookTemplate};
use super::json::places;
use super::settings::{in_home, project, system, user};
use super::{
    CLAUDE, Dialect, SubagentSessions, claude_code, edit, reply, run, trial, vscode_agent, write,
};
use crate::model::Agent;

/// The row of Grok Build: its own tools, or Claude Code's.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::GrokBuild,
    name: "grok-build",
    title: "Grok Build",
    asks: false,
    subagents: SubagentSessions::Separate,
    child_session: &places(["subagent_id"]),
    reads: &[&["read_file", "list_dir", "grep"], claude_code::READS, vscode_agent::READS],
    tools: &[
        &[
            edit("search_replace", &["file_path"]),
            write("write", &["file_path"]),
            run("run_terminal_command", &["command"]),
            run("monitor", &["command"]),
        ],
        claude_code::TOOLS,
        vscode_agent::TOOLS,
    ],
    answer: reply::EXIT_CODE,
    trial: trial(
        "PreToolUse",
        r#"{"hookEventName":"pre_tool_use","sessionId":"doctor","cwd":"DIR",
        "workspaceRoot":"DIR","promptId":"1","permissionMode":"default",
        "toolName":"run_terminal_command","toolInput":{"command":"COMMAND"},"toolUseId":"1",
        "toolInputTruncated":false}"#,
    ),
    files: AgentFiles {
        base: home(".grok"),
        programs: &["grok"],
        user: &[entries("hooks/beforehand.json")],
        watched: &["settings.json", "hooks.json"],
        ..files::PLAIN
    },
    hooks: HookTemplate {
        events: &[
            "SessionStart", "UserPromptSubmit", "SubagentStart", "PreToolUse", "PostToolUse",
            "Stop", "SessionEnd",
        ],
        timeouts: &[("SessionEnd", 5)],
        // Under hooks of Claude Code, which it runs as its own.
        waits_max_secs: 5,
        ..hooks::CLAUDE
    },
    prompt: Some(without_tags),
    hook_files: &[
        user("hooks/*.json"),
        user("hooks.json"),
        user("settings.json"),
        user("config.toml"),
        user("managed_config.toml"),
        user("requirements.toml"),
        in_home(".claude/settings.json"),
        in_home(".claude/settings.local.json"),
        in_home(".cursor/hooks.json"),
        project(".grok/hooks/*.json"),
        project(".grok/settings.json"),
        project(".grok/config.toml"),
        project(".claude/settings.json"),
        project(".claude/settings.local.json"),
        project(".cursor/hooks.json"),
        system("etc/grok/managed_config.toml"),
        system("etc/grok/requirements.toml"),
    ],
    ..CLAUDE
};

/// Grok Build puts the user's words between tags.
fn without_tags(prompt: String) -> String {
    let inner = prompt.trim().strip_prefix("<user_query>");
    match inner.and_then(|rest| rest.strip_suffix("</user_query>")) {
        Some(inner) => inner.trim().to_owned(),
        None => prompt,
    }
}

#[cfg(test)]
mod tests {
    use super::without_tags;

    #[test]
    fn only_the_tags_around_a_prompt_are_removed() {
        for (sent, words) in [
            ("<user_query>\nCreate a file\n</user_query>", "Create a file"),
            ("<user_query>/deploy</user_query>\n", "/deploy"),
            (
                "explain <user_query>x</user_query> to me",
                "explain <user_query>x</user_query> to me",
            ),
            ("<user_query>\nno end", "<user_query>\nno end"),
            ("", ""),
        ] {
            assert_eq!(without_tags(sent.to_owned()), words);
        }
    }
}
