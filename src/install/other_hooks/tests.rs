//! Settings of agents in a home and a project of their own.

#![expect(clippy::disallowed_methods, reason = "the files of a test are its own")]

use std::fs;

use super::{super::ROWS, *};
use crate::install::rows::Edit;
use crate::process::{ProcessContext, Terminal};

/// A home with a project below it, for one agent.
struct SettingsPlace {
    dir: PathBuf,
    agent: &'static str,
}

impl SettingsPlace {
    fn new(agent: &'static str, name: &str) -> Self {
        let name = format!("beforehand-others-{agent}-{name}-{}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        fs::create_dir_all(dir.join("shop/src")).unwrap();
        Self { dir, agent }
    }

    fn write(&self, path: &str, text: &str) {
        assert!(Path::new(path).is_relative(), "{path} is elsewhere");
        let path = self.dir.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The file, event and command of each hook that is found.
    fn found(&self) -> Vec<(String, String, String)> {
        let env = BTreeMap::from([("HOME".into(), self.dir.clone().into())]);
        let context = ProcessContext { cwd: None, env, now: chrono::DateTime::UNIX_EPOCH };
        let row = ROWS.iter().find(|row| row.agent == self.agent).unwrap();
        let cwd = self.dir.join("shop/src");
        let look = |process: &mut Process<'_>| other_hooks(row, process, &cwd);
        let (found, _) = context.run(b"", Terminal::default(), &(), look);
        let short = |hook: OtherHook| {
            let file = hook.file.strip_prefix(&self.dir).unwrap().to_str().unwrap().to_owned();
            (file, hook.event, hook.command)
        };
        // The machine may have some of its own.
        let own = found.into_iter().filter(|hook| hook.file.starts_with(&self.dir));
        own.map(short).collect()
    }
}

impl Drop for SettingsPlace {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.dir).unwrap();
    }
}

/// Settings with one hook, in groups as most agents have them.
fn groups(event: &str, command: &str) -> String {
    let hook = serde_json::json!({ "type": "command", "command": command });
    serde_json::json!({ "hooks": { event: [{ "matcher": "*", "hooks": [hook] }] } }).to_string()
}

#[test]
fn a_hook_is_found_in_every_file_that_the_agent_reads() {
    let flat = "{\"version\": 1, \"hooks\": {\"preToolUse\": [{\"bash\": \"lint x\"}]}}";
    let toml = "[[hooks.PreToolUse]]\n[[hooks.PreToolUse.hooks]]\ncommand = \"lint x\"\n";
    let list = "[[hooks]]\nname = \"a\"\ntype = \"post_tool\"\ncommand = \"x\"\n\
                [[hooks]]\nname = \"b\"\ntype = \"pre_tool\"\ncommand = \"lint x\"\n";
    let pre = groups("PreToolUse", "lint x");
    let top = "{\"PreToolUse\": [{\"hooks\": [{\"command\": \"lint x\"}]}], }";
    let before = groups("BeforeTool", "lint x");
    for (agent, file, text, event) in [
        ("claude-code", ".claude/settings.json", &*pre, "PreToolUse"),
        ("claude-code", "shop/.claude/settings.json", &pre, "PreToolUse"),
        ("claude-code", "shop/src/.claude/settings.local.json", &pre, "PreToolUse"),
        ("codex", ".codex/config.toml", toml, "PreToolUse"),
        ("codex", "shop/.codex/hooks.json", &pre, "PreToolUse"),
        ("codex", ".codex/plugins/cache/m/p/1/hooks/hooks.json", &pre, "PreToolUse"),
        ("gemini-cli", ".gemini/settings.json", &before, "BeforeTool"),
        ("gemini-cli", ".gemini/extensions/e/hooks/hooks.json", &before, "BeforeTool"),
        ("qwen-code", "shop/.qwen/settings.json", &pre, "PreToolUse"),
        ("copilot-cli", ".copilot/hooks/other.json", flat, "preToolUse"),
        ("copilot-cli", "shop/.github/hooks/a.json", flat, "preToolUse"),
        ("copilot-cli", "shop/.claude/settings.json", &pre, "PreToolUse"),
        ("factory-droid", ".factory/hooks.json", top, "PreToolUse"),
        ("grok-build", ".grok/hooks/a.json", &pre, "PreToolUse"),
        ("grok-build", ".claude/settings.json", &pre, "PreToolUse"),
        ("grok-build", "shop/.cursor/hooks.json", flat, "preToolUse"),
        ("cursor", ".cursor/hooks.json", flat, "preToolUse"),
        ("crush", "shop/crush.json", top, "PreToolUse"),
        ("goose", "shop/.agents/plugins/p/hooks/hooks.json", &pre, "PreToolUse"),
        ("antigravity", "shop/.agents/hooks.json", top, "PreToolUse"),
        ("devin-cli", "shop/.devin/hooks.v1.json", top, "PreToolUse"),
        ("vscode-agent", ".vscode/hooks/a.json", &pre, "PreToolUse"),
        ("amplifier", "shop/.amplifier/hooks/x/hooks.json", &pre, "PreToolUse"),
        ("cline", "shop/.clinerules/hooks/PreToolUse", "#!/bin/sh\nlint x\n", "PreToolUse"),
        ("cline", ".cline/hooks/PreToolUse.py", "lint x", "PreToolUse"),
        ("vibe", ".vibe/hooks.toml", list, "pre_tool"),
        ("vibe", "shop/.vibe/hooks.toml", list, "pre_tool"),
        ("kimi", ".kimi-code/config.toml", &list.replace("type", "event"), "pre_tool"),
    ] {
        let place = SettingsPlace::new(agent, "file");
        assert_eq!(place.found(), [], "{agent} {file}");
        place.write(file, text);
        let wanted = (file.to_owned(), event.to_owned(), "lint x".to_owned());
        assert_eq!(place.found(), [wanted], "{agent} {file}");
    }
}

