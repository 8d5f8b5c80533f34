//! What keeps a registered hook from running is told, with the step that helps.

use std::fs;

use beforehand::process::Exit;

use crate::{
    install::{diagnosis, home, world},
    support::{temp::write, world::World},
};

/// What `status` says of this project, and its exit code.
fn standing(world: &mut World) -> (Exit, String) {
    let output = world.run(&["status"]);
    let project = output.stdout.split("no trouble").next().unwrap();
    (output.exit, project.to_owned())
}

/// The agent, its line in `doctor`, a settings file and its text, and parts of the message and the hint.
const SWITCHES: &[[&str; 6]] = &[
    [
        "claude-code",
        "claude code",
        ".claude/settings.local.json",
        "{\"disableAllHooks\": true}",
        "`disableAllHooks` is true in /",
        "set `disableAllHooks` to false in /",
    ],
    [
        "qwen-code",
        "qwen code",
        ".qwen/settings.json",
        "{ // mine\n\"disableAllHooks\": true, }",
        "`disableAllHooks` is true in /",
        "set `disableAllHooks` to false in /",
    ],
    [
        "gemini-cli",
        "gemini cli",
        ".gemini/settings.json",
        "{\"hooksConfig\": {\"enabled\": false}}",
        "`hooksConfig.enabled` is false in /",
        "set `hooksConfig.enabled` to true in /",
    ],
    [
        "gemini-cli",
        "gemini cli",
        ".gemini/settings.json",
        "{\"hooksConfig\": {\"disabled\": [\"beforehand\"]}}",
        "switched off by `hooksConfig.disabled` in /",
        "take beforehand out of `hooksConfig.disabled` in /",
    ],
    [
        "gemini-cli",
        "gemini cli",
        ".gemini/settings.json",
        "{\"tools\": {\"enableHooks\": false}}",
        "`tools.enableHooks` is false in /",
        "set `tools.enableHooks` to true in /",
    ],
    [
        "qwen-code",
        "qwen code",
        ".qwen/settings.json",
        "{\"hooksConfig\": {\"enabled\": false}}",
        "`hooksConfig.enabled` is false in /",
        "set `hooksConfig.enabled` to true in /",
    ],
    [
        "copilot-cli",
        "copilot cli",
        ".github/copilot/settings.local.json",
        "{\"disableAllHooks\": true}",
        "`disableAllHooks` is true in /",
        "set `disableAllHooks` to false in /",
    ],
    [
        "factory-droid",
        "factory droid",
        ".factory/settings.local.json",
        "{\"disableAllHooks\": true}",
        "`disableAllHooks` is true in /",
        "set `disableAllHooks` to false in /",
    ],
    [
        "factory-droid",
        "factory droid",
        ".factory/settings.json",
        "{\"hooksDisabled\": true}",
        "`hooksDisabled` is true in /",
        "set `hooksDisabled` to false in /",
    ],
    [
        "qoder",
        "qoder",
        ".qoder/settings.local.json",
        "{\"disableAllHooks\": true}",
        "`disableAllHooks` is true in /",
        "set `disableAllHooks` to false in /",
    ],
    [
        "claude-code",
        "claude code",
        ".claude/settings.json",
        "{\"env\": {\"BEFOREHAND\": \"off\"}}",
        "beforehand is switched off by `enabled`, in the variables of /",
        "take beforehand's variables out of /",
    ],
    [
        "codex",
        "codex",
        ".codex/config.toml",
        "[features]\nhooks = false\n",
        "`features.hooks` is false in /",
        "set `features.hooks` to true in /",
    ],
];

#[test]
fn a_switch_that_keeps_hooks_from_running_is_told_with_the_step_that_helps() {
    for &[agent, name, file, text, told, hint] in SWITCHES {
        let mut world = world();
        let args = ["install", agent, "--yes", "--trust"];
        assert_eq!(world.run(&args).exit, Exit::Ok, "{agent}");
        assert!(diagnosis(&mut world, name).starts_with("ok: "), "{agent}");
        let (exit, status) = standing(&mut world);
        assert_eq!(exit, Exit::Ok, "{agent}: {status}");
        assert!(status.contains("installed, not seen yet\n"), "{agent}: {status}");
        world.write(file, text);
        let diagnosis = diagnosis(&mut world, name);
        assert!(diagnosis.starts_with("trouble: "), "{agent}: {diagnosis}");
        assert!(diagnosis.contains(told) && diagnosis.contains(hint), "{agent}: {diagnosis}");
        let (exit, status) = standing(&mut world);
        assert_eq!(exit, Exit::Failed, "{agent}: {status}");
        assert!(status.contains("not protected: "), "{agent}: {status}");
        assert!(status.contains(hint), "{agent}: {status}");
    }
}

