"""What each kind of package has in it, and where."""

import base64
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
from dataclasses import dataclass

import archives
from archives import below, squeeze, write
from build import ROOT, Build

HERE = pathlib.Path(__file__).resolve().parent
LICENCES = ["LICENSE-MIT", "LICENSE-APACHE"]
AUTHORS = "The beforehand authors"

# What the packagers of the world call the machines that a release is built for.
MACHINES = {
    "x86_64-unknown-linux-musl": {"deb": "amd64", "rpm": "x86_64", "npm": ("linux", "x64"),
                                  "wheel": "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64"},
    "aarch64-unknown-linux-musl": {"deb": "arm64", "rpm": "aarch64", "npm": ("linux", "arm64"),
                                   "wheel": "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64"},
    "x86_64-apple-darwin": {"npm": ("darwin", "x64"), "wheel": "macosx_10_12_x86_64"},
    "aarch64-apple-darwin": {"npm": ("darwin", "arm64"), "wheel": "macosx_11_0_arm64"},
}


@dataclass
class Made:
    """What every package is made of."""

    build: Build
    program: pathlib.Path
    pages: pathlib.Path
    notices: str

    @property
    def label(self):
        return f"{self.build.name}-{self.build.version}"

    @property
    def machine(self):
        return MACHINES[self.build.target]

    def put_program(self, path):
        write(path, self.program.read_bytes(), 0o755)

    def put_licences(self, directory):
        for name in LICENCES:
            write(directory / name, (ROOT / name).read_bytes())
        write(directory / "THIRD-PARTY-NOTICES.txt", self.notices)

    def man_pages(self):
        return sorted((self.pages / "man").iterdir())

    def completion(self, name):
        return (self.pages / "completions" / name).read_bytes()


def for_target(target):
    """Every kind that there can be for a target."""
    return [name for name in FORMATS if name == "tar" or name in MACHINES.get(target, {})]


def tar(made, work, out):
    made.put_program(work / "beforehand")
    made.put_licences(work)
    for name in ["README.md", "CHANGELOG.md"]:
        write(work / name, (ROOT / name).read_bytes())
    for page in [*made.man_pages(), *sorted((made.pages / "completions").iterdir())]:
        write(work / page.parent.name / page.name, page.read_bytes())
    path = out / f"{made.label}-{made.build.target}.tar.gz"
    archives.tar_gz(path, work, pathlib.Path(f"{made.label}-{made.build.target}"))
    return [path]


def system_tree(made, tree, zsh):
    """The files of a package of a distribution, where it has them."""
    share = tree / "usr/share"
    made.put_program(tree / "usr/bin/beforehand")
    for page in made.man_pages():
        write(share / "man/man1" / f"{page.name}.gz", squeeze(page.read_bytes()))
    write(share / "bash-completion/completions/beforehand", made.completion("beforehand.bash"))
    write(share / "zsh" / zsh / "_beforehand", made.completion("_beforehand"))
    write(share / "fish/vendor_completions.d/beforehand.fish", made.completion("beforehand.fish"))
    write(share / "doc/beforehand/third-party-notices.gz", squeeze(made.notices.encode()))


def open_to_all(tree):
    """Directories as everyone may enter them, whatever the umask was."""
    for directory in [tree, *(path for path in below(tree) if path.is_dir())]:
        directory.chmod(0o755)


