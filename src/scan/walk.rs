//! Walks a root into a [`Scan`]: compares the last scan with the disk, reads again what may have
//! changed, and notes what is left out and why.
//!
//! Opens directories and ignore files, but never the files to be held.

use std::{
    ffi::OsStr,
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::atomic::AtomicU64,
    time::Instant,
};

use super::{
    Scan, ScanRequest, budget,
    dir_rules::{Descent, DirRules, rules_changed},
    is_racy,
    list::{DirVisit, Lister, Listings, WalkContext, is_file, is_private_mode, mark_unlisted},
    parallel,
    rule_sources::RuleSources,
    verify::{Suspects, verify},
    victims,
};
use crate::{
    cache::{DirRow, Facts, ScanTable},
    error::{Error, Result},
    fs::{Dir, stat_path},
    model::{
        ContentId, DefaultModes, DirPath, Fresh, Kind, Marks, RootKind, ScanScope, SkipReason,
        Stamp,
    },
};

/// Walks a root.
///
/// # Errors
///
/// Fails if the root itself cannot be opened or listed.
pub fn walk(mut request: ScanRequest<'_>) -> Result<Scan> {
    let path = request.root.path();
    let top = Dir::open(path).map_err(Error::io("open", path))?;
    let sources = RuleSources::of(request.root, request.user);
    let mut walk = RootWalk::new(&request, &top, &sources)?;
    if request.scope == ScanScope::Whole {
        let base = request.base.take().filter(|base| base.facts().rules == Some(walk.rules_digest));
        walk.everything(base).map_err(Error::io("read", path))?;
    }
    let mut scan = walk.scan;
    scan.repositories = nested_repositories(&scan, path);
    victims::name_victims(&mut scan, &request);
    Ok(scan)
}

/// Every `.git` below the root, except the root's own.
fn nested_repositories(scan: &Scan, root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    scan.each_directory(|dir, _, _, rows| {
        // Names are sorted, and hardly any sorts before this one.
        let mut first = rows.take_while(|row| row.name <= &b".git"[..]);
        if !dir.is_empty()
            && let Some(row) = first.find(|row| row.skipped == Some(SkipReason::GitPrivate))
        {
            let below = Path::new(OsStr::from_bytes(dir)).join(OsStr::from_bytes(row.name));
            found.push(root.join(below));
        }
    });
    found.sort();
    found
}

/// With a deadline, so many files that were not read in time are taken up: two threads read more in no call's time. The
/// others wait, and take neither time nor memory.
const TAKEN_UP_MAX: usize = 200_000;

struct RootWalk<'a> {
    context: WalkContext<'a>,
    top: &'a Dir,
    sources: &'a RuleSources,
    rules_digest: ContentId,
    /// The rules and tracked paths of the root; read when first needed.
    dir_rules: Option<DirRules>,
    /// How many files that were not read in time are taken up.
    taken_up: usize,
    scan: Scan,
}

impl<'a> RootWalk<'a> {
    fn new(request: &ScanRequest<'a>, top: &'a Dir, sources: &'a RuleSources) -> Result<Self> {
        let path = request.root.path();
        let (_, device) = top.stat().map_err(Error::io("look at", path))?;
        let open_bits = match request.root.kind() {
            RootKind::Git { common_dir, .. } => {
                let objects = stat_path(&common_dir.join("objects"));
                objects.map_or(0, |stamp| stamp.permissions() & 0o044)
            }
            RootKind::Plain { .. } => 0,
        };
        let context = WalkContext {
            root: request.root,
            settings: request.settings,
            file_size_max: request.settings.max_file_size,
            files_max: request.settings.max_files,
            now_ns: request.now_ns,
            deadline: request.deadline.map(walk_deadline),
            device,
            open_bits,
            captured: AtomicU64::new(0),
        };
        let rules_digest = sources.digest(request.settings);
        let (dir_rules, taken_up, scan) = (None, 0, Scan::default());
        Ok(Self { context, top, sources, rules_digest, dir_rules, taken_up, scan })
    }

