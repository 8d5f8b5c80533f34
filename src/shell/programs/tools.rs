//! Development and cloud tools that look or change, depending on their options.

use super::{closed, formatted};
use crate::model::Level;
use crate::shell::flags::{self, Field};
use crate::shell::names;
use crate::shell::verdict::{CommandCall, CommandVerdict, destroys, reads, unknown};
use crate::shell::walk::ShellWalk;

/// Judges `cargo fmt` and `rustfmt`: they rewrite unless they check or print.
pub(in crate::shell) fn cargo_fmt(
    walk: &mut ShellWalk<'_>,
    call: &CommandCall<'_>,
) -> CommandVerdict {
    let words: Vec<Field> = call.args().iter().filter(|arg| arg.text != "--").cloned().collect();
    let list = "-vq -p: --all --check --package= --manifest-path= --message-format= --emit= --edition= --config= --config-path= --color= --files-with-diff %--version %-V %--help %-h --style-edition=";
    let (parsed, _) = closed(walk, list, &words);
    let prints = parsed
        .value(&["--emit"])
        .is_some_and(|emit| names::is_one(emit, &["stdout", "json", "checkstyle"]));
    let checks = parsed.has(&["--check"]) && !parsed.has(&["--emit"]);
    if parsed.talks() || parsed.stray.is_none() && (checks || prints) {
        return reads("only checks");
    }
    let why = "rewrites sources in its style";
    destroys(why, formatted(walk, &parsed.operands, why))
}

/// Sub-commands of `npm` that look.
const NPM: &[&str] = &[
    "ls", "list", "ll", "la", "view", "info", "show", "outdated", "root", "prefix", "explain",
    "why", "search", "s", "find", "ping", "whoami", "query", "get", "sbom",
];
const NPM_TWO: &[&str] = &[
    "config get", "config list", "config ls", "c get", "c ls", "pkg get", "owner ls",
    "dist-tag ls", "dist-tags ls", "audit signatures", "profile get", "org ls", "access list",
    "cache ls",
];
/// Those that look when nothing follows.
const NPM_ALONE: &[&str] = &["run", "run-script", "audit", "version", "fund"];

/// Judges `npm`.
pub(in crate::shell) fn npm(_walk: &mut ShellWalk<'_>, call: &CommandCall<'_>) -> CommandVerdict {
    let list = "-w: -gaDES --workspace= --workspaces --depth= --registry= --omit= --include= --json --long --all \
        --global --silent --parseable --dry-run --offline --no-audit --no-fund --production --save-dev \
        --ignore-scripts --package-lock-only --legacy-peer-deps --prefix= -C: -lps --audit-level= --loglevel= --prod --dev --only= \
        --include-workspace-root --no-workspaces --color= --no-color --quiet --link --searchlimit= --no-update-notifier %--version %-v %--help %-h";
    let parsed = flags::parse(list, call.args());
    let words: Vec<&str> = parsed.operands.iter().map_while(Field::literal).take(2).collect();
    let two = words.join(" ");
    let is_dry = parsed.has(&["--dry-run"]);
    let looks = match words.first() {
        None => parsed.talks() || call.args().is_empty(),
        Some(first) => {
            NPM.contains(first)
                || NPM_TWO.contains(&two.as_str())
                || is_dry
                    && ["install", "i", "uninstall", "update", "prune", "dedupe"].contains(first)
                || parsed.operands.len() == 1 && NPM_ALONE.contains(first)
        }
    };
    if parsed.stray.is_none() && looks {
        reads("only looks")
    } else {
        unknown("runs the project's scripts or changes packages")
    }
}

/// Judges `ruff check`: it keeps a cache beside the files unless told not to.
pub(in crate::shell) fn ruff_check(
    walk: &mut ShellWalk<'_>,
    call: &CommandCall<'_>,
) -> CommandVerdict {
    let list = "!--fix !--unsafe-fixes !--add-noqa >-o: >--output-file= -nqev --no-cache --select= --ignore= \
        --extend-select= --output-format= --line-length= --statistics --exclude= --no-fix --diff \
        --show-files --isolated --exit-zero --quiet";
    let (parsed, verdict) = closed(walk, list, call.args());
    // The project's settings may have it fix what it finds.
    let only_reports = parsed.has(&["--no-fix", "--diff"]);
    if parsed.has(&["-n", "--no-cache"]) && (only_reports || verdict.level != Level::ReadOnly) {
        verdict
    } else if parsed.has(&["-n", "--no-cache"]) {
        unknown("fixes files if the project's settings say so")
    } else {
        CommandVerdict { targets: verdict.targets, ..unknown("writes its cache") }
    }
}