#[test]
fn the_file_that_wins_decides() {
    let mut world = world();
    let path = home(&world).join(".claude/settings.json");
    write(&path, "{\"disableAllHooks\": true}");
    assert_eq!(world.run(&["install", "claude-code", "qwen-code", "--yes"]).exit, Exit::Ok);
    let told = diagnosis(&mut world, "claude code");
    assert!(told.contains("`disableAllHooks` is true in ~/.claude/settings.json"), "{told}");
    // The other agent still protects it.
    let (exit, status) = standing(&mut world);
    assert_eq!(exit, Exit::Ok, "{status}");
    assert!(
        status.contains("installed, not seen yet; not protected from Claude Code\n"),
        "{status}"
    );
    world.write(".claude/settings.json", "{\"disableAllHooks\": false}");
    assert!(diagnosis(&mut world, "claude code").starts_with("ok: "));
    let managed = home(&world).join("managed.json");
    write(&managed, "{\"disableAllHooks\": true}");
    world.set("QWEN_CODE_SYSTEM_SETTINGS_PATH", &managed.to_string_lossy());
    assert!(diagnosis(&mut world, "qwen code").contains("is true in ~/managed.json"));
}

#[test]
fn a_hook_that_codex_has_switched_off_or_trusts_otherwise_is_told_of() {
    let mut world = world();
    let config = home(&world).join(".codex/config.toml");
    write(&config, "");
    assert_eq!(world.run(&["install", "codex", "--yes", "--trust"]).exit, Exit::Ok);
    let trusted = fs::read_to_string(&config).unwrap();
    assert!(diagnosis(&mut world, "codex").starts_with("ok: "), "{trusted}");
    let off = trusted.replacen("trusted_hash", "enabled = false\ntrusted_hash", 1);
    write(&config, &off);
    let told = diagnosis(&mut world, "codex");
    assert!(told.contains("is switched off (switch it on again in `/hooks`"), "{told}");
    // The hash of the 30 seconds that an earlier install wrote, of which Codex gives 3.
    let at = trusted.find("session_end").unwrap();
    let (before, after) = trusted.split_at(at);
    let old = format!("{before}{}", after.replacen("sha256:", "sha256:0", 1));
    write(&config, &old);
    assert!(diagnosis(&mut world, "codex").contains("registered but not trusted"));
}

#[test]
fn hermes_runs_no_hook_without_consent() {
    let mut world = world();
    let dir = home(&world).join(".hermes");
    assert_eq!(world.run(&["install", "hermes", "--yes"]).exit, Exit::Ok);
    let told = diagnosis(&mut world, "hermes");
    assert!(told.starts_with("trouble: Hermes has no consent for the hook of `"), "{told}");
    assert!(told.contains("say yes to each hook"), "{told}");
    let config = fs::read_to_string(dir.join("config.yaml")).unwrap();
    let command = config.lines().find_map(|line| line.trim().strip_prefix("- command: ")).unwrap();
    let command: String = serde_json::from_str(command).unwrap();
    let events = [
        "on_session_start", "pre_llm_call", "pre_tool_call", "subagent_start", "post_tool_call",
        "on_session_end", "on_session_finalize",
    ];
    let allow = |events: &[&str]| {
        let approvals: Vec<_> = events
            .iter()
            .map(|event| serde_json::json!({ "event": event, "command": command }))
            .collect();
        let list = serde_json::json!({ "approvals": approvals });
        write(&dir.join("shell-hooks-allowlist.json"), list.to_string());
    };
    allow(&events[..3]);
    assert!(diagnosis(&mut world, "hermes").contains("`subagent_start`"));
    allow(&events);
    assert!(diagnosis(&mut world, "hermes").starts_with("ok: "));
    fs::remove_file(dir.join("shell-hooks-allowlist.json")).unwrap();
    write(&dir.join("config.yaml"), format!("hooks_auto_accept: true # yes\n{config}"));
    assert!(diagnosis(&mut world, "hermes").starts_with("ok: "));
}

