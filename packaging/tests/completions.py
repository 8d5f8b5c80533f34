"""The completions of the archive, each loaded by its own shell, which is then asked to complete."""

import os
import pty
import select
import signal
import time

from common import NotHere, clean, need, run, unpacked

# No answer takes as long, but on a machine that is busy with something else.
WAIT_S = 30
# What is typed, and what it must become or lead to.
CASES = [("beforehand rew", "rewind"), ("beforehand restore --dry", "--dry-run")]


def completions(packages, work):
    """Each shell completes a subcommand, and an option of a subcommand."""
    top = unpacked(packages, work)
    env = clean(work / "home", f"{top}:/usr/bin:/bin") | {"TERM": "dumb"}
    missing = []
    for shell, completed in SHELLS.items():
        try:
            need(shell)
        except NotHere:
            missing.append(shell)
            continue
        for typed, wanted in CASES:
            said = completed(top / "completions", typed, env)
            assert wanted in said, f"{shell} completes {typed!r} with {said!r}"
    if missing:
        print(f"completions: NOT RUN: there is no {', no '.join(missing)}", flush=True)


def bash(files, typed, env):
    words = typed.split()
    script = f"""source {files}/beforehand.bash
        complete -p beforehand >/dev/null || exit 1
        COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; COMP_LINE='{typed}'; COMP_POINT={len(typed)}
        _beforehand beforehand {words[-1]} {words[-2]}
        printf '%s\\n' "${{COMPREPLY[@]}}" """
    return run("bash", "--norc", "-c", script, env=env)


def fish(files, typed, env):
    return run("fish", "--no-config", "-c", f"source {files}/beforehand.fish; complete -C '{typed}'", env=env)


def zsh(files, typed, env):
    """By keys, since zsh completes nowhere else."""
    with Terminal(["zsh", "-f", "-i"], env) as terminal:
        terminal.say(f"fpath=({files} $fpath); autoload -U compinit; compinit -u -D; echo load''ed\n", "loaded")
        return terminal.say(f"{typed}\t", *(wanted for case, wanted in CASES if case == typed))


def elvish(files, typed, env):
    """On its own screen, since only there it has completers."""
    words = " ".join(f"'{word}'" for word in typed.split())
    with Terminal(["elvish", "-norc"], env) as terminal:
        terminal.say(f"eval (slurp < {files}/beforehand.elv); echo load''ed\n", "loaded")
        ask = f"each {{|it| put $it[stem] }} [($edit:completion:arg-completer[beforehand] {words})] | each {{|it| print $it' ' }}"
        return terminal.say(f"{ask}; echo tol''d\n", "told")


def pwsh(files, typed, env):
    script = f". {files}/beforehand.ps1; (TabExpansion2 '{typed}' {len(typed)}).CompletionMatches.CompletionText"
    return run("pwsh", "-NoProfile", "-Command", script, env=env)


SHELLS = {"bash": bash, "zsh": zsh, "fish": fish, "elvish": elvish, "pwsh": pwsh}


class Terminal:
    """A program with a terminal of its own."""

    def __init__(self, command, env):
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            os.execvpe(command[0], command, env)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.file)

    def say(self, text, awaited):
        """Types, and gives what was on the screen since, once `awaited` is there."""
        os.write(self.file, text.encode())
        seen, end = "", time.monotonic() + WAIT_S
        while awaited not in seen and time.monotonic() < end:
            if select.select([self.file], [], [], 0.1)[0]:
                seen += os.read(self.file, 1 << 16).decode(errors="replace")
        return seen