/// Judges `date`: an operand that is no format sets the clock.
pub(in crate::shell) fn date(walk: &mut ShellWalk<'_>, call: &CommandCall<'_>) -> CommandVerdict {
    let list = "-uR -I? -d: -f: -r: --date= --file= --iso-8601? --rfc-3339= --rfc-email --utc --universal \
        --reference= --resolution --debug --help --version";
    let (parsed, verdict) = closed(walk, list, call.args());
    let sets = |operand: &Field| !operand.text.starts_with('+');
    if parsed.operands.iter().any(sets) { unknown("sets the clock") } else { verdict }
}

/// Judges `dc`: only numbers, operators and what prints the stack.
pub(in crate::shell) fn dc(walk: &mut ShellWalk<'_>, call: &CommandCall<'_>) -> CommandVerdict {
    let (parsed, verdict) = closed(walk, "-e: --expression=", call.args());
    let calculates = |script: &Field| {
        let is_plain = |char: char| char.is_ascii_digit() || " .+-*/%^pfndr".contains(char);
        script.literal().is_some_and(|script| script.chars().all(is_plain))
    };
    let mut scripts = parsed.hits.iter().filter_map(|hit| hit.value.as_ref());
    let is_plain = parsed.operands.is_empty() && !parsed.hits.is_empty() && scripts.all(calculates);
    if is_plain { verdict } else { unknown("may run commands") }
}

/// Judges `node`: only its version, and whether a script can be read.
pub(in crate::shell) fn node(walk: &mut ShellWalk<'_>, call: &CommandCall<'_>) -> CommandVerdict {
    let (parsed, verdict) = closed(walk, "-c --check %--version %-v %--help %-h", call.args());
    let checks = parsed.has(&["-c", "--check"]) && !parsed.operands.is_empty();
    if verdict.level == Level::ReadOnly && (checks || parsed.talks()) {
        return reads("only checks the script");
    }
    unknown("runs a program in a language we do not read")
}

/// What an awk program may call: functions of the language that neither write nor run anything, and
/// what else stands before a bracket.
const AWK_CALLS: &[&str] = &[
    "length", "substr", "index", "split", "match", "sub", "gsub", "gensub", "sprintf", "printf",
    "print", "tolower", "toupper", "int", "sqrt", "exp", "log", "sin", "cos", "atan2", "rand",
    "srand", "strftime", "systime", "mktime", "asort", "asorti", "if", "while", "for", "in",
    "return", "exit", "else", "do", "and", "or", "xor", "not", "compl", "strtonum",
];

/// Judges `awk`. A program writes, or runs another, by `>`, `|` or a call, and by nothing else: one
/// without these signs, but where they compare or call a function that computes, only prints.
pub(in crate::shell) fn awk(walk: &mut ShellWalk<'_>, call: &CommandCall<'_>) -> CommandVerdict {
    let (parsed, verdict) = closed(walk, "^ -F: -v: %--version %--help", call.args());
    let program = parsed.operands.first().map(Field::literal);
    match program {
        Some(Some(program)) if only_prints(program) => verdict,
        None if parsed.talks() => reads("only tells about the program"),
        Some(_) | None => unknown("its program may write or run something"),
    }
}

fn only_prints(program: &str) -> bool {
    let mut program = program.replace("||", " ");
    for stream in ["> \"/dev/stdout\"", "> \"/dev/stderr\""] {
        for end in ["}", ";", " }"] {
            program = program.replace(&format!("{stream}{end}"), end);
        }
    }
    if program.contains(['|', '@']) || program.contains('#') && program.contains('(') {
        return false;
    }
    // Patterns, comments and escapes could hide a quote, and what hides a quote a bracket.
    let is_plain =
        !program.contains(['/', '#', '\\']) && program.matches('"').count().is_multiple_of(2);
    let code = if is_plain {
        program.split('"').step_by(2).collect::<Vec<_>>().join("0")
    } else {
        program
    };
    let calls = code.match_indices('(').map(|(at, _)| called(&code[..at]));
    calls.into_iter().all(|name| name.is_empty() || AWK_CALLS.contains(&name))
        && compares(&code, is_plain)
}

/// The name that stands before a bracket, if one does.
fn called(before: &str) -> &str {
    let before = before.trim_end_matches([' ', '\t', '\n', '\r', '\\']);
    let is_part = |char: char| char.is_ascii_alphanumeric() || char == '_';
    &before[before.trim_end_matches(is_part).len()..]
}

/// Whether each `>` compares: it does outside of braces, and in round brackets.
fn compares(code: &str, is_plain: bool) -> bool {
    let (mut braces, mut brackets) = (0_usize, 0_usize);
    code.chars().all(|char| {
        match char {
            '{' => braces += 1,
            '}' => braces = braces.saturating_sub(1),
            '(' => brackets += 1,
            ')' => brackets = brackets.saturating_sub(1),
            _ => {}
        }
        char != '>' || is_plain && (braces == 0 || brackets > 0)
    })
}
