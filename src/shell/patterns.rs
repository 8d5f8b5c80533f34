//! The user's own words on commands: `shell.always` and `shell.never`. Hides how patterns match.

use regex::{RegexSet, RegexSetBuilder};

use super::verdict::{CommandVerdict, destroys};
use crate::model::Level;

/// Programs that run their operands: to never look at them is to never look at anything.
const RUNNERS: &[&str] = &[
    "sh", "bash", "zsh", "dash", "ksh", "fish", "env", "sudo", "doas", "xargs", "eval", "exec",
    "command", "python", "python3", "node", "perl", "ruby", "php", "busybox", "find", "ssh",
    "nohup", "timeout", "nice",
];

/// Patterns such as `rm *`, matched against every simple command by its program's plain name.
/// Nothing is compiled where there are none.
#[derive(Clone, Debug, Default)]
pub struct Patterns {
    always: Option<RegexSet>,
    never: Option<RegexSet>,
}

impl Patterns {
    /// Reads the two lists of the settings; says which pattern is refused and why.
    ///
    /// # Errors
    ///
    /// Fails on a pattern that is empty or too large, and on one in `never` that names what can
    /// run anything.
    pub fn parse(always: &[String], never: &[String]) -> Result<Self, String> {
        for pattern in never {
            let program = pattern.split_whitespace().next().unwrap_or_default();
            let plain = program.rsplit('/').next().unwrap_or_default();
            let set = compile(&[plain.to_owned()])?;
            let is_open = RUNNERS.iter().any(|runner| fits(set.as_ref(), runner));
            if is_open || plain.contains(['*', '?']) {
                return Err(format!("`never` must not name `{program}`, which can run anything"));
            }
        }
        Ok(Self { always: compile(always)?, never: compile(never)? })
    }

    /// Raises or lowers the verdict on one simple command. What it runs inside is judged apart.
    pub(super) fn apply<'a>(
        &self,
        program: &str,
        words: impl Iterator<Item = &'a str>,
        verdict: CommandVerdict,
    ) -> CommandVerdict {
        if self.always.is_none() && self.never.is_none() {
            return verdict;
        }
        let line = words.fold(program.to_owned(), |line, word| line + " " + word);
        if fits(self.always.as_ref(), &line) {
            let raised = destroys("`shell.always` names it", verdict.targets.clone());
            return if verdict.level < Level::Destroys { raised } else { verdict };
        }
        if fits(self.never.as_ref(), &line) {
            return super::verdict::reads("`shell.never` names it");
        }
        verdict
    }
}

fn fits(patterns: Option<&RegexSet>, line: &str) -> bool {
    patterns.is_some_and(|patterns| patterns.is_match(line))
}

/// One expression for each pattern, which has to fit the whole line; `None` for no pattern.
fn compile(patterns: &[String]) -> Result<Option<RegexSet>, String> {
    if patterns.is_empty() {
        return Ok(None);
    }
    if patterns.iter().any(|pattern| pattern.trim().is_empty()) {
        return Err("a pattern is empty".to_owned());
    }
    let expressions = patterns.iter().map(|pattern| expression(pattern.trim()));
    let set = RegexSetBuilder::new(expressions).dot_matches_new_line(true).build();
    set.map(Some).map_err(|_| "a pattern is too large".to_owned())
}

/// `*` is any text and `?` any character; `rm *` fits `rm` alone as well.
fn expression(pattern: &str) -> String {
    let (pattern, end) = match pattern.strip_suffix(" *") {
        Some(program) => (program, "( .*)?"),
        None => (pattern, ""),
    };
    let text = regex::escape(pattern).replace(r"\*", ".*").replace(r"\?", ".");
    format!("^{text}{end}$")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn patterns_match_whole_commands() {
        let fits = |pattern, line| fits(compile(&list(&[pattern])).unwrap().as_ref(), line);
        assert!(fits("rm *", "rm -rf src") && fits("rm *", "rm") && !fits("rm *", "rmdir a"));
        assert!(fits("git push*", "git push -f") && !fits("git push", "git push -f"));
        assert!(fits("a*b*c", "a1b2b3c") && !fits("a*b?c", "abc"));
        assert!(fits("x.y (*)", "x.y (1\n2)") && !fits("x.y", "xzy"), "only `*` and `?` mean more");
    }

    #[test]
    fn never_must_not_open_everything() {
        for pattern in ["*", "b*", "bash *", "/bin/sh -c *", "?h", ""] {
            assert!(Patterns::parse(&[], &list(&[pattern])).is_err(), "{pattern}");
        }
        assert!(Patterns::parse(&list(&["*"]), &list(&["npm test*"])).is_ok());
    }
}
