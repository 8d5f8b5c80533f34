//! Command lines of databases: whether the SQL they are given only asks.

use crate::model::TargetAction;
use crate::shell::flags::{self, Field, Mark};
use crate::shell::names;
use crate::shell::verdict::{Call, Stdin, Verdict, destroys, reads, unknown};
use crate::shell::walk::Walk;

/// Judges `sqlite3`.
pub(in crate::shell) fn sqlite(walk: &mut Walk<'_>, call: &Call<'_>) -> Verdict {
    let list = "@ -header -noheader -csv -json -column -line -list -html -box -table -markdown -ascii -tabs -quote -batch -readonly -bail -echo -interactive -stats -safe -nofollow -separator: -newline: -nullvalue: -cmd: %-version %--version %-help \
                --header --csv --json --readonly --column --box --table --markdown --line --separator:";
    let parsed = flags::parse(list, call.args());
    if parsed.hits.iter().any(|hit| hit.mark == Mark::Talks) {
        return reads("only tells about the program");
    }
    let Some((file, scripts)) = parsed.operands.split_first() else {
        return unknown("reads its commands from elsewhere");
    };
    let commands =
        parsed.hits.iter().filter(|hit| hit.name == "-cmd").filter_map(|hit| hit.value.clone());
    let mut texts: Vec<Field> = scripts.iter().cloned().chain(commands).collect();
    if let (true, Stdin::Text(text)) = (scripts.is_empty(), call.stdin) {
        texts.push(Field::exact(text));
    }
    let in_memory = names::is_one(file, &[":memory:", ""]);
    let asks = parsed.stray.is_none()
        && !texts.is_empty()
        && texts.iter().all(|text| text.literal().is_some_and(|text| only_asks(text, in_memory)));
    if asks {
        return reads("only asks the database");
    }
    let why = "its SQL may change the database";
    destroys(why, vec![walk.target(file, TargetAction::Modify, why)])
}

/// Judges `psql`.
pub(in crate::shell) fn psql(_walk: &mut Walk<'_>, call: &Call<'_>) -> Verdict {
    let list = "-aAbeEHlnqsStwWxX1z0 -c: -d: -F: -h: -p: -P: -R: -T: -U: -v: --command= --dbname= --host= --port= --username= --no-align --tuples-only --quiet --csv --list --expanded --no-psqlrc --no-password \
                --field-separator= --pset= --set= --variable= --html %--version %-V %--help %-?";
    server(list, &["-c", "--command"], &["-l", "--list"], call)
}

/// Judges `mysql`.
pub(in crate::shell) fn mysql(_walk: &mut Walk<'_>, call: &Call<'_>) -> Verdict {
    let list = "-ABEHNrstvwnqfGC -e: -u: -h: -P: -D: -p? -S: --execute= --user= --host= --port= --database= --password? --batch --silent --skip-column-names --table --vertical --raw --protocol= --socket= %--version %-V %--help";
    server(list, &["-e", "--execute"], &[], call)
}

fn server(list: &str, runs: &[&str], lists: &[&str], call: &Call<'_>) -> Verdict {
    let parsed = flags::parse(list, call.args());
    if parsed.hits.iter().any(|hit| hit.mark == Mark::Talks) {
        return reads("only tells about the program");
    }
    let mut scripts = parsed.hits.iter().filter(|hit| runs.contains(&hit.name.as_str())).peekable();
    let has_any = scripts.peek().is_some() || parsed.has(lists);
    let asks = scripts.all(|hit| {
        hit.value.as_ref().and_then(Field::literal).is_some_and(|text| only_asks(text, false))
    });
    if parsed.stray.is_none() && has_any && asks {
        reads("only asks the database")
    } else {
        unknown("its SQL may change the database")
    }
}

