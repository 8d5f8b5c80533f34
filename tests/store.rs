//! The contract of the stores, tested once for each of them.
//!
//! A store joins with one line, `contract!(name, ItsFixture)`, and a [`Fixture`].

mod borrow;
mod copy;
mod git;
mod index;
mod locked;
mod packs;
mod private;
mod reading;

use std::{
    ffi::OsStr,
    fs,
    io::Read as _,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    thread,
    time::Instant,
};

use beforehand::{
    error::{Error, Result},
    model::{Cause, Checkpoint, CheckpointId, Content, Entry, Kind, Root, RootKind, SkipReason},
    scan::Scan,
    store::{Draft, Saved, Store, manifest},
};
use chrono::DateTime;
use rustix::fs::FileType;

use crate::support::{
    memory::{Memory, MemoryStore},
    temp::{Files, Seen, TempDir, chmod, link, on_disk, special, write},
    walk::{walk, walk_but},
};

/// A root with a store of one kind, in a place of its own.
pub(crate) trait Fixture: Sync {
    /// Makes an empty root, and nothing in the store.
    fn new() -> Self;

    /// The root.
    fn root(&self) -> &Root;

    /// A directory beside the root, for what is outside.
    fn outside(&self) -> &Path;

    /// Opens the store, as another process would.
    fn open(&self) -> Box<dyn Store>;

    /// How many pieces of content the store has.
    fn content_count(&self) -> usize;
}

/// A fixture of a store on the disk.
pub(crate) trait OnDisk: Fixture {
    /// Makes writing fail, for root as well.
    fn break_writing(&self);

    /// Makes a checkpoint one of a newer format.
    fn make_newer(&self, id: CheckpointId);
}

pub(crate) struct MemoryFixture {
    dir: TempDir,
    root: Root,
    memory: Arc<Mutex<Memory>>,
}

impl Fixture for MemoryFixture {
    fn new() -> Self {
        let dir = TempDir::new();
        let root = plain_root(dir.path());
        Self { dir, root, memory: Arc::default() }
    }

    fn root(&self) -> &Root {
        &self.root
    }

    fn outside(&self) -> &Path {
        self.dir.path()
    }

    fn open(&self) -> Box<dyn Store> {
        Box::new(MemoryStore { root: self.root.clone(), memory: Arc::clone(&self.memory) })
    }

    fn content_count(&self) -> usize {
        self.memory.lock().unwrap().object_count()
    }
}

/// Makes a root called `root` in `dir`.
pub(crate) fn plain_root(dir: &Path) -> Root {
    let path = dir.join("root");
    fs::create_dir(&path).unwrap();
    Root::new(path, RootKind::Plain { why: None })
}

pub(crate) fn draft(scan: Scan) -> Draft {
    Draft {
        cause: Cause::asked(Some("a test".to_owned())),
        taken_at: DateTime::from_timestamp_nanos(1_700_000_000_000_000_001),
        scan,
        always: false,
        deadline: None,
        after: None,
    }
}

/// Saves all of the root.
pub(crate) fn save(fixture: &impl Fixture) -> Saved {
    fixture.open().save(draft(walk(fixture.root()))).unwrap()
}

fn save_new(fixture: &impl Fixture) -> Checkpoint {
    let saved = save(fixture);
    assert!(saved.is_new);
    saved.checkpoint
}

/// What a checkpoint holds below its root.
pub(crate) fn held(store: &dyn Store, id: CheckpointId) -> Files {
    let files = manifest(store, &store.tree(id).unwrap()).unwrap();
    let seen = |entry: &Entry| seen(store, entry);
    files.iter().map(|(path, entry)| (path.as_bytes().to_vec(), seen(entry))).collect()
}

fn seen(store: &dyn Store, entry: &Entry) -> Seen {
    let content = entry.content.filter(|_| entry.kind.has_content());
    let bytes = content.map_or_else(Vec::new, |content| bytes_of(store, &content).unwrap());
    Seen { kind: entry.kind, permissions: entry.permissions, bytes }
}

fn bytes_of(store: &dyn Store, content: &Content) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    store.open(content)?.read_to_end(&mut bytes).map_err(Error::io("read", Path::new("it")))?;
    Ok(bytes)
}

fn reason_of(checkpoint: &Checkpoint, path: &str) -> Option<SkipReason> {
    let skipped = checkpoint.skipped.iter().find(|skipped| skipped.path == path.as_bytes());
    skipped.map(|skipped| skipped.reason)
}

