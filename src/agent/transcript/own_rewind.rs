//! Names the agent's own command to rewind a conversation, where we cannot fork it.

use crate::model::Agent;

/// The hint that names the agent's own command to go back in a conversation. `session` and
/// `turn` are as the agent names them.
pub fn own_rewind(agent: Agent, session: &str, turn: Option<&str>) -> String {
    match agent {
        Agent::OpenCode => opencode(session, turn),
        Agent::ClaudeCode => "in Claude Code, `/rewind` goes back in the conversation".to_owned(),
        Agent::Codex => "in Codex, Esc Esc goes back in the conversation".to_owned(),
        Agent::GeminiCli => "in Gemini CLI, `/rewind` goes back in the conversation".to_owned(),
        Agent::CopilotCli => "in Copilot CLI, `/rewind` goes back in the conversation".to_owned(),
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
