//! JavaScript: the members and modules that cannot reach the system, and how a `require` is read.

use super::{is_member, mark_at, name_at};
use crate::shell::lexer::Token;

const DENIED: &[&str] = &[
    "eval", "Function", "import", "globalThis", "global", "module", "Bun", "Deno", "WebAssembly",
    "Reflect", "Proxy", "constructor", "prototype", "exports", "Worker", "vm", "arguments", "this",
    "with",
];
const MODULES: &[&str] = &[
    "fs", "path", "os", "util", "url", "crypto", "assert", "querystring", "node:fs", "node:path",
    "node:os", "node:util", "node:url", "node:crypto",
];
const MEMBERS: &[&str] = &[
    "log", "error", "warn", "info", "table", "dir", "parse", "stringify", "keys", "values",
    "entries", "fromEntries", "map", "filter", "forEach", "reduce", "join", "split", "slice",
    "length", "push", "pop", "shift", "unshift", "concat", "includes", "indexOf", "lastIndexOf",
    "find", "findIndex", "some", "every", "sort", "reverse", "flat", "flatMap", "replace",
    "replaceAll", "match", "matchAll", "test", "exec", "trim", "trimEnd", "trimStart",
    "toUpperCase", "toLowerCase", "padStart", "padEnd", "startsWith", "endsWith", "substring",
    "substr", "charAt", "charCodeAt", "codePointAt", "fromCharCode", "repeat", "toString",
    "toFixed", "toISOString", "getTime", "now", "getFullYear", "isArray", "from", "of", "assign",
    "freeze", "min", "max", "floor", "ceil", "round", "random", "abs", "sqrt", "pow", "PI",
    "isInteger", "parseInt", "parseFloat", "isNaN", "readFileSync", "existsSync", "readdirSync",
    "statSync", "lstatSync", "realpathSync", "readFile", "readdir", "stat", "promises", "size",
    "mtime", "isDirectory", "isFile", "name", "resolve", "dirname", "basename", "extname",
    "relative", "isAbsolute", "normalize", "sep", "argv", "env", "version", "versions", "platform",
    "cwd", "exit", "stdout", "stderr", "stdin", "memoryUsage", "uptime", "arch", "pid", "exitCode",
    "hrtime", "write", "on", "cpus", "totalmem", "freemem", "hostname", "homedir", "tmpdir",
    "release", "type", "EOL", "inspect", "format", "node", "v8", "createHash", "update", "digest",
    "randomBytes", "randomUUID", "then", "catch", "finally", "all", "message", "stack", "code",
    "has", "get", "set", "add", "scripts", "dependencies", "devDependencies", "main", "private",
    "engines", "data", "items", "value", "key", "id", "title", "description", "license", "port",
    "host", "url", "path", "text", "json", "status", "ok", "headers",
];

/// Whether every name in a program is one that only looks.
pub(super) fn is_harmless(tokens: &[Token]) -> bool {
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
                MEMBERS.contains(&name)
            } else if name == "require" {
                required(tokens, at, &mut handles)
            } else if handles.contains(&name) {
                let declared =
                    at > 0 && matches!(name_at(tokens, at - 1), Some("const" | "let" | "var"));
                declared || mark_at(tokens, at + 1, '.')
            } else {
                !DENIED.contains(&name) && !name.starts_with("__")
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
    if !MODULES.contains(&module.as_str()) {
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
                Token::Name(name) => MEMBERS.contains(&name.as_str()),
                Token::Mark(mark) => *mark == ',',
                Token::Text(_) | Token::Value => false,
            })
        }
        Some(Token::Text(_) | Token::Value | Token::Mark(_)) | None => false,
    }
}
