//! What a command line can do, judged without running it. Knows the shell's grammar and what
//! common programs do with their words; sees neither disk, clock nor environment.
//!
//! `syntax` is the grammar, `brush` reads it, `guard` keeps the parser from harm, `walk` goes
//! through a script, `judge` finds the `row` of a command in the `table`, and `programs` applies it.

mod braces;
mod brush;
mod effort;
mod flags;
mod guard;
mod judge;
mod names;
mod patterns;
mod program_text;
mod programs;
mod recipes;
mod row;
mod scripts;
mod syntax;
mod table;
#[cfg(test)]
mod tests;
mod tool;
mod verdict;
mod walk;

use std::path::{Path, PathBuf};

pub use patterns::Patterns;

use crate::model::{Certainty, Effect, Finding, Intent, Language, Level, Simple, Target};
use judge::PROGRAMS;
use walk::{LineFiles, ShellWalk};

/// What judging needs to know of the world.
#[derive(Clone, Debug, Default)]
pub struct ShellContext {
    /// The user's home, absolute, where known: what `~` and `$HOME` stand for.
    pub home: Option<String>,
    /// The user's patterns.
    pub rules: Patterns,
    /// How to read the scripts that a line runs.
    pub scripts: Option<ScriptReader>,
    /// The script file that is judged, absolute: what `$0` stands for.
    pub script: Option<String>,
}

/// Reads script files.
#[derive(Clone, Debug)]
pub struct ScriptReader {
    /// The directory in which the line runs.
    pub dir: PathBuf,
    /// The text of a file, if it is a small one.
    pub read: fn(&Path) -> Option<String>,
}

/// Concludes what a call can do to files from what the agent says it wants.
pub fn effect(intent: &Intent, scope: &ShellContext) -> Effect {
    match intent {
        Intent::Read => Effect::None,
        Intent::Write(paths) | Intent::Edit(paths) => Effect::Touches(paths.clone()),
        Intent::Run { command, language } => run_effect(classify(command, *language, scope)),
        Intent::Unknown(tool) => tool::effect(tool, scope),
    }
}

fn run_effect(finding: Finding) -> Effect {
    match finding.level {
        Level::ReadOnly => Effect::None,
        Level::Creates => match made(&finding) {
            Some(paths) => Effect::Touches(paths),
            None => Effect::Unknown(finding),
        },
        Level::Destroys => Effect::Destroys(finding),
        // What else the line does hides nothing of what it destroys.
        Level::Unknown if finding.commands.iter().any(|it| it.level == Level::Destroys) => {
            Effect::Destroys(finding)
        }
        Level::Unknown => Effect::Unknown(finding),
    }
}

/// The paths a line makes, if it says them all.
fn made(finding: &Finding) -> Option<Vec<PathBuf>> {
    let names_all = finding
        .commands
        .iter()
        .filter(|simple| simple.level != Level::ReadOnly)
        .all(|simple| !simple.targets.is_empty());
    let exact = finding.targets().all(|target| target.certainty == Certainty::Exact);
    (names_all && exact)
        .then(|| finding.targets().map(|target| PathBuf::from(&target.path)).collect())
}

/// Judges a command line. Never fails, never panics and takes 50 ms at most, and as much for each of a few scripts that
/// it runs: what cannot be read is [`Level::Unknown`].
pub fn classify(line: &str, language: Language, scope: &ShellContext) -> Finding {
    match language {
        Language::Shell => shell(line, scope),
        Language::PowerShell => foreign(line, scope),
        Language::Code => {
            let finding = unknown(line, "program text can do anything", scope);
            Finding { changes_shell: false, ..finding }
        }
    }
}

/// Every command that the tables know, with its list of options: what `tests/oracle.rs` tries out.
pub fn known_commands() -> Vec<(String, &'static str)> {
    table::every()
}

/// Whether a target is no more than a place that a command names.
pub fn is_mention(target: &Target) -> bool {
    target.reason == walk::mentions::REASON
}

/// Whether this thread is judging a line. A panic of the parser is then an answer, and is not printed.
pub fn is_judging() -> bool {
    guard::is_judging()
}

fn shell(line: &str, scope: &ShellContext) -> Finding {
    let (mut finding, files) = shell_line(line, scope);
    if let Some(reader) = &scope.scripts {
        scripts::add_named(&mut finding, &files.data, reader, scope);
        finding.commands.extend(scripts::destroying(files.scripts, reader, scope));
    }
    finding
}

