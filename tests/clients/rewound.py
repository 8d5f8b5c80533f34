"""Some turns of work with edits by hand in between, and the way back as a person goes it: from the
picker in a real terminal, or with the agent's own server."""

import json
import re
import subprocess
import time

from model import MAIN
from story import must
from terminal import Terminal

PRICE = "price = 1\ntax = 19  # by hand\n"
WHAT_THE_AGENT_LEFT = {"cart.py": b"total = 0\n", "data/rows.csv": b"1,2\n"}
WHAT_THE_PERSON_DID = {
    "notes.md": b"my own notes\n", "price.py": PRICE.encode(), "todo.txt": b"buy milk\n",
    "existing.txt": b"line 1\nline two\nline three, by hand\n", "junk.py": b"junk, and mine\n",
}


def rewound(world):
    """Claude Code in a terminal, as its user has it; then `beforehand rewind` in another."""
    client, project = world.client, world.project
    start = {str(path.relative_to(project)): path.read_bytes() for path in files(project / "src", project)}
    world.install()
    terminal = Terminal(world.dir, project, env_of(world))
    try:
        terminal.enter(f"{client.command('')[0]} --permission-mode acceptEdits --allowedTools Bash")
        terminal.until("accept edits on")
        work(world, lambda text, script: say(world, terminal, text, script))
        must(any("that command deleted 6 files" in screen for screen in terminal.screens_seen()), "the user was not told at once")
        yield "three turns in a terminal, with edits by hand between and after them; the user hears at once of 6 deleted files"

        terminal.another()
        terminal.enter("beforehand rewind")
        terminal.until("3 turns", "clean up", "count the cart", "make a shop", "1 conflict")
        terminal.keys("Down")
        terminal.until("before Edit cart.py", "+total = 1")
        terminal.keys("Enter")
        plan = terminal.until("files and conversation", "recreate  src/ignored.log", "remove    gen/out.txt", "todo.txt")
        must(re.search(r"keep +existing.txt +changed since, not by the agent", plan), plan)
        must(re.search(r"keep +junk.py +made since, then changed", plan), plan)
        terminal.keys("Down")
        terminal.until("the conversation would be forked")
        terminal.keys("Enter")
        said = terminal.until("2 conflicts kept: existing.txt, junk.py", "claude --resume")
        went_back(world, start)
        yield "rewound from the picker: files of every kind are back, an ignored one too; whatever a person did stays"

        resume = re.search(r"claude --resume ([0-9a-f-]{4,}\s?[0-9a-f-]*)", said)[1].replace("\n", "")
        world.model.play(["gone on"])
        program = client.command("")[0]
        world.start([program, "--resume", resume, "-p", f"{MAIN}: go on", "--output-format", "json"])
        must(world.model.was_told("make a shop"), "the fork has lost its first turn")
        must(not world.model.was_told("count the cart") and not world.model.was_told("clean up"), "the fork goes too far")
        yield "the conversation goes on from before that turn: the model hears of the first turn, and of none after it"

        world.us("undo", "--yes")
        left = [path.name for path in files(project / "src", project)]
        must(not left and (project / "cart.py").read_text() == "total = 1\n", "undo did not")
        world.us("redo", "--yes")
        went_back(world, start)
        yield "undo and redo: and back again"
    finally:
        terminal.end()


def work(world, say):
    """Three turns; between them a person edits, adds, and goes on with what the agent made."""
    client, project = world.client, world.project
    say("make a shop", [[client.write("cart.py", "total = 0\n")], [client.write("price.py", "price = 1\ntax = 2\n")],
                        [client.shell("mkdir -p data && echo 1,2 > data/rows.csv")], "made a shop"])
    (project / "notes.md").write_text("my own notes\n")
    (project / "price.py").write_text(PRICE)
    say("count the cart", [client.read("cart.py"), [client.edit("cart.py", "total = 0", "total = 1")],
                           [client.shell("sed -i 's/line one/line 1/' existing.txt; echo 3,4 >> data/rows.csv")],
                           [client.write("gen/out.txt", "generated\n")], "counted it"])
    with (project / "existing.txt").open("a") as file:
        file.write("line three, by hand\n")
    say("clean up", [[client.shell("rm -rf src")], [client.write("junk.py", "junk\n")], "cleaned up"])
    (project / "junk.py").write_text("junk, and mine\n")
    (project / "todo.txt").write_text("buy milk\n")


def say(world, terminal, text, script):
    """Types a prompt, and waits for the last words of the script."""
    world.model.play(script)
    # It takes no keys while it draws what was before.
    time.sleep(1)
    terminal.enter(f"{MAIN}: {text}")
    terminal.until(f"● {script[-1]}")
    time.sleep(1)
    must(not world.model.faults, "\n".join(world.model.faults))


def went_back(world, start):
    found = {str(path.relative_to(world.project)): path.read_bytes() for path in files(world.project, world.project)}
    wanted = start | WHAT_THE_AGENT_LEFT | WHAT_THE_PERSON_DID | {".gitignore": b"*.log\n"}
    bad = sorted(name for name in found.keys() | wanted.keys() if found.get(name) != wanted.get(name))
    must(not bad, f"not as it should be: {bad}")


def files(dir, project):
    return [path for path in sorted(dir.rglob("*")) if path.is_file() and not path.is_relative_to(project / ".git")]


def env_of(world):
    env = world.env() | world.client.env() | {"TERM": "xterm-256color"}
    return env | {"PATH": f"{world.beforehand.parent}:{env['PATH']}"}


def forked(world):
    """OpenCode with its server, which forks the conversation itself."""
    client, project = world.client, world.project
    world.install()
    port = 4196
    program = client.program()[0]
    with (world.dir / "server.out").open("wb") as out:
        server = subprocess.Popen([program, "serve", "--port", str(port)], cwd=project, env=env_of(world), stdout=out, stderr=out)
        try:
            time.sleep(5)
            url = f"http://127.0.0.1:{port}"
            for number, text in enumerate(["make a shop", "count the cart"]):
                world.model.play([[client.write(f"{number}.txt", text)], f"did {text}"])
                again = ["-c"] if number else []
                world.start([program, "run", "--attach", url, *again, f"{MAIN}: {text}"])
                must((project / f"{number}.txt").exists(), f"{text}: nothing was written")
            said = world.us("restore", "1", "--yes", "--conversation")
            resume = re.search(r"opencode -s (\w+)", said)
            must(resume, f"no fork: {said}")
            must(not (project / "1.txt").exists() and (project / "0.txt").exists(), "the files are not as before that turn")
            world.model.play(["gone on"])
            world.start([program, "run", "--attach", url, "-s", resume[1], f"{MAIN}: go on"])
            must(world.model.was_told("make a shop"), "the fork has lost its first turn")
            must(not world.model.was_told("count the cart"), f"the fork goes too far: {json.dumps(world.model.requests)[:400]}")
            yield "its server forked the conversation: the model hears of the first turn, and not of the second"
        finally:
            server.terminate()
            server.wait(20)