macro_rules! contract {
    ($name:ident, $fixture:ty $(, $more:ident)*) => {
        contract!($name, $fixture:
            a_saved_checkpoint_is_listed_newest_first,
            bytes_come_back_exactly,
            modes_and_links_come_back,
            special_files_and_empty_directories_come_back,
            odd_names_come_back,
            an_empty_root_is_a_checkpoint,
            a_symlink_is_never_followed,
            a_parent_swapped_for_a_symlink_is_not_followed,
            ignored_is_absent_and_victims_are_held_though_ignored,
            what_is_outside_is_held_by_its_absolute_path,
            what_is_left_out_is_told_with_its_reason,
            what_cannot_be_read_is_skipped_and_the_rest_is_saved,
            a_file_that_grew_since_the_walk_is_held_as_it_is,
            at_the_deadline_what_there_is_is_kept,
            saving_twice_without_a_change_adds_nothing,
            a_checkpoint_that_was_asked_for_is_always_new,
            a_save_that_gives_way_saves_nothing_after_another,
            a_saved_checkpoint_never_changes,
            identify_after_save_equals_the_manifest,
            identify_saves_nothing,
            removing_frees_what_nothing_else_needs_and_nothing_else,
            removing_what_is_gone_is_no_error,
            two_savers_at_once_both_succeed,
            the_users_files_are_as_they_were,
            a_whole_store_has_no_damage,
            $($more,)*
        );
    };
    ($name:ident, $fixture:ty: $($promise:ident),+ $(,)?) => {
        mod $name {
            $(#[test]
            fn $promise() {
                super::$promise::<$fixture>();
            })+
        }
    };
}

macro_rules! contract_on_disk {
    ($name:ident, $fixture:ty) => {
        contract!(
            $name,
            $fixture,
            a_store_that_cannot_be_written_saves_nothing,
            a_newer_format_is_listed_and_never_overwritten
        );
    };
}

contract!(in_memory, crate::store::MemoryFixture);
contract_on_disk!(in_copies, crate::store::copy::CopyFixture);
contract_on_disk!(in_git, crate::store::git::GitFixture);
contract_on_disk!(in_sha256_git, crate::store::git::Sha256Fixture);

fn a_saved_checkpoint_is_listed_newest_first<F: Fixture>() {
    let fixture = F::new();
    assert_eq!(fixture.open().list().unwrap(), []);
    let mut saved = Vec::new();
    for text in ["one", "two", "three"] {
        write(&fixture.root().path().join("a"), text);
        saved.insert(0, save_new(&fixture));
    }
    assert_eq!(fixture.open().list().unwrap(), saved);
    assert!(saved.windows(2).all(|pair| pair[0].sequence > pair[1].sequence));
    assert!(
        saved.iter().all(|checkpoint| checkpoint.files == 1 && checkpoint.completeness.is_whole())
    );
}

fn bytes_come_back_exactly<F: Fixture>() {
    let fixture = F::new();
    let large: Vec<u8> =
        (0u32..5 << 18).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    assert_eq!(large.len(), 5 << 20);
    let all: Vec<u8> = (0..=255).collect();
    for (name, bytes) in [
        ("empty", &b""[..]),
        ("binary", &all),
        ("crlf.txt", b"a\r\nb\r\n"),
        ("cut", b"no final newline"),
        ("deep/er/large", &large),
        ("zeros", &vec![0; 1 << 20]),
        (".gitattributes", b"* text=auto eol=crlf\n"),
    ] {
        write(&fixture.root().path().join(name), bytes);
    }
    let id = save_new(&fixture).id;
    assert!(held(&*fixture.open(), id) == on_disk(fixture.root().path()));
}

fn modes_and_links_come_back<F: Fixture>() {
    let fixture = F::new();
    let root = fixture.root().path();
    for mode in [0o644, 0o755, 0o600, 0o444, 0o4711, 0o640, 0o000] {
        let path = root.join(format!("{mode:o}"));
        write(&path, "x");
        chmod(&path, mode);
    }
    // Users other than root cannot read it; another test covers that.
    if fs::read(root.join("0")).is_err() {
        fs::remove_file(root.join("0")).unwrap();
    }
    fs::create_dir(root.join("private")).unwrap();
    write(&root.join("private/x"), "x");
    chmod(&root.join("private"), 0o700);
    link(&root.join("link"), "644");
    link(&root.join("dangling"), "/nowhere/at all\n");
    link(&root.join("up"), "../../..");
    let id = save_new(&fixture).id;
    assert_eq!(held(&*fixture.open(), id), on_disk(root));
}

