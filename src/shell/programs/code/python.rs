//! Python: the names, modules and methods that cannot reach the system, and how an `import` or an
//! `open` is read.

use super::{is_member, mark_at, name_at};
use crate::shell::lexer::Token;

const DENIED: &[&str] = &[
    "exec", "eval", "compile", "getattr", "setattr", "delattr", "globals", "locals", "vars",
    "breakpoint", "help", "super",
];
const MODULES: &[&str] = &[
    "sys", "json", "re", "os", "os.path", "math", "cmath", "collections", "itertools", "functools",
    "datetime", "time", "random", "string", "textwrap", "statistics", "decimal", "fractions",
    "pathlib", "csv", "io", "glob", "fnmatch", "hashlib", "hmac", "base64", "binascii", "struct",
    "ast", "tokenize", "platform", "pprint", "typing", "dataclasses", "enum", "operator",
    "difflib", "html", "urllib.parse", "uuid", "zlib", "gzip", "configparser", "tomllib", "locale",
    "calendar", "bisect", "heapq", "keyword", "unicodedata", "secrets", "ipaddress", "colorsys",
    "contextlib", "traceback", "sysconfig", "site", "getpass", "numbers", "array", "copy", "queue",
    "xml.etree.ElementTree", "zoneinfo", "stat", "errno", "socket", "yaml", "numpy",
    "importlib.metadata",
];
const OS: &[&str] = &[
    "path", "listdir", "walk", "getcwd", "environ", "sep", "linesep", "scandir", "stat", "lstat",
    "getpid", "getuid", "cpu_count", "name", "uname", "getenv", "access", "fspath", "R_OK", "F_OK",
    "X_OK", "W_OK", "getlogin", "pathsep", "curdir", "readlink", "get_terminal_size", "getloadavg",
];
const MEMBERS: &[&str] = &[
    // Text and collections.
    "read", "readline", "readlines", "split", "rsplit", "strip", "lstrip", "rstrip", "splitlines",
    "join", "format", "items", "keys", "values", "get", "lower", "upper", "title", "capitalize",
    "startswith", "endswith", "find", "rfind", "index", "count", "append", "extend", "insert",
    "pop", "sort", "reverse", "add", "update", "setdefault", "encode", "decode", "zfill", "ljust",
    "rjust", "center", "isdigit", "isalpha", "isalnum", "isupper", "islower", "isspace",
    "partition", "rpartition", "translate", "maketrans", "casefold", "swapcase", "expandtabs",
    "union", "intersection", "difference", "most_common", "Counter", "defaultdict", "OrderedDict",
    "deque", "namedtuple", "fromkeys", "hex", "fromhex", "bit_length", "write", "flush", "close",
    "seek", "tell", "fileno", "isatty", "replace", // Looking at files.
    "read_text", "read_bytes", "exists", "is_file", "is_dir", "is_symlink", "iterdir", "glob",
    "rglob", "iglob", "stat", "resolve", "absolute", "parent", "parents", "name", "stem", "suffix",
    "suffixes", "parts", "relative_to", "with_suffix", "with_name", "cwd", "home", "as_posix",
    "expanduser", "isfile", "isdir", "islink", "getsize", "getmtime", "basename", "dirname",
    "abspath", "realpath", "relpath", "splitext", "commonprefix", "st_size", "st_mtime", "st_mode",
    "st_ino", "path", "Path", "PurePath", "joinpath", "match", "is_absolute", "normpath",
    "lexists", "samefile", "open", // Modules.
    "loads", "load", "dumps", "dump", "safe_load", "parse", "search", "fullmatch", "findall",
    "finditer", "sub", "subn", "group", "groups", "groupdict", "start", "end", "span", "escape",
    "IGNORECASE", "MULTILINE", "DOTALL", "VERBOSE", "compile", "argv", "version", "version_info",
    "executable", "platform", "stdin", "stdout", "stderr", "exit", "maxsize", "byteorder",
    "prefix", "base_prefix", "buffer", "implementation", "major", "minor", "micro", "getsizeof",
    "getrecursionlimit", "getdefaultencoding", "implementation", "now", "today", "utcnow",
    "strftime", "isoformat", "strptime", "fromtimestamp", "timestamp", "date", "time", "timedelta",
    "datetime", "year", "month", "day", "days", "hour", "minute", "second", "utc", "timezone",
    "total_seconds", "perf_counter", "sleep", "monotonic", "localtime", "gmtime", "ctime", "sqrt",
    "pi", "floor", "ceil", "log", "log2", "log10", "sin", "cos", "tan", "exp", "pow", "gcd",
    "factorial", "mean", "median", "stdev", "mode", "variance", "randint", "random", "choice",
    "shuffle", "sample", "seed", "uniform", "DictReader", "reader", "fieldnames", "md5", "sha1",
    "sha256", "sha512", "new", "hexdigest", "digest", "b64encode", "b64decode",
    "urlsafe_b64encode", "hexlify", "unhexlify", "pack", "unpack", "quote", "unquote", "urlparse",
    "urlencode", "parse_qs", "uuid4", "token_hex", "token_urlsafe", "chain", "product",
    "permutations", "combinations", "groupby", "islice", "accumulate", "reduce", "partial",
    "lru_cache", "pprint", "pformat", "dedent", "wrap", "fill", "indent", "unified_diff", "ndiff",
    "literal_eval", "ast", "body", "lineno", "iter_child_nodes", "FunctionDef", "ClassDef",
    "Import", "ImportFrom", "targets", "names", "asname", "id", "value", "args", "arg", "node",
    "environ", "machine", "python_version", "gethostname", "itemgetter", "sections", "read_string",
    "getint", "getboolean", "options", "array", "arange", "zeros", "ones", "shape", "sum", "min",
    "max", "linspace", "reshape", "T", "dtype", "std", "ascii_letters", "digits",
    "ascii_lowercase", "punctuation", "decimal", "Decimal", "Fraction", "StringIO", "BytesIO",
    "getvalue", "ElementTree", "etree", "fromstring", "getroot", "iter", "tag", "attrib", "text",
    "tail", "findtext", "metadata", "distributions", "real", "imag", "is_integer",
    "as_integer_ratio", "copy",
];

/// Whether every name in a program is one that only looks.
pub(super) fn is_harmless(tokens: &[Token]) -> bool {
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
            let list = if of_os { OS } else { MEMBERS };
            list.contains(&name) && (name != "open" || opens_to_read(tokens, at + 1, true))
                || name == "__version__"
        } else {
            match name {
                "os" => mark_at(tokens, at + 1, '.'),
                "open" => opens_to_read(tokens, at + 1, false),
                _ => !DENIED.contains(&name),
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
        let list = if module == "os" { OS } else { MEMBERS };
        let is_fine = names.split(',').all(|name| {
            let first = name.split_whitespace().next().unwrap_or_default();
            list.contains(&first) && first != "open" && first != "replace"
        });
        return (MODULES.contains(&module) && is_fine).then_some(end);
    }
    let rest = text.strip_prefix("import ")?;
    let is_fine = rest.split(',').all(|module| {
        let mut words = module.split_whitespace();
        let module = words.next().unwrap_or_default();
        MODULES.contains(&module) && (words.next().is_none() || !module.starts_with("os"))
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
