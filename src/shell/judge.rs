//! Finds the row of a command and applies it.

use super::flags::Field;
use super::names;
use super::programs::{apply, script_file, shown};
use super::recipes;
use super::table;
use super::verdict::{CommandCall, CommandVerdict, reads, unknown};
use super::walk::{Programs, ShellWalk};
use crate::model::Level;

/// Where installed programs live; a program elsewhere is one we do not know.
const TRUSTED: &[&str] = &[
    "/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/", "/usr/local/sbin/",
    "/opt/homebrew/bin/", "/usr/local/go/bin/",
];

/// The functions of this module that a walk calls.
pub(super) const PROGRAMS: Programs = Programs { judge, is_in_shell };

/// Judges one command of known words.
fn judge(walk: &mut ShellWalk<'_>, call: &CommandCall<'_>) -> CommandVerdict {
    let Some(name) = call.words.first().and_then(Field::literal) else {
        return unknown("the command's name is not known before it runs");
    };
    let base = name.rsplit('/').next().unwrap_or(name);
    let verdict = known(walk, call, name, base);
    let words = call.args().iter().map(|field| field.text.as_str());
    let verdict = walk.scope.rules.apply(base, words, verdict);
    if verdict.level == Level::Unknown {
        note_files(walk, call, base);
    }
    verdict
}

/// Notes which files a command runs.
fn note_files(walk: &mut ShellWalk<'_>, call: &CommandCall<'_>, base: &str) {
    if let Some(file) = script_file(call, base) {
        walk.runs_script(file);
        if ["source", "."].contains(&base) {
            walk.learns_from(file);
        }
    }
    let words: Vec<&str> = call.args().iter().filter_map(Field::literal).collect();
    if let Some((dir, part)) = recipes::of_call(base, &words) {
        walk.runs_recipe(&dir, part);
    }
}

fn known(
    walk: &mut ShellWalk<'_>,
    call: &CommandCall<'_>,
    name: &str,
    base: &str,
) -> CommandVerdict {
    let directory = name.strip_suffix(base).unwrap_or_default();
    if !(directory.is_empty() || TRUSTED.contains(&directory)) {
        return unknown("runs a program that is not an installed one");
    }
    if let [only] = call.args()
        && names::is_one(only, &["--version", "--help"])
    {
        return reads("only tells about the program");
    }
    match table::find(base) {
        Some(row) => apply(walk, row, call),
        None => unknown(format!("`{}` is no program we know", shown(base))),
    }
}

/// Whether a command may run in the shell itself, as its builtins do, and functions that an earlier
/// line or the user's profile may have defined. Every program of the tables that is no builtin is
/// a process of its own.
fn is_in_shell(words: &[Field]) -> bool {
    words.first().and_then(Field::literal).is_none_or(|name| {
        !name.contains('/') && (table::find(name).is_none() || names::BUILTINS.contains(&name))
    })
}
