//! The tool calls in a transcript, as payloads for the hook.
//!
//! Pure: turns a line into a payload for the agent's own dialect, so a call from a transcript and the
//! same call from a hook become the same event.

use std::path::PathBuf;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::model::Agent;

/// What a line tells of calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallEvent {
    /// The model asked for a call.
    Made {
        /// As the conversation names it.
        id: String,
        /// When.
        at: Option<DateTime<Utc>>,
        /// What a hook is told before it.
        payload: Vec<u8>,
    },
    /// It came to nothing: refused, or not even understood. No hook need have been called.
    Failed(String),
}

/// What one line of a conversation tells.
type LineReader = fn(&Value) -> Vec<CallEvent>;

/// The conversations of an agent, for a comparison of the calls in them with those that arrived.
#[derive(Clone, Copy, Debug)]
pub struct ConversationLog {
    /// Where they are, below the directory of the agent's settings.
    pub dir: &'static str,
    /// How its lines are read.
    pub(in crate::agent) read: LineReader,
}

impl ConversationLog {
    /// Everything that one line of a conversation says of calls.
    pub fn calls_in(&self, line: &[u8]) -> Vec<CallEvent> {
        serde_json::from_slice(line).map_or_else(|_| Vec::new(), |line| (self.read)(&line))
    }
}

pub(in crate::agent) fn claude_code(line: &Value) -> Vec<CallEvent> {
    let parts = line["message"]["content"].as_array();
    let tell = |part: &Value| match part["type"].as_str()? {
        "tool_use" => made(
            line,
            &part["id"],
            &json!({
                "hook_event_name": "PreToolUse", "session_id": line["sessionId"], "cwd": line["cwd"],
                "tool_name": part["name"], "tool_input": part["input"], "tool_use_id": part["id"],
            }),
        ),
        "tool_result" if part["is_error"] == true => failed(&part["tool_use_id"]),
        _ => None,
    };
    parts.into_iter().flatten().filter_map(tell).collect()
}

/// The directory that a call says it runs in, by a line of a conversation, where the agent does not
/// tell its hooks.
pub fn workdir(agent: Agent, line: &[u8], id: &str) -> Option<PathBuf> {
    if agent != Agent::Codex || memchr::memmem::find(line, id.as_bytes()).is_none() {
        return None;
    }
    let line: Value = serde_json::from_slice(line).ok()?;
    let item = Some(&line["payload"]).filter(|item| item["call_id"] == id)?;
    let arguments: Value = serde_json::from_str(item["arguments"].as_str()?).ok()?;
    let dir = arguments["workdir"].as_str().filter(|dir| !dir.is_empty() && !dir.contains('\0'))?;
    Some(PathBuf::from(dir))
}

/// Plain tools only: a program that calls tools names them to hooks by ids of their own.
pub(in crate::agent) fn codex(line: &Value) -> Vec<CallEvent> {
    codex_item(line).into_iter().collect()
}

fn codex_item(line: &Value) -> Option<CallEvent> {
    let item = Some(&line["payload"]).filter(|_| line["type"] == "response_item")?;
    let id = &item["call_id"];
    let call = |tool: &str, command: &str| {
        made(
            line,
            id,
            &json!({
                "hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": { "command": command },
                "tool_use_id": id,
            }),
        )
    };
    match (item["type"].as_str()?, item["name"].as_str()) {
        ("function_call", Some("exec_command")) => {
            let args: Value = serde_json::from_str(item["arguments"].as_str()?).ok()?;
            call("Bash", args["cmd"].as_str()?)
        }
        ("custom_tool_call", Some("apply_patch")) => call("apply_patch", item["input"].as_str()?),
        ("function_call_output" | "custom_tool_call_output", _) => {
            let output = item["output"].as_str()?;
            let is_refused = output.contains(" failed: ") || output.starts_with("Command blocked");
            is_refused.then(|| failed(id)).flatten()
        }
        _ => None,
    }
}

pub(in crate::agent) fn gemini_cli(line: &Value) -> Vec<CallEvent> {
    let tell = |call: &Value| match call["status"].as_str() {
        Some("success") => made(
            line,
            &call["id"],
            &json!({
                "hook_event_name": "BeforeTool", "session_id": "", "tool_name": call["name"],
                "tool_input": call["args"],
            }),
        ),
        Some(_) | None => None,
    };
    line["toolCalls"].as_array().into_iter().flatten().filter_map(tell).collect()
}

pub(in crate::agent) fn copilot_cli(line: &Value) -> Vec<CallEvent> {
    let data = &line["data"];
    let told = match line["type"].as_str().unwrap_or_default() {
        "tool.execution_start" => made(
            line,
            &data["toolCallId"],
            &json!({
                "sessionId": "", "toolName": data["toolName"], "toolArgs": data["arguments"],
            }),
        ),
        "tool.execution_complete" if data["success"] == false => failed(&data["toolCallId"]),
        _ => None,
    };
    told.into_iter().collect()
}

pub(in crate::agent) fn pi(line: &Value) -> Vec<CallEvent> {
    let message = &line["message"];
    if message["role"] == "toolResult" && message["isError"] == true {
        return failed(&message["toolCallId"]).into_iter().collect();
    }
    let parts = message["content"].as_array().into_iter().flatten();
    let calls = parts.filter(|part| part["type"] == "toolCall").filter_map(|part| {
        let payload = json!({
            "hook_event_name": "tool_call", "session_id": "", "call_id": part["id"],
            "tool_name": part["name"], "tool_input": part["arguments"],
        });
        made(line, &part["id"], &payload)
    });
    calls.collect()
}

