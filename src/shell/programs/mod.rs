//! How a row is applied to a command. Programs that need more than a row have a file of their own
//! beside this one.

mod database;
mod edit;
mod files;
mod find;
pub(super) mod git;
mod network;
mod sed;
mod shells;
mod tools;
mod wrappers;

use super::flags::{self, Field, FlagMark, Parsed};
use super::names;
use super::row::{ProgramRow, Rule};
use super::verdict::{CommandCall, CommandVerdict, creates, destroys, reads, unknown};
use super::walk::ShellWalk;
use crate::model::{Certainty, Level, Spares, Target, TargetAction};

pub(super) use database::{psql, sqlite};
pub(super) use edit::{ed, pager, vim};
pub(super) use files::{
    compress, dd, install, link, rm, rsync, sort, tar, tee, unlink, unzip, zip,
};
pub(super) use find::{fd, find};
pub(super) use git::git;
pub(super) use network::{curl, gh_api, ssh, wget};
pub(super) use sed::sed;
pub(super) use shells::{
    alias, builtin, cd, command, declare, eval, exec, popd, printf, pushd, read, script_file, set,
    shell, test, trap, words,
};
pub(super) use tools::{awk, cargo_fmt, date, dc, node, npm, ruff_check};
pub(super) use wrappers::{env, sudo, wrap, xargs};

pub(super) fn shown(name: &str) -> String {
    name.chars().take(40).collect()
}

/// Applies a row to a call.
pub(super) fn apply(
    walk: &mut ShellWalk<'_>,
    row: &ProgramRow,
    call: &CommandCall<'_>,
) -> CommandVerdict {
    match row.rule {
        Rule::By(judge) => judge(walk, call),
        Rule::Sub(rows) => sub(walk, row, rows, call),
        Rule::Wraps(skip) => wrap(walk, row.flags, skip, call),
        Rule::Unknown => {
            let parsed = flags::parse(row.flags, call.args());
            if parsed.talks() && call.args().len() == 1 {
                return reads("only tells about the program");
            }
            let verdict = written(walk, &parsed);
            if verdict.level == Level::Destroys { verdict } else { unknown(row.why) }
        }
        Rule::Reads
        | Rule::ReadsAtMost(_)
        | Rule::ReadsThenWrites(_)
        | Rule::Formats
        | Rule::Changes(..)
        | Rule::Makes
        | Rule::Copies
        | Rule::Moves
        | Rule::Destroys => plain(walk, row, call.args()),
    }
}

/// A program with sub-commands: the row with the longest matching name decides.
fn sub(
    walk: &mut ShellWalk<'_>,
    row: &ProgramRow,
    rows: &[ProgramRow],
    call: &CommandCall<'_>,
) -> CommandVerdict {
    let parsed = flags::parse(row.flags, call.args());
    if let Some(verdict) = strayed(&parsed) {
        return verdict;
    }
    let args = call.args().get(parsed.rest..).unwrap_or_default();
    let words: Vec<&str> = args.iter().map_while(Field::literal).take(3).collect();
    let found = (1..=words.len()).rev().find_map(|count| {
        let name = words.get(..count)?.join(" ");
        rows.iter().find(|row| row.is(&name)).map(|row| (row, count))
    });
    let Some((found, count)) = found else {
        return if args.is_empty() {
            reads("only tells about the program")
        } else {
            unknown(row.why)
        };
    };
    if let [help] = args.get(count..).unwrap_or_default()
        && names::is_one(help, &["--help", "-h"])
    {
        return reads("only tells about the program");
    }
    let call = CommandCall { words: args.get(count - 1..).unwrap_or_default(), stdin: call.stdin };
    apply(walk, found, &call)
}

fn strayed(parsed: &Parsed) -> Option<CommandVerdict> {
    if let Some(flag) = &parsed.stray {
        return Some(unknown(format!("`{}` is, or may be, an option we do not know", shown(flag))));
    }
    let hit = parsed.hits.iter().find(|hit| hit.mark == FlagMark::Unknown)?;
    Some(unknown(format!("its flag `{}` runs or writes something", hit.name)))
}

/// Reads a call's flags by a list and says what they alone do, for programs that only read.
fn closed(walk: &ShellWalk<'_>, list: &str, args: &[Field]) -> (Parsed, CommandVerdict) {
    let parsed = flags::parse(list, args);
    let verdict = strayed(&parsed).unwrap_or_else(|| written(walk, &parsed));
    (parsed, verdict)
}

/// What the flags write.
fn written(walk: &ShellWalk<'_>, parsed: &Parsed) -> CommandVerdict {
    let mut targets = Vec::new();
    let mut level = Level::ReadOnly;
    for hit in &parsed.hits {
        let (action, worth) = match hit.mark {
            FlagMark::Overwrites => (TargetAction::Overwrite, Level::Destroys),
            FlagMark::Makes => (TargetAction::Create, Level::Creates),
            FlagMark::InPlace => {
                level = level.max(Level::Destroys);
                targets.extend(formatted(walk, &parsed.operands, "is changed in place"));
                continue;
            }
            FlagMark::Unknown | FlagMark::Harmless | FlagMark::Talks => continue,
        };
        match &hit.value {
            // To most programs `-` is a file of that name here.
            Some(value) if !names::is_sink(value) => {
                targets.push(walk.target(value, action, "an option names it as output"));
                level = level.max(worth);
            }
            Some(_) => {}
            None => level = level.max(worth),
        }
    }
    match level {
        Level::ReadOnly => reads("only reads"),
        Level::Creates => creates("makes the file its option names", targets),
        Level::Destroys | Level::Unknown => destroys("writes the file its option names", targets),
    }
}

