//! Interpreters: a program given as text is harmless only if every name in it is one we know to
//! be. The lists are closed where a language lets names reach the system, and refuse otherwise.

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
        "strict",
        "warnings",
        "List::Util",
        "Data::Dumper",
        "JSON::PP",
        "MIME::Base64",
        "Time::HiRes",
        "Time::Local",
        "Time::Piece",
        "utf8",
        "bigint",
        "POSIX",
        "feature",
    ];
    scripted(walk, Tongue::Perl, &modules, call)
}

/// Judges `ruby`.
pub(in crate::shell) fn ruby(walk: &mut Walk<'_>, call: &Call<'_>) -> Verdict {
    scripted(walk, Tongue::Ruby, RUBY_MODULES, call)
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
        Tongue::Python => python_is_harmless(tokens),
        Tongue::JavaScript => script_is_harmless(tokens),
        Tongue::Ruby => ruby_is_harmless(tokens),
        Tongue::Perl => perl_is_harmless(tokens),
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

const PYTHON_DENIED: &[&str] = &[
    "exec",
    "eval",
    "compile",
    "getattr",
    "setattr",
    "delattr",
    "globals",
    "locals",
    "vars",
    "breakpoint",
    "help",
    "super",
];
const PYTHON_MODULES: &[&str] = &[
    "sys",
    "json",
    "re",
    "os",
    "os.path",
    "math",
    "cmath",
    "collections",
    "itertools",
    "functools",
    "datetime",
    "time",
    "random",
    "string",
    "textwrap",
    "statistics",
    "decimal",
    "fractions",
    "pathlib",
    "csv",
    "io",
    "glob",
    "fnmatch",
    "hashlib",
    "hmac",
    "base64",
    "binascii",
    "struct",
    "ast",
    "tokenize",
    "platform",
    "pprint",
    "typing",
    "dataclasses",
    "enum",
    "operator",
    "difflib",
    "html",
    "urllib.parse",
    "uuid",
    "zlib",
    "gzip",
    "configparser",
    "tomllib",
    "locale",
    "calendar",
    "bisect",
    "heapq",
    "keyword",
    "unicodedata",
    "secrets",
    "ipaddress",
    "colorsys",
    "contextlib",
    "traceback",
    "sysconfig",
    "site",
    "getpass",
    "numbers",
    "array",
    "copy",
    "queue",
    "xml.etree.ElementTree",
    "zoneinfo",
    "stat",
    "errno",
    "socket",
    "yaml",
    "numpy",
    "importlib.metadata",
];
const PYTHON_OS: &[&str] = &[
    "path",
    "listdir",
    "walk",
    "getcwd",
    "environ",
    "sep",
    "linesep",
    "scandir",
    "stat",
    "lstat",
    "getpid",
    "getuid",
    "cpu_count",
    "name",
    "uname",
    "getenv",
    "access",
    "fspath",
    "R_OK",
    "F_OK",
    "X_OK",
    "W_OK",
    "getlogin",
    "pathsep",
    "curdir",
    "readlink",
    "get_terminal_size",
    "getloadavg",
];
const MEMBERS: &[&str] = &[
    // Text and collections.
    "read",
    "readline",
    "readlines",
    "split",
    "rsplit",
    "strip",
    "lstrip",
    "rstrip",
    "splitlines",
    "join",
    "format",
    "items",
    "keys",
    "values",
    "get",
    "lower",
    "upper",
    "title",
    "capitalize",
    "startswith",
    "endswith",
    "find",
    "rfind",
    "index",
    "count",
    "append",
    "extend",
    "insert",
    "pop",
    "sort",
    "reverse",
    "add",
    "update",
    "setdefault",
    "encode",
    "decode",
    "zfill",
    "ljust",
    "rjust",
    "center",
    "isdigit",
    "isalpha",
    "isalnum",
    "isupper",
    "islower",
    "isspace",
    "partition",
    "rpartition",
    "translate",
    "maketrans",
    "casefold",
    "swapcase",
    "expandtabs",
    "union",
    "intersection",
    "difference",
    "most_common",
    "Counter",
    "defaultdict",
    "OrderedDict",
    "deque",
    "namedtuple",
    "fromkeys",
    "hex",
    "fromhex",
    "bit_length",
    "write",
    "flush",
    "close",
    "seek",
    "tell",
    "fileno",
    "isatty",
    "replace",
    // Looking at files.
    "read_text",
    "read_bytes",
    "exists",
    "is_file",
    "is_dir",
    "is_symlink",
    "iterdir",
    "glob",
    "rglob",
    "iglob",
    "stat",
    "resolve",
    "absolute",
    "parent",
    "parents",
    "name",
    "stem",
    "suffix",
    "suffixes",
    "parts",
    "relative_to",
    "with_suffix",
    "with_name",
    "cwd",
    "home",
    "as_posix",
    "expanduser",
    "isfile",
    "isdir",
    "islink",
    "getsize",
    "getmtime",
    "basename",
    "dirname",
    "abspath",
    "realpath",
    "relpath",
    "splitext",
    "commonprefix",
    "st_size",
    "st_mtime",
    "st_mode",
    "st_ino",
    "path",
    "Path",
    "PurePath",
    "joinpath",
    "match",
    "is_absolute",
    "normpath",
    "lexists",
    "samefile",
    "open",
    // Modules.
    "loads",
    "load",
    "dumps",
    "dump",
    "safe_load",
    "parse",
    "search",
    "fullmatch",
    "findall",
    "finditer",
    "sub",
    "subn",
    "group",
    "groups",
    "groupdict",
    "start",
    "end",
    "span",
    "escape",
    "IGNORECASE",
    "MULTILINE",
    "DOTALL",
    "VERBOSE",
    "compile",
    "argv",
    "version",
    "version_info",
    "executable",
    "platform",
    "stdin",
    "stdout",
    "stderr",
    "exit",
    "maxsize",
    "byteorder",
    "prefix",
    "base_prefix",
    "buffer",
    "implementation",
    "major",
    "minor",
    "micro",
    "getsizeof",
    "getrecursionlimit",
    "getdefaultencoding",
    "implementation",
    "now",
    "today",
    "utcnow",
    "strftime",
    "isoformat",
    "strptime",
    "fromtimestamp",
    "timestamp",
    "date",
    "time",
    "timedelta",
    "datetime",
    "year",
    "month",
    "day",
    "days",
    "hour",
    "minute",
    "second",
    "utc",
    "timezone",
    "total_seconds",
    "perf_counter",
    "sleep",
    "monotonic",
    "localtime",
    "gmtime",
    "ctime",
    "sqrt",
    "pi",
    "floor",
    "ceil",
    "log",
    "log2",
    "log10",
    "sin",
    "cos",
    "tan",
    "exp",
    "pow",
    "gcd",
    "factorial",
    "mean",
    "median",
    "stdev",
    "mode",
    "variance",
    "randint",
    "random",
    "choice",
    "shuffle",
    "sample",
    "seed",
    "uniform",
    "DictReader",
    "reader",
    "fieldnames",
    "md5",
    "sha1",
    "sha256",
    "sha512",
    "new",
    "hexdigest",
    "digest",
    "b64encode",
    "b64decode",
    "urlsafe_b64encode",
    "hexlify",
    "unhexlify",
    "pack",
    "unpack",
    "quote",
    "unquote",
    "urlparse",
    "urlencode",
    "parse_qs",
    "uuid4",
    "token_hex",
    "token_urlsafe",
    "chain",
    "product",
    "permutations",
    "combinations",
    "groupby",
    "islice",
    "accumulate",
    "reduce",
    "partial",
    "lru_cache",
    "pprint",
    "pformat",
    "dedent",
    "wrap",
    "fill",
    "indent",
    "unified_diff",
    "ndiff",
    "literal_eval",
    "ast",
    "body",
    "lineno",
    "iter_child_nodes",
    "FunctionDef",
    "ClassDef",
    "Import",
    "ImportFrom",
    "targets",
    "names",
    "asname",
    "id",
    "value",
    "args",
    "arg",
    "node",
    "environ",
    "machine",
    "python_version",
    "gethostname",
    "itemgetter",
    "sections",
    "read_string",
    "getint",
    "getboolean",
    "options",
    "array",
    "arange",
    "zeros",
    "ones",
    "shape",
    "sum",
    "min",
    "max",
    "linspace",
    "reshape",
    "T",
    "dtype",
    "std",
    "ascii_letters",
    "digits",
    "ascii_lowercase",
    "punctuation",
    "decimal",
    "Decimal",
    "Fraction",
    "StringIO",
    "BytesIO",
    "getvalue",
    "ElementTree",
    "etree",
    "fromstring",
    "getroot",
    "iter",
    "tag",
    "attrib",
    "text",
    "tail",
    "findtext",
    "metadata",
    "distributions",
    "real",
    "imag",
    "is_integer",
    "as_integer_ratio",
    "copy",
];

fn python_is_harmless(tokens: &[Token]) -> bool {
    let named = |name: &str| {
        tokens.iter().any(|token| matches!(token, Token::Name(known) if known == name))
    };
    // `Path.replace` moves a file; of a text it only makes another.
    if named("replace") && (named("Path") || named("pathlib"))
        || named("load") && (named("yaml") || named("numpy"))
    {
        return false;
    }
    let mut at = 0;
    while at < tokens.len() {
        let Some(name) = name_at(tokens, at) else {
            at += 1;
            continue;
        };
        if name.starts_with("__") && name != "__name__" && name != "__version__" {
            return false;
        }
        if name == "import" || name == "from" && !is_yielded(tokens, at) {
            match imported(tokens, at) {
                Some(end) => at = end,
                None => return false,
            }
            continue;
        }
        let is_fine = if is_member(tokens, at) {
            let of_os =
                at > 1 && name_at(tokens, at - 2) == Some("os") && !is_member(tokens, at - 2);
            let list = if of_os { PYTHON_OS } else { MEMBERS };
            list.contains(&name) && (name != "open" || opens_to_read(tokens, at + 1, true))
                || name == "__version__"
        } else {
            match name {
                "os" => mark_at(tokens, at + 1, '.'),
                "open" => opens_to_read(tokens, at + 1, false),
                _ => !PYTHON_DENIED.contains(&name),
            }
        };
        if !is_fine {
            return false;
        }
        at += 1;
    }
    true
}

fn is_yielded(tokens: &[Token], at: usize) -> bool {
    at > 0 && name_at(tokens, at - 1) == Some("yield")
}

/// Reads an import; says where it ends, if all it names is known.
fn imported(tokens: &[Token], at: usize) -> Option<usize> {
    let end = (at..tokens.len())
        .find(|&at| mark_at(tokens, at, ';') || mark_at(tokens, at, '\n'))
        .unwrap_or(tokens.len());
    let words = tokens.get(at..end)?;
    let text: String = words
        .iter()
        .map(|token| match token {
            Token::Name(name) => format!(" {name} "),
            Token::Mark('.') => ".".to_owned(),
            Token::Mark(mark) => mark.to_string(),
            Token::Text(_) | Token::Value => "?".to_owned(),
        })
        .collect();
    let text = text.replace(" . ", ".").replace("( ", "").replace(" )", "");
    let text = text.trim();
    if let Some(rest) = text.strip_prefix("from ") {
        let (module, names) = rest.split_once(" import ")?;
        let module = module.trim();
        let list = if module == "os" { PYTHON_OS } else { MEMBERS };
        let is_fine = names.split(',').all(|name| {
            let first = name.split_whitespace().next().unwrap_or_default();
            list.contains(&first) && first != "open" && first != "replace"
        });
        return (PYTHON_MODULES.contains(&module) && is_fine).then_some(end);
    }
    let rest = text.strip_prefix("import ")?;
    let is_fine = rest.split(',').all(|module| {
        let mut words = module.split_whitespace();
        let module = words.next().unwrap_or_default();
        PYTHON_MODULES.contains(&module) && (words.next().is_none() || !module.starts_with("os"))
    });
    is_fine.then_some(end)
}

/// Whether a call of `open` names no mode, or one that reads. A method may be given its mode first.
fn opens_to_read(tokens: &[Token], at: usize, method: bool) -> bool {
    if !mark_at(tokens, at, '(') {
        return false;
    }
    let mut depth = 0_usize;
    let mut index = 0_usize;
    let mut texts: Vec<(usize, Option<&str>, bool)> = Vec::new();
    let mut from = at + 1;
    for (place, token) in tokens.iter().enumerate().skip(at) {
        match token {
            Token::Mark('(' | '[' | '{') => depth += 1,
            Token::Mark(')' | ']' | '}') => depth = depth.saturating_sub(1),
            Token::Mark(',' | _) | Token::Name(_) | Token::Text(_) | Token::Value => {}
        }
        let ends = depth == 0;
        if ends || (depth == 1 && *token == Token::Mark(',')) {
            let words = tokens.get(from..place).unwrap_or_default();
            let key = if mark_at(words, 1, '=') { name_at(words, 0) } else { None };
            let value = words.get(if key.is_some() { 2 } else { 0 }..).unwrap_or_default();
            let mode = matches!(value, [Token::Text(text)] if text.chars().all(|char| "rbtU".contains(char)) && !text.is_empty());
            if !words.is_empty() {
                texts.push((index, key, mode));
            }
            index += 1;
            from = place + 1;
        }
        if ends {
            let first_mode = usize::from(!method);
            let count = texts.iter().filter(|(_, key, _)| key.is_none()).count();
            return texts.iter().all(|&(index, key, mode)| match key {
                Some("mode") => mode,
                Some("encoding" | "errors" | "newline" | "file") => true,
                Some(_) => false,
                None if method && count > 1 => index == 0 || mode,
                None => index < first_mode || mode,
            });
        }
    }
    false
}

const SCRIPT_DENIED: &[&str] = &[
    "eval",
    "Function",
    "import",
    "globalThis",
    "global",
    "module",
    "Bun",
    "Deno",
    "WebAssembly",
    "Reflect",
    "Proxy",
    "constructor",
    "prototype",
    "exports",
    "Worker",
    "vm",
    "arguments",
    "this",
    "with",
];
const SCRIPT_MODULES: &[&str] = &[
    "fs",
    "path",
    "os",
    "util",
    "url",
    "crypto",
    "assert",
    "querystring",
    "node:fs",
    "node:path",
    "node:os",
    "node:util",
    "node:url",
    "node:crypto",
];
const SCRIPT_MEMBERS: &[&str] = &[
    "log",
    "error",
    "warn",
    "info",
    "table",
    "dir",
    "parse",
    "stringify",
    "keys",
    "values",
    "entries",
    "fromEntries",
    "map",
    "filter",
    "forEach",
    "reduce",
    "join",
    "split",
    "slice",
    "length",
    "push",
    "pop",
    "shift",
    "unshift",
    "concat",
    "includes",
    "indexOf",
    "lastIndexOf",
    "find",
    "findIndex",
    "some",
    "every",
    "sort",
    "reverse",
    "flat",
    "flatMap",
    "replace",
    "replaceAll",
    "match",
    "matchAll",
    "test",
    "exec",
    "trim",
    "trimEnd",
    "trimStart",
    "toUpperCase",
    "toLowerCase",
    "padStart",
    "padEnd",
    "startsWith",
    "endsWith",
    "substring",
    "substr",
    "charAt",
    "charCodeAt",
    "codePointAt",
    "fromCharCode",
    "repeat",
    "toString",
    "toFixed",
    "toISOString",
    "getTime",
    "now",
    "getFullYear",
    "isArray",
    "from",
    "of",
    "assign",
    "freeze",
    "min",
    "max",
    "floor",
    "ceil",
    "round",
    "random",
    "abs",
    "sqrt",
    "pow",
    "PI",
    "isInteger",
    "parseInt",
    "parseFloat",
    "isNaN",
    "readFileSync",
    "existsSync",
    "readdirSync",
    "statSync",
    "lstatSync",
    "realpathSync",
    "readFile",
    "readdir",
    "stat",
    "promises",
    "size",
    "mtime",
    "isDirectory",
    "isFile",
    "name",
    "resolve",
    "dirname",
    "basename",
    "extname",
    "relative",
    "isAbsolute",
    "normalize",
    "sep",
    "argv",
    "env",
    "version",
    "versions",
    "platform",
    "cwd",
    "exit",
    "stdout",
    "stderr",
    "stdin",
    "memoryUsage",
    "uptime",
    "arch",
    "pid",
    "exitCode",
    "hrtime",
    "write",
    "on",
    "cpus",
    "totalmem",
    "freemem",
    "hostname",
    "homedir",
    "tmpdir",
    "release",
    "type",
    "EOL",
    "inspect",
    "format",
    "node",
    "v8",
    "createHash",
    "update",
    "digest",
    "randomBytes",
    "randomUUID",
    "then",
    "catch",
    "finally",
    "all",
    "message",
    "stack",
    "code",
    "has",
    "get",
    "set",
    "add",
    "scripts",
    "dependencies",
    "devDependencies",
    "main",
    "private",
    "engines",
    "data",
    "items",
    "value",
    "key",
    "id",
    "title",
    "description",
    "license",
    "port",
    "host",
    "url",
    "path",
    "text",
    "json",
    "status",
    "ok",
    "headers",
];

fn script_is_harmless(tokens: &[Token]) -> bool {
    let mut handles: Vec<&str> = vec!["process"];
    let mut at = 0;
    while at < tokens.len() {
        let called = mark_at(tokens, at, ']') && mark_at(tokens, at + 1, '(');
        let reaches = matches!(tokens.get(at), Some(Token::Text(text)) if ["constructor", "__proto__", "prototype"].contains(&text.as_str()) || (text.contains('\\') && mark_at(tokens, at + 1, ']')));
        if called || reaches {
            return false;
        }
        if let Some(name) = name_at(tokens, at) {
            let is_fine = if is_member(tokens, at) {
                SCRIPT_MEMBERS.contains(&name)
            } else if name == "require" {
                required(tokens, at, &mut handles)
            } else if handles.contains(&name) {
                let declared =
                    at > 0 && matches!(name_at(tokens, at - 1), Some("const" | "let" | "var"));
                declared || mark_at(tokens, at + 1, '.')
            } else {
                !SCRIPT_DENIED.contains(&name) && !name.starts_with("__")
            };
            if !is_fine {
                return false;
            }
        }
        at += 1;
    }
    true
}

/// Whether `require` loads something known, and only its members are used.
fn required<'t>(tokens: &'t [Token], at: usize, handles: &mut Vec<&'t str>) -> bool {
    let (true, Some(Token::Text(module)), true) =
        (mark_at(tokens, at + 1, '('), tokens.get(at + 2), mark_at(tokens, at + 3, ')'))
    else {
        return false;
    };
    let is_data = module.starts_with('.')
        && module
            .split('/')
            .next_back()
            .is_some_and(|name| name.rsplit('.').next() == Some("json") && name.contains('.'));
    if is_data {
        return true;
    }
    if !SCRIPT_MODULES.contains(&module.as_str()) {
        return false;
    }
    if mark_at(tokens, at + 4, '.') {
        return true;
    }
    if at < 2 || !mark_at(tokens, at - 1, '=') {
        return false;
    }
    match tokens.get(at - 2) {
        Some(Token::Name(name)) => {
            handles.push(name);
            true
        }
        Some(Token::Mark('}')) => {
            let names = tokens
                .get(..at - 2)
                .unwrap_or_default()
                .iter()
                .rev()
                .take_while(|token| **token != Token::Mark('{'));
            names.into_iter().all(|token| match token {
                Token::Name(name) => SCRIPT_MEMBERS.contains(&name.as_str()),
                Token::Mark(mark) => *mark == ',',
                Token::Text(_) | Token::Value => false,
            })
        }
        Some(Token::Text(_) | Token::Value | Token::Mark(_)) | None => false,
    }
}

