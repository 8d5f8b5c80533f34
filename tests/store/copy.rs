//! Tests for the file store only: its format, its cache, its anchor.

use std::{
    ffi::OsStr,
    fs,
    io::Read as _,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt},
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use beforehand::{
    cache::ScanTable,
    error::Error,
    fs::Lock,
    model::{CheckpointId, Content, ContentId, Kind, Root, Storage},
    scan::Scan,
    state::{RootState, StateDir},
    store::{Draft, Store, copy::CopyStore, objects::Objects, record},
};
use rustix::fs::FileType;

use super::{Fixture, OnDisk, draft, held, plain_root, save, save_new};
use crate::support::{
    packs,
    temp::{TempDir, chmod, count, link, noise, on_disk, special, write},
    walk::{walk, walk_but},
};

pub(crate) struct CopyFixture {
    dir: TempDir,
    root: Root,
}

impl CopyFixture {
    fn state(&self) -> StateDir {
        StateDir::new(self.dir.path().join("state"))
    }

    fn root_state(&self) -> RootState {
        self.state().root(&self.root)
    }

    fn objects(&self) -> Objects {
        Objects::new(self.state().objects())
    }

    /// What the next scan would be if nothing had changed.
    fn unchanged(&self) -> Scan {
        let base = ScanTable::load(&self.root_state().cache()).unwrap();
        Scan { anchor: base.facts().anchor, base: Some(base), ..Scan::default() }
    }
}

impl Fixture for CopyFixture {
    fn new() -> Self {
        let dir = TempDir::new();
        let root = plain_root(dir.path());
        Self { dir, root }
    }

    fn root(&self) -> &Root {
        &self.root
    }

    fn outside(&self) -> &Path {
        self.dir.path()
    }

    fn open(&self) -> Box<dyn Store> {
        Box::new(CopyStore::of(&self.root, &self.state()))
    }

    fn content_count(&self) -> usize {
        self.objects().ids().unwrap().len()
    }
}

impl OnDisk for CopyFixture {
    fn break_writing(&self) {
        // Permissions would not stop root.
        write(&self.state().objects(), "a file where a directory belongs");
    }

    fn make_newer(&self, id: CheckpointId) {
        let path = record::path_of(&self.root_state(), id);
        let text = fs::read_to_string(&path).unwrap();
        write(&path, text.replace("\"version\": 2", "\"version\": 3"));
    }
}

