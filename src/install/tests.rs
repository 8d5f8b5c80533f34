//! Plans on texts: what is put in, what is left, and that it comes out again.

use std::{collections::BTreeSet, path::Path};

use proptest::prelude::*;

use super::{
    edit::{JsonLayout, append, remove},
    jsonc::{JsonKind, parse},
    merge::{Entries, HookDirSetting},
    rows::Edit,
    *,
};
use crate::agent::HookTemplate;

const SMALL: Entries<'_> = Entries {
    agent: "x",
    hooks: &HookTemplate {
        events: &["PreToolUse"],
        hook: r#"{"type": "command", "command": "LINE", "timeout": 30}"#,
        in_groups: true,
        matcher: Some("*"),
        holder: Some("hooks"),
        top: "{}",
        timeouts: &[],
        waits_max_secs: u64::MAX,
    },
    holder: Some("hooks"),
    left_out: &[],
};

fn program(path: &str) -> ProgramPath {
    ProgramPath::new(Path::new(path)).unwrap()
}

fn put(text: &str) -> String {
    SMALL.put(text, &program("/opt/beforehand"), &OurPrograms::default()).unwrap()
}

#[test]
fn every_agent_has_files_and_each_is_read_again() {
    let program = program("/opt/my own/beforehand");
    let ours = OurPrograms::default();
    for row in ROWS {
        let files: Vec<_> = row.user.iter().chain(row.each).chain(row.project).collect();
        assert!(files.iter().any(|file| file.kind.is_hook()), "{}", row.agent);
        for file in files {
            match row.edit(file) {
                Edit::Merge(entries) => {
                    let text = entries.put("", &program, &ours).unwrap();
                    let found = entries.look(&text, &ours).unwrap();
                    assert!(found.iter().all(|entry| entry.program == program.path()));
                    let events: Vec<_> = found.into_iter().map(|entry| entry.event).collect();
                    assert_eq!(events, entries.events(), "{}", row.agent);
                    assert!(entries.is_bare(&entries.take(&text, &ours).unwrap()), "{}", row.agent);
                    assert_eq!(entries.put(&text, &program, &ours).unwrap(), text);
                }
                Edit::HookDir(setting) => {
                    let text = setting.put("").unwrap();
                    assert!(setting.is_set(&text).unwrap(), "{}", row.agent);
                    assert_eq!(setting.take(&text).unwrap().trim(), "{}", "{}", row.agent);
                }
                Edit::Lines(block) => {
                    let text = block.put("", &program).unwrap();
                    let found = block.look(&text, &ours).unwrap();
                    let is_ours = |entry: &HookEntry| entry.program == program.path();
                    assert!(found.iter().all(|entry| is_ours(entry) && entry.changed.is_none()));
                    let events: BTreeSet<_> = found.into_iter().map(|entry| entry.event).collect();
                    assert_eq!(events, block.events().into_iter().collect(), "{}", row.agent);
                    assert_eq!(BlockFormat::take(&text).unwrap(), "", "{}", row.agent);
                }
                Edit::Script(agent) => {
                    let text = line::script(&program, agent);
                    let found = line::program_in_script(&text, agent, &ours);
                    assert_eq!(found.as_deref(), Some(program.path()));
                }
                Edit::Whole(template) => {
                    let program = ProgramPath::new(Path::new("/opt/beforehand")).unwrap();
                    let text = template.filled(&program).unwrap();
                    assert_eq!(template.program_in(&text, &ours).unwrap(), "/opt/beforehand");
                    assert_eq!(template.program_in(&format!("{text}x"), &ours), None);
                    let word = match template.quoting {
                        program::Quoting::Bare => "/opt/beforehand ",
                        program::Quoting::Script => "\"/opt/beforehand\"",
                    };
                    assert!(text.contains(word), "{text}");
                }
            }
        }
    }
}

#[test]
fn a_plugin_and_a_command_quote_a_path_their_own_way() {
    let odd = program("/opt/it's \"mine\"/beforehand");
    for row in ROWS {
        for site in row.project_sites(Path::new("/p")) {
            if let Edit::Whole(template) = site.edit {
                match template.filled(&odd) {
                    Some(text) => {
                        assert_eq!(
                            template.program_in(&text, &OurPrograms::default()).unwrap(),
                            odd.path().to_str().unwrap()
                        );
                    }
                    None => assert_eq!(template.quoting, program::Quoting::Bare),
                }
            }
        }
    }
}