/// A program without sub-commands, judged by its flags and operands.
fn plain(walk: &ShellWalk<'_>, row: &ProgramRow, args: &[Field]) -> CommandVerdict {
    let (parsed, verdict) = closed(walk, row.flags, args);
    // A flag that makes the program only print ends the matter.
    if parsed.talks() && verdict.level == Level::ReadOnly {
        return reads("only shows what it would do");
    }
    let operands = parsed.operands.as_slice();
    match row.rule {
        Rule::Reads => CommandVerdict { reason: because(row, &verdict), ..verdict },
        Rule::ReadsAtMost(count) => {
            if operands.len() > count || (operands.iter().any(|field| field.splits)) {
                return unknown(row.why);
            }
            verdict
        }
        Rule::ReadsThenWrites(count) => {
            if operands.iter().any(|field| field.splits) {
                return unknown("its operands may name a file to write");
            }
            let Some(output) = operands.get(count).filter(|field| names::is_file(field)) else {
                return verdict;
            };
            let target = walk.target(output, TargetAction::Overwrite, row.why);
            destroys(row.why, vec![target])
        }
        Rule::Formats => destroys(row.why, formatted(walk, operands, row.why)),
        Rule::Changes(action, skip) => {
            let targets = all(walk, operands.get(skip..).unwrap_or_default(), action, row.why);
            destroys(row.why, targets)
        }
        Rule::Makes if parsed.stray.is_some() => verdict,
        Rule::Makes => creates(row.why, all(walk, operands, TargetAction::Create, row.why)),
        Rule::Copies => destroys(row.why, copied(walk, &parsed, row.why)),
        Rule::Moves => {
            let mut targets = copied(walk, &parsed, row.why);
            let last = operands.len().saturating_sub(usize::from(destination(&parsed).is_none()));
            let sources = operands.get(..last).unwrap_or_default();
            targets.extend(all(walk, sources, TargetAction::Move, row.why));
            destroys(row.why, targets)
        }
        Rule::Destroys => destroys(row.why, verdict.targets),
        Rule::Sub(_) | Rule::By(_) | Rule::Wraps(_) | Rule::Unknown => unknown(row.why),
    }
}

fn because(row: &ProgramRow, verdict: &CommandVerdict) -> std::borrow::Cow<'static, str> {
    match verdict.level {
        Level::ReadOnly => row.why.into(),
        Level::Creates | Level::Destroys | Level::Unknown => verdict.reason.clone(),
    }
}

fn all(walk: &ShellWalk<'_>, fields: &[Field], action: TargetAction, why: &str) -> Vec<Target> {
    fields
        .iter()
        .filter(|field| !names::is_sink(field))
        .map(|field| walk.target(field, action, why))
        .collect()
}

/// The targets of a formatter: files that are given by name, and those it finds in a directory.
fn formatted(walk: &ShellWalk<'_>, operands: &[Field], why: &str) -> Vec<Target> {
    let targets = all(walk, operands, TargetAction::Modify, why).into_iter();
    targets.map(|target| Target { spares: Spares::OtherKinds, ..target }).collect()
}

fn destination(parsed: &Parsed) -> Option<&Field> {
    parsed.value(&["-t", "--target-directory"])
}

/// A file that another one overwrites, or a directory to which one is copied with all that is in it.
fn copied_over(walk: &ShellWalk<'_>, to: &Field, source: &Field, why: &str) -> Target {
    let target = walk.target(to, TargetAction::Overwrite, why);
    let from = walk.target(source, TargetAction::Move, why);
    match from.certainty {
        Certainty::Exact => Target { spares: Spares::NotIn(from.path), ..target },
        Certainty::Glob | Certainty::Dynamic => target,
    }
}

/// What `cp` and `mv` can overwrite: the destination, or what the sources are called inside it.
fn copied(walk: &ShellWalk<'_>, parsed: &Parsed, why: &str) -> Vec<Target> {
    let (sources, to) = match (destination(parsed), parsed.operands.split_last()) {
        (Some(directory), _) => (parsed.operands.as_slice(), directory),
        (None, Some((to, sources))) => (sources, to),
        (None, None) => return Vec::new(),
    };
    let mut targets = Vec::new();
    if parsed.has(&["-T", "--no-target-directory"]) {
        targets.extend(sources.iter().map(|source| copied_over(walk, to, source, why)));
    }
    for source in sources {
        let name = source.text.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        let is_plain = !name.is_empty() && name != "." && name != "..";
        if is_plain {
            let sure = if to.literal().is_none() { to.sure } else { source.sure };
            let text = format!("{}/{name}", to.text.trim_end_matches('/'));
            let inside = Field { text, sure, splits: false };
            targets.push(copied_over(walk, &inside, source, why));
        } else {
            targets.push(copied_over(walk, to, source, why));
        }
    }
    if targets.iter().all(|target| target.path != to.text) {
        targets.insert(0, walk.target(to, TargetAction::Overwrite, why));
    }
    targets
}
