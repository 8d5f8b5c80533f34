//! One round of housekeeping: what there is, what goes, and what came of it.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use super::{
    clock::{Memory, Report},
    litter, room, stamp,
};
use crate::{
    config, crash,
    error::{Error, Result},
    fs::Lock,
    journal::{self, Line, LineKind},
    model::{Agent, Checkpoint, CheckpointId, SessionId, Settings},
    plan::{self, Limits, PrunePlan, Stock},
    process::Process,
    restore_log::RestoreLog,
    state::{RootState, State},
    store::{
        Standing, Store,
        record::{self, RootPlace},
        standing::{forget_unseen, open_all},
        sweep,
    },
    ui,
};

/// So many are forgotten at a time while others wait.
const SLICE: usize = 8;
/// How long others have between two slices: more than a look at the lock takes them.
const REST: Duration = Duration::from_millis(25);
/// How long a round waits for those who save.
const PATIENCE: Duration = Duration::from_secs(30);

/// A session that is over and whose checkpoints are to go, all but the newest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Whose.
    pub agent: Agent,
    /// Which.
    pub session: SessionId,
}

/// One root and all there is of it.
pub(super) struct Holding {
    /// The name of its directory.
    pub(super) name: String,
    pub(super) own: RootState,
    pub(super) place: RootPlace,
    pub(super) standing: Standing,
    stores: Vec<Box<dyn Store>>,
    pub(super) settings: Settings,
    pub(super) checkpoints: Vec<Checkpoint>,
    ages: Vec<Duration>,
    pinned: BTreeSet<CheckpointId>,
}

/// Keeps house: everything within the limits, unless the settings say that nobody is to, and the
/// checkpoints of a session that is over. `None` if there was nothing to do, or somebody else is
/// at it.
///
/// # Errors
///
/// Fails if our own files cannot be read or written. What was removed until then is no loss.
pub fn keep(process: &Process<'_>, state: &State, ended: Option<&Ended>) -> Result<Option<Report>> {
    let settings = config::load(process, None).settings;
    if !state.dir().is_dir() || !(settings.auto_prune || ended.is_some()) {
        return Ok(None);
    }
    // What a session leaves must not be forgotten because a round is under way.
    let patience = ended.map_or(Duration::ZERO, |_| PATIENCE);
    let _lock = match Lock::acquire(&state.house_lock(), Instant::now() + patience) {
        Ok(lock) => lock,
        Err(Error::Busy { .. }) => return Ok(None),
        Err(err) => return Err(err),
    };
    let mut memory = Memory::read(state)?;
    memory.tick(process.now, settings.prune_interval);
    let report =
        Report { waiting: memory.report.take().unwrap_or_default().waiting, ..Report::default() };
    let mut round = Round { process, state, settings, memory, report };
    round.run(ended)?;
    let Round { mut memory, report, .. } = round;
    memory.report = Some(report.clone());
    crash::point("house-write");
    memory.write(state)?;
    stamp(state, process.now).map_err(Error::io("write", &state.house()))?;
    journal::write(
        state,
        &Line { at: process.now, kind: LineKind::Deed, root: None, text: told(&report) },
    );
    Ok(Some(report))
}

/// Puts together the many pieces that the store of the root at `path` has.
///
/// # Errors
///
/// Fails if its store cannot be opened or written.
pub fn tidy(state: &State, path: &Path) -> Result<()> {
    let stores = open_all(path, state)?;
    stores.iter().filter(|store| store.is_untidy()).try_for_each(|store| store.tidy())
}

/// What a restore needs that is under way in a root; `None` for everything, if nobody can tell.
pub fn pinned(own: &RootState) -> Option<BTreeSet<CheckpointId>> {
    match RestoreLog::read(own) {
        Ok(Some(log)) => Some(BTreeSet::from([log.of, log.held])),
        Ok(None) => Some(BTreeSet::new()),
        Err(_) => None,
    }
}