#[test]
fn a_directory_of_hooks_is_named_and_no_other_byte_changes() {
    let setting = HookDirSetting { path: &["chat.hooks", "~/h"], value: "true" };
    for (text, put) in [
        ("", "{\n  \"chat.hooks\": {\n    \"~/h\": true\n  }\n}\n"),
        ("{ \"a\": 1 }", "{ \"a\": 1, \"chat.hooks\": {\"~/h\":true} }"),
        (
            "{\n\t// mine\n\t\"chat.hooks\": { \"x\": false }, // too\n}\n",
            "{\n\t// mine\n\t\"chat.hooks\": { \"x\": false, \"~/h\": true }, // too\n}\n",
        ),
    ] {
        let new = setting.put(text).unwrap();
        assert_eq!(new, put);
        assert!(setting.is_set(&new).unwrap() && !setting.is_set(text).unwrap());
        assert_eq!(setting.put(&new).unwrap(), new);
        let taken = setting.take(&new).unwrap();
        assert_eq!(taken.trim(), if text.is_empty() { "{}" } else { text.trim() });
        assert_eq!(setting.take(text).unwrap(), text);
    }
    for (text, told) in [
        ("{\"chat.hooks\": {\n\"~/h\": false}}", "line 2: `~/h` has another value in `chat.hooks`"),
        ("{\"chat.hooks\": []}", "line 1: `chat.hooks` is no object"),
        ("[]", "line 1: the file is no object"),
    ] {
        assert_eq!(setting.put(text).unwrap_err().to_string(), told);
        assert_eq!(setting.take(text).unwrap(), text);
    }
}

