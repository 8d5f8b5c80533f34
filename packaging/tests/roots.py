"""Clean Debian roots: what the README says, done in them, with nothing left behind.

    roots.py PACKAGES ROOT KIND CLIENTS    the story with a real client, in a network of its own
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True

from common import NAMES, STORY, TOP, NotHere, deb_file, need, one, run, wheel_file

sys.path.insert(0, str(TOP / "tests/clients"))

HOME = "/home/person"
# What each kind needs that is not of a Debian with nothing in it but apt.
NEEDS = {"deb": [], "npm": ["npm"], "pipx": ["pipx"]}
# A row of the README's table, by a word of its first cell.
ROWS = {"deb": "Debian", "npm": "npm", "pipx": "pipx"}


def debian_root(work, include=()):
    """A Debian with nothing in it but apt, and `include`, unpacked."""
    need("mmdebstrap", "unshare")
    if os.geteuid() != 0:
        raise NotHere("only root may enter another root")
    # The same release as here, since its keys are here.
    release = dict(line.split("=", 1) for line in pathlib.Path("/etc/os-release").read_text().split("\n") if "=" in line)
    more = [f"--include={','.join(include)}"] if include else []
    command = ["timeout", "400", "mmdebstrap", "--quiet", "--variant=apt", *more, release["VERSION_CODENAME"], work / "root.tar"]
    made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode:
        raise NotHere(f"a Debian root cannot be had: {made.stderr.strip().splitlines()[-1:] or 'it took too long'}")
    root = work / "root"
    root.mkdir()
    run("tar", "-xf", work / "root.tar", "-C", root)
    (root / HOME.lstrip("/") / "packages").mkdir(parents=True)
    return root


def listing(root):
    """Every path of a root but what dpkg and apt note of themselves."""
    notes = ("var/lib/dpkg", "var/lib/apt", "var/cache", "var/log", "tmp", "run", "dev", "proc", HOME.lstrip("/") + "/packages")
    found = (path.relative_to(root).as_posix() for path in root.rglob("*"))
    return {path for path in found if not path.startswith(notes)}


def readme_command(kind):
    """What the README tells to type."""
    row = re.search(rf"^\| [^|]*\b{ROWS[kind]}\b[^|]*\| `([^`]+)`", (TOP / "README.md").read_text(), re.M)
    assert row, f"the README has no row for {ROWS[kind]}"
    return row[1]


class Inside:
    """Runs things in a root, as someone who has just come: no settings, no network."""

    def __init__(self, root, *, unshared=("--net",)):
        self.root, self.unshared = root, unshared

    def command(self, script, env=()):
        return ["unshare", "--mount", "--pid", "--fork", *self.unshared, f"--root={self.root}", "--mount-proc", "/usr/bin/env", "-i",
                f"HOME={HOME}", f"PATH={HOME}/.local/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL=C.UTF-8",
                "DEBIAN_FRONTEND=noninteractive", *env, "sh", "-c", script]

    def __call__(self, script, env=()):
        return run(*self.command(f"cd ~ && {script}", env))


def put_packages(packages, root):
    """What `packaging/release` makes for this machine, where the README has it."""
    npm = [*pathlib.Path(packages).glob("beforehand-[0-9]*.tgz"), one(packages, f"beforehand-linux-{NAMES['npm']}-*.tgz")]
    for path in [deb_file(packages), wheel_file(packages), *npm]:
        shutil.copy(path, root / HOME.lstrip("/") / "packages")


def deb(packages, work):
    """The README's command installs it; it is used, removed and purged, and nothing is left."""
    root = debian_root(work)
    before = listing(root)
    put_packages(packages, root)
    shutil.copy(STORY, root / HOME.lstrip("/") / "packages")
    inside = Inside(root)
    install = typed("deb")
    inside(f"! command -v cargo && {install}")
    inside("sh ~/packages/story.sh /usr/bin/beforehand")
    inside("dpkg --verify beforehand && test -s /usr/share/zsh/vendor-completions/_beforehand")
    quiet = inside("apt-get remove -qq -y beforehand && ! test -e /usr/bin/beforehand")
    assert "still registered" not in quiet, quiet
    record = "~/.local/state/beforehand/installed.json"
    told = inside(f"{install} && mkdir -p $(dirname {record}) && touch {record} && "
                  f"echo 'person:x:1000:1000::{HOME}:/bin/sh' >>/etc/passwd && apt-get remove -qq -y beforehand; "
                  "sed -i '/^person:/d' /etc/passwd; rm -r ~/.local")
    assert "registered for person;" in told and "`beforehand uninstall`" in told, told
    inside(f"{install} && apt-get purge -qq -y beforehand && ! dpkg -s beforehand 2>/dev/null")
    left = listing(root) - before
    assert not left, f"left behind: {sorted(left)}"


