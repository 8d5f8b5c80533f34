//! Measures the space that objects in private repositories take.

use std::collections::{BTreeMap, HashMap};

use gix::ObjectId;

use super::{
    PrivateRepository, Repo, below,
    packs::{loose_in, own_packs, rows_of, size_on_disk},
};
use crate::{model::ContentId, state::StateDir, store::plumbing::repo::content_id};

/// The sizes of objects in private repositories, read once for each repository.
#[derive(Default)]
pub(in crate::store) struct Weights(BTreeMap<String, (Repo, HashMap<ObjectId, u64>)>);

impl Weights {
    /// Passes every object of ours that a tree needs to `is_new`, with its size. `is_new` returns
    /// whether to descend into it.
    pub(in crate::store) fn each(
        &mut self,
        state: &StateDir,
        store: &str,
        tree: &ContentId,
        is_new: &mut dyn FnMut(ContentId, u64) -> bool,
    ) {
        let (repo, sizes) = self.0.entry(store.to_owned()).or_insert_with(|| {
            let private = PrivateRepository::named(state, store);
            let repo = private.repo();
            let sizes = sizes_in(&repo);
            (repo, sizes)
        });
        let top = repo.object_id(tree);
        // An unreadable object counts as empty for now; it blocks freeing anyway.
        let _lighter = below(repo, top, &mut |id| {
            is_new(content_id(&id), sizes.get(&id).copied().unwrap_or(0))
        });
    }
}

fn sizes_in(repo: &Repo) -> HashMap<ObjectId, u64> {
    let mut sizes = HashMap::new();
    for (_, path) in own_packs(&repo.objects().join("pack")) {
        for (id, _, range) in rows_of(&path, repo.hash).unwrap_or_default() {
            sizes.insert(id, range.end - range.start);
        }
    }
    for (path, id) in loose_in(&repo.objects()) {
        sizes.insert(id, size_on_disk(&path));
    }
    sizes
}
