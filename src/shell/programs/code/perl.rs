//! Perl: the words that only look, and the marks that make a call of a name.

use super::{mark_at, name_at};
use crate::shell::lexer::Token;

const WORDS: &[&str] = &[
    "print", "printf", "say", "if", "unless", "else", "elsif", "my", "our", "local", "for",
    "foreach", "while", "until", "split", "join", "map", "grep", "sort", "keys", "values", "each",
    "length", "uc", "lc", "ucfirst", "lcfirst", "substr", "index", "rindex", "sprintf", "chomp",
    "chop", "push", "pop", "shift", "unshift", "splice", "defined", "undef", "scalar", "reverse",
    "last", "next", "redo", "and", "or", "not", "xor", "x", "eq", "ne", "lt", "gt", "le", "ge",
    "cmp", "exists", "delete", "int", "abs", "sqrt", "sin", "cos", "exp", "log", "hex", "oct",
    "ord", "chr", "rand", "srand", "time", "localtime", "gmtime", "wantarray", "return", "sum",
    "sum0", "max", "min", "first", "uniq", "shuffle", "reduce", "any", "all", "Dumper", "BEGIN",
    "END", "STDIN", "STDOUT", "STDERR", "ARGV", "ENV", "INC", "_", "a", "b", "pos", "lcm", "floor",
    "ceil", "strftime", "encode_base64", "decode_base64", "decode_json", "encode_json", "exit",
    "die", "warn", "strict", "warnings", "use", "eof", "close", "sleep", "pack", "unpack",
    "quotemeta", "vec", "sprintf",
];

/// Whether every name in a program is one that only looks.
pub(super) fn is_harmless(tokens: &[Token]) -> bool {
    tokens.iter().enumerate().all(|(at, token)| match token {
        Token::Name(name) => {
            let is_variable =
                at > 0 && matches!(tokens.get(at - 1), Some(Token::Mark('$' | '@' | '%')));
            let is_key = at > 0 && mark_at(tokens, at - 1, '{') && mark_at(tokens, at + 1, '}');
            let is_method = at > 1 && mark_at(tokens, at - 1, '>') && mark_at(tokens, at - 2, '-');
            let used = at > 0 && name_at(tokens, at - 1) == Some("use");
            !is_method
                && (is_variable || is_key || WORDS.contains(&name.as_str()))
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
