//! Which agent keeps its hooks where: one row each. Knows every path; opens none.

use super::{
    block::BlockFormat,
    merge::{Entries, HookDirSetting},
    packages::PackageNote,
    program::{Quoting, Template},
    rows::{Edit, InstallFile, InstallRow, SettingsBase},
    version::NewerEvents,
};
use crate::fs::VSCODE_SETTINGS;

const fn home(dir: &'static str) -> SettingsBase {
    SettingsBase { dir, var: None }
}

const fn home_or(dir: &'static str, name: &'static str, below: &'static str) -> SettingsBase {
    SettingsBase { dir, var: Some((name, below)) }
}

macro_rules! merge {
    ($path:literal, $agent:literal, $holder:expr) => {
        InstallFile {
            path: $path,
            edit: Edit::Merge(Entries {
                agent: $agent,
                template: include_str!(concat!("../../hooks/", $agent, ".json")),
                holder: $holder,
                left_out: &[],
            }),
        }
    };
}

macro_rules! command {
    ($path:literal, $file:literal) => {
        InstallFile {
            path: $path,
            edit: Edit::Whole(Template {
                text: include_str!(concat!("../../hooks/commands/", $file)),
                hole: ("beforehand", " slash"),
                quoting: Quoting::Bare,
            }),
        }
    };
}

macro_rules! cline {
    ($event:literal) => {
        InstallFile { path: concat!("hooks/", $event), edit: Edit::Script("cline") }
    };
}

macro_rules! advice {
    ($path:literal, $file:literal) => {
        InstallFile {
            path: $path,
            edit: Edit::Whole(Template {
                text: include_str!(concat!("../../hooks/", $file)),
                hole: ("beforehand", " list"),
                quoting: Quoting::Bare,
            }),
        }
    };
}

macro_rules! plugin {
    ($path:literal, $file:literal) => {
        InstallFile {
            path: $path,
            edit: Edit::Whole(Template {
                text: include_str!(concat!("../../hooks/", $file)),
                hole: ("\"beforehand\"", "\nconst WAIT_MS"),
                quoting: Quoting::Script,
            }),
        }
    };
}

macro_rules! toml_list {
    ($path:literal, $agent:literal, $event_key:literal) => {
        InstallFile {
            path: $path,
            edit: Edit::Lines(BlockFormat::TomlList {
                agent: $agent,
                event_key: $event_key,
                template: include_str!(concat!("../../hooks/", $agent, ".toml")),
            }),
        }
    };
}

const HOOKS: Option<&str> = Some("hooks");

const PLAIN: InstallRow = InstallRow {
    agent: "",
    base: home(""),
    hooks_base: None,
    programs: &[],
    user: &[],
    each: &[],
    project_dir: "",
    project: &[],
    watched: &[],
    watched_project: &[],
    then: None,
    by_hand: None,
    second: 1,
    newer: None,
    package: None,
};

const CLAUDE_CODE: &[InstallFile] = &[
    merge!("settings.json", "claude-code", HOOKS),
    command!("commands/checkpoint.md", "claude-code/checkpoint.md"),
    command!("commands/rollback.md", "claude-code/rollback.md"),
    command!("commands/revert.md", "claude-code/revert.md"),
    command!("commands/fork-turn.md", "claude-code/fork-turn.md"),
    command!("commands/undo.md", "claude-code/undo.md"),
];

const GEMINI_CLI: &[InstallFile] = &[
    merge!("settings.json", "gemini-cli", HOOKS),
    command!("commands/checkpoint.toml", "gemini-cli/checkpoint.toml"),
    command!("commands/rollback.toml", "gemini-cli/rollback.toml"),
    command!("commands/revert.toml", "gemini-cli/revert.toml"),
    command!("commands/fork.toml", "gemini-cli/fork.toml"),
    command!("commands/undo.toml", "gemini-cli/undo.toml"),
];

const QWEN_CODE: &[InstallFile] = &[
    merge!("settings.json", "qwen-code", HOOKS),
    command!("commands/checkpoint.md", "qwen-code/checkpoint.md"),
    command!("commands/rollback.md", "qwen-code/rollback.md"),
    command!("commands/revert.md", "qwen-code/revert.md"),
    command!("commands/fork.md", "qwen-code/fork.md"),
    command!("commands/undo.md", "qwen-code/undo.md"),
];

const OPENCODE: &[InstallFile] = &[
    plugin!("plugins/beforehand.js", "opencode/beforehand.js"),
    command!("command/checkpoint.md", "opencode/checkpoint.md"),
    command!("command/rollback.md", "opencode/rollback.md"),
    command!("command/revert.md", "opencode/revert.md"),
    command!("command/fork-turn.md", "opencode/fork-turn.md"),
];

