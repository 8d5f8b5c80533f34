//! Interpreters: a program given as text is harmless only if every name in it is one we know to
//! be. The lists are closed where a language lets names reach the system, and refuse otherwise.

mod perl;
mod python;
mod ruby;
mod script;

use super::apply;
use crate::model::TargetAction;
use crate::shell::flags::{self, Field};
use crate::shell::lexer::{self, Token, Tongue};
use crate::shell::names;
use crate::shell::table;
use crate::shell::verdict::{Call, Stdin, Verdict, destroys, reads, unknown};
use crate::shell::walk::Walk;

const LOOKS: &str = "its program only looks";
const MAY: &str = "its program may do anything";

/// Judges `python`.
pub(in crate::shell) fn python(walk: &mut Walk<'_>, call: &Call<'_>) -> Verdict {
    let parsed =
        flags::parse("^ -BEiIOPqRsSuvbx -c: -m: -W: -X: %--version %-V %--help %-h", call.args());
    if parsed.has(&["--version", "-V", "--help", "-h"]) {
        return reads("only tells about the program");
    }
    if parsed.stray.is_some() {
        return unknown(MAY);
    }
    let stdin = if parsed.has(&["-i"]) { Some(call.stdin) } else { None };
    let stdin_is_plain = stdin.is_none_or(
        |stdin| matches!(stdin, Stdin::Text(text) if is_harmless(Tongue::Python, text)),
    );
    // What follows `-c` and `-m` are the program's own words.
    let at =
        call.args().iter().position(|arg| arg.text.starts_with("-m") || arg.text.starts_with("-c"));
    if let Some(module) = parsed.value(&["-m"]) {
        let from = at.map_or(0, |at| {
            at + 1 + usize::from(call.args().get(at).is_some_and(|arg| arg.text == "-m"))
        });
        return python_module(
            walk,
            module,
            call.args().get(from..).unwrap_or_default(),
            call.stdin,
        );
    }
    let rest = call.args().get(parsed.rest..).unwrap_or_default();
    let code = match (parsed.value(&["-c"]), rest.first()) {
        (Some(code), _) => code.literal(),
        (None, Some(file)) if file.text != "-" => return unknown("runs a program file"),
        (None, _) => text_of(call.stdin),
    };
    judged(Tongue::Python, code.filter(|_| stdin_is_plain))
}

fn text_of(stdin: &Stdin) -> Option<&str> {
    match stdin {
        Stdin::Text(text) => Some(text),
        Stdin::Inherited | Stdin::Pipe | Stdin::File => None,
    }
}

fn judged(tongue: Tongue, code: Option<&str>) -> Verdict {
    match code {
        Some(code) if is_harmless(tongue, code) => reads(LOOKS),
        Some(_) | None => unknown(MAY),
    }
}

fn python_module(walk: &mut Walk<'_>, module: &Field, args: &[Field], stdin: &Stdin) -> Verdict {
    let first = args.first();
    let is_first = |words: &[&str]| first.is_some_and(|first| names::is_one(first, words));
    let Some(name) = module.literal() else { return unknown(MAY) };
    if args.iter().any(|arg| names::is_one(arg, &["--help", "-h"])) && name != "pytest" {
        return reads("only tells about the program");
    }
    match name {
        "json.tool" => {
            let parsed = flags::parse(
                "--indent= --sort-keys --compact --no-ensure-ascii --json-lines --tab --no-indent",
                args,
            );
            match parsed.operands.get(1) {
                _ if parsed.stray.is_some() => unknown(MAY),
                Some(file) if names::is_file(file) => {
                    let why = "json.tool overwrites its second operand";
                    destroys(why, vec![walk.target(file, TargetAction::Overwrite, why)])
                }
                Some(_) | None => reads("only prints"),
            }
        }
        "tarfile" | "zipfile" if is_first(&["-l", "--list", "-t", "--test"]) => reads("only lists"),
        "platform" | "site" | "sysconfig" | "calendar" | "this" | "tokenize" | "ast" | "dis"
        | "pyclbr" => reads("only prints"),
        "pip" | "black" | "isort" | "flake8" | "mypy" | "ruff" | "pylint" | "autopep8"
        | "pyflakes" | "pycodestyle" | "bandit" | "yapf" => {
            let words: Vec<Field> =
                std::iter::once(Field::exact(name)).chain(args.iter().cloned()).collect();
            let Some(row) = table::find(name) else { return unknown(MAY) };
            apply(walk, row, &Call { words: &words, stdin })
        }
        _ => unknown("runs a module"),
    }
}

/// Judges `node`.
pub(in crate::shell) fn node(_walk: &mut Walk<'_>, call: &Call<'_>) -> Verdict {
    let parsed = flags::parse(
        "^ -e: -p? --eval= --print? -c --check --no-warnings --version -v --help -h --input-type= --trace-warnings",
        call.args(),
    );
    if parsed.has(&["--version", "-v", "--help", "-h"]) {
        return reads("only tells about the program");
    }
    if parsed.stray.is_some() {
        return unknown(MAY);
    }
    if parsed.has(&["-c", "--check"]) {
        return reads("only checks the program");
    }
    let rest = call.args().get(parsed.rest..).unwrap_or_default();
    // `-p` prints the value of its program, which is the next word; `-pe` is both.
    let printed = parsed.has(&["-p", "--print"]).then(|| rest.first()).flatten();
    let code = match (parsed.value(&["-e", "--eval"]), printed) {
        (Some(code), _) | (None, Some(code)) => code.literal(),
        (None, None) if rest.first().is_some_and(|file| file.text != "-") => {
            return unknown("runs a program file");
        }
        (None, None) => text_of(call.stdin),
    };
    judged(Tongue::JavaScript, code)
}

