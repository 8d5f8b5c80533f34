"""What is built from the sources by other hands: crates.io's package, and Arch Linux's."""

import json
import os
import pathlib
import shutil
import tomllib

from common import STORY, TOP, archive, clean, digest, need, one, run


def elsewhere(work):
    """The last commit, checked out in a place of its own."""
    place = work / "elsewhere/beforehand"
    run("git", "clone", "--quiet", "--no-hardlinks", TOP, place)
    return place


def crate(packages, work):
    """`cargo package`, and `cargo install --locked beforehand` from a registry that has it, without a network."""
    manifest = tomllib.loads((TOP / "Cargo.toml").read_text())["package"]
    for key in ["description", "license", "readme", "keywords", "categories", "rust-version"]:
        assert manifest.get(key), f"Cargo.toml has no {key}"
    assert len(manifest["keywords"]) <= 5 and all(len(word) <= 20 for word in manifest["keywords"])
    place = elsewhere(work)
    run("cargo", "package", "--locked", "--offline", "--no-verify", "--target-dir", work / "packed", cwd=place)
    file = one(work / "packed/package", "*.crate")
    vendored = work / "vendored"
    run("cargo", "vendor", "--locked", "--offline", "--quiet", vendored, cwd=place)
    run("tar", "-xzf", file, "-C", vendored)
    own, = vendored.glob(f"beforehand-{manifest['version']}")
    (own / ".cargo-checksum.json").write_text(json.dumps({"files": {}, "package": digest(file)}))
    root = work / "installed"
    run("cargo", "install", "--locked", "--offline", "--debug", "--root", root, "--target-dir", work / "built", "--jobs", str(os.cpu_count()),
        "--config", "source.crates-io.replace-with='here'", "--config", f"source.here.directory='{vendored}'", "beforehand", cwd=work)
    run("sh", STORY, root / "bin/beforehand", env=clean(work / "home", f"{root}/bin:/usr/bin:/bin"))
    binstall(packages, manifest)


def binstall(packages, manifest):
    """What cargo-binstall would fetch is what `packaging/release` makes, with the program where it looks for it."""
    told = manifest["metadata"]["binstall"]
    target = archive(packages).name.removeprefix(f"beforehand-{manifest['version']}-").removesuffix(".tar.gz")
    fill = {"repo": "https://example.org/beforehand", "name": manifest["name"], "version": manifest["version"], "target": target,
            "bin": "beforehand"}

    def filled(template):
        for key, value in fill.items():
            template = template.replace(f"{{ {key} }}", value)
        assert "{" not in template, template
        return template

    assert filled(told["pkg-url"]).rsplit("/", 1)[1] == archive(packages).name
    assert filled(told["bin-dir"]) in run("tar", "-tzf", archive(packages)).split()


def aur(packages, work):
    """makepkg builds Arch Linux's package of the archive, and pacman installs it into a root of its own and removes it."""
    need("makepkg", "pacman", "fakeroot", "bsdtar")
    place = work / "build"
    place.mkdir()
    shutil.copy(TOP / "packaging/aur/PKGBUILD", place)
    for path in [archive(packages), archive(packages).with_name(archive(packages).name + ".sha256")]:
        shutil.copy(path, place)
    env = clean(work / "home", REPOSITORY="https://example.invalid", PKGEXT=".pkg.tar.xz")
    command = ["makepkg", "--nodeps", "--noconfirm"]
    if os.geteuid() == 0:
        # It refuses to be root.
        run("chown", "-R", "nobody", work)
        work.chmod(0o755)
        command = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", *command]
    run(*command, cwd=place, env=env)
    root = work / "root"
    (root / "var/lib/pacman").mkdir(parents=True)
    pacman = ["pacman", "--root", root, "--dbpath", root / "var/lib/pacman", "--noconfirm"]
    run(*pacman, "-U", one(place, "*.pkg.tar.xz"))
    for name in ["share/man/man1/beforehand.1.gz", "share/zsh/site-functions/_beforehand", "share/licenses/beforehand-bin/LICENSE-MIT"]:
        assert (root / "usr" / name).is_file(), name
    run("sh", STORY, root / "usr/bin/beforehand", env=clean(work / "person", f"{root}/usr/bin:/usr/bin:/bin"))
    run(*pacman, "-R", "beforehand-bin")
    left = [path for path in (root / "usr").rglob("*") if "beforehand" in path.name]
    assert not left, left
