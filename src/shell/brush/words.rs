//! What one word is made of, as `brush-parser` cuts it.

use brush_parser::word::{
    Parameter, ParameterExpr, ParameterTransformOp, SpecialParameter, SubstringMatchKind,
    TildeExpr, WordPiece, WordPieceWithSource,
};

use std::borrow::Cow;

use crate::shell::syntax::{Derivation, ReplacedPlace, WordPart, list_name};

pub(super) fn parts(pieces: &[WordPieceWithSource], quoted: bool) -> Vec<WordPart> {
    let mut found = Vec::new();
    for piece in pieces {
        part(&piece.piece, quoted, &mut found);
    }
    found
}

fn part(piece: &WordPiece, quoted: bool, found: &mut Vec<WordPart>) {
    match piece {
        WordPiece::Text(text) => found.push(WordPart::Text(text.clone(), quoted)),
        WordPiece::SingleQuotedText(text) => found.push(WordPart::Text(text.clone(), true)),
        WordPiece::AnsiCQuotedText(text) => found.push(WordPart::Text(unescape(text), true)),
        WordPiece::DoubleQuotedSequence(pieces)
        | WordPiece::GettextDoubleQuotedSequence(pieces) => {
            found.push(WordPart::Text(String::new(), true));
            found.extend(parts(pieces, true));
        }
        WordPiece::TildeExpansion(TildeExpr::Home) => found.push(WordPart::Home),
        WordPiece::TildeExpansion(_) => found.push(opaque(quoted)),
        WordPiece::ParameterExpansion(expr) => found.push(parameter(expr, quoted)),
        WordPiece::CommandSubstitution(script) => {
            found.push(WordPart::Substitution(script.clone(), quoted));
        }
        WordPiece::BackquotedCommandSubstitution(script) => {
            found.push(WordPart::Substitution(unbackquote(script), quoted));
        }
        WordPiece::EscapeSequence(text) => {
            let plain = text.strip_prefix('\\').unwrap_or(text);
            // A backslash before a newline joins two lines and leaves nothing.
            let plain = plain.strip_prefix('\n').unwrap_or(plain);
            found.push(WordPart::Text(plain.to_owned(), true));
        }
        WordPiece::ArithmeticExpression(expr) => found.push(WordPart::Opaque {
            words: Vec::new(),
            arithmetic: vec![expr.value.clone()],
            quoted: true,
            assigns: None,
            runs: false,
            derived: None,
        }),
    }
}

/// Takes away one level of backslashes, as the shell does inside backticks.
fn unbackquote(script: &str) -> String {
    let mut plain = String::with_capacity(script.len());
    let mut chars = script.chars().peekable();
    while let Some(char) = chars.next() {
        match (char, chars.peek()) {
            ('\\', Some(&next @ ('`' | '\\' | '$'))) => {
                plain.push(next);
                chars.next();
            }
            _ => plain.push(char),
        }
    }
    plain
}

/// The text of `$'…'`. Escapes we do not compute become U+FFFD, which no table entry contains.
fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        if char != '\\' {
            plain.push(char);
            continue;
        }
        match chars.next() {
            Some('n') => plain.push('\n'),
            Some('t') => plain.push('\t'),
            Some('r') => plain.push('\r'),
            Some(quote @ ('\\' | '\'' | '"' | '?')) => plain.push(quote),
            Some('x') => {
                let digits: String =
                    chars.clone().take(2).take_while(char::is_ascii_hexdigit).collect();
                chars.by_ref().take(digits.len()).for_each(drop);
                let code = u8::from_str_radix(&digits, 16).unwrap_or(0xff);
                plain.push(if code.is_ascii() { char::from(code) } else { '\u{fffd}' });
            }
            Some(_) | None => plain.push('\u{fffd}'),
        }
    }
    plain
}

fn opaque(quoted: bool) -> WordPart {
    WordPart::Opaque {
        words: Vec::new(),
        arithmetic: Vec::new(),
        quoted,
        assigns: None,
        runs: false,
        derived: None,
    }
}

/// The script file itself, as a variable.
const SCRIPT: &str = "0";

