//! Scans: what they find, what they leave out, and when they trust the cache.
//!
//! Each rule that makes the cache right has a test that fails without it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    time::Instant,
};

use beforehand::{
    cache::{Facts, NewTable, ScanTable, TableRow},
    fs::stat_path,
    model::{ContentId, DirPath, Fresh, RelPath, Root, RootKind, ScanScope, Settings, SkipReason},
    scan::{Scan, ScanRequest, UserDirs, VictimDepth, VictimPath, walk},
};
use rustix::fs::{CWD, FileType, Timespec, Timestamps, utimensat};

use crate::support::temp::{TempDir, link, special, write};

/// Long enough after anything a test did that no stamp is racy.
const LATER_NS: i64 = 3_000_000_000;

/// A root, the user's directories, and the table of the last scan.
struct Place {
    dir: TempDir,
    kind: RootKind,
    settings: Settings,
    table: Option<Vec<u8>>,
    later_ns: i64,
    deadline: Option<Instant>,
}

impl Place {
    fn new(kind: impl FnOnce(&Path) -> RootKind) -> Self {
        let dir = TempDir::new();
        fs::create_dir(dir.path().join("root")).unwrap();
        let settings = Settings {
            exclude: Vec::new(),
            private: Vec::new(),
            max_file_size: 1000,
            max_files: 1000,
            max_victim_size: 5000,
            ..Settings::default()
        };
        let kind = kind(&dir.path().join("root"));
        Self { dir, kind, settings, table: None, later_ns: LATER_NS, deadline: None }
    }

    fn plain() -> Self {
        Self::new(|_| RootKind::Plain { why: None })
    }

    /// A worktree with nothing in its repository but what a test puts there.
    fn git() -> Self {
        Self::new(|root| {
            let git_dir = root.join(".git");
            fs::create_dir_all(git_dir.join("objects")).unwrap();
            RootKind::Git { common_dir: git_dir.clone(), git_dir }
        })
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join("root").join(path)
    }

    fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        write(&self.at(path), bytes);
    }

    fn scan_for(&self, victims: &[PathBuf]) -> Scan {
        let root = Root::new(self.dir.path().join("root"), self.kind.clone());
        let ours = self.dir.path().join("state");
        walk(ScanRequest {
            ours: &ours,
            root: &root,
            scope: ScanScope::Whole,
            base: self.table.clone().map(|bytes| ScanTable::parse(bytes).unwrap()),
            settings: &self.settings,
            user: &UserDirs { home: Some(self.dir.path().to_owned()), xdg_config: None },
            victims,
            named: VictimDepth::WithAllBelow,
            now_ns: beforehand::fs::now_ns() + self.later_ns,
            deadline: self.deadline,
        })
        .unwrap()
    }

    fn scan(&self) -> Scan {
        self.scan_for(&[])
    }

    /// Scans, reads what has to be read as a store would, and keeps the table. Returns the paths
    /// that had to be read.
    fn settle(&mut self) -> Vec<String> {
        let mut scan = self.scan();
        let mut read = Vec::new();
        let root = self.dir.path().join("root");
        let dirs: Vec<DirPath> = scan.fresh.keys().rev().cloned().collect();
        for dir in dirs {
            let found: Vec<(Vec<u8>, bool)> = {
                let fresh = &scan.fresh[&dir];
                fresh.found.iter().map(|found| (found.name.clone(), found.is_unread())).collect()
            };
            for (number, (name, is_unread)) in found.into_iter().enumerate() {
                let path = dir.join(&name);
                let id = scan.fresh.get(&DirPath(path.clone())).and_then(|below| below.id);
                let found = &mut scan.fresh.get_mut(&dir).unwrap().found[number];
                if is_unread {
                    found.content = Some(ContentId::new(&[7; 20]));
                    read.push(text(&path));
                } else if found.content.is_none() {
                    found.content = id;
                }
            }
            scan.fresh.get_mut(&dir).unwrap().id = Some(ContentId::new(&[9; 20]));
        }
        let facts = Facts {
            top: scan.top(),
            rules: scan.rules,
            tracked: scan.tracked,
            index: scan.index,
            default_modes: scan.default_modes,
            files: scan.file_count(),
            ..Facts::default()
        };
        self.table = Some(NewTable::new(&scan, &facts).to_bytes());
        read.sort();
        assert!(root.is_dir());
        read
    }

    /// Every file by path that is held and not ignored.
    fn held(&self) -> Vec<String> {
        self.files(|row| row.skipped.is_none() && !row.marks.ignored).into_keys().collect()
    }

    /// Every file by path that is held though it is ignored.
    fn ignored(&self) -> Vec<String> {
        self.files(|row| row.skipped.is_none() && row.marks.ignored).into_keys().collect()
    }

    /// Every name that is no held directory, and why it is left out.
    fn reasons(&self) -> BTreeMap<String, Option<SkipReason>> {
        self.files(|_| true)
    }

    fn files(
        &self,
        is_wanted: impl Fn(&TableRow<'_>) -> bool,
    ) -> BTreeMap<String, Option<SkipReason>> {
        let mut reasons = BTreeMap::new();
        self.scan().each(|dir, row| {
            let is_dir = row.kind() == Some(beforehand::model::Kind::Directory);
            if (!is_dir || row.skipped.is_some()) && is_wanted(&row) {
                reasons.insert(text(&DirPath(dir.to_vec()).join(row.name)), row.skipped);
            }
        });
        reasons
    }
}