def deb(made, work, out):
    tree = work / "tree"
    fill = {"VERSION": made.build.version, "MACHINE": made.machine["deb"], "DATE": archives.stamp()}
    documents = tree / "usr/share/doc/beforehand"
    write(documents / "copyright", template("deb/copyright", fill))
    write(documents / "changelog.gz", squeeze(template("deb/changelog", fill).encode()))
    write(tree / "usr/share/lintian/overrides/beforehand", template("deb/overrides", fill))
    system_tree(made, tree, "vendor-completions")
    files = [path for path in below(tree) if path.is_file()]
    fill["KIBIBYTES"] = str(sum(-(-path.stat().st_size // 1024) for path in files))
    sums = [f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(tree)}\n" for path in files]
    write(tree / "DEBIAN/control", template("deb/control", fill))
    write(tree / "DEBIAN/md5sums", "".join(sums))
    write(tree / "DEBIAN/prerm", template("deb/prerm", {}), 0o755)
    open_to_all(tree)
    path = out / f"beforehand_{made.build.version}_{made.machine['deb']}.deb"
    run("dpkg-deb", "--root-owner-group", "-Zxz", "--threads-max=1", "--build", tree, path)
    return [path]


def rpm(made, work, out):
    tree, top = work / "tree", work / "rpmbuild"
    system_tree(made, tree, "site-functions")
    for name in LICENCES:
        write(tree / "usr/share/licenses/beforehand" / name, (ROOT / name).read_bytes())
    open_to_all(tree)
    # Directories that belong to others are left to them.
    own = ["/usr/share/licenses/beforehand", "/usr/share/doc/beforehand"]
    files = ["/" + path.relative_to(tree).as_posix() for path in below(tree) if path.is_file()]
    listed = [f"%dir {path}" for path in own] + files
    fill = {"VERSION": made.build.version, "ABOUT": made.build.about, "LICENCE": made.build.licence,
            "TREE": str(tree), "FILES": "\n".join(listed), "PREUN": template("deb/prerm", {})}
    write(work / "beforehand.spec", template("rpm/beforehand.spec", fill))
    machine = made.machine["rpm"]
    run("rpmbuild", "-bb", "--quiet", f"--target={machine}-linux", f"--define=_topdir {top}", work / "beforehand.spec")
    built, = (top / "RPMS").rglob("*.rpm")
    path = out / f"{made.label}-1.{machine}.rpm"
    shutil.copyfile(built, path)
    return [path]


def npm(made, work, out):
    os_name, cpu = made.machine["npm"]
    common = {"version": made.build.version, "description": made.build.about, "license": made.build.licence}
    if made.build.repository:
        # npm attests only packages that name the repository they are built in.
        common["repository"] = {"type": "git", "url": f"git+{made.build.repository}.git"}
    platforms = ["-".join(machine["npm"]) for machine in MACHINES.values()]
    main, own = work / "beforehand", work / f"beforehand-{os_name}-{cpu}"
    write(main / "package.json", as_json({
        "name": "beforehand", **common, "keywords": ["claude-code", "codex", "undo", "checkpoint", "agent"],
        "bin": {"beforehand": "bin/beforehand.js"}, "exports": {".": "./opencode.mjs", "./package.json": "./package.json"},
        "files": ["bin", "opencode.mjs"], "engines": {"node": ">=18"},
        "optionalDependencies": {f"beforehand-{name}": made.build.version for name in platforms},
    }))
    write(main / "bin/beforehand.js", (HERE / "npm/beforehand.js").read_bytes(), 0o755)
    write(main / "opencode.mjs", opencode_plugin())
    write(main / "README.md", (HERE / "npm/README.md").read_bytes())
    write(own / "package.json", as_json({
        "name": own.name, **common, "os": [os_name], "cpu": [cpu], "files": ["bin", "THIRD-PARTY-NOTICES.txt"],
        "preferUnplugged": True,
    }))
    write(own / "README.md", f"The program of the package `beforehand` for {os_name}, {cpu}.\n")
    made.put_program(own / "bin/beforehand")
    made.put_licences(own)
    for name in LICENCES:
        write(main / name, (ROOT / name).read_bytes())
    paths = []
    for tree in [own, main]:
        paths.append(out / f"{tree.name}-{made.build.version}.tgz")
        archives.tar_gz(paths[-1], tree, pathlib.Path("package"))
    return paths


def opencode_plugin():
    """OpenCode's plugin, with the program that came with it instead of one on the PATH, and the slash commands."""
    text = (ROOT / "hooks/opencode/beforehand.js").read_text()
    for old, new in [
        ("import {", 'import { createRequire } from "node:module"\nimport { dirname, join } from "node:path"\nimport {'),
        ('process.env.BEFOREHAND_BIN || "beforehand"', "installed()"),
        ("function ask(payload) {\n", "function ask(payload) {\n  if (!BINARY) return Promise.resolve(missing(payload))\n"),
        ("config: async (settings) => holdBeforeShellLines(settings),\n",
         "config: async (settings) => {\n      await config(settings)\n      holdBeforeShellLines(settings)\n    },\n"),
    ]:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    commands = {path.stem: slash_command(path) for path in sorted((ROOT / "hooks/commands/opencode").iterdir())}
    return f"{text}\nconst COMMANDS = {json.dumps(commands, indent=2)}\n{(HERE / 'npm/installed.js').read_text()}"


def slash_command(path):
    """What OpenCode's settings say of a command whose file this is."""
    _, head, template = path.read_text().split("---\n", 2)
    name, description = head.strip().split(": ", 1)
    assert name == "description" and template.count("!`beforehand slash ") == 1, path
    return {"description": json.loads(description), "template": template.strip()}


def wheel(made, work, out):
    platforms = made.machine["wheel"]
    info, data = f"{made.label}.dist-info", f"{made.label}.data"
    tags = "".join(f"Tag: py3-none-{platform}\n" for platform in platforms.split("."))
    members = [(f"{data}/scripts/beforehand", made.program.read_bytes(), 0o755)]
    members += [(f"{data}/data/share/man/man1/{page.name}", page.read_bytes(), 0o644) for page in made.man_pages()]
    members += [(f"{info}/licenses/{name}", (ROOT / name).read_bytes(), 0o644) for name in LICENCES]
    members += [(f"{info}/licenses/THIRD-PARTY-NOTICES.txt", made.notices.encode(), 0o644)]
    fill = {"VERSION": made.build.version, "ABOUT": made.build.about, "LICENCE": made.build.licence}
    members += [(f"{info}/METADATA", template("wheel/METADATA", fill).encode(), 0o644)]
    head = "Wheel-Version: 1.0\nGenerator: beforehand\nRoot-Is-Purelib: false\n"
    members += [(f"{info}/WHEEL", (head + tags).encode(), 0o644)]
    record = "".join(f"{name},sha256={wheel_digest(content)},{len(content)}\n" for name, content, _ in members)
    members += [(f"{info}/RECORD", (record + f"{info}/RECORD,,\n").encode(), 0o644)]
    path = out / f"{made.label}-py3-none-{platforms}.whl"
    archives.wheel_zip(path, members)
    return [path]


def wheel_digest(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def template(name, fill):
    text = (HERE / name).read_text()
    for key, value in fill.items():
        text = text.replace(f"@{key}@", value)
    return text


def as_json(value):
    return json.dumps(value, indent=2) + "\n"


def run(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "LC_ALL": "C.UTF-8"})


FORMATS = {"tar": tar, "deb": deb, "rpm": rpm, "npm": npm, "wheel": wheel}
