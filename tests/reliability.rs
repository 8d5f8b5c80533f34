//! Checks that every test named in `docs/RELIABILITY.md` exists.

use std::fs;

/// The names between backquotes that look like tests: words between `::`.
fn named(document: &str) -> Vec<&str> {
    let quoted = document.split('`').skip(1).step_by(2);
    let is_word = |word: &str| {
        !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    quoted.filter(|name| name.contains("::") && name.split("::").all(is_word)).collect()
}

/// Where a test of that name could be.
fn files_of(name: &str) -> Vec<String> {
    let mut parts: Vec<&str> = name.split("::").collect();
    parts.pop();
    // The contract of the stores is told once, for each of them.
    parts.retain(|part| !part.starts_with("in_"));
    let path = parts.join("/");
    let own = path.strip_suffix("/tests").unwrap_or(&path).to_owned();
    vec![
        format!("tests/{path}.rs"),
        format!("src/{path}.rs"),
        format!("src/{own}.rs"),
        format!("src/{own}_tests.rs"),
        format!("src/{own}/mod.rs"),
    ]
}

fn exists(name: &str) -> bool {
    let last = name.rsplit("::").next().unwrap_or_default();
    let mut texts = files_of(name).into_iter().filter_map(|path| fs::read_to_string(path).ok());
    texts.any(|text| has_test(&text, last))
}

/// Whether `text` has a test of that name: a function below `#[test]`, or a row of the contract of
/// the stores, which makes one test for each store.
fn has_test(text: &str, name: &str) -> bool {
    if text.contains(&format!("fn {name}<")) {
        let is_row = |line: &str| line.trim().trim_end_matches(',') == name;
        return text.contains("macro_rules! contract") && text.lines().any(is_row);
    }
    let declared = format!("fn {name}(");
    let lines: Vec<&str> = text.lines().collect();
    let Some(at) = lines.iter().position(|line| line.trim().starts_with(&declared)) else {
        return false;
    };
    let above = lines[..at].iter().rev().map(|line| line.trim());
    let mut attributes = above.take_while(|line| line.starts_with("#[") || line.starts_with("//"));
    attributes.any(|line| line == "#[test]")
}

#[test]
fn every_test_it_names_exists() {
    let document = fs::read_to_string("docs/RELIABILITY.md").unwrap();
    let named = named(&document);
    assert!(named.len() > 80, "{}", named.len());
    let missing: Vec<_> = named.into_iter().filter(|name| !exists(name)).collect();
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(!exists("hostile::no_such_test"));
    // What the test itself would miss.
    assert!(has_test("#[test]\n// Why.\nfn a() {}\n", "a"));
    assert!(!has_test("fn a() {}\n\n#[test]\nfn b() {}\n", "a"), "it never runs");
    let contract = "macro_rules! contract {\n    a,\n}\nfn a<F: Fixture>() {}\n";
    assert!(has_test(contract, "a"));
    assert!(!has_test(&contract.replace("    a,", ""), "a"), "no store is asked");
}