fn special_files_and_empty_directories_come_back<F: Fixture>() {
    let fixture = F::new();
    let root = fixture.root().path();
    special(&root.join("pipe"), FileType::Fifo, 0o620);
    special(&root.join("socket"), FileType::Socket, 0o700);
    fs::create_dir_all(root.join("empty/er")).unwrap();
    let id = save_new(&fixture).id;
    assert_eq!(held(&*fixture.open(), id), on_disk(root));
}

fn odd_names_come_back<F: Fixture>() {
    let fixture = F::new();
    for name in [
        &b"a b"[..],
        b" ",
        b"a\nb",
        b"\n",
        b"it's",
        b"\"",
        b"-rf",
        b"--",
        b"\\",
        b"\\0101",
        b"$x",
        b"*",
        b"\xff\xfe",
        "\u{e9}\u{202e}".as_bytes(),
        b"\x1b[2J",
        b"~",
        b"#",
        b"git~1",
        b"a-b/c",
        b"a/c",
        b"a.b/c",
        b"CON",
        b".gitmodules",
        b"\t",
    ] {
        write(&fixture.root().path().join(OsStr::from_bytes(name)), name);
    }
    write(&fixture.root().path().join("n".repeat(255)), "long");
    let id = save_new(&fixture).id;
    assert_eq!(held(&*fixture.open(), id), on_disk(fixture.root().path()));
}

fn an_empty_root_is_a_checkpoint<F: Fixture>() {
    let fixture = F::new();
    let checkpoint = save_new(&fixture);
    assert!(held(&*fixture.open(), checkpoint.id).is_empty() && checkpoint.files == 0);
}

fn a_symlink_is_never_followed<F: Fixture>() {
    let fixture = F::new();
    let root = fixture.root().path();
    write(&fixture.outside().join("secret"), "secret");
    write(&root.join("a"), "plain");
    let scan = walk(fixture.root());
    fs::remove_file(root.join("a")).unwrap();
    link(&root.join("a"), "../secret");
    let saved = fixture.open().save(draft(scan)).unwrap().checkpoint;
    assert_eq!(reason_of(&saved, "a"), Some(SkipReason::Unreadable));
    assert!(held(&*fixture.open(), saved.id).is_empty());
}

fn a_parent_swapped_for_a_symlink_is_not_followed<F: Fixture>() {
    let fixture = F::new();
    let root = fixture.root().path();
    write(&fixture.outside().join("elsewhere/x"), "secret");
    write(&root.join("dir/x"), "plain");
    let scan = walk(fixture.root());
    fs::rename(root.join("dir"), fixture.outside().join("moved")).unwrap();
    link(&root.join("dir"), "../elsewhere");
    let saved = fixture.open().save(draft(scan)).unwrap().checkpoint;
    assert_eq!(reason_of(&saved, "dir/x"), Some(SkipReason::Unreadable));
}

fn ignored_is_absent_and_victims_are_held_though_ignored<F: Fixture>() {
    let fixture = F::new();
    let root = fixture.root().path();
    write(&root.join("kept"), "kept");
    write(&root.join("build/out"), "made");
    write(&root.join(".env"), "TOKEN=1");
    write(&root.join("data/deep/db"), "rows");
    chmod(&root.join(".env"), 0o600);
    let victims = [root.join(".env"), root.join("data")];
    let scan = walk_but(fixture.root(), &["build", ".env", "data"], &victims);
    let saved = fixture.open().save(draft(scan)).unwrap().checkpoint;
    let mut expected = on_disk(root);
    expected.retain(|path, _| !path.starts_with(b"build"));
    assert_eq!(held(&*fixture.open(), saved.id), expected);
    assert_eq!(saved.files, 3);
}

fn what_is_outside_is_held_by_its_absolute_path<F: Fixture>() {
    let fixture = F::new();
    let path = fixture.outside().join(OsStr::from_bytes(b"my \xff rc"));
    write(&path, "alias x=y");
    chmod(&path, 0o640);
    let scan = walk_but(fixture.root(), &[], std::slice::from_ref(&path));
    let saved = fixture.open().save(draft(scan)).unwrap().checkpoint;
    let store = fixture.open();
    let tree = store.tree(saved.id).unwrap();
    let entry = tree.outside[&path];
    let expected = Seen { kind: Kind::File, permissions: 0o640, bytes: b"alias x=y".to_vec() };
    assert_eq!(seen(&*store, &entry), expected);
    assert_eq!((saved.outside, tree.outside.len()), (vec![path], 1));
}

