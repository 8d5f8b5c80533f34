"""What goes on around a call: payloads of a strange shape, a program that is gone, another hook that rewrites the call,
tools of an MCP server, shell lines in commands, and sub-agents."""

import json
import pathlib
import shutil
import sys

from model import MAIN, SUB, strings
from story import STATE, must, differ, tree

HERE = pathlib.Path(__file__).resolve().parent
# The user's words between two turns, which only a checkpoint of ours can have.
BY_HAND = "an hour of work\n"


def own_program(world):
    """Gives the world a program of its own, which a test may take away."""
    program = world.dir / "bin/beforehand"
    program.parent.mkdir()
    shutil.copy(world.beforehand, program)
    world.beforehand = program
    return program


def files(world):
    return tree(world.project, [".git"])


def destroy(world):
    return [[world.client.shell(world.client.remove.format("src"))], "removed"]


def doubled(world):
    """Fields in two spellings, given twice, or of a wrong type: the call is held all the same."""
    program = own_program(world)
    world.install()
    world.beforehand = program.with_name("real")
    program.rename(world.beforehand)
    text = (HERE / "doubled.py").read_text()
    program.write_text(f"#!{sys.executable}\n{text}")
    program.chmod(0o755)
    before = files(world)
    world.say("remove", destroy(world))
    must(not (world.project / "src").exists(), "src is still there")
    must(len(world.rows()) == 1, f"turns: {world.rows()}\n{(world.home / STATE / 'journal').read_text()}")
    world.us("undo", "--yes")
    must(not differ(before, files(world)), f"undo left {differ(before, files(world))}")
    yield "fields twice", "held", "every field in two spellings and twice, some of a wrong type: held, undone byte for byte"


def gone(world):
    """The registered line after the program was removed: the agent goes on as if there were none."""
    program = own_program(world)
    world.install()
    program.unlink()
    world.say("work", [
        [world.client.write("new.txt", "hello\n")],
        [world.client.shell("echo made > made.txt")],
        "worked",
    ])
    after = files(world)
    must("new.txt" in after and "made.txt" in after, "the agent did not go on without the program")
    must(world.model.left() == 0, f"{world.model.left()} steps of the script were not asked for")
    said = [text for body in world.model.requests for text in strings(body) if str(program) in text and "not found" in text]
    must(not said, f"the model reads of the missing program: {said[:1]}")
    yield "program gone", "goes on", "the program is gone: the agent goes on, and the model hears nothing of it"


def rewritten(world):
    """Another hook puts a destructive command in the place of a harmless one."""
    client = world.client
    bad = client.remove.format("src")
    world.install()
    more = client.rewrite(bad)
    if more is None:
        yield "call rewritten", "no such hook", None
        return
    before = files(world)
    world.model.play([[client.shell("ls src")], "listed"])
    world.start([*client.command(f"{MAIN}: list"), *more])
    changed = differ(before, files(world))
    if not changed:
        yield "call rewritten", "not applied", "another hook rewrites the call: the client does not run what it wrote"
        return
    must(len(world.rows()) == 1, f"no checkpoint before the rewritten call, and gone: {changed[:5]}")
    world.us("undo", "--yes")
    must(not differ(before, files(world)), f"undo left {differ(before, files(world))}")
    yield "call rewritten", "held", f"another hook turns `ls src` into `{bad}`: held, undone byte for byte"


def served(world):
    """An MCP tool that deletes outside the project what its argument names, and one that names nothing."""
    client = world.client
    outside = world.dir / "outside/conf.ini"
    outside.parent.mkdir()
    outside.write_text("port=80\n")
    world.install()
    more = client.serve([sys.executable, str(HERE / "server.py"), str(world.project)])
    if more is None:
        yield "MCP tools", "not run", None
        return
    before = files(world)
    remove, sweep = client.served("remove", {"path": str(outside)}), client.served("sweep", {"topic": "src"})
    world.model.play([*client.find_served(), [remove], [sweep], "served"])
    world.start([*client.command(f"{MAIN}: serve"), *more])
    must(not outside.exists() and not (world.project / "src").exists(), "the server's tools did not run")
    rows = world.rows()
    must(len(rows) == 1, f"turns: {json.dumps(rows, indent=1)}")
    world.us("restore", "1", "--yes", "--outside")
    must(not differ(before, files(world)), f"the restore left {differ(before, files(world))}")
    must(outside.exists() and outside.read_text() == "port=80\n", "what the tool deleted outside the project is not back")
    yield "MCP tools", "held, outside too", "an MCP tool deletes a named file outside, another what it does not name: both are back"


def custom(world):
    """A command of the user's with a shell line, in a running session, after an edit by hand."""
    client = world.client
    hand = world.project / "src/untracked.txt"
    world.install()
    if client.custom("clean", client.remove.format("src")) is None:
        yield "command's shell line", "none", None
        return
    with client.running(world.env() | client.env()):
        world.say("begin", [[client.shell("echo 1 > one.txt")], "begun"])
        hand.write_text(BY_HAND)
        before = files(world)
        world.model.play(["cleaned"])
        world.start(client.custom("clean", client.remove.format("src")))
    must(not (world.project / "src").exists(), "the command's shell line did not run")
    world.us("undo", "--yes")
    left = differ(before, files(world))
    if client.shell_lines_come_first:
        must(left, "a command's shell line is held: hooks/README.md says that it is not")
        yield "command's shell line", "before any hook", "a command's shell line runs before any hook, as documented: not held"
        return
    must(hand.exists() and hand.read_text() == BY_HAND, f"the edit by hand is gone; undo left {left}")
    must(not left, f"undo left {left}")
    yield "command's shell line", "held", "a command's shell line after an edit by hand: undone byte for byte, the edit is back"


def delegated(world):
    """A sub-agent that destroys works for the turn of the user's that started it."""
    client = world.client
    steps = client.delegate(f"{SUB}: remove some files")
    if steps is None:
        yield "sub-agent", "none", None
        return
    world.install()
    before = files(world)
    world.say("delegate", [*steps, "delegated"], [[client.shell(client.remove.format("src existing.txt"))], "removed"])
    must(not (world.project / "src").exists() and not (world.project / "existing.txt").exists(), "the sub-agent did nothing")
    rows = world.rows()
    must(len(rows) == 1, f"{len(rows)} turns, not one: {[row[0]['prompt'] for row in rows]}")
    prompt = rows[0][0]["prompt"] or ""
    must(SUB not in prompt, f"the sub-agent's prompt is taken for the user's: {prompt!r}")
    world.us("undo", "--yes")
    must(not differ(before, files(world)), f"undo left {differ(before, files(world))}")
    yield "sub-agent", "in the user's turn", "a sub-agent removes files: held in the turn that started it, undone byte for byte"


PARTS = {"doubled": doubled, "gone": gone, "rewritten": rewritten, "served": served, "custom": custom, "delegated": delegated}