#[test]
fn hooks_of_ours_and_at_other_events_are_none() {
    for row in ROWS {
        let place = SettingsPlace::new(row.agent, "ours");
        for name in ["/opt/my own/beforehand", "/opt/beforehand"] {
            let program = ProgramPath::new(Path::new(name)).unwrap();
            for file in row.user {
                let text = match row.edit(file) {
                    Edit::Merge(entries) => {
                        entries.put("", &program, &OurPrograms::default()).unwrap()
                    }
                    Edit::Whole(template) => {
                        let Some(text) = template.filled(&program) else { continue };
                        text
                    }
                    Edit::Script(agent) => line::script(&program, agent),
                    Edit::HookDir(_) | Edit::Lines(_) => continue,
                };
                let below = Path::new(row.hooks_dir().dir).join(file.path);
                place.write(below.to_str().unwrap(), &text);
            }
            assert_eq!(place.found(), [], "{}", row.agent);
        }
    }
    let place = SettingsPlace::new("claude-code", "events");
    place.write(".claude/settings.json", &groups("PostToolUse", "lint PreToolUse"));
    let plugin = "\"${CLAUDE_PLUGIN_ROOT}/bin/beforehand\" hook --agent claude-code";
    place.write("shop/.claude/settings.json", &groups("PreToolUse", plugin));
    assert_eq!(place.found(), []);
    let wrapped = "tee /tmp/x | beforehand hook --agent claude-code";
    place.write("shop/.claude/settings.json", &groups("PreToolUse", wrapped));
    assert_eq!(place.found().len(), 1);
}

#[test]
fn a_plugin_counts_unless_it_is_switched_off() {
    let place = SettingsPlace::new("claude-code", "plugins");
    let at = place.dir.join("cache/p/1");
    let list = serde_json::json!({ "version": 2, "plugins": { "p@m": [{ "installPath": at }] } });
    place.write(".claude/plugins/installed_plugins.json", &list.to_string());
    place.write("cache/p/1/hooks/hooks.json", &groups("PreToolUse", "lint x"));
    let more = "{\"name\": \"p\", \"hooks\": \"./hooks/more.json\"}";
    place.write("cache/p/1/.claude-plugin/plugin.json", more);
    place.write("cache/p/1/hooks/more.json", &groups("PermissionRequest", "ask y"));
    let events: Vec<_> = place.found().into_iter().map(|(_, event, _)| event).collect();
    assert_eq!(events, ["PreToolUse", "PermissionRequest"]);
    place.write(".claude/settings.json", "{\"enabledPlugins\": {\"p@m\": false}}");
    assert_eq!(place.found(), []);
    place.write("shop/.claude/settings.json", "{\"enabledPlugins\": {\"p@m\": true}}");
    assert_eq!(place.found().len(), 2);
}

