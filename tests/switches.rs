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

#[test]
fn a_switch_that_keeps_hooks_from_running_is_told_with_the_step_that_helps() {
    for (agent, name, file, text, told, hint) in [
        (
            "claude-code",
            "claude code",
            ".claude/settings.local.json",
            "{\"disableAllHooks\": true}",
            "`disableAllHooks` is true in /",
            "set `disableAllHooks` to false in /",
        ),
        (
            "qwen-code",
            "qwen code",
            ".qwen/settings.json",
            "{ // mine\n\"disableAllHooks\": true, }",
            "`disableAllHooks` is true in /",
            "set `disableAllHooks` to false in /",
        ),
        (
            "gemini-cli",
            "gemini cli",
            ".gemini/settings.json",
            "{\"hooksConfig\": {\"enabled\": false}}",
            "`hooksConfig.enabled` is false in /",
            "set `hooksConfig.enabled` to true in /",
        ),
        (
            "gemini-cli",
            "gemini cli",
            ".gemini/settings.json",
            "{\"hooksConfig\": {\"disabled\": [\"beforehand\"]}}",
            "switched off by `hooksConfig.disabled` in /",
            "take beforehand out of `hooksConfig.disabled` in /",
        ),
        (
            "codex",
            "codex",
            ".codex/config.toml",
            "[features]\nhooks = false\n",
            "`features.hooks` is false in /",
            "set `features.hooks` to true in /",
        ),
    ] {
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
    assert_eq!(diagnosis(&mut world, "other hooks"), "");
    let hook = "{\"matcher\": \"Bash\", \"hooks\": [{\"type\": \"command\", \"command\": \"lint\\u001b \
                x\"}]}";
    let settings = format!("{{\"hooks\": {{\"PreToolUse\": [{hook}, {hook}]}}}}");
    world.write(".claude/settings.local.json", &settings);
    let told = diagnosis(&mut world, "other hooks");
    assert!(
        told.starts_with("note: Claude Code runs `lint\\u{1b} x` before its tools, by "),
        "{told}"
    );
    assert!(told.contains("/.claude/settings.local.json, and 1 more (it may rewrite"), "{told}");
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
