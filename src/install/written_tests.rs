//! The files of `hooks/`, and the files in the table of its README, are written from the rows of the
//! agents: `BEFOREHAND_UPDATE=1 cargo test --lib written` writes them.

use std::{collections::BTreeSet, fs, path::Path};

use super::{ROWS, block::BlockFormat, line, merge::Entries, rows::Edit, *};
use crate::agent::{FileKind, InstallFile, hooks_tests::assert_written};

/// The file of `hooks/` from which a file of an agent's is made, if it is one for all machines.
fn source(row: &InstallRow, file: &InstallFile) -> Option<String> {
    let name = Path::new(file.path).file_name().unwrap().to_str().unwrap();
    match file.kind {
        FileKind::Entries(_) => Some(format!("{}.json", row.agent)),
        FileKind::TomlList(_) => Some(format!("{}.toml", row.agent)),
        FileKind::Yaml => Some(format!("{}.yaml", row.agent)),
        FileKind::Plugin(_) | FileKind::Script => Some(format!("{}/{name}", row.agent)),
        FileKind::TomlTables
        | FileKind::Setting(..)
        | FileKind::Command(_)
        | FileKind::Advice(_) => None,
    }
}

/// The path of a file, as people write it.
fn place(row: &InstallRow, path: &str) -> String {
    let dir = row.hooks_dir().dir;
    if dir.is_empty() { format!("~/{path}") } else { format!("~/{dir}/{path}") }
}

#[test]
fn the_files_of_hooks_are_written_from_the_rows() {
    let on_path = ProgramPath::on_path();
    let mut written = BTreeSet::new();
    for row in ROWS {
        for file in row.user.iter().chain(row.each).chain(row.project) {
            let source = source(row, file);
            let text = match row.edit(file) {
                Edit::Merge(entries) => {
                    let entries = Entries { holder: row.dialect().hooks.holder, ..entries };
                    format!("{:#}\n", entries.wanted(&on_path))
                }
                Edit::Lines(block @ (BlockFormat::Yaml { .. } | BlockFormat::TomlList { .. })) => {
                    let place = place(row, file.path);
                    format!("# Append to {place}.\n{}", block.lines(&on_path))
                }
                Edit::Script(agent) => line::script(&on_path, agent),
                Edit::Whole(template) => {
                    assert_eq!(template.filled(&on_path).unwrap(), template.text, "{}", row.agent);
                    continue;
                }
                Edit::Lines(BlockFormat::Toml(_)) | Edit::HookDir(_) => continue,
            };
            let source = source.unwrap();
            assert_written(&source, &text);
            written.insert(source);
        }
    }
    let hooks = Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks");
    for entry in fs::read_dir(hooks).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let is_one = [".json", ".toml", ".yaml"].iter().any(|end| name.ends_with(end));
        assert!(!is_one || written.contains(&name), "hooks/{name} is of no row");
    }
}

/// The second column of the table in `hooks/README.md`: which file goes where.
fn column(row: &InstallRow) -> String {
    let mut parts: Vec<String> = Vec::new();
    for file in row.user {
        let path = place(row, file.path);
        let dir = path.rsplit_once('/').map_or("", |(dir, _)| dir);
        let source = source(row, file).unwrap_or_default();
        parts.extend(match file.kind {
            FileKind::Entries(_) => Some(format!("`{source}` → `{path}`")),
            FileKind::TomlList(_) | FileKind::Yaml => {
                Some(format!("`{source}` → the end of `{path}`"))
            }
            FileKind::Plugin(_) => Some(format!("`{source}` → `{dir}/`")),
            FileKind::Script => Some(format!("`{}/*` → `{dir}/`, executable", row.agent)),
            FileKind::Setting(keys, value) => {
                let (name, above) = keys.split_last().unwrap();
                let below = format!("below `{}` in `{path}`", above.join("."));
                Some(format!("`{name}` is `{}` {below}", value.trim()))
            }
            FileKind::TomlTables | FileKind::Command(_) | FileKind::Advice(_) => None,
        });
    }
    for file in row.each {
        parts.push(format!("`{}.json` → each file in `~/{}/`", row.agent, file.path));
    }
    let mut in_project = row.project.iter().filter(|file| file.kind.is_hook());
    if let Some(file) = in_project.next() {
        let path = Path::new(row.project_dir).join(file.path);
        let place = if file.kind.is_settings() {
            format!("in a project `{}`", path.display())
        } else {
            format!("in a project `{}/`", path.parent().unwrap().display())
        };
        let source = source(row, file).filter(|_| parts.is_empty());
        parts.push(source.map_or(place.clone(), |source| format!("`{source}` → {place}")));
    }
    parts.dedup();
    if row.second == 1000 {
        parts.push("in milliseconds".to_owned());
    }
    parts.join("; ")
}

#[test]
fn the_table_of_the_readme_is_written_from_the_rows() {
    const HEAD: &str = "| agent | file here → destination | before a call ";
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks/README.md");
    let text = fs::read_to_string(readme).unwrap();
    let start = text.find(HEAD).unwrap();
    let (table, rest) = text[start..].split_once("\n\n").unwrap();
    let lines: Vec<&str> = table.lines().collect();
    let mut new: Vec<String> = lines[..2].iter().map(|line| (*line).to_owned()).collect();
    for row in ROWS {
        let own = format!("| {}", row.title());
        let known = lines[2..].iter().find(|line| line.starts_with(&own));
        let mut cells = known.unwrap_or(&"").splitn(3, " | ");
        let label = cells.next().filter(|label| !label.is_empty()).unwrap_or(&own);
        let others = cells.nth(1).unwrap_or("| | | | |");
        new.push(format!("{label} | {} | {others}", column(row)));
    }
    let new = format!("{}{}\n\n{rest}", &text[..start], new.join("\n"));
    assert_written("README.md", &new);
}