/// The variable that a parameter is, if it is one of those that are followed.
fn variable(parameter: &Parameter) -> Option<Cow<'_, str>> {
    match parameter {
        Parameter::Named(name) if name == "BASH_SOURCE" => Some(SCRIPT.into()),
        Parameter::Named(name) => Some(name.into()),
        Parameter::Special(SpecialParameter::ShellName) => Some(SCRIPT.into()),
        Parameter::NamedWithIndex { name, index } if name == "BASH_SOURCE" && index == "0" => {
            Some(SCRIPT.into())
        }
        Parameter::Positional(number) => Some(number.to_string().into()),
        Parameter::NamedWithAllIndices { name, .. } => Some(list_name(name).into()),
        Parameter::NamedWithIndex { .. } | Parameter::Special(_) => None,
    }
}

/// The variable that an expansion is made of, and how, where that can be followed.
fn derived(expr: &ParameterExpr) -> Option<(String, Derivation)> {
    let (parameter, how) = match expr {
        ParameterExpr::Parameter { parameter, indirect: false }
        | ParameterExpr::IndicateErrorIfNullOrUnset { parameter, indirect: false, .. } => {
            (parameter, Derivation::Itself)
        }
        ParameterExpr::UseDefaultValues { parameter, indirect: false, default_value, .. }
        | ParameterExpr::AssignDefaultValues {
            parameter, indirect: false, default_value, ..
        } => (parameter, Derivation::Default(default_value.clone().unwrap_or_default())),
        ParameterExpr::RemoveSmallestSuffixPattern { parameter, indirect: false, pattern } => {
            (parameter, cut(pattern.as_deref(), true, false)?)
        }
        ParameterExpr::RemoveLargestSuffixPattern { parameter, indirect: false, pattern } => {
            (parameter, cut(pattern.as_deref(), true, true)?)
        }
        ParameterExpr::RemoveSmallestPrefixPattern { parameter, indirect: false, pattern } => {
            (parameter, cut(pattern.as_deref(), false, false)?)
        }
        ParameterExpr::RemoveLargestPrefixPattern { parameter, indirect: false, pattern } => {
            (parameter, cut(pattern.as_deref(), false, true)?)
        }
        ParameterExpr::Substring { parameter, indirect: false, offset, length } => {
            let number = |text: &str| text.trim().parse::<i64>().ok();
            let length = match length {
                Some(length) => Some(number(&length.value)?),
                None => None,
            };
            (parameter, Derivation::Part { from: number(&offset.value)?, length })
        }
        ParameterExpr::ReplaceSubstring { parameter, indirect: false, .. } => {
            (parameter, replaced(expr)?)
        }
        _ => cased(expr)?,
    };
    Some((variable(parameter)?.into_owned(), how))
}

/// An expansion that cuts off a beginning or an end.
fn cut(pattern: Option<&str>, end: bool, longest: bool) -> Option<Derivation> {
    let pattern = pattern.unwrap_or_default();
    // What stands for more than itself here would have to be expanded first.
    let is_plain = !pattern.contains(['$', '`', '\'', '"', '\\', '~', '{', '(']);
    // More of them could take as long as the line wants.
    let is_quick = pattern.matches('*').count() <= 1;
    (is_plain && is_quick).then(|| Derivation::Cut { pattern: pattern.to_owned(), end, longest })
}

/// An expansion that changes the case of all letters, or of the first one.
fn cased(expr: &ParameterExpr) -> Option<(&Parameter, Derivation)> {
    let (parameter, pattern, upper, first) = match expr {
        ParameterExpr::UppercasePattern { parameter, indirect: false, pattern } => {
            (parameter, pattern, true, false)
        }
        ParameterExpr::UppercaseFirstChar { parameter, indirect: false, pattern } => {
            (parameter, pattern, true, true)
        }
        ParameterExpr::LowercasePattern { parameter, indirect: false, pattern } => {
            (parameter, pattern, false, false)
        }
        ParameterExpr::LowercaseFirstChar { parameter, indirect: false, pattern } => {
            (parameter, pattern, false, true)
        }
        _ => return None,
    };
    let is_any = pattern.as_deref().is_none_or(str::is_empty);
    is_any.then_some((parameter, Derivation::Cased { upper, first }))
}

