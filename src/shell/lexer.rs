//! Cuts program text of four languages into names, texts and marks; just well enough to tell a
//! name that is run from one that is only mentioned. What it cannot cut it refuses.

/// Which language the text is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tongue {
    Python,
    JavaScript,
    Ruby,
    Perl,
}

/// A piece of program text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// An identifier or keyword.
    Name(String),
    /// A string.
    Text(String),
    /// A number or a regular expression.
    Value,
    /// Any other character.
    Mark(char),
}

/// What a text is made of.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    /// In order.
    pub(super) tokens: Vec<Token>,
    /// Code inside strings, to be judged as well.
    pub(super) inner: Vec<String>,
}

/// Cuts a text, or says nothing if it cannot.
pub(super) fn cut(tongue: Tongue, text: &str) -> Option<Pieces> {
    let mut lexer =
        Lexer { tongue, chars: text.chars().collect(), at: 0, pieces: Pieces::default() };
    while lexer.at < lexer.chars.len() {
        lexer.step()?;
    }
    Some(lexer.pieces)
}

struct Lexer {
    tongue: Tongue,
    chars: Vec<char>,
    at: usize,
    pieces: Pieces,
}

impl Lexer {
    fn peek(&self, ahead: usize) -> char {
        self.chars.get(self.at + ahead).copied().unwrap_or('\0')
    }

    fn push(&mut self, token: Token) {
        self.pieces.tokens.push(token);
    }

    fn step(&mut self) -> Option<()> {
        let char = self.peek(0);
        let is_script = self.tongue == Tongue::JavaScript;
        match char {
            '#' if !(is_script || self.tongue == Tongue::Perl && self.after_sigil()) => {
                self.comment();
            }
            '/' if is_script && self.peek(1) == '/' => self.comment(),
            '/' if is_script && self.peek(1) == '*' => self.block_comment()?,
            '`' if is_script => self.string('`', false)?,
            '`' => return None,
            '\'' | '"'
                if self.tongue == Tongue::Python
                    && self.peek(1) == char
                    && self.peek(2) == char =>
            {
                self.triple(char, "")?;
            }
            '\'' | '"' => {
                self.string(char, char == '"' && !is_script && self.tongue != Tongue::Python)?;
            }
            '/' if self.tongue != Tongue::Python && self.expects_value() => self.regex('/')?,
            '%' if self.tongue == Tongue::Ruby && self.expects_value() && self.peek(1) != ' ' => {
                self.percent()?;
            }
            '<' if self.tongue == Tongue::Ruby
                && self.peek(1) == '<'
                && "~-\"'".contains(self.peek(2)) =>
            {
                return None;
            }
            char if char.is_alphabetic() || char == '_' => self.name()?,
            char if char.is_ascii_digit() => {
                while self.peek(0).is_ascii_alphanumeric() || self.peek(0) == '_' {
                    self.at += 1;
                }
                self.push(Token::Value);
            }
            char if char.is_whitespace() && char != '\n' => self.at += 1,
            char => {
                self.at += 1;
                self.push(Token::Mark(char));
            }
        }
        Some(())
    }

    fn after_sigil(&self) -> bool {
        matches!(self.pieces.tokens.last(), Some(Token::Mark('$')))
    }

    fn comment(&mut self) {
        while self.at < self.chars.len() && self.peek(0) != '\n' {
            self.at += 1;
        }
    }

    fn block_comment(&mut self) -> Option<()> {
        self.at += 2;
        while !(self.peek(0) == '*' && self.peek(1) == '/') {
            if self.at >= self.chars.len() {
                return None;
            }
            self.at += 1;
        }
        self.at += 2;
        Some(())
    }

    fn expects_value(&self) -> bool {
        match self.pieces.tokens.last() {
            None => true,
            Some(Token::Mark(mark)) => !")]}".contains(*mark),
            Some(Token::Name(name)) => [
                "if", "unless", "and", "or", "not", "print", "puts", "p", "return", "split",
                "grep", "map", "when", "while", "until", "x", "say",
            ]
            .contains(&name.as_str()),
            Some(Token::Text(_) | Token::Value) => false,
        }
    }

    /// A string up to `end`; code inside it is kept for later.
    fn string(&mut self, end: char, interpolates: bool) -> Option<()> {
        self.at += 1;
        let text = self.until(end)?;
        if interpolates || end == '`' {
            self.interpolated(&text)?;
        }
        self.push(Token::Text(text));
        Some(())
    }

    fn until(&mut self, end: char) -> Option<String> {
        let mut text = String::new();
        loop {
            let char = *self.chars.get(self.at)?;
            self.at += 1;
            match char {
                '\\' => {
                    // An escape may spell anything, so the text is no longer what it looks like.
                    let next = *self.chars.get(self.at)?;
                    self.at += 1;
                    text.push('\\');
                    text.push(next);
                }
                char if char == end => return Some(text),
                char => text.push(char),
            }
        }
    }

