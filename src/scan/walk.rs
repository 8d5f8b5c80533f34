//! Walks a root into a [`Scan`]: what the last scan saw is compared, what may have changed is
//! read anew, and whatever is left out is noted with its reason.
//!
//! Opens directories and, for their rules, ignore files; never the files themselves.

use std::{
    ffi::CString,
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    time::Instant,
};

use super::{
    Scan, TEMPORARY_PREFIX, is_racy,
    rules::{self, Rules},
    sources::{Said, Sources, UserDirs, Wishes},
    tracked::Tracked,
    verify::{Suspects, verify},
    victims,
};
use crate::{
    cache::{DirRow, Facts, Table},
    error::{Error, Result},
    fs::{Dir, Listed, c_name, read_small, stat_path},
    model::{
        ContentId, DirPath, Found, Fresh, Kind, Marks, RelPath, Root, RootKind, Scope, SkipReason,
        Stamp, Usual,
    },
};

/// What to walk, and how far.
#[derive(Debug)]
pub struct Request<'a> {
    /// Where.
    pub root: &'a Root,
    /// How much of it.
    pub scope: Scope,
    /// The last scan, if there is one.
    pub base: Option<Table>,
    /// What the settings say about which files are captured.
    pub wishes: &'a Wishes,
    /// Where the user keeps git's configuration.
    pub user: &'a UserDirs,
    /// Paths to hold in any case. Absolute, without `.` or `..`.
    pub victims: &'a [PathBuf],
    /// The state directory, which is nobody's victim.
    pub ours: &'a Path,
    /// How much of each of them.
    pub named: Named,
    /// Whether to hold also what is ignored or large, path by path, where it is little.
    pub spare: bool,
    /// Whether to hold also what brings the root's repositories back.
    pub repositories: bool,
    /// When the scan began, in nanoseconds since 1970: what changed later than this, or hardly
    /// before, is looked at again next time.
    pub now_ns: i64,
    /// When to stop.
    pub deadline: Option<Instant>,
}

/// How much of each victim is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// It and everything below it, within limits: a call names it.
    WithAllBelow,
    /// It alone, whatever its size: a restore is about to replace it.
    Alone,
}

/// Deep enough for every honest tree, and few enough open directories for every system.
const DEPTH_MAX: usize = 900;
/// How many entries are looked at between two looks at the clock.
const ENTRIES_PER_LOOK: u64 = 256;

/// Walks a root.
///
/// # Errors
///
/// Fails if the root itself cannot be opened or listed.
pub fn walk(mut request: Request<'_>) -> Result<Scan> {
    let path = request.root.path();
    let top = Dir::open(path).map_err(Error::io("open", path))?;
    let sources = Sources::of(request.root, request.user);
    let mut walk = Walk::new(&request, &top, &sources)?;
    if request.scope == Scope::Whole {
        let base = request.base.take().filter(|base| base.facts().rules == Some(walk.rules_digest));
        walk.everything(base).map_err(Error::io("read", path))?;
    }
    let mut scan = walk.finish();
    victims::name_victims(&mut scan, &request);
    Ok(scan)
}

struct Walk<'a> {
    root: &'a Root,
    top: &'a Dir,
    sources: &'a Sources,
    wishes: &'a Wishes,
    now_ns: i64,
    deadline: Option<Instant>,
    rules_digest: ContentId,
    /// The rules and tracked paths of the root; read when first needed.
    ground: Option<Ground>,
    device: u64,
    /// Permission bits for others that the repository's own objects grant.
    open_bits: u32,
    captured: u64,
    seen: u64,
    out_of_time: bool,
    scan: Scan,
}

/// What decides about the files of one repository, or of a plain root.
struct Ground {
    rules: Rules,
    tracked: std::rc::Rc<Tracked>,
    /// Whether git's own ids may be taken over for files it saw unchanged.
    adopts: bool,
    hash: gix::hash::Kind,
}

/// One directory on the way down.
struct Place<'g> {
    path: DirPath,
    depth: usize,
    ground: &'g Ground,
}