/// An expansion that puts one plain text in the place of another.
fn replaced(expr: &ParameterExpr) -> Option<Derivation> {
    let ParameterExpr::ReplaceSubstring { pattern, replacement, match_kind, .. } = expr else {
        return None;
    };
    let place = match match_kind {
        SubstringMatchKind::FirstOccurrence => ReplacedPlace::First,
        SubstringMatchKind::Anywhere => ReplacedPlace::All,
        SubstringMatchKind::Prefix => ReplacedPlace::Beginning,
        SubstringMatchKind::Suffix => ReplacedPlace::End,
    };
    let from = plain(pattern).filter(|from| !from.is_empty())?;
    let to = plain(replacement.as_deref().unwrap_or_default())?;
    Some(Derivation::Replaced { from, to, place })
}

/// A pattern, or what replaces it, if it stands for itself.
fn plain(text: &str) -> Option<String> {
    let is_special = |c| "*?[]()!@+|\\$`'\"&~{}".contains(c);
    (!text.chars().any(is_special)).then(|| text.to_owned())
}

/// Whether it is several words even between quotes, as `"$@"` and `"${a[@]}"` are.
fn is_several(parameter: &Parameter) -> bool {
    matches!(
        parameter,
        Parameter::Special(SpecialParameter::AllPositionalParameters { .. })
            | Parameter::NamedWithAllIndices { .. }
    )
}

fn parameter(expr: &ParameterExpr, quoted: bool) -> WordPart {
    if let ParameterExpr::Parameter { parameter, indirect: false } = expr
        && let Some(name) = variable(parameter)
    {
        return WordPart::Variable(name.into_owned(), quoted && !is_several(parameter));
    }
    let mut words = Vec::new();
    let mut arithmetic = Vec::new();
    let mut assigns = None;
    let mut runs = false;
    let (used, is_indirect) = match expr {
        ParameterExpr::Parameter { parameter, indirect }
        | ParameterExpr::ParameterLength { parameter, indirect } => (Some(parameter), *indirect),
        ParameterExpr::UseDefaultValues { parameter, indirect, default_value: word, .. }
        | ParameterExpr::IndicateErrorIfNullOrUnset {
            parameter,
            indirect,
            error_message: word,
            ..
        }
        | ParameterExpr::UseAlternativeValue {
            parameter, indirect, alternative_value: word, ..
        }
        | ParameterExpr::RemoveSmallestSuffixPattern { parameter, indirect, pattern: word }
        | ParameterExpr::RemoveLargestSuffixPattern { parameter, indirect, pattern: word }
        | ParameterExpr::RemoveSmallestPrefixPattern { parameter, indirect, pattern: word }
        | ParameterExpr::RemoveLargestPrefixPattern { parameter, indirect, pattern: word }
        | ParameterExpr::UppercaseFirstChar { parameter, indirect, pattern: word }
        | ParameterExpr::UppercasePattern { parameter, indirect, pattern: word }
        | ParameterExpr::LowercaseFirstChar { parameter, indirect, pattern: word }
        | ParameterExpr::LowercasePattern { parameter, indirect, pattern: word } => {
            words.extend(word.clone());
            (Some(parameter), *indirect)
        }
        ParameterExpr::AssignDefaultValues { parameter, indirect, default_value, .. } => {
            words.extend(default_value.clone());
            if let Parameter::Named(name) = parameter {
                assigns = Some(name.clone());
            }
            (Some(parameter), *indirect)
        }
        ParameterExpr::Substring { parameter, indirect, offset, length } => {
            arithmetic.push(offset.value.clone());
            arithmetic.extend(length.iter().map(|length| length.value.clone()));
            (Some(parameter), *indirect)
        }
        ParameterExpr::Transform { parameter, indirect, op } => {
            runs = matches!(op, ParameterTransformOp::PromptExpand);
            (Some(parameter), *indirect)
        }
        ParameterExpr::ReplaceSubstring { parameter, indirect, pattern, replacement, .. } => {
            words.push(pattern.clone());
            words.extend(replacement.clone());
            (Some(parameter), *indirect)
        }
        ParameterExpr::VariableNames { .. } | ParameterExpr::MemberKeys { .. } => (None, false),
    };
    if let Some(Parameter::NamedWithIndex { index, .. }) = used {
        arithmetic.push(index.clone());
    }
    let quoted = quoted && !used.is_some_and(is_several);
    // An indirect name may hold a subscript, and subscripts run substitutions.
    runs |= is_indirect;
    WordPart::Opaque { words, arithmetic, quoted, assigns, runs, derived: derived(expr) }
}