def clients(packages, work):
    """In a clean root for each kind: the README's command, and Claude Code itself, from `install` to `uninstall`."""
    kept = os.environ.get("BEFOREHAND_CLIENTS")
    if not kept:
        raise NotHere("BEFOREHAND_CLIENTS names no directory for the client, which is fetched into it once (360 MB)")
    import fetch

    pathlib.Path(kept).mkdir(exist_ok=True)
    fetch.fetch(kept, "claude-code")
    for kind, needed in NEEDS.items():
        place = work / kind
        place.mkdir()
        root = debian_root(place, needed)
        run("unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", sys.executable, __file__, packages, root, kind, kept)
        print(f"clients: {kind}: ok", flush=True)
        shutil.rmtree(place)


def with_a_client(packages, root, kind, kept):
    """A real client in a root that `beforehand` comes into by the README's command."""
    from clients import ClaudeCode
    from model import MAIN, Model

    home = root / HOME.lstrip("/")
    put_packages(packages, root)
    model, inside = Model(), Inside(root, unshared=())
    project = pathlib.Path(HOME, "project")
    client = ClaudeCode(pathlib.Path("/opt"), home, project, model.url)
    client.set_up(False)
    program = pathlib.Path(kept) / "anthropic-ai-claude-code-linux-x64"
    (root / "opt").mkdir(exist_ok=True)
    shutil.copytree(program, root / "opt" / program.name)
    (home / "project/src").mkdir(parents=True)
    (home / "project/src/notes.txt").write_text("the only copy")
    settings = (home / ".claude/settings.json").read_bytes()
    before = listing(root)

    inside("! command -v cargo && ! command -v beforehand")
    inside(typed(kind))
    inside("beforehand install claude-code --yes")
    model.play([[client.write("new.txt", "new\n")], [client.shell("rm -rf src")], "done"])
    words = " ".join(f"'{word}'" for word in client.command(f"{MAIN}: go"))
    inside(f"cd project && {words}", [f"{key}={value}" for key, value in client.env().items()])
    assert not model.faults and not model.left(), model.faults
    assert not (home / "project/src").exists() and (home / "project/new.txt").exists(), "the client did not do it"
    inside("cd project && beforehand restore 1 --yes")
    assert (home / "project/src/notes.txt").read_text() == "the only copy"
    assert not (home / "project/new.txt").exists()
    told = inside("cd project && beforehand doctor || true")
    assert re.search(r"claude code +ok +hook in ~/.claude/settings.json, .* 2 of 2 calls seen", told), told

    inside("beforehand uninstall --yes")
    assert (home / ".claude/settings.json").read_bytes() == settings
    inside("rm -rf ~/.local/state/beforehand ~/.config/beforehand")
    inside(REMOVED[kind])
    inside("! command -v beforehand")
    # What the client and the package managers write of themselves stays theirs.
    theirs = (f"{HOME}/.claude", f"{HOME}/.npm", f"{HOME}/.cache", f"{HOME}/.local/state", f"{HOME}/.local/share/claude", f"{HOME}/.local/pipx")
    left = {path for path in listing(root) - before if not f"/{path}".startswith(theirs) and path not in SHARED}
    assert not left, f"left behind: {sorted(left)}"
    ours = [path for path in listing(root) - before if "beforehand" in path]
    assert not ours, f"left behind: {ours}"


# Directories that others use too, which package managers leave.
OWN_SHARED = [".config", ".local", ".local/bin", ".local/share", ".local/share/man", ".local/share/man/man1"]
SHARED = {"usr/local/lib/node_modules", *(f"{HOME.lstrip('/')}/{path}" for path in OWN_SHARED)}

REMOVED = {
    "deb": "apt-get purge -qq -y beforehand",
    "npm": f"npm uninstall -g beforehand beforehand-linux-{NAMES['npm']}",
    "pipx": "pipx uninstall beforehand",
}


def typed(kind):
    """The README's command, for a shell that nobody sits at."""
    command = readme_command(kind)
    return command.replace("apt ", "apt-get -qq -y ") if kind == "deb" else command


if __name__ == "__main__":
    packages, root, kind, kept = sys.argv[1:]
    with_a_client(packages, pathlib.Path(root), kind, kept)
