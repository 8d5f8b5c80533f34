//! Conversations that the real programs kept, shortened, and what becomes of them.

use std::fs;

use super::*;

const NEW: &str = "00000000-1111-4222-8333-444444444444";

struct TranscriptFixture {
    agent: Agent,
    name: String,
    text: Vec<u8>,
    session: &'static str,
    /// The second turn, where turns have names.
    turn: Option<&'static str>,
    /// A moment in the second turn.
    at: DateTime<Utc>,
}

fn kept(
    agent: Agent,
    dir: &str,
    session: &'static str,
    turn: Option<&'static str>,
) -> TranscriptFixture {
    let dir = fs::read_dir(format!("fixtures/transcripts/{dir}")).unwrap();
    let path = dir.map(|entry| entry.unwrap().path()).next().unwrap();
    let text = fs::read(&path).unwrap();
    let name = path.file_name().unwrap().to_str().unwrap().to_owned();
    let format = format_of(agent).unwrap();
    let rows: Vec<TranscriptLine> =
        text.split_inclusive(|&b| b == b'\n').filter_map(|l| format.row(l)).collect();
    let at = rows.iter().rev().find(|row| row.is_turn()).unwrap().at.unwrap();
    TranscriptFixture { agent, name, text, session, turn, at }
}

fn all() -> [TranscriptFixture; 6] {
    [
        kept(
            Agent::ClaudeCode,
            "claude-code",
            "edfd27ab-7af7-4d25-89e7-0fc557e16b04",
            Some("d0b16c11-5c77-4eec-be20-ad252d2f8e0b"),
        ),
        kept(
            Agent::Codex,
            "codex",
            "01a1ffad-dc33-7cf0-a283-f74b22af421e",
            Some("01a1ffad-e2ec-7b81-aa9f-e8421fe390c7"),
        ),
        kept(Agent::GeminiCli, "gemini-cli", "38cca8e9-64e3-4c50-bbd0-e191a408045c", None),
        kept(Agent::QwenCode, "qwen-code", "b7b88979-38e5-4a5f-9625-791ff9c57369", None),
        kept(Agent::CopilotCli, "copilot-cli", "3aa0df1d-ff3c-416f-9728-ac5acacd932d", None),
        kept(Agent::Pi, "pi", "01a221f6-b592-716f-9736-a37ee8163654", None),
    ]
}

impl TranscriptFixture {
    fn cut(&self) -> CutPoint<'_> {
        CutPoint {
            session: self.session,
            turn: self.turn,
            prompt: None,
            position: None,
            at: self.at,
        }
    }

    fn fork(&self, text: &[u8], cut: CutPoint<'_>) -> Result<Fork, NoFork> {
        fork(self.agent, &self.name, text, cut, NEW)
    }
}

#[test]
fn a_fork_has_the_turns_before_and_nothing_after() {
    for kept in all() {
        // By name where there is one, by time, by place and words.
        let by_time = CutPoint { turn: None, ..kept.cut() };
        let before = kept.fork(&kept.text, by_time).unwrap().bytes.len() as u64;
        let long_ago = DateTime::from_timestamp(0, 0).unwrap();
        let words = Some("SECOND").filter(|_| kept.agent != Agent::Codex);
        let by_place = CutPoint { position: Some(before), prompt: words, ..by_time };
        let by_place = words.map(|_| CutPoint { at: long_ago, ..by_place });
        for cut in [Some(kept.cut()), Some(by_time), by_place].into_iter().flatten() {
            let fork = kept.fork(&kept.text, cut).unwrap();
            let text = String::from_utf8(fork.bytes).unwrap();
            let has = |word: &str| text.contains(word);
            assert!(has("FIRST-PROMPT") && has("first done"), "{:?}", kept.agent);
            assert!(!has("SECOND-PROMPT") && !has("second done"), "{:?}", kept.agent);
            assert!(has(NEW) && !has(&format!("\"{}\"", kept.session)), "{:?}", kept.agent);
            for line in text.lines() {
                assert!(read::<serde_json::Value>(line.as_bytes()).is_some(), "{line}");
            }
            assert!(fork.resume.last().unwrap().contains(NEW));
        }
    }
}

