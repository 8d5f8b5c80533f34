"""The program, its pages, and what is in it: everything that cargo knows."""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import time
import uuid

from archives import epoch

ROOT = pathlib.Path(__file__).resolve().parent.parent


def output(*command, **more):
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, **more).stdout


def host():
    return re.search(r"^host: (.*)$", output("rustc", "-vV"), re.M)[1]


def linux_static(machine):
    """What a package for Linux is built for: linked statically, with musl."""
    return f"{machine}-unknown-linux-musl"


LINUX_MACHINES = ["x86_64", "aarch64"]


def own_target():
    """The machine that this runs on; on Linux a program for any of its systems."""
    here = host()
    return linux_static(here.split("-")[0]) if "linux" in here else here


def targets(named):
    """What is built: for this machine without a name, and `linux` is each of its machines."""
    linux = [linux_static(machine) for machine in LINUX_MACHINES]
    return [target for name in named or [own_target()] for target in (linux if name == "linux" else [name])]


def cross_tools(target):
    """What cargo is told to compile and link with for Linux on another machine: Debian's cross compiler.

    A choice in the environment stands.
    """
    if "linux" not in target or target.split("-")[0] == host().split("-")[0]:
        return {}
    prefix = f"{target.split('-')[0]}-linux-gnu-"
    name = target.replace("-", "_")
    tools = {f"CC_{name}": f"{prefix}gcc", f"AR_{name}": f"{prefix}ar", f"CARGO_TARGET_{name.upper()}_LINKER": f"{prefix}gcc"}
    missing = [tool for key, tool in tools.items() if key not in os.environ and not shutil.which(tool)]
    if missing:
        package = f"gcc-{prefix.rstrip('-').replace('_', '-')}"
        raise SystemExit(f"release: no `{missing[0]}` for {target}: install Debian's {package}, or choose with `--target`")
    return {key: os.environ.get(key, tool) for key, tool in tools.items()}


def cargo(verb, *args, target=None):
    # Build scripts that see this one change are run again, though nothing they make depends on it.
    env = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}
    if target:
        args = ["--target", target, *args]
        env |= cross_tools(target)
    subprocess.run(["cargo", verb, "--locked", *args], cwd=ROOT, check=True, env=env)


