"""What is built from the sources by other hands: crates.io's package, and Arch Linux's."""

import json
import os
import pathlib
import re
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
    # Nothing is optimized: that it installs is tested, and a hundred crates take minutes as it is.
    fast = ["--debug", "--config", "profile.dev.package.'*'.opt-level=0", "--config", "profile.dev.debug=false"]
    run("cargo", "install", "--locked", "--offline", *fast, "--root", root, "--target-dir", work / "built",
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


def homebrew(packages, work):
    """Ruby reads the formula; what it installs by name is what the pages are called."""
    need("ruby")
    formula = TOP / "packaging/homebrew/beforehand.rb"
    run("ruby", "-c", formula)
    made = run("tar", "-tzf", archive(packages))
    named = re.findall(r"pages/(completions/[\w.]+)", formula.read_text())
    assert len(named) == 3 and all(f"/{name}\n" in made for name in named), named


# What the flake uses of nixpkgs, as a package that is nothing but its own description.
NIXPKGS = """{
  lib.genAttrs = names: make: builtins.listToAttrs (map (name: { inherit name; value = make name; }) names);
  legacyPackages = builtins.listToAttrs (map (name: { inherit name; value = {
    rustPlatform.buildRustPackage = package: package; installShellFiles = "shell"; lib.licenses = { mit = "MIT"; asl20 = "Apache-2.0"; };
  }; }) [ "x86_64-linux" "aarch64-linux" "x86_64-darwin" "aarch64-darwin" ]);
}"""


def nix(packages, work):
    """Nix evaluates the flake for each system, with nothing of nixpkgs but the names that it uses."""
    need("nix-instantiate")
    flake = TOP / "packaging/nix/flake.nix"
    outputs = f"((import {flake}).outputs {{ self = null; nixpkgs = {NIXPKGS}; }}).packages"
    fields = "{ inherit (it) pname version; lock = builtins.pathExists it.cargoLock.lockFile; meta = it.meta; script = it.postInstall; }"
    env = clean(work / "home", os.environ["PATH"], NIX_STATE_DIR=str(work / "state"), NIX_STORE_DIR=str(work / "store"))
    told = run("nix-instantiate", "--eval", "--strict", "--json", "--expr",
               f"builtins.mapAttrs (_: packages: let it = packages.default; in {fields}) {outputs}", env=env)
    found = json.loads(told[told.index("{"):])
    manifest = tomllib.loads((TOP / "Cargo.toml").read_text())["package"]
    assert len(found) == 4, found
    for package in found.values():
        assert (package["pname"], package["version"], package["lock"]) == (manifest["name"], manifest["version"], True), package
        assert package["meta"]["license"] == ["MIT", "Apache-2.0"], package
        assert all(f"pages/completions/{name}" in package["script"] for name in ["beforehand.bash", "_beforehand", "beforehand.fish"]), package
