//! Parses the settings file: each setting with its line. Accepts what is valid and reports the
//! rest.

use std::path::{Path, PathBuf};

use toml::{
    Spanned,
    de::{DeInteger, DeTable, DeValue},
};

use super::{
    Trouble, Troubles,
    keys::{KEYS, SettingKey, SettingScope, did_you_mean},
    values::SettingValue,
};
use crate::{fs::Small, model::Settings, ui};

/// Larger than any handwritten settings file, and small enough to read in a hook.
const SIZE_MAX: u64 = 1 << 20;

/// The content of a settings file.
#[derive(Default)]
pub(super) struct FileSettings {
    /// Settings for every directory.
    pub(super) shared: Vec<SettingLine>,
    /// Settings for one directory and everything below it, in no particular order.
    pub(super) directories: Vec<(PathBuf, Vec<SettingLine>)>,
}

/// One setting of the file, with a valid value.
pub(super) struct SettingLine {
    pub(super) key: &'static SettingKey,
    pub(super) value: SettingValue,
    pub(super) line: usize,
}

/// Reads the settings file.
pub(super) fn read(
    found: Small,
    path: &Path,
    home: Option<&Path>,
    troubles: &mut Troubles,
) -> FileSettings {
    let place = || ui::escape_path(path).into_owned();
    let bytes = match found.read(path, SIZE_MAX) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return FileSettings::default(),
        Err(err) => {
            let why = std::error::Error::source(&err).map_or_else(String::new, ToString::to_string);
            troubles.push(|| Trouble::new(place(), format!("cannot be read: {why}")));
            return FileSettings::default();
        }
    };
    let Ok(text) = str::from_utf8(&bytes) else {
        troubles.push(|| Trouble::new(place(), "is not UTF-8 text".to_owned()));
        return FileSettings::default();
    };
    let lines = LineStarts::of(text);
    match DeTable::parse(text) {
        Ok(table) => {
            let mut reader = SettingsReader { place: place(), home, lines, troubles };
            reader.file(table.get_ref())
        }
        Err(err) => {
            let line = lines.at(err.span().map_or(0, |span| span.start));
            let why = format!("is not TOML: {}", ui::escape(err.message().as_bytes()));
            troubles.push(|| Trouble::new(format!("{}:{line}", place()), why));
            FileSettings::default()
        }
    }
}

/// The offsets at which the lines of a text begin.
struct LineStarts(Vec<usize>);

impl LineStarts {
    fn of(text: &str) -> Self {
        Self(text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(at, _)| at + 1).collect())
    }

    /// The number of the line with byte `at`, from 1.
    fn at(&self, at: usize) -> usize {
        self.0.partition_point(|start| *start <= at) + 1
    }
}

struct SettingsReader<'a> {
    place: String,
    home: Option<&'a Path>,
    lines: LineStarts,
    troubles: &'a mut Troubles,
}

