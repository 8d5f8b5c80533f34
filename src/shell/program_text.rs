//! Words of commands that are texts in a language with patterns, and the text of such a word without its
//! signs: in a search for paths in any text, the pattern of `awk '/data/ { print }'` would begin at the root
//! directory, and the operator of `$1 ~ $2` would be the home directory. A language is read no further than
//! that takes, and where the meaning of a slash is not clear, the text stays as it is.

use super::flags::{self, Field};
use crate::model::ProgramText;

/// Signs that may begin a path.
const SIGNS: [char; 2] = ['/', '~'];

/// The words among those of a command, the program's name first, that are texts of this kind and have
/// signs that begin no path.
pub(super) fn texts(words: &[Field]) -> Vec<ProgramText> {
    let program = words.first().and_then(Field::literal).unwrap_or_default();
    let program = program.rsplit('/').next().unwrap_or(program);
    if !words.iter().skip(1).any(|word| word.text.contains(SIGNS)) {
        return Vec::new();
    }
    let args: Vec<&str> =
        words.iter().skip(1).map(|word| word.literal().unwrap_or_default()).collect();
    let mut found = Vec::new();
    match program {
        "sed" | "gsed" | "ssed" => {
            let list = "* -e: -f: -l: --expression= --file= --line-length=";
            for script in scripts(list, &["-e", "--expression"], &["-f", "--file"], words) {
                add(&mut found, &script, sed(&script));
            }
        }
        "awk" | "gawk" | "mawk" | "nawk" | "original-awk" => {
            let list = "^ -F: -v: -e: -f: --source= --file= --field-separator= --assign=";
            for script in scripts(list, &["-e", "--source"], &["-f", "--file"], words) {
                add(&mut found, &script, code(&script, &['"']));
            }
            add_separators(&args, "F", &mut found);
        }
        "perl" | "ruby" | "node" | "nodejs" => {
            for pair in args.windows(2).filter(|pair| takes_program(program, pair[0])) {
                if !has_own_quotes(pair[1]) {
                    add(&mut found, pair[1], code(pair[1], &['"', '\'', '`']));
                }
            }
        }
        // With `--files` there is no pattern.
        "grep" | "egrep" | "fgrep" | "rg" if !args.contains(&"--files") => {
            let list = "* -e: -f: -A: -B: -C: -m: --regexp= --file=";
            for pattern in scripts(list, &["-e", "--regexp"], &["-f", "--file"], words) {
                add(&mut found, &pattern, Some(without_lone_slashes(&pattern)));
            }
        }
        "cut" | "paste" => add_separators(&args, "d", &mut found),
        "sort" => add_separators(&args, "t", &mut found),
        "column" => add_separators(&args, "s", &mut found),
        "tr" => {
            for set in args.iter().filter(|arg| !arg.starts_with('-')) {
                add(&mut found, set, Some(without_lone_slashes(set)));
            }
        }
        _ => (),
    }
    found
}

fn add(found: &mut Vec<ProgramText>, word: &str, plain: Option<String>) {
    let plain = plain.filter(|plain| plain != word && word.contains(SIGNS));
    found.extend(plain.map(|plain| ProgramText { word: word.to_owned(), plain }));
}

/// Whether a text follows this option of an interpreter, as in `perl -ne`.
fn takes_program(interpreter: &str, option: &str) -> bool {
    let letters = option.strip_prefix('-').unwrap_or_default();
    let is_cluster = letters.chars().all(|letter| letter.is_ascii_alphanumeric());
    let is_print = interpreter.starts_with("node") && matches!(option, "-p" | "--print");
    is_print || option == "--eval" || is_cluster && letters.ends_with(['e', 'E'])
}

/// The scripts that a command is given: the values of `options`, or else the first operand, unless a script
/// comes from one of the `files`.
fn scripts(list: &str, options: &[&str], files: &[&str], words: &[Field]) -> Vec<String> {
    let parsed = flags::parse(list, words.get(1..).unwrap_or_default());
    let given = parsed.hits.iter().filter(|hit| options.contains(&hit.name.as_str()));
    let mut values: Vec<&Field> = given.filter_map(|hit| hit.value.as_ref()).collect();
    if values.is_empty() && !parsed.has(files) {
        values.extend(parsed.operands.first());
    }
    values.into_iter().filter_map(Field::literal).map(str::to_owned).collect()
}

