//! The words of every command of a line, as a shell would take them apart. It follows no variable
//! and judges nothing: `shell` does that, and its texts are shortened for showing; here a line is
//! whole. What it cannot make out it takes for words, which at worst asks once too often.

/// A line nests substitutions a few levels deep; what is deeper stays one word.
const DEPTH_MAX: usize = 16;

/// The commands of `line`, those in substitutions among them.
pub(super) fn commands(line: &str) -> Vec<Vec<String>> {
    let mut lexer = Lexer { chars: line.chars().peekable(), found: Vec::new(), depth: 0 };
    lexer.script(None);
    lexer.found
}

struct Lexer<'l> {
    chars: std::iter::Peekable<std::str::Chars<'l>>,
    found: Vec<Vec<String>>,
    depth: usize,
}

/// A command as far as it is read.
#[derive(Default)]
struct PartialCommand {
    words: Vec<String>,
    /// The word that is read; `None` between words.
    word: Option<String>,
}

impl PartialCommand {
    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn end_word(&mut self) {
        self.words.extend(self.word.take());
    }
}

impl Lexer<'_> {
    /// Reads commands up to `end`, or to the end of the line.
    fn script(&mut self, end: Option<char>) {
        let mut open = PartialCommand::default();
        while let Some(c) = self.chars.next() {
            match c {
                _ if Some(c) == end => break,
                ' ' | '\t' | '\r' | '<' | '>' => open.end_word(),
                '(' if self.depth < DEPTH_MAX => {
                    self.end_command(&mut open);
                    self.depth += 1;
                    self.script(Some(')'));
                    self.depth -= 1;
                }
                '\n' | ';' | '|' | '&' | '(' | ')' => self.end_command(&mut open),
                '{' | '}' if open.word.is_none() => self.end_command(&mut open),
                '#' if open.word.is_none() => while self.chars.next_if(|c| *c != '\n').is_some() {},
                '\\' => match self.chars.next() {
                    Some('\n') | None => (),
                    Some(c) => open.push(c),
                },
                '\'' => self.quoted(&mut open),
                '"' => self.double_quoted(&mut open),
                '`' => self.substitution(&mut open, '`'),
                '$' if self.chars.next_if_eq(&'(').is_some() => self.substitution(&mut open, ')'),
                '$' if self.chars.peek() == Some(&'\'') => (),
                c => open.push(c),
            }
        }
        self.end_command(&mut open);
    }

    fn end_command(&mut self, open: &mut PartialCommand) {
        open.end_word();
        let words = std::mem::take(&mut open.words);
        if !words.is_empty() {
            self.found.push(words);
        }
    }

    fn quoted(&mut self, open: &mut PartialCommand) {
        open.word.get_or_insert_default();
        for c in self.chars.by_ref().take_while(|c| *c != '\'') {
            open.push(c);
        }
    }

    fn double_quoted(&mut self, open: &mut PartialCommand) {
        open.word.get_or_insert_default();
        while let Some(c) = self.chars.next() {
            match c {
                '"' => return,
                '\\' => match self.chars.next() {
                    Some(c @ ('"' | '\\' | '$' | '`')) => open.push(c),
                    Some('\n') | None => (),
                    Some(c) => open.word.get_or_insert_default().extend(['\\', c]),
                },
                '`' => self.substitution(open, '`'),
                '$' if self.chars.next_if_eq(&'(').is_some() => self.substitution(open, ')'),
                c => open.push(c),
            }
        }
    }

    /// What a command prints is not known; the command itself is read.
    fn substitution(&mut self, open: &mut PartialCommand, end: char) {
        open.word.get_or_insert_default();
        if self.depth < DEPTH_MAX {
            self.depth += 1;
            self.script(Some(end));
            self.depth -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_taken_apart_as_a_shell_would() {
        let told = |line: &str| {
            let commands = commands(line).into_iter();
            commands.map(|words| words.join("|")).collect::<Vec<_>>().join(" ; ")
        };
        for (line, commands) in [
            ("rm -rf a", "rm|-rf|a"),
            ("a && b; c | d &", "a ; b ; c ; d"),
            ("git commit -m 'run beforehand clear'", "git|commit|-m|run beforehand clear"),
            (r#"echo "a \"b\" \n" c\ d ''"#, r#"echo|a "b" \n|c d|"#),
            ("x >out 2>&1 <in", "x|out|2 ; 1|in"),
            ("(cd a; b) # c; d\ne", "cd|a ; b ; e"),
            ("echo \"$(beforehand clear --yes)\" b", "beforehand|clear|--yes ; echo||b"),
            ("echo `a b` $(c (d) e) f", "a|b ; c ; d ; e ; echo|||f"),
            ("{ a; }; f() { b; }", "a ; f ; b"),
            ("a \\\n b $'c'", "a|b|c"),
            ("A=1 b 'c", "A=1|b|c"),
            ("", ""),
        ] {
            assert_eq!(told(line), commands, "{line}");
        }
        assert!(!commands(&"$(".repeat(100_000)).iter().any(Vec::is_empty));
    }
}
