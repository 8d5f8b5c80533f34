"""What the tests of packages share: running programs, and the world of someone who has just come."""

import hashlib
import os
import pathlib
import platform
import shutil
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent
STORY = HERE / "story.sh"

# What each kind of package calls the machine that runs the tests.
CPU = {"arm64": "aarch64"}.get(platform.machine(), platform.machine())
NAMES = {"x86_64": {"deb": "amd64", "npm": "x64"}, "aarch64": {"deb": "arm64", "npm": "arm64"}}[CPU]
SYSTEM = platform.system().lower()


class NotHere(Exception):
    """Something that a test needs cannot be had on this machine."""


def run(*command, **more):
    done = subprocess.run(command, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **more)
    if done.returncode:
        raise AssertionError(f"{' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            raise NotHere(f"there is no {program}")


def one(directory, pattern):
    found = [*pathlib.Path(directory).glob(pattern)]
    assert len(found) == 1, f"{pattern} in {directory}: {found}"
    return found[0]


def archive(packages):
    """The archive for this machine."""
    triple = "apple-darwin" if SYSTEM == "darwin" else "unknown-linux-musl"
    return one(packages, f"beforehand-*-{CPU}-{triple}.tar.gz")


def unpacked(packages, work):
    """The archive for this machine, unpacked below `work`."""
    run("tar", "-xzf", archive(packages), "-C", work)
    return one(work, "beforehand-*")


def wheel_file(packages):
    return one(packages, f"*_{CPU if SYSTEM != 'darwin' else platform.machine()}.whl")


def deb_file(packages):
    return one(packages, f"*_{NAMES['deb']}.deb")


def rpm_file(packages):
    return one(packages, f"*.{CPU}.rpm")


def clean(home, path="/usr/bin:/bin", **more):
    """The environment of someone who has just come: no cargo, no settings."""
    home.mkdir(parents=True, exist_ok=True)
    return {"HOME": str(home), "PATH": f"{path}", "LANG": "C.UTF-8", "TMPDIR": os.environ.get("TMPDIR", "/tmp"), **more}


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()