#[test]
fn everything_of_ours_is_private() {
    let fixture = CopyFixture::new();
    write(&fixture.root.path().join("a"), "a");
    save_new(&fixture);
    for (path, seen) in on_disk(fixture.state().dir()) {
        let open_to_others = seen.permissions & 0o077;
        assert_eq!(open_to_others, 0, "{}", String::from_utf8_lossy(&path));
    }
    assert_eq!(fs::metadata(fixture.state().dir()).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn an_unchanged_scan_is_believed_while_its_anchor_stands() {
    let fixture = CopyFixture::new();
    let path = fixture.root.path().join("dir/a");
    write(&path, "a");
    let first = save_new(&fixture);
    // Nothing is read: the scan says that nothing changed, and the scan is believed.
    write(&path, "b");
    let again = fixture.open().save(draft(fixture.unchanged())).unwrap();
    assert!(!again.is_new && again.checkpoint == first);
    assert_eq!(fixture.open().identify(&mut fixture.unchanged()).unwrap().top, first.top);
}

#[test]
fn without_its_anchor_every_object_is_looked_for_and_missing_ones_are_made() {
    let fixture = CopyFixture::new();
    write(&fixture.root.path().join("dir/a"), "a");
    write(&fixture.root.path().join("b"), "b");
    let first = save_new(&fixture);
    let scan = fixture.unchanged();
    let elsewhere = fixture.dir.path().join("objects-taken-away");
    fs::rename(fixture.state().objects(), elsewhere).unwrap();
    fs::remove_file(fixture.root_state().anchor()).unwrap();
    assert_eq!(fixture.open().identify(&mut fixture.unchanged()).unwrap().top, first.top);
    let again = fixture.open().save(draft(scan)).unwrap();
    assert_eq!(again.checkpoint.top, first.top);
    assert_eq!(held(&*fixture.open(), first.id), on_disk(fixture.root.path()));
    assert_eq!(fixture.open().check(true).unwrap(), []);
}

#[test]
fn removing_the_anchored_checkpoint_takes_the_anchor_first() {
    let fixture = CopyFixture::new();
    write(&fixture.root.path().join("a"), "a");
    let first = save_new(&fixture);
    assert_eq!(fixture.open().anchor(), first.top);
    let scan = fixture.unchanged();
    assert!(fixture.open().remove(&[first.id]).unwrap() > 0);
    assert_eq!((fixture.open().anchor(), fixture.content_count()), (None, 0));
    let second = fixture.open().save(draft(scan)).unwrap();
    assert!(second.is_new);
    assert_eq!(held(&*fixture.open(), second.checkpoint.id), on_disk(fixture.root.path()));
}

#[test]
fn files_read_by_two_threads_are_all_held_and_equal_bytes_once() {
    let fixture = CopyFixture::new();
    // Enough for a second thread, in parts that go to either; each text is in both halves.
    for number in 0..800 {
        let text = format!("{}\n", number % 400).repeat(50);
        write(&fixture.root.path().join(format!("{}/{number}", number / 100)), text);
    }
    let checkpoint = save_new(&fixture);
    assert_eq!(held(&*fixture.open(), checkpoint.id), on_disk(fixture.root.path()));
    // Four hundred texts, eight directories, the one they are in; and nothing unfinished.
    assert_eq!(fixture.content_count(), 400 + 8 + 1);
    assert_eq!(count(&fixture.state().objects()), 1);
}

#[test]
fn ten_changes_write_ten_objects_and_their_directories() {
    let fixture = CopyFixture::new();
    for number in 0..100 {
        write(&fixture.root.path().join(format!("{}/{number}", number % 10)), format!("{number}"));
    }
    save_new(&fixture);
    let before = fixture.content_count();
    for number in 0..10 {
        write(&fixture.root.path().join(format!("3/{number}3")), format!("changed {number}"));
    }
    save_new(&fixture);
    assert_eq!(fixture.content_count() - before, 10 + 1 + 1);
}

#[test]
fn another_root_keeps_what_it_shares() {
    let fixture = CopyFixture::new();
    write(&fixture.root.path().join("a"), "shared");
    let first = save_new(&fixture);
    fs::create_dir(fixture.dir.path().join("other")).unwrap();
    let other = Root::new(fixture.dir.path().join("other"), fixture.root.kind().clone());
    write(&other.path().join("b"), "shared");
    let store = CopyStore::of(&other, &fixture.state());
    let second = store.save(draft(walk(&other))).unwrap().checkpoint;
    fixture.open().remove(&[first.id]).unwrap();
    assert_eq!(held(&store, second.id), on_disk(other.path()));
    assert_eq!(fixture.content_count(), 2);
}

#[test]
fn a_save_without_the_lock_leaves_anchor_and_cache_alone() {
    let fixture = CopyFixture::new();
    write(&fixture.root.path().join("a"), "a");
    let first = save_new(&fixture);
    let lock = Lock::acquire(&fixture.root_state().lock(), Instant::now()).unwrap();
    write(&fixture.root.path().join("a"), "b");
    let deadline = Some(Instant::now() + Duration::from_millis(20));
    let scan = walk(&fixture.root);
    // The files are read after the wait, so all that is left is what was known.
    let second = fixture.open().save(Draft { deadline, ..draft(scan) }).unwrap();
    assert!(second.is_new);
    assert_eq!(fixture.open().anchor(), first.top);
    assert_eq!(fixture.unchanged().top(), first.top);
    drop(lock);
}

#[test]
fn savers_and_removers_at_once_lose_nothing() {
    let fixture = CopyFixture::new();
    thread::scope(|scope| {
        for saver in 0..2 {
            let fixture = &fixture;
            scope.spawn(move || {
                for round in 0..15 {
                    write(&fixture.root.path().join(format!("{saver}")), format!("{}", round % 3));
                    let always = Draft { always: true, ..draft(walk(&fixture.root)) };
                    let saved = fixture.open().save(always).unwrap().checkpoint;
                    let whole = held(&*fixture.open(), saved.id);
                    assert!(whole.contains_key(saver.to_string().as_bytes()));
                    if round % 2 == 0 {
                        fixture.open().remove(&[saved.id]).unwrap();
                    }
                }
            });
        }
    });
    assert_eq!(fixture.open().check(true).unwrap(), []);
    assert_eq!(fixture.open().list().unwrap().len(), 14);
}

#[test]
fn damage_is_found_and_named() {
    let fixture = CopyFixture::new();
    write(&fixture.root.path().join("dir/a"), "aaaa");
    write(&fixture.root.path().join("b"), "bbbb");
    let saved = save_new(&fixture);
    let b = beforehand::store::objects::id_of(b"bbbb");
    packs::unpack(fixture.state().dir());
    let path = fixture.objects().path(&b);
    chmod(&path, 0o600);
    write(&path, "evil");
    assert_eq!(fixture.open().check(false).unwrap(), [], "only its bytes are wrong");
    let damage = fixture.open().check(true).unwrap();
    assert_eq!(damage.len(), 1);
    assert_eq!(damage[0].checkpoint, Some(saved.id));
    assert!(damage[0].what.starts_with("objects/"), "{damage:?}");
    let content = Content { id: b, place: Storage::Git };
    let mut copy = Vec::new();
    assert!(fixture.open().open(&content).unwrap().read_to_end(&mut copy).is_err());
    fs::remove_file(fixture.objects().path(&saved.top.unwrap())).unwrap();
    assert_eq!(fixture.open().check(false).unwrap().len(), 1);
    assert!(matches!(fixture.open().directory(&saved.top.unwrap()), Err(Error::Damaged { .. })));
}

#[test]
fn a_tampered_record_is_listed_as_such_and_leads_nowhere() {
    let fixture = CopyFixture::new();
    write(&fixture.root.path().join("a"), "a");
    let saved = save_new(&fixture);
    let path = record::path_of(&fixture.root_state(), saved.id);
    let good = fs::read_to_string(&path).unwrap();
    let elsewhere = "cd".repeat(32);
    for bad in [
        "",
        "{}",
        "[]",
        "{\"version\": -1}",
        &good.replace(&saved.id.to_string(), "a000000000000001"),
        &good.replace("\"files\"", "\"fils\""),
        &good.replace(&saved.top.unwrap().to_string(), "../../../etc/passwd"),
    ] {
        write(&path, bad);
        let listed = fixture.open().list().unwrap();
        assert_eq!((listed.len(), listed[0].id), (1, saved.id));
        assert!(matches!(fixture.open().tree(saved.id), Err(Error::Damaged { .. })), "{bad}");
        assert_eq!(fixture.open().check(false).unwrap().len(), 1, "{bad}");
    }
    write(&path, good.replace(&saved.top.unwrap().to_string(), &elsewhere));
    assert_eq!(fixture.open().check(false).unwrap().len(), 1);
    assert!(ContentId::parse(&elsewhere).is_some_and(|id| fixture.open().directory(&id).is_err()));
}

#[test]
fn where_a_root_was_is_written_down() {
    let fixture = CopyFixture::new();
    save_new(&fixture);
    let place = record::read_location(&fixture.root_state()).unwrap().unwrap();
    assert_eq!((&place.path, &place.git_dir), (&fixture.root.path().to_owned(), &None));
    let roots = record::all_roots(&fixture.state()).unwrap();
    assert_eq!(roots, [fixture.root_state()]);
    let path = fixture.root_state().location();
    let newer = fs::read_to_string(&path).unwrap().replace("\"version\": 2", "\"version\": 9");
    write(&path, &newer);
    write(&fixture.root.path().join("a"), "a");
    save_new(&fixture);
    assert_eq!(fs::read_to_string(&path).unwrap(), newer);
}

/// The recipe as a reader of the document would cut it out.
fn recipe() -> String {
    let document = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/FORMAT.md"));
    let document = document.unwrap();
    let (_, behind) = document.split_once("<!-- recipe: copies -->\n```sh\n").unwrap();
    behind.split_once("```\n").unwrap().0.to_owned()
}

#[test]
fn the_recipe_in_the_document_puts_a_checkpoint_back() {
    let fixture = CopyFixture::new();
    let root = fixture.root.path();
    for name in ["plain", "a b", "-rf", "it's \"$x\"", "new\nline", "\n", "back\\0101", "dir/*/x"] {
        write(&root.join(name), format!("{name}\r\nno end"));
    }
    write(&root.join("empty"), "");
    // A file of its own, and in two packs: what comes first, and what is added by another save.
    write(&root.join("large"), noise(3, 1_500_000));
    save_new(&fixture);
    write(&root.join("later"), "of another pack\n");
    let odd = root.join(OsStr::from_bytes(b"\xff"));
    write(&odd, [0, 255, 10, 13]);
    chmod(&odd, 0o4751);
    fs::create_dir(root.join("locked")).unwrap();
    write(&root.join("locked/in"), "x");
    chmod(&root.join("locked"), 0o500);
    fs::create_dir(root.join("void")).unwrap();
    link(&root.join("to"), "nowhere\n at all\n");
    link(&root.join("-n"), "-s");
    special(&root.join("pipe"), FileType::Fifo, 0o640);
    let saved = save_new(&fixture);

    let back = fixture.dir.path().join("back");
    assert_eq!(packs::packs(fixture.state().dir()).len(), 2);
    let status = Command::new("sh")
        .args(["-euc", &recipe(), "recipe"])
        .arg(fixture.state().objects())
        .arg(saved.top.unwrap().to_string())
        .arg(&back)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .status();
    assert!(status.unwrap().success());
    assert_eq!(on_disk(&back), on_disk(root));
    assert_eq!(held(&*fixture.open(), saved.id), on_disk(root));
    let kinds = on_disk(&back);
    assert_eq!(kinds[&b"pipe"[..]].kind, Kind::Fifo);
    chmod(&root.join("locked"), 0o700);
    chmod(&back.join("locked"), 0o700);
}

#[test]
fn the_newest_is_found_by_its_name() {
    let fixture = CopyFixture::new();
    let path = fixture.root.path().join("a");
    write(&path, "one");
    save_new(&fixture);
    write(&path, "two");
    let second = save_new(&fixture);
    let then = fixture.unchanged();
    let anchor = fs::read_to_string(fixture.root_state().anchor()).unwrap();
    assert_eq!(anchor, format!("{}\n", second.top.unwrap()));
    // A save without the lock adds one.
    let lock = Lock::acquire(&fixture.root_state().lock(), Instant::now()).unwrap();
    write(&path, "three");
    let deadline = Some(Instant::now() + Duration::from_millis(20));
    let third = fixture.open().save(Draft { deadline, ..draft(walk(&fixture.root)) }).unwrap();
    drop(lock);
    assert_eq!(third.checkpoint.sequence, 3);
    let fourth = fixture.open().save(draft(then)).unwrap();
    assert!(fourth.is_new, "the third is not what the scan saw");
    assert_eq!(fourth.checkpoint.sequence, 4);
    fixture.open().remove(&[second.id]).unwrap();
    assert_eq!(fixture.open().anchor(), fourth.checkpoint.top);
    for noise in ["", "x y z", "\n"] {
        write(&fixture.root_state().anchor(), format!("{}\n{noise}\n", second.top.unwrap()));
        let again = fixture.open().save(draft(walk(&fixture.root))).unwrap();
        assert!(again.checkpoint.sequence >= 4, "{noise}");
    }
}

#[test]
fn listings_say_what_is_private() {
    let fixture = CopyFixture::new();
    let path = fixture.root.path().join(".env");
    write(&path, "TOKEN");
    let scan = walk_but(&fixture.root, &[".env"], std::slice::from_ref(&path));
    let saved = fixture.open().save(draft(scan)).unwrap().checkpoint;
    let tree = fixture.open().tree(saved.id).unwrap();
    assert!(tree.overlay.values().all(|entry| entry.content.unwrap().place == Storage::Files));
    let text = record::read(&fixture.root_state(), saved.id).unwrap().overlay.unwrap();
    let text = String::from_utf8(fixture.objects().read(&text).unwrap()).unwrap();
    assert!(text.starts_with("100644 5 0 ") && text.ends_with(" .env\n"), "{text}");
    assert!(save(&fixture).is_new, "without the victim it is another checkpoint");
}
