//! The user's own words on commands: `shell.always` and `shell.never`. Hides how patterns match.

use super::verdict::{Verdict, destroys};
use crate::model::Level;

/// Programs whose operands are programs: to never look at them is to never look at anything.
const RUNNERS: &[&str] = &[
    "sh", "bash", "zsh", "dash", "ksh", "fish", "env", "sudo", "doas", "xargs", "eval", "exec",
    "command", "python", "python3", "node", "perl", "ruby", "php", "busybox", "find", "ssh",
    "nohup", "timeout", "nice",
];

/// Patterns such as `rm *`, matched against every simple command by its program's plain name.
#[derive(Clone, Debug, Default)]
pub struct Patterns {
    always: Vec<String>,
    never: Vec<String>,
}

impl Patterns {
    /// Reads the two lists of the settings; says which pattern is refused and why.
    pub fn parse(always: &[String], never: &[String]) -> Result<Self, String> {
        for pattern in always.iter().chain(never) {
            if pattern.trim().is_empty() {
                return Err("a pattern is empty".to_owned());
            }
        }
        for pattern in never {
            let program = pattern.split_whitespace().next().unwrap_or_default();
            let plain = program.rsplit('/').next().unwrap_or_default();
            let is_open = RUNNERS.iter().any(|runner| matches(plain, runner));
            if is_open || plain.contains(['*', '?']) {
                return Err(format!("`never` must not name `{program}`, which can run anything"));
            }
        }
        let tidy = |list: &[String]| list.iter().map(|pattern| pattern.trim().to_owned()).collect();
        Ok(Self { always: tidy(always), never: tidy(never) })
    }

    /// Raises or lowers the verdict on one simple command. What it runs inside is judged apart.
    pub(super) fn apply<'a>(
        &self,
        program: &str,
        words: impl Iterator<Item = &'a str>,
        verdict: Verdict,
    ) -> Verdict {
        if self.always.is_empty() && self.never.is_empty() {
            return verdict;
        }
        let line = words.fold(program.to_owned(), |line, word| line + " " + word);
        if self.always.iter().any(|pattern| fits(pattern, &line)) {
            let raised = destroys("`shell.always` names it", verdict.targets.clone());
            return if verdict.level < Level::Destroys { raised } else { verdict };
        }
        if self.never.iter().any(|pattern| fits(pattern, &line)) {
            return super::verdict::reads("`shell.never` names it");
        }
        verdict
    }
}

/// `rm *` fits `rm` alone as well.
fn fits(pattern: &str, line: &str) -> bool {
    matches(pattern, line)
        || pattern.strip_suffix(" *").is_some_and(|program| matches(program, line))
}

/// Whether a text is what a pattern with `*` and `?` describes. Linear but for one way back.
fn matches(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut place) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while place < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, place));
                at += 1;
            }
            Some(&char) if char == '?' || Some(&char) == text.get(place) => {
                at += 1;
                place += 1;
            }
            Some(_) | None => match star {
                Some((from, seen)) => {
                    at = from + 1;
                    place = seen + 1;
                    star = Some((from, seen + 1));
                }
                None => return false,
            },
        }
    }
    pattern.get(at..).unwrap_or_default().iter().all(|&char| char == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn patterns_match_whole_commands() {
        assert!(fits("rm *", "rm -rf src") && fits("rm *", "rm") && !fits("rm *", "rmdir a"));
        assert!(fits("git push*", "git push -f") && !fits("git push", "git push -f"));
        assert!(matches("a*b*c", "a1b2b3c") && !matches("a*b?c", "abc"));
    }

    #[test]
    fn never_must_not_open_everything() {
        for pattern in ["*", "b*", "bash *", "/bin/sh -c *", "?h", ""] {
            assert!(Patterns::parse(&[], &list(&[pattern])).is_err(), "{pattern}");
        }
        assert!(Patterns::parse(&list(&["*"]), &list(&["npm test*"])).is_ok());
    }
}