const KILO: &[InstallFile] = &[
    plugin!("plugins/beforehand.js", "kilo/beforehand.js"),
    command!("command/checkpoint.md", "opencode/checkpoint.md"),
    command!("command/rollback.md", "opencode/rollback.md"),
    command!("command/revert.md", "opencode/revert.md"),
    command!("command/fork-turn.md", "opencode/fork-turn.md"),
];

const CLINE: &[InstallFile] = &[
    cline!("PreToolUse"),
    cline!("PostToolUse"),
    cline!("UserPromptSubmit"),
    cline!("TaskStart"),
    cline!("TaskComplete"),
];

/// Devin's settings have them below a key, its file for hooks alone has not.
const DEVIN_SETTINGS: &str =
    concat!("{\"hooks\": ", include_str!("../../hooks/devin-cli.json"), "}");

/// Kiro and Amazon Q have no hooks for all agents.
pub const KIRO_AGENTS: &str = "its hooks are in the file of each agent of yours, and its built-in agent has none: \
    install again after you make another agent";

/// Every agent, in the order of [`crate::agent::DIALECTS`].
pub const ROWS: &[InstallRow] = &[
    InstallRow {
        agent: "claude-code",
        base: home_or(".claude", "CLAUDE_CONFIG_DIR", ""),
        programs: &["claude"],
        user: CLAUDE_CODE,
        project_dir: ".claude",
        project: CLAUDE_CODE,
        // Run: up to 2.1.100 an event that Claude Code does not know voids the whole file, and with it
        // the user's own settings; up to 2.1.331 it warns of the event at each start.
        newer: Some(NewerEvents { since: [2, 1, 332], events: &["PreSkillShellCommand"] }),
        watched: &["settings.local.json"],
        watched_project: &[".claude/settings.local.json"],
        package: Some(PackageNote::Member("settings.json", &["enabledPlugins"])),
        ..PLAIN
    },
    InstallRow {
        agent: "codex",
        base: home_or(".codex", "CODEX_HOME", ""),
        programs: &["codex"],
        user: &[
            merge!("hooks.json", "codex", HOOKS),
            InstallFile {
                path: "config.toml",
                edit: Edit::Lines(BlockFormat::Toml(Entries {
                    agent: "codex",
                    template: include_str!("../../hooks/codex.json"),
                    holder: HOOKS,
                    left_out: &[],
                })),
            },
            advice!("skills/beforehand/SKILL.md", "skills/codex/SKILL.md"),
        ],
        project: &[merge!(".codex/hooks.json", "codex", HOOKS)],
        watched_project: &[".codex/config.toml"],
        package: Some(PackageNote::Member("config.toml", &["plugins"])),
        ..PLAIN
    },
    InstallRow {
        agent: "gemini-cli",
        base: home(".gemini"),
        programs: &["gemini"],
        user: GEMINI_CLI,
        project_dir: ".gemini",
        project: GEMINI_CLI,
        second: 1000,
        package: Some(PackageNote::File("extensions/beforehand/gemini-extension.json")),
        ..PLAIN
    },
    InstallRow {
        agent: "qwen-code",
        base: home(".qwen"),
        programs: &["qwen"],
        user: QWEN_CODE,
        project_dir: ".qwen",
        project: QWEN_CODE,
        package: Some(PackageNote::File("extensions/beforehand/qwen-extension.json")),
        ..PLAIN
    },
    InstallRow {
        agent: "copilot-cli",
        base: home_or(".copilot", "COPILOT_HOME", ""),
        programs: &["copilot"],
        user: &[merge!("hooks/beforehand.json", "copilot-cli", HOOKS)],
        project: &[merge!(".github/hooks/beforehand.json", "copilot-cli", HOOKS)],
        watched: &["config.json", "settings.json"],
        watched_project: &[".github/copilot/settings.json"],
        ..PLAIN
    },
    InstallRow {
        agent: "opencode",
        base: home_or(".config/opencode", "XDG_CONFIG_HOME", "opencode"),
        programs: &["opencode"],
        user: OPENCODE,
        project_dir: ".opencode",
        project: OPENCODE,
        watched: &[
            "plugin/beforehand.js", "plugin/beforehand.ts", "plugins/beforehand.ts",
            "opencode.json",
        ],
        watched_project: &[
            ".opencode/plugin/beforehand.js",
            ".opencode/plugin/beforehand.ts",
            ".opencode/plugins/beforehand.ts",
            "opencode.json",
        ],
        package: Some(PackageNote::Item("opencode.json", "plugin")),
        ..PLAIN
    },
    InstallRow {
        agent: "cline",
        base: home(".cline"),
        programs: &["cline"],
        user: CLINE,
        project_dir: ".clinerules",
        project: CLINE,
        watched_project: &[".cline/hooks/PreToolUse"],
        ..PLAIN
    },
    InstallRow {
        agent: "hermes",
        base: home_or(".hermes", "HERMES_HOME", ""),
        programs: &["hermes"],
        user: &[InstallFile {
            path: "config.yaml",
            edit: Edit::Lines(BlockFormat::Yaml {
                agent: "hermes",
                template: include_str!("../../hooks/hermes.yaml"),
            }),
        }],
        then: Some("Hermes asks once for each hook before it runs it: say yes"),
        watched: &["shell-hooks-allowlist.json"],
        ..PLAIN
    },
    InstallRow {
        agent: "cursor",
        base: home(".cursor"),
        programs: &["cursor-agent", "cursor"],
        user: &[
            merge!("hooks.json", "cursor", HOOKS),
            advice!("commands/beforehand.md", "prompts/beforehand.md"),
        ],
        project: &[merge!(".cursor/hooks.json", "cursor", HOOKS)],
        ..PLAIN
    },
    InstallRow {
        agent: "windsurf",
        base: home(".codeium/windsurf"),
        programs: &["windsurf"],
        user: &[merge!("hooks.json", "windsurf", HOOKS)],
        project: &[merge!(".windsurf/hooks.json", "windsurf", HOOKS)],
        ..PLAIN
    },
    InstallRow {
        agent: "kiro",
        base: home(".kiro"),
        programs: &["kiro-cli", "q"],
        each: &[
            merge!(".kiro/agents", "kiro", HOOKS),
            merge!(".aws/amazonq/cli-agents", "kiro", HOOKS),
        ],
        then: Some(KIRO_AGENTS),
        watched_project: &[".kiro/agents/beforehand.json"],
        ..PLAIN
    },
    InstallRow {
        agent: "factory-droid",
        base: home(".factory"),
        programs: &["droid"],
        user: &[
            merge!("settings.json", "factory-droid", HOOKS),
            advice!("commands/beforehand.md", "prompts/beforehand.md"),
        ],
        project: &[merge!(".factory/settings.json", "factory-droid", HOOKS)],
        watched: &["hooks.json"],
        watched_project: &[".factory/hooks.json"],
        ..PLAIN
    },
    InstallRow {
        agent: "crush",
        base: home_or(".config/crush", "XDG_CONFIG_HOME", "crush"),
        programs: &["crush"],
        user: &[merge!("crush.json", "crush", HOOKS)],
        project: &[merge!("crush.json", "crush", HOOKS)],
        watched_project: &[".crush.json"],
        ..PLAIN
    },
    InstallRow {
        agent: "goose",
        base: home(".config/goose"),
        hooks_base: Some(home(".agents")),
        programs: &["goose"],
        user: &[merge!("plugins/beforehand/hooks/hooks.json", "goose", HOOKS)],
        project: &[merge!(".agents/plugins/beforehand/hooks/hooks.json", "goose", HOOKS)],
        watched: &["config.yaml"],
        ..PLAIN
    },
    InstallRow {
        agent: "antigravity",
        base: home(".antigravity"),
        hooks_base: Some(home(".gemini/config")),
        programs: &["agy"],
        user: &[merge!("hooks.json", "antigravity", Some("beforehand"))],
        project: &[merge!(".agents/hooks.json", "antigravity", Some("beforehand"))],
        watched: &["hooks.json"],
        ..PLAIN
    },
    InstallRow {
        agent: "grok-build",
        base: home(".grok"),
        programs: &["grok"],
        user: &[merge!("hooks/beforehand.json", "grok-build", HOOKS)],
        watched: &["settings.json", "hooks.json"],
        ..PLAIN
    },
    InstallRow {
        agent: "devin-cli",
        base: home(".config/devin"),
        programs: &["devin"],
        user: &[InstallFile {
            path: "config.json",
            edit: Edit::Merge(Entries {
                agent: "devin-cli",
                template: DEVIN_SETTINGS,
                holder: HOOKS,
                left_out: &[],
            }),
        }],
        project: &[merge!(".devin/hooks.v1.json", "devin-cli", None)],
        watched_project: &[".devin/hooks.json", ".devin/config.json", ".devin/config.local.json"],
        ..PLAIN
    },
    InstallRow {
        agent: "vscode-agent",
        base: home(".vscode"),
        hooks_base: Some(home("")),
        // The directories it reads by itself are also those of other agents, and no payload of its own
        // says who sends it.
        user: &[
            merge!(".vscode/hooks/beforehand.json", "vscode-agent", HOOKS),
            InstallFile {
                path: VSCODE_SETTINGS,
                edit: Edit::HookDir(HookDirSetting {
                    path: &["chat.hookFilesLocations", "~/.vscode/hooks"],
                    value: "true",
                }),
            },
        ],
        watched_project: &[".vscode/settings.json"],
        ..PLAIN
    },
    InstallRow {
        agent: "amplifier",
        base: home(".amplifier"),
        programs: &["amplifier"],
        project: &[merge!(".amplifier/hooks/beforehand/hooks.json", "amplifier", HOOKS)],
        by_hand: Some(
            "only in projects, with its hook-shell module: `beforehand install amplifier --project`",
        ),
        watched: &["settings.yaml"],
        ..PLAIN
    },
    InstallRow {
        agent: "pi",
        base: home_or(".pi/agent", "PI_CODING_AGENT_DIR", ""),
        programs: &["pi"],
        user: &[plugin!("extensions/beforehand.js", "pi/beforehand.js")],
        project: &[plugin!(".pi/extensions/beforehand.js", "pi/beforehand.js")],
        watched: &["extensions/beforehand.ts", "settings.json"],
        watched_project: &[".pi/extensions/beforehand.ts", ".pi/settings.json"],
        ..PLAIN
    },
    InstallRow {
        agent: "openclaw",
        base: home_or(".openclaw", "OPENCLAW_STATE_DIR", ""),
        programs: &["openclaw"],
        user: &[
            plugin!("extensions/beforehand/index.js", "openclaw/index.js"),
            advice!("extensions/beforehand/openclaw.plugin.json", "openclaw/openclaw.plugin.json"),
            InstallFile {
                path: "openclaw.json",
                edit: Edit::HookDir(HookDirSetting {
                    path: &["plugins", "entries", "beforehand"],
                    value: include_str!("../../hooks/openclaw/entry.json"),
                }),
            },
        ],
        ..PLAIN
    },
    InstallRow {
        agent: "kilo",
        base: home_or(".config/kilo", "XDG_CONFIG_HOME", "kilo"),
        programs: &["kilo"],
        user: KILO,
        project_dir: ".kilo",
        project: KILO,
        watched: &["plugin/beforehand.js", "kilo.json"],
        watched_project: &[".kilo/plugin/beforehand.js", "kilo.json"],
        ..PLAIN
    },
    InstallRow {
        agent: "vibe",
        base: home_or(".vibe", "VIBE_HOME", ""),
        programs: &["vibe"],
        user: &[toml_list!("hooks.toml", "vibe", "type")],
        watched_project: &[".vibe/hooks.toml"],
        ..PLAIN
    },
    InstallRow {
        agent: "auggie",
        base: home(".augment"),
        programs: &["auggie"],
        user: &[merge!("settings.json", "auggie", HOOKS)],
        project: &[merge!(".augment/settings.json", "auggie", HOOKS)],
        watched_project: &[".augment/settings.local.json"],
        second: 1000,
        ..PLAIN
    },
    InstallRow {
        agent: "openhands",
        base: home(".openhands"),
        programs: &["openhands"],
        user: &[merge!("hooks.json", "openhands", HOOKS)],
        project: &[merge!(".openhands/hooks.json", "openhands", HOOKS)],
        ..PLAIN
    },
    InstallRow {
        agent: "kimi",
        base: home_or(".kimi-code", "KIMI_CODE_HOME", ""),
        programs: &["kimi"],
        user: &[toml_list!("config.toml", "kimi", "event")],
        ..PLAIN
    },
    InstallRow {
        agent: "qoder",
        base: home(".qoder"),
        programs: &["qodercli", "qoder"],
        user: &[merge!("settings.json", "qoder", HOOKS)],
        project: &[merge!(".qoder/settings.json", "qoder", HOOKS)],
        watched_project: &[".qoder/settings.local.json"],
        ..PLAIN
    },
    InstallRow {
        agent: "letta",
        base: home(".letta"),
        programs: &["letta"],
        user: &[merge!("settings.json", "letta", HOOKS)],
        project: &[merge!(".letta/settings.json", "letta", HOOKS)],
        watched_project: &[".letta/settings.local.json"],
        second: 1000,
        ..PLAIN
    },
    InstallRow {
        agent: "command-code",
        base: home(".commandcode"),
        programs: &["command-code", "commandcode"],
        user: &[merge!("settings.json", "command-code", HOOKS)],
        project: &[merge!(".commandcode/settings.json", "command-code", HOOKS)],
        watched_project: &[".commandcode/settings.local.json"],
        ..PLAIN
    },
];
