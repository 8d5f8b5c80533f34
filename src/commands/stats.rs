//! Caches how much changed between two checkpoints, or in a turn that is over, which are numbers that never change
//! again. For display only; nothing is ever decided by it.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, HashSet},
    path::PathBuf,
};

use serde::{Deserialize, Serialize};

use super::compare::Counts;
use crate::{
    attribution,
    fs::{is_lost, read_small, replace},
    model::{Checkpoint, CheckpointId, TurnKey},
    state::{RootState, hash_name, version_of},
    ui::LineCounts,
};

/// A hundred thousand turns; a larger file is not ours.
const SIZE_MAX_BYTES: u64 = 16 << 20;

/// What is remembered of one root.
pub(crate) struct Stats {
    path: PathBuf,
    place: RootState,
    /// How large the log of calls was when this was read, in bytes.
    log_size: u64,
    log: OnceCell<Vec<attribution::LogLine>>,
    wire: StatsFile,
    changed: bool,
    /// Whether it may be written: a newer beforehand's never is.
    is_ours: bool,
}

#[derive(Default, Serialize, Deserialize)]
struct StatsFile {
    version: u32,
    /// By the names of both checkpoints, with a space between them.
    pairs: BTreeMap<String, Numbers>,
    /// By the checkpoint and the name of the turn: how large the log of calls was, in bytes, and what it knows
    /// of the turn, if it does.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    turns: BTreeMap<String, (u64, Option<Numbers>)>,
}

/// Files, repositories, and the lines that came and went, if that is known.
type Numbers = (u64, u64, Option<[u64; 2]>);

/// Version 1 counted the work of users as well, version 2 no repositories, version 3 no lines where they are
/// not held.
const VERSION: u32 = 4;

impl Stats {
    /// Reads what is remembered. What cannot be read is forgotten.
    pub(crate) fn load(state: &RootState) -> Self {
        let (path, place) = (state.stats(), state.clone());
        let bytes = read_small(&path, SIZE_MAX_BYTES).ok().flatten();
        let wire = bytes.as_deref().and_then(|it| serde_json::from_slice::<StatsFile>(it).ok());
        let wire = wire.filter(|wire| wire.version == VERSION).unwrap_or_default();
        let is_ours = bytes.as_deref().is_none_or(|bytes| version(bytes) <= VERSION);
        let log_size = attribution::log_size(&place);
        Self { path, place, log_size, log: OnceCell::new(), wire, changed: false, is_ours }
    }

    /// What agents were seen to do in the root, which is read once.
    pub(crate) fn log(&self) -> &[attribution::LogLine] {
        self.log.get_or_init(|| attribution::read(&self.place))
    }

    /// Whether there is a file that says nothing.
    pub(crate) fn is_damaged(state: &RootState) -> bool {
        match read_small(&state.stats(), SIZE_MAX_BYTES) {
            // One of an older version is made again, one of a newer is not ours.
            Ok(bytes) => bytes.is_some_and(|bytes| {
                !is_lost(&bytes)
                    && matches!(version(&bytes), 0 | VERSION)
                    && serde_json::from_slice::<StatsFile>(&bytes).is_err()
            }),
            Err(_) => true,
        }
    }

    /// What is between two checkpoints, if it is known.
    pub(crate) fn get(&self, from: CheckpointId, to: CheckpointId) -> Option<Counts> {
        self.wire.pairs.get(&pair_name(from, to)).copied().map(counts)
    }

    /// Remembers what is between two checkpoints.
    pub(crate) fn put(&mut self, from: CheckpointId, to: CheckpointId, counts: Counts) {
        self.wire.pairs.insert(pair_name(from, to), numbers(counts));
        self.changed = true;
    }

    /// What a turn changed, if that was asked for before, and if the turn is over or nothing was noted since:
    /// `Some(None)` if the log does not know.
    #[expect(
        clippy::option_option,
        reason = "not asked for before, and asked for without an answer"
    )]
    pub(crate) fn turn(
        &self,
        first: CheckpointId,
        key: &TurnKey,
        is_over: bool,
    ) -> Option<Option<Counts>> {
        let (size, known) = *self.wire.turns.get(&turn_name(first, key))?;
        (is_over || size == self.log_size).then(|| known.map(counts))
    }

    /// Remembers what a turn changed.
    pub(crate) fn put_turn(&mut self, first: CheckpointId, key: &TurnKey, known: Option<Counts>) {
        let name = turn_name(first, key);
        self.wire.turns.insert(name, (self.log_size, known.map(numbers)));
        self.changed = true;
    }

    /// Writes it down, if there is a place for it, as far as it is of a checkpoint that is still there. It can
    /// be counted again, so failing is no harm.
    pub(crate) fn save(&mut self, checkpoints: &[Checkpoint]) {
        if std::mem::take(&mut self.changed) && self.is_ours {
            let ids: HashSet<String> = checkpoints.iter().map(|one| one.id.to_string()).collect();
            let is_there =
                |name: &str| name.split_once(' ').is_some_and(|(first, _)| ids.contains(first));
            self.wire.pairs.retain(|name, _| is_there(name));
            self.wire.turns.retain(|name, _| is_there(name));
            self.wire.version = VERSION;
            if let Ok(bytes) = serde_json::to_vec(&self.wire) {
                let _again_next_time = replace(&self.path, &bytes);
            }
        }
    }
}

fn pair_name(from: CheckpointId, to: CheckpointId) -> String {
    format!("{from} {to}")
}

fn turn_name(first: CheckpointId, (agent, session, turn): &TurnKey) -> String {
    let agent = format!("{agent:?}");
    let parts = [agent.as_bytes(), session.0.as_bytes(), turn.0.as_bytes()];
    format!("{first} {}", hash_name(&parts))
}

fn numbers(Counts { files, repositories, lines }: Counts) -> Numbers {
    (files, repositories, lines.map(|LineCounts { added, removed }| [added, removed]))
}

fn counts((files, repositories, lines): Numbers) -> Counts {
    let lines = lines.map(|[added, removed]| LineCounts { added, removed });
    Counts { files, repositories, lines }
}

/// The version that bytes say they have; 0 if they say nothing.
fn version(bytes: &[u8]) -> u32 {
    version_of(bytes).unwrap_or(0)
}
