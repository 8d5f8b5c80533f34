//! The files in which agents read hooks, of every scope, and of plugins whose files have known places.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use crate::{install::rows::InstallRow, process::Process};

/// How many names of one directory are read.
pub(super) const NAMES_MAX: usize = 256;
/// How many directories above the one of the call can have settings of the project.
const LEVELS_MAX: usize = 24;

/// Where an agent reads hooks besides the files of its row in the table of `install`. A `*` stands for any
/// part of one name.
struct ReadFiles {
    agent: &'static str,
    /// Below the agent's own directory.
    user: &'static [&'static str],
    /// Below the user's home.
    home: &'static [&'static str],
    /// Below the directory of the call and each one above it.
    project: &'static [&'static str],
    /// Absolute, for the whole machine.
    system: &'static [&'static str],
}

/// An agent that is not in this table has only the files of its row.
const READ: &[ReadFiles] = &[
    ReadFiles {
        agent: "claude-code",
        user: &["settings.json", "settings.local.json", "remote-settings.json"],
        home: &[],
        project: &[".claude/settings.json", ".claude/settings.local.json"],
        system: &[
            "/etc/claude-code/managed-settings.json",
            "/etc/claude-code/managed-settings.d/*.json",
            "/Library/Application Support/ClaudeCode/managed-settings.json",
            "/Library/Application Support/ClaudeCode/managed-settings.d/*.json",
        ],
    },
    ReadFiles {
        agent: "codex",
        user: &["hooks.json", "config.toml", "plugins/cache/*/*/*/hooks/hooks.json"],
        home: &[],
        project: &[".codex/hooks.json", ".codex/config.toml"],
        system: &[
            "/etc/codex/hooks.json",
            "/etc/codex/config.toml",
            "/etc/codex/managed_config.toml",
            "/etc/codex/requirements.toml",
        ],
    },
    ReadFiles {
        agent: "gemini-cli",
        user: &["settings.json", "extensions/*/hooks/hooks.json"],
        home: &[],
        project: &[".gemini/settings.json"],
        system: &[
            "/etc/gemini-cli/settings.json",
            "/etc/gemini-cli/system-defaults.json",
            "/Library/Application Support/GeminiCli/settings.json",
        ],
    },
    ReadFiles {
        agent: "qwen-code",
        user: &[
            "settings.json",
            "extensions/*/hooks/hooks.json",
            "extensions/*/qwen-extension.json",
        ],
        home: &[],
        project: &[".qwen/settings.json"],
        system: &["/etc/qwen-code/settings.json", "/etc/qwen-code/system-defaults.json"],
    },
    ReadFiles {
        agent: "copilot-cli",
        user: &[
            "hooks/*.json",
            "settings.json",
            "config.json",
            "installed-plugins/*/*/hooks.json",
            "installed-plugins/*/*/hooks/hooks.json",
        ],
        home: &[],
        project: &[
            ".github/hooks/*.json",
            ".github/copilot/settings.json",
            ".github/copilot/settings.local.json",
            ".claude/settings.json",
            ".claude/settings.local.json",
        ],
        system: &["/etc/github-copilot/policy.d/*.json"],
    },
    ReadFiles {
        agent: "cursor",
        user: &["hooks.json"],
        home: &[".claude/settings.json"],
        project: &[".cursor/hooks.json", ".claude/settings.json", ".claude/settings.local.json"],
        system: &["/etc/cursor/hooks.json", "/Library/Application Support/Cursor/hooks.json"],
    },
    ReadFiles {
        agent: "factory-droid",
        user: &[
            "hooks.json",
            "settings.json",
            "settings.local.json",
            "plugins/cache/*/*/*/hooks/hooks.json",
        ],
        home: &[],
        project: &[".factory/hooks.json", ".factory/settings.json", ".factory/settings.local.json"],
        system: &["/etc/factory/settings.json"],
    },
    ReadFiles {
        agent: "crush",
        user: &["crush.json"],
        home: &[".local/share/crush/crush.json"],
        project: &["crush.json", ".crush.json"],
        system: &[],
    },
    ReadFiles {
        agent: "goose",
        user: &[],
        home: &[".agents/plugins/*/hooks/hooks.json"],
        project: &[".agents/plugins/*/hooks/hooks.json"],
        system: &[],
    },
    ReadFiles {
        agent: "grok-build",
        user: &[
            "hooks/*.json", "hooks.json", "settings.json", "config.toml", "managed_config.toml",
            "requirements.toml",
        ],
        home: &[".claude/settings.json", ".claude/settings.local.json", ".cursor/hooks.json"],
        project: &[
            ".grok/hooks/*.json",
            ".grok/settings.json",
            ".grok/config.toml",
            ".claude/settings.json",
            ".claude/settings.local.json",
            ".cursor/hooks.json",
        ],
        system: &["/etc/grok/managed_config.toml", "/etc/grok/requirements.toml"],
    },
    ReadFiles {
        agent: "devin-cli",
        user: &["config.json"],
        home: &[".claude/settings.json"],
        project: &[
            ".devin/hooks.v1.json",
            ".devin/hooks.json",
            ".devin/config.json",
            ".devin/config.local.json",
            ".claude/settings.json",
            ".claude/settings.local.json",
        ],
        system: &[],
    },
    ReadFiles {
        agent: "vscode-agent",
        user: &["hooks/*.json"],
        home: &[".claude/settings.json", ".copilot/hooks/*.json"],
        project: &[".github/hooks/*.json", ".claude/settings.json", ".claude/settings.local.json"],
        system: &[],
    },
    ReadFiles {
        agent: "amplifier",
        user: &["hooks/*/hooks.json"],
        home: &[],
        project: &[".amplifier/hooks/*/hooks.json", ".amplifier/hooks/hooks.json"],
        system: &[],
    },
    ReadFiles {
        agent: "opencode",
        user: &["opencode.json", "opencode.jsonc", "config.json", "plugin/*", "plugins/*"],
        home: &[".opencode/plugin/*", ".opencode/plugins/*"],
        project: &[
            "opencode.json",
            "opencode.jsonc",
            ".opencode/opencode.json",
            ".opencode/opencode.jsonc",
            ".opencode/plugin/*",
            ".opencode/plugins/*",
        ],
        system: &["/etc/opencode/opencode.json", "/etc/opencode/opencode.jsonc"],
    },
    ReadFiles {
        agent: "kilo",
        user: &["kilo.json", "kilo.jsonc", "plugin/*", "plugins/*"],
        home: &[],
        project: &["kilo.json", "kilo.jsonc", ".kilo/plugin/*", ".kilo/plugins/*"],
        system: &[],
    },
    ReadFiles {
        agent: "pi",
        user: &["settings.json", "extensions/*", "extensions/*/index.js", "extensions/*/index.ts"],
        home: &[],
        project: &[
            ".pi/settings.json",
            ".pi/extensions/*",
            ".pi/extensions/*/index.js",
            ".pi/extensions/*/index.ts",
        ],
        system: &[],
    },
    ReadFiles {
        agent: "openclaw",
        user: &["extensions/*/index.js", "extensions/*/index.ts"],
        home: &[],
        project: &[],
        system: &[],
    },
    ReadFiles { agent: "vibe", user: &[], home: &[], project: &[".vibe/hooks.toml"], system: &[] },
    ReadFiles {
        agent: "cline",
        user: &["hooks/PreToolUse*"],
        home: &["Documents/Cline/Hooks/PreToolUse*"],
        project: &[".clinerules/hooks/PreToolUse*", ".cline/hooks/PreToolUse*"],
        system: &[],
    },
];