fn what_is_left_out_is_told_with_its_reason<F: Fixture>() {
    let fixture = F::new();
    let root = fixture.root().path();
    write(&root.join("big"), "xxxxx");
    write(&root.join("dir/node_modules/x"), "x");
    write(&root.join("noise"), "x");
    let mut scan = walk_but(fixture.root(), &["noise"], &[]);
    scan.fresh.retain(|path, _| !path.0.ends_with(b"node_modules"));
    for found in scan.fresh.values_mut().flat_map(|fresh| &mut fresh.found) {
        found.skipped = match &found.name[..] {
            b"big" => Some(SkipReason::TooLarge),
            b"node_modules" => Some(SkipReason::MadeAgain),
            _ => found.skipped,
        };
    }
    let saved = fixture.open().save(draft(scan)).unwrap().checkpoint;
    assert_eq!(reason_of(&saved, "big"), Some(SkipReason::TooLarge));
    assert_eq!(reason_of(&saved, "dir/node_modules"), Some(SkipReason::MadeAgain));
    assert_eq!(reason_of(&saved, "noise"), Some(SkipReason::Ignored));
    assert_eq!(saved.skipped.iter().map(|skipped| skipped.size).sum::<u64>(), 6);
    let names: Vec<_> = held(&*fixture.open(), saved.id).into_keys().collect();
    assert_eq!(names, [b"dir"]);
    assert_eq!(fixture.open().list().unwrap(), [saved]);
}

fn what_cannot_be_read_is_skipped_and_the_rest_is_saved<F: Fixture>() {
    let fixture = F::new();
    let root = fixture.root().path();
    for name in ["gone", "dir/below", "now-a-pipe", "stays"] {
        write(&root.join(name), name);
    }
    let scan = walk(fixture.root());
    fs::remove_file(root.join("gone")).unwrap();
    fs::remove_file(root.join("now-a-pipe")).unwrap();
    special(&root.join("now-a-pipe"), FileType::Fifo, 0o600);
    fs::rename(root.join("dir"), fixture.outside().join("dir")).unwrap();
    special(&root.join("dir"), FileType::Fifo, 0o600);
    let saved = fixture.open().save(draft(scan)).unwrap().checkpoint;
    for name in ["gone", "dir/below", "now-a-pipe"] {
        assert_eq!(reason_of(&saved, name), Some(SkipReason::Unreadable), "{name}");
    }
    assert_eq!(held(&*fixture.open(), saved.id)[&b"stays"[..]].bytes, b"stays");
}

fn a_file_that_grew_since_the_walk_is_held_as_it_is<F: Fixture>() {
    let fixture = F::new();
    let root = fixture.root().path();
    write(&root.join("small"), "1");
    write(&root.join("shrinks"), vec![1; 2 << 20]);
    let scan = walk(fixture.root());
    write(&root.join("small"), vec![2; 3 << 20]);
    chmod(&root.join("small"), 0o640);
    write(&root.join("shrinks"), "");
    let saved = fixture.open().save(draft(scan)).unwrap().checkpoint;
    assert!(held(&*fixture.open(), saved.id) == on_disk(root));
    assert_eq!(saved.skipped, []);
}

fn at_the_deadline_what_there_is_is_kept<F: Fixture>() {
    let fixture = F::new();
    write(&fixture.root().path().join("a"), "a");
    let late = Draft { deadline: Some(Instant::now()), ..draft(walk(fixture.root())) };
    let saved = fixture.open().save(late).unwrap().checkpoint;
    assert!(!saved.completeness.is_whole());
    assert_eq!(reason_of(&saved, "a"), Some(SkipReason::OutOfTime));
    let whole = save_new(&fixture);
    assert!(whole.completeness.is_whole() && held(&*fixture.open(), whole.id).len() == 1);
}

fn saving_twice_without_a_change_adds_nothing<F: Fixture>() {
    let fixture = F::new();
    let path = fixture.root().path().join("dir/a");
    write(&path, "a");
    write(&fixture.root().path().join("large"), vec![3; 2 << 20]);
    let first = save_new(&fixture);
    let count = fixture.content_count();
    // Touching is no change of content.
    write(&path, "a");
    let second = save(&fixture);
    assert!(!second.is_new && second.checkpoint == first);
    assert_eq!((fixture.content_count(), fixture.open().list().unwrap().len()), (count, 1));
    chmod(&path, 0o600);
    save_new(&fixture);
}

