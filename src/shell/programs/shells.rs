//! Shells fed with scripts, and what shells have built in.

use super::strayed;
use crate::shell::flags::{self, Field};
use crate::shell::names;
use crate::shell::verdict::{CommandCall, CommandInput, CommandVerdict, reads, unknown};
use crate::shell::walk::ShellWalk;

const SHELL_OPTIONS: &str = "^ -acefhiklmnprtuvxBCEHPTs -o: -O: -c --login --norc --noprofile --posix --restricted --verbose";

/// The script file that a shell, `source`, or a program given by its path runs.
pub(in crate::shell) fn script_file<'a>(call: &CommandCall<'a>, base: &str) -> Option<&'a Field> {
    let args = call.args();
    match base {
        "source" | "." => args.first(),
        _ if names::SHELLS.contains(&base) => {
            let parsed = flags::parse(SHELL_OPTIONS, args);
            let is_file = parsed.stray.is_none() && !parsed.has(&["-c", "-s", "-n"]);
            args.get(parsed.rest).filter(|_| is_file)
        }
        _ => call.words.first().filter(|name| name.text.contains('/')),
    }
}

const JUDGED: &str = "runs a script, judged by itself";

/// Judges `sh`, `bash` and their kin by the script they are given.
pub(in crate::shell) fn shell(walk: &mut ShellWalk<'_>, call: &CommandCall<'_>) -> CommandVerdict {
    let args = call.args();
    let parsed = flags::parse(SHELL_OPTIONS, args);
    // A shell that is a login shell or talks to a person loads files first.
    if parsed.stray.is_some() || parsed.has(&["-i", "-l", "--login"]) {
        walk.runs_data();
        return unknown("starts a shell in a way we do not follow");
    }
    let rest = args.get(parsed.rest..).unwrap_or_default();
    if parsed.has(&["-n"]) && !parsed.has(&["-c"]) {
        return reads("only checks the script");
    }
    if parsed.has(&["-c"]) {
        let script = rest.first().and_then(Field::literal).map(str::to_owned);
        return given(walk, script, ShellWalk::subscript);
    }
    if !rest.is_empty() && !parsed.has(&["-s"]) {
        return unknown("runs a script file");
    }
    match call.stdin {
        CommandInput::Text(script) => {
            walk.subscript(&script.clone());
            reads(JUDGED)
        }
        CommandInput::Inherited | CommandInput::Pipe | CommandInput::File => {
            walk.runs_input();
            walk.runs_data();
            unknown("runs whatever it reads")
        }
    }
}

/// Judges what runs a script that it is given as words.
fn given<'w>(
    walk: &mut ShellWalk<'w>,
    script: Option<String>,
    judge: impl FnOnce(&mut ShellWalk<'w>, &str),
) -> CommandVerdict {
    let Some(script) = script else {
        walk.runs_data();
        return unknown("its script is not known before it runs");
    };
    judge(walk, &script);
    reads(JUDGED)
}

/// Joins the words of a script, if all are known.
fn script(words: &[Field]) -> Option<String> {
    let words: Option<Vec<&str>> = words.iter().map(Field::literal).collect();
    words.map(|words| words.join(" "))
}

/// Judges `eval`.
pub(in crate::shell) fn eval(walk: &mut ShellWalk<'_>, call: &CommandCall<'_>) -> CommandVerdict {
    let script = script(call.args());
    given(walk, script, ShellWalk::script)
}

/// Judges `trap`.
pub(in crate::shell) fn trap(walk: &mut ShellWalk<'_>, call: &CommandCall<'_>) -> CommandVerdict {
    let mut args = call.args();
    if args.first().is_some_and(|first| first.text == "--") {
        args = args.get(1..).unwrap_or_default();
    }
    match args {
        [] | [_] => reads("lists or clears traps"),
        [first, ..] if names::is_one(first, &["-", "-l", "-p", ""]) => {
            reads("lists or clears traps")
        }
        [first, ..] => match first.literal() {
            Some(script) => {
                let script = script.to_owned();
                walk.later(&script);
                walk.changes_shell = true;
                reads("runs a script later, judged by itself")
            }
            None => unknown("its script is not known before it runs"),
        },
    }
}

