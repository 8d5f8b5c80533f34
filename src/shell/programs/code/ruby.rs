//! Ruby: the constants, modules and file methods that only look.

use super::{mark_at, name_at};
use crate::shell::lexer::Token;

const DENIED: &[&str] = &[
    "system", "exec", "spawn", "fork", "open", "eval", "instance_eval", "class_eval",
    "module_eval", "instance_exec", "class_exec", "send", "public_send", "__send__", "method",
    "load", "autoload", "binding", "callcc", "trap", "at_exit", "syscall", "popen",
    "define_method", "const_get", "public_method", "instance_method", "require_relative", "DATA",
    "alias", "undef",
];
const CONSTANTS: &[&str] = &[
    "File", "Dir", "JSON", "Time", "Date", "ENV", "ARGV", "STDIN", "STDOUT", "STDERR", "Integer",
    "Float", "String", "Array", "Hash", "Set", "Math", "RUBY_VERSION", "RUBY_PLATFORM", "CSV",
    "Regexp", "Struct", "ARGF", "Range", "Rational", "Comparable",
];
pub(super) const MODULES: &[&str] = &[
    "json", "set", "date", "time", "csv", "pp", "digest", "bigdecimal", "securerandom", "English",
];
const FILES: &[&str] = &[
    "read", "readlines", "exist", "file", "directory", "size", "basename", "dirname", "extname",
    "join", "expand_path", "foreach", "stat", "mtime", "readable", "symlink", "binread", "glob",
    "entries", "children", "pwd", "each_child", "zero", "executable",
];

/// Whether every name in a program is one that only looks.
pub(super) fn is_harmless(tokens: &[Token]) -> bool {
    tokens.iter().enumerate().all(|(at, token)| {
        let Token::Name(name) = token else { return true };
        let name = name.as_str();
        if name == "require" {
            return matches!(tokens.get(at + 1), Some(Token::Text(module)) if MODULES.contains(&module.as_str()));
        }
        if DENIED.contains(&name) || name.starts_with("__") {
            return false;
        }
        if name == "File" || name == "Dir" {
            let listed = mark_at(tokens, at + 1, '[') && name == "Dir";
            return listed || mark_at(tokens, at + 1, '.') && name_at(tokens, at + 2).is_some_and(|member| FILES.contains(&member));
        }
        let is_constant = name.starts_with(|char: char| char.is_ascii_uppercase());
        // A path that would be deleted is a text here, and texts have no such methods.
        let is_variable = at > 0 && mark_at(tokens, at - 1, '$') && !["stdout", "stderr", "stdin", "_", "PROGRAM_NAME", "0"].contains(&name);
        !is_variable && (!is_constant || CONSTANTS.contains(&name))
    })
}