fn a_checkpoint_that_was_asked_for_is_always_new<F: Fixture>() {
    let fixture = F::new();
    write(&fixture.root().path().join("a"), "a");
    let first = save_new(&fixture);
    let asked = Draft { always: true, ..draft(walk(fixture.root())) };
    let second = fixture.open().save(asked).unwrap();
    assert!(second.is_new && second.checkpoint.id != first.id);
    assert_eq!(second.checkpoint.top, first.top);
}

fn a_save_that_gives_way_saves_nothing_after_another<F: Fixture>() {
    let fixture = F::new();
    let path = fixture.root().path().join("a");
    write(&path, "a");
    let first = save_new(&fixture);
    let late = |after| Draft { after: Some(after), ..draft(walk(fixture.root())) };
    write(&path, "b");
    let second = fixture.open().save(late(first.sequence)).unwrap();
    assert!(second.is_new, "no other save was first");
    write(&path, "c");
    let third = fixture.open().save(late(first.sequence)).unwrap();
    assert_eq!((third.is_new, third.checkpoint.id), (false, second.checkpoint.id));
    assert_eq!(fixture.open().list().unwrap().len(), 2);
}

fn a_saved_checkpoint_never_changes<F: Fixture>() {
    let fixture = F::new();
    let path = fixture.root().path().join("a");
    write(&path, "first");
    let first = save_new(&fixture);
    let before = held(&*fixture.open(), first.id);
    // In place, as an editor without care does it: a hard link would follow.
    write(&path, "second");
    save_new(&fixture);
    fs::remove_file(&path).unwrap();
    save_new(&fixture);
    assert_eq!(held(&*fixture.open(), first.id), before);
    assert_eq!(fixture.open().list().unwrap()[2], first);
}

fn identify_after_save_equals_the_manifest<F: Fixture>() {
    let fixture = F::new();
    let root = fixture.root().path();
    write(&root.join("dir/a"), "a");
    write(&root.join("private"), "p");
    write(&root.join(".env"), "e");
    chmod(&root.join("private"), 0o600);
    link(&root.join("l"), "dir/a");
    special(&root.join("pipe"), FileType::Fifo, 0o600);
    let scan = || walk_but(fixture.root(), &[".env"], &[root.join(".env")]);
    let store = fixture.open();
    let saved = store.save(draft(scan())).unwrap().checkpoint;
    let then = store.tree(saved.id).unwrap();
    let now = store.identify(&mut scan()).unwrap();
    assert_eq!(
        (then.top, &then.overlay, then.default_modes),
        (now.top, &now.overlay, now.default_modes)
    );
    assert_eq!(manifest(&*store, &then).unwrap(), manifest(&*store, &now).unwrap());
    write(&root.join("dir/a"), "b");
    let changed = store.identify(&mut scan()).unwrap();
    assert_ne!(manifest(&*store, &then).unwrap(), manifest(&*store, &changed).unwrap());
}

fn identify_saves_nothing<F: Fixture>() {
    let fixture = F::new();
    write(&fixture.root().path().join("a"), "a");
    save_new(&fixture);
    let count = fixture.content_count();
    write(&fixture.root().path().join("b/c"), "new");
    let tree = fixture.open().identify(&mut walk(fixture.root())).unwrap();
    assert_eq!(manifest(&*fixture.open(), &tree).unwrap().len(), 3);
    assert_eq!((fixture.content_count(), fixture.open().list().unwrap().len()), (count, 1));
}

fn removing_frees_what_nothing_else_needs_and_nothing_else<F: Fixture>() {
    let fixture = F::new();
    let root = fixture.root().path();
    write(&root.join("same/file"), "same");
    write(&root.join("changes"), "one");
    write(&root.join(".env"), "secret");
    let scan = walk_but(fixture.root(), &[".env"], &[root.join(".env")]);
    let first = fixture.open().save(draft(scan)).unwrap().checkpoint;
    write(&root.join("changes"), "two");
    let scan = walk_but(fixture.root(), &[".env"], &[]);
    let second = fixture.open().save(draft(scan)).unwrap().checkpoint;
    let expected = held(&*fixture.open(), second.id);
    let only_first = fixture.open().tree(first.id).unwrap().overlay;
    fixture.open().remove(&[first.id]).unwrap();
    assert_eq!(fixture.open().list().unwrap(), std::slice::from_ref(&second));
    assert!(matches!(fixture.open().tree(first.id), Err(Error::NoSuchCheckpoint { .. })));
    assert_eq!(held(&*fixture.open(), second.id), expected);
    for content in only_first.values().filter_map(|entry| entry.content) {
        assert!(bytes_of(&*fixture.open(), &content).is_err());
    }
    fixture.open().remove(&[second.id]).unwrap();
    assert_eq!(fixture.open().list().unwrap(), []);
    let again = save_new(&fixture);
    assert_eq!(held(&*fixture.open(), again.id), on_disk(root));
}

