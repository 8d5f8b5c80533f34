//! Development and cloud tools that look or change, depending on their options.

use super::{all, closed};
use crate::model::{Level, TargetAction};
use crate::shell::flags::{self, Field};
use crate::shell::names;
use crate::shell::verdict::{Call, Verdict, destroys, reads, unknown};
use crate::shell::walk::Walk;

/// Judges `cargo fmt` and `rustfmt`: they rewrite unless they check or print.
pub(in crate::shell) fn cargo_fmt(walk: &mut Walk<'_>, call: &Call<'_>) -> Verdict {
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
    destroys(why, all(walk, &parsed.operands, TargetAction::Modify, why))
}

/// Sub-commands of `npm` that look.
const NPM: &[&str] = &[
    "ls", "list", "ll", "la", "view", "info", "show", "outdated", "root", "prefix", "explain",
    "why", "search",
];
const NPM_TWO: &[&str] = &["config get", "config list", "config ls", "pkg get"];

/// Judges `npm`.
pub(in crate::shell) fn npm(_walk: &mut Walk<'_>, call: &Call<'_>) -> Verdict {
    let list = "-w: -gaDES --workspace= --workspaces --depth= --registry= --omit= --include= --json --long --all \
        --global --silent --parseable --dry-run --offline --no-audit --no-fund --production --save-dev \
        --ignore-scripts --package-lock-only --legacy-peer-deps %--version %-v %--help %-h";
    let parsed = flags::parse(list, call.args());
    let words: Vec<&str> = parsed.operands.iter().map_while(Field::literal).take(2).collect();
    let two = words.join(" ");
    let is_dry = parsed.has(&["--dry-run"]);
    let lists_scripts = parsed.operands.len() == 1 && words == ["run"];
    let looks = match words.first() {
        None => parsed.talks() || call.args().is_empty(),
        Some(first) => {
            NPM.contains(first)
                || NPM_TWO.contains(&two.as_str())
                || is_dry
                    && ["install", "i", "uninstall", "update", "prune", "dedupe"].contains(first)
                || lists_scripts
        }
    };
    if parsed.stray.is_none() && looks {
        reads("only looks")
    } else {
        unknown("runs the project's scripts or changes packages")
    }
}

/// Judges `ruff check`: it keeps a cache beside the files unless told not to.
pub(in crate::shell) fn ruff_check(walk: &mut Walk<'_>, call: &Call<'_>) -> Verdict {
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
        Verdict { targets: verdict.targets, ..unknown("writes its cache") }
    }
}

/// Judges `date`: an operand that is no format sets the clock.
pub(in crate::shell) fn date(walk: &mut Walk<'_>, call: &Call<'_>) -> Verdict {
    let list = "-uR -I? -d: -f: -r: --date= --file= --iso-8601? --rfc-3339= --rfc-email --utc --universal \
        --reference= --resolution --debug --help --version";
    let (parsed, verdict) = closed(walk, list, call.args());
    let sets = |operand: &Field| !operand.text.starts_with('+');
    if parsed.operands.iter().any(sets) { unknown("sets the clock") } else { verdict }
}

/// Judges `dc`: only numbers, operators and what prints the stack.
pub(in crate::shell) fn dc(walk: &mut Walk<'_>, call: &Call<'_>) -> Verdict {
    let (parsed, verdict) = closed(walk, "-e: --expression=", call.args());
    let calculates = |script: &Field| {
        let is_plain = |char: char| char.is_ascii_digit() || " .+-*/%^pfndr".contains(char);
        script.literal().is_some_and(|script| script.chars().all(is_plain))
    };
    let mut scripts = parsed.hits.iter().filter_map(|hit| hit.value.as_ref());
    let is_plain = parsed.operands.is_empty() && !parsed.hits.is_empty() && scripts.all(calculates);
    if is_plain { verdict } else { unknown("may run commands") }
}

/// Judges `awk`. A program writes, or runs another, by `>`, `|` or a call, and by nothing else: one
/// without these signs only prints.
pub(in crate::shell) fn awk(walk: &mut Walk<'_>, call: &Call<'_>) -> Verdict {
    let (parsed, verdict) = closed(walk, "^ -F: -v: %--version %--help", call.args());
    let program = parsed.operands.first().map(Field::literal);
    match program {
        Some(Some(program)) if only_prints(program) => verdict,
        None if parsed.talks() => reads("only tells about the program"),
        Some(_) | None => unknown("its program may write or run something"),
    }
}

fn only_prints(program: &str) -> bool {
    let mut program = program.to_owned();
    for stream in ["> \"/dev/stdout\"", "> \"/dev/stderr\""] {
        for end in ["}", ";", " }"] {
            program = program.replace(&format!("{stream}{end}"), end);
        }
    }
    if program.contains(['|', '(', '@']) {
        return false;
    }
    // Outside of braces it compares; quotes, patterns and comments could hide a brace.
    let has_plain_braces = !program.contains(['"', '/', '#', '\\']);
    let mut depth = 0_usize;
    program.chars().all(|char| {
        match char {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        char != '>' || depth == 0 && has_plain_braces
    })
}