const RUBY_DENIED: &[&str] = &[
    "system",
    "exec",
    "spawn",
    "fork",
    "open",
    "eval",
    "instance_eval",
    "class_eval",
    "module_eval",
    "instance_exec",
    "class_exec",
    "send",
    "public_send",
    "__send__",
    "method",
    "load",
    "autoload",
    "binding",
    "callcc",
    "trap",
    "at_exit",
    "syscall",
    "popen",
    "define_method",
    "const_get",
    "public_method",
    "instance_method",
    "require_relative",
    "DATA",
    "alias",
    "undef",
];
const RUBY_CONSTANTS: &[&str] = &[
    "File",
    "Dir",
    "JSON",
    "Time",
    "Date",
    "ENV",
    "ARGV",
    "STDIN",
    "STDOUT",
    "STDERR",
    "Integer",
    "Float",
    "String",
    "Array",
    "Hash",
    "Set",
    "Math",
    "RUBY_VERSION",
    "RUBY_PLATFORM",
    "CSV",
    "Regexp",
    "Struct",
    "ARGF",
    "Range",
    "Rational",
    "Comparable",
];
const RUBY_MODULES: &[&str] = &[
    "json",
    "set",
    "date",
    "time",
    "csv",
    "pp",
    "digest",
    "bigdecimal",
    "securerandom",
    "English",
];
const RUBY_FILES: &[&str] = &[
    "read",
    "readlines",
    "exist",
    "file",
    "directory",
    "size",
    "basename",
    "dirname",
    "extname",
    "join",
    "expand_path",
    "foreach",
    "stat",
    "mtime",
    "readable",
    "symlink",
    "binread",
    "glob",
    "entries",
    "children",
    "pwd",
    "each_child",
    "zero",
    "executable",
];