#[test]
fn a_hook_of_another_program_is_told_of() {
    let mut world = world();
    assert_eq!(world.run(&["install", "claude-code", "gemini-cli", "--yes"]).exit, Exit::Ok);
    let hook = "{\"matcher\": \"Bash\", \"hooks\": [{\"type\": \"command\", \"command\": \"lint\\u001b \
                x\"}]}";
    let settings = format!("{{\"hooks\": {{\"PreToolUse\": [{hook}, {hook}]}}}}");
    world.write(".claude/settings.local.json", &settings);
    let told = diagnosis(&mut world, "claude code");
    assert!(told.starts_with("note: "), "{told}");
    let words = "; `lint\\u{1b} x` also runs before its tools, by /";
    assert!(told.contains(words), "{told}");
    assert!(told.contains("/.claude/settings.local.json, and 1 more (it may rewrite"), "{told}");
    let (exit, status) = standing(&mut world);
    assert_eq!(exit, Exit::Ok, "{status}");
    let line = status.lines().find(|line| line.starts_with("Claude Code: ")).unwrap();
    assert!(line.contains("installed, not seen yet") && line.contains(words), "{status}");
    assert!(status.contains("\n  hint: it may rewrite a call after"), "{status}");
    assert!(!status.lines().any(|line| line.starts_with("Gemini") && line.contains("lint")));
}

#[test]
fn settings_without_a_checkpoint_before_calls_are_told_of() {
    let mut world = world();
    assert_eq!(world.run(&["install", "claude-code", "qwen-code", "--yes"]).exit, Exit::Ok);
    let config = home(&world).join(".config/beforehand/config.toml");
    write(&config, "triggers = { before_write = false, before_shell = \"destructive\" }");
    let told = diagnosis(&mut world, "claude code");
    assert!(told.starts_with("note: "), "{told}");
    let words = "nothing is held before writes (`triggers.before_write`), commands that are not known to \
                 destroy (`triggers.before_shell`)";
    assert!(told.contains(words), "{told}");
    let (exit, status) = standing(&mut world);
    assert_eq!(exit, Exit::Ok, "{status}");
    assert!(status.contains(words), "{status}");
    let off = "before_write = false, before_edit = false, before_shell = \"never\"";
    write(&config, format!("triggers = {{ {off} }}"));
    let told = diagnosis(&mut world, "claude code");
    assert!(told.starts_with("trouble: beforehand is switched off by `triggers.before_write`, "));
    let (exit, status) = standing(&mut world);
    assert_eq!(exit, Exit::Failed, "{status}");
    assert!(status.contains("not protected: switched off\n"), "{status}");
    // An agent's own settings can change that for its hooks alone.
    write(&config, "");
    let more =
        "{\"env\": {\"BEFOREHAND_TRIGGERS_BEFORE_EDIT\": \"no\", \"BEFOREHAND\": \"maybe\"}}";
    world.write(".qwen/settings.json", more);
    let told = diagnosis(&mut world, "qwen code");
    let words = "; nothing is held before edits (`triggers.before_edit`), in the variables of /";
    assert!(told.starts_with("note: ") && told.contains(words), "{told}");
    assert!(diagnosis(&mut world, "claude code").starts_with("ok: "));
}

#[test]
fn hooks_that_an_uninstall_leaves_in_a_project_are_told_of() {
    let mut world = world();
    let args = ["install", "claude-code", "goose", "--project", "--yes"];
    assert_eq!(world.run(&args).exit, Exit::Ok);
    for dir in [world.root(), home(&world)] {
        let told = world.run_in(&dir, &["uninstall", "--yes"], "").stderr;
        for file in [".claude/settings.json", ".agents/plugins/beforehand/hooks/hooks.json"] {
            let line = format!(
                "note: {} still has hooks: run `beforehand uninstall --project` in that project\n",
                world.root().join(file).display()
            );
            assert_eq!(told.matches(&line).count(), 1, "{told}");
        }
    }
    assert_eq!(world.run(&["uninstall", "--project", "--yes"]).exit, Exit::Ok);
    assert!(!world.run(&["uninstall", "--yes"]).stderr.contains("still has hooks"));
}

#[test]
fn a_hook_file_that_droid_reads_instead_is_told_of() {
    let mut world = world();
    let dir = home(&world).join(".factory");
    assert_eq!(world.run(&["install", "factory-droid", "--yes"]).exit, Exit::Ok);
    assert!(diagnosis(&mut world, "factory droid").starts_with("ok: "));
    write(&dir.join("hooks.json"), "{\"Stop\": [], \"PreToolUse\": [{\"matcher\": \"x\"}]}");
    let told = diagnosis(&mut world, "factory droid");
    assert!(told.contains("hooks for PreToolUse from ~/.factory/hooks.json"), "{told}");
    write(&dir.join("hooks.json"), "{\"hooksDisabled\": true}");
    assert!(diagnosis(&mut world, "factory droid").contains("`hooks.hooksDisabled` is true in"));
    write(&world.root().join(".factory/settings.json"), "{\"hooks\":{\"hooksDisabled\":false}}");
    assert!(diagnosis(&mut world, "factory droid").starts_with("ok: "));
}