fn told(report: &Report) -> String {
    let dropped = ui::count(report.dropped as u64, "checkpoint");
    let mut text = format!("kept house: {dropped} dropped, {} freed", ui::size(report.freed));
    if report.orphans > 0 {
        let gone = ui::count(report.orphans as u64, "directory that is gone");
        text.push_str(&format!(", nothing kept of {gone}"));
    }
    for unmet in &report.unmet {
        text.push_str("; ");
        text.push_str(unmet);
    }
    text
}

struct Round<'a, 'p> {
    process: &'a Process<'p>,
    state: &'a State,
    settings: Settings,
    memory: Memory,
    report: Report,
}

impl Round<'_, '_> {
    fn run(&mut self, ended: Option<&Ended>) -> Result<()> {
        litter::reclaim(self.state, self.process.now)?;
        let mut holdings = self.holdings()?;
        for holding in &mut holdings {
            let mut goes = BTreeSet::new();
            if let Some(ended) = ended {
                let plan = holding.stock().end_session(ended.agent, &ended.session);
                goes.extend(plan.goes.into_keys());
            }
            if self.settings.auto_prune {
                goes.extend(self.plan(holding).goes.into_keys());
            }
            self.forget(holding, &goes);
        }
        self.sweep();
        if self.settings.auto_prune {
            self.make_room(&mut holdings);
            self.bury(&holdings);
            litter::drop_old(
                self.state, &holdings, &self.settings, &self.memory, self.process.now,
            )?;
            for store in holdings.iter().flat_map(|holding| &holding.stores) {
                // There are more pieces than should be, and nothing else.
                let _later = if store.is_untidy() { store.tidy() } else { Ok(()) };
            }
        }
        let roots = self.state.roots();
        self.memory.retain(|name| roots.join(name).is_dir());
        Ok(())
    }

    /// Every root. One that cannot be looked at is named, and left alone.
    fn holdings(&mut self) -> Result<Vec<Holding>> {
        let mut holdings = Vec::new();
        for own in record::all_roots(self.state)? {
            let Ok(Some(place)) = record::read_place(&own) else { continue };
            let path = ui::escape_path(&place.path).into_owned();
            match self.look(own, place) {
                Ok(holding) => holdings.push(holding),
                Err(err) => self.report.unmet.push(format!("cannot look at {path}: {err}")),
            }
        }
        Ok(holdings)
    }

    fn look(&mut self, own: RootState, place: RootPlace) -> Result<Holding> {
        let name = own.dir().file_name().unwrap_or_default().to_string_lossy().into_owned();
        let standing = Standing::of(&place);
        let stores = match standing {
            Standing::Live => open_all(&place.path, self.state)?,
            Standing::Gone | Standing::Unreachable => Vec::new(),
        };
        let mut checkpoints = Vec::new();
        for store in &stores {
            checkpoints.extend(store.list()?);
        }
        let kept = record::read_all(&own)?;
        let mut pinned = pinned(&own);
        // A newer turnback knows what to do with what we cannot read.
        let unread = kept.iter().filter(|kept| kept.record.is_err()).map(|kept| kept.id);
        pinned.get_or_insert_default().extend(unread.collect::<Vec<_>>());
        checkpoints.extend(kept.into_iter().map(record::Kept::into_checkpoint));
        checkpoints.sort_by_key(|it| std::cmp::Reverse((it.sequence, it.id)));
        checkpoints.dedup_by_key(|it| it.id);
        if let (Some(newest), Some(oldest)) = (checkpoints.first(), checkpoints.last()) {
            self.memory.see(&name, newest.sequence, oldest.sequence);
        }
        let seen =
            |(age, it): (Duration, &Checkpoint)| age.min(self.memory.age(&name, it.sequence));
        let ages = plan::ages(&checkpoints, self.process.now);
        let ages = ages.into_iter().zip(&checkpoints).map(seen).collect();
        let settings = config::load(self.process, Some(&place.path)).settings;
        let pinned = pinned.unwrap_or_default();
        Ok(Holding { name, own, place, standing, stores, settings, checkpoints, ages, pinned })
    }

