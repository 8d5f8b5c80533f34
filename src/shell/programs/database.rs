//! Databases. SQL is code; only queries that are too plain to do anything are let pass.

use crate::model::TargetAction;
use crate::shell::flags::{self, Field};
use crate::shell::names;
use crate::shell::verdict::{CommandCall, CommandVerdict, destroys, reads, unknown};
use crate::shell::walk::ShellWalk;

/// Judges `sqlite3`. Even a query may change the file, if a program died writing it: then the
/// journal is worked off. In memory there is none.
pub(in crate::shell) fn sqlite(walk: &mut ShellWalk<'_>, call: &CommandCall<'_>) -> CommandVerdict {
    let list = "@ -header -noheader -csv -json -column -line -list -box -table -markdown -tabs -batch -readonly -bail -safe";
    let parsed = flags::parse(list, call.args());
    let (Some(file), None) = (parsed.operands.first(), &parsed.stray) else {
        return unknown("its SQL may change a database");
    };
    let scripts = parsed.operands.get(1..).unwrap_or_default();
    let is_tame = |script: &Field| script.literal().is_some_and(only_fills_tables);
    if names::is_one(file, &[":memory:"]) && !scripts.is_empty() && scripts.iter().all(is_tame) {
        return reads("works in memory");
    }
    let why = "its SQL may change the database";
    destroys(why, vec![walk.target(file, TargetAction::Modify, why)])
}

/// Whether statements call no function and name no file.
fn only_fills_tables(script: &str) -> bool {
    let begins = ["create table ", "drop table ", "insert into ", "select "];
    let is_plain = |char: char| char.is_ascii_alphanumeric() || " _,*=<>'-()".contains(char);
    let calls = |statement: &str| {
        let mut before = statement.split('(');
        let opened = before.next().unwrap_or_default().trim_end();
        let first = opened.ends_with("values") || opened.starts_with("create table");
        before.next().is_some() && !first || before.next().is_some()
    };
    script.split(';').map(str::trim).filter(|statement| !statement.is_empty()).all(|statement| {
        begins.iter().any(|begin| statement.starts_with(begin))
            && statement.chars().all(is_plain)
            && !calls(statement)
    })
}

/// Judges `psql`: a query of plain words calls no function, and so changes nothing.
pub(in crate::shell) fn psql(_walk: &mut ShellWalk<'_>, call: &CommandCall<'_>) -> CommandVerdict {
    let list = "-aAbeEHlnqStwWxX1z0 -c: -d: -h: -p: -U: --command= --dbname= --host= --port= --username= \
        --no-align --tuples-only --quiet --csv --list --expanded --no-psqlrc --no-password --html";
    let parsed = flags::parse(list, call.args());
    let mut queries = parsed.hits.iter().filter(|hit| hit.name == "-c" || hit.name == "--command");
    let asks = |query: &Field| query.literal().is_some_and(only_asks);
    let is_given = parsed.has(&["-c", "--command", "-l", "--list"]);
    if parsed.stray.is_none() && is_given && queries.all(|hit| hit.value.as_ref().is_some_and(asks))
    {
        reads("only asks the database")
    } else {
        unknown("its SQL may change the database")
    }
}

fn only_asks(query: &str) -> bool {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || " _,.*=<>'-".contains(char);
    let mut words = query.split(' ').map(str::to_ascii_lowercase);
    words.next().is_some_and(|first| first == "select")
        && query.chars().all(is_plain)
        && words.all(|word| word != "into")
}