/// A separator is a sign, whether it is a word of its own or follows its option at once.
fn add_separators(args: &[&str], letter: &str, found: &mut Vec<ProgramText>) {
    let option = format!("-{letter}");
    for (at, arg) in args.iter().enumerate() {
        let value = match arg.strip_prefix(&option) {
            Some("") => args.get(at + 1).copied().unwrap_or_default(),
            Some(_) => arg,
            None => continue,
        };
        add(found, value, Some(without_lone_slashes(value)));
    }
}

/// A text without the slashes behind which no name begins.
fn without_lone_slashes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        let begins_name =
            chars.peek().is_some_and(|next| next.is_alphanumeric() || "._~-".contains(*next));
        if char != '/' || begins_name {
            plain.push(char);
        }
    }
    plain
}

/// A pattern without the backslashes before its slashes, which are no delimiters.
fn pattern(text: &str) -> String {
    without_lone_slashes(&text.replace("\\/", "/"))
}

/// A script of `sed`: addresses and the two sides of `s` and `y` without their delimiters. Other commands take
/// the rest of their line, which may name a file.
fn sed(script: &str) -> Option<String> {
    let mut plain = Vec::new();
    for line in script.lines() {
        // A text that goes on is no command.
        if line.ends_with('\\') {
            return None;
        }
        let mut rest = line;
        loop {
            rest = rest.trim_start_matches(|char: char| {
                char.is_ascii_digit() || char.is_whitespace() || ",;!${}+~IM".contains(char)
            });
            let mut chars = rest.chars();
            let Some(first) = chars.next() else { break };
            match first {
                '/' => {
                    let (address, after) = until_slash(chars.as_str())?;
                    plain.push(pattern(address));
                    rest = after;
                }
                's' | 'y' if chars.as_str().starts_with('/') => {
                    let (from, after) = until_slash(&chars.as_str()[1..])?;
                    let (to, after) = until_slash(after)?;
                    plain.extend([pattern(from), pattern(to)]);
                    let flags = after.trim_start_matches(|char: char| {
                        "gpiImM".contains(char) || char.is_ascii_digit()
                    });
                    rest = flags;
                }
                'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z' | '='
                | 'F' | 'q' | 'Q' => {
                    rest = chars.as_str();
                }
                _ => {
                    plain.push(rest.to_owned());
                    break;
                }
            }
        }
    }
    Some(plain.join(" "))
}

/// Splits a text at the next slash that is not escaped. `None` if that slash is inside of brackets, where some
/// take it for a character of the pattern.
fn until_slash(text: &str) -> Option<(&str, &str)> {
    let mut is_escaped = false;
    for (at, char) in text.char_indices() {
        match char {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '/' => {
                let before = &text[..at];
                let is_open = before.rfind('[').is_some_and(|open| !before[open..].contains(']'));
                return (!is_open).then(|| (before, &text[at + 1..]));
            }
            _ => (),
        }
    }
    None
}

/// A program in a language in which a path is a string. Outside of one, a slash divides or delimits a
/// pattern, and a tilde is an operator. `None` if quotes in patterns or comments make it unclear where a string is.
fn code(program: &str, quotes: &[char]) -> Option<String> {
    let mut plain = String::with_capacity(program.len());
    let mut rest = program;
    while let Some(at) = rest.find(|char: char| quotes.contains(&char) || "/~#\\".contains(char)) {
        plain.push_str(&rest[..at]);
        let sign = rest[at..].chars().next()?;
        let after = &rest[at + 1..];
        match sign {
            '/' => {
                let line = after.split('\n').next().unwrap_or_default();
                match until_slash(line) {
                    Some((found, _)) if !found.contains(quotes) => {
                        plain.push(' ');
                        plain.push_str(&pattern(found));
                        plain.push(' ');
                        rest = &after[found.len() + 1..];
                    }
                    None if !line.contains('/') => {
                        plain.push(' ');
                        rest = after;
                    }
                    Some(_) | None => return None,
                }
            }
            '~' => {
                plain.push(' ');
                rest = after;
            }
            '#' => {
                let line = after.split('\n').next().unwrap_or_default();
                if line.contains(quotes) {
                    return None;
                }
                plain.push('#');
                plain.push_str(line);
                rest = &after[line.len()..];
            }
            '\\' => {
                plain.push('\\');
                let escaped = after.chars().next().map_or(0, char::len_utf8);
                plain.push_str(&after[..escaped]);
                rest = &after[escaped..];
            }
            quote => {
                let end = string_end(after, quote)?;
                plain.push_str(&rest[at..=at + end + 1]);
                rest = &after[end + 1..];
            }
        }
    }
    plain.push_str(rest);
    Some(plain)
}

