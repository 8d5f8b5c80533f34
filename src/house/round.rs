//! One round of housekeeping: what there is, what goes, and what came of it.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use super::{
    clock::{Memory, Report},
    holding::{Holding, all},
    litter, room, stamp,
};
use crate::{
    config, crash,
    error::{Error, Result},
    fs::Lock,
    journal::{self, Line, LineKind},
    model::{Agent, CheckpointId, SessionId, Settings},
    plan::{Limits, PrunePlan, Stock},
    process::Process,
    state::{RootState, State},
    store::{Standing, Unread, git::give_up_history, maintain, own_bytes, record, sweep},
    ui,
};

/// How long a round waits for those who save.
const PATIENCE: Duration = Duration::from_secs(30);

/// A session that is over: all of its checkpoints but the newest are to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The agent.
    pub agent: Agent,
    /// Which.
    pub session: SessionId,
}

/// Keeps house: everything within the limits, unless the settings forbid it, and the
/// checkpoints of a session that is over. `None` if there was nothing to do, or another process is
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
    let report = Report::default();
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

/// Maintains the private repositories: borrowed objects become our own as far as the disk limit
/// allows, and many pieces few.
///
/// # Errors
///
/// Fails if one cannot be read or written.
pub fn tidy(process: &Process<'_>, state: &State) -> Result<()> {
    let settings = config::load(process, None).settings;
    let room = settings.max_total_size.saturating_sub(own_bytes(state.dir()));
    maintain(state, room).map(drop)
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
        let (mut holdings, unseen) = all(self.process, self.state, &mut self.memory)?;
        self.report.unmet.extend(unseen);
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
            if let Err(err) = self.give_up(holding) {
                let path = ui::escape_path(&holding.place.path);
                self.report.unmet.push(format!("cannot give up what is damaged of {path}: {err}"));
            }
        }
        self.sweep();
        if self.settings.auto_prune {
            // Where nothing can be freed, dropping checkpoints would gain nothing.
            if record::in_the_way(self.state)?.is_none() {
                self.make_room(&mut holdings);
            }
            self.report.unmet.extend(room::unmet(self.state, &self.settings));
            self.bury(&holdings);
            litter::drop_old(
                self.state, &holdings, &self.settings, &self.memory, self.process.now,
            )?;
            // There are more pieces than should be, and less is held for certain; nothing is lost.
            let _later = tidy(self.process, self.state);
        }
        let roots = self.state.roots();
        let is_there = |name: &str| roots.join(name).is_dir();
        self.memory.retain(is_there);
        Ok(())
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

    /// Gives up records that could not be read for as long as any other is kept. What nothing else
    /// needs goes with the next sweep.
    fn give_up(&mut self, holding: &Holding) -> Result<()> {
        let is_lost = |why: Unread| match why {
            Unread::Damaged | Unread::Withheld => true,
            Unread::Newer => false,
        };
        let unread = holding.unread.iter().filter(|(_, why)| is_lost(**why));
        let mut damaged: Vec<CheckpointId> = unread.map(|(id, _)| *id).collect();
        damaged.extend(record::aside(&holding.own)?);
        let ages = self.memory.damaged(&holding.name, &damaged);
        let is_over = |age: Duration| age > holding.settings.retention;
        let over = damaged.into_iter().zip(ages).filter(|(_, age)| is_over(*age));
        let over: Vec<CheckpointId> = over.map(|(id, _)| id).collect();
        if self.settings.auto_prune && !over.is_empty() {
            let _alone = Lock::acquire(&holding.own.lock(), Instant::now() + PATIENCE)?;
            crash::point("house-give-up");
            over.into_iter().try_for_each(|id| record::give_up(&holding.own, id))?;
        }
        Ok(())
    }

    fn sweep(&mut self) {
        match sweep::sweep(self.state, Instant::now() + PATIENCE) {
            Ok(freed) => self.report.freed += freed,
            Err(err) => self.report.unmet.push(format!("cannot free unused contents: {err}")),
        }
    }

    /// Drops the oldest of those that have most until there is room, as far as any may go.
    fn make_room(&mut self, holdings: &mut [Holding]) {
        let mut excess = room::excess(self.state, &self.settings);
        if excess > 0 {
            // No file of any checkpoint depends on it.
            match give_up_history(self.state) {
                Ok(freed) => self.report.freed += freed,
                Err(err) => self.report.unmet.push(format!("cannot free old history: {err}")),
            }
            excess = room::excess(self.state, &self.settings);
        }
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
