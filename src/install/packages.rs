//! Packages of an agent's own that bring our hooks, without an entry in any of its hook files: a
//! plugin or an extension, as in `hooks/packages`. Knows where each agent notes that it has one;
//! changes nothing.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{
    rows::InstallRow,
    switches::{read, value_at},
};
use crate::{agent::PackageNote, process::Process};

/// The file by which the agent of `row` has our package, if it has it and has not switched it off.
pub fn package(row: &InstallRow, process: &Process<'_>) -> Option<PathBuf> {
    let dir = row.dir(process)?;
    match row.package? {
        PackageNote::File(name) => Some(dir.join(name)).filter(|path| path.is_file()),
        PackageNote::Member(name, key) => {
            let path = dir.join(name);
            let packages = value_at(read(&path)?, key)?;
            let mut ours = packages.as_object()?.iter().filter(|(name, _)| is_our_plugin(name));
            ours.any(|(_, value)| is_on(value)).then_some(path)
        }
        PackageNote::Item(name, key) => {
            let path = dir.join(name);
            let packages = value_at(read(&path)?, &[key])?;
            let mut names = packages.as_array()?.iter().filter_map(Value::as_str);
            names.any(is_our_module).then_some(path)
        }
    }
}

/// As in `beforehand@MARKETPLACE`.
fn is_our_plugin(name: &str) -> bool {
    name.split('@').next() == Some("beforehand")
}

/// As in `beforehand`, `beforehand@1.0.0` or `file:///…/node_modules/beforehand/opencode.mjs`.
fn is_our_module(name: &str) -> bool {
    let file = Path::new(name);
    let is_in_ours = file.parent().and_then(Path::file_name).is_some_and(|dir| dir == "beforehand");
    is_our_plugin(name) || is_in_ours && file.file_name().is_some_and(|it| it == "opencode.mjs")
}

/// Claude Code notes `true`, or the versions that it may have; Codex a table with `enabled`.
fn is_on(value: &Value) -> bool {
    match value {
        Value::Bool(is_on) => *is_on,
        Value::Object(table) => table.get("enabled") != Some(&Value::Bool(false)),
        Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => true,
    }
}