#[test]
fn a_plugin_is_named_below_any_number_of_keys() {
    let setting = HookDirSetting { path: &["plugins", "entries", "x"], value: r#"{"on":true}"# };
    for (text, put) in [
        (r#"{"a": 1}"#, r#"{"a": 1, "plugins": {"entries":{"x":{"on":true}}}}"#),
        (
            r#"{"plugins": {"entries": {"y": {}}}}"#,
            r#"{"plugins": {"entries": {"y": {}, "x": {"on":true}}}}"#,
        ),
    ] {
        let new = setting.put(text).unwrap();
        assert_eq!(new, put);
        assert!(setting.is_set(&new).unwrap() && !setting.is_set(text).unwrap());
        assert_eq!(setting.take(&new).unwrap(), text);
    }
    let more = r#"{"plugins": {"entries": {"x": {"on": true, "config": {}}}}}"#;
    assert_eq!(setting.put(more).unwrap(), more);
    assert_eq!(setting.take(more).unwrap(), "{}");
    let off = r#"{"plugins": {"entries": {"x": {"on": false}}}}"#;
    assert!(!setting.is_set(off).unwrap());
    let told = "line 1: `x` has another value in `entries`";
    assert_eq!(setting.put(off).unwrap_err().to_string(), told);
}

/// A program that is called anything at all: what was put in is known again, renewed and taken out.
#[test]
fn entries_of_a_program_of_any_name_go_in_and_out() {
    let text = r#"{"hooks": {"PreToolUse": [{"hooks": [{"command": "lint hook --agent x"}]}]}}"#;
    let none = OurPrograms::default();
    for path in ["/opt/bh-static", "/opt/beforehand_linux_amd64", "/my own/it's"] {
        let program = program(path);
        let new = SMALL.put(text, &program, &none).unwrap();
        assert_eq!(SMALL.put(&new, &program, &none).unwrap(), new, "{path}");
        let ours = none.and(&program);
        assert_eq!(SMALL.take(&new, &ours).unwrap(), text, "{path}");
        assert_eq!(SMALL.take(&new, &none).unwrap(), new, "it may be another program's: {path}");
        let moved = SMALL.put(&new, &ProgramPath::new(Path::new("/new")).unwrap(), &ours).unwrap();
        assert_eq!(SMALL.look(&moved, &ours).unwrap(), [], "{path} is written over");
        assert!(moved.contains("lint hook --agent x"));
    }
}

#[test]
fn the_smallest_change_keeps_comments_order_and_indentation() {
    insta::assert_snapshot!(put("{\n\t// mine\n\t\"b\": 1, // one\n\t\"a\": {}\n\t// end\n}"), @r#"
    {
    	// mine
    	"b": 1, // one
    	"a": {},
    	// end
    	"hooks": {
    		"PreToolUse": [
    			{
    				"matcher": "*",
    				"hooks": [
    					{
    						"type": "command",
    						"command": "[ ! -x /opt/beforehand ] || exec /opt/beforehand hook --agent x",
    						"timeout": 30
    					}
    				]
    			}
    		]
    	}
    }
    "#);
    let other = r#"{"hooks": {"PreToolUse": [ {"hooks": [{"command": "lint"}]} ], "Stop": []}}"#;
    insta::assert_snapshot!(put(other), @r#"{"hooks": {"PreToolUse": [ {"hooks": [{"command": "lint"}]}, {"matcher":"*","hooks":[{"type":"command","command":"[ ! -x /opt/beforehand ] || exec /opt/beforehand hook --agent x","timeout":30}]} ], "Stop": []}}"#);
}

#[test]
fn line_ends_stay_what_they_are() {
    let text = put("{\r\n    \"a\": 1,\r\n}\r\n");
    assert!(text.replace("\r\n", "").find(['\n', '\r']).is_none(), "{text:?}");
    assert!(text.ends_with("    },\r\n}\r\n"), "{text:?}");
}

#[test]
fn an_older_path_is_replaced_where_it_stands() {
    let old = SMALL
        .put("{\n  \"z\": 1\n}\n", &program("/old/beforehand"), &OurPrograms::default())
        .unwrap();
    let old = old.replace("30", "45").replace("\"*\"", "\"Bash|Write\" /* mine */");
    let new = put(&old);
    assert_eq!(new, old.replace("/old/beforehand", "/opt/beforehand"));
    assert_eq!(put(&new), new);
    assert_eq!(SMALL.take(&new, &OurPrograms::default()).unwrap(), "{\n  \"z\": 1\n}\n");
}

#[test]
fn what_has_another_shape_is_refused_with_its_line() {
    let program = program("/opt/beforehand");
    for (text, told) in [
        ("[]", "line 1: the file is no object"),
        ("{\n\"hooks\": []}", "line 2: `hooks` is no object"),
        ("{\"hooks\": {\n\"PreToolUse\": 1}}", "line 2: `PreToolUse` is no array"),
        ("{\"hooks\": {},\n\"hooks\": {}}", "line 2: `hooks` is there twice"),
        ("{\n\n", "line 1: unterminated object"),
    ] {
        assert_eq!(
            SMALL.put(text, &program, &OurPrograms::default()).unwrap_err().to_string(),
            told
        );
    }
}

#[test]
fn what_others_put_beside_ours_stays() {
    let text = put("{\n  \"a\": 1 // x\n}");
    let text =
        text.replace("{\n            \"type\"", "{\"command\": \"mine\"}, {\n            \"type\"");
    let left = SMALL.take(&text, &OurPrograms::default()).unwrap();
    let value = parse(&left).unwrap().root.to_value();
    let hooks =
        serde_json::json!({ "PreToolUse": [{ "matcher": "*", "hooks": [{ "command": "mine" }] }] });
    assert_eq!(value, serde_json::json!({ "a": 1, "hooks": hooks }));
}

/// Blanks and comments, as people and programs leave them between two tokens.
fn trivia() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => Just(String::new()),
        2 => Just(" ".to_owned()),
        3 => Just("\n  ".to_owned()),
        1 => Just("\r\n\t".to_owned()),
        1 => Just(" // ] } , \" é\n".to_owned()),
        1 => Just("/* { , // \n */".to_owned()),
        1 => Just("// x  \r\n    ".to_owned()),
    ]
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("hooks".to_owned()),
        Just("PreToolUse".to_owned()),
        Just("Stop".to_owned()),
        Just("command".to_owned()),
        "[a-z]{1,4}",
        Just("\\\"{\\u00e9".to_owned()),
    ]
}

/// Settings of any shape, with comments, trailing commas and odd blanks.
fn settings() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("1".to_owned()),
        Just("true".to_owned()),
        Just("\"/* no */ \\\\\"".to_owned()),
        Just("\"other hook --agent x\"".to_owned()),
        Just("{}".to_owned()),
        Just("[]".to_owned()),
    ];
    let value = leaf.prop_recursive(4, 24, 4, |inner| {
        let item = (trivia(), key(), trivia(), inner, trivia());
        (any::<bool>(), prop::collection::vec(item, 1..4), any::<bool>(), trivia()).prop_map(
            |(is_object, items, is_trailed, end)| {
                let each = items.iter().map(|(before, key, between, value, after)| {
                    if is_object {
                        format!("{before}\"{key}\":{between}{value}{after}")
                    } else {
                        format!("{before}{value}{after}")
                    }
                });
                let (open, close) = if is_object { ('{', '}') } else { ('[', ']') };
                let comma = if is_trailed { "," } else { "" };
                format!("{open}{}{comma}{end}{close}", each.collect::<Vec<_>>().join(","))
            },
        )
    });
    let member = (trivia(), key(), trivia(), value, trivia());
    let end = prop_oneof![Just(""), Just("\n"), Just("\r\n"), Just("// end"), Just("\n\n")];
    (trivia(), prop::collection::vec(member, 0..4), any::<bool>(), trivia(), end).prop_map(
        |(start, members, is_trailed, inner, end)| {
            let each = members.iter().map(|(before, key, between, value, after)| {
                format!("{before}\"{key}\":{between}{value}{after}")
            });
            let comma = if is_trailed && !members.is_empty() { "," } else { "" };
            let members = each.collect::<Vec<_>>().join(",");
            format!("{start}{{{members}{comma}{inner}}}{end}")
        },
    )
}