    fn everything(&mut self, base: Option<ScanTable>) -> io::Result<()> {
        self.scan.rules = Some(self.rules_digest);
        let Some(base) = base else { return self.full(None) };
        self.scan.anchor = base.facts().anchor;
        *self.context.captured.get_mut() = base.facts().files;
        if self.tracked_set_changed(base.facts()) {
            return self.full(Some(&base));
        }
        let suspects = verify(self.top, self.context.device, &base);
        if rules_changed(self.top, &base, &suspects) {
            return self.full(Some(&base));
        }
        self.scan.tracked = base.facts().tracked;
        self.scan.default_modes = base.facts().default_modes;
        // The budget also counts files in directories that are not read again.
        self.scan.base = Some(base.clone());
        self.incremental(&base, &suspects)
    }

    /// Walks every directory. Takes over what `base` knows of files with unchanged stamps.
    fn full(&mut self, base: Option<&ScanTable>) -> io::Result<()> {
        if let RootKind::Git { git_dir, .. } = self.context.root.kind() {
            // Stat before reading: the next scan then notices a change in between.
            self.scan.index = stat_path(&git_dir.join("index")).unwrap_or_default();
        }
        let dir_rules = self.take_dir_rules();
        self.scan.tracked = Some(dir_rules.tracked.digest());
        let listed = self.list_all(&dir_rules, base)?;
        self.add(listed);
        budget::take_in(&mut self.scan, &self.context, self.top, base, || dir_rules.clone());
        self.scan.default_modes = default_modes_of(&self.scan);
        self.dir_rules = Some(dir_rules);
        Ok(())
    }

    fn list_all(&mut self, dir_rules: &DirRules, base: Option<&ScanTable>) -> io::Result<Listings> {
        let visit = DirVisit { path: DirPath::default(), depth: 0, dir_rules, is_ignored: false };
        *self.context.captured.get_mut() = 0;
        let listed = parallel::list_all(&self.context, base, &self.top.listable()?, &visit, false)?;
        if !listed.too_many {
            return Ok(listed);
        }
        // Which files exceed the limit must not depend on which thread was faster.
        drop(listed);
        *self.context.captured.get_mut() = 0;
        parallel::list_all(&self.context, base, &self.top.listable()?, &visit, true)
    }

    /// Adds the results of listers.
    fn add(&mut self, listed: Listings) {
        let Listings { fresh, unlisted, out_of_time, .. } = listed;
        self.scan.refreshed = true;
        self.scan.partial |= out_of_time;
        self.scan.fresh.extend(fresh);
        mark_unlisted(&mut self.scan.fresh, unlisted);
    }

    /// Reads only what `suspects` names.
    fn incremental(&mut self, base: &ScanTable, suspects: &Suspects) -> io::Result<()> {
        for &number in &suspects.gone {
            self.scan.gone.push(DirPath(base.dir(number).path.to_vec()));
            self.count_out(&base.dir(number));
        }
        let relist = &suspects.relist;
        for files in suspects.reread.chunk_by(|one, next| one.0 == next.0) {
            if relist.binary_search(&files[0].0).is_err() {
                self.reread(base, files);
            }
        }
        if !relist.is_empty() {
            let dir_rules = self.take_dir_rules();
            let WalkContext { root, file_size_max, .. } = self.context;
            let mut descent = Descent::new(root, file_size_max, self.top, dir_rules.clone());
            self.dir_rules = Some(dir_rules);
            for &number in relist {
                self.relist(base, &base.dir(number), &mut descent)?;
            }
        }
        let Self { context, top, sources, dir_rules, scan, .. } = self;
        let read = || DirRules::read(context.root, sources, context.settings);
        budget::take_in(scan, context, top, Some(base), || dir_rules.take().unwrap_or_else(read));
        self.touch_above(base);
        Ok(())
    }