impl<'a> Walk<'a> {
    fn new(request: &Request<'a>, top: &'a Dir, sources: &'a Sources) -> Result<Self> {
        let path = request.root.path();
        let (_, device) = top.stat().map_err(Error::io("look at", path))?;
        let open_bits = match request.root.kind() {
            RootKind::Git { common_dir, .. } => {
                let objects = stat_path(&common_dir.join("objects"));
                objects.map_or(0, |stamp| stamp.permissions() & 0o044)
            }
            RootKind::Plain { .. } => 0,
        };
        Ok(Self {
            root: request.root,
            top,
            sources,
            wishes: request.wishes,
            now_ns: request.now_ns,
            deadline: request.deadline,
            rules_digest: sources.digest(request.wishes),
            ground: None,
            device,
            open_bits,
            captured: 0,
            seen: 0,
            out_of_time: false,
            scan: Scan::default(),
        })
    }

    fn finish(self) -> Scan {
        let Self { mut scan, out_of_time, .. } = self;
        scan.partial |= out_of_time;
        scan
    }

    fn everything(&mut self, base: Option<Table>) -> io::Result<()> {
        self.scan.rules = Some(self.rules_digest);
        let Some(base) = base else { return self.anew(None) };
        self.scan.anchor = base.facts().anchor;
        self.captured = base.facts().files;
        if self.tracked_set_changed(base.facts()) {
            return self.anew(Some(&base));
        }
        let suspects = verify(self.top, &base);
        if rules_changed(self.top, &base, &suspects) {
            return self.anew(Some(&base));
        }
        self.scan.tracked = base.facts().tracked;
        self.scan.usual = base.facts().usual;
        self.scan.nested = Vec::new();
        self.again(&base, &suspects)?;
        self.scan.base = Some(base);
        Ok(())
    }

    /// Walks every directory, taking over what `base` knows of files whose stamps are the same.
    fn anew(&mut self, base: Option<&Table>) -> io::Result<()> {
        self.captured = 0;
        if let RootKind::Git { git_dir, .. } = self.root.kind() {
            // Before it is read: what changes meanwhile is seen next time.
            self.scan.index = stat_path(&git_dir.join("index")).unwrap_or_default();
        }
        let ground = self.take_ground();
        self.scan.tracked = Some(ground.tracked.digest());
        let open = self.top.listable()?;
        let place = Place { path: DirPath::default(), depth: 0, ground: &ground };
        self.list(&open, &place, base, true)?;
        self.scan.usual = usual_of(&self.scan);
        self.ground = Some(ground);
        Ok(())
    }

    /// Reads anew what `suspects` names, and no more.
    fn again(&mut self, base: &Table, suspects: &Suspects) -> io::Result<()> {
        for &number in &suspects.gone {
            self.scan.gone.push(DirPath(base.dir(number).path.to_vec()));
            self.count_out(&base.dir(number));
        }
        let mut relist = suspects.relist.clone();
        relist.sort_unstable();
        relist.dedup();
        for &(number, entry) in &suspects.reread {
            if relist.binary_search(&number).is_err() {
                self.reread(base, number, entry);
            }
        }
        for &number in &relist {
            self.relist(base, &base.dir(number))?;
        }
        self.touch_above(base);
        Ok(())
    }

    /// Notes that one file of a directory that is otherwise as it was has to be read.
    fn reread(&mut self, base: &Table, number: usize, entry: usize) {
        let dir = base.dir(number);
        let row = base.row(entry);
        let rel = DirPath(dir.path.to_vec());
        let stamp = RelPath::from_bytes(&rel.join(row.name))
            .map_err(|_| io::ErrorKind::InvalidInput.into())
            .and_then(|path| self.top.parent_of(&path))
            .and_then(|parent| parent.stat_child(&c_name(row.name)?))
            // Gone in this very moment: the store will find that out when it reads.
            .unwrap_or(row.stamp);
        let racy = is_racy(&stamp, self.now_ns);
        let (untracked, size_max) = (!row.marks.tracked, self.wishes.file_size_max);
        let is_private = row.marks.private || self.is_private_mode(&stamp, untracked);
        self.scan.refreshed = true;
        let fresh = self.touch(base, &rel);
        if let Some(found) = fresh.found.iter_mut().find(|found| found.name == row.name) {
            found.content = None;
            found.stamp = stamp;
            found.marks = Marks { racy, private: is_private, ..found.marks };
            let too_large = untracked && is_file(&stamp) && stamp.size > size_max;
            found.skipped = match found.skipped {
                None | Some(SkipReason::TooLarge) => too_large.then_some(SkipReason::TooLarge),
                other => other,
            };
        }
    }