/// Judges `perl`.
pub(in crate::shell) fn perl(walk: &mut Walk<'_>, call: &Call<'_>) -> Verdict {
    let modules = [
        "strict", "warnings", "List::Util", "Data::Dumper", "JSON::PP", "MIME::Base64",
        "Time::HiRes", "Time::Local", "Time::Piece", "utf8", "bigint", "POSIX", "feature",
    ];
    scripted(walk, Tongue::Perl, &modules, call)
}

/// Judges `ruby`.
pub(in crate::shell) fn ruby(walk: &mut Walk<'_>, call: &Call<'_>) -> Verdict {
    scripted(walk, Tongue::Ruby, ruby::MODULES, call)
}

/// What the options of `perl` and `ruby` say.
#[derive(Default)]
struct Options {
    code: Vec<Field>,
    modules: Vec<String>,
    in_place: bool,
    talks: bool,
    operands: Vec<Field>,
}

fn scripted(walk: &mut Walk<'_>, tongue: Tongue, modules: &[&str], call: &Call<'_>) -> Verdict {
    let Some(options) = options(tongue, call.args()) else { return unknown(MAY) };
    if options.in_place {
        let why = "-i rewrites its operands";
        let from = usize::from(options.code.is_empty());
        let files = options.operands.get(from..).unwrap_or_default();
        return destroys(
            why,
            files.iter().map(|file| walk.target(file, TargetAction::Modify, why)).collect(),
        );
    }
    if options.talks && options.code.is_empty() {
        return reads("only tells about the program");
    }
    let known = options
        .modules
        .iter()
        .all(|module| modules.contains(&module.split('=').next().unwrap_or_default()));
    // An operand such as `rm a|` would be run by perl's own reading of files.
    let plain = options.operands.iter().all(|operand| !operand.text.contains(['|', '<', '>']));
    if !known || !plain {
        return unknown(MAY);
    }
    if options.code.is_empty() {
        return match options.operands.first() {
            Some(file) if file.text != "-" => unknown("runs a program file"),
            Some(_) | None => judged(tongue, text_of(call.stdin)),
        };
    }
    let harmless = options
        .code
        .iter()
        .all(|code| code.literal().is_some_and(|code| is_harmless(tongue, code)));
    if harmless { reads(LOOKS) } else { unknown(MAY) }
}

/// Takes clusters such as `-lpi.bak` apart: digits belong to `l` and `0`, the rest to `i`.
fn options(tongue: Tongue, args: &[Field]) -> Option<Options> {
    let mut found = Options::default();
    let mut words = args.iter();
    while let Some(word) = words.next() {
        let Some(letters) =
            word.text.strip_prefix('-').filter(|letters| !letters.is_empty() && *letters != "-")
        else {
            found.operands.push(word.clone());
            found.operands.extend(words.cloned());
            return Some(found);
        };
        if letters == "-version" || letters == "-help" {
            found.talks = true;
            continue;
        }
        let mut at = 0;
        while let Some(letter) = letters.get(at..).and_then(|rest| rest.chars().next()) {
            at += letter.len_utf8();
            let rest = letters.get(at..).unwrap_or_default();
            match letter {
                'a' | 'n' | 'p' | 's' | 'w' | 'W' | 'X' | 'c' => {}
                'v' => found.talks = true,
                'l' | '0' => {
                    at += rest.len()
                        - rest
                            .trim_start_matches(|char: char| {
                                char.is_ascii_hexdigit() && char.is_ascii_digit()
                            })
                            .len();
                }
                'i' => {
                    found.in_place = true;
                    break;
                }
                'e' | 'E' | 'M' | 'm' | 'F' | 'r' if letter != 'r' || tongue == Tongue::Ruby => {
                    let value = if rest.is_empty() {
                        words.next()?.clone()
                    } else {
                        Field { text: rest.to_owned(), ..word.clone() }
                    };
                    match letter {
                        'e' | 'E' => found.code.push(value),
                        'F' => {}
                        _ => found.modules.push(value.text),
                    }
                    break;
                }
                _ => return None,
            }
        }
    }
    Some(found)
}

/// Whether a program only looks.
fn is_harmless(tongue: Tongue, code: &str) -> bool {
    let Some(pieces) = lexer::cut(tongue, code) else { return false };
    let tokens = pieces.tokens.as_slice();
    let is_fine = match tongue {
        Tongue::Python => python::is_harmless(tokens),
        Tongue::JavaScript => script::is_harmless(tokens),
        Tongue::Ruby => ruby::is_harmless(tokens),
        Tongue::Perl => perl::is_harmless(tokens),
    };
    // Code inside strings is judged alone, so it must not lean on what stands around it.
    is_fine && pieces.inner.iter().all(|inner| is_harmless(tongue, inner))
}

fn name_at(tokens: &[Token], at: usize) -> Option<&str> {
    match tokens.get(at) {
        Some(Token::Name(name)) => Some(name),
        Some(Token::Text(_) | Token::Value | Token::Mark(_)) | None => None,
    }
}

fn mark_at(tokens: &[Token], at: usize, mark: char) -> bool {
    tokens.get(at) == Some(&Token::Mark(mark))
}

/// Whether the name at a place follows a dot.
fn is_member(tokens: &[Token], at: usize) -> bool {
    at > 0 && mark_at(tokens, at - 1, '.') && !(at > 1 && mark_at(tokens, at - 2, '.'))
}
