"""A session is forked, goes on in the fork, and its work comes back."""

import json

from model import MAIN
from story import must

CART = "one\ntwo\nthree\nfour\nfive\n"


def kept(world):
    """`fork`, the client in the fork, `fork --keep`, `undo` and `fork --drop`."""
    client, project = world.client, world.project
    world.install()
    world.say("make a shop", [[client.write("cart.py", CART)], "made a shop"])
    world.say("count the cart", [[client.write("two.txt", "2\n")], "counted it"], again=True)
    before = world.files()
    made = json.loads(world.us("fork", "1", "--json"))
    fork, resume = world.dir / "project-fork-1", made["resume"]
    must(made["dir"] == str(fork) and resume, f"no fork with a conversation: {made}")
    must(not (fork / "two.txt").exists() and (fork / "cart.py").read_text() == CART, "the fork is not as before that turn")
    must(world.files() == before, "the project is not as it was")
    yield f"forked before the second turn, to go on with {' '.join(resume[:-1])}"

    there = world.beside(fork)
    there.model.play([there.client.read("cart.py"), [there.client.edit("cart.py", "one", "ONE")], [there.client.shell("echo new > new.txt && rm src/run.sh")], "gone on"])
    there.start(there.client.resume(resume[-1].split("=")[-1], f"{MAIN}: go on"))
    must(not there.model.faults, "\n".join(there.model.faults))
    must(there.model.was_told("make a shop"), "the fork has lost its first turn")
    must(not there.model.was_told("count the cart"), "the fork goes too far")
    must((fork / "cart.py").read_text() == CART.replace("one", "ONE"), f"nothing was edited in the fork: {there.code}")
    must((fork / "new.txt").exists() and not (fork / "src/run.sh").exists(), "the command did not run in the fork")
    must(world.files() == before, "the client reached into the project")
    rows = there.rows()
    must(rows and any(step["session"] for row in rows for step in row), f"nothing was held in the fork: {rows}")
    yield "resumed in the fork: the model hears of the first turn only; it edits, adds and removes there, held before it does"

    (project / "cart.py").write_text(CART.replace("five", "FIVE"))
    mine = world.files()
    said = world.us("fork", "--keep", "--yes")
    after = world.files()
    must(after["cart.py"] == CART.replace("one", "ONE").replace("five", "FIVE").encode(), f"not merged: {said}")
    must(after["new.txt"] == b"new\n" and "src/run.sh" not in after and after["two.txt"] == b"2\n", f"not brought: {said}")
    world.us("undo", "--yes")
    must(world.files() == mine, "undo did not take it back")
    world.us("redo", "--yes")
    must(world.files() == after, "redo did not bring it back")
    yield "forked and kept", "comes back", "kept: what it did there is in the project, with what a person did here; undo and redo"

    world.us("fork", "--drop", "project-fork-1", "--yes")
    must(not fork.exists(), "the fork is still there")
    world.say("write", [[client.write("three.txt", "3\n")], "written"], again=client.goes_on)
    must((project / "three.txt").exists(), "the first session does not go on")
    yield "dropped: the first session goes on in the project"
