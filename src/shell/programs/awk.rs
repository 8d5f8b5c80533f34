//! `awk`: whether its program writes files or runs commands.

use super::closed;
use crate::model::TargetAction;
use crate::shell::flags::{Field, Mark};
use crate::shell::names;
use crate::shell::verdict::{Call, Verdict, destroys, reads, unknown};
use crate::shell::walk::Walk;

const FLAGS: &str = "^ & -F: -v: -e: -f: -bcCnOPrSs -M --field-separator= --assign= --source= --file= --posix --traditional --csv \
    --re-interval --sandbox --characters-as-bytes --lint? --non-decimal-data --bignum --use-lc-numeric ~-i: ~--include= ~-l: \
    ~--load= ~-E: ~--exec= ~-o? ~-d? ~-p? ~-D? %--version %--help %-V -W:";

/// Judges `awk`.
pub(in crate::shell) fn awk(walk: &mut Walk<'_>, call: &Call<'_>) -> Verdict {
    let (parsed, verdict) = closed(walk, FLAGS, call.args());
    if parsed.hits.iter().any(|hit| hit.mark == Mark::Talks) {
        return reads("only tells about the program");
    }
    if let Some(library) = parsed.value(&["-i", "--include"])
        && library.text.contains("inplace")
    {
        let operands = parsed.operands.get(1..).unwrap_or_default();
        let why = "awk -i inplace rewrites it";
        let targets =
            operands.iter().map(|file| walk.target(file, TargetAction::Modify, why)).collect();
        return destroys("awk -i inplace rewrites its operands", targets);
    }
    if parsed.stray.is_some()
        || verdict.level != crate::model::Level::ReadOnly
        || parsed.has(&["-f", "--file"])
    {
        return unknown("its program may write or run something");
    }
    let source = parsed.value(&["-e", "--source"]).or(parsed.operands.first());
    let Some(source) = source else { return reads("runs no program") };
    // Values inside the program are data to most who put them there, but can be code.
    let Some(program) = source.literal() else {
        return unknown("its program is not known before it runs");
    };
    match outputs(program) {
        None => unknown("its program may write or run something"),
        Some(files) => {
            let files: Vec<Field> = files.iter().map(|file| Field::exact(file)).collect();
            let why = "its program writes to it";
            let targets: Vec<_> = files
                .iter()
                .filter(|file| names::is_file(file))
                .map(|file| walk.target(file, TargetAction::Overwrite, why))
                .collect();
            if targets.is_empty() {
                reads("prints what its program says")
            } else {
                destroys(why, targets)
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Name(String),
    Text(String),
    Value,
    Mark(char),
    Ends,
}

/// The files a program prints to, or `None` if it runs something or prints where we cannot see.
fn outputs(program: &str) -> Option<Vec<String>> {
    let tokens = tokens(program)?;
    let mut files = Vec::new();
    let mut printing = false;
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate() {
        match token {
            Token::Name(name) if name == "print" || name == "printf" => {
                printing = true;
                depth = 0;
            }
            Token::Name(name) if name == "system" => return None,
            Token::Ends | Token::Mark('{' | '}') => printing = false,
            Token::Mark('(' | '[') => depth += 1,
            Token::Mark(')' | ']') => depth = depth.saturating_sub(1),
            // Also the co-process `|&`, and indirect calls.
            Token::Mark('|' | '@') => return None,
            Token::Mark('>') if printing && depth == 0 => {
                let doubled = tokens.get(index + 1) == Some(&Token::Mark('>'));
                let at = index + 1 + usize::from(doubled);
                match (tokens.get(at), tokens.get(at + 1)) {
                    (Some(Token::Text(file)), None | Some(Token::Ends | Token::Mark('}'))) => {
                        files.push(file.clone());
                    }
                    (Some(Token::Mark('>')), _) => {}
                    _ => return None,
                }
                printing = false;
            }
            Token::Name(_) | Token::Text(_) | Token::Value | Token::Mark(_) => {}
        }
    }
    Some(files)
}

fn tokens(program: &str) -> Option<Vec<Token>> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut chars = program.chars().peekable();
    while let Some(char) = chars.next() {
        let token = match char {
            ';' | '\n' => Token::Ends,
            '#' => {
                while chars.peek().is_some_and(|&char| char != '\n') {
                    chars.next();
                }
                continue;
            }
            '"' => Token::Text(quoted(&mut chars, '"')?),
            '/' if begins_value(tokens.last()) => {
                regex(&mut chars)?;
                Token::Value
            }
            '|' if chars.peek() == Some(&'|') => {
                chars.next();
                Token::Mark('o')
            }
            char if char.is_alphabetic() || char == '_' => {
                let mut name = char.to_string();
                while let Some(&next) =
                    chars.peek().filter(|next| next.is_alphanumeric() || **next == '_')
                {
                    name.push(next);
                    chars.next();
                }
                Token::Name(name)
            }
            char if char.is_ascii_digit() => Token::Value,
            char if char.is_whitespace() => continue,
            char => Token::Mark(char),
        };
        tokens.push(token);
    }
    Some(tokens)
}

/// Whether a slash after this token begins a regular expression rather than divides.
fn begins_value(last: Option<&Token>) -> bool {
    match last {
        None | Some(Token::Ends) => true,
        Some(Token::Mark(mark)) => !")]$".contains(*mark),
        Some(Token::Name(name)) => {
            ["print", "printf", "return", "in", "case"].contains(&name.as_str())
        }
        Some(Token::Text(_) | Token::Value) => false,
    }
}

fn quoted(chars: &mut impl Iterator<Item = char>, end: char) -> Option<String> {
    let mut text = String::new();
    loop {
        match chars.next()? {
            '\\' => {
                text.push('\\');
                text.push(chars.next()?);
            }
            char if char == end => return Some(text),
            char => text.push(char),
        }
    }
}

fn regex(chars: &mut impl Iterator<Item = char>) -> Option<()> {
    let mut bracket = false;
    loop {
        match chars.next()? {
            '\\' => drop(chars.next()?),
            '[' => bracket = true,
            ']' => bracket = false,
            // Inside brackets some awks end here and some do not: we cannot tell.
            '/' if bracket => return None,
            '/' => return Some(()),
            '\n' => return None,
            _ => {}
        }
    }
}