    /// Lists one directory of the base anew. Known names keep what was decided about them.
    fn relist(&mut self, base: &Table, dir: &DirRow<'_>) -> io::Result<()> {
        let path = DirPath(dir.path.to_vec());
        self.count_out(dir);
        let ground = self.take_ground();
        let local = self.ground_at(&ground, &path)?;
        let opened = match RelPath::from_bytes(dir.path) {
            Ok(rel) => self.top.parent_of(&rel).and_then(|up| up.open_child(&c_name(rel.name())?)),
            Err(_) => self.top.listable(),
        };
        let place = Place { depth: path.depth(), path, ground: &local };
        let listed = opened.and_then(|open| self.list(&open, &place, Some(base), false));
        self.ground = Some(ground);
        match listed {
            Ok(()) => Ok(()),
            Err(err) if place.path.0.is_empty() => Err(err),
            Err(_) => {
                self.leave_out(base, &place.path);
                Ok(())
            }
        }
    }

    /// Forgets that the files of a directory were counted.
    fn count_out(&mut self, dir: &DirRow<'_>) {
        let held = dir.rows().filter(|row| row.skipped.is_none());
        let files = held.filter(|row| row.kind() != Some(Kind::Directory)).count();
        self.captured = self.captured.saturating_sub(files as u64);
    }

    /// Notes that a directory, of which the base knows something, can no longer be read.
    fn leave_out(&mut self, base: &Table, path: &DirPath) {
        let Some((above, name)) = path.split() else { return };
        self.scan.gone.push(path.clone());
        let name = name.to_vec();
        let fresh = self.touch(base, &above);
        if let Some(found) = fresh.found.iter_mut().find(|found| found.name == name) {
            found.content = None;
            found.skipped = Some(SkipReason::Unreadable);
        }
    }

    /// Lists an open directory, decides about each name, and walks what has to be walked.
    fn list(
        &mut self,
        open: &Dir,
        place: &Place<'_>,
        base: Option<&Table>,
        anew: bool,
    ) -> io::Result<()> {
        let (stamp, _) = open.stat()?;
        let mut names = Vec::new();
        open.list(|listed| names.push(listed))?;
        names.sort_by(|a, b| a.name.cmp(&b.name));
        let nested = self.nested_ground(open, place, &names);
        // What lies in a nested repository is decided by it, and it may be new.
        let anew = anew || nested.is_some();
        let ground = nested.as_ref().unwrap_or(place.ground);
        let rules = inner_rules(open, &place.path, &names, &ground.rules);
        let rules = Self::with_defaults(rules, place, &names);
        let inner = Ground { rules, tracked: ground.tracked.clone(), ..*ground };
        let here = Place { path: place.path.clone(), depth: place.depth, ground: &inner };
        let old = base.and_then(|base| base.find_dir(&place.path.0));
        let mut found = Vec::with_capacity(names.len());
        for listed in &names {
            if let Some(entry) = self.entry(open, &here, listed, old.as_ref(), base, anew) {
                found.push(entry);
            }
        }
        let racy = is_racy(&stamp, self.now_ns);
        self.scan.refreshed = true;
        let fresh = Fresh { stamp, racy, id: None, found };
        self.scan.fresh.insert(place.path.clone(), fresh);
        Ok(())
    }