fn made(line: &Value, id: &Value, payload: &Value) -> Option<CallEvent> {
    let at = line["timestamp"].as_str().and_then(|at| at.parse().ok());
    Some(CallEvent::Made {
        id: id.as_str()?.to_owned(),
        at,
        payload: payload.to_string().into_bytes(),
    })
}

fn failed(id: &Value) -> Option<CallEvent> {
    Some(CallEvent::Failed(id.as_str()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        agent::{Markers, by_agent},
        model::{Event, Intent, Language},
    };

    /// What the calls of a line want.
    fn wanted(agent: Agent, line: &str) -> Vec<Intent> {
        let intent = |told: CallEvent| match told {
            CallEvent::Made { payload, .. } => {
                match by_agent(agent).parse(&payload, &Markers::default()).unwrap() {
                    Event::ToolCall(call) => Some(call.intent),
                    other => panic!("{other:?}"),
                }
            }
            CallEvent::Failed(_) => None,
        };
        log(agent).calls_in(line.as_bytes()).into_iter().filter_map(intent).collect()
    }

    fn log(agent: Agent) -> ConversationLog {
        by_agent(agent).conversations.unwrap()
    }

    #[test]
    fn a_line_becomes_what_a_hook_is_told() {
        let run =
            |command: &str| Intent::Run { command: command.to_owned(), language: Language::Shell };
        let claude = r#"{"type":"assistant","cwd":"/p","sessionId":"s","message":{"content":[
            {"type":"tool_use","id":"1","name":"Bash","input":{"command":"rm a"}},
            {"type":"tool_use","id":"2","name":"Write","input":{"file_path":"/p/b"}}]}}"#;
        let both = [run("rm a"), Intent::Write(vec!["/p/b".into()])];
        assert_eq!(wanted(Agent::ClaudeCode, claude), both);
        let codex = r#"{"type":"response_item","payload":{"type":"function_call","call_id":"1",
            "name":"exec_command","arguments":"{\"cmd\":\"rm a\"}"}}"#;
        assert_eq!(wanted(Agent::Codex, codex), [run("rm a")]);
        let gemini = r#"{"type":"gemini","toolCalls":[{"id":"1","name":"run_shell_command",
            "args":{"command":"rm a"},"status":"success"}]}"#;
        assert_eq!(wanted(Agent::GeminiCli, gemini), [run("rm a")]);
        let copilot = r#"{"type":"tool.execution_start","data":{"toolCallId":"1",
            "toolName":"bash","arguments":{"command":"rm a"}}}"#;
        assert_eq!(wanted(Agent::CopilotCli, copilot), [run("rm a")]);
        let pi = r#"{"type":"message","message":{"role":"assistant","content":[{"type":"toolCall",
            "id":"1","name":"bash","arguments":{"command":"rm a"}}]}}"#;
        assert_eq!(wanted(Agent::Pi, pi), [run("rm a")]);
    }

    #[test]
    fn where_a_call_runs_is_read_where_hooks_are_not_told() {
        let line = |id: &str| {
            let arguments = r#"{\"cmd\":\"rm a\",\"workdir\":\"../b\"}"#;
            format!(
                r#"{{"payload":{{"type":"function_call","call_id":"{id}","arguments":"{arguments}"}}}}"#
            )
        };
        let of = |agent, line: &str| workdir(agent, line.as_bytes(), "1");
        assert_eq!(of(Agent::Codex, &line("1")), Some("../b".into()));
        assert_eq!(of(Agent::Codex, &line("12")), None);
        assert_eq!(of(Agent::ClaudeCode, &line("1")), None);
        assert_eq!(of(Agent::Codex, r#"{"payload":{"call_id":"1","arguments":5}}"#), None);
    }

    #[test]
    fn what_came_to_nothing_is_told_apart() {
        let refused = r#"{"message":{"content":[{"type":"tool_result","tool_use_id":"1",
            "is_error":true}]}}"#;
        assert_eq!(
            log(Agent::ClaudeCode).calls_in(refused.as_bytes()),
            [CallEvent::Failed("1".to_owned())]
        );
        let refused = r#"{"type":"response_item","payload":{"type":"function_call_output",
            "call_id":"1","output":"exec_command failed: rejected"}}"#;
        assert_eq!(
            log(Agent::Codex).calls_in(refused.as_bytes()),
            [CallEvent::Failed("1".to_owned())]
        );
        let refused = r#"{"message":{"role":"toolResult","toolCallId":"1","isError":true}}"#;
        assert_eq!(
            log(Agent::Pi).calls_in(refused.as_bytes()),
            [CallEvent::Failed("1".to_owned())]
        );
        for odd in ["", "5", "{}", r#"{"message":{"content":"hi"}}"#, r#"{"payload":[]}"#] {
            assert!(log(Agent::ClaudeCode).calls_in(odd.as_bytes()).is_empty());
            assert!(log(Agent::Codex).calls_in(odd.as_bytes()).is_empty());
        }
    }
}
