//! The part of a checkpoint's record that describes one repository of the user's.

use serde::{Deserialize, Serialize};

use super::identity::Identity;
use crate::{
    model::ContentId,
    store::escape::{escape, unescape},
};

/// What a checkpoint holds of one repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Where its git directory was: below the root, or absolute.
    pub path: Vec<u8>,
    /// The private repository that holds it.
    pub store: String,
    /// A tree in it, with the entries `repository` and `repository.modes`.
    pub tree: ContentId,
    /// A digest of all of it but objects. If it is the same, nothing that is held has changed.
    pub digest: ContentId,
    /// The identity of the git directory; `None` if it was gone by then.
    pub identity: Option<Identity>,
    /// The permissions of that directory.
    pub permissions: u32,
    /// Whether git could use it.
    pub is_usable: bool,
    /// Files that point to it: worktrees and submodules have a `.git` file with a line of text.
    /// Each with its path, in the form of [`Held::path`], and that text.
    pub pointers: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The JSON form of [`Held`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::store) struct HeldFile {
    path: String,
    store: String,
    tree: String,
    digest: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    identity: Option<Identity>,
    mode: String,
    usable: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pointers: Vec<PointerFile>,
}

/// The JSON form of a `.git` file: its path and its text.
pub(in crate::store) type PointerFile = (String, String);

impl HeldFile {
    /// Converts to the JSON form.
    pub(in crate::store) fn of(held: &Held) -> Self {
        let Held { path, store, tree, digest, identity, permissions, is_usable, pointers } = held;
        let pointers = pointers.iter().map(pointer_file);
        Self {
            path: escape(path),
            store: store.clone(),
            tree: tree.to_string(),
            digest: digest.to_string(),
            identity: *identity,
            mode: format!("{permissions:o}"),
            usable: *is_usable,
            pointers: pointers.collect(),
        }
    }

    /// Converts from the JSON form; an error is a message fragment.
    pub(in crate::store) fn into_held(self) -> Result<Held, &'static str> {
        let pointers = self.pointers.iter().map(parse_pointer);
        let is_name = is_store_name(&self.store);
        Ok(Held {
            path: unescape(&self.path)
                .filter(|path| is_plain_place(path))
                .ok_or("a repository's path is not one")?,
            store: Some(self.store).filter(|_| is_name).ok_or("a repository has no name")?,
            tree: ContentId::parse(&self.tree).ok_or("a repository's tree is not an id")?,
            digest: ContentId::parse(&self.digest).ok_or("a repository's digest is not an id")?,
            identity: self.identity,
            permissions: u32::from_str_radix(&self.mode, 8)
                .ok()
                .filter(|bits| *bits <= 0o7777)
                .ok_or("a repository's mode is not one")?,
            is_usable: self.usable,
            pointers: pointers.collect::<Option<_>>().ok_or("a pointer is not one")?,
        })
    }
}

/// Converts a `.git` file to the JSON form.
pub(in crate::store) fn pointer_file((path, text): &(Vec<u8>, Vec<u8>)) -> PointerFile {
    (escape(path), escape(text))
}

/// Converts a `.git` file from the JSON form; `None` if it is malformed.
pub(in crate::store) fn parse_pointer((path, text): &PointerFile) -> Option<(Vec<u8>, Vec<u8>)> {
    let path = unescape(path).filter(|path| is_plain_place(path));
    Some((path?, unescape(text)?))
}

/// Whether a text is a valid name of a private repository.
pub(super) fn is_store_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    !name.is_empty() && name.bytes().all(is_plain)
}

/// Whether a path is absolute or below the root, without `.` or `..`.
pub(super) fn is_plain_place(path: &[u8]) -> bool {
    let below = path.strip_prefix(b"/").unwrap_or(path);
    !path.contains(&0)
        && below.split(|&byte| byte == b'/').all(|name| !matches!(name, b"" | b"." | b".."))
}

/// Whether two lists of repositories are the same in everything that matters.
pub(in crate::store) fn are_same(old: &[Held], new: &[Held]) -> bool {
    let matters = |held: &Held| {
        let what = (held.digest, held.permissions, held.identity, held.is_usable);
        (held.path.clone(), held.store.clone(), held.pointers.clone(), what)
    };
    old.len() == new.len() && old.iter().zip(new).all(|(old, new)| matters(old) == matters(new))
}
