//! What comes from outside: its licences, where it is fetched from, and what is there twice. A small
//! part of what cargo-deny does; see `docs/decisions/081-crates.md`.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
};

use serde_json::Value;

/// Licences that a program under MIT or Apache-2.0 may ship with. Of several joined by OR one is
/// enough, of several joined by AND all are needed.
const LICENCES: &[&str] = &[
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "ISC",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Crates that two others want in two versions. The list only ever gets shorter.
const TWICE: &[&str] = &[
    "bitflags", "darling", "darling_core", "darling_macro", "defmt", "hashbrown", "signal-hook",
    "similar", "syn",
];

fn run(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Every crate that this system's build has, as cargo knows it; nothing is fetched.
fn packages() -> Vec<Value> {
    let version = run("rustc", &["-vV"]);
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let args =
        ["metadata", "--format-version=1", "--offline", "--locked", "--filter-platform", host];
    let metadata: Value = serde_json::from_str(&run(env!("CARGO"), &args)).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

fn is_allowed(licence: &str) -> bool {
    let licence = licence.replace(['(', ')'], "").replace('/', " OR ");
    let any = |part: &str| part.split(" OR ").any(|one| LICENCES.contains(&one.trim()));
    licence.split(" AND ").all(any)
}

#[test]
fn every_crate_has_a_licence_we_may_ship_and_comes_from_the_registry() {
    assert!(is_allowed("(MIT OR GPL-3.0) AND Unicode-3.0") && !is_allowed("MIT AND GPL-3.0"));
    let mut faults = BTreeSet::new();
    for package in packages() {
        let text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
        let (name, licence, source) = (text("name"), text("license"), text("source"));
        if !is_allowed(&licence) {
            faults.insert(format!("{name}: licence `{licence}`"));
        }
        let is_ours = package["source"].is_null();
        if !is_ours && source != "registry+https://github.com/rust-lang/crates.io-index" {
            faults.insert(format!("{name}: from `{source}`"));
        }
    }
    assert_eq!(faults, BTreeSet::new());
}

#[test]
fn no_more_crates_are_there_twice() {
    let mut versions = BTreeMap::<String, usize>::new();
    for package in packages() {
        *versions.entry(package["name"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    let twice = versions.into_iter().filter(|(_, count)| *count > 1).map(|(name, _)| name);
    let new: Vec<_> = twice.filter(|name| !TWICE.contains(&name.as_str())).collect();
    assert_eq!(new, Vec::<String>::new());
}