    fn interpolated(&mut self, text: &str) -> Option<()> {
        let open = match self.tongue {
            Tongue::JavaScript => "${",
            Tongue::Ruby => "#{",
            Tongue::Perl => {
                // A dereferenced block is code.
                return (!text.contains("@{") && !text.contains("${")).then_some(());
            }
            Tongue::Python => "{",
        };
        let mut rest = text.replace("{{", "").replace("}}", "");
        while let Some(start) = rest.find(open) {
            let tail = rest.get(start + open.len()..)?.to_owned();
            let end = tail.find('}')?;
            let inner = tail.get(..end)?;
            if inner.contains('{') {
                return None;
            }
            self.pieces.inner.push(inner.to_owned());
            tail.get(end..)?.clone_into(&mut rest);
        }
        Some(())
    }

    fn triple(&mut self, quote: char, prefix: &str) -> Option<()> {
        self.at += 3;
        let mut text = String::new();
        while !(self.peek(0) == quote && self.peek(1) == quote && self.peek(2) == quote) {
            text.push(*self.chars.get(self.at)?);
            self.at += 1;
        }
        self.at += 3;
        if prefix.contains(['f', 'F']) {
            self.interpolated(&text)?;
        }
        self.push(Token::Text(text));
        Some(())
    }

    fn regex(&mut self, end: char) -> Option<()> {
        self.at += 1;
        let text = self.until(end)?;
        self.pattern(&text)?;
        self.flags()?;
        self.push(Token::Value);
        Some(())
    }

    fn pattern(&mut self, text: &str) -> Option<()> {
        if text.contains("(?{") || text.contains("(??{") {
            return None;
        }
        if self.tongue == Tongue::JavaScript { Some(()) } else { self.interpolated(text) }
    }

    /// Flags of a regular expression; `e` runs the replacement.
    fn flags(&mut self) -> Option<()> {
        while self.peek(0).is_ascii_alphabetic() {
            if self.peek(0) == 'e' {
                return None;
            }
            self.at += 1;
        }
        Some(())
    }

    fn percent(&mut self) -> Option<()> {
        let kind = self.peek(1);
        let (skip, open) = if kind.is_ascii_alphabetic() { (3, self.peek(2)) } else { (2, kind) };
        if !"wWiIqQ([{".contains(kind) || open.is_alphanumeric() {
            return None;
        }
        self.at += skip;
        let text = self.until(closing(open))?;
        self.interpolated(&text)?;
        self.push(Token::Text(text));
        Some(())
    }

    fn name(&mut self) -> Option<()> {
        let mut name = String::new();
        while self.peek(0).is_alphanumeric() || self.peek(0) == '_' {
            name.push(self.peek(0));
            self.at += 1;
        }
        let next = self.peek(0);
        if self.tongue == Tongue::Python && "'\"".contains(next) && next != '\0' && name.len() <= 2
        {
            return self.prefixed(&name, next);
        }
        let after_mark = matches!(
            self.pieces.tokens.last(),
            Some(Token::Mark('$' | '@' | '%' | '>' | '{' | '&' | '-'))
        );
        if self.tongue == Tongue::Perl && !after_mark {
            match name.as_str() {
                "q" | "qq" | "qw" | "m" | "qr" => return self.quote_like(&name),
                "s" | "tr" | "y" => return self.substitution(&name),
                _ => {}
            }
        }
        if self.tongue == Tongue::Ruby && "?!".contains(next) && next != '\0' && self.peek(1) != '='
        {
            self.at += 1;
        }
        self.push(Token::Name(name));
        Some(())
    }

    fn prefixed(&mut self, prefix: &str, quote: char) -> Option<()> {
        if self.peek(1) == quote && self.peek(2) == quote {
            return self.triple(quote, prefix);
        }
        self.at += 1;
        let text = self.until(quote)?;
        if prefix.contains(['f', 'F']) {
            self.interpolated(&text)?;
        }
        self.push(Token::Text(text));
        Some(())
    }

    fn delimiter(&mut self) -> Option<char> {
        let open = self.peek(0);
        let is_plain = !open.is_alphanumeric()
            && !open.is_whitespace()
            && open != '='
            && open != ','
            && open != '\0'
            && open != ';';
        self.at += 1;
        is_plain.then_some(open)
    }

    fn quote_like(&mut self, name: &str) -> Option<()> {
        let open = self.delimiter()?;
        let text = self.until(closing(open))?;
        if name == "m" || name == "qr" {
            self.pattern(&text)?;
            self.flags()?;
            self.push(Token::Value);
        } else {
            self.interpolated(&text)?;
            self.push(Token::Text(text));
        }
        Some(())
    }

    fn substitution(&mut self, name: &str) -> Option<()> {
        let open = self.delimiter()?;
        let pattern = self.until(closing(open))?;
        if closing(open) != open && self.delimiter()? != open {
            return None;
        }
        let replacement = self.until(closing(open))?;
        if name == "s" {
            self.pattern(&pattern)?;
            self.interpolated(&replacement)?;
        }
        self.flags()?;
        self.push(Token::Value);
        Some(())
    }
}

fn closing(open: char) -> char {
    match open {
        '(' => ')',
        '[' => ']',
        '{' => '}',
        '<' => '>',
        other => other,
    }
}
