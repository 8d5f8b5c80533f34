//! What every dialect promises, and what each makes of the payloads of its agent.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::*;
use crate::model::{Intent, Verdict};

/// The fixtures of one agent, by name, in order.
fn fixtures(dialect: &Dialect) -> Vec<(String, Vec<u8>)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/payloads").join(dialect.name);
    let entries = fs::read_dir(&dir).unwrap_or_else(|err| panic!("{}: {err}", dir.display()));
    let paths: BTreeSet<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    paths.iter().map(|path| (name(path), fs::read(path).unwrap())).collect()
}

fn is_decision(name: &str) -> bool {
    name.starts_with("decision-")
}

#[test]
fn every_payload_makes_the_event_on_record() {
    for dialect in DIALECTS {
        let mut record = String::new();
        for (name, payload) in fixtures(dialect) {
            if !is_decision(&name) {
                let event = dialect.parse(&payload, &Markers::default());
                writeln!(record, "{name}\n  {event:?}").unwrap();
            }
        }
        insta::assert_snapshot!(dialect.name, record);
    }
}

#[test]
fn no_payload_on_record_is_bad() {
    for dialect in DIALECTS {
        for (name, payload) in fixtures(dialect) {
            if !is_decision(&name) {
                let event = dialect.parse(&payload, &Markers::default());
                assert!(event.is_ok(), "{} {name}: {event:?}", dialect.name);
            }
        }
    }
}

/// A decision as it is on record for an agent.
#[derive(serde::Deserialize)]
struct Recorded {
    exit: u8,
    #[serde(default)]
    stdout: String,
    #[serde(default)]
    stderr: String,
}

/// What `decision-<name>.json` records.
fn decision(name: &str) -> Decision {
    let (verdict, note) = match name {
        "decision-no-opinion.json" => (Verdict::Abstain, None),
        "decision-user-message.json" => (Verdict::Abstain, Some("checkpoint saved")),
        "decision-ask.json" => (Verdict::Ask, Some("cannot hold `data.sqlite`")),
        "decision-deny.json" => (Verdict::Deny, Some("cannot hold `data.sqlite`")),
        other => panic!("what does {other} decide?"),
    };
    Decision { verdict, note: note.map(str::to_owned), tell: None }
}

