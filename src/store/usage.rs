//! Measures the disk usage of the state directory, and attributes it to checkpoints.

use std::{collections::HashMap, fs, os::unix::fs::MetadataExt, path::Path};

use super::{
    objects::Objects,
    record::{self, Needs},
    repository::Weights,
    sweep::mark,
};
use crate::{
    model::{CheckpointId, ContentId},
    plan::Chunk,
    state::{RootState, StateDir},
};

/// What the checkpoints of one or more roots take, and which of them need each object.
pub struct UsageIndex {
    objects: Objects,
    state: StateDir,
    weights: Weights,
    /// For each object: its size, if known, and for each queue (the checkpoints of one root in the
    /// order in which they may go) the position of the last one that needs it; `None` if a
    /// checkpoint that stays needs it.
    needed: HashMap<ContentId, Need>,
    /// The sizes of the records, each with its place in a queue.
    records: Vec<(u64, usize, Option<usize>)>,
}

/// The size of an object, and the queues that need it.
type Need = (Option<u64>, Vec<(usize, Option<usize>)>);

impl UsageIndex {
    /// An empty index.
    pub fn new(state: &StateDir) -> Self {
        let objects = Objects::new(state.objects());
        let (state, weights) = (state.clone(), Weights::default());
        Self { objects, state, weights, needed: HashMap::new(), records: Vec::new() }
    }

    /// Adds what the checkpoints of one root need. Those in `goes` may go, in that order; an object
    /// is needed until the last checkpoint that needs it has gone.
    pub fn add(&mut self, line: usize, root: &RootState, goes: &[CheckpointId]) {
        let Ok(ids) = record::ids(root) else { return };
        let place_of = |id: &CheckpointId| goes.iter().position(|it| it == id);
        let mut by_place: Vec<_> = ids.iter().map(|id| (place_of(id), *id)).collect();
        // First those that stay, then from the last to go to the first.
        by_place.sort_by_key(|(place, _)| std::cmp::Reverse(place.unwrap_or(usize::MAX)));
        for (place, id) in by_place {
            let Ok(Some(needs)) = record::needs(root, id) else { continue };
            self.add_needs(line, place, &needs);
            let file = record::path_of(root, id);
            self.records.push((room(&file), line, place));
        }
    }

    /// Adds the objects of the file store that a checkpoint needs, and none of a repository.
    pub fn add_private(&mut self, needs: &Needs) {
        self.add_needs(0, None, &Needs { trees: Vec::new(), ..needs.clone() });
    }

    fn add_needs(&mut self, line: usize, place: Option<usize>, needs: &Needs) {
        let needed = &mut self.needed;
        let mut add = |id: ContentId, bytes: Option<u64>| {
            let (known_bytes, by) = needed.entry(id).or_default();
            *known_bytes = bytes;
            // The first one added needs it for longest.
            let is_new = by.iter().all(|(known, _)| *known != line);
            if is_new {
                by.push((line, place));
            }
            is_new
        };
        // An unreadable object counts as empty for now; it blocks freeing anyway.
        let _lighter = mark(&self.objects, needs, &mut |id| add(id, None));
        for (store, tree) in &needs.trees {
            self.weights.each(&self.state, store, tree, &mut |id, bytes| add(id, Some(bytes)));
        }
    }

    /// The total size of everything in the index.
    pub fn total(&self) -> u64 {
        self.contents() + self.records.iter().map(|(bytes, _, _)| bytes).sum::<u64>()
    }

    /// The same without the records.
    pub fn contents(&self) -> u64 {
        let bytes = |(id, (bytes, _)): (&ContentId, &(Option<u64>, _))| {
            bytes.unwrap_or_else(|| self.objects.room(id))
        };
        self.needed.iter().map(bytes).sum()
    }

    /// What would be freed if every checkpoint went that may.
    pub fn chunks(self) -> Vec<Chunk> {
        let objects = self.objects;
        let chunk = |(id, (bytes, by)): (ContentId, Need)| {
            let until: Option<Vec<_>> =
                by.into_iter().map(|(line, place)| Some((line, place?))).collect();
            let bytes = bytes.unwrap_or_else(|| objects.room(&id));
            Some(Chunk { until: until?, bytes })
        };
        let record = |(bytes, line, place): (u64, usize, Option<usize>)| {
            Some(Chunk { bytes, until: vec![(line, place?)] })
        };
        let records = self.records.into_iter().filter_map(record);
        self.needed.into_iter().filter_map(chunk).chain(records).collect()
    }
}

fn room(path: &Path) -> u64 {
    fs::symlink_metadata(path).map_or(0, |found| found.blocks() * 512)
}