#[test]
fn files_are_called_as_the_agent_calls_them() {
    let names = all().map(|kept| kept.fork(&kept.text, kept.cut()).unwrap().file_name);
    insta::assert_snapshot!(names.join("\n"), @r"
    00000000-1111-4222-8333-444444444444.jsonl
    rollout-2026-11-21T19-55-46-00000000-1111-4222-8333-444444444444.jsonl
    session-2026-11-21T19-55-00000000.jsonl
    00000000-1111-4222-8333-444444444444.jsonl
    events.jsonl
    2026-11-28T11-42-26-195Z_00000000-1111-4222-8333-444444444444.jsonl
    ");
}

/// In pi, a turn may follow an entry far before it: what was said in between is of another branch.
#[test]
fn a_fork_of_a_tree_leaves_out_the_branch_that_was_left() {
    let kept = kept(Agent::Pi, "pi", "01a221f6-b592-716f-9736-a37ee8163654", None);
    let text = String::from_utf8(kept.text.clone()).unwrap();
    let third = r#"{"type":"message","id":"0a0a0a0a","parentId":"d0349571","timestamp":"2026-11-28T11:43:00.000Z","message":{"role":"user","content":"THIRD"}}"#;
    let cut = CutPoint { at: moment(Some("2026-11-28T11:44:00.000Z")).unwrap(), ..kept.cut() };
    let fork = kept.fork(format!("{text}{third}\n").as_bytes(), cut).unwrap();
    assert_eq!(fork.prompt, "THIRD");
    let before_second = kept.fork(&kept.text, kept.cut()).unwrap();
    assert_eq!(fork.bytes, before_second.bytes);
}

#[test]
fn what_is_no_such_conversation_is_refused() {
    for kept in all() {
        let cut = kept.cut();
        let other = CutPoint { session: "ffffffff-7af7-4d25-89e7-0fc557e16b04", ..cut };
        assert_eq!(kept.fork(&kept.text, other), Err(NoFork::OtherSession), "{:?}", kept.agent);
        let path = CutPoint { session: "../../../etc/passwd", ..cut };
        assert_eq!(kept.fork(&kept.text, path), Err(NoFork::OtherSession));
        assert_eq!(kept.fork(b"", cut), Err(NoFork::NoSuchTurn));
        let long_ago = CutPoint { turn: None, at: DateTime::from_timestamp(0, 0).unwrap(), ..cut };
        assert_eq!(kept.fork(&kept.text, long_ago), Err(NoFork::NoSuchTurn));
        let damaged = [b"half a li\n", &kept.text[..]].concat();
        assert_eq!(kept.fork(&damaged, cut), Err(NoFork::NotJson(1)), "{:?}", kept.agent);
        let mut cut_off = kept.text.clone();
        cut_off.truncate(cut_off.len() - 20);
        assert!(kept.fork(&cut_off, cut).is_ok(), "an unfinished last line is of the last turn");
        let format = format_of(kept.agent).unwrap();
        let rows = kept.text.split_inclusive(|&byte| byte == b'\n');
        let mut rows = rows.filter_map(|line| format.row(line));
        let first = rows.find(TranscriptLine::is_turn).unwrap().at.unwrap();
        let first = CutPoint { turn: None, at: first, ..cut };
        assert_eq!(kept.fork(&kept.text, first), Err(NoFork::FirstTurn), "{:?}", kept.agent);
    }
    assert_eq!(fork(Agent::Cursor, "x", b"", all()[0].cut(), NEW), Err(NoFork::UnknownFormat));
}

#[test]
fn words_that_wait_are_not_said_in_the_fork() {
    let kept = &all()[0];
    let text = String::from_utf8(kept.text.clone()).unwrap();
    let (head, tail) = text.split_once('\n').unwrap();
    let waits = r#"{"type":"queue-operation","operation":"enqueue","content":"LATER"}"#;
    // The first line is an operation, too, and is answered by the one after it.
    let text = format!("{head}\n{}", tail.replacen('\n', &format!("\n{waits}\n"), 2));
    let fork = kept.fork(text.as_bytes(), kept.cut()).unwrap();
    let text = String::from_utf8(fork.bytes).unwrap();
    assert!(!text.contains("LATER") && text.contains(r#""operation":"dequeue""#), "{text}");
}

#[test]
fn every_agent_has_something_to_say() {
    for dialect in crate::agent::DIALECTS {
        let said = own_rewind(dialect.agent, "ses_1", Some("msg_1"));
        assert!(said.len() > 20 && !said.ends_with('.'), "{said}");
    }
    assert!(!own_rewind(Agent::OpenCode, "x'; rm -rf ~", Some("m")).contains("rm -rf"));
}
