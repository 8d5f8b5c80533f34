//! Programs that run others, shells, shell builtins, interpreters and editors.

use crate::shell::programs;
use crate::shell::row::{ProgramRow, Rule, row};

pub(super) const ROWS: &[ProgramRow] = &[
    // Wrappers: the flags are the wrapper's own, the number is how many operands it takes first.
    row("sudo doas", "", Rule::By(programs::sudo), "runs a command as another user"),
    row("env genv", "", Rule::By(programs::env), "runs a command in a changed environment"),
    row("xargs gxargs", "", Rule::By(programs::xargs), "runs a command on its input"),
    row("nice", "^ -# -n: --adjustment=", Rule::Wraps(0), "runs a command"),
    row("nohup setsid", "^ -cfw --ctty --fork --wait", Rule::Wraps(0), "runs a command"),
    row(
        "timeout gtimeout",
        "^ -v -f -p -k: -s: --signal= --kill-after= --preserve-status --foreground --verbose",
        Rule::Wraps(1),
        "runs a command",
    ),
    row(
        "time gtime",
        "^ -pvaql -f: >-o: >--output= --format= --portability --verbose --append",
        Rule::Wraps(0),
        "runs a command",
    ),
    row("stdbuf", "^ -i: -o: -e: --input= --output= --error=", Rule::Wraps(0), "runs a command"),
    row("ionice", "^ -t -c: -n: --class= --classdata= --ignore", Rule::Wraps(0), "runs a command"),
    row("busybox toybox", "^ %--list %--help", Rule::Wraps(0), "runs a command"),
    row(
        "chrt taskset flock unbuffer caffeinate chronic npx bunx pnpx \
         parallel entr watch watchexec hyperfine strace ltrace perf gdb valgrind at batch logrotate",
        "%--version %-V",
        Rule::Unknown,
        "runs commands",
    ),
    row("screen", "@ %-ls %-list %-v %--version", Rule::Unknown, "runs commands"),
    // Shells and what they have built in.
    row("sh bash dash zsh ksh ash rbash", "", Rule::By(programs::shell), "runs a script"),
    row(
        "fish csh tcsh pwsh powershell cmd nu xonsh elvish",
        "%--version %-v",
        Rule::Unknown,
        "runs a script in a language we do not read",
    ),
    row("eval", "", Rule::By(programs::eval), "runs its words as a script"),
    row("exec", "", Rule::By(programs::exec), "runs a command"),
    row("command", "", Rule::By(programs::command), "runs a command, or looks for it"),
    row("builtin", "", Rule::By(programs::builtin), "runs a builtin"),
    row("trap", "", Rule::By(programs::trap), "runs a script later"),
    row("cd chdir", "", Rule::By(programs::cd), "changes the directory"),
    row("pushd", "", Rule::By(programs::pushd), "changes the directory"),
    row("popd", "", Rule::By(programs::popd), "changes the directory"),
    row(
        "declare typeset local export readonly let unset",
        "",
        Rule::By(programs::declare),
        "sets variables",
    ),
    row("read mapfile readarray getopts", "", Rule::By(programs::read), "reads into variables"),
    row("test [", "", Rule::By(programs::test), "only tests"),
    row("set shopt", "", Rule::By(programs::set), "changes how the shell reads"),
    row("alias", "", Rule::By(programs::alias), "makes a name run something else"),
    row("exit logout", "", Rule::By(programs::words), "ends the shell"),
    row("hash", "-r", Rule::ReadsAtMost(0), "makes a name run something else"),
    row("history", "-#", Rule::ReadsAtMost(1), "changes the history file"),
    row(
        "source . enable bind complete compgen compopt coproc fc unalias",
        "",
        Rule::Unknown,
        "runs or loads something we do not see",
    ),
    // Interpreters and editors.
    row(
        "python pypy perl ruby php lua Rscript julia elixir erl tclsh osascript expect \
         m4",
        "%--version %-V %-v",
        Rule::Unknown,
        "runs a program in a language we do not read",
    ),
    row("node nodejs", "", Rule::By(programs::node), "runs a program"),
    row("awk gawk mawk nawk original-awk", "", Rule::By(programs::awk), "runs an awk program"),
    // Its language knows neither files nor programs.
    row("bc", "-lqsiw", Rule::ReadsAtMost(0), "calculates by a file"),
    row("dc", "", Rule::By(programs::dc), "calculates, or runs commands"),
    row("ed ex", "", Rule::By(programs::ed), "edits a file"),
    row("vi vim nvim view vimdiff", "", Rule::By(programs::vim), "edits a file"),
    row(
        "emacs nano pico micro code subl gedit kate hx helix",
        "%--version %-V",
        Rule::Unknown,
        "is an editor",
    ),
];