    /// Marks files of one directory for reading that is otherwise unchanged. Of those that were not read in time,
    /// it takes up as many as there is time for.
    fn reread(&mut self, base: &ScanTable, files: &[(usize, usize, Stamp)]) {
        let is_late = |entry: usize| base.row(entry).skipped == Some(SkipReason::OutOfTime);
        let late = files.iter().filter(|(_, entry, _)| is_late(*entry)).count();
        let waits = self.taken_up + late > self.taken_up_max();
        if late > 0 && waits {
            self.scan.partial = true;
        }
        let taken = files.iter().filter(|(_, entry, _)| !waits || !is_late(*entry));
        let taken: Vec<_> = taken.copied().collect();
        let Some(&(number, _, _)) = taken.first() else { return };
        self.scan.refreshed = true;
        self.taken_up += if waits { 0 } else { late };
        let captured = self.context.captured.get_mut();
        *captured += if waits { 0 } else { late as u64 };
        let is_full = late > 0 && *captured > self.context.files_max;
        let (now_ns, size_max) = (self.context.now_ns, self.context.file_size_max);
        let open_bits = self.context.open_bits;
        let fresh = self.touch(base, &DirPath(base.dir(number).path.to_vec()));
        for (_, entry, stamp) in taken {
            let row = base.row(entry);
            let Some(found) = fresh.entry_mut(row.name) else { continue };
            let untracked = !row.marks.tracked;
            let private = row.marks.private || is_private_mode(open_bits, &stamp, untracked);
            found.content = None;
            found.stamp = stamp;
            found.marks = Marks { racy: is_racy(&stamp, now_ns), private, ..found.marks };
            let too_large = untracked && is_file(&stamp) && stamp.size > size_max;
            found.skipped = match found.skipped {
                Some(SkipReason::OutOfTime) if is_full => Some(SkipReason::TooMany),
                None | Some(SkipReason::TooLarge | SkipReason::OutOfTime) => {
                    too_large.then_some(SkipReason::TooLarge)
                }
                other => other,
            };
        }
    }

    /// How many files that were not read in time one scan takes up.
    fn taken_up_max(&self) -> usize {
        if self.context.deadline.is_some() { TAKEN_UP_MAX } else { usize::MAX }
    }

    /// Lists one directory of the base again. Known names keep their decisions.
    fn relist(
        &mut self,
        base: &ScanTable,
        dir: &DirRow<'_>,
        descent: &mut Descent<'_>,
    ) -> io::Result<()> {
        let path = DirPath(dir.path.to_vec());
        self.count_out(dir);
        let local = descent.at(&path)?;
        let opened = descent.way.listable(&path);
        let is_ignored = is_ignored(base, &path);
        let visit = DirVisit { depth: path.depth(), path, dir_rules: &local, is_ignored };
        let listed = opened.and_then(|open| {
            let mut lister = Lister::new(&self.context, Some(base), &self.scan.gone, None);
            lister.list(&open, &visit, false).map(|()| lister.listed)
        });
        match listed {
            Ok(listed) => {
                self.add(listed);
                Ok(())
            }
            Err(err) if visit.path.0.is_empty() => Err(err),
            Err(_) => {
                self.leave_out(base, &visit.path);
                Ok(())
            }
        }
    }

    /// Subtracts the files of a directory from the count.
    fn count_out(&mut self, dir: &DirRow<'_>) {
        let held = dir.rows().filter(|row| row.skipped.is_none());
        let files = held.filter(|row| row.kind() != Some(Kind::Directory)).count();
        let captured = self.context.captured.get_mut();
        *captured = captured.saturating_sub(files as u64);
    }

    /// Notes that a directory of the base can no longer be read.
    fn leave_out(&mut self, base: &ScanTable, path: &DirPath) {
        let Some((above, name)) = path.split() else { return };
        self.scan.gone.push(path.clone());
        let name = name.to_vec();
        let fresh = self.touch(base, &above);
        if let Some(found) = fresh.entry_mut(&name) {
            found.content = None;
            found.skipped = Some(SkipReason::Unreadable);
        }
    }