/// Judges `exec`.
pub(in crate::shell) fn exec(walk: &mut ShellWalk<'_>, call: &CommandCall<'_>) -> CommandVerdict {
    inner(walk, "^ -cl -a:", call)
}

/// Judges `builtin`.
pub(in crate::shell) fn builtin(
    walk: &mut ShellWalk<'_>,
    call: &CommandCall<'_>,
) -> CommandVerdict {
    inner(walk, "^", call)
}

/// Judges `command`.
pub(in crate::shell) fn command(
    walk: &mut ShellWalk<'_>,
    call: &CommandCall<'_>,
) -> CommandVerdict {
    let looks = call.args().first().is_some_and(|first| names::is_one(first, &["-v", "-V"]));
    if looks { reads("only looks for a program") } else { inner(walk, "^ -p", call) }
}

fn inner(walk: &mut ShellWalk<'_>, list: &str, call: &CommandCall<'_>) -> CommandVerdict {
    let parsed = flags::parse(list, call.args());
    if parsed.stray.is_some() {
        return unknown("has a flag we do not know");
    }
    let rest = call.args().get(parsed.rest..).unwrap_or_default();
    if !rest.is_empty() {
        // `exec` and `command` go past functions, so the program itself is what runs.
        walk.run(rest, call.stdin);
    }
    reads("runs another command, judged by itself")
}

/// Judges `cd`.
pub(in crate::shell) fn cd(walk: &mut ShellWalk<'_>, call: &CommandCall<'_>) -> CommandVerdict {
    walk.enter(directory(call));
    reads("changes the directory")
}

/// Judges `pushd`.
pub(in crate::shell) fn pushd(walk: &mut ShellWalk<'_>, call: &CommandCall<'_>) -> CommandVerdict {
    walk.push_base(directory(call));
    reads("changes the directory")
}

/// Judges `popd`.
pub(in crate::shell) fn popd(walk: &mut ShellWalk<'_>, _call: &CommandCall<'_>) -> CommandVerdict {
    walk.pop_base();
    reads("changes the directory")
}

fn directory<'a>(call: &CommandCall<'a>) -> Option<&'a Field> {
    call.args().iter().find(|arg| !(arg.text.len() > 1 && arg.text.starts_with('-')))
}

/// Whether a word hides a substitution that a subscript or arithmetic would run.
fn plants(field: &Field) -> bool {
    field.literal().is_none_or(|text| text.contains(['[', '$', '`']))
}

/// Judges the builtins that declare variables.
pub(in crate::shell) fn declare(
    walk: &mut ShellWalk<'_>,
    call: &CommandCall<'_>,
) -> CommandVerdict {
    let parsed = flags::parse("-aAxrgpul", call.args());
    if call.words.first().is_some_and(|name| name.text == "let") {
        for arg in call.args() {
            walk.arithmetic(&arg.text);
        }
        return reads("does arithmetic");
    }
    // `-n` makes another name of a variable, `-i` evaluates what it is given.
    if let Some(verdict) = strayed(&parsed) {
        return verdict;
    }
    for arg in &parsed.operands {
        walk.declare(arg);
    }
    reads("sets variables")
}

/// Judges `read` and other builtins that set variables to what we do not see.
pub(in crate::shell) fn read(walk: &mut ShellWalk<'_>, call: &CommandCall<'_>) -> CommandVerdict {
    let list = match call.words.first().map(|name| name.text.as_str()) {
        Some("read") => "-rse -a: -d: -n: -N: -p: -t: -u: -i:",
        Some("getopts") => "",
        // `mapfile -C` runs a callback.
        _ => "-t -d: -n: -O: -s: -u:",
    };
    let parsed = flags::parse(list, call.args());
    if let Some(verdict) = strayed(&parsed) {
        return verdict;
    }
    let is_getopts = list.is_empty();
    let named = parsed.operands.iter().skip(usize::from(is_getopts)).take(if is_getopts {
        1
    } else {
        usize::MAX
    });
    for name in named.chain(parsed.value(&["-a"])) {
        if plants(name) {
            return unknown("runs what its words hide");
        }
        walk.forget(&name.text);
    }
    reads("reads into variables")
}