fn removing_what_is_gone_is_no_error<F: Fixture>() {
    let fixture = F::new();
    assert_eq!(fixture.open().remove(&[CheckpointId::from_bits(1)]).unwrap(), 0);
    let id = save_new(&fixture).id;
    fixture.open().remove(&[id, CheckpointId::from_bits(1)]).unwrap();
    assert_eq!(fixture.open().remove(&[id]).unwrap(), 0);
}

fn two_savers_at_once_both_succeed<F: Fixture>() {
    let fixture = F::new();
    let root = fixture.root().path();
    for number in 0..20 {
        write(&root.join(format!("{number}")), format!("{number}"));
    }
    let saved: Vec<_> = thread::scope(|scope| {
        let save = || {
            let draft = Draft { always: true, ..draft(walk(fixture.root())) };
            fixture.open().save(draft).unwrap().checkpoint
        };
        let savers: Vec<_> = (0..4).map(|_| scope.spawn(save)).collect();
        savers.into_iter().map(|saver| saver.join().unwrap()).collect()
    });
    let store = fixture.open();
    assert_eq!(store.list().unwrap().len(), 4);
    for checkpoint in saved {
        assert_eq!(held(&*store, checkpoint.id), on_disk(root));
    }
}

fn a_store_that_cannot_be_written_saves_nothing<F: OnDisk>() {
    let fixture = F::new();
    write(&fixture.root().path().join("a"), "a");
    fixture.break_writing();
    assert!(fixture.open().save(draft(walk(fixture.root()))).is_err());
    assert_eq!(fixture.open().list().unwrap(), []);
    assert_eq!(fixture.content_count(), 0);
}

fn the_users_files_are_as_they_were<F: Fixture>() {
    let fixture = F::new();
    let root = fixture.root().path();
    write(&root.join("dir/a"), "a");
    link(&root.join("l"), "dir");
    let look = || {
        let times = ["", "dir", "dir/a", "l"]
            .map(|name| fs::symlink_metadata(root.join(name)).unwrap().modified().unwrap());
        (on_disk(root), times)
    };
    let before = look();
    let id = save_new(&fixture).id;
    fixture.open().identify(&mut walk(fixture.root())).unwrap();
    fixture.open().remove(&[id]).unwrap();
    assert_eq!(look(), before);
}

fn a_newer_format_is_listed_and_never_overwritten<F: OnDisk>() {
    let fixture = F::new();
    write(&fixture.root().path().join("a"), "a");
    let newer = save_new(&fixture);
    fixture.make_newer(newer.id);
    let listed = fixture.open().list().unwrap();
    assert_eq!((listed[0].id, listed[0].sequence), (newer.id, newer.sequence));
    assert!(listed[0].cause.summary.as_deref().unwrap().contains("format 3"), "{listed:?}");
    assert!(matches!(fixture.open().tree(newer.id), Err(Error::FormatTooNew { .. })));
    let ours = save_new(&fixture);
    assert!(ours.sequence > newer.sequence);
    let count = fixture.content_count();
    fixture.open().remove(&[ours.id]).unwrap();
    assert_eq!(fixture.content_count(), count, "the needs of the newer one are unknown");
    assert!(matches!(fixture.open().tree(newer.id), Err(Error::FormatTooNew { .. })));
}

fn a_whole_store_has_no_damage<F: Fixture>() {
    let fixture = F::new();
    let path = fixture.root().path().join("dir/a");
    write(&path, "a");
    let victim: PathBuf = std::ffi::OsString::from_vec(b"v".to_vec()).into();
    write(&fixture.outside().join(&victim), "v");
    let scan = walk_but(fixture.root(), &[], &[fixture.outside().join(victim)]);
    let id = fixture.open().save(draft(scan)).unwrap().checkpoint.id;
    for read_data in [false, true] {
        assert_eq!(fixture.open().check(read_data).unwrap(), []);
    }
    assert!(!fixture.open().by_hand(id).is_empty());
}
