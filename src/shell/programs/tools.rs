//! Development and cloud tools that look or change, depending on their options.

use std::str::Chars;

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

/// Whether an operand may end with this, so that a slash behind it divides.
fn ends_operand(char: char) -> bool {
    char.is_ascii_alphanumeric() || "_)]$".contains(char)
}

/// Words behind which a slash may begin a pattern, or divide.
const AWK_WORDS: &[&str] = &[
    "print", "printf", "return", "in", "do", "else", "case", "getline", "exit", "length", "delete",
];

/// A program without its comments, and with a number in place of each string and pattern; `None` where one awk
/// may read a sign differently from another.
fn awk_code(program: &str) -> Option<String> {
    let mut code = String::with_capacity(program.len());
    let mut chars = program.chars();
    while let Some(char) = chars.next() {
        match char {
            '"' => {
                past_string(&mut chars)?;
                code.push('0');
            }
            '#' => {
                let line = chars.as_str().split('\n').next().unwrap_or_default();
                if line.ends_with('\\') {
                    return None;
                }
                chars = chars.as_str()[line.len()..].chars();
            }
            '\\' if chars.as_str().starts_with('\n') => drop(chars.next()),
            '\\' => return None,
            '/' => {
                let before = code.trim_end_matches([' ', '\t']);
                let last = before.chars().next_back().unwrap_or('\n');
                let word = &before[before.trim_end_matches(is_word_char).len()..];
                if "(,{};!~&|\n=?:".contains(last) {
                    past_pattern(&mut chars)?;
                    code.push('0');
                } else if ends_operand(last) && !AWK_WORDS.contains(&word) {
                    code.push('/');
                } else {
                    return None;
                }
            }
            '|' if chars.as_str().starts_with('|') => {
                chars.next();
                code.push('&');
            }
            _ => code.push(char),
        }
    }
    Some(code)
}

/// Goes past the end of a string. `None` if its line ends before that.
fn past_string(chars: &mut Chars<'_>) -> Option<()> {
    loop {
        match chars.next()? {
            '"' => return Some(()),
            '\\' => drop(chars.next()?),
            '\n' => return None,
            _ => (),
        }
    }
}

/// Goes past the end of a pattern. `None` if its line ends before that, or if a slash is in brackets: to some,
/// that ends the pattern as well.
fn past_pattern(chars: &mut Chars<'_>) -> Option<()> {
    let mut is_in_brackets = false;
    loop {
        match (chars.next()?, is_in_brackets) {
            ('/', false) => return Some(()),
            ('/', true) | ('\n', _) => return None,
            ('\\', _) => drop(chars.next()?),
            ('[', false) => {
                let inner = chars.as_str().trim_start_matches('^');
                // It may be one of the characters in the brackets, or their end.
                if inner.starts_with(']') {
                    return None;
                }
                is_in_brackets = true;
            }
            ('[', true) => {
                let class = chars.as_str().strip_prefix(':')?;
                let end = class.find(|char: char| !char.is_ascii_alphabetic())?;
                *chars = class[end..].strip_prefix(":]")?.chars();
            }
            (']', true) => is_in_brackets = false,
            _ => (),
        }
    }
}

fn only_prints(program: &str) -> bool {
    let mut program = program.to_owned();
    for stream in ["> \"/dev/stdout\"", "> \"/dev/stderr\""] {
        for end in ["}", ";", " }"] {
            program = program.replace(&format!("{stream}{end}"), end);
        }
    }
    let Some(code) = awk_code(&program) else { return false };
    let mut calls = code.match_indices('(').map(|(at, _)| called(&code[..at]));
    !code.contains(['|', '@'])
        && calls.all(|name| name.is_empty() || AWK_CALLS.contains(&name))
        && compares(&code)
}

/// The name that stands before a bracket, if one does.
fn called(before: &str) -> &str {
    let before = before.trim_end_matches([' ', '\t', '\n', '\r', '\\']);
    &before[before.trim_end_matches(is_word_char).len()..]
}

fn is_word_char(char: char) -> bool {
    char.is_ascii_alphanumeric() || char == '_'
}

/// Whether each `>` compares: it does outside of braces, and in round brackets.
fn compares(code: &str) -> bool {
    let (mut braces, mut brackets) = (0_usize, 0_usize);
    code.chars().all(|char| {
        match char {
            '{' => braces += 1,
            '}' => braces = braces.saturating_sub(1),
            '(' => brackets += 1,
            ')' => brackets = brackets.saturating_sub(1),
            _ => {}
        }
        char != '>' || braces == 0 || brackets > 0
    })
}
