//! Programs that run the command in their operands.

use super::{closed, strayed};
use crate::model::{Certainty, Level, Spares, Target};
use crate::shell::flags::{self, Field};
use crate::shell::names;
use crate::shell::verdict::{CommandCall, CommandInput, CommandVerdict, reads, unknown};
use crate::shell::walk::ShellWalk;

/// A command around another one, which is judged apart.
const RUNS: &str = "runs another command, judged by itself";

/// Runs the rest of the words after a wrapper's own flags and operands.
pub(in crate::shell) fn wrap(
    walk: &mut ShellWalk<'_>,
    list: &str,
    skip: usize,
    call: &CommandCall<'_>,
) -> CommandVerdict {
    let (parsed, verdict) = closed(walk, list, call.args());
    if parsed.talks() {
        return reads("only tells about the program");
    }
    let inner = call.args().get(parsed.rest + skip..).unwrap_or_default();
    if !inner.is_empty() && parsed.stray.is_none() {
        walk.run(inner, call.stdin);
    }
    match verdict.level {
        Level::ReadOnly => reads(RUNS),
        Level::Creates | Level::Destroys | Level::Unknown => verdict,
    }
}

/// Runs a command as another user.
pub(in crate::shell) fn sudo(walk: &mut ShellWalk<'_>, call: &CommandCall<'_>) -> CommandVerdict {
    let list = "^ -AbEHnPSkKlLv -u: -g: -p: -C: -h: -T: -U: -D: -r: -t: --user= --group= --preserve-env? \
                --non-interactive --set-home --list --validate --stdin --prompt= %--version %-V %--help";
    let parsed = flags::parse(list, call.args());
    if let Some(verdict) = strayed(&parsed) {
        return verdict;
    }
    if parsed.has(&["-D"]) {
        return unknown("runs in another directory");
    }
    assigned(walk, call.args().get(parsed.rest..).unwrap_or_default(), call.stdin)
}

/// Runs a command after `NAME=value` words.
fn assigned(walk: &mut ShellWalk<'_>, words: &[Field], stdin: &CommandInput) -> CommandVerdict {
    let mut verdict = reads(RUNS);
    let mut rest = words;
    while let [first, tail @ ..] = rest {
        let Some((name, _)) = first.text.split_once('=') else { break };
        if !names::is_harmless(name, &first.after(name).after("=")) {
            verdict = unknown("sets a variable that a program may obey");
        }
        rest = tail;
    }
    if !rest.is_empty() {
        walk.run(rest, stdin);
    }
    verdict
}

/// Runs a command in a changed environment.
pub(in crate::shell) fn env(walk: &mut ShellWalk<'_>, call: &CommandCall<'_>) -> CommandVerdict {
    let list = "^ -i0v -u: -C: -S: --ignore-environment --null --unset= --chdir= --split-string= --debug \
                --block-signal? --default-signal? --ignore-signal? %--version %--help";
    let parsed = flags::parse(list, call.args());
    if let Some(verdict) = strayed(&parsed) {
        return verdict;
    }
    let mut words = call.args().get(parsed.rest..).unwrap_or_default().to_vec();
    if let Some(text) = parsed.value(&["-S", "--split-string"]) {
        let split = text.literal().and_then(|text| shell_words::split(text).ok());
        let Some(split) = split else { return unknown("its command is not known") };
        words.splice(0..0, split.iter().map(|word| Field::exact(word)));
    }
    let directory = parsed.value(&["-C", "--chdir"]).cloned();
    let mut verdict = reads(RUNS);
    walk.in_subshell(|walk| {
        if let Some(directory) = &directory {
            walk.enter(Some(directory));
        }
        verdict = assigned(walk, &words, call.stdin);
    });
    verdict
}

/// The options of `xargs` with which it reads its words from elsewhere, or cuts them otherwise.
const OTHER_WORDS: &[&str] = &[
    "-0", "--null", "-d", "--delimiter", "-a", "--arg-file", "-E", "-e", "--eof", "-L", "-l",
    "--max-lines",
];

/// The words that an input gives, if they are known.
fn known_words(stdin: &CommandInput) -> Option<Vec<Field>> {
    let CommandInput::Text(text) = stdin else { return None };
    let is_quoted = text.contains(['\'', '"', '\\']);
    (!is_quoted).then(|| text.split_whitespace().map(Field::exact).collect())
}

/// Runs a command on words read from its input.
pub(in crate::shell) fn xargs(walk: &mut ShellWalk<'_>, call: &CommandCall<'_>) -> CommandVerdict {
    let list = "^ -0oprtx -E: -e? -I: -i? -L: -l? -n: -P: -s: -d: -a: -J: -R: -S: --null --arg-file= --delimiter= \
                --eof? --replace? --max-lines? --max-args= --max-procs= --max-chars= --no-run-if-empty \
                --open-tty --interactive --verbose --exit --show-limits --process-slot-var= %--version %--help";
    let parsed = flags::parse(list, call.args());
    if let Some(verdict) = strayed(&parsed) {
        return verdict;
    }
    let mut words = call.args().get(parsed.rest..).unwrap_or_default().to_vec();
    if words.is_empty() {
        return reads("prints its input");
    }
    let replaced = parsed.value(&["-I", "-J"]).and_then(Field::literal).map(str::to_owned);
    let has_braces = parsed.has(&["-i", "--replace"]);
    if let Some(mark) = replaced.or(has_braces.then(|| "{}".to_owned())) {
        replace(&mut words, &mark);
    } else {
        let known = known_words(call.stdin).filter(|_| !parsed.has(OTHER_WORDS));
        let text = "…".to_owned();
        let unknown = || vec![Field { text, sure: Certainty::Dynamic, splits: true }];
        words.extend(known.unwrap_or_else(unknown));
    }
    let before = walk.found.len();
    let name = walk.files.finds.take();
    walk.run(&words, &CommandInput::Inherited);
    if let Some(name) = name {
        let run = walk.found.iter_mut().skip(before).flat_map(|simple| &mut simple.targets);
        spare_other_names(run, &name);
    }
    reads(RUNS)
}

/// Notes that of what is found only when a command runs, it takes what fits this pattern of names.
pub(super) fn spare_other_names<'t>(targets: impl Iterator<Item = &'t mut Target>, name: &str) {
    for target in targets.filter(|it| it.certainty != Certainty::Exact) {
        target.spares = Spares::OtherNames(name.to_owned());
    }
}

/// Makes every word that contains the mark a dynamic one.
pub(super) fn replace(words: &mut [Field], mark: &str) {
    for word in words.iter_mut().filter(|word| !mark.is_empty() && word.text.contains(mark)) {
        word.sure = Certainty::Dynamic;
        word.splits |= word.text.starts_with(mark);
    }
}
