//! `beforehand config`: every setting and where it comes from.

use std::path::Path;

use serde_json::{Value as Json, json};

use super::{print_json, print_text, root_here, say, table_text};
use crate::{
    config::{self, SettingOrigin, SettingRow},
    error::Result,
    process::{Exit, Process},
    ui::{self, Cell, Column, Cut, Paint, Table},
};

/// Show every setting, its value here, and where that comes from.
///
/// Refuses a settings file with an unknown key or a value that makes no sense. The hook is more
/// patient: it says so once, and the default stands.
#[derive(clap::Args)]
pub(crate) struct ConfigArgs {
    /// Explain each setting
    #[arg(long)]
    pub(crate) explain: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Whether the patterns over command lines can be used, which only the judge of them can tell.
fn check_patterns(loaded: &config::LoadedSettings) -> Result<()> {
    let shell = &loaded.settings.shell;
    let refused = crate::shell::Patterns::parse(&shell.always, &shell.never).err();
    refused.map_or(Ok(()), |why| {
        let place = loaded.origin("shell.never").to_string();
        let hint = Some("name one program that cannot run others, as in `npm test*`".to_owned());
        Err(crate::error::Error::Setting { place, why: format!("`shell`: {why}"), hint })
    })
}

pub(crate) fn run(process: &mut Process<'_>, args: &ConfigArgs) -> Result<Exit> {
    // Settings exist without a root.
    let root = root_here(process);
    let loaded = config::load_strictly(process, root.as_deref())?;
    let rows = loaded.rows();
    check_patterns(&loaded)?;
    for note in &loaded.notes {
        say(process, &format!("note: {note}"));
    }
    let home = loaded.home.as_deref();
    if args.json {
        let rows: Vec<Json> = rows
            .iter()
            .map(|row| {
                let origin = row.origin.words(None);
                json!({ "key": row.key, "value": row.value, "origin": origin, "doc": row.doc })
            })
            .collect();
        print_json(process, "config", rows.into())?;
        return Ok(Exit::Ok);
    }
    let text = if args.explain {
        rows.iter().map(|row| with_doc(row, home)).collect()
    } else {
        table(process, &rows, home)
    };
    print_text(process, &text)?;
    if let Some(file) = &loaded.file {
        let is_there = if file.exists() { "" } else { " (there is none yet)" };
        let file = ui::path(file, home);
        say(process, &format!("\nsettings file: {file}{is_there}"));
    }
    Ok(Exit::Ok)
}

/// Origins before values: some values are long.
fn table(process: &Process<'_>, rows: &[SettingRow], home: Option<&Path>) -> String {
    let mut table = Table::new([Column::left(""), Column::left(""), Column::cut("", Cut::End)]);
    for row in rows {
        let paint = if row.origin == SettingOrigin::Default { Paint::Plain } else { Paint::Bold };
        let origin = Cell::new(&row.origin.words(home), Paint::Dim);
        table.row([row.key.into(), origin, Cell::new(&row.value.to_string(), paint)]);
    }
    table_text(process, &table)
}

fn with_doc(row: &SettingRow, home: Option<&Path>) -> String {
    format!("{} = {}   ({})\n    {}\n", row.key, row.value, row.origin.words(home), row.doc)
}
