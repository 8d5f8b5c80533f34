//! Recognizes directories that a program can regenerate, by the marks that the program leaves. A
//! name alone is never enough: users may give it to directories of their own.

use std::{
    ffi::{CStr, CString},
    io::Read,
};

use super::Scan;
use crate::{
    fs::{Dir, DirCursor, c_name},
    model::{Kind, RelPath},
};

/// Directories that a package manager or build tool fills from a manifest next to them.
const FILLED_FROM: &[(&CStr, &[&CStr])] = &[
    (MODULES, &[c"package.json"]),
    (c"bower_components", &[c"bower.json"]),
    (c"target", &[c"Cargo.toml", c"pom.xml", c"build.sbt"]),
    (c"Pods", &[c"Podfile"]),
    (
        c".gradle",
        &[c"settings.gradle", c"settings.gradle.kts", c"build.gradle", c"build.gradle.kts"],
    ),
];
const MODULES: &CStr = c"node_modules";
/// What npm, pnpm and Yarn leave in a `node_modules` without a manifest next to it.
const LEFT_IN_MODULES: &[&CStr] =
    &[c".package-lock.json", c".modules.yaml", c".yarn-integrity", c".yarn-state.yml"];
/// What Python and Conda leave in an environment, whatever it is called.
const LEFT_IN_ENVIRONMENT: &[&CStr] = &[c"pyvenv.cfg", c"conda-meta"];
/// The first bytes of every `CACHEDIR.TAG`: <https://bford.info/cachedir/>.
const CACHE_TAG: &CStr = c"CACHEDIR.TAG";
const CACHE_TAG_SIGNATURE: &[u8] = b"Signature: 8a477f597d28d172789f06886806bc55";
/// So many directories are each looked into: 0.2 ms.
const LOOKED_INTO_MAX: usize = 64;
/// Written by Python alone, and only from the sources beside it.
const BYTE_CODE: &CStr = c"__pycache__";

/// Usual names of build output directories; they count if one of [`MANIFESTS`] lies next to them.
const OUTPUTS: &[&CStr] = &[
    c"build", c"dist", c"out", c"output", c"obj", c"bin", c"_build", c".build", c"coverage",
    c"htmlcov", c".output", c".next", c".nuxt", c".svelte-kit", c".angular", c".turbo",
    c".parcel-cache", c".dart_tool", c"DerivedData", c".eggs", c"cmake-build-debug",
    c"cmake-build-release",
];
const MANIFESTS: &[&CStr] = &[
    c"package.json", c"Cargo.toml", c"pyproject.toml", c"setup.py", c"go.mod", c"pom.xml",
    c"build.gradle", c"build.gradle.kts", c"CMakeLists.txt", c"Makefile", c"meson.build",
    c"Package.swift", c"pubspec.yaml", c"mix.exs", c"dune-project",
];

/// Whether the directory `name` in `parent` is proven to be made by a program that makes it again,
/// all of it: a repository in it may have work that is nowhere else.
pub(super) fn is_proven(parent: &Dir, name: &CStr) -> bool {
    if name == BYTE_CODE {
        return true;
    }
    let Ok(inside) = parent.open_child(name) else { return false };
    let filled = FILLED_FROM.iter().find(|(directory, _)| *directory == name);
    let is_made = filled.is_some_and(|(_, manifests)| has_any(parent, manifests))
        || has_any(&inside, LEFT_IN_ENVIRONMENT)
        || is_tagged(&inside)
        || name == MODULES && has_any(&inside, LEFT_IN_MODULES);
    is_made && !has_repository(&inside)
}

/// Whether a repository lies in a directory, where package managers put one: as one of its
/// directories, or in one of those. With very many of them, only in npm scopes (`@name`).
fn has_repository(dir: &Dir) -> bool {
    let names = directories(dir);
    let is_few = names.len() <= LOOKED_INTO_MAX;
    let has = |dir: &Dir, name: &CStr| {
        let git = [name.to_bytes(), b"/.git\0"].concat();
        CStr::from_bytes_with_nul(&git).is_ok_and(|git| dir.stat_child(git).is_ok())
    };
    let has_below = |name: &CStr| {
        dir.open_child(name).is_ok_and(|child| directories(&child).iter().any(|it| has(&child, it)))
    };
    let may_have = |name: &CStr| is_few || name.to_bytes().starts_with(b"@");
    names.iter().any(|name| has(dir, name) || may_have(name) && has_below(name))
}

fn directories(dir: &Dir) -> Vec<CString> {
    let mut names = Vec::new();
    let listed = dir.listable().and_then(|dir| {
        dir.list(|listed| {
            if listed.kind.is_none_or(|kind| kind == Kind::Directory) {
                names.push(listed.name);
            }
        })
    });
    // What cannot be listed is named when it is looked at.
    if listed.is_ok() { names } else { Vec::new() }
}

/// Whether `name` in `parent` is very probably build output.
pub(super) fn is_output(parent: &Dir, name: &CStr) -> bool {
    OUTPUTS.contains(&name) && has_any(parent, MANIFESTS)
}

fn has_any(dir: &Dir, names: &[&CStr]) -> bool {
    names.iter().any(|&name| dir.stat_child(name).is_ok())
}

fn is_tagged(dir: &Dir) -> bool {
    let is_file = |stamp: crate::model::Stamp| stamp.kind() == Some(Kind::File);
    if !dir.stat_child(CACHE_TAG).is_ok_and(is_file) {
        return false;
    }
    let mut start = [0; CACHE_TAG_SIGNATURE.len()];
    let read = dir.open_file(CACHE_TAG).and_then(|(mut file, _)| file.read_exact(&mut start));
    read.is_ok() && start == CACHE_TAG_SIGNATURE
}

/// Whether a path is, or lies in, an ignored directory of build output.
pub(super) fn is_in_output(scan: &Scan, way: &mut DirCursor<'_>, path: &RelPath) -> bool {
    let mut above = std::iter::successors(Some(path.clone()), RelPath::parent);
    above.any(|path| {
        let is_ignored = scan.find(&path).is_some_and(|row| row.marks.ignored);
        let mut parent = || way.parent_of(&path).ok().zip(c_name(path.name()).ok());
        is_ignored && parent().is_some_and(|(parent, name)| is_output(&parent, &name))
    })
}