    /// What one name in a directory is; `None` for git's own, and for what is already gone.
    fn entry(
        &mut self,
        open: &Dir,
        place: &Place<'_>,
        listed: &Listed,
        old: Option<&DirRow<'_>>,
        base: Option<&Table>,
        anew: bool,
    ) -> Option<Found> {
        let name = listed.name.to_bytes();
        if is_git_private(open, &listed.name) || name.starts_with(TEMPORARY_PREFIX.as_bytes()) {
            return None;
        }
        let kind = listed.kind.or_else(|| open.stat_child(&listed.name).ok()?.kind());
        let old = old.and_then(|old| old.row(name)).filter(|row| row.kind() == kind);
        let path = place.path.join(name);
        let mut found = Found {
            name: name.to_vec(),
            stamp: Stamp { mode: kind.map_or(0, Kind::mode_bits), ..Stamp::default() },
            content: None,
            marks: Marks::default(),
            skipped: None,
        };
        match old {
            Some(row) if !anew && keeps_decision(row.skipped) => {
                found.marks.tracked = row.marks.tracked;
                found.skipped = row.skipped;
            }
            _ => Self::decide(&mut found, &path, kind, place),
        }
        self.look(&mut found, open, &listed.name, &path, place);
        let is_gone = || self.scan.gone.iter().any(|gone| gone.contains(&path));
        let old_dir = base.and_then(|base| base.find_dir(&path)).filter(|_| !is_gone());
        match (found.skipped, found.kind()) {
            (None, Some(Kind::Directory)) if !anew && old_dir.is_some() => {
                found.content = old.and_then(|row| row.content);
            }
            (None, Some(Kind::Directory)) => {
                self.descend(&mut found, open, &listed.name, place, path, base);
            }
            (None, Some(_)) => {
                self.capture(
                    &mut found,
                    &path,
                    place,
                    old.map(|row| (row.stamp, row.content, row.marks)),
                );
            }
            (_, None) => found.skipped = Some(SkipReason::UnknownKind),
            (Some(_), Some(_)) => (),
        }
        (found.stamp.mode != 0).then_some(found)
    }

    /// Whether a name is tracked, and if not, what the rules say.
    fn decide(found: &mut Found, path: &[u8], kind: Option<Kind>, place: &Place<'_>) {
        let is_dir = kind == Some(Kind::Directory);
        let tracked = &place.ground.tracked;
        found.marks.tracked = if is_dir { tracked.has_below(path) } else { tracked.has(path) };
        if !found.marks.tracked {
            found.skipped = place.ground.rules.skips(path, is_dir);
        }
    }

    /// Asks the system about a name, unless nobody wants to know.
    fn look(
        &mut self,
        found: &mut Found,
        open: &Dir,
        name: &CString,
        path: &[u8],
        place: &Place<'_>,
    ) {
        let is_rules = found.name == rules::IGNORE_FILE;
        if found.skipped.is_some_and(|reason| !is_asked_about(reason)) && !is_rules {
            return;
        }
        match stat_listed(open, name) {
            Ok(stamp) => {
                found.stamp = stamp;
                found.marks.racy = is_racy(&stamp, self.now_ns);
            }
            // Gone between the listing and now.
            Err(err) if err.kind() == io::ErrorKind::NotFound => found.stamp.mode = 0,
            Err(_) => {
                found.skipped = Some(SkipReason::Unreadable);
                return;
            }
        }
        let untracked = !found.marks.tracked;
        let too_large = is_file(&found.stamp) && found.stamp.size > self.wishes.file_size_max;
        if found.skipped.is_none_or(is_asked_about) {
            found.skipped = (untracked && too_large).then_some(SkipReason::TooLarge);
        }
        found.marks.private = is_file(&found.stamp)
            && (self.is_private_mode(&found.stamp, untracked)
                || untracked && self.is_git() && place.ground.rules.is_private(path));
    }

