//! Kimi Code, 2.1.0. Read in its package; not run.

use super::files::{self, AgentFiles, FileKind, file, home_or};
use super::hooks::{self, HookTemplate};
use super::reply::{self, AnswerForm};
use super::{CLAUDE, Dialect, edit, run, write};
use crate::model::Agent;

/// The row of Kimi Code.
pub(super) const DIALECT: Dialect = Dialect {
    agent: Agent::Kimi,
    name: "kimi",
    title: "Kimi Code",
    asks: false,
    reads: &[&["Read", "Glob", "Grep"]],
    tools: &[&[write("Write", &["path"]), edit("Edit", &["path"]), run("Bash", &["command"])]],
    answer: AnswerForm { neutral: "", ..reply::QUIET },
    files: AgentFiles {
        base: home_or(".kimi-code", "KIMI_CODE_HOME", ""),
        programs: &["kimi"],
        user: &[file("config.toml", FileKind::TomlList("event"))],
        ..files::PLAIN
    },
    hooks: HookTemplate {
        events: hooks::WITH_FAILURES,
        hook: r#"{"event":"EVENT","command":"LINE","timeout":30}"#,
        ..hooks::FLAT
    },
    ..CLAUDE
};