/// Every file in which the agent may have hooks, once. Not all of them exist.
pub(super) fn files(row: &InstallRow, process: &Process<'_>, cwd: &Path) -> BTreeSet<PathBuf> {
    let home = process.home().filter(|home| home.is_absolute());
    let mut files = BTreeSet::new();
    if let Some(dir) = row.hooks_dir().place(process) {
        let own = row.user.iter().filter(|file| file.kind.is_settings());
        files.extend(own.map(|file| dir.join(file.path)));
    }
    let own = row.project.iter().filter(|file| file.kind.is_settings());
    let own: Vec<PathBuf> = own.map(|file| Path::new(row.project_dir).join(file.path)).collect();
    let known = READ.iter().find(|known| known.agent == row.agent);
    // Stops at the home: its settings are the user's, and a project below it has none above it.
    let levels = cwd.ancestors().take(LEVELS_MAX);
    for level in levels.take_while(|level| home.as_ref().is_none_or(|home| level != home)) {
        files.extend(own.iter().map(|path| level.join(path)));
        for pattern in known.map_or(&[][..], |known| known.project) {
            expand(level, pattern, &mut files);
        }
    }
    let Some(known) = known else { return files };
    if let Some(dir) = row.dir(process) {
        for pattern in known.user {
            expand(&dir, pattern, &mut files);
        }
    }
    if let Some(home) = &home {
        for pattern in known.home {
            expand(home, pattern, &mut files);
        }
    }
    for pattern in known.system {
        expand(Path::new("/"), pattern, &mut files);
    }
    files
}

/// Adds the paths below `dir` that match the pattern. Lists a directory only for a part with a `*`.
fn expand(dir: &Path, pattern: &str, files: &mut BTreeSet<PathBuf>) {
    let mut places = vec![dir.to_owned()];
    for part in pattern.trim_start_matches('/').split('/') {
        let Some((start, end)) = part.split_once('*') else {
            for place in &mut places {
                place.push(part);
            }
            continue;
        };
        let mut next = Vec::new();
        for place in &places {
            let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
            for entry in entries.take(NAMES_MAX) {
                let name = entry.file_name();
                let Some(text) = name.to_str() else { continue };
                if text.starts_with(start) && text.ends_with(end) {
                    next.push(place.join(text));
                }
            }
        }
        places = next;
    }
    files.extend(places);
}