fn ruby_is_harmless(tokens: &[Token]) -> bool {
    tokens.iter().enumerate().all(|(at, token)| {
        let Token::Name(name) = token else { return true };
        let name = name.as_str();
        if name == "require" {
            return matches!(tokens.get(at + 1), Some(Token::Text(module)) if RUBY_MODULES.contains(&module.as_str()));
        }
        if RUBY_DENIED.contains(&name) || name.starts_with("__") {
            return false;
        }
        if name == "File" || name == "Dir" {
            let listed = mark_at(tokens, at + 1, '[') && name == "Dir";
            return listed || mark_at(tokens, at + 1, '.') && name_at(tokens, at + 2).is_some_and(|member| RUBY_FILES.contains(&member));
        }
        let is_constant = name.starts_with(|char: char| char.is_ascii_uppercase());
        // A path that would be deleted is a text here, and texts have no such methods.
        let is_variable = at > 0 && mark_at(tokens, at - 1, '$') && !["stdout", "stderr", "stdin", "_", "PROGRAM_NAME", "0"].contains(&name);
        !is_variable && (!is_constant || RUBY_CONSTANTS.contains(&name))
    })
}

const PERL_WORDS: &[&str] = &[
    "print",
    "printf",
    "say",
    "if",
    "unless",
    "else",
    "elsif",
    "my",
    "our",
    "local",
    "for",
    "foreach",
    "while",
    "until",
    "split",
    "join",
    "map",
    "grep",
    "sort",
    "keys",
    "values",
    "each",
    "length",
    "uc",
    "lc",
    "ucfirst",
    "lcfirst",
    "substr",
    "index",
    "rindex",
    "sprintf",
    "chomp",
    "chop",
    "push",
    "pop",
    "shift",
    "unshift",
    "splice",
    "defined",
    "undef",
    "scalar",
    "reverse",
    "last",
    "next",
    "redo",
    "and",
    "or",
    "not",
    "xor",
    "x",
    "eq",
    "ne",
    "lt",
    "gt",
    "le",
    "ge",
    "cmp",
    "exists",
    "delete",
    "int",
    "abs",
    "sqrt",
    "sin",
    "cos",
    "exp",
    "log",
    "hex",
    "oct",
    "ord",
    "chr",
    "rand",
    "srand",
    "time",
    "localtime",
    "gmtime",
    "wantarray",
    "return",
    "sum",
    "sum0",
    "max",
    "min",
    "first",
    "uniq",
    "shuffle",
    "reduce",
    "any",
    "all",
    "Dumper",
    "BEGIN",
    "END",
    "STDIN",
    "STDOUT",
    "STDERR",
    "ARGV",
    "ENV",
    "INC",
    "_",
    "a",
    "b",
    "pos",
    "lcm",
    "floor",
    "ceil",
    "strftime",
    "encode_base64",
    "decode_base64",
    "decode_json",
    "encode_json",
    "exit",
    "die",
    "warn",
    "strict",
    "warnings",
    "use",
    "eof",
    "close",
    "sleep",
    "pack",
    "unpack",
    "quotemeta",
    "vec",
    "sprintf",
];