impl SettingsReader<'_> {
    fn file(&mut self, table: &DeTable<'_>) -> FileSettings {
        let mut said = FileSettings::default();
        for (name, value) in table {
            if name.get_ref() == "directory" {
                said.directories = self.directories(value);
            } else {
                self.entry(name.get_ref(), name, value, SettingScope::Shared, &mut said.shared);
            }
        }
        said
    }

    fn directories(&mut self, value: &Spanned<DeValue<'_>>) -> Vec<(PathBuf, Vec<SettingLine>)> {
        let at = value.span().start;
        let Some(tables) = value.get_ref().as_table() else {
            self.trouble(at, || "directory: expected `[directory.\"/path\"]`".to_owned());
            return Vec::new();
        };
        let mut directories = Vec::new();
        for (path, value) in tables {
            let at = path.span().start;
            match (self.directory(path.get_ref()), value.get_ref().as_table()) {
                (Some(directory), Some(table)) => {
                    let mut lines = Vec::new();
                    for (name, value) in table {
                        self.entry(
                            name.get_ref(),
                            name,
                            value,
                            SettingScope::Directory,
                            &mut lines,
                        );
                    }
                    directories.push((directory, lines));
                }
                (None, _) => self.trouble(at, || {
                    let path = ui::escape(path.get_ref().as_bytes());
                    format!("directory: expected an absolute path, found `{path}`")
                }),
                (_, None) => {
                    self.trouble(at, || "directory: expected `[directory.\"/path\"]`".to_owned());
                }
            }
        }
        directories
    }

    fn directory(&self, given: &str) -> Option<PathBuf> {
        let path = match (given.strip_prefix("~/"), self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            (None, Some(home)) if given == "~" => home.to_owned(),
            (_, _) => PathBuf::from(given),
        };
        path.is_absolute().then_some(path)
    }

    /// Parses one `name = value`, or a whole table called `name`.
    fn entry(
        &mut self,
        name: &str,
        at: &Spanned<impl Sized>,
        value: &Spanned<DeValue<'_>>,
        scope: SettingScope,
        lines: &mut Vec<SettingLine>,
    ) {
        if let Some(key) = SettingKey::find(name) {
            return self.setting(key, at.span().start, value, scope, lines);
        }
        let is_group = KEYS
            .iter()
            .any(|key| key.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')));
        match value.get_ref().as_table() {
            Some(table) if is_group => {
                for (below, value) in table {
                    let name = format!("{name}.{}", below.get_ref());
                    self.entry(&name, below, value, scope, lines);
                }
            }
            Some(_) | None if is_group => {
                self.trouble(at.span().start, || format!("{name}: expected a table"));
            }
            Some(_) | None => self.unknown(name, at.span().start, scope),
        }
    }

    fn setting(
        &mut self,
        key: &'static SettingKey,
        at: usize,
        value: &Spanned<DeValue<'_>>,
        scope: SettingScope,
        lines: &mut Vec<SettingLine>,
    ) {
        if (scope, key.scope) == (SettingScope::Directory, SettingScope::Shared) {
            let name = key.name;
            return self.trouble(at, || {
                format!("{name}: holds for all directories at once; set it above the first table")
            });
        }
        // Tried on other settings, so that a table for another directory is checked too.
        let tried = to_value(value.get_ref())
            .and_then(|value| key.set(&mut Settings::default(), &value).map(|()| value));
        match tried {
            Ok(value) => lines.push(SettingLine { key, value, line: self.lines.at(at) }),
            Err(why) => self.trouble(at, || format!("{}: {why}", key.name)),
        }
    }

    fn unknown(&mut self, name: &str, at: usize, scope: SettingScope) {
        let place = format!("{}:{}", self.place, self.lines.at(at));
        self.troubles.push(|| {
            let is_here = |key: &&SettingKey| scope == SettingScope::Shared || key.scope == scope;
            let names = KEYS.iter().filter(is_here).map(|key| key.name);
            Trouble::unknown(
                place,
                "key",
                name,
                did_you_mean(name, names.chain(["directory", "triggers", "shell"])),
            )
        });
    }

    fn trouble(&mut self, at: usize, why: impl FnOnce() -> String) {
        let place = format!("{}:{}", self.place, self.lines.at(at));
        self.troubles.push(|| Trouble::new(place, why()));
    }
}

/// A TOML type that settings do not use is reported by its name.
fn to_value(value: &DeValue<'_>) -> Result<SettingValue, String> {
    Ok(match value {
        DeValue::String(text) => SettingValue::Text(text.clone().into_owned()),
        DeValue::Integer(number) => SettingValue::Number(to_number(number)?),
        DeValue::Boolean(on) => SettingValue::Switch(*on),
        DeValue::Array(items) => {
            let text = |item: &Spanned<DeValue<'_>>| item.get_ref().as_str().map(str::to_owned);
            let items: Option<_> = items.iter().map(text).collect();
            SettingValue::List(items.ok_or("expected a list of texts only")?)
        }
        DeValue::Float(_) | DeValue::Datetime(_) | DeValue::Table(_) => {
            return Err(format!("a {} is no value for it", value.type_str()));
        }
    })
}

fn to_number(number: &DeInteger<'_>) -> Result<i64, String> {
    i64::from_str_radix(&number.as_str().replace('_', ""), number.radix())
        .map_err(|_| "a number too large to mean anything".to_owned())
}