/// The JSON documents of an output, one in each line.
fn documents(stdout: &str) -> Vec<serde_json::Value> {
    stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn answers_are_those_on_record() {
    for dialect in DIALECTS {
        for (name, bytes) in fixtures(dialect).iter().filter(|(name, _)| is_decision(name)) {
            let recorded: Recorded = serde_json::from_slice(bytes).unwrap();
            let answer = dialect.answer(EventKind::ToolCall, &decision(name));
            let label = format!("{} {name}", dialect.name);
            assert_eq!(answer.exit, recorded.exit, "{label}");
            assert_eq!(String::from_utf8(answer.stderr).unwrap(), recorded.stderr, "{label}");
            let stdout = String::from_utf8(answer.stdout).unwrap();
            assert_eq!(documents(&stdout), documents(&recorded.stdout), "{label}");
        }
    }
}

/// Every verdict, with and without something to say.
fn decisions() -> Vec<Decision> {
    let notes = [None, Some(String::new()), Some("a \"note\"\n\u{1b}".to_owned())];
    let verdicts = [Verdict::Abstain, Verdict::Ask, Verdict::Deny];
    let all = verdicts.iter().flat_map(|&verdict| {
        notes.iter().map(move |note| Decision { verdict, note: note.clone(), tell: None })
    });
    all.collect()
}

const KINDS: &[EventKind] = &[
    EventKind::SessionBegins,
    EventKind::TurnBegins,
    EventKind::SubagentBegins,
    EventKind::ToolCall,
    EventKind::CommandLine,
    EventKind::CommandLineDone,
    EventKind::ToolDone,
    EventKind::TurnEnds,
    EventKind::SessionEnds,
    EventKind::Other,
];

#[test]
fn no_answer_ever_allows() {
    for dialect in DIALECTS {
        for (&kind, decision) in KINDS
            .iter()
            .flat_map(|kind| decisions().into_iter().map(move |decision| (kind, decision)))
        {
            let answer = dialect.answer(kind, &decision);
            let stdout = String::from_utf8(answer.stdout).unwrap();
            for word in ["allow", "approve", "continue"] {
                assert!(!stdout.contains(word), "{} {kind:?} {decision:?}", dialect.name);
            }
        }
    }
}

#[test]
fn only_a_denial_of_a_call_exits_with_a_code() {
    for dialect in DIALECTS {
        for &kind in KINDS {
            for decision in decisions() {
                let answer = dialect.answer(kind, &decision);
                let denies = kind == EventKind::ToolCall && decision.verdict != Verdict::Abstain;
                assert!(answer.exit == 0 || denies, "{} {kind:?}", dialect.name);
                assert_eq!(answer.exit == 0, answer.stderr.is_empty(), "{}", dialect.name);
            }
        }
    }
}

#[test]
fn without_a_call_a_verdict_changes_nothing() {
    for dialect in DIALECTS {
        for &kind in KINDS.iter().filter(|kind| **kind != EventKind::ToolCall) {
            let denied = Decision { verdict: Verdict::Deny, note: None, tell: None };
            let neutral = dialect.answer(kind, &Decision::NEUTRAL);
            assert_eq!(dialect.answer(kind, &denied), neutral, "{} {kind:?}", dialect.name);
            assert!(matches!(neutral.stdout.as_slice(), b"" | b"{}"), "{}", dialect.name);
        }
    }
}

#[test]
fn who_cannot_ask_denies_instead() {
    for dialect in DIALECTS {
        let say = |verdict| {
            let decision = Decision { verdict, note: Some("why".to_owned()), tell: None };
            dialect.answer(EventKind::ToolCall, &decision)
        };
        let same = say(Verdict::Ask) == say(Verdict::Deny);
        assert_eq!(same, !dialect.asks, "{}", dialect.name);
        assert_ne!(say(Verdict::Deny), say(Verdict::Abstain), "{}", dialect.name);
    }
}

#[test]
fn the_table_has_every_agent_once() {
    let names: BTreeSet<_> = DIALECTS.iter().map(|dialect| dialect.name).collect();
    let agents: BTreeSet<_> = DIALECTS.iter().map(|dialect| dialect.agent).collect();
    let titles: BTreeSet<_> = DIALECTS.iter().map(|dialect| dialect.title).collect();
    assert_eq!((names.len(), agents.len(), titles.len()), (29, 29, 29));
    for dialect in DIALECTS {
        assert_eq!(by_agent(dialect.agent).name, dialect.name);
        assert_eq!(by_name(dialect.name).unwrap().agent, dialect.agent);
    }
    assert!(by_name("claude").is_none());
}

#[test]
fn what_is_not_one_json_object_is_a_call_that_may_do_anything() {
    let deep = "[".repeat(100_000);
    let open = r#"{"a":"#.repeat(100_000);
    let bad: &[&[u8]] = &[
        b"",
        b" \n",
        b"null",
        b"[]",
        b"5",
        b"\"{}\"",
        b"not json",
        b"{",
        b"{}{}",
        b"{\"session_id\":\"a\"} x",
        b"{\"tool_name\":\"Write\",\"toolName\":\"create\",\"tool_input\":{",
        deep.as_bytes(),
        open.as_bytes(),
    ];
    for dialect in DIALECTS {
        for &payload in bad {
            let shown: String = String::from_utf8_lossy(payload).chars().take(40).collect();
            let result = dialect.parse(payload, &Markers::default());
            let err = result.expect_err(&format!("{} takes {shown}", dialect.name));
            let message = err.to_string();
            assert!(message.starts_with("cannot read the hook payload: "), "{message}");
            assert!(message.len() < 1000, "{message}");
            let call = dialect.unreadable_call(payload, &Markers::default());
            assert!(matches!(call.intent, Intent::Unknown(_)), "{} {shown}", dialect.name);
        }
    }
}

#[test]
fn a_payload_without_anything_known_is_a_call_that_may_do_anything() {
    for dialect in DIALECTS {
        for payload in ["{}", r#"{"x":1}"#, r#"{"hook_event_name":"BeforeEverything","y":"/a"}"#] {
            let event = dialect.parse(payload.as_bytes(), &Markers::default()).unwrap();
            let Event::ToolCall(call) = event else {
                panic!("{} {payload}: {event:?}", dialect.name)
            };
            assert!(matches!(call.intent, Intent::Unknown(_)), "{} {payload}", dialect.name);
        }
    }
}

/// A Claude Code call with one field replaced.
fn claude_call(fields: &str) -> Event {
    let payload = format!(r#"{{"hook_event_name":"PreToolUse",{fields}}}"#);
    by_name("claude-code").unwrap().parse(payload.as_bytes(), &Markers::default()).unwrap()
}

#[test]
fn a_call_with_odd_fields_is_still_a_call() {
    for fields in [
        r#""session_id":null"#,
        r#""session_id":"","tool_name":"Write","tool_input":{"file_path":"a"}"#,
        r#""session_id":[1],"cwd":5,"tool_name":7,"tool_input":"text""#,
        r#""session_id":"\ud800","tool_name":"\u0000","tool_input":{"file_path":"a\u0000"}"#,
        r#""tool_name":"Bash","tool_input":{"command":["ls",1]}"#,
        r#""tool_name":"Write","tool_input":{"content":"\ud800","file_path":"/a"}"#,
    ] {
        let Event::ToolCall(call) = claude_call(fields) else { panic!("{fields}") };
        assert!(!call.context.session.0.is_empty() && !call.tool.is_empty(), "{fields}");
        assert_eq!(call.context.cwd, None, "{fields}");
        assert_ne!(call.intent, Intent::Read, "{fields}");
    }
}

#[test]
fn what_a_file_would_contain_is_not_our_business() {
    let nested = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
    let content = "x\\n".repeat(1 << 20);
    let fields = format!(
        r#""tool_input":{{"content":"{content}","more":{nested},"file_path":"/a"}},"tool_name":"Write""#
    );
    let Event::ToolCall(call) = claude_call(&fields) else { panic!() };
    assert_eq!(call.intent, Intent::Write(vec!["/a".into()]));
}

#[test]
fn where_the_agent_is_silent_the_environment_speaks() {
    let markers = |name: &'static str| {
        Markers::read(move |asked| (asked == name).then(|| OsString::from("/home/dev/project")))
    };
    let devin = by_name("devin-cli").unwrap();
    let payload = br#"{"hook_event_name":"PreToolUse","tool_name":"write"}"#;
    let event = devin.parse(payload, &markers("DEVIN_PROJECT_DIR")).unwrap();
    let Event::ToolCall(call) = event else { panic!() };
    assert_eq!(call.context.cwd, Some("/home/dev/project".into()));

    let claude = by_name("claude-code").unwrap();
    let payload = br#"{"hook_event_name":"Stop","session_id":"s","cwd":"/home/dev/project/sub"}"#;
    let event = claude.parse(payload, &markers("CLAUDE_PROJECT_DIR")).unwrap();
    let Event::TurnEnds(context) = event else { panic!() };
    assert_eq!(context.bases, [PathBuf::from("/home/dev/project")]);
}

#[test]
fn what_goes_on_in_the_background_is_told() {
    let claude = by_name("claude-code").unwrap();
    let goes_on = |input: &str, response: &str| {
        let payload = format!(
            r#"{{"hook_event_name":"PostToolUse","session_id":"s","tool_name":"Bash",
                "tool_input":{input},"tool_response":{response}}}"#
        );
        let event = claude.parse(payload.as_bytes(), &Markers::default()).unwrap();
        matches!(event, Event::ToolInBackground(_))
    };
    assert!(goes_on(r#"{"command":"make","run_in_background":true}"#, "null"));
    assert!(goes_on(r#"{"command":"make"}"#, r#"{"stdout":"","backgroundTaskId":"b1"}"#));
    assert!(!goes_on(r#"{"command":"make","run_in_background":false}"#, r#"{"stdout":"x"}"#));
    assert!(!goes_on(r#"{"command":"make"}"#, r#"{"backgroundTaskId":null}"#));
}

#[test]
fn a_command_is_meant_from_where_it_says() {
    let gemini = by_name("gemini-cli").unwrap();
    let payload = br#"{"hook_event_name":"BeforeTool","cwd":"/p","tool_name":"run_shell_command",
        "tool_input":{"command":"rm a","dir_path":"rel"}}"#;
    let Event::ToolCall(call) = gemini.parse(payload, &Markers::default()).unwrap() else {
        panic!()
    };
    assert_eq!(call.context.bases, [PathBuf::from("/p/rel")]);
}

/// Everything that a payload of an agent makes, for the tests of leniency.
fn read(dialect: &Dialect, payload: &str) -> Event {
    let event = dialect.parse(payload.as_bytes(), &Markers::default());
    event.unwrap_or_else(|err| panic!("{} {payload}: {err}", dialect.name))
}

/// The paths and texts that a call names, as far as its intent knows them.
fn named(intent: &Intent) -> Vec<String> {
    match intent {
        Intent::Read => Vec::new(),
        Intent::Write(paths) | Intent::Edit(paths) => {
            paths.iter().map(|path| path.display().to_string()).collect()
        }
        Intent::Run { command, .. } => vec![command.clone()],
        Intent::Unknown(tool) => tool.texts.clone(),
    }
}

/// The name of a field in another spelling.
fn respelled(name: &str, style: u8) -> String {
    let snake: String = name
        .chars()
        .flat_map(|char| {
            let is_upper = char.is_uppercase();
            is_upper.then_some('_').into_iter().chain(char.to_lowercase())
        })
        .collect();
    match style % 4 {
        0 => snake,
        1 => snake.replace('_', "-"),
        2 => snake.split('_').map(capitalized).collect(),
        _ => {
            let pascal: String = snake.split('_').map(capitalized).collect();
            let first = pascal.chars().next().map(|char| char.to_ascii_lowercase());
            first.into_iter().chain(pascal.chars().skip(1)).collect()
        }
    }
}

fn capitalized(word: &str) -> String {
    let first = word.chars().next().map(|char| char.to_ascii_uppercase());
    first.into_iter().chain(word.chars().skip(1)).collect()
}

/// One change to a field at the top of a payload.
#[derive(Clone, Debug)]
enum FieldChange {
    Duplicate,
    DuplicateRespelled(u8),
    Respell(u8),
    Retype(u8),
    Remove,
    ToEnd,
}

/// The fields of a payload in order, as JSON text, so that duplicates can be written.
fn fields(payload: &[u8]) -> Vec<(String, String)> {
    let object: serde_json::Map<String, serde_json::Value> =
        serde_json::from_slice(payload).unwrap_or_default();
    object.into_iter().map(|(name, value)| (name, value.to_string())).collect()
}

fn written(fields: &[(String, String)]) -> String {
    let fields = fields.iter().map(|(name, value)| format!("{}:{value}", serde_json::json!(name)));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

fn changed(fields: &mut Vec<(String, String)>, at: usize, change: &FieldChange) {
    let at = at % fields.len();
    let (name, value) = fields[at].clone();
    match change {
        FieldChange::Duplicate => fields.push((name, value)),
        FieldChange::DuplicateRespelled(style) => fields.push((respelled(&name, *style), value)),
        FieldChange::Respell(style) => fields[at].0 = respelled(&name, *style),
        FieldChange::Retype(kind) => {
            fields[at].1 = match kind % 5 {
                0 => "5".to_owned(),
                1 => "null".to_owned(),
                2 => format!("[{value}]"),
                3 => format!("{{\"value\":{value}}}"),
                _ => "true".to_owned(),
            };
        }
        FieldChange::Remove => {
            fields.remove(at);
        }
        FieldChange::ToEnd => {
            fields.remove(at);
            fields.push((name, value));
        }
    }
}

/// A payload on record that announces a call which can change files.
struct RecordedCall {
    dialect: &'static Dialect,
    name: String,
    fields: Vec<(String, String)>,
}

/// Every call on record that can change files.
fn recorded_calls() -> Vec<RecordedCall> {
    let mut calls = Vec::new();
    for dialect in DIALECTS {
        for (name, payload) in fixtures(dialect) {
            if is_decision(&name) || name.contains(".invalid") {
                continue;
            }
            let event = dialect.parse(&payload, &Markers::default());
            if let Ok(Event::ToolCall(call)) = event
                && call.intent != Intent::Read
            {
                calls.push(RecordedCall { dialect, name, fields: fields(&payload) });
            }
        }
    }
    calls
}

fn any_change() -> impl Strategy<Value = FieldChange> {
    prop_oneof![
        Just(FieldChange::Duplicate),
        any::<u8>().prop_map(FieldChange::DuplicateRespelled),
        any::<u8>().prop_map(FieldChange::Respell),
        any::<u8>().prop_map(FieldChange::Retype),
        Just(FieldChange::Remove),
        Just(FieldChange::ToEnd),
    ]
}

/// What a call still has to name after its payload was changed: where its arguments were not
/// removed or replaced, all of it.
fn still_names(dialect: &Dialect, before: &str, after: &str) -> Result<(), String> {
    let Event::ToolCall(was) = read(dialect, before) else { return Ok(()) };
    let call = match read(dialect, after) {
        Event::ToolCall(call) | Event::CommandLine(call) => call,
        // With the name of its event gone, what came of it tells that the call is over.
        Event::ToolDone(_) | Event::ToolInBackground(_) => {
            return Err("a call is taken for one that is over".to_owned());
        }
        other => return Err(format!("a call is taken for {other:?}")),
    };
    if call.intent == Intent::Read {
        return Err("a call that changes files is taken for one that reads".to_owned());
    }
    let names = named(&call.intent).join("\n");
    // Every text of the arguments that the payload still has must be named.
    for text in named(&was.intent) {
        let quoted = serde_json::json!(text).to_string();
        let inner = quoted.trim_matches('"');
        // A command line may have got a `cd` before it, and a patch names its files.
        let is_there =
            after.contains(inner) && matches!(was.intent, Intent::Write(_) | Intent::Edit(_));
        if is_there && !names.contains(&text) {
            return Err(format!("`{text}` is not named: {names}"));
        }
        if let Intent::Run { command, .. } = &was.intent {
            let line = command.lines().last().unwrap_or_default();
            let quoted = serde_json::json!(line).to_string();
            if after.contains(quoted.trim_matches('"')) && !names.contains(line) {
                return Err(format!("`{line}` is not judged: {names}"));
            }
        }
    }
    Ok(())
}

proptest! {
    // One case changes every recorded call, some 60 of them.
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn a_changed_payload_is_still_a_call_that_names_what_it_named(
        changes in prop::collection::vec((any::<usize>(), any_change()), 1..4),
    ) {
        for RecordedCall { dialect, name, fields } in recorded_calls() {
            let before = written(&fields);
            let mut fields = fields;
            for (at, change) in &changes {
                if !fields.is_empty() {
                    changed(&mut fields, *at, change);
                }
            }
            let after = written(&fields);
            let outcome = still_names(dialect, &before, &after);
            prop_assert!(outcome.is_ok(), "{} {name}: {}\n{after}", dialect.name, outcome.unwrap_err());
        }
    }
}

proptest! {
    #[test]
    fn no_bytes_make_a_dialect_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..64),
        json in r#"\{("(hook_event_name|event|toolName|tool_name|tool_input|toolArgs|toolCall|tool_info|extra|path)":("[a-zA-Z_*\\ ]{0,9}"|\{"(path|command|name|args)":("x"|5|null|\[[1-9]?\])\}|[0-9]|null|\[\]),?){0,5}\}"#,
    ) {
        for dialect in DIALECTS {
            let _event = dialect.parse(&bytes, &Markers::default());
            let _event = dialect.parse(json.as_bytes(), &Markers::default());
        }
    }
}
