//! Codex's own approval of hooks, as a part of `beforehand install`: said what it is, asked for by
//! itself, never taken for granted.

use std::path::{Path, PathBuf};

use super::{InstallArgs, running};
use crate::{
    commands::{root_here, say_text},
    error::Result,
    fs::read_small,
    install::{HookEntry, HookStatus, InstallRow, Plan, Site, look, ours_of, untrusted},
    process::Process,
    state::StateDir,
    ui,
};

/// Larger than any configuration a person wrote.
const CONFIG_MAX_BYTES: u64 = 2 << 20;

/// Hooks that Codex would skip.
struct UntrustedHooks {
    /// Codex's `config.toml`.
    config: Site,
    /// The file they are in.
    hooks: PathBuf,
    entries: Vec<HookEntry>,
}

/// Approves of our hooks in Codex, if the user says so: with `--trust`, or asked in a terminal.
/// `--yes` is about files of settings and is not taken for an answer to this. Gives what is left
/// for the user to do.
///
/// # Errors
///
/// Fails if Codex's `config.toml` cannot be written.
pub(super) fn settle(
    process: &mut Process<'_>,
    args: &InstallArgs,
    rows: &[&InstallRow],
    state: &StateDir,
) -> Result<Vec<String>> {
    let Some(row) = rows.iter().find(|row| row.agent == "codex").filter(|_| !args.dry_run) else {
        return Ok(Vec::new());
    };
    let mut left = Vec::new();
    for skipped in skipped(process, args, row, state) {
        if is_approved(process, args, &skipped) {
            let plan = Plan::approve(skipped.config, &skipped.hooks, &skipped.entries, state);
            plan.apply(state)?;
            left.extend(plan.refused.into_iter().map(|(_, err)| format!("{err}; use `/hooks`")));
        } else {
            left.push(
                "it skips these hooks in silence until they are approved: `/hooks` in codex, or \
                 `beforehand install codex --trust`"
                    .to_owned(),
            );
        }
    }
    Ok(left)
}

/// What of ours is there and not approved. What cannot be read, the doctor tells of.
fn skipped(
    process: &Process<'_>,
    args: &InstallArgs,
    row: &InstallRow,
    state: &StateDir,
) -> Vec<UntrustedHooks> {
    let ours = ours_of(state, running(process).as_ref());
    let users = row.sites(process);
    let Some(config) = users.iter().find(|site| site.path.ends_with("config.toml")).cloned() else {
        return Vec::new();
    };
    let sites = match root_here(process).filter(|_| args.project) {
        Some(root) => row.project_sites(&root),
        None => users,
    };
    let bytes = read_small(&config.path, CONFIG_MAX_BYTES).ok().flatten().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let of = |site: Site| {
        let Ok(HookStatus::Entries(entries, _)) = look(&site, &ours) else { return None };
        let events = untrusted(&text, &site.path, &entries).ok()?;
        let entries: Vec<_> =
            entries.into_iter().filter(|entry| events.contains(&entry.event)).collect();
        let hooks = site.path;
        (!entries.is_empty()).then(|| UntrustedHooks { config: config.clone(), hooks, entries })
    };
    sites.into_iter().filter_map(of).collect()
}

fn is_approved(process: &mut Process<'_>, args: &InstallArgs, skipped: &UntrustedHooks) -> bool {
    if args.trust {
        return true;
    }
    if args.json || !process.terminal.stdin {
        return false;
    }
    let home = process.home();
    let told = explained(skipped, home.as_deref());
    say_text(process, &told);
    ui::ask(process, "approve them?")
}

fn explained(skipped: &UntrustedHooks, home: Option<&Path>) -> String {
    let mut text = format!(
        "\nCodex runs a hook only after its user has approved it, and skips it in silence until \
         then.\nIts `/hooks` shows each command and asks. beforehand can note the same approval for \
         you,\nin {}, for what it has just put into {}\nand nothing else:\n",
        ui::path(&skipped.config.path, home),
        ui::path(&skipped.hooks, home),
    );
    for entry in &skipped.entries {
        let command = ui::escape(entry.command.as_bytes());
        text.push_str(&format!("  {:<17} {command}\n", entry.event));
    }
    text
}
