//! The user's name and address, as git has them: from its configuration, read without running anything.

use std::path::Path;

use gix::config::{
    File,
    file::{Metadata, includes, init},
    path::interpolate,
};

use super::rule_sources::{CONFIG_MAX_BYTES, UserDirs};
use crate::{
    fs::read_small,
    model::{Root, RootKind},
};

/// Name and address of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitAuthor {
    /// As in `Ada Lovelace`.
    pub name: String,
    /// As in `ada@example.com`.
    pub email: String,
}

impl GitAuthor {
    /// What git would take for the author of a commit: from `GIT_AUTHOR_NAME` and `GIT_AUTHOR_EMAIL`, which
    /// `variable` reads, or from its configuration. Files that the user's own configuration includes count;
    /// those that the repository's includes do not, for they may be anywhere. `None` if either is not set.
    pub fn of(
        root: &Root,
        user: &UserDirs,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Option<Self> {
        let configs = configs(root, user);
        let from = |name: &str, key: &str| {
            let value = |section: &str, config: &File| {
                let value = config.raw_value_by(section, None, key).ok()?;
                Some(String::from_utf8_lossy(&value).into_owned())
            };
            let configured = ["author", "user"]
                .into_iter()
                .find_map(|section| configs.iter().find_map(|config| value(section, config)));
            let clean = |text: String| {
                text.replace(|c: char| c.is_control() || matches!(c, '<' | '>'), "")
                    .trim()
                    .to_owned()
            };
            variable(name).or(configured).map(clean).filter(|text| !text.is_empty())
        };
        Some(Self {
            name: from("GIT_AUTHOR_NAME", "name")?,
            email: from("GIT_AUTHOR_EMAIL", "email").or_else(|| variable("EMAIL"))?,
        })
    }
}

/// The configuration files that there are, the one that counts most first.
fn configs(root: &Root, user: &UserDirs) -> Vec<File> {
    let mut configs = Vec::new();
    let git_dir = match root.kind() {
        RootKind::Git { git_dir, common_dir } => {
            let own = [git_dir.join("config.worktree"), common_dir.join("config")];
            configs.extend(own.iter().filter_map(|path| config(path, init::Options::default())));
            Some(git_dir.as_path())
        }
        RootKind::Plain { .. } => None,
    };
    let interpolate = interpolate::Context { home_dir: user.home.as_deref(), ..Default::default() };
    let conditional = includes::conditional::Context { git_dir, ..Default::default() };
    let includes = includes::Options::follow(interpolate, conditional);
    let options = init::Options { includes, ..Default::default() };
    configs.extend(user.configs().iter().filter_map(|path| config(path, options)));
    configs
}

fn config(path: &Path, options: init::Options<'_>) -> Option<File> {
    let bytes = read_small(path, CONFIG_MAX_BYTES).ok()??;
    let meta = Metadata { path: Some(path.to_owned()), ..Metadata::default() };
    let mut file = File::from_bytes_no_includes(&bytes, meta, options).ok()?;
    // What could be included by then counts.
    let _as_far_as_it_goes = file.resolve_includes(options);
    Some(file)
}