/// Judges a line, and tells which files it leads to.
fn shell_line(line: &str, scope: &ShellContext) -> (Finding, LineFiles) {
    let broken = |reason| (unknown(line, reason, scope), LineFiles::default());
    if is_plain(line) {
        return walked(line, scope);
    }
    if let Some(reason) = guard::refuse(line) {
        return broken(reason);
    }
    let judged = if guard::is_small(line) {
        guard::run_here(|| walked(line, scope))
    } else {
        let (text, inner) = (line.to_owned(), scope.clone());
        guard::run(move || walked(&text, &inner))
    };
    judged.unwrap_or_else(|| broken("took too long to judge, or broke the parser"))
}

fn walked(line: &str, scope: &ShellContext) -> (Finding, LineFiles) {
    let grammar = brush::Brush::default();
    let mut walk = ShellWalk::new(&grammar, PROGRAMS, scope);
    if is_plain(line) {
        walk.plain(line);
    } else {
        walk.script(line);
    }
    if walk.has_set() {
        // What is true of all values of a variable is known when all of the line has been seen.
        walk = walk.again();
        walk.script(line);
    }
    let (is_guess, changes_shell, in_background) =
        (walk.has_followed(), walk.changes_shell, walk.in_background);
    let (mut proof, files) = (walk.unbelieving(), walk.take_files());
    let texts = std::mem::take(&mut walk.texts);
    let commands = walk.into_found();
    let level = walk::worst(&commands);
    if level > Level::Creates || !is_guess {
        return (Finding { level, commands, texts, changes_shell, in_background }, files);
    }
    // What a variable holds when it is used is a guess: it may have been set in a branch that did
    // not run, or again by a trap. A guess finds targets, and proves nothing harmless.
    proof.script(line);
    let level = level.max(walk::worst(&proof.found));
    let changes_shell = changes_shell || proof.changes_shell;
    (Finding { level, commands, texts, changes_shell, in_background }, files)
}

/// Whether a line is words without any meaning to the shell, so that no parser is needed. A first
/// word with `=` would be an assignment, and a keyword begins something longer.
fn is_plain(line: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b" -_./:,@+%=".contains(&byte);
    let first = line.split(' ').find(|word| !word.is_empty());
    let keywords = [
        "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac",
        "in", "function", "select", "time", "coproc",
    ];
    line.len() < 4096
        && line.bytes().all(is_word)
        && first.is_some_and(|word| !word.contains('=') && !keywords.contains(&word))
}

/// Lines for shells we have no grammar of: only a plain list of words that plainly looks.
fn foreign(line: &str, scope: &ShellContext) -> Finding {
    let mut words = line.split_whitespace();
    let first = words.next().unwrap_or_default().to_ascii_lowercase();
    let looks = [
        "get-childitem", "get-content", "get-location", "get-item", "get-date", "get-process",
        "get-help", "get-command", "select-string", "test-path", "resolve-path", "dir", "ls",
        "type", "cat", "pwd", "echo", "where", "whoami", "hostname", "ver", "findstr", "tree",
        "write-output", "write-host",
    ];
    let is_word = |char: char| char.is_alphanumeric() || " -_./\\:,*?'\"".contains(char);
    if line.chars().all(is_word) && looks.contains(&first.as_str()) {
        return Finding {
            level: Level::ReadOnly,
            commands: vec![simple(line, Level::ReadOnly, "only looks")],
            ..Finding::default()
        };
    }
    unknown(line, "a command in a language we do not read", scope)
}

fn unknown(line: &str, reason: &str, scope: &ShellContext) -> Finding {
    let targets = walk::mentions::of_text(line, scope.home.as_deref());
    let simple = Simple { targets, ..simple(line, Level::Unknown, reason) };
    Finding {
        level: Level::Unknown,
        commands: vec![simple],
        changes_shell: true,
        ..Finding::default()
    }
}

/// A line is cut there for showing.
const SHOWN_CHARS: usize = 120;

fn simple(line: &str, level: Level, reason: &str) -> Simple {
    let mut text: String = line.chars().take(SHOWN_CHARS).collect();
    if text.len() < line.len() {
        // A reader of the text must know that it is not the whole line.
        text.push('…');
    }
    Simple { text, level, reason: reason.to_owned(), targets: Vec::new() }
}
