//! Everything outside a root's ignore files that decides what is captured: git's configuration and
//! exclude files, and our settings.
//!
//! Every scan stats these files; they are read only when the walk has to evaluate a rule. Paths
//! from a repository's own configuration are never opened, because they may point anywhere.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use gix::{
    bstr::ByteSlice, config::file::init::Options, glob::pattern::Case, hash::Kind as HashKind,
};
use sha2::{Digest, Sha256};

use crate::{
    fs::{read_small, stat_path},
    model::{ContentId, Root, RootKind, Settings},
};

/// Larger than any handwritten configuration.
pub(super) const CONFIG_MAX_BYTES: u64 = 1 << 20;

/// Where the user keeps git's configuration.
#[derive(Clone, Debug, Default)]
pub struct UserDirs {
    /// The home directory.
    pub home: Option<PathBuf>,
    /// `$XDG_CONFIG_HOME`, where it is set.
    pub xdg_config: Option<PathBuf>,
}

impl UserDirs {
    fn xdg(&self) -> Option<PathBuf> {
        self.xdg_config.clone().or_else(|| Some(self.home.as_ref()?.join(".config")))
    }

    /// The configuration files of the user and of the system, the one that counts most first.
    pub(super) fn configs(&self) -> Vec<PathBuf> {
        let home = self.home.as_ref().map(|home| home.join(".gitconfig"));
        let xdg = self.xdg().map(|xdg| xdg.join("git/config"));
        home.into_iter().chain(xdg).chain([PathBuf::from("/etc/gitconfig")]).collect()
    }
}

/// The files that decide for one root.
pub(super) struct RuleSources {
    /// The repository's configuration files, then the user's; the first one that sets a value wins.
    configs: Vec<PathBuf>,
    info_exclude: Option<PathBuf>,
    /// The excludes file that git uses if no configuration names one.
    usual_excludes: Option<PathBuf>,
}

/// What these files say.
pub(super) struct GitRules {
    /// The contents of ignore files that apply everywhere, the weakest first.
    pub(super) global: Vec<Vec<u8>>,
    /// Whether names are case-sensitive.
    pub(super) case: Case,
    /// The hash function of the repository.
    pub(super) hash: HashKind,
}

impl RuleSources {
    pub(super) fn of(root: &Root, user: &UserDirs) -> Self {
        let RootKind::Git { git_dir, common_dir } = root.kind() else {
            return Self { configs: Vec::new(), info_exclude: None, usual_excludes: None };
        };
        let mut configs = vec![git_dir.join("config.worktree"), common_dir.join("config")];
        configs.extend(user.configs());
        Self {
            configs,
            info_exclude: Some(common_dir.join("info/exclude")),
            usual_excludes: user.xdg().map(|xdg| xdg.join("git/ignore")),
        }
    }

    /// The attributes file that git uses if no configuration names one.
    pub(super) fn user_attributes(&self) -> Option<PathBuf> {
        Some(self.usual_excludes.as_ref()?.with_file_name("attributes"))
    }

    /// A digest that changes whenever one of the files or the user's settings may have changed.
    pub(super) fn digest(&self, settings: &Settings) -> ContentId {
        let mut hash = Sha256::new();
        let excludes = self.named_excludes();
        for path in self.configs.iter().chain(&self.info_exclude).chain(&excludes) {
            let stamp = stat_path(path).unwrap_or_default();
            hash.update(path.as_os_str().as_bytes());
            for number in [stamp.mtime_ns, stamp.ctime_ns] {
                hash.update(number.to_le_bytes());
            }
            for number in [stamp.inode, stamp.size] {
                hash.update(number.to_le_bytes());
            }
        }
        for pattern in
            settings.exclude.iter().chain(["\0".to_owned()].iter()).chain(&settings.private)
        {
            hash.update(pattern.as_bytes());
            hash.update([0]);
        }
        for number in [settings.max_file_size, settings.max_files] {
            hash.update(number.to_le_bytes());
        }
        ContentId::new(&hash.finalize())
    }

    /// The excludes file that the user's configuration names, or git's default.
    fn named_excludes(&self) -> Option<PathBuf> {
        // The repository's own files are first in the list and must not name one.
        let own = 2.min(self.configs.len());
        let named = self.configs[own..].iter().find_map(|path| {
            let bytes = read_small(path, CONFIG_MAX_BYTES).ok()??;
            let mentions = bytes.to_ascii_lowercase().contains_str("excludesfile");
            value(&bytes, "core", "excludesFile").filter(|_| mentions)
        });
        match named {
            Some(path) => self.expand(&path),
            None => self.usual_excludes.clone(),
        }
    }

    fn expand(&self, path: &[u8]) -> Option<PathBuf> {
        let home = self.configs.iter().find_map(|config| {
            (config.file_name()? == ".gitconfig").then(|| config.parent().map(Path::to_owned))?
        });
        match path.strip_prefix(b"~/") {
            Some(rest) => Some(home?.join(OsStr::from_bytes(rest))),
            None => Some(PathBuf::from(OsStr::from_bytes(path))).filter(|path| path.is_absolute()),
        }
    }

    /// Reads the files.
    pub(super) fn read(&self) -> GitRules {
        let read = |path: &PathBuf| read_small(path, CONFIG_MAX_BYTES).ok().flatten();
        let configs: Vec<Vec<u8>> = self.configs.iter().filter_map(read).collect();
        let find = |section, key| configs.iter().find_map(|bytes| value(bytes, section, key));
        let is_set = |key| find("core", key).is_some_and(|value| !is_no(&value));
        let excludes = self.named_excludes();
        let sha256 = find("extensions", "objectFormat").is_some_and(|value| value == b"sha256");
        GitRules {
            global: excludes.iter().chain(&self.info_exclude).filter_map(read).collect(),
            case: if is_set("ignoreCase") { Case::Fold } else { Case::Sensitive },
            hash: if sha256 { HashKind::Sha256 } else { HashKind::Sha1 },
        }
    }
}

/// Whether a boolean in git's configuration is false.
fn is_no(value: &[u8]) -> bool {
    ["false", "no", "off", "0", ""].iter().any(|no| value.eq_ignore_ascii_case(no.as_bytes()))
}

/// A value from the bytes of a git configuration; the last one wins. Includes are not followed.
fn value(bytes: &[u8], section: &str, key: &str) -> Option<Vec<u8>> {
    let meta = gix::config::file::Metadata::default();
    let file = gix::config::File::from_bytes_no_includes(bytes, meta, Options::default()).ok()?;
    file.raw_value_by(section, None, key).ok().map(|value| value.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_counts_and_damage_says_nothing() {
        let config = b"[core]\n\tignorecase = true\n[core]\n\tignoreCase = false\n";
        assert_eq!(value(config, "core", "ignorecase"), Some(b"false".to_vec()));
        assert_eq!(value(b"[core", "core", "x"), None);
        assert!(is_no(b"False") && !is_no(b"input"));
    }
}
