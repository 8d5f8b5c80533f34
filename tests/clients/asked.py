"""What a person has to rely on: a question or a refusal, a doctor who notices, and a conversation
that goes back with the files."""

import json
import re
import time

from model import MAIN
from rewound import env_of
from story import must
from terminal import Terminal

# More than beforehand holds of one file.
LARGE_BYTES = 2 << 30


def unattended(world):
    """A call that destroys what cannot be held, with nobody there: refused, then allowed once."""
    client, big = world.client, world.project / "big.db"
    world.install()
    with big.open("wb") as file:
        file.truncate(LARGE_BYTES)
    remove = [[client.shell("rm big.db")], "removed"]
    world.say("remove the data", remove)
    must(big.exists(), "big.db is gone: nothing held it, and no question was asked")
    refused = json.loads(world.us("allow", "--json"))
    must(len(refused) == 1 and refused[0]["call"] == "rm big.db", f"refused: {refused}")
    code = refused[0]["code"]
    told = f"beforehand allow --once {code}"
    must(client.refusal_ends_run or world.model.was_told(told), f"the model was not told {told!r}")
    # The agent itself may not.
    world.say("allow it", [[client.shell(told)], "allowed"], again=True)
    must("reaches for beforehand itself" in (world.home / ".local/state/beforehand/journal").read_text(), f"{told!r} was not refused")
    terminal = Terminal(world.dir, world.project, env_of(world))
    try:
        terminal.enter(told)
        terminal.until("let it run once?")
        terminal.enter("y")
        terminal.until("allowed once; tell")
    finally:
        terminal.end()
    if not client.goes_on:
        yield "nobody there", "refused", "with nobody there: what cannot be held is not destroyed; the user can allow it, in that session"
        return
    world.say("try again", remove, again=True)
    must(not big.exists(), "it was allowed once, and refused again")
    yield "nobody there", "refused; once allowed in a terminal, it ran", "with nobody there: refused, the model is told how it is allowed; allowed once in a terminal, it runs"


def attended(world):
    """The same with a person at the agent's own screen."""
    client, big = world.client, world.project / "big.db"
    start = client.screen()
    if start is None:
        yield "person there", "not run", None
        return
    world.install()
    with big.open("wb") as file:
        file.truncate(LARGE_BYTES)
    terminal = Terminal(world.dir, world.project, env_of(world))
    try:
        world.model.play([])
        terminal.enter(" ".join(map(str, start)))
        client.settle(terminal)
        fresh = terminal.screen()
        must(not re.search(r"hooks? needs? review|review (your|the) hooks", fresh, re.IGNORECASE), f"a fresh start asks about hooks:\n{fresh}")
        world.model.play([[client.shell("rm big.db")], "the data is gone"])
        terminal.type(f"{MAIN}: remove the data")
        time.sleep(2)
        terminal.keys("Enter")
        if client.asks:
            client.answer_first(terminal)
            terminal.until("not held: big.db", waits_for="a question")
            must(big.exists(), "big.db was gone before an answer")
            time.sleep(1)
            terminal.keys(*client.yes)
            wait(lambda: not big.exists(), terminal, "the user said yes, and it is still there")
            yield "person there", "asked, with our reason", "with a person there: asked, with our reason; a yes lets it run"
        else:
            wait(lambda: world.model.was_told("beforehand allow --once"), terminal, "the model was not told how it is allowed")
            must(big.exists(), "big.db is gone: nothing held it, and no question was asked")
            yield "person there", "refused", "with a person there: refused, for it cannot ask; a fresh start asked nothing about hooks"
    finally:
        terminal.end()


def wait(fact, terminal, otherwise):
    end = time.monotonic() + 60
    while not fact():
        must(time.monotonic() < end, f"{otherwise}:\n{terminal.screen()}")
        time.sleep(0.2)


def switched_off(world):
    """Hooks that are registered and do not run: the doctor and the status notice."""
    client = world.client
    world.install()
    switches = client.switches()
    if not switches:
        yield "switched off", "no switch known", None
        return
    for name, turn in switches:
        undo = turn()
        told = world.us("doctor", check=False)
        line = next(line for line in json.loads(world.us("doctor", "--json", check=False)) if line["name"] == client.title_in_doctor())
        must(line["health"] != "ok" and line["hint"], f"{name}: the doctor says {line}\n{told}")
        before = len(world.rows())
        file = f"off{before}{len(name)}.txt"
        world.say(f"write {file}", [[client.write(file, "x\n")], "written"])
        must((world.project / file).exists(), f"{name}: nothing was written")
        must(len(world.rows()) == before, f"{name} does not keep hooks from running: the doctor is wrong")
        status = world.us("status", check=False)
        must("not protected" in status or "unprotected" in status or line["text"].split(":")[0] in status, f"{name}: status says\n{status}")
        undo()
    names = [name for name, _ in switches]
    cell = ", ".join(f"`{name}` in {names.count(name)} {'file' if names.count(name) == 1 else 'files'}" for name in dict.fromkeys(names))
    yield "switched off", f"noticed: {cell}", "switched off: no hook runs, and doctor and status say so: " + ", ".join(name for name, _ in switches)


def conversation(world):
    """Files and conversation, before the second turn and before the first."""
    client, project = world.client, world.project
    world.install()
    world.say("make a shop", [[client.write("one.txt", "1\n")], "made a shop"])
    world.say("count the cart", [[client.write("two.txt", "2\n")], "counted it"], again=True)
    done = world.run_us("restore", "1", "--yes", "--conversation")
    must(not (project / "two.txt").exists() and (project / "one.txt").exists(), f"the files are not as before that turn: {done}")
    found = re.search(r"resume the conversation before .*? with: (.+)", done.stdout)
    if not found:
        must(done.returncode == 3, f"no fork, and exit {done.returncode}: {done.stdout}{done.stderr}")
        must("conversation" in done.stderr, f"not said: {done.stderr}")
        yield "conversation", "files only, and says so", "conversation: it cannot be forked, which is said; the files are back, exit 3"
        return
    world.model.play(["gone on"])
    world.start(client.resume(found[1].split()[-1].split("=")[-1], f"{MAIN}: go on"))
    must(world.model.was_told("make a shop"), "the fork has lost its first turn")
    must(not world.model.was_told("count the cart"), "the fork goes too far")
    first = world.run_us("restore", "2", "--yes", "--conversation")
    must(not (project / "one.txt").exists(), f"the files are not as at first: {first}")
    new = re.search(r"nothing was said before .*; a new conversation begins with: (\S+)", first.stdout)
    forked = re.search(r"resume the conversation before .*? with: (.+)", first.stdout)
    must(new or forked, f"before the first turn: {first}")
    yield "conversation", "forked", f"conversation: forked before the second turn; before the first, {'a new one' if new else 'an empty fork'}"
