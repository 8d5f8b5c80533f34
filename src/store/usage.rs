//! How much room everything of ours takes, and which checkpoints it is for.

use std::{collections::HashMap, fs, os::unix::fs::MetadataExt, path::Path};

use super::{
    git::Weights,
    objects::Objects,
    record::{self, Needs},
    sweep::mark,
};
use crate::{
    model::{CheckpointId, ContentId},
    plan::Chunk,
    state::{RootState, State},
};

/// Directories nested deeper are not ours.
const DEPTH_MAX: usize = 32;

/// The room on the disk of everything below a directory of ours. A file that has other names is
/// somebody else's as well, and takes no room of its own.
pub fn own_bytes(dir: &Path) -> u64 {
    below(dir, 0)
}

fn below(dir: &Path, depth: usize) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let each = entries.map(|entry| match entry.metadata() {
        Ok(found) if found.is_dir() && depth < DEPTH_MAX => {
            found.blocks() * 512 + below(&entry.path(), depth + 1)
        }
        Ok(found) if found.nlink() > 1 => 0,
        Ok(found) => found.blocks() * 512,
        Err(_) => 0,
    });
    each.sum()
}

/// What checkpoints of one or more roots hold in turnback's own store, by who needs it.
pub struct UsageIndex {
    objects: Objects,
    state: State,
    weights: Weights,
    /// The bytes of an object, where they are known, and for each line that needs it the place of
    /// the last that does; `None` for one that stays.
    needed: HashMap<ContentId, Need>,
    others: Vec<Chunk>,
}

/// The bytes of an object, and the lines that need it.
type Need = (Option<u64>, Vec<(usize, Option<usize>)>);

impl UsageIndex {
    /// With nothing on them.
    pub fn new(state: &State) -> Self {
        let objects = Objects::new(state.objects());
        let (state, weights) = (state.clone(), Weights::default());
        Self { objects, state, weights, needed: HashMap::new(), others: Vec::new() }
    }

    /// Puts on them what the checkpoints of one root need. Those in `goes` may go, in that order,
    /// so that what several need is needed until the last of them has gone.
    pub fn add(&mut self, line: usize, root: &RootState, goes: &[CheckpointId]) {
        let Ok(ids) = record::ids(root) else { return };
        let place_of = |id: &CheckpointId| goes.iter().position(|it| it == id);
        let mut by_place: Vec<_> = ids.iter().map(|id| (place_of(id), *id)).collect();
        // Those that stay, then the last to go.
        by_place.sort_by_key(|(place, _)| std::cmp::Reverse(place.unwrap_or(usize::MAX)));
        for (place, id) in by_place {
            let Ok(Some(needs)) = record::needs(root, id) else { continue };
            self.add_needs(line, place, &needs);
            let file = record::path_of(root, id);
            self.add_other(line, place, room(&file));
        }
    }

    fn add_needs(&mut self, line: usize, place: Option<usize>, needs: &Needs) {
        let needed = &mut self.needed;
        let mut add = |id: ContentId, bytes: Option<u64>| {
            let (known_bytes, by) = needed.entry(id).or_default();
            *known_bytes = bytes;
            // Whoever was added first needs it longest.
            let is_new = by.iter().all(|(known, _)| *known != line);
            if is_new {
                by.push((line, place));
            }
            is_new
        };
        // What the disk does not give weighs nothing for now, and nothing is freed either.
        let _lighter = mark(&self.objects, needs, &mut |id| add(id, None));
        for (store, tree) in &needs.trees {
            self.weights.each(&self.state, store, tree, &mut |id, bytes| add(id, Some(bytes)));
        }
    }

    fn add_other(&mut self, line: usize, place: Option<usize>, bytes: u64) {
        self.others.extend(place.map(|place| Chunk { bytes, until: vec![(line, place)] }));
    }

    /// The room of everything that is on them.
    pub fn total(&self) -> u64 {
        let bytes = |(id, (bytes, _)): (&ContentId, &(Option<u64>, _))| {
            bytes.unwrap_or_else(|| room(&self.objects.path(id)))
        };
        self.needed.iter().map(bytes).sum()
    }

    /// What would be free if everything went that may.
    pub fn chunks(self) -> Vec<Chunk> {
        let objects = self.objects;
        let chunk = |(id, (bytes, by)): (ContentId, Need)| {
            let until: Option<Vec<_>> =
                by.into_iter().map(|(line, place)| Some((line, place?))).collect();
            let bytes = bytes.unwrap_or_else(|| room(&objects.path(&id)));
            Some(Chunk { until: until?, bytes })
        };
        self.needed.into_iter().filter_map(chunk).chain(self.others).collect()
    }
}

fn room(path: &Path) -> u64 {
    fs::symlink_metadata(path).map_or(0, |found| found.blocks() * 512)
}