/// Judges `test` and `[`.
pub(in crate::shell) fn test(_walk: &mut ShellWalk<'_>, call: &CommandCall<'_>) -> CommandVerdict {
    // The name of a variable may have a subscript, which is expanded.
    if call.args().iter().any(|arg| names::is_one(arg, &["-v", "-R"])) {
        return unknown("looks up a name that may run something");
    }
    // To some shells numbers are arithmetic here as well.
    let compares = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];
    let is_planted =
        |arg: &Field| arg.literal().is_some_and(|text| text.contains('[') && text.len() > 1);
    if call.args().iter().any(|arg| names::is_one(arg, &compares))
        && call.args().iter().any(is_planted)
    {
        return unknown("compares what may run something");
    }
    reads("only tests")
}

fn is_planted(value: &Field) -> bool {
    value.literal().is_some_and(|text| text.contains('[') && text.contains(['$', '`']))
}

/// Judges `printf`, which sets a variable with `-v`.
pub(in crate::shell) fn printf(walk: &mut ShellWalk<'_>, call: &CommandCall<'_>) -> CommandVerdict {
    match call.args() {
        [flag, ..] if flag.may_be_option() => unknown("its format may be an option"),
        [flag, name, ..] if flag.text == "-v" => {
            if plants(name) {
                return unknown("runs what its words hide");
            }
            walk.forget(&name.text);
            reads("sets a variable")
        }
        [flag, ..] if flag.text.starts_with("-v") => unknown("sets a variable"),
        // To zsh a number is arithmetic, and its subscript is run.
        [_, values @ ..] if values.iter().any(is_planted) => unknown("prints what may be run"),
        _ => reads("prints"),
    }
}

/// Judges `set` and `shopt`: positional parameters are unknown to us anyway.
pub(in crate::shell) fn set(walk: &mut ShellWalk<'_>, call: &CommandCall<'_>) -> CommandVerdict {
    const NAMES: &[&str] = &[
        "pipefail", "errexit", "nounset", "xtrace", "noglob", "noclobber", "posix", "monitor",
        "nullglob", "dotglob", "globstar", "extglob", "nocaseglob", "failglob", "nocasematch",
        "lastpipe", "inherit_errexit",
    ];
    let is_known = |field: &Field| field.literal().is_some_and(|name| NAMES.contains(&name));
    let is_shopt = call.words.first().is_some_and(|name| name.text == "shopt");
    if let Some((_, given)) = call.args().split_first().filter(|(first, _)| first.text == "--") {
        walk.gives_parameters(given);
    }
    let list = if is_shopt { "-supq" } else { "-eufxvCB -o:" };
    // `+x` takes back what `-x` sets; without expansion of braces a line would read otherwise.
    let takes_back =
        |arg: &&Field| !is_shopt && arg.literal().is_some_and(|it| it.starts_with('+'));
    let (back, given): (Vec<&Field>, Vec<&Field>) = call.args().iter().partition(takes_back);
    let is_letters = |arg: &&Field| arg.text[1..].bytes().all(|it| b"eufxvC".contains(&it));
    if !back.iter().all(is_letters) || !back.is_empty() && !given.is_empty() {
        return unknown("changes how the shell reads the line");
    }
    walk.ends_early &= !back.iter().any(|arg| arg.text.contains('e'));
    let given: Vec<Field> = given.into_iter().cloned().collect();
    let parsed = flags::parse(list, &given);
    let named: Vec<&Field> = parsed.hits.iter().filter_map(|hit| hit.value.as_ref()).collect();
    let operands = parsed.operands.iter().take_while(|_| is_shopt);
    let is_plain = parsed.stray.is_none() && named.iter().copied().chain(operands).all(is_known);
    if !is_plain {
        return unknown("changes how the shell reads the line");
    }
    let by_name = named.iter().any(|name| name.text == "errexit");
    walk.ends_early |= !is_shopt && (by_name || parsed.has(&["-e"]));
    reads("changes how the shell reads")
}

/// Judges `alias`: listing is harmless.
pub(in crate::shell) fn alias(_walk: &mut ShellWalk<'_>, call: &CommandCall<'_>) -> CommandVerdict {
    if call.args().is_empty() {
        reads("lists aliases")
    } else {
        unknown("makes a name run something else")
    }
}

/// Judges a program to which every word is a word.
pub(in crate::shell) fn words(
    _walk: &mut ShellWalk<'_>,
    _call: &CommandCall<'_>,
) -> CommandVerdict {
    reads("does nothing with files, whatever its words")
}
