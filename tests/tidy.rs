//! Properties of the source itself.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

mod prose;

/// Modules from the ground up; see `docs/ARCHITECTURE.md`. Each may use itself, those beside it
/// and those above it in this list, never one below.
const LAYERS: &[&[&str]] = &[
    &["model"],
    &["crash", "error", "process"],
    &["agent", "fs", "policy", "shell", "ui"],
    &["git_index", "plan", "root", "state", "transcript"],
    &["cache", "config", "journal"],
    &["reach", "restore_log", "scan"],
    &["forked", "ledger", "store"],
    &["snapshot"],
    &["attribution"],
    &["project"],
    &["apply", "guard", "health", "hook", "maintenance", "install"],
    &["restore"],
    &["fork"],
    &["commands"],
    &["cli"],
    &["fuzzing"],
    &["lib"],
];

/// Beyond this a file is two files.
const LINES_MAX: usize = 700;

fn layer(module: &str) -> usize {
    LAYERS
        .iter()
        .position(|layer| layer.contains(&module))
        .unwrap_or_else(|| panic!("`{module}` is in no layer; add it to LAYERS"))
}

#[test]
fn imports_point_down() {
    let mut faults = Vec::new();
    let modules = Modules::of(&sources(&["src"]));
    for (path, text) in sources(&["src"]) {
        let module = module_of(&path);
        if module == "main" {
            continue;
        }
        let used = imports(&modules, &names_of(&path), code_of(&text));
        for used in used.iter().filter_map(|path| path.0.first()).filter(|used| *used != "main") {
            if layer(&module) < layer(used) {
                faults.push(format!("{}: {module} uses {used}", path.display()));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Of two modules beside each other, at most one knows the other, and not by way of a third either.
/// A parent and its own children may know each other.
#[test]
fn no_modules_import_each_other_in_a_circle() {
    let sources = sources(&["src"]);
    let found = circles(&sources);
    assert!(found.is_empty(), "in a circle: {}", found.join(", "));
    // What the test itself would miss.
    let file = |path: &str, text: &str| (PathBuf::from(path), text.to_owned());
    let invented = [
        file("src/lib.rs", "pub mod a;"),
        file("src/a/mod.rs", "mod b;\nmod c;\npub use self::b::{One, other::Two};\n"),
        file("src/a/b.rs", "use super::c::Three;"),
        file("src/a/c.rs", "use crate::{\n    a::{self, One},\n};"),
    ];
    assert_eq!(circles(&invented), ["a: b", "a: c"], "by way of what a parent passes on");
}

/// The modules that import themselves by way of others beside them.
fn circles(sources: &[(PathBuf, String)]) -> Vec<String> {
    let modules = Modules::of(sources);
    // By directory, which of its modules imports which.
    let mut beside: BTreeMap<Vec<String>, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for (path, text) in sources {
        let from = names_of(path);
        for (used, _) in imports(&modules, &from, code_of(text)) {
            let common = from.iter().zip(&used).take_while(|(a, b)| a == b).count();
            if let (Some(a), Some(b)) = (from.get(common), used.get(common)) {
                let here = beside.entry(from[..common].to_vec()).or_default();
                here.entry(a.clone()).or_default().insert(b.clone());
            }
        }
    }
    let mut circles = Vec::new();
    for (directory, imports) in &beside {
        for module in imports.keys() {
            let mut reached = BTreeSet::new();
            let mut open = vec![module];
            while let Some(at) = open.pop() {
                let used = imports.get(at).into_iter().flatten();
                open.extend(used.filter(|used| reached.insert(*used)));
            }
            if reached.contains(module) {
                circles.push(format!("{}: {module}", directory.join("::")));
            }
        }
    }
    circles
}

/// What differs between operating systems stands in three places: files, processes, the terminal.
#[test]
fn the_operating_system_is_asked_in_one_place() {
    let is_place = |path: &Path| {
        let path = path.to_str().unwrap();
        let is_below = |dir| path.starts_with(dir);
        ["src/fs/", "src/process/"].into_iter().any(is_below) || path == "src/ui/picker/screen.rs"
    };
    let elsewhere = sources(&["src"]).into_iter().filter(|(path, _)| !is_place(path));
    let asks =
        |text: &str| ["rustix::", "target_os"].iter().any(|word| code_of(text).contains(word));
    let faults: Vec<_> =
        elsewhere.filter(|(path, text)| !path.ends_with("tests.rs") && asks(text)).collect();
    let faults: Vec<_> = faults.into_iter().map(|(path, _)| path).collect();
    assert!(faults.is_empty(), "only `fs`, `process` and the picker's screen may: {faults:?}");
}

/// A reader who meets a name knows which type it is, without its imports.
#[test]
fn no_type_name_stands_twice() {
    let found = types_named_twice(&sources(&["src"]));
    assert!(found.is_empty(), "rename each by what it is:\n{}", found.join("\n"));
    // What the test itself would miss.
    let file = |path: &str, text: &str| (PathBuf::from(path), text.to_owned());
    let invented = [
        file("src/a.rs", "pub(in crate::b) struct One<'a> {\ntype Two = u8;\nenum Three;\n"),
        file("src/b.rs", "impl Iterator for One {\n    type Two = u8;\n}\nstruct Four(One);\n"),
        file("src/c.rs", "fn f() {\n    struct One;\n}\npub unsafe trait Three: Four {}\n"),
    ];
    let found = ["One: src/a.rs:1, src/c.rs:2", "Three: src/a.rs:3, src/c.rs:4"];
    assert_eq!(types_named_twice(&invented), found);
}

/// Each type name that is defined more than once, with the places. The associated types of traits,
/// which are indented, share the name that the trait gives them.
fn types_named_twice(sources: &[(PathBuf, String)]) -> Vec<String> {
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (path, text) in sources {
        for (at, line) in text.lines().enumerate() {
            if let Some(name) = defined_type(line) {
                places.entry(name).or_default().push(format!("{}:{}", path.display(), at + 1));
            }
        }
    }
    places.retain(|_, places| places.len() > 1);
    places.into_iter().map(|(name, places)| format!("{name}: {}", places.join(", "))).collect()
}

/// The type that a line begins to define.
fn defined_type(line: &str) -> Option<&str> {
    let mut words = line.split([' ', '<', '(', ';', ':', '=', '{']).filter(|word| !word.is_empty());
    let keyword = words.find(|word| {
        !(word.starts_with("pub")
            || word.ends_with(')')
            || ["unsafe", "in", "crate"].contains(word))
    })?;
    let is_type = ["struct", "enum", "trait", "union"].contains(&keyword)
        || (keyword == "type" && !line.starts_with(' '));
    words.next().filter(|_| is_type)
}

#[test]
fn every_file_says_what_it_knows() {
    let bare = sources(&["src", "tests"]).into_iter().filter(|(_, text)| !text.starts_with("//! "));
    let bare: Vec<_> = bare.map(|(path, _)| path).collect();
    assert!(bare.is_empty(), "without a first line: {bare:?}");
}

#[test]
fn no_file_is_two_files() {
    for (path, text) in sources(&["src", "tests"]) {
        let lines = text.lines().count();
        assert!(lines <= LINES_MAX, "{} is longer than {LINES_MAX} lines", path.display());
    }
}

#[test]
fn nothing_is_unwrapped_outside_tests() {
    let mut faults = Vec::new();
    for (path, text) in sources(&["src"]) {
        let is_test = path.to_str().unwrap().ends_with("tests.rs");
        let found = code_of(&text)
            .lines()
            .position(|line| line.contains(".unwrap()") && !line.trim_start().starts_with("//"));
        if let (false, Some(line)) = (is_test, found) {
            faults.push(format!("{}:{}", path.display(), line + 1));
        }
    }
    assert!(faults.is_empty(), "unwrap outside tests: {}", faults.join(", "));
}

#[test]
fn the_map_names_every_module() {
    let map = fs::read_to_string("docs/ARCHITECTURE.md").unwrap();
    for module in LAYERS.iter().copied().flatten() {
        assert!(map.contains(&format!("`{module}`")), "`{module}` is not in docs/ARCHITECTURE.md");
    }
}

#[test]
fn git_ignores_the_developers_own_config() {
    #[expect(clippy::disallowed_methods, reason = "checks what cargo passed on")]
    let global = std::env::var("GIT_CONFIG_GLOBAL");
    assert!(global.unwrap().ends_with("fixtures/empty.gitconfig"));
}

/// The code of a file without the tests at its end.
fn code_of(text: &str) -> &str {
    text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or(text)
}

fn module_of(path: &Path) -> String {
    let below_src = path.strip_prefix("src").unwrap();
    let first = below_src.components().next().unwrap().as_os_str().to_str().unwrap();
    first.trim_end_matches(".rs").to_owned()
}

/// The names of a module, from the top of the crate.
fn names_of(path: &Path) -> Vec<String> {
    let below = path.strip_prefix("src").unwrap().with_extension("");
    let mut names: Vec<String> =
        below.iter().map(|name| name.to_str().unwrap().to_owned()).collect();
    if names.last().is_some_and(|last| last == "mod") {
        names.pop();
    }
    names
}

/// A module, or something in one: the module, and what follows.
type Place = (Vec<String>, Vec<String>);

/// The modules of a crate, and what they pass on.
struct Modules {
    names: BTreeSet<Vec<String>>,
    /// Names that a module imports, and so passes on to its children, and where they are from.
    passed_on: BTreeMap<Place, Place>,
}

impl Modules {
    fn of(sources: &[(PathBuf, String)]) -> Self {
        let names = sources.iter().map(|(path, _)| names_of(path)).collect();
        let mut modules = Self { names, passed_on: BTreeMap::new() };
        let mut passed_on = BTreeMap::new();
        for (path, text) in sources {
            let at = names_of(path);
            for path in uses(&at, code_of(text)) {
                let (module, rest) = modules.split(&path);
                if let [name] = &rest[..] {
                    passed_on.insert((at.clone(), vec![name.clone()]), (module, rest));
                }
            }
        }
        modules.passed_on = passed_on;
        modules
    }

    /// The module that a path leads to, and what of the path is left.
    fn split(&self, path: &[String]) -> Place {
        let is_module = |part: &[String]| self.names.iter().any(|module| module.starts_with(part));
        let count = (0..=path.len()).rev().find(|count| is_module(&path[..*count])).unwrap();
        (path[..count].to_vec(), path[count..].to_vec())
    }
}

/// Where what a module uses is really from.
fn imports(modules: &Modules, from: &[String], code: &str) -> Vec<Place> {
    let mut found = Vec::new();
    for path in uses(from, code) {
        let mut place = modules.split(&path);
        for _ in 0..10 {
            let name: Vec<String> = place.1.iter().take(1).cloned().collect();
            match modules.passed_on.get(&(place.0.clone(), name)) {
                Some(next) if *next != place => place = next.clone(),
                _ => break,
            }
        }
        found.push(place);
    }
    found
}

/// The paths in a file that begin with `crate`, `self` or `super`, from the top of the crate.
fn uses(from: &[String], code: &str) -> Vec<Vec<String>> {
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code: String = lines.collect::<Vec<_>>().join("\n");
    let mut found = Vec::new();
    let mut rest = code.as_str();
    while let Some(at) =
        ["crate::", "super::", "self::"].iter().filter_map(|word| rest.find(word)).min()
    {
        let is_whole = !rest[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let mut base = from.to_vec();
        let mut path = &rest[at..];
        match path.strip_prefix("crate::").or(path.strip_prefix("self::")) {
            Some(below) => {
                base.truncate(if path.starts_with("crate") { 0 } else { base.len() });
                path = below;
            }
            None => {
                while let Some(below) = path.strip_prefix("super::") {
                    base.pop();
                    path = below;
                }
            }
        }
        if is_whole {
            found.extend(paths_in(path).into_iter().map(|end| [&base[..], &end].concat()));
        }
        rest = path;
    }
    found
}

/// The paths that a text begins with: one, or those of a list between braces.
fn paths_in(text: &str) -> Vec<Vec<String>> {
    let text = text.trim_start();
    if let Some(list) = text.strip_prefix('{') {
        let (mut depth, mut begin, mut paths) = (0, 0, Vec::new());
        for (at, c) in list.char_indices() {
            let is_end = depth == 0 && matches!(c, ',' | '}');
            if is_end {
                paths.extend(paths_in(&list[begin..at]));
                begin = at + 1;
            }
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                _ => (),
            }
        }
        return paths;
    }
    let name: String = text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    if name.is_empty() || name == "self" {
        return vec![Vec::new()];
    }
    match text[name.len()..].strip_prefix("::") {
        None => vec![vec![name]],
        Some(below) => {
            let below = paths_in(below).into_iter();
            let mut paths: Vec<Vec<String>> =
                below.map(|path| [vec![name.clone()], path].concat()).collect();
            if paths.is_empty() {
                paths.push(vec![name]);
            }
            paths
        }
    }
}

fn sources(dirs: &[&str]) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = dirs.iter().map(PathBuf::from).collect();
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    found
}