class Build:
    """One program for one target, and what is made beside it."""

    def __init__(self, target):
        self.target = target
        package, = json.loads(output("cargo", "metadata", "--format-version=1", "--locked", "--no-deps"))["packages"]
        self.name, self.version = package["name"], package["version"]
        self.about, self.licence, self.repository = package["description"], package["license"], package["repository"]
        self.directory = pathlib.Path(json.loads(
            output("cargo", "metadata", "--format-version=1", "--locked", "--no-deps"))["target_directory"])

    def run(self):
        """Builds the program and gives its path."""
        flags = [f"--remap-path-prefix={there}={name}" for there, name in self.places()]
        if "linux" in self.target:
            flags += ["-Ctarget-feature=+crt-static", "-Crelocation-model=static"]
        setting = f"target.{self.target}.rustflags={json.dumps(flags)}"
        cargo("build", "--release", "--config", setting, target=self.target)
        return self.directory / self.target / "release" / self.name

    def pages(self, into):
        """Man pages and completions, below `into`: the same for every target, so made on this machine."""
        cargo("run", "--quiet", "--example", "pages", "--", into)

    def places(self):
        """Directories of this machine that would otherwise stand in the program, and what stands there."""
        home = pathlib.Path(os.environ.get("CARGO_HOME") or pathlib.Path.home() / ".cargo")
        crates = [(there, "/crates") for there in sorted((home / "registry/src").glob("*"))]
        # With the sources of the standard library beside it, the compiler names them where they are.
        version = dict(line.split(": ", 1) for line in output("rustc", "-vV").splitlines() if ": " in line)
        std = pathlib.Path(output("rustc", "--print=sysroot").strip()) / "lib/rustlib/src/rust"
        return [(ROOT, "/beforehand"), (self.directory, "/target"), (std, f"/rustc/{version['commit-hash']}"), *crates]

    def crates(self):
        """The crates that are in the program, as cargo describes them, by name and version."""
        tree = output("cargo", "tree", "--locked", "--edges=normal", "--target", self.target, "--prefix=none", "--format={p}")
        wanted = {tuple(line.split()[:2]) for line in tree.splitlines() if line}
        every = json.loads(output("cargo", "metadata", "--format-version=1", "--locked"))["packages"]
        inside = [crate for crate in every if (crate["name"], "v" + crate["version"]) in wanted]
        return sorted(inside, key=lambda crate: (crate["name"], crate["version"]))

    def notices(self):
        """The licences of everything that is in the program, each text once."""
        texts, silent = {}, []
        for crate in self.crates():
            if crate["name"] == self.name:
                continue
            label = f"{crate['name']} {crate['version']} ({crate['license']})"
            place = pathlib.Path(crate["manifest_path"]).parent
            found = [path for path in sorted(place.iterdir()) if is_licence(path)]
            for path in found:
                texts.setdefault(path.read_text(errors="replace").strip(), []).append(label)
            if not found:
                silent.append(f"{label}, by {', '.join(crate['authors']) or 'its authors'}")
        parts = [f"{self.name} contains these crates, under these terms.\n"]
        if silent:
            parts.append("Without a text of their own:\n\n" + "\n".join(silent) + "\n")
        for text, labels in texts.items():
            parts.append("\n".join(dict.fromkeys(labels)) + "\n\n" + text + "\n")
        return f"\n{'-' * 80}\n\n".join(parts)

    def sbom(self):
        """What is in the program, as CycloneDX 1.5."""
        crates = self.crates()
        sums = checksums()
        reference = {crate["id"]: purl(crate) for crate in crates}
        resolved = json.loads(output("cargo", "metadata", "--format-version=1", "--locked", "--filter-platform", self.target))
        own, = (crate for crate in crates if crate["name"] == self.name)
        nodes = [node for node in resolved["resolve"]["nodes"] if node["id"] in reference]
        bom = {
            "bomFormat": "CycloneDX",
            "specVersion": "1.5",
            "version": 1,
            "metadata": {
                "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch())),
                "component": component(own, sums, "application"),
                "properties": [{"name": "cargo:target", "value": self.target}],
            },
            "components": [component(crate, sums) for crate in crates if crate is not own],
            "dependencies": [
                {"ref": reference[node["id"]], "dependsOn": sorted(reference[id] for id in node["dependencies"] if id in reference)}
                for node in sorted(nodes, key=lambda node: reference[node["id"]])
            ],
        }
        whole = json.dumps(bom, sort_keys=True)
        return {**bom, "serialNumber": uuid.uuid5(uuid.NAMESPACE_OID, whole).urn}


def is_licence(path):
    stem = path.name.upper()
    return path.is_file() and stem.startswith(("LICENSE", "LICENCE", "COPYING", "NOTICE", "COPYRIGHT", "UNLICENSE"))


def purl(crate):
    return f"pkg:cargo/{crate['name']}@{crate['version']}"


def component(crate, sums, kind="library"):
    found = {
        "type": kind,
        "bom-ref": purl(crate),
        "name": crate["name"],
        "version": crate["version"],
        "purl": purl(crate),
        "licenses": [{"expression": crate["license"].replace("/", " OR ")}],
    }
    if crate["description"]:
        found["description"] = " ".join(crate["description"].split())
    if digest := sums.get((crate["name"], crate["version"])):
        found["hashes"] = [{"alg": "SHA-256", "content": digest}]
    return found


def checksums():
    """What Cargo.lock says of each crate."""
    lock = (ROOT / "Cargo.lock").read_text()
    entry = re.compile(r'name = "(.*)"\nversion = "(.*)"\nsource = ".*"\nchecksum = "(.*)"')
    return {(name, version): digest for name, version, digest in entry.findall(lock)}


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()