    /// The directory at `path`, for modification; copied from the base if it was not read again.
    fn touch(&mut self, base: &ScanTable, path: &DirPath) -> &mut Fresh {
        self.scan.fresh.entry(path.clone()).or_insert_with(|| {
            base.find_dir(&path.0).map_or_else(Fresh::default, |dir| Fresh {
                stamp: dir.stamp,
                racy: dir.racy,
                id: None,
                found: dir.rows().map(|row| row.to_found()).collect(),
            })
        })
    }

    /// Marks every directory above a changed one as changed.
    fn touch_above(&mut self, base: &ScanTable) {
        let changed: Vec<DirPath> = self.scan.fresh.keys().cloned().collect();
        for path in changed {
            let mut below = path;
            while let Some((above, name)) = below.split() {
                let stamp = self.scan.fresh.get(&below).map(|fresh| fresh.stamp);
                let name = name.to_vec();
                let fresh = self.touch(base, &above);
                if let Some(found) = fresh.entry_mut(&name) {
                    found.content = None;
                    found.stamp = stamp.unwrap_or(found.stamp);
                }
                below = above;
            }
        }
    }
}

/// When to stop walking, to be done by `deadline`: without time to read something, the next call would come no
/// further.
fn walk_deadline(deadline: Instant) -> Instant {
    let now = Instant::now();
    now + deadline.saturating_duration_since(now) * 3 / 4
}

/// Whether the last scan saw a directory as ignored, by its own name or one above it.
fn is_ignored(base: &ScanTable, path: &DirPath) -> bool {
    path.split().is_some_and(|(above, name)| {
        let row = base.find_dir(&above.0).and_then(|dir| dir.row(name));
        row.is_some_and(|row| row.marks.ignored)
    })
}

/// Rules, and what git tracks.
impl RootWalk<'_> {
    fn take_dir_rules(&mut self) -> DirRules {
        match self.dir_rules.take() {
            Some(dir_rules) => dir_rules,
            None => DirRules::read(self.context.root, self.sources, self.context.settings),
        }
    }

    /// Whether git's set of tracked paths differs from that of the base.
    fn tracked_set_changed(&mut self, facts: &Facts) -> bool {
        let RootKind::Git { git_dir, .. } = self.context.root.kind() else { return false };
        let stamp = stat_path(&git_dir.join("index")).unwrap_or_default();
        self.scan.index = stamp;
        if stamp == facts.index && !is_racy(&stamp, self.context.now_ns) {
            return false;
        }
        let dir_rules = DirRules::read(self.context.root, self.sources, self.context.settings);
        let changed = Some(dir_rules.tracked.digest()) != facts.tracked;
        self.dir_rules = Some(dir_rules);
        changed
    }
}

fn default_modes_of(scan: &Scan) -> DefaultModes {
    let mut counts = std::collections::HashMap::<(u8, u32), u32>::new();
    scan.each(|_, row| {
        let class = match row.kind() {
            Some(Kind::File) if row.stamp.mode & 0o100 != 0 => 1,
            Some(Kind::File) => 0,
            Some(Kind::Directory) => 2,
            _ => return,
        };
        if row.skipped.is_none() {
            *counts.entry((class, row.stamp.permissions())).or_default() += 1;
        }
    });
    let most = |class, otherwise| {
        let of_class = counts.iter().filter(|((of, _), _)| *of == class);
        of_class
            .max_by_key(|((_, mode), count)| (**count, *mode))
            .map_or(otherwise, |((_, mode), _)| *mode)
    };
    let DefaultModes { file, executable, directory } = DefaultModes::default();
    DefaultModes {
        file: most(0, file),
        executable: most(1, executable),
        directory: most(2, directory),
    }
}
