//! Shells fed with scripts, and what shells have built in.

use crate::shell::flags::{self, Field};
use crate::shell::names;
use crate::shell::verdict::{Call, Stdin, Verdict, reads, unknown};
use crate::shell::walk::Walk;

const JUDGED: &str = "runs a script, judged by itself";

/// Judges `sh`, `bash` and their kin by the script they are given.
pub(in crate::shell) fn shell(walk: &mut Walk<'_>, call: &Call<'_>) -> Verdict {
    let args = call.args();
    let list = "^ -acefhiklmnprtuvxBCEHPTs -o: -O: -c --login --norc --noprofile --posix --restricted --verbose %--version %--help";
    let parsed = flags::parse(list, args);
    if parsed.has(&["--version", "--help"]) {
        return reads("only tells about the program");
    }
    if parsed.stray.is_some() || parsed.has(&["-i", "-l", "--login"]) && !parsed.has(&["-c"]) {
        return unknown("starts a shell in a way we do not follow");
    }
    let rest = args.get(parsed.rest..).unwrap_or_default();
    if parsed.has(&["-n"]) && !parsed.has(&["-c"]) {
        return reads("only checks the script");
    }
    if parsed.has(&["-c"]) {
        return match rest.first().map(Field::literal) {
            Some(Some(script)) => {
                let script = script.to_owned();
                walk.subscript(&script);
                reads(JUDGED)
            }
            Some(None) | None => unknown("its script is not known before it runs"),
        };
    }
    if !rest.is_empty() && !parsed.has(&["-s"]) {
        return unknown("runs a script file");
    }
    match call.stdin {
        Stdin::Text(script) => {
            walk.subscript(&script.clone());
            reads(JUDGED)
        }
        Stdin::Inherited | Stdin::Pipe | Stdin::File => unknown("runs whatever it reads"),
    }
}

/// Joins the words of a script, if all are known.
fn script(words: &[Field]) -> Option<String> {
    let words: Option<Vec<&str>> = words.iter().map(Field::literal).collect();
    words.map(|words| words.join(" "))
}

/// Judges `eval`.
pub(in crate::shell) fn eval(walk: &mut Walk<'_>, call: &Call<'_>) -> Verdict {
    match script(call.args()) {
        Some(script) => {
            walk.script(&script);
            reads(JUDGED)
        }
        None => unknown("its script is not known before it runs"),
    }
}

/// Judges `trap`.
pub(in crate::shell) fn trap(walk: &mut Walk<'_>, call: &Call<'_>) -> Verdict {
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
                walk.subscript(&script);
                reads("runs a script later, judged by itself")
            }
            None => unknown("its script is not known before it runs"),
        },
    }
}

/// Judges `exec`.
pub(in crate::shell) fn exec(walk: &mut Walk<'_>, call: &Call<'_>) -> Verdict {
    inner(walk, "^ -cl -a:", call)
}

/// Judges `builtin`.
pub(in crate::shell) fn builtin(walk: &mut Walk<'_>, call: &Call<'_>) -> Verdict {
    inner(walk, "^", call)
}

/// Judges `command`.
pub(in crate::shell) fn command(walk: &mut Walk<'_>, call: &Call<'_>) -> Verdict {
    let looks = call.args().first().is_some_and(|first| names::is_one(first, &["-v", "-V"]));
    if looks { reads("only looks for a program") } else { inner(walk, "^ -p", call) }
}

fn inner(walk: &mut Walk<'_>, list: &str, call: &Call<'_>) -> Verdict {
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
pub(in crate::shell) fn cd(walk: &mut Walk<'_>, call: &Call<'_>) -> Verdict {
    walk.enter(directory(call));
    reads("changes the directory")
}

/// Judges `pushd`.
pub(in crate::shell) fn pushd(walk: &mut Walk<'_>, call: &Call<'_>) -> Verdict {
    walk.push_base(directory(call));
    reads("changes the directory")
}

/// Judges `popd`.
pub(in crate::shell) fn popd(walk: &mut Walk<'_>, _call: &Call<'_>) -> Verdict {
    walk.pop_base();
    reads("changes the directory")
}

fn directory<'a>(call: &Call<'a>) -> Option<&'a Field> {
    call.args().iter().find(|arg| !(arg.text.len() > 1 && arg.text.starts_with('-')))
}

/// Whether a word hides a substitution that a subscript or arithmetic would run.
fn plants(field: &Field) -> bool {
    field.literal().is_some_and(|text| text.contains("$(") || text.contains('`'))
}

/// Judges the builtins that declare variables.
pub(in crate::shell) fn declare(walk: &mut Walk<'_>, call: &Call<'_>) -> Verdict {
    let mut verdict = reads("sets variables");
    let is_arithmetic = call.words.first().is_some_and(|name| name.text == "let")
        || call
            .args()
            .iter()
            .any(|arg| arg.text.starts_with('-') && arg.text.contains(['i', 'n', 'a']));
    for arg in call.args() {
        if is_arithmetic && plants(arg) {
            return unknown("runs what its words hide");
        }
        if is_arithmetic {
            walk.arithmetic("");
        }
        let (name, _) = arg.text.split_once('=').unwrap_or((&arg.text, ""));
        if arg.text.contains('=')
            && let Some(reason) = names::environment(name, &arg.after(name).after("="))
        {
            verdict = unknown(reason);
        }
        if is_arithmetic { walk.forget(name) } else { walk.declare(arg) }
    }
    verdict
}

/// Judges `read` and other builtins that set variables to what we do not see.
pub(in crate::shell) fn read(walk: &mut Walk<'_>, call: &Call<'_>) -> Verdict {
    // `mapfile -C` runs a callback.
    let runs = call.args().iter().any(|arg| plants(arg) || arg.text.starts_with("-C"));
    if runs {
        return unknown("runs what its words hide");
    }
    for arg in call.args() {
        walk.forget(&arg.text);
    }
    reads("reads into variables")
}

/// Judges `test` and `[`.
pub(in crate::shell) fn test(_walk: &mut Walk<'_>, call: &Call<'_>) -> Verdict {
    let looks_up = call.args().iter().any(|arg| names::is_one(arg, &["-v"]));
    if looks_up && call.args().iter().any(plants) {
        return unknown("runs what its words hide");
    }
    reads("only tests")
}

/// Judges `printf`, which sets a variable with `-v`.
pub(in crate::shell) fn printf(walk: &mut Walk<'_>, call: &Call<'_>) -> Verdict {
    if let [flag, name, ..] = call.args()
        && flag.text == "-v"
    {
        walk.forget(&name.text);
        if plants(name) {
            return unknown("runs what its words hide");
        }
    }
    reads("prints")
}

/// Judges `set` and `shopt`: positional parameters are unknown to us anyway.
pub(in crate::shell) fn set(_walk: &mut Walk<'_>, call: &Call<'_>) -> Verdict {
    let expands = call.args().iter().any(|arg| names::is_one(arg, &["expand_aliases"]));
    if expands {
        unknown("makes names run something else")
    } else {
        reads("changes how the shell reads")
    }
}

/// Judges `alias`: listing is harmless.
pub(in crate::shell) fn alias(_walk: &mut Walk<'_>, call: &Call<'_>) -> Verdict {
    let defines = call.args().iter().any(|arg| arg.text.contains('='));
    if defines { unknown("makes a name run something else") } else { reads("lists aliases") }
}

/// Judges `exit`.
pub(in crate::shell) fn exit(_walk: &mut Walk<'_>, _call: &Call<'_>) -> Verdict {
    reads("ends the shell")
}