    /// Counts a file in, and takes over what is known of its bytes.
    fn capture(
        &mut self,
        found: &mut Found,
        path: &[u8],
        place: &Place<'_>,
        old: Option<(Stamp, Option<ContentId>, Marks)>,
    ) {
        if self.captured >= self.wishes.files_max {
            found.skipped = Some(SkipReason::TooMany);
            return;
        }
        if self.is_late() {
            found.skipped = Some(SkipReason::OutOfTime);
            return;
        }
        self.captured += 1;
        let known = old.filter(|(stamp, _, marks)| {
            *stamp == found.stamp && !marks.racy && marks.private == found.marks.private
        });
        found.content = known.and_then(|(_, content, _)| content);
        if found.content.is_none() && place.ground.adopts && !found.marks.racy {
            let adopted = place.ground.tracked.adopt(path, &found.stamp);
            found.content = adopted.filter(|_| found.marks.tracked && !found.marks.private);
        }
    }

    /// Walks the directory `name`.
    fn descend(
        &mut self,
        found: &mut Found,
        open: &Dir,
        name: &CString,
        place: &Place<'_>,
        path: Vec<u8>,
        base: Option<&Table>,
    ) {
        if place.depth >= DEPTH_MAX {
            found.skipped = Some(SkipReason::TooDeep);
            return;
        }
        if self.is_late() {
            found.skipped = Some(SkipReason::OutOfTime);
            return;
        }
        let below = Place { path: DirPath(path), depth: place.depth + 1, ground: place.ground };
        let listed = open.open_child(name).and_then(|child| {
            if child.stat()?.1 != self.device {
                found.skipped = Some(SkipReason::OtherFileSystem);
                return Ok(());
            }
            self.list(&child, &below, base, true)
        });
        if listed.is_err() {
            found.skipped = Some(SkipReason::Unreadable);
        }
    }

    fn is_git(&self) -> bool {
        matches!(self.root.kind(), RootKind::Git { .. })
    }

    /// Whether an untracked file shows itself to fewer people than the repository's objects do.
    fn is_private_mode(&self, stamp: &Stamp, untracked: bool) -> bool {
        untracked && is_file(stamp) && self.open_bits & !stamp.mode != 0
    }

    fn is_late(&mut self) -> bool {
        self.seen += 1;
        if self.seen.is_multiple_of(ENTRIES_PER_LOOK) || self.seen == 1 {
            self.out_of_time |= self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        }
        self.out_of_time
    }

    /// The directory at `path`, ready to be changed: as it is in the base, if it was not read.
    fn touch(&mut self, base: &Table, path: &DirPath) -> &mut Fresh {
        self.scan.fresh.entry(path.clone()).or_insert_with(|| {
            base.find_dir(&path.0).map_or_else(Fresh::default, |dir| Fresh {
                stamp: dir.stamp,
                racy: dir.racy,
                id: None,
                found: dir.rows().map(|row| row.to_found()).collect(),
            })
        })
    }

    /// Makes every directory above a changed one a changed one.
    fn touch_above(&mut self, base: &Table) {
        let changed: Vec<DirPath> = self.scan.fresh.keys().cloned().collect();
        for path in changed {
            let mut below = path;
            while let Some((above, name)) = below.split() {
                let stamp = self.scan.fresh.get(&below).map(|fresh| fresh.stamp);
                let name = name.to_vec();
                let fresh = self.touch(base, &above);
                if let Some(found) = fresh.found.iter_mut().find(|found| found.name == name) {
                    found.content = None;
                    found.stamp = stamp.unwrap_or(found.stamp);
                }
                below = above;
            }
        }
    }
}

