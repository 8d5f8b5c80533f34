//! The part of a checkpoint's record that describes one repository of the user's.

use serde::{Deserialize, Serialize};

use super::identity::Identity;
use crate::model::{ContentId, escape::escaped, octal};

/// One repository in a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Held {
    /// The path of its git directory: below the root, or absolute.
    #[serde(with = "escaped")]
    pub path: Vec<u8>,
    /// The private repository that holds it.
    pub store: String,
    /// A tree in it, with the entries `repository` and `repository.modes`. In the root's own repository, the
    /// tree of the checkpoint itself.
    pub tree: ContentId,
    /// A digest of everything but the objects. If it is equal, nothing that is held has changed.
    pub digest: ContentId,
    /// The identity of the git directory; `None` if it was gone by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// The permissions of that directory.
    #[serde(rename = "mode", with = "octal")]
    pub permissions: u32,
    /// Whether git could use it.
    #[serde(rename = "usable")]
    pub is_usable: bool,
    /// Files that point to it: worktrees and submodules have a `.git` file with a line of text. Each with its
    /// path, in the form of [`Held::path`], and that text.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "escaped")]
    pub pointers: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Whether a text is a valid name of a private repository: it becomes part of a path.
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
