//! Calls that were not seen to end although their turn is over: they were refused or cut off, and run no
//! more.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    path::PathBuf,
    time::Instant,
};

use memchr::memmem;

use super::{
    ChangeSummary, InBackground, LogEvent, LogLine, PathSide, PathState, SinceCheckpoint, append,
    at,
    log::{read, unparsed_since},
    look::{self, state_of},
};
use crate::{error::Result, model::CheckpointId, state::RootState, store};

/// A call that was not seen to end.
struct UnfinishedCall {
    name: String,
    of: CheckpointId,
    /// What it can change; `None` for anything.
    paths: Option<Vec<String>>,
    /// What goes on of it in the background, if that is all.
    background: Option<InBackground>,
}

/// Notes of each unfinished call of a session that it runs no more, and whether it left nothing; of those that
/// go on in the background, if `are_over` says so. Counts
/// what was done meanwhile if one of them is a command. `began` is when the turn did, in nanoseconds since 1970.
///
/// # Errors
///
/// Fails if the root or its store cannot be read, or the log not written.
pub fn cut_off(
    since: SinceCheckpoint<'_, '_>,
    began: i64,
    are_over: impl Fn(InBackground) -> bool,
) -> Result<Option<ChangeSummary>> {
    let place = since.state.root(since.root);
    let mut calls = unfinished(&place, since.by, began);
    calls.retain(|call| call.background.is_none_or(&are_over));
    if calls.is_empty() {
        return Ok(None);
    }
    let noted = LastNoted::of(&place);
    let first = calls.iter().find(|call| call.paths.is_none());
    let (mut summary, mut is_as_noted) = (None, true);
    if let Some(first) = first {
        let since = SinceCheckpoint { of: first.of, ..since };
        let deadline = Instant::now() + since.settings.deadline / look::DEADLINE_DIVISOR;
        let names: Vec<String> = calls.iter().map(|call| call.name.clone()).collect();
        let absent = look::absent_before(&place, &names);
        let store = store::open(since.root, since.state, since.settings.store)?;
        let found = look::changes(since, store.as_ref(), &absent, deadline)?;
        is_as_noted = found.as_ref().is_some_and(|found| noted.explains(since, found));
        summary = found.map(|found| found.count(since, store.as_ref())).transpose()?;
    }
    let at = at(since.process);
    let lines = calls.into_iter().map(|UnfinishedCall { name: call, paths, .. }| {
        let left_nothing = match paths {
            Some(paths) => paths.iter().all(|path| noted.is_there(since, path)),
            None => is_as_noted,
        };
        let what = LogEvent::CutOff { call, left_nothing };
        LogLine { at, by: since.by.to_owned(), what }
    });
    append(&place, &lines.collect::<Vec<_>>())?;
    Ok(summary)
}

/// The calls of a session that began since a time and were not seen to end, oldest first. Only the lines
/// that tell of that are parsed.
fn unfinished(place: &RootState, by: &str, since: i64) -> Vec<UnfinishedCall> {
    let by = format!("\"by\":\"{by}\",");
    let left = format!("{by}\"left\":");
    let (bytes, mut calls) = (unparsed_since(place, since), BTreeMap::new());
    let (mut ended, mut running) = (HashSet::new(), HashMap::new());
    let has = |line: &[u8], text: &str| memmem::find(line, text.as_bytes()).is_some();
    let its = bytes.rsplit(|&byte| byte == b'\n').filter(|line| has(line, &by));
    for line in its.filter(|line| !has(line, &left)) {
        let Ok(LogLine { at, what, .. }) = serde_json::from_slice::<LogLine>(line) else {
            continue;
        };
        if at < since {
            break;
        }
        match what {
            LogEvent::Began { call, of, paths, .. } if !ended.contains(&call) => {
                let Some(of) = CheckpointId::parse(&of) else { continue };
                let background = running.get(&call).copied();
                let found = UnfinishedCall { name: call.clone(), of, paths, background };
                calls.insert((at, call), found);
            }
            LogEvent::Ended { call, background: Some(background) } => {
                running.insert(call, background);
            }
            LogEvent::Ended { call, .. } | LogEvent::CutOff { call, .. } => {
                ended.insert(call);
            }
            _ => (),
        }
    }
    calls.into_values().collect()
}

/// What was last noted at each path, as the log has both.
struct LastNoted(BTreeMap<String, Option<PathState>>);

impl LastNoted {
    fn of(place: &RootState) -> Self {
        let mut noted = BTreeMap::new();
        for line in read(place) {
            match line.what {
                LogEvent::Left { path, state } | LogEvent::Back { path, state, .. } => {
                    noted.insert(path, state);
                }
                // Its permissions are not noted.
                LogEvent::Merged { path, .. } => drop(noted.remove(&path)),
                LogEvent::Began { absent, .. } => {
                    noted.extend(absent.into_iter().map(|path| (path, None)));
                }
                _ => (),
            }
        }
        Self(noted)
    }

    /// Whether all that has changed in a root is as it was last noted.
    fn explains(&self, since: SinceCheckpoint<'_, '_>, found: &look::Differences) -> bool {
        let mut left = found.left();
        found.outside.is_some()
            && left
                .all(|(path, state)| self.is(&path, state.as_ref()) || self.is_there(since, &path))
    }

    /// Whether there is at a path what was last noted there.
    fn is_there(&self, since: SinceCheckpoint<'_, '_>, path: &str) -> bool {
        let place = |side: PathSide| side.path(path);
        let below = place(PathSide::Root).map(|path| since.root.join(&path));
        let there: Option<PathBuf> = below.or_else(|| Some(place(PathSide::Outside)?.at_top()));
        there.is_some_and(|there| self.is(path, state_of(&there, |_| None).map(|it| it.0).as_ref()))
    }

    fn is(&self, path: &str, state: Option<&PathState>) -> bool {
        match (self.0.get(path), state) {
            (None, _) | (Some(None), Some(_)) | (Some(Some(_)), None) => false,
            (Some(None), None) => true,
            (Some(Some(noted)), Some(state)) => noted.is_known_as(state),
        }
    }
}