#[test]
fn plugins_count_if_they_may_change_a_call() {
    for (agent, user, project, settings, list, event) in [
        (
            "opencode",
            ".config/opencode/plugins",
            ".opencode/plugin",
            "opencode.json",
            "plugin",
            "tool.execute.before",
        ),
        (
            "kilo", ".config/kilo/plugin", ".kilo/plugins", "kilo.json", "plugin",
            "tool.execute.before",
        ),
        (
            "pi", ".pi/agent/extensions", ".pi/extensions", ".pi/settings.json", "packages",
            "tool_call",
        ),
    ] {
        let place = SettingsPlace::new(agent, "plugins");
        place.write(&format!("{user}/quiet.js"), "export const A = () => ({ event() {} })");
        let loud = format!("x[\"{event}\"] = f");
        let local = Path::new(settings).with_file_name("local.ts");
        place.write(&format!("shop/{}", local.display()), &loud);
        let names =
            "[\"beforehand@0.1.0\", \"./local.ts\", [\"other\", {}], {\"source\": \"npm:x\"}, ]";
        place.write(&format!("shop/{settings}"), &format!("{{ // mine\n\"{list}\": {names} }}"));
        place.write(&format!("shop/{project}/loud.js"), &loud);
        place.write(&format!("shop/{project}/packed.mjs"), &"x".repeat(2 << 20));
        place.write(&format!("{user}/own.ts"), &loud);
        let found = place.found();
        let mut names: Vec<_> = found.iter().map(|(_, event, name)| (&**event, &**name)).collect();
        names.sort_unstable();
        let mut wanted = [
            (event, "loud.js"),
            (event, "packed.mjs"),
            (event, "local.ts"),
            (event, "own.ts"),
            ("plugin", "other"),
            ("plugin", "npm:x"),
        ];
        wanted.sort_unstable();
        assert_eq!(names, wanted, "{agent}");
    }
    let place = SettingsPlace::new("pi", "directory");
    place.write(".pi/agent/extensions/own/index.ts", "pi.on(\"tool_call\", f)");
    assert_eq!(place.found().len(), 1);
    let place = SettingsPlace::new("openclaw", "directory");
    place.write(".openclaw/extensions/own/index.js", "api.on(\"before_tool_call\", f)");
    assert_eq!(place.found().len(), 1);
}

#[test]
fn files_that_are_no_settings_hold_nothing_up() {
    let place = SettingsPlace::new("claude-code", "hostile");
    let deep = format!("{{\"PreToolUse\": {}", "[".repeat(100_000));
    place.write("shop/.claude/settings.json", &deep);
    place.write("shop/.claude/settings.local.json", "{\"PreToolUse\": 1, \"hooks\": null}");
    place.write(".claude/settings.json", "{\"PreToolUse\": \"");
    std::os::unix::fs::symlink("/dev/zero", place.dir.join(".claude/remote-settings.json"))
        .unwrap();
    place.write(".claude/plugins/installed_plugins.json", "{\"plugins\": {\"a\": [1, {}]}}");
    let big = fs::File::create(place.dir.join("shop/src/big.json")).unwrap();
    big.set_len(1 << 30).unwrap();
    fs::create_dir_all(place.dir.join("shop/src/.claude")).unwrap();
    fs::rename(
        place.dir.join("shop/src/big.json"),
        place.dir.join("shop/src/.claude/settings.json"),
    )
    .unwrap();
    assert_eq!(place.found(), []);
    let many: Vec<_> =
        (0..500).map(|at| serde_json::json!({ "command": format!("x{at}") })).collect();
    let many = serde_json::json!({ "PreToolUse": many }).to_string();
    place.write("shop/.claude/settings.json", &many);
    assert_eq!(place.found().len(), HOOKS_MAX);
    place.write("shop/.claude/settings.json", &groups("PreToolUse", &"é".repeat(500)));
    assert_eq!(place.found()[0].2.chars().count(), SHOWN_CHARS);
}
