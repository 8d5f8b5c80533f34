//! Checks that every test named in `docs/RELIABILITY.md` exists.

use std::{fs, path::Path};

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
    let declared = [format!("fn {last}("), format!("fn {last}<")];
    files_of(name).iter().filter(|path| Path::new(path).exists()).any(|path| {
        let text = fs::read_to_string(path).unwrap();
        declared.iter().any(|declared| text.contains(declared))
    })
}

#[test]
fn every_test_it_names_exists() {
    let document = fs::read_to_string("docs/RELIABILITY.md").unwrap();
    let named = named(&document);
    assert!(named.len() > 80, "{}", named.len());
    let missing: Vec<_> = named.into_iter().filter(|name| !exists(name)).collect();
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(!exists("hostile::no_such_test"));
}
