"""What every client goes through, and what must be true after each step."""

import copy
import json
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess

from clients import Client
from model import MAIN, SUB, Model

TIME_MAX_S = float(os.environ.get("CLIENT_TIME_MAX_S", "120"))
STATE = ".local/state/beforehand"


class Failure(Exception):
    """Something was not as it must be."""


class World:
    """A HOME, a project, a model, and one client that knows nothing else."""

    def __init__(self, kind, packages, dir, beforehand, model, *, guarded=False):
        self.dir, self.beforehand, self.model, self.guarded = dir, beforehand, model, guarded
        self.home, self.project = dir / "home", dir / "project"
        self.home.mkdir(parents=True)
        self.client: Client = kind(packages, self.home, self.project, model.url)
        self.count, self.path = 0, ""
        make_project(self.project, self.env())
        self.client.set_up(guarded)

    def beside(self, project):
        """The same HOME and model, with the client at work in another directory that its user trusts."""
        other = copy.copy(self)
        other.client, other.project = copy.copy(self.client), project
        other.client.project = project
        other.client.trust(project)
        other.dir = self.dir / "beside"
        other.dir.mkdir()
        return other

    def files(self):
        """What is in the project, by name."""
        return {name: found[-1] for name, found in tree(self.project, [".git"]).items() if found[0] == "file"}

    def env(self):
        return {"HOME": str(self.home), "PATH": f"{self.path}/usr/local/bin:/usr/bin:/bin", "TERM": "xterm", "LANG": "C.UTF-8",
                "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}

    def say(self, text, script, sub=(), *, again=False):
        """Gives the client one prompt, and the model what to answer."""
        self.model.play(script, sub)
        self.start(self.client.command(f"{MAIN}: {text}", again=again, guarded=self.guarded))
        must(self.model.requests, "the client never asked the model")
        must(not self.model.faults, "\n".join(self.model.faults))

    def start(self, command):
        """Runs the client; its output goes to files."""
        self.count += 1
        out, err = (self.dir / f"{self.count}.{end}" for end in ("out", "err"))
        env = self.env() | self.client.env()
        with out.open("wb") as stdout, err.open("wb") as stderr:
            child = subprocess.Popen([str(word) for word in command], cwd=self.project, env=env, stdin=subprocess.DEVNULL,
                                     stdout=stdout, stderr=stderr, start_new_session=True)
            try:
                self.code = child.wait(TIME_MAX_S)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
                raise Failure(f"no end after {TIME_MAX_S} s: {err}") from None
            finally:
                asked = self.dir / f"{self.count}.requests.json"
                asked.write_text(json.dumps(self.model.requests, indent=1))

    def run_all(self, commands):
        """Runs command lines of the client's own."""
        for command in commands:
            self.start(command)
            done = (self.dir / f"{self.count}.out").read_text() + (self.dir / f"{self.count}.err").read_text()
            must(self.code == 0, f"{command}: {self.code}\n{done}")

    def run_us(self, *args):
        """Runs beforehand, and gives all it said."""
        env = self.env() | {"PATH": f"{self.client.path_of_program()}{self.env()['PATH']}"}
        return subprocess.run([self.beforehand, *args], cwd=self.project, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)

    def us(self, *args, check=True):
        """Runs beforehand."""
        done = self.run_us(*args)
        must(not check or done.returncode == 0, f"beforehand {' '.join(args)}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def install(self):
        self.us("install", self.client.agent, "--yes", *self.client.install)

    def rows(self):
        """The checkpoints by turn, newest turn first; within a turn, oldest first."""
        rows = {}
        for line in json.loads(self.us("list", "--all", "--json")):
            if line["number"] is not None:
                rows.setdefault(str(line["number"]).split(".")[0], []).insert(0, line)
        return [sorted(rows[key], key=lambda line: str(line["number"])) for key in sorted(rows, key=int)]


def must(fact, otherwise):
    if not fact:
        raise Failure(otherwise)


def make_project(dir, env):
    """Files of every kind that a restore has to bring back."""
    (dir / "src/deep").mkdir(parents=True)
    (dir / "src/empty").mkdir()
    (dir / "existing.txt").write_text("line one\nline two\n")
    (dir / "src/crlf.txt").write_bytes(b"a\r\nb\r\n")
    (dir / "src/deep/bytes.bin").write_bytes(bytes(range(256)))
    (dir / "src/run.sh").write_text("#!/bin/sh\necho hi\n")
    (dir / "src/run.sh").chmod(0o755)
    (dir / "src/link").symlink_to("deep/bytes.bin")
    (dir / ".gitignore").write_text("*.log\n")
    git = lambda *args: subprocess.run(["git", *args], cwd=dir, env=env, check=True, capture_output=True)
    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "start")
    (dir / "src/untracked.txt").write_text("never committed\n")
    (dir / "src/ignored.log").write_text("ignored\n")


def tree(dir, without=()):
    """Everything below a directory: kind, permissions and bytes."""
    found = {}
    for path in sorted(dir.rglob("*")):
        name = str(path.relative_to(dir))
        if any(name == top or name.startswith(top + "/") for top in without):
            continue
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            found[name] = ("link", os.readlink(path))
        elif stat.S_ISDIR(mode):
            found[name] = ("dir", stat.S_IMODE(mode))
        elif stat.S_ISREG(mode):
            found[name] = ("file", stat.S_IMODE(mode), path.read_bytes())
    return found


def differ(one, other):
    """Names that are not the same in both."""
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def pair(client, one, other):
    """Two calls at once, the way this client does that."""
    return client.pair(one, other) if hasattr(client, "pair") else [one, other]


def story(world):
    """One client, from install to uninstall. Yields what turned out to be true."""
    client, project = world.client, world.project
    files = lambda: tree(project, [".git"])
    home_before, start = tree(world.home, [STATE]), files()
    git_before = subprocess.run(["git", "status", "--porcelain=v1", "--branch"], cwd=project, env=world.env(), capture_output=True).stdout
    world.install()
    home_installed = tree(world.home, [STATE])
    yield "installed", "yes", "installed: " + ", ".join(name for name in differ(home_before, home_installed) if home_installed[name][0] == "file")

    world.say("write", [
        client.read("existing.txt"),
        [client.write("new.txt", "hello\n")],
        [client.edit("existing.txt", "line one", "line 1")],
        [client.shell("echo made > made.txt")],
        pair(client, client.write("one.txt", "1\n"), client.write("two.txt", "2\n")),
        *(client.sub_agent(f"{SUB}: remove one file") if hasattr(client, "sub_agent") else []),
        "written",
    ], [[client.shell("rm two.txt")], "removed"] if hasattr(client, "sub_agent") else [])
    after = files()
    must(world.model.left() == 0, f"{world.model.left()} steps of the script were not asked for")
    expected = {"new.txt": b"hello\n", "existing.txt": b"line 1\nline two\n", "made.txt": b"made\n", "one.txt": b"1\n", "two.txt": b"2\n"}
    if hasattr(client, "sub_agent"):
        del expected["two.txt"]
    for name, bytes in expected.items():
        must(name in after and after[name][2] == bytes, f"{name} was not written")
    must(set(differ(start, after)) == set(expected), f"changed: {differ(start, after)}")
    rows = world.rows()
    must(len(rows) == 1, f"{len(rows)} turns after the first: {json.dumps(rows, indent=1)}")
    wanted = ["new.txt", "echo made > made.txt", *(["rm two.txt"] if hasattr(client, "sub_agent") else [])]
    told = [step["summary"] or "" for step in rows[0]]
    must(len(told) == len(wanted) and all(name in text for name, text in zip(wanted, told)), f"checkpoints before {told}")
    yield f"first turn: read, write, edit, shell, two at once: held before {' and '.join(repr(text) for text in told)}"

    world.say("remove", [[client.shell(client.remove.format("src"))], "removed"], again=True)
    must(not (project / "src").exists(), "src is still there")
    rows = world.rows()
    must([len(row) for row in rows] == [1, len(wanted)], f"turns and steps: {json.dumps(rows, indent=1)}")
    must(client.remove.format("src") in rows[0][0]["summary"], f"held before {rows[0][0]['summary']}")
    sessions = {step["session"] for row in rows for step in row}
    yield "two turns", "held", f"second turn: held before {rows[0][0]['summary']!r}, in {'the same session' if len(sessions) == 1 else 'a session of its own'}"

    state = world.home / STATE
    kept = tree(state, ["journal", "sessions"])
    world.say("attack", [[client.shell(client.remove.format(state))], "attacked"], again=True)
    gone = [name for name, was in kept.items() if was[0] == "file" and not (state / name).exists()]
    must(not gone, f"gone from the store: {gone}")
    must("reaches for beforehand itself" in (state / "journal").read_text(), "nobody noticed")
    told = client.refusal_without_reason or client.refusal + "this call reaches for beforehand itself"
    must(client.refusal_ends_run or world.model.was_told(told), f"the model was not told {told!r}")
    yield "self-defence", "refused, ends the run" if client.refusal_ends_run else "refused", "self-defence: refused, " + ("which ends the run" if client.refusal_ends_run else f"and the model reads {told!r}")

    yield f"doctor: {diagnosis(world)}"
    world.us("restore", "2", "--yes")
    must(not differ(after, files()), f"restore 2 left {differ(after, files())}")
    yield "restore, undo", "byte for byte", "restore 2: src is back, byte for byte"
    back = client.slash("/checkpoint list")
    if back:
        world.model.play([])
        world.start(back)
        must(world.model.was_told(f"{MAIN}: remove"), "the list did not come")
        world.start(client.slash("/checkpoint create it's \"$(touch owned)\"; touch owned2 `touch owned3` #"))
        must(not differ(after, files()), f"arguments became commands: {differ(after, files())}")
        number = len(world.rows())
        world.start(client.slash(f"/rollback {number}"))
        how = f"/rollback {number}"
    else:
        world.us("restore", "3", "--yes")
        how = "restore 3"
    must(not differ(start, files()), f"{how} left {differ(start, files())}")
    git_after = subprocess.run(["git", "status", "--porcelain=v1", "--branch"], cwd=project, env=world.env(), capture_output=True).stdout
    must(git_before == git_after, "git sees a difference")
    yield "slash commands", "run" if back else "none", f"{how}: everything as at the start, byte for byte"
    world.us("undo", "--yes")
    must(not differ(after, files()), f"undo left {differ(after, files())}")
    world.us("redo", "--yes")
    must(not differ(start, files()), f"redo left {differ(start, files())}")
    yield "undo and redo: and back again"
    if back and client.has_undo:
        world.start(client.slash("/undo"))
        must(not differ(after, files()), f"/undo left {differ(after, files())}")
        yield "/undo: and back again"

    home_used = tree(world.home, [STATE])
    world.us("uninstall", client.agent, "--yes")
    home_after = tree(world.home, [STATE])
    for name in differ(home_before, home_installed):
        is_own = home_used.get(name) != home_installed.get(name) and home_installed[name][0] == "file"
        as_before = home_after.get(name) == home_before.get(name)
        is_dir = home_after.get(name, ("",))[0] == "dir"
        clean = is_own and b"beforehand" not in home_after.get(name, ("file", 0, b""))[2]
        must(as_before or is_dir or clean, f"uninstall left {name}")
        if not as_before and not is_dir:
            yield f"uninstall: {name} was changed by the client; nothing of ours is left in it"
    yield "uninstalled", "yes", "uninstall: every file of ours is as it was before"


def diagnosis(world):
    """What the doctor says of the client, which must be well."""
    lines = json.loads(world.us("doctor", "--json", check=False))
    line = next(line for line in lines if line["name"] == world.client.title_in_doctor())
    must(line["health"] == "ok", f"doctor: {line}")
    seen = re.search(r"(\d+) of (\d+) calls seen", line["text"])
    must(not seen or seen[1] == seen[2], f"doctor: {line}")
    return re.sub(r"[\d.]+ ms", "so many ms", line["text"])


def round_trip(world):
    """Install and uninstall without a run in between."""
    before = tree(world.home)
    world.install()
    must(differ(before, tree(world.home)), "install did nothing")
    world.us("uninstall", world.client.agent, "--yes")
    must(not differ(before, tree(world.home)), f"left: {differ(before, tree(world.home))}")
    yield "install and uninstall: the whole HOME byte for byte as before"


def packaged(world):
    """The package instead of an install, with the program where no PATH leads to it, and another of the
    same name where it does."""
    client = world.client
    dir = pathlib.Path(__file__).resolve().parent.parent.parent / "hooks/packages"
    commands = client.load_package(dir)
    if commands is None:
        return
    own, foreign = world.home / ".local/bin/beforehand", world.home / "foreign/beforehand"
    for path in (own, foreign):
        path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(world.beforehand, own)
    foreign.write_text(f"#!/bin/sh\ntouch {world.dir}/foreign-ran\n")
    foreign.chmod(0o755)
    world.path = f"{foreign.parent}:"

    def write(name):
        world.model.play([[client.write(name, "hello\n")], "written"])
        world.start([*client.command(f"{MAIN}: write"), *client.package_arguments])
        must((world.project / name).exists(), "nothing was written")

    own.rename(own.with_name("elsewhere"))
    world.run_all(commands)
    write("unprotected.txt")
    must(not world.rows(), "held without the program")
    own.with_name("elsewhere").rename(own)
    write("new.txt")
    rows = world.rows()
    must([len(row) for row in rows] == [1] and rows[0][0]["summary"] == "new.txt", f"held: {rows}")
    yield "package: installed by the client; without the program the agent goes on; held before 'new.txt'"
    slash = client.package_slash("undo")
    if slash:
        world.model.play(["done"])
        world.start(slash)
        must(not (world.project / "new.txt").exists(), "the slash command did not take the file back")
        yield "package: its slash command takes it back"
    world.run_all(client.unload_package())
    kept = kept_by_the_client(world, dir)
    count = len(world.rows())
    write("after.txt")
    must(len(world.rows()) == count, "held after the package was removed")
    must(not (world.dir / "foreign-ran").exists(), "another program of the same name was run")
    yield f"package: removed by the client, {kept}, and nothing of it runs; no other 'beforehand' was run"


def kept_by_the_client(world, packages):
    """What is left of a package that the client has removed, in words: nothing but its own copy, where it keeps such."""
    client = world.client
    left = [name for name in tree(world.home, [STATE, ".local/bin", "foreign", "packages", client.package_cache])
            if "beforehand" in pathlib.Path(name).parts]
    must(not left, f"the client has left: {left}")
    copied = {what[2] for what in tree(packages).values() if what[0] == "file"}
    files = {name: what[2] for name, what in tree(world.home / client.package_cache).items() if what[0] == "file"}
    own = [name for name in files if pathlib.Path(name).name == client.package_mark]
    strange = [name for name in files.keys() - own if files[name] not in copied]
    must(not strange, f"not of the package, in the client's cache: {strange}")
    must(not files or own, "the client keeps its copy and does not mark it")
    if files:
        return f"which keeps its copy, {len(files) - len(own)} files marked {client.package_mark} in ~/{client.package_cache}"
    return f"which leaves ~/{client.package_cache} empty" if (world.home / client.package_cache).exists() else "which leaves nothing"


def guarded(with_us, without_us):
    """Where the client asks its user and nobody is there, we do not answer for them."""
    calls = [lambda client: client.write("guarded.txt", "x\n"), lambda client: client.shell("rm -rf src")]
    refused = 0
    with_us.install()
    for call in calls:
        after = []
        for world in (without_us, with_us):
            before = tree(world.project, [".git"])
            world.say("do it", [[call(world.client)]])
            must(world.model.left() == 0, "the model was not asked what to do")
            after.append(differ(before, tree(world.project, [".git"])))
        must(after[0] == after[1], f"changed without us {after[0]}, with us {after[1]}")
        refused += not after[0]
    must(refused, "the client asks nobody before anything: nothing was tested")
    yield f"nothing was approved: of {len(calls)} calls the client refuses {refused}, with us and without us"


def tested(kind, packages, dir, beforehand, only=None):
    """Runs all of it for one client and prints each fact. Gives the cells of its row in the table;
    None if something was not so."""
    import around
    import asked
    import kept
    import rewound

    def world(name, **how):
        return World(kind, packages, dir / kind.name / name, beforehand, Model(), **how)

    parts = {
        "round-trip": lambda: round_trip(world("round-trip")),
        "packaged": lambda: packaged(world("packaged")),
        "guarded": lambda: guarded(world("guarded", guarded=True), world("control", guarded=True)),
        "story": lambda: story(world("story")),
        "unattended": lambda: asked.unattended(world("unattended")),
        "attended": lambda: asked.attended(world("attended")),
        "switched-off": lambda: asked.switched_off(world("switched-off")),
        "conversation": lambda: asked.conversation(world("conversation")),
        "kept": lambda: kept.kept(world("kept")),
        **{name: lambda name=name, part=part: part(world(name)) for name, part in around.PARTS.items()},
    }
    if not kind.forks:
        del parts["kept"]
    if kind.name == "claude-code":
        parts["rewound"] = lambda: rewound.rewound(world("rewound"))
    if kind.name == "opencode":
        parts["forked"] = lambda: rewound.forked(world("forked"))
    good, cells = True, {}
    for name, part in parts.items():
        if only and name not in only:
            continue
        try:
            for fact in part():
                column, cell, text = fact if isinstance(fact, tuple) else (None, None, fact)
                if column:
                    cells[column] = cell
                if text:
                    print(f"  ok    {text}", flush=True)
        except (Failure, subprocess.SubprocessError, OSError, TimeoutError) as why:
            good = False
            print(f"  FAIL  {name}: {re.sub(chr(10), chr(10) + '        ', str(why))}", flush=True)
    return cells if good else None
