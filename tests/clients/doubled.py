"""Stands where beforehand is registered, and hands it each payload as no agent should write it: every field in both
spellings and twice, and fields that do not matter with values of a wrong type. The program itself is `real` beside it."""

import json
import os
import pathlib
import re
import subprocess
import sys

# Fields without which a call can still be held.
WRONG = {"transcript_path": ["a", "list"], "permission_mode": {"an": "object"}, "model": 7}


def spellings(name):
    snake = re.sub("([A-Z])", lambda capital: f"_{capital[1].lower()}", name)
    return [snake, re.sub("_([a-z])", lambda low: low[1].upper(), snake), name]


def doubled(payload):
    """The text of an object with each of its fields several times."""
    fields = [(name, value) for known, value in (payload | WRONG).items() for name in spellings(known)]
    return "{" + ",".join(f"{json.dumps(name)}:{json.dumps(value)}" for name, value in fields) + "}"


def main():
    real = pathlib.Path(sys.argv[0]).with_name("real")
    if sys.argv[1:2] != ["hook"]:
        os.execv(real, [str(real), *sys.argv[1:]])
    payload = sys.stdin.read()
    try:
        payload = doubled(json.loads(payload))
    except ValueError:
        pass
    done = subprocess.run([real, *sys.argv[1:]], input=payload, text=True)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