/// Whether we put something into a container that was empty: its blanks are not kept, and one
/// that is there for nothing goes.
fn fills_an_empty_one(text: &str) -> bool {
    let root = parse(text).unwrap().root;
    let hooks = root.get("hooks");
    let event = hooks.and_then(|hooks| hooks.get("PreToolUse"));
    [Some(&root), hooks, event].iter().flatten().any(|node| node.items().is_empty())
}

/// How many values there are.
fn size(node: &jsonc::JsonNode) -> usize {
    node.items().iter().map(|item| size(&item.value)).sum::<usize>() + 1
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn what_is_put_in_comes_out_again_byte_for_byte(text in settings()) {
        let Ok(new) = SMALL.put(&text, &program("/opt/beforehand"), &OurPrograms::default()) else { return Ok(()) };
        prop_assert_eq!(SMALL.look(&new, &OurPrograms::default()).unwrap().len(), 1);
        prop_assert_eq!(&put(&new), &new);
        let left = SMALL.take(&new, &OurPrograms::default()).unwrap();
        if fills_an_empty_one(&text) {
            parse(&left).unwrap();
        } else {
            prop_assert_eq!(left, text);
        }
    }

    #[test]
    fn any_item_can_be_put_in_and_taken_out(text in settings(), at in any::<prop::sample::Index>()) {
        let document = parse(&text).unwrap();
        let mut open = vec![&document.root];
        let mut containers = Vec::new();
        while let Some(node) = open.pop() {
            containers.extend(matches!(node.kind, JsonKind::Object(_) | JsonKind::Array(_)).then_some(node));
            open.extend(node.items().iter().map(|item| &item.value));
        }
        let container = at.get(&containers);
        let key = matches!(container.kind, JsonKind::Object(_)).then_some("new");
        let layout = JsonLayout::of(&text, &document);
        let new = append(&layout, container, key, &serde_json::json!({ "x": [1] }));
        parse(&new).unwrap();
        for index in 0..container.items().len() {
            let left = remove(&text, &document, container, index);
            let left = parse(&left).map_err(|err| TestCaseError::fail(format!("{err} in {left}")))?;
            let gone = size(&container.items()[index].value);
            prop_assert_eq!(size(&left.root) + gone, size(&document.root));
        }
    }
}
