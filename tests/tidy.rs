//! Properties of the source itself.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Modules from the ground up; see `docs/ARCHITECTURE.md`. Each may use itself, those beside it
/// and those above it in this list, never one below.
const LAYERS: &[&[&str]] = &[
    &["model"],
    &["crash", "error", "process"],
    &["agent", "fs", "policy", "shell", "ui"],
    &["plan", "root", "state", "transcript"],
    &["cache", "config", "journal"],
    &["reach", "restore_log", "scan"],
    &["ledger", "store"],
    &["snapshot"],
    &["left"],
    &["project"],
    &["apply", "guard", "hook", "maintenance", "install"],
    &["restore"],
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
    for (path, text) in sources(&["src"]) {
        let module = module_of(&path);
        if module == "main" {
            continue;
        }
        for used in used_modules(code_of(&text)) {
            if layer(&module) < layer(&used) {
                faults.push(format!("{}: {module} uses {used}", path.display()));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// What differs between operating systems stands in three places: files, processes, the terminal.
#[test]
fn the_operating_system_is_asked_in_one_place() {
    let is_place = |path: &Path| {
        let path = path.to_str().unwrap();
        path.starts_with("src/fs/") || ["src/process.rs", "src/ui/picker/screen.rs"].contains(&path)
    };
    let elsewhere = sources(&["src"]).into_iter().filter(|(path, _)| !is_place(path));
    let asks =
        |text: &str| ["rustix::", "target_os"].iter().any(|word| code_of(text).contains(word));
    let faults: Vec<_> =
        elsewhere.filter(|(path, text)| !path.ends_with("tests.rs") && asks(text)).collect();
    let faults: Vec<_> = faults.into_iter().map(|(path, _)| path).collect();
    assert!(faults.is_empty(), "only `fs`, `process` and the picker's screen may: {faults:?}");
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

/// The modules that `crate::` paths name, in a list between braces too.
fn used_modules(code: &str) -> Vec<String> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let name = |text: &str| text.chars().take_while(|&c| is_name(c)).collect::<String>();
    let mut used = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            None => used.push(name(rest)),
            Some(list) => {
                let mut depth = 0;
                let mut is_start = true;
                for (at, c) in list.char_indices() {
                    match c {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        ',' if depth == 0 => is_start = true,
                        _ if depth == 0 && is_start && is_name(c) => {
                            used.push(name(&list[at..]));
                            is_start = false;
                        }
                        _ => (),
                    }
                }
            }
        }
    }
    used.retain(|used| used.starts_with(|c: char| c.is_lowercase()) && used != "run");
    used
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
