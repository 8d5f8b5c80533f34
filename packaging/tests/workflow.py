"""The release workflow, as far as it can run without the forge: its steps, with programs that publish nothing."""

import os
import re
import shutil
import subprocess

from common import TOP, NotHere, run

# What each step that publishes calls; here they note their arguments.
STUBS = ["npm", "gh", "cargo"]


def workflow(packages, work):
    """Every action is pinned, every step is a script, and what is published is what `packaging/release` has made, each once."""
    try:
        import yaml
    except ImportError:
        raise NotHere("Python has no yaml") from None
    text = (TOP / ".github/workflows/release.yml").read_text()
    jobs = yaml.safe_load(text)["jobs"]
    for action in re.findall(r"uses: (.*)", text):
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), f"{action} may become another one"
    for step in (step for job in jobs.values() for step in job["steps"] if "run" in step):
        run("bash", "-n", "-c", step["run"])
    version_check(jobs["check"]["steps"][-1]["run"], work / "version")
    publish(jobs["publish"]["steps"], packages, work / "publish")


def version_check(script, place):
    """Only the version that Cargo.toml has, with a date in CHANGELOG.md, goes out."""
    place.mkdir()
    cargo = (TOP / "Cargo.toml").read_text()
    version = re.search(r'^version = "(.*)"', cargo, re.M)[1]
    (place / "Cargo.toml").write_text(cargo)
    for tag, heading, passes in [(f"v{version}", f"## {version}, 2027-01-01", True), ("v9.9.9", "## 9.9.9, 2027-01-01", False),
                                 (f"v{version}", f"## {version}, not released yet", False)]:
        (place / "CHANGELOG.md").write_text(f"# Changes\n\n{heading}\n")
        done = subprocess.run(["bash", "-e", "-c", script], cwd=place, env={**os.environ, "GITHUB_REF_NAME": tag}, check=False)
        assert (done.returncode == 0) == passes, f"{tag} with `{heading}`"


def publish(steps, packages, place):
    """Runs what publishes, in a directory with the packages where the forge puts them."""
    (place / "stubs").mkdir(parents=True)
    shutil.copytree(packages, place / "out")
    for name in STUBS:
        stub = place / "stubs" / name
        stub.write_text(f'#!/bin/sh\necho {name} "$@" >>"$CALLS"\n')
        stub.chmod(0o755)
    env = {"PATH": f"{place / 'stubs'}:/usr/bin:/bin", "CALLS": str(place / "calls"), "GITHUB_REF_NAME": "v1.2.3"}
    for step in steps:
        if "run" in step:
            run("bash", "-e", "-c", step["run"], cwd=place, env=env)
    calls = (place / "calls").read_text().splitlines()
    made = sorted(path.name for path in packages.iterdir())
    attached, = (call.split() for call in calls if call.startswith("gh release create v1.2.3 "))
    assert sorted(word.removeprefix("out/") for word in attached if word.startswith("out/")) == made
    npm = [re.search(r"out/(\S+)", call)[1] for call in calls if call.startswith("npm publish ")]
    assert sorted(npm) == [name for name in made if name.endswith(".tgz")], npm
    # The last one asks for the others.
    assert re.fullmatch(r"beforehand-\d.*", npm[-1]) and not any(re.match(r"beforehand-\d", name) for name in npm[:-1]), npm
    assert sorted(path.name for path in (place / "wheels").iterdir()) == [name for name in made if name.endswith(".whl")]
    assert "cargo publish --locked" in calls, calls
