//! `beforehand fork --list`: the forks of a project.

use std::path::Path;

use chrono::SecondsFormat;
use serde_json::json;

use super::{enter, quoted};
use crate::{
    commands::{Project, print, print_json},
    error::Result,
    forked::{self, ForkEntry},
    process::{Exit, Process},
    ui::{self, Clock},
};

pub(super) fn run(process: &mut Process<'_>, project: &Project, is_json: bool) -> Result<Exit> {
    let forks = forked::forks(&project.state, project.root.path())?;
    if is_json {
        let forks: Vec<_> = forks.iter().map(|(fork, _)| as_json(fork)).collect();
        print_json(process, "forks", json!({ "forks": forks }))?;
        return Ok(Exit::Ok);
    }
    let mut text = String::new();
    for (fork, _) in &forks {
        let name = ui::escape_path(Path::new(fork.dir.file_name().unwrap_or_default()));
        let dir = ui::path(&fork.dir, project.home.as_deref());
        let when = Clock::local(process.now).when(fork.at);
        text.push_str(&format!("{name}  {dir}  from {}, {when}{}\n", fork.of.short(), badge(fork)));
        if fork.is_there() && fork.is_finished() {
            let resume = match fork.resume.join(" ") {
                command if command.is_empty() => format!("cd {}", quoted(&fork.dir)),
                command => format!("{}{command}", enter(fork)),
            };
            text.push_str(&format!("  go on with: {resume}\n"));
        }
    }
    if text.is_empty() {
        text.push_str("no forks; `beforehand fork N` makes one from before turn N\n");
    }
    print(process, &text)?;
    Ok(Exit::Ok)
}

/// What is wrong with a fork.
fn badge(fork: &ForkEntry) -> &'static str {
    match (fork.is_finished(), fork.is_there()) {
        (true, true) => "",
        (true, false) => ", gone",
        (false, _) => ", unfinished",
    }
}

fn as_json(fork: &ForkEntry) -> serde_json::Value {
    json!({
        "name": fork.dir.file_name().unwrap_or_default().to_string_lossy(),
        "dir": fork.dir.to_string_lossy(),
        "checkpoint": fork.of.to_string(),
        "made_at": fork.at.to_rfc3339_opts(SecondsFormat::Secs, true),
        "is_finished": fork.is_finished(),
        "is_there": fork.is_there(),
        "resume": fork.resume,
    })
}