fn text(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

#[test]
fn nothing_changed_reads_nothing() {
    let mut place = Place::git();
    place.write("a", "a");
    place.write("d/e/b", "b");
    assert_eq!(place.settle(), ["a", "d/e/b"]);
    assert!(place.scan().is_unchanged());
    assert_eq!(place.settle(), [""; 0]);
}

#[test]
fn a_change_that_keeps_size_and_mtime_is_seen() {
    let mut place = Place::plain();
    place.write("d/a", "one");
    place.write("d/b", "b");
    place.settle();
    let before = fs::metadata(place.at("d/a")).unwrap();
    place.write("d/a", "two");
    let time = Timespec { tv_sec: before.mtime(), tv_nsec: before.mtime_nsec() };
    let times = Timestamps { last_access: time, last_modification: time };
    utimensat(CWD, place.at("d/a"), &times, rustix::fs::AtFlags::empty()).unwrap();
    assert_eq!(place.settle(), ["d/a"]);
    assert!(place.scan().is_unchanged());
}

#[test]
fn a_stamp_taken_right_after_a_change_is_not_trusted() {
    let mut place = Place::plain();
    place.write("a", "one");
    place.later_ns = 0;
    assert_eq!(place.settle(), ["a"]);
    place.later_ns = LATER_NS;
    // Nothing changed, but a change in the same tick would look just so.
    assert_eq!(place.settle(), ["a"]);
    assert_eq!(place.settle(), [""; 0]);
}

#[test]
fn a_stamp_from_the_future_is_not_believed() {
    let mut place = Place::plain();
    place.write("a", "one");
    place.later_ns = -LATER_NS;
    place.settle();
    assert_eq!(place.settle(), ["a"]);
}

#[test]
fn new_gone_and_renamed_names_are_seen() {
    let mut place = Place::plain();
    for path in ["a", "d/b", "d/e/c", "f/g"] {
        place.write(path, path);
    }
    place.settle();
    fs::remove_file(place.at("a")).unwrap();
    fs::rename(place.at("d/e"), place.at("h")).unwrap();
    place.write("f/new", "new");
    assert_eq!(place.settle(), ["f/new", "h/c"]);
    assert_eq!(place.held(), ["d/b", "f/g", "f/new", "h/c"]);
    assert!(place.scan().is_unchanged());
}

#[test]
fn a_directory_that_becomes_a_link_or_a_file_is_not_entered() {
    let mut place = Place::plain();
    place.write("d/a", "a");
    place.write("e/a", "a");
    write(&place.dir.path().join("elsewhere/a"), "not ours");
    place.settle();
    for name in ["d", "e"] {
        fs::rename(place.at(name), place.dir.path().join(name)).unwrap();
    }
    link(&place.at("d"), "../elsewhere");
    place.write("e", "a file now");
    assert_eq!(place.settle(), ["d", "e"]);
    assert_eq!(place.held(), ["d", "e"]);
}

#[test]
fn permissions_alone_are_a_change() {
    let mut place = Place::plain();
    place.write("d/a", "a");
    place.settle();
    fs::set_permissions(place.at("d"), fs::Permissions::from_mode(0o700)).unwrap();
    let scan = place.scan();
    assert!(!scan.is_unchanged());
    let d = scan.find(&RelPath::from_bytes(b"d").unwrap()).unwrap();
    assert_eq!(d.stamp.permissions(), 0o700);
}

/// On a file system that takes other spellings, the name of a victim finds what the walk has by another one.
#[test]
fn what_has_another_spelling_is_called_as_the_walk_found_it() {
    let mut place = Place::plain();
    place.write("d/Read\u{e9}", "text");
    place.write("d/other", "other");
    for is_from_table in [false, true] {
        let scan = place.scan();
        assert_eq!(scan.fresh.is_empty(), is_from_table);
        let path = |name: &str| RelPath::from_bytes(name.as_bytes()).unwrap();
        let called = |name: &str, there: &str| {
            scan.other_name(&path(name), || stat_path(&place.at(there)).ok())
        };
        let found = path("d/Read\u{e9}");
        for name in ["d/READ\u{e9}", "d/Reade\u{301}"] {
            assert_eq!(called(name, "d/Read\u{e9}"), Some(found.clone()), "{name:?}");
        }
        assert_eq!(called("d/Read\u{e9}", "d/other"), None, "it is there by that name");
        assert_eq!(called("d/new", "gone"), None);
        assert_eq!(called("d/other/x", "d/other"), None, "it was not walked");
        place.settle();
    }
}

#[test]
fn an_ignore_file_that_comes_changes_or_goes_is_asked_again() {
    let mut place = Place::git();
    place.write("d/x.log", "log");
    place.write("d/y.tmp", "tmp");
    place.settle();
    assert_eq!(place.held(), ["d/x.log", "d/y.tmp"]);
    place.write(".gitignore", "*.log\n");
    assert_eq!(place.held(), [".gitignore", "d/y.tmp"]);
    place.settle();
    place.write(".gitignore", "*.tmp\n");
    assert_eq!(place.held(), [".gitignore", "d/x.log"]);
    place.settle();
    place.write("d/.gitignore", "!y.tmp\n");
    assert_eq!(place.held(), [".gitignore", "d/.gitignore", "d/x.log", "d/y.tmp"]);
    place.settle();
    fs::remove_file(place.at("d/.gitignore")).unwrap();
    fs::remove_file(place.at(".gitignore")).unwrap();
    assert_eq!(place.held(), ["d/x.log", "d/y.tmp"]);
}

#[test]
fn an_ignore_file_that_ignores_itself_is_watched_all_the_same() {
    let mut place = Place::git();
    place.write(".gitignore", ".gitignore\n*.log\n");
    place.write("a.log", "log");
    place.settle();
    assert_eq!(place.held(), [""; 0]);
    assert_eq!(place.ignored(), [".gitignore", "a.log"]);
    place.write(".gitignore", ".gitignore\n");
    assert_eq!(place.held(), ["a.log"]);
}

#[test]
fn excludes_outside_the_root_are_watched() {
    let mut place = Place::git();
    place.write("a.log", "log");
    place.write("b.tmp", "tmp");
    place.settle();
    place.write(".git/info/exclude", "*.log\n");
    assert_eq!(place.held(), ["b.tmp"]);
    place.settle();
    write(&place.dir.path().join(".config/git/ignore"), "*.tmp\n");
    assert_eq!(place.held(), [""; 0]);
    place.settle();
    write(&place.dir.path().join("mine"), "nothing\n");
    write(&place.dir.path().join(".gitconfig"), "[core]\n\texcludesFile = ~/mine\n");
    assert_eq!(place.held(), ["b.tmp"]);
    place.settle();
    write(&place.dir.path().join("mine"), "b.*\n");
    assert_eq!(place.held(), [""; 0]);
}

#[test]
fn settings_are_part_of_what_decides() {
    let mut place = Place::plain();
    place.write("a.iso", "iso");
    place.settle();
    place.settings.exclude = vec!["*.iso".to_owned()];
    assert_eq!(place.reasons()["a.iso"], Some(SkipReason::Excluded));
}

#[test]
fn what_can_be_made_again_is_left_out_by_its_mark() {
    let place = Place::plain();
    place.write("node_modules/m/i.js", "1");
    place.write("target/x", "x");
    place.write("src/a", "a");
    assert_eq!(place.held(), ["node_modules/m/i.js", "src/a", "target/x"]);
    place.write("package.json", "{}");
    assert_eq!(place.held(), ["package.json", "src/a", "target/x"]);
    assert_eq!(place.reasons()["node_modules"], Some(SkipReason::MadeAgain));
    // Where people say what to ignore, what they do not name is theirs.
    place.write(".gitignore", "target/\n");
    let held = [".gitignore", "node_modules/m/i.js", "package.json", "src/a"];
    assert_eq!(place.held(), held);
    assert_eq!(place.ignored(), ["target/x"]);
}

#[test]
fn limits_leave_out_visibly_and_look_again() {
    let mut place = Place::plain();
    place.write("big", vec![b'x'; 1001]);
    place.write("huge", vec![b'x'; 5001]);
    place.write("small", "x");
    place.settle();
    assert_eq!(place.held(), ["big", "small"]);
    assert_eq!(place.reasons()["huge"], Some(SkipReason::TooLarge));
    place.write("huge", "x");
    assert_eq!(place.settle(), ["huge"]);
    fs::remove_file(place.at("huge")).unwrap();
    place.write("big", "x");
    assert_eq!(place.settle(), ["big"]);
    place.settings.max_files = 1;
    assert_eq!(place.reasons()["small"], Some(SkipReason::TooMany));
    place.settle();
    place.settings.max_files = 2;
    assert_eq!(place.reasons()["small"], None);
}

/// What is in an ignored directory is in the table like everything else.
#[test]
fn an_ignored_directory_is_compared_and_not_listed_again() {
    let mut place = Place::git();
    place.write(".gitignore", "data/\n*.o\n");
    place.write("data/deep/a", "a");
    place.write("data/b", "b");
    place.write("x.o", "x");
    assert_eq!(place.settle(), [".gitignore", "data/b", "data/deep/a", "x.o"]);
    assert!(place.scan().is_unchanged());
    place.write("data/deep/new", "new");
    place.write("data/b", "changed");
    assert_eq!(place.settle(), ["data/b", "data/deep/new"]);
    place.write("data/more/c", "c");
    assert_eq!(place.settle(), ["data/more/c"]);
    fs::rename(place.at("data"), place.dir.path().join("away")).unwrap();
    assert_eq!(place.settle(), [""; 0]);
    assert_eq!(place.ignored(), ["x.o"]);
}

#[test]
fn a_directory_over_the_budget_is_left_out_whole_until_it_fits() {
    let mut place = Place::git();
    place.settings.max_files = 20_000;
    place.write(".gitignore", "data/\n");
    for number in 0..5_001 {
        place.write(&format!("data/{number}"), "x");
    }
    place.settle();
    assert_eq!(place.reasons()["data"], Some(SkipReason::Ignored));
    assert!(place.scan().is_unchanged(), "nothing is looked at again before it moves");
    fs::remove_file(place.at("data/7")).unwrap();
    assert_eq!(place.settle().len(), 5_000);
    place.write("data/7", "x");
    assert_eq!(place.settle(), ["data/7"], "what is held stays held");
}

/// Where [`wide`] puts a file, and whether a rule there leaves it out.
fn wide_file(number: usize) -> (String, bool) {
    let (d, e, f) = (number % 5, number % 7, number % 3);
    let is_log = number % 10 == 1;
    let is_ruled = d == 0 || (d, e) == (1, 2) || (d, e, f) == (3, 4, 2);
    let name = if is_log { format!("{number}.log") } else { number.to_string() };
    (format!("d{d}/e{e}/f{f}/{name}"), is_log && is_ruled)
}

/// A tree that two threads share: directories in directories, with rules of their own.
fn wide(place: &Place) {
    for number in 0..1200 {
        place.write(&wide_file(number).0, "x");
    }
    for dir in ["d0", "d1/e2", "d3/e4/f2"] {
        place.write(&format!("{dir}/.gitignore"), "*.log\n");
    }
}

#[test]
fn two_threads_see_what_one_would() {
    let mut place = Place::git();
    place.settings.max_files = 5000;
    wide(&place);
    let (ignored, free): (Vec<_>, Vec<_>) = (0..1200).map(wide_file).partition(|(_, is)| *is);
    let names = |files: Vec<(String, bool)>| files.into_iter().map(|(path, _)| path);
    let rules = ["d0", "d1/e2", "d3/e4/f2"].map(|dir| format!("{dir}/.gitignore"));
    let free: BTreeSet<String> = names(free).chain(rules).collect();
    let ignored: BTreeSet<String> = names(ignored).collect();
    assert_eq!(place.held().into_iter().collect::<BTreeSet<_>>(), free);
    assert_eq!(place.ignored().into_iter().collect::<BTreeSet<_>>(), ignored);
}

#[test]
fn which_files_are_too_many_is_always_the_same() {
    let mut place = Place::plain();
    wide(&place);
    place.settings.max_files = 700;
    let first = place.reasons();
    let is_too_many = |why: &Option<SkipReason>| *why == Some(SkipReason::TooMany);
    assert!(first.values().any(is_too_many));
    assert_eq!(first.values().filter(|why| why.is_none()).count(), 700);
    for _ in 0..10 {
        assert_eq!(place.reasons(), first);
    }
}

#[test]
fn at_the_deadline_the_walk_ends_and_the_next_one_goes_on() {
    let mut place = Place::plain();
    for number in 0..600 {
        place.write(&format!("d{}/f{number}", number % 7), "x");
    }
    place.deadline = Some(Instant::now());
    let scan = place.scan();
    assert!(scan.partial && scan.file_count() < 600);
    place.settle();
    place.deadline = None;
    assert_eq!(place.held().len(), 600);
}

#[test]
fn what_is_known_stays_held_at_the_deadline() {
    let mut place = Place::plain();
    for number in 0..600 {
        place.write(&format!("d{}/f{number:03}", number % 7), "x");
    }
    place.settle();
    for dir in 0..7 {
        place.write(&format!("d{dir}/z"), "new");
    }
    place.deadline = Some(Instant::now());
    let scan = place.scan();
    assert!(scan.partial);
    let held = |path: &str| scan.stamp(&RelPath::parse(path.as_ref()).unwrap()).is_some();
    assert!((0..600).all(|number| held(&format!("d{}/f{number:03}", number % 7))));
    assert!((0..7).all(|dir| !held(&format!("d{dir}/z"))));
}

#[test]
fn what_was_not_read_in_time_is_read_by_the_next_scan() {
    let mut place = Place::plain();
    for number in 0..40 {
        place.write(&format!("d{}/f{number:02}", number % 4), "x");
    }
    place.settle();
    let late = |table: Vec<u8>| {
        let table = ScanTable::parse(table).unwrap();
        let mut dirs = BTreeMap::new();
        for dir in table.dirs() {
            let mut found: Vec<_> = dir.rows().map(|row| row.to_found()).collect();
            for late in found.iter_mut().filter(|found| found.name.ends_with(b"3")) {
                (late.skipped, late.content) = (Some(SkipReason::OutOfTime), None);
            }
            let fresh = Fresh { stamp: dir.stamp, racy: dir.racy, id: None, found };
            dirs.insert(DirPath(dir.path.to_vec()), fresh);
        }
        NewTable::new(&dirs, &Facts { partial: true, ..*table.facts() }).to_bytes()
    };
    place.table = place.table.take().map(late);
    let scan = place.scan();
    assert!(!scan.partial);
    let found = scan.fresh.values().flat_map(|fresh| &fresh.found);
    assert_eq!(found.filter(|found| found.is_unread()).count(), 4);
    assert_eq!(place.settle(), ["d1/f13", "d1/f33", "d3/f03", "d3/f23"]);
    assert_eq!(place.held().len(), 40);
    assert!(place.settle().is_empty());
}

#[test]
fn a_pipe_for_an_ignore_file_is_neither_opened_nor_waited_for() {
    let place = Place::git();
    place.write("a", "a");
    special(&place.at(".gitignore"), FileType::Fifo, 0o600);
    assert_eq!(place.held(), [".gitignore", "a"]);
}

#[test]
fn gits_own_place_is_never_captured_and_its_namesakes_are() {
    let place = Place::git();
    place.write(".git/config", "[core]\n");
    place.write(".GIT/config", "only a name\n");
    place.write("sub/.git/HEAD", "ref: refs/heads/main\n");
    place.write("sub/a", "a");
    assert_eq!(place.held(), [".GIT/config", "sub/a"]);
}

#[test]
fn a_nested_repository_has_its_own_rules() {
    let mut place = Place::git();
    place.write(".gitignore", "*.log\n");
    place.write("sub/.git/HEAD", "ref: refs/heads/main\n");
    place.write("sub/.git/info/exclude", "*.tmp\n");
    place.write("sub/a.log", "kept: the outer rules end here");
    place.write("sub/b.tmp", "tmp");
    assert_eq!(place.held(), [".gitignore", "sub/a.log"]);
    assert_eq!(place.ignored(), ["sub/b.tmp"]);
    place.settle();
    place.write("sub/new.log", "new");
    assert_eq!(place.held(), [".gitignore", "sub/a.log", "sub/new.log"]);
}

#[test]
fn untracked_secrets_are_marked_private() {
    let mut place = Place::git();
    place.settings.private = vec![".env*".to_owned()];
    place.write(".env", "SECRET");
    place.write("open", "open");
    place.write("closed", "closed");
    fs::set_permissions(place.at("closed"), fs::Permissions::from_mode(0o600)).unwrap();
    let mut private = Vec::new();
    place.scan().each(|_, row| {
        if row.marks.private {
            private.push(text(row.name));
        }
    });
    assert_eq!(private, [".env", "closed"]);
}

#[test]
fn victims_are_held_though_left_out_or_outside() {
    let mut place = Place::git();
    place.settings.exclude = vec!["build/".to_owned(), ".env".to_owned(), "big".to_owned()];
    place.write(".gitignore", "huge\n");
    place.write(".env", "SECRET");
    place.write("build/out", "out");
    place.write("build/node_modules/m", "m");
    place.write("build/package.json", "{}");
    place.write("big", vec![b'x'; 3000]);
    place.write("huge", vec![b'x'; 6000]);
    write(&place.dir.path().join("outside/f"), "f");
    let victims = [".env", "build", "big", "huge", "../outside", "absent"];
    let victims = victims.map(|path| place.dir.path().join("root").join(path));
    let victims = victims.map(|path| fs::canonicalize(&path).unwrap_or(path));
    let scan = place.scan_for(&victims);
    let root = place.dir.path().join("root");
    let held: Vec<String> = scan
        .victims
        .iter()
        .map(|victim| match &victim.path {
            VictimPath::Below(path) => path.to_string(),
            VictimPath::Outside(path) => {
                let up = path.strip_prefix(root.parent().unwrap()).unwrap();
                format!("../{}", up.display())
            }
        })
        .collect();
    let below = [".env", "big", "build", "build/out", "build/package.json"];
    assert_eq!(held, [&below[..], &["../outside", "../outside/f"]].concat());
    let unheld: Vec<_> = scan.unheld.iter().map(|skip| (text(&skip.path), skip.reason)).collect();
    let expected = [
        ("build/node_modules".to_owned(), SkipReason::MadeAgain),
        ("huge".to_owned(), SkipReason::TooLarge),
    ];
    assert_eq!(unheld, expected);
}

#[test]
fn a_path_longer_than_the_system_takes_at_once_is_walked_and_verified() {
    let mut place = Place::plain();
    let mut dir = beforehand::fs::Dir::open(&place.at("")).unwrap();
    let name = std::ffi::CString::new("n".repeat(250)).unwrap();
    for _ in 0..20 {
        dir.create_dir(&name, 0o755).unwrap();
        dir = dir.open_child(&name).unwrap();
    }
    drop(dir.create_file(c"bottom").unwrap());
    assert_eq!(place.settle().len(), 1);
    assert!(place.scan().is_unchanged());
    // A path so long cannot be removed by one either.
    let top = beforehand::fs::Dir::open(&place.at("")).unwrap();
    remove_below(&top, &name);
}

fn remove_below(dir: &beforehand::fs::Dir, name: &std::ffi::CStr) {
    let below = dir.open_child(name).unwrap();
    let _not_here = below.remove_file(c"bottom");
    if below.stat_child(name).is_ok() {
        remove_below(&below, name);
    }
    dir.remove_dir(name).unwrap();
}