/// Statements that ask.
const ASKS: &[&str] = &[
    "select", "explain", "show", "describe", "desc", "values", "pragma", "with", "use", "begin",
    "commit", "rollback",
];
/// Words that make even those write.
const WRITES: &[&str] = &[
    "into", "insert", "update", "delete", "replace", "drop", "writefile", "load_extension", "edit",
    "lo_export", "lo_unlink", "outfile", "dumpfile", "pg_terminate_backend", "setval", "nextval",
    "dblink_exec", "copy", "attach", "fts3_tokenizer", "pg_write_file", "pg_file_write", "vacuum",
    "analyze",
];
/// Commands of the programs themselves that ask.
const DOTS: &[&str] = &[
    ".tables", ".schema", ".headers", ".header", ".mode", ".indexes", ".indices", ".databases",
    ".dump", ".help", ".show", ".width", ".nullvalue", ".timer", ".exit", ".quit", ".fullschema",
    ".dbinfo", ".separator",
];

/// Whether every statement only asks. In memory everything may change, but nothing outside.
fn only_asks(script: &str, in_memory: bool) -> bool {
    statements(script).iter().all(|statement| {
        let statement = statement.trim();
        let first = statement
            .split(|char: char| char.is_whitespace() || char == '(')
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase();
        if first.starts_with('.') {
            return DOTS.contains(&first.as_str())
                && !statement.contains('|')
                && !statement.contains('\n');
        }
        if let Some(meta) = first.strip_prefix('\\') {
            return meta.starts_with(['d', 'l', 'z'])
                && !meta.starts_with("lo")
                && !statement.contains(['\n', '`', '|'])
                || ["x", "timing", "conninfo", "q"].contains(&meta);
        }
        if statement.contains('\\') {
            return false;
        }
        let mut words = statement.split(|char: char| !(char.is_alphanumeric() || char == '_'));
        if in_memory {
            return !words.any(|word| {
                ["attach", "into", "writefile", "load_extension", "edit"]
                    .iter()
                    .any(|bad| word.eq_ignore_ascii_case(bad))
            });
        }
        let writes = words.any(|word| WRITES.iter().any(|bad| word.eq_ignore_ascii_case(bad)));
        let sets = first == "pragma" && statement.contains('=');
        first.is_empty() || ASKS.contains(&first.as_str()) && !writes && !sets
    })
}

/// Cuts a script at its semicolons, and leaves out what stands between quotes.
fn statements(script: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut quote = None;
    for char in script.chars() {
        match (quote, char) {
            (Some(open), char) if char == open => quote = None,
            (Some(_), _) => continue,
            (None, '\'' | '"') => quote = Some(char),
            (None, ';') => found.push(String::new()),
            (None, _) => {}
        }
        if let Some(last) = found.last_mut() {
            last.push(char);
        }
    }
    // Dot commands end at their line.
    found
        .iter()
        .flat_map(|part| {
            if part.trim().starts_with('.') {
                part.lines().map(str::to_owned).collect()
            } else {
                vec![part.clone()]
            }
        })
        .collect()
}

/// Judges `redis-cli` by its command.
pub(in crate::shell) fn redis(_walk: &mut Walk<'_>, call: &Call<'_>) -> Verdict {
    let parsed = flags::parse(
        "^ -h: -p: -a: -n: -u: -s: -i: -r: --no-auth-warning --raw --no-raw --json --csv --scan --bigkeys --stat --latency --user= --pattern= --tls %--version %-v %--help",
        call.args(),
    );
    let asks = [
        "get", "keys", "info", "ping", "exists", "ttl", "pttl", "type", "scan", "dbsize", "hget",
        "hgetall", "hkeys", "hlen", "llen", "lrange", "scard", "smembers", "sismember", "zrange",
        "zscore", "zcard", "mget", "strlen", "client", "time", "memory", "object", "xlen",
        "xrange", "monitor", "lastsave", "slowlog", "echo",
    ];
    let first = call.args().get(parsed.rest).and_then(Field::literal).map(str::to_ascii_lowercase);
    let looks = match first {
        Some(first) => asks.contains(&first.as_str()),
        None => !parsed.hits.is_empty(),
    };
    if looks && parsed.stray.is_none() {
        reads("only asks the store")
    } else {
        destroys("changes a store", Vec::new())
    }
}