    fn plan(&mut self, holding: &Holding) -> PrunePlan {
        let Settings { max_checkpoints, retention, .. } = holding.settings;
        let is_gone = holding.standing == Standing::Gone;
        let gone_for = self.memory.gone(&holding.name, is_gone);
        if is_gone && self.settings.delete_orphans && gone_for > retention {
            return holding.stock().clear();
        }
        let (keep, older_than) = (Some(max_checkpoints), Some(retention));
        holding.stock().prune(Limits { keep, older_than })
    }

    /// Forgets checkpoints of one root, a few at a time.
    fn forget(&mut self, holding: &mut Holding, ids: &BTreeSet<CheckpointId>) {
        if ids.is_empty() {
            return;
        }
        match holding.forget(ids) {
            Ok(gone) => self.report.dropped += gone,
            Err(err) => {
                let path = ui::escape_path(&holding.place.path);
                self.report.unmet.push(format!("cannot drop checkpoints of {path}: {err}"));
            }
        }
    }

    fn sweep(&mut self) {
        match sweep::sweep(self.state, Instant::now() + PATIENCE) {
            Ok(freed) => self.report.freed += freed,
            Err(err) => self.report.unmet.push(format!("cannot free what nobody needs: {err}")),
        }
    }

    /// Drops the oldest of those that have most until there is room, as far as any may go.
    fn make_room(&mut self, holdings: &mut [Holding]) {
        let excess = room::excess(self.state, &self.settings);
        if excess == 0 {
            return;
        }
        let stocks: Vec<Stock<'_>> = holdings.iter().map(Holding::stock).collect();
        let owns: Vec<&RootState> = holdings.iter().map(|holding| &holding.own).collect();
        let mut goes = room::plan(self.state, &stocks, &owns, excess);
        drop((stocks, owns));
        for (holding, goes) in holdings.iter_mut().zip(&mut goes) {
            self.forget(holding, goes);
        }
        if goes.iter().any(|goes| !goes.is_empty()) {
            self.sweep();
        }
        self.report.unmet.extend(room::unmet(self.state, &self.settings));
    }

    /// Removes what is left of roots that are gone, and of which there is no checkpoint any more.
    fn bury(&mut self, holdings: &[Holding]) {
        for holding in holdings.iter().filter(|it| it.standing == Standing::Gone) {
            let is_empty = holding.checkpoints.is_empty()
                && record::ids(&holding.own).is_ok_and(|ids| ids.is_empty());
            let is_gone = Standing::of(&holding.place) == Standing::Gone;
            if is_empty && is_gone && litter::bury(self.state, &holding.own).is_ok() {
                self.report.orphans += 1;
            }
        }
    }
}

impl Holding {
    pub(super) fn stock(&self) -> Stock<'_> {
        let Self { checkpoints, ages, pinned, .. } = self;
        Stock { newest_first: checkpoints, ages, pinned }
    }

    /// The age of the newest checkpoint.
    pub(super) fn idle(&self) -> Option<Duration> {
        self.ages.first().copied()
    }

    fn forget(&mut self, ids: &BTreeSet<CheckpointId>) -> Result<usize> {
        // Whoever restores may need any of them.
        let _nobody_restores = Lock::acquire(&self.own.restore_lock(), Instant::now())?;
        let pinned = pinned(&self.own);
        let goes = |id: &&CheckpointId| pinned.as_ref().is_some_and(|pinned| !pinned.contains(id));
        let ids: Vec<CheckpointId> = ids.iter().filter(goes).copied().collect();
        let mut gone = 0;
        for slice in ids.chunks(SLICE) {
            crash::point("house-slice");
            gone += match self.standing {
                Standing::Live => {
                    let each = self.stores.iter().map(|store| store.forget(slice));
                    each.sum::<Result<usize>>()?
                }
                standing => forget_unseen(&self.own, &self.place, standing, slice)?,
            };
            thread::sleep(REST);
        }
        let is_there = |it: &Checkpoint| !ids.contains(&it.id);
        let mut stays = self.checkpoints.iter().map(is_there).collect::<Vec<_>>().into_iter();
        self.ages.retain(|_| stays.next().unwrap_or(true));
        self.checkpoints.retain(is_there);
        let _nothing_of_it =
            fs::remove_file(self.own.stats()).is_ok() && self.checkpoints.is_empty();
        Ok(gone)
    }
}
