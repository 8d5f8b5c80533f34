//! The files that make a directory a bare git repository: writes, checks and repairs them. They
//! contain nothing of the user's.

use std::fs;

use gix::hash::Kind as HashKind;

use super::{HEAD, PrivateRepository, borrowed_dirs};
use crate::{
    error::{Error, Result},
    fs::{read_small, replace, replace_synced},
    store::plumbing::repo::pipes_in,
};

impl PrivateRepository {
    /// A configuration with which git reads the repository and leaves it alone.
    pub(super) fn config(&self) -> String {
        let sha256 = if self.hash == HashKind::Sha256 { "\tobjectFormat = sha256\n" } else { "" };
        format!(
            "[core]\n\trepositoryFormatVersion = 1\n\tbare = true\n\tlogAllRefUpdates = false\n\
             [gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n\
             [extensions]\n\tpreciousObjects = true\n{sha256}"
        )
    }

    /// The files that are wrong, with the reasons.
    pub(super) fn odd_files(&self) -> Vec<(String, &'static str)> {
        let mut odd = Vec::new();
        let text = |name: &str| read_small(&self.dir.join(name), 1 << 20).ok().flatten();
        if text("config").as_deref() != Some(self.config().as_bytes()) {
            odd.push(("config".to_owned(), "git cannot read the repository without it"));
        }
        if !text("HEAD").is_some_and(|head| head.starts_with(b"ref: ")) {
            odd.push(("HEAD".to_owned(), "git cannot read the repository without it"));
        }
        if self.exists() && text("objects/info/alternates") != Some(self.alternates()) {
            odd.push(("objects/info/alternates".to_owned(), "it does not name what is borrowed"));
        }
        for name in ["lock", "maintenance.lock", "linked/seen", "administration", "maintained"] {
            let found = fs::symlink_metadata(self.dir.join(name));
            if found.is_ok_and(|found| !found.is_file()) {
                odd.push((name.to_owned(), "it is no file"));
            }
        }
        let dirs = borrowed_dirs(&self.linked());
        for pipe in
            std::iter::once(self.dir.join("objects")).chain(dirs).flat_map(|it| pipes_in(&it))
        {
            let below = pipe.strip_prefix(&self.dir).unwrap_or(&pipe);
            odd.push((below.to_string_lossy().into_owned(), "it is no file"));
        }
        odd
    }

    /// Removes the wrong files, or what is in their place, and returns their names.
    ///
    /// # Errors
    ///
    /// Fails if one cannot be removed.
    pub(super) fn remove_odd(&self) -> Result<Vec<String>> {
        let names: Vec<String> = self.odd_files().into_iter().map(|(name, _)| name).collect();
        for path in names.iter().map(|name| self.dir.join(name)) {
            crate::fs::remove_tree(&path).map_err(Error::io("remove", &path))?;
        }
        Ok(names)
    }

    /// Writes the wrong files again, and returns what was done.
    ///
    /// # Errors
    ///
    /// Fails if one cannot be removed or written.
    pub(in crate::store) fn mend(&self) -> Result<Vec<String>> {
        let mut done = Vec::new();
        for name in self.remove_odd()? {
            let path = self.dir.join(&name);
            match &*name {
                "config" => replace_synced(&path, self.config().as_bytes())?,
                "HEAD" => replace_synced(&path, HEAD)?,
                "objects/info/alternates" => self.write_alternates()?,
                // The others are written when they are needed.
                _ => (),
            }
            done.push(format!("made repositories/{}/{name} again", self.name));
        }
        Ok(done)
    }

    /// Writes the list of borrowed object directories, which git and other readers follow.
    pub(super) fn write_alternates(&self) -> Result<()> {
        let text = self.alternates();
        let path = self.dir.join("objects/info/alternates");
        if read_small(&path, 1 << 20).ok().flatten().as_deref() == Some(&text[..]) {
            return Ok(());
        }
        replace(&path, &text)
    }

    fn alternates(&self) -> Vec<u8> {
        let mut text = Vec::new();
        for dir in borrowed_dirs(&self.linked()) {
            // Relative to `objects`, so that the state directory can be moved.
            let below = dir.strip_prefix(&self.dir).unwrap_or(&dir);
            text.extend_from_slice(b"../");
            text.extend_from_slice(below.as_os_str().as_encoded_bytes());
            text.push(b'\n');
        }
        text
    }
}