/// The part about repositories: their rules and what they track.
impl Walk<'_> {
    fn take_ground(&mut self) -> Ground {
        match self.ground.take() {
            Some(ground) => ground,
            None => self.read_ground(),
        }
    }

    fn read_ground(&self) -> Ground {
        let Said { global, case, hash, converts } = self.sources.read();
        let rules = Rules::new(&global, &self.wishes.exclude, &self.wishes.private, case);
        let tracked = match self.root.kind() {
            RootKind::Git { git_dir, .. } => Tracked::read(&git_dir.join("index"), hash, 0),
            RootKind::Plain { .. } => Tracked::default(),
        };
        let has_info = match self.root.kind() {
            RootKind::Git { common_dir, .. } => {
                stat_path(&common_dir.join("info/attributes")).is_ok()
            }
            RootKind::Plain { .. } => false,
        };
        let adopts = self.is_git() && !converts && !has_info && !tracked.has_attributes();
        Ground { rules, tracked: tracked.into(), adopts, hash }
    }

    /// Whether git now tracks other paths than when the base was made.
    fn tracked_set_changed(&mut self, facts: &Facts) -> bool {
        let RootKind::Git { git_dir, .. } = self.root.kind() else { return false };
        let stamp = stat_path(&git_dir.join("index")).unwrap_or_default();
        self.scan.index = stamp;
        if stamp == facts.index && !is_racy(&stamp, self.now_ns) {
            return false;
        }
        let ground = self.read_ground();
        let changed = Some(ground.tracked.digest()) != facts.tracked;
        self.ground = Some(ground);
        changed
    }

    /// The ground that holds in the directory at `path`: nested repositories and ignore files on
    /// the way down to it, not those in it.
    fn ground_at(&self, ground: &Ground, path: &DirPath) -> io::Result<Ground> {
        let mut here =
            Ground { rules: ground.rules.clone(), tracked: ground.tracked.clone(), ..*ground };
        let mut way = Vec::new();
        let mut at = path.clone();
        while let Some((above, _)) = at.split() {
            way.push(above.clone());
            at = above;
        }
        for above in way.into_iter().rev() {
            let open = match RelPath::from_bytes(&above.0) {
                Ok(rel) => self.top.parent_of(&rel)?.open_child(&c_name(rel.name())?)?,
                Err(_) => self.top.listable()?,
            };
            let names = names_of_rules(&open);
            let place = Place { depth: 0, path: above.clone(), ground: &here };
            let inner = nested_ground(self.root, self.wishes, &open, &place, &names);
            let ground = inner.as_ref().unwrap_or(&here);
            let rules = inner_rules(&open, &above, &names, &ground.rules);
            let rules = Self::with_defaults(rules, &place, &names);
            here = Ground { rules, tracked: ground.tracked.clone(), ..*ground };
        }
        Ok(here)
    }

    fn nested_ground(&mut self, open: &Dir, place: &Place<'_>, names: &[Listed]) -> Option<Ground> {
        let nested = nested_ground(self.root, self.wishes, open, place, names)?;
        self.scan.nested.push(place.path.0.clone());
        Some(nested)
    }

    /// In the root itself, says whether what can be made again is left out.
    fn with_defaults(rules: Rules, place: &Place<'_>, names: &[Listed]) -> Rules {
        if !place.path.0.is_empty() {
            return rules;
        }
        let has_rules = names.iter().any(|listed| listed.name.to_bytes() == rules::IGNORE_FILE);
        rules.with_defaults(!has_rules)
    }
}

/// What decides about the files of the repository whose worktree is this directory, if it is one
/// and not the root itself.
fn nested_ground(
    root: &Root,
    wishes: &Wishes,
    open: &Dir,
    place: &Place<'_>,
    names: &[Listed],
) -> Option<Ground> {
    let listed = names.iter().find(|listed| listed.name.to_bytes() == b".git")?;
    if place.path.0.is_empty() {
        return None;
    }
    let git_dir = nested_git_dir(root, open, place, listed)?;
    let exclude = read_small(&git_dir.join("info/exclude"), wishes.file_size_max).ok().flatten();
    let rules = place.ground.rules.nested(&place.path.0, exclude.as_deref());
    let skip = place.path.0.len() + 1;
    let tracked = Tracked::read(&git_dir.join("index"), place.ground.hash, skip);
    Some(Ground { rules, tracked: tracked.into(), adopts: false, hash: place.ground.hash })
}

/// The stamp of a name that was just listed. Only a second `NotFound` is believed: one alone would
/// let a file pass for deleted that a network file system lost sight of for a moment.
fn stat_listed(open: &Dir, name: &CString) -> io::Result<Stamp> {
    match open.stat_child(name) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => open.stat_child(name),
        looked => looked,
    }
}