/// Where a string ends.
fn string_end(text: &str, quote: char) -> Option<usize> {
    let mut is_escaped = false;
    text.char_indices().find_map(|(at, char)| {
        let is_end = char == quote && !is_escaped;
        is_escaped = char == '\\' && !is_escaped;
        is_end.then_some(at)
    })
}

/// Whether a text may have strings or patterns between other signs than its quotes and slashes, as in Perl's
/// `q{/a/b}` and `<~/*>`, a here-document, or a comment of JavaScript.
fn has_own_quotes(text: &str) -> bool {
    let signs: Vec<char> = text.chars().collect();
    let opens = signs.windows(2).enumerate().any(|(at, pair)| {
        let begins = at
            .checked_sub(1)
            .and_then(|before| signs.get(before))
            .is_none_or(|it| !is_word_char(*it));
        let names = "qmsy%".contains(pair[0]) && (begins || pair[0] == '%');
        let is_longer = "qrwx".contains(pair[0]) && at > 0 && signs[at - 1] == 'q';
        let is_tr = pair[0] == 'r' && at > 0 && signs[at - 1] == 't';
        let delimits =
            !is_word_char(pair[1]) && !pair[1].is_whitespace() && !"/=;)".contains(pair[1]);
        (names || is_longer || is_tr) && delimits
    });
    opens || ["<<", "<~", "</", "<.", "<$", "//", "/*"].iter().any(|sign| text.contains(sign))
}

fn is_word_char(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(line: &str) -> Vec<String> {
        let words: Vec<Field> =
            shell_words::split(line).unwrap().iter().map(|word| Field::exact(word)).collect();
        texts(&words).into_iter().map(|text| text.plain).collect()
    }

    #[test]
    fn delimiters_go_and_paths_stay() {
        for (line, wanted) in [
            (r#"awk '/foo/ {print > "x"}' f"#, &[r#" foo  {print > "x"}"#][..]),
            (r"awk '/^\/data\// {print}'", &[" ^/data  {print}"]),
            (
                r#"awk '{sub(/a/, "/data/"); print $1/$2}'"#,
                &[r#"{sub( a , "/data/"); print $1 $2}"#],
            ),
            (r#"awk '/"/ {print "/data/x"}'"#, &[]),
            ("awk '$1 ~ /a|b/ && $2 !~ \"~/x\"'", &["$1    a|b  && $2 !  \"~/x\""]),
            ("perl -e 'unlink <~/x*>'", &[]),
            ("awk -F/ '{print $2}' /data/x", &["-F"]),
            ("awk -F / '{print $2}'", &[""]),
            ("sed -n '/a/,/b/p' f", &["a b"]),
            ("sed -i /x/d f", &["x"]),
            ("sed 's/ / /' /data/f", &["   "]),
            (r"sed -e 's/x/\/data\//' -e 1d", &["x /data"]),
            ("sed '/x/w /data/out'", &["x w /data/out"]),
            ("sed 's/x/y/w /data/out'", &["x y w /data/out"]),
            ("sed 's,^,/data/,'", &[]),
            ("sed '/[/]/d'", &[]),
            ("perl -ne 'print if /x/' /data/f", &["print if  x "]),
            ("perl -pi -e 's/x/y/' f", &["s x y "]),
            ("perl -e 'unlink q{/data/x}'", &[]),
            ("perl -e 'unlink \"/data/x\"'", &[]),
            ("node -e 'rm(\"/data/x\", /y/)'", &["rm(\"/data/x\",  y )"]),
            ("grep -E '^/' f", &["^"]),
            ("grep /data/x f", &[]),
            ("rg --files /", &[]),
            ("perl -p / f", &[]),
            ("cut -d/ -f2 /data/x", &["-d"]),
            ("tr / _", &[""]),
            ("rm /a/ /", &[]),
        ] {
            assert_eq!(plain(line), wanted, "{line}");
        }
    }
}