fn perl_is_harmless(tokens: &[Token]) -> bool {
    tokens.iter().enumerate().all(|(at, token)| match token {
        Token::Name(name) => {
            let is_variable =
                at > 0 && matches!(tokens.get(at - 1), Some(Token::Mark('$' | '@' | '%')));
            let is_key = at > 0 && mark_at(tokens, at - 1, '{') && mark_at(tokens, at + 1, '}');
            let is_method = at > 1 && mark_at(tokens, at - 1, '>') && mark_at(tokens, at - 2, '-');
            let used = at > 0 && name_at(tokens, at - 1) == Some("use");
            !is_method
                && (is_variable || is_key || PERL_WORDS.contains(&name.as_str()))
                && (!used || ["strict", "warnings"].contains(&name.as_str()))
        }
        // A call by reference, a type glob, or a file to read that is not a handle.
        Token::Mark('&') => mark_at(tokens, at + 1, '&') || at > 0 && mark_at(tokens, at - 1, '&'),
        Token::Mark('*') => !mark_at(tokens, at + 1, '{'),
        Token::Mark('<') => !mark_at(tokens, at + 1, '$') || !mark_at(tokens, at + 3, '>'),
        Token::Mark('>') => {
            !(at > 0 && mark_at(tokens, at - 1, '-'))
                || matches!(tokens.get(at + 1), Some(Token::Mark('[' | '{')))
        }
        Token::Text(_) | Token::Value | Token::Mark(_) => true,
    })
}
