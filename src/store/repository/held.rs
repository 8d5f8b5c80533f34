//! Describes a repository for the record of a checkpoint.

use std::path::Path;

use super::{Administration, Held, PrivateRepository, RepositoryLocation, path_for, pointers_for};
use crate::{fs::stat_path, model::ContentId, store::record::identity::Identity};

/// The description of a repository for the record.
pub(in crate::store) fn held(
    root: &Path,
    place: &RepositoryLocation,
    private: &PrivateRepository,
    tree: ContentId,
    administration: &Administration,
    is_usable: bool,
) -> Held {
    Held {
        path: path_for(root, &place.common_dir),
        store: private.name().to_owned(),
        tree,
        digest: administration.digest,
        identity: Identity::of(&place.common_dir).ok(),
        permissions: stat_path(&place.common_dir).map_or(0o755, |stamp| stamp.permissions()),
        is_usable,
        pointers: pointers_for(root, &place.pointers),
    }
}
