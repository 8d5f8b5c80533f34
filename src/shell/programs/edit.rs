//! Line and screen editors that agents drive without a terminal.

use super::closed;
use crate::model::{Level, TargetAction};
use crate::shell::flags::Field;
use crate::shell::verdict::{CommandCall, CommandInput, CommandVerdict, destroys, reads, unknown};
use crate::shell::walk::ShellWalk;

/// Judges `ed` and `ex`: their commands come from standard input.
pub(in crate::shell) fn ed(walk: &mut ShellWalk<'_>, call: &CommandCall<'_>) -> CommandVerdict {
    if call.args().iter().any(|arg| arg.text == "-c" || arg.text.starts_with('+')) {
        return vim(walk, call);
    }
    let (parsed, verdict) =
        closed(walk, "-sEGlrvqe -p: --quiet --silent --prompt= %--version %--help", call.args());
    if verdict.level != Level::ReadOnly
        || parsed.operands.iter().any(|file| file.text.starts_with('!'))
    {
        return unknown("edits a file by commands we do not see");
    }
    match call.stdin {
        CommandInput::Text(script) if script.lines().all(only_prints) => reads("only prints"),
        CommandInput::Text(_)
        | CommandInput::Inherited
        | CommandInput::Pipe
        | CommandInput::File => edited(walk, &parsed.operands),
    }
}

fn edited(walk: &ShellWalk<'_>, files: &[Field]) -> CommandVerdict {
    let why = "the editor may rewrite it";
    destroys(why, files.iter().map(|file| walk.target(file, TargetAction::Modify, why)).collect())
}

/// Whether an editor command is an address and a command that prints or ends.
fn only_prints(line: &str) -> bool {
    let command = line
        .trim()
        .trim_start_matches([':', '%'])
        .trim_start_matches(|char: char| char.is_ascii_digit() || ",;$.+- ".contains(char));
    ["", "p", "n", "l", "=", "q", "q!", "Q", "qa", "qa!", "quit", "print", "set number", "set nu"]
        .contains(&command)
}

/// Judges `vim` and its kin: only commands on the line that print and end are harmless.
pub(in crate::shell) fn vim(walk: &mut ShellWalk<'_>, call: &CommandCall<'_>) -> CommandVerdict {
    let (parsed, verdict) = closed(walk, "-esEnRZ -c: %--version %--help", call.args());
    if parsed.talks() {
        return reads("only tells about the program");
    }
    let commands: Vec<&Field> = parsed
        .hits
        .iter()
        .filter(|hit| hit.name == "-c")
        .filter_map(|hit| hit.value.as_ref())
        .collect();
    let ends = commands.iter().any(|command| command.text.starts_with('q'));
    // Else it runs its own scripts first, and keeps a history.
    let is_ex = call.words.first().is_some_and(|name| name.text.ends_with("ex"));
    let is_silent = parsed.has(&["-s"]) && (is_ex || parsed.has(&["-e"]));
    // With two files a first `q` ends nothing, and it goes on with what it reads.
    let is_one = parsed.operands.len() <= 1 && !parsed.operands.iter().any(|file| file.splits);
    let ends =
        is_one && !call.words.first().is_some_and(|name| name.text.ends_with("diff")) && ends;
    let is_quiet = commands.iter().all(|command| command.literal().is_some_and(only_prints));
    if verdict.level == Level::ReadOnly && is_quiet && ends && is_silent {
        return reads("only prints");
    }
    edited(walk, &parsed.operands)
}

/// Judges `less`: a word that begins with `+` is a command to start with, `+!rm` among them.
pub(in crate::shell) fn pager(walk: &mut ShellWalk<'_>, call: &CommandCall<'_>) -> CommandVerdict {
    let list = "-# -aABcCdeEfFgGiIJKLmMnNqQrRsSuUVwWX -b: -h: -j: -p: -P: -x: -y: -z: >-o: >-O: >--log-file= --quit-if-one-screen \
         --RAW-CONTROL-CHARS --raw-control-chars --no-init --chop-long-lines --LINE-NUMBERS --line-numbers --ignore-case --quit-at-eof --squeeze-blank-lines";
    if call.args().iter().any(|arg| arg.text.starts_with('+')) {
        return unknown("may start with a command");
    }
    closed(walk, list, call.args()).1
}