/// The git directory of a nested repository or submodule, if it lies below the root.
fn nested_git_dir(root: &Root, open: &Dir, place: &Place<'_>, listed: &Listed) -> Option<PathBuf> {
    let dir = root.path().join(Path::new(std::ffi::OsStr::from_bytes(&place.path.0)));
    match open.stat_child(&listed.name).ok()?.kind()? {
        Kind::Directory => {
            let git = open.stand_in(&listed.name).ok()?;
            git.stat_child(c"HEAD").ok()?;
            Some(dir.join(".git"))
        }
        Kind::File => {
            let text = rules::read_ignore_file(open, &listed.name);
            let target = text.strip_prefix(b"gitdir: ")?.trim_ascii_end();
            let target = dir.join(std::ffi::OsStr::from_bytes(target));
            let target = std::fs::canonicalize(target).ok()?;
            let RootKind::Git { common_dir, .. } = root.kind() else { return None };
            // It may point anywhere; only a place of this very repository is looked into.
            target.starts_with(common_dir).then_some(target)
        }
        Kind::Link | Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice => None,
    }
}

/// The names that matter for the rules of a directory.
fn names_of_rules(open: &Dir) -> Vec<Listed> {
    [c".git", c".gitignore"]
        .into_iter()
        .filter_map(|name| {
            let kind = open.stat_child(name).ok()?.kind();
            Some(Listed { name: name.to_owned(), kind })
        })
        .collect()
}

fn inner_rules(open: &Dir, path: &DirPath, names: &[Listed], rules: &Rules) -> Rules {
    let ignore_file = names.iter().find(|listed| listed.name.to_bytes() == rules::IGNORE_FILE);
    match ignore_file {
        Some(listed) => rules.inside(&path.0, &rules::read_ignore_file(open, &listed.name)),
        None => rules.clone(),
    }
}

/// Whether a name is `.git`, or the same thing by another spelling where case does not count.
fn is_git_private(open: &Dir, name: &CString) -> bool {
    let bytes = name.to_bytes();
    if bytes == b".git" {
        return true;
    }
    if !bytes.eq_ignore_ascii_case(b".git") {
        return false;
    }
    let inode = |name| open.stat_child(name).ok().map(|stamp| stamp.inode);
    inode(name).is_some_and(|this| inode(c".git") == Some(this))
}

/// Whether what was decided about a name still counts when only its directory has changed.
fn keeps_decision(skipped: Option<SkipReason>) -> bool {
    match skipped {
        None | Some(SkipReason::Ignored | SkipReason::MadeAgain | SkipReason::Excluded) => true,
        Some(_) => false,
    }
}

/// Whether something left out for this reason is looked at all the same: it may fit in by now.
fn is_asked_about(reason: SkipReason) -> bool {
    reason == SkipReason::TooLarge
}

fn is_file(stamp: &Stamp) -> bool {
    stamp.kind() == Some(Kind::File)
}

/// Whether an ignore file is new, changed or gone, so that every decision is open again.
fn rules_changed(top: &Dir, base: &Table, suspects: &Suspects) -> bool {
    let is_rules = |entry| base.row(entry).name == rules::IGNORE_FILE;
    suspects.reread.iter().any(|&(_, entry)| is_rules(entry))
        || suspects.relist.iter().any(|&number| rules_came_or_went(top, &base.dir(number)))
}

fn rules_came_or_went(top: &Dir, dir: &DirRow<'_>) -> bool {
    let before = dir.row(rules::IGNORE_FILE).map(|row| row.stamp);
    let parent = match RelPath::from_bytes(&DirPath(dir.path.to_vec()).join(rules::IGNORE_FILE)) {
        Ok(path) => top.parent_of(&path),
        Err(_) => return true,
    };
    before != parent.and_then(|dir| dir.stat_child(c".gitignore")).ok()
}

fn usual_of(scan: &Scan) -> Usual {
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
    let Usual { file, executable, directory } = Usual::default();
    Usual { file: most(0, file), executable: most(1, executable), directory: most(2, directory) }
}
