//! Tests for the git store only: what git sees of it, and that git does not harm it.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use beforehand::{
    cache::ScanTable,
    error::Error,
    model::{CheckpointId, ContentId, Kind, Root, RootKind},
    root::{git_dirs, kind_of},
    scan::Scan,
    state::{RootState, StateDir},
    store::{Draft, Saved, Store, git::GitStore, objects::Objects},
};

use super::{Fixture, OnDisk, draft, held, save};
use crate::support::{
    temp::{TempDir, chmod, count, link, noise, on_disk, write},
    walk::walk,
};

/// A worktree whose git directory lies elsewhere, so that it has only the user's files in it.
pub(crate) struct GitFixture {
    dir: TempDir,
    root: Root,
}

/// The same, with objects named by SHA-256.
pub(crate) struct Sha256Fixture(GitFixture);

impl GitFixture {
    fn make(hash: gix::hash::Kind) -> Self {
        let dir = TempDir::new();
        let path = dir.path().join("root");
        fs::create_dir(&path).unwrap();
        let git_dir = dir.path().join("repo/.git");
        init(&dir.path().join("repo"), hash);
        let kind = RootKind::Git { common_dir: git_dir.clone(), git_dir };
        Self { root: Root::new(path, kind), dir }
    }

    pub(crate) fn git_dir(&self) -> PathBuf {
        self.dir.path().join("repo/.git")
    }

    pub(crate) fn state(&self) -> StateDir {
        StateDir::new(self.dir.path().join("state"))
    }

    fn root_state(&self) -> RootState {
        self.state().root(&self.root)
    }

    pub(crate) fn store(&self) -> GitStore {
        GitStore::open(&self.root, &self.state()).unwrap()
    }

    pub(super) fn unchanged(&self) -> Scan {
        let base = ScanTable::load(&self.root_state().cache()).unwrap();
        Scan { anchor: base.facts().anchor, base: Some(base), ..Scan::default() }
    }

    /// The private repository: the only one there is. It need not exist yet.
    pub(crate) fn private_dir(&self) -> PathBuf {
        let dirs = fs::read_dir(self.state().repositories()).into_iter().flatten();
        let dirs: Vec<PathBuf> = dirs.map(|entry| entry.unwrap().path()).collect();
        assert!(dirs.len() <= 1, "one repository of the user's has one of ours: {dirs:?}");
        dirs.into_iter().next().unwrap_or_else(|| self.state().repositories().join("none"))
    }

    /// Every object and pack of our own, those borrowed from the user's repository not counted.
    pub(crate) fn own_objects(&self) -> BTreeSet<Vec<u8>> {
        match self.private_dir() {
            dir if dir.exists() => objects_in(&dir),
            _ => BTreeSet::new(),
        }
    }

    pub(crate) fn ref_path(&self, id: CheckpointId) -> PathBuf {
        self.private_dir().join(format!("refs/checkpoints/main/{id}"))
    }

    /// The lines of the list of refs.
    pub(crate) fn packed_refs(&self) -> Vec<String> {
        let list = fs::read_to_string(self.private_dir().join("packed-refs")).unwrap_or_default();
        list.lines().map(str::to_owned).collect()
    }

    /// Deletes a ref of ours, wherever it is.
    pub(crate) fn drop_ref(&self, name: &str) {
        let path = self.private_dir().join(name);
        let suffix = format!(" {name}");
        let (gone, kept): (Vec<_>, Vec<_>) =
            self.packed_refs().into_iter().partition(|line| line.ends_with(&suffix));
        assert!(path.is_file() || gone.len() == 1, "no ref `{name}`");
        let _none = fs::remove_file(path);
        write(&self.private_dir().join("packed-refs"), kept.join("\n") + "\n");
    }

    pub(crate) fn repo(&self) -> gix::Repository {
        gix::open_opts(self.private_dir(), gix::open::Options::isolated()).unwrap()
    }

    /// Runs git on the worktree; `None`, and said so, if there is none.
    pub(crate) fn git(&self, args: &[&str]) -> Option<Output> {
        let work_tree = [OsStr::new("--work-tree"), self.root.path().as_os_str()];
        self.git_at(&self.git_dir(), &work_tree, args)
    }

    /// Runs git on the private repository, as a user without beforehand would.
    pub(crate) fn private_git(&self, args: &[&str]) -> Option<Output> {
        self.git_at(&self.private_dir(), &[], args)
    }

    #[expect(clippy::print_stderr, reason = "a test that did not run must not look as if it had")]
    fn git_at(&self, git_dir: &Path, options: &[&OsStr], args: &[&str]) -> Option<Output> {
        let mut command = Command::new("git");
        command
            .args(["-c", "user.name=t", "-c", "user.email=t@example.com", "--git-dir"])
            .arg(git_dir)
            .args(options)
            .args(args)
            .current_dir(self.root.path())
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.dir.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env(
                "GIT_CONFIG_GLOBAL",
                concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/empty.gitconfig"),
            );
        match command.output() {
            Ok(output) => Some(output),
            Err(err) if err.kind() == std::io::ErrorKind::NotFound => {
                // Said once more loudly where git was promised.
                #[expect(clippy::disallowed_methods, reason = "a wish of `.ci/run`, not of users")]
                let is_required = std::env::var_os("BEFOREHAND_REQUIRE_GIT").is_some();
                assert!(!is_required, "there is no git program to compare with");
                eprintln!("skipped: no git program");
                None
            }
            Err(err) => panic!("{err}"),
        }
    }

    /// As [`GitFixture::git`], and it must succeed; its output.
    pub(crate) fn run(&self, args: &[&str]) -> Option<String> {
        Some(succeeded(args, &self.git(args)?))
    }

    /// As [`GitFixture::private_git`], and it must succeed; its output.
    pub(crate) fn run_private(&self, args: &[&str]) -> Option<String> {
        Some(succeeded(args, &self.private_git(args)?))
    }

    /// Git finds nothing wrong, neither with the user's repository nor with ours.
    pub(crate) fn fsck(&self) {
        let args = ["fsck", "--strict", "--no-dangling"];
        let of_user = self.git(&args);
        let of_ours = if self.private_dir().exists() { self.private_git(&args) } else { None };
        for output in of_user.into_iter().chain(of_ours) {
            let said = String::from_utf8_lossy(&output.stderr);
            let is_notice = |line: &str| line.starts_with("notice: ");
            assert!(output.status.success() && said.lines().all(is_notice), "{said}");
        }
    }
}

fn succeeded(args: &[&str], output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {args:?}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[expect(clippy::disallowed_methods, reason = "the few files a repository consists of")]
pub(crate) fn init(dir: &Path, hash: gix::hash::Kind) {
    let git = dir.join(".git");
    for name in ["objects/pack", "objects/info", "refs/heads"] {
        fs::create_dir_all(git.join(name)).unwrap();
    }
    let config = match hash {
        gix::hash::Kind::Sha256 => {
            "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectformat = sha256\n"
        }
        _ => "[core]\n\trepositoryformatversion = 0\n\tbare = false\n",
    };
    fs::write(git.join("config"), config).unwrap();
    fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
}

impl Fixture for GitFixture {
    fn new() -> Self {
        Self::make(gix::hash::Kind::Sha1)
    }

    fn root(&self) -> &Root {
        &self.root
    }

    fn outside(&self) -> &Path {
        self.dir.path()
    }

    fn open(&self) -> Box<dyn Store> {
        Box::new(self.store())
    }

    fn content_count(&self) -> usize {
        let private = Objects::new(self.state().objects()).ids();
        self.own_objects().len() + private.unwrap().len()
    }
}

impl OnDisk for GitFixture {
    fn break_writing(&self) {
        // Permissions would not stop root.
        let dir = beforehand::state::hash_name(&[self.git_dir().as_os_str().as_bytes()]);
        let config = fs::read_to_string(self.git_dir().join("config")).unwrap();
        let suffix = if config.contains("sha256") { "-sha256" } else { "" };
        let dir = self.state().repositories().join(dir + suffix);
        fs::create_dir_all(dir.join("objects")).unwrap();
        for number in 0..=255 {
            write(&dir.join(format!("objects/{number:02x}")), "not a directory");
        }
        link(&dir.join("objects/pack"), "nowhere at all");
    }

    fn make_newer(&self, id: CheckpointId) {
        let record = self.root_state().checkpoints().join(format!("{id}.json"));
        let text = fs::read_to_string(&record).unwrap();
        write(&record, text.replace("\"version\": 2", "\"version\": 3"));
        let repo = self.repo();
        let suffix = format!("/{id}");
        let lines = self.packed_refs();
        let line = lines.iter().find(|line| line.ends_with(&suffix)).unwrap();
        let old = gix::ObjectId::from_hex(line.split(' ').next().unwrap().as_bytes()).unwrap();
        let mut tree = repo.find_tree(old).unwrap().decode().unwrap().to_owned();
        for entry in tree.entries.iter_mut().filter(|entry| entry.filename == "meta") {
            let meta = repo.find_blob(entry.oid).unwrap().take_data();
            let meta = String::from_utf8(meta).unwrap();
            let meta = meta.replace("\"version\": 2", "\"version\": 3");
            entry.oid = repo.write_blob(meta).unwrap().detach();
        }
        let new = repo.write_object(&tree).unwrap();
        write(&self.ref_path(id), format!("{new}\n"));
    }
}

impl Fixture for Sha256Fixture {
    fn new() -> Self {
        Self(GitFixture::make(gix::hash::Kind::Sha256))
    }

    fn root(&self) -> &Root {
        self.0.root()
    }

    fn outside(&self) -> &Path {
        self.0.outside()
    }

    fn open(&self) -> Box<dyn Store> {
        self.0.open()
    }

    fn content_count(&self) -> usize {
        self.0.content_count()
    }
}

impl OnDisk for Sha256Fixture {
    fn break_writing(&self) {
        self.0.break_writing();
    }

    fn make_newer(&self, id: CheckpointId) {
        self.0.make_newer(id);
    }
}

/// Every loose object and pack.
pub(crate) fn objects_in(git_dir: &Path) -> BTreeSet<Vec<u8>> {
    let objects = on_disk(&git_dir.join("objects"));
    objects.into_keys().filter(|path| path.contains(&b'/') && !path.starts_with(b"info")).collect()
}

pub(crate) fn save_new(fixture: &GitFixture) -> CheckpointId {
    let saved = save(fixture);
    assert!(saved.is_new);
    saved.checkpoint.id
}

#[test]
fn git_finds_nothing_wrong_with_hostile_names() {
    let fixture = GitFixture::new();
    let root = fixture.root().path();
    for name in [".GIT", "git~1", ".git ", ".git.", "a\\.git\\b", ".g\u{200c}it", ".gitmodules"] {
        write(&root.join(name), "[submodule \"x\"]\n\tpath = -evil\n\turl = --bad\n");
    }
    write(&root.join("d/.gitattributes"), "x ".repeat(3000));
    write(&root.join("%beforehand%2e"), "x");
    for name in ["e/.gitattributes", "e/.gitignore", "e/.mailmap"] {
        fs::create_dir_all(root.join("e")).unwrap();
        link(&root.join(name), "elsewhere");
    }
    let id = save_new(&fixture);
    assert_eq!(held(&*fixture.open(), id), on_disk(root));
    fixture.fsck();
}

#[test]
fn git_sees_nothing_of_ours() {
    let fixture = GitFixture::new();
    let root = fixture.root().path();
    write(&root.join("a"), "a");
    if fixture.run(&["add", "a"]).is_none() {
        return;
    }
    fixture.run(&["commit", "-qm", "first"]);
    write(&root.join("b"), "b");
    // A first look writes what it found out about the files into the index.
    fixture.run(&["status", "--porcelain"]);
    let before = on_disk(&fixture.git_dir());
    let first = save_new(&fixture);
    write(&root.join("b"), "c");
    let second = save_new(&fixture);
    assert_eq!(fixture.open().check(true).unwrap(), []);
    beforehand::store::maintain(&fixture.state(), u64::MAX).unwrap();
    fixture.open().remove(&[first]).unwrap();
    fixture.open().repair().unwrap();
    assert_eq!(on_disk(&fixture.git_dir()), before, "not a byte below the user's `.git`");
    let name = format!("refs/checkpoints/main/{second}");
    let shown = fixture.run_private(&["show", &format!("{name}:files/b")]);
    assert_eq!(shown.as_deref(), Some("c"));
    assert!(fixture.open().by_hand(second).contains(&format!("show {name}:files/PATH")));
    fixture.fsck();
}

#[test]
fn gc_keeps_everything_that_is_held() {
    let fixture = GitFixture::new();
    let root = fixture.root().path();
    for number in 0..300 {
        write(&root.join(format!("d{}/f{number}", number % 7)), format!("{number}"));
    }
    let first = save_new(&fixture);
    let packs = count(&fixture.private_dir().join("objects/pack"));
    assert_eq!(packs, 2, "many objects make one pack and its index");
    write(&root.join("d1/f1"), "changed");
    let second = save_new(&fixture);
    let expected = [first, second].map(|id| held(&*fixture.open(), id));
    if fixture.run(&["gc", "-q", "--prune=now"]).is_none() {
        return;
    }
    // Git leaves our repository alone, if it is run there.
    assert!(!fixture.private_git(&["repack", "-qad"]).unwrap().status.success());
    assert!(!fixture.private_git(&["prune", "--expire=now"]).unwrap().status.success());
    let _as_far_as_it_goes = fixture.private_git(&["gc", "-q", "--prune=now"]);
    fixture.run_private(&["pack-refs", "--all", "--prune"]);
    assert!(!fixture.ref_path(first).exists());
    let ids: Vec<_> = fixture.open().list().unwrap().iter().map(|it| it.id).collect();
    assert_eq!(ids, [second, first]);
    assert_eq!([first, second].map(|id| held(&*fixture.open(), id)), expected);
    assert_eq!(fixture.open().check(true).unwrap(), []);
    // Packed refs go as well.
    fixture.open().remove(&[first]).unwrap();
    let refs = fixture.run_private(&["for-each-ref", "--format=%(refname)"]).unwrap();
    assert!(!refs.contains(&first.to_string()) && refs.contains(&second.to_string()), "{refs}");
    assert_eq!(held(&*fixture.open(), second), expected[1]);
    fixture.fsck();
}

#[test]
fn a_file_that_was_committed_survives_the_removal_of_its_checkpoint() {
    let fixture = GitFixture::new();
    write(&fixture.root().path().join("a"), "held, then committed");
    let id = save_new(&fixture);
    if fixture.run(&["add", "a"]).is_none() {
        return;
    }
    fixture.run(&["commit", "-qm", "it"]);
    fixture.open().remove(&[id]).unwrap();
    fixture.fsck();
    fixture.run(&["gc", "-q", "--prune=now"]);
    assert_eq!(fixture.run(&["show", "HEAD:a"]).as_deref(), Some("held, then committed"));
    fixture.fsck();
}

#[test]
fn removing_frees_the_objects_at_once_and_the_repository_with_the_last_checkpoint() {
    let fixture = GitFixture::new();
    write(&fixture.root().path().join("a"), noise(1, 1 << 20));
    let first = save_new(&fixture);
    write(&fixture.root().path().join("a"), noise(2, 1 << 20));
    let second = save_new(&fixture);
    let bytes = || beforehand::fs::own_bytes(fixture.state().dir());
    let before = bytes();
    let freed = fixture.open().remove(&[first]).unwrap();
    assert!(freed > 1 << 20, "{freed} bytes were freed");
    assert!(before - bytes() > 1 << 20, "{before} bytes became {}", bytes());
    assert!(fixture.open().anchor().is_some());
    assert_eq!(held(&*fixture.open(), second), on_disk(fixture.root().path()));
    fixture.fsck();
    fixture.open().remove(&[second]).unwrap();
    assert_eq!(fixture.open().anchor(), None);
    assert!(!fixture.private_dir().exists());
    assert!(bytes() < 100_000, "{} bytes are left", bytes());
    // It is made again when it is needed.
    let third = save_new(&fixture);
    assert_eq!(held(&*fixture.open(), third), on_disk(fixture.root().path()));
    fixture.fsck();
}

#[test]
fn an_unchanged_scan_names_the_newest_checkpoint() {
    let fixture = GitFixture::new();
    write(&fixture.root().path().join("d/a"), "a");
    let first = save_new(&fixture);
    let Saved { checkpoint, is_new } = fixture.open().save(draft(fixture.unchanged())).unwrap();
    assert!(!is_new && checkpoint.id == first);
    let always = Draft { always: true, ..draft(fixture.unchanged()) };
    let asked = fixture.open().save(always).unwrap().checkpoint;
    assert_eq!(held(&*fixture.open(), asked.id), on_disk(fixture.root().path()));
}

#[test]
fn a_cache_without_its_objects_is_not_trusted() {
    let fixture = GitFixture::new();
    let root = fixture.root().path();
    write(&root.join("d/a"), "a");
    write(&root.join("b"), "b");
    let first = save_new(&fixture);
    let scan = fixture.unchanged();
    fixture.drop_ref(&format!("refs/checkpoints/main/{first}"));
    fixture.drop_ref(&format!("refs/private/main/{first}"));
    for name in ["main", "administration"] {
        fixture.drop_ref(&format!("refs/anchors/{name}"));
    }
    for path in fixture.own_objects() {
        let path = fixture.private_dir().join("objects").join(OsStr::from_bytes(&path));
        fs::remove_file(path).unwrap();
    }
    let second = fixture.open().save(draft(scan)).unwrap();
    assert!(second.is_new);
    assert_eq!(held(&*fixture.open(), second.checkpoint.id), on_disk(root));
    fixture.fsck();
}

#[test]
fn a_checkpoint_without_its_private_record_is_still_one() {
    let fixture = GitFixture::new();
    write(&fixture.root().path().join("d/a"), "a");
    chmod(&fixture.root().path().join("d/a"), 0o640);
    let saved = save(&fixture).checkpoint;
    #[expect(clippy::disallowed_methods, reason = "the test's own state directory")]
    fs::remove_dir_all(fixture.root_state().dir()).unwrap();
    let listed = fixture.open().list().unwrap();
    assert_eq!((listed[0].id, listed[0].sequence, listed[0].top), (saved.id, 1, saved.top));
    assert_eq!(listed, std::slice::from_ref(&saved), "the copy says everything");
    assert_eq!(held(&*fixture.open(), saved.id), on_disk(fixture.root().path()));
    fixture.drop_ref(&format!("refs/private/main/{}", saved.id));
    #[expect(clippy::disallowed_methods, reason = "the test's own state directory")]
    let _if_it_was_made_again = fs::remove_dir_all(fixture.root_state().dir());
    let listed = fixture.open().list().unwrap();
    assert_eq!((listed[0].id, listed[0].sequence, listed[0].top), (saved.id, 1, saved.top));
    assert_eq!(listed[0].cause.summary, None, "what is public has no message");
    assert_eq!(held(&*fixture.open(), saved.id), on_disk(fixture.root().path()));
    write(&fixture.root().path().join("d/a"), "b");
    assert_eq!(save(&fixture).checkpoint.sequence, 2);
}

#[test]
fn damage_is_found() {
    let fixture = GitFixture::new();
    write(&fixture.root().path().join("d/a"), "some bytes");
    let users = gix::open_opts(fixture.git_dir(), gix::open::Options::isolated()).unwrap();
    // There already, and so borrowed instead of packed with the rest.
    let hex = users.write_blob(b"some bytes").unwrap().to_string();
    let id = save_new(&fixture);
    let loose = format!("objects/{}/{}", &hex[..2], &hex[2..]);
    fs::remove_file(fixture.git_dir().join(&loose)).unwrap();
    assert_eq!(fixture.open().check(true).unwrap(), [], "the user's may go");
    fs::remove_file(fixture.private_dir().join("linked").join(&loose)).unwrap();
    for read_data in [false, true] {
        let damage = fixture.open().check(read_data).unwrap();
        assert_eq!(damage.len(), 1, "{damage:?}");
        assert_eq!((damage[0].checkpoint, &damage[0].what[..]), (Some(id), "/d/a"));
    }
    fixture.drop_ref(&format!("refs/checkpoints/main/{id}"));
    let told = fixture.open().check(false).unwrap();
    let (notes, damage): (Vec<_>, Vec<_>) = told.iter().partition(|damage| damage.is_note);
    assert_eq!((notes.len(), damage.len()), (1, 1), "{told:?}");
    // Its record remembers the tree, and nothing has swept the objects yet.
    assert!(fixture.open().tree(id).is_ok());
}

#[test]
fn a_tampered_tree_is_damage_and_leads_nowhere() {
    use gix::objs::Write as _;
    let fixture = GitFixture::new();
    save_new(&fixture);
    let repo = fixture.repo();
    let blob = repo.write_blob(b"x").unwrap().detach();
    for name in ["..", ".", ".git", "a/b", "", "%beforehand%2e2e", "%beforehand%612f62"] {
        let body = [b"100644 ", name.as_bytes(), b"\0", blob.as_slice()].concat();
        let id = repo.write_buf(gix::objs::Kind::Tree, &body).unwrap();
        let read = fixture.open().directory(&ContentId::new(id.as_slice()));
        assert!(matches!(read, Err(Error::Damaged { .. })), "{name:?}: {read:?}");
    }
    let body = [&b"100664 a\0"[..], blob.as_slice()].concat();
    let id = repo.write_buf(gix::objs::Kind::Tree, &body).unwrap();
    assert!(fixture.open().directory(&ContentId::new(id.as_slice())).is_err());
    assert!(fixture.open().directory(&ContentId::new(blob.as_slice())).is_err());
}

#[test]
fn large_files_are_streamed_both_ways() {
    let fixture = GitFixture::new();
    let bytes: Vec<u8> = (0..9u32 << 18).flat_map(|n| (n / 3).to_le_bytes()).collect();
    write(&fixture.root().path().join("large"), &bytes);
    let id = save_new(&fixture);
    assert!(held(&*fixture.open(), id)[&b"large"[..]].bytes == bytes);
    let is_loose = |path: &&Vec<u8>| !path.starts_with(b"pack");
    assert_eq!(fixture.own_objects().iter().filter(is_loose).count(), 1, "it has no pack");
    fixture.fsck();
    assert_eq!(fixture.open().check(true).unwrap(), []);
}

#[test]
fn only_a_repository_that_is_ours_is_used() {
    let dir = TempDir::new();
    let at = |name: &str| dir.path().join(name);
    let fresh = |name: &str| {
        fs::create_dir(at(name)).unwrap();
        init(&at(name), gix::hash::Kind::Sha1);
        at(name).join(".git")
    };
    assert_eq!(git_dirs(dir.path()), Ok(None));
    let plain = fresh("plain");
    assert_eq!(git_dirs(&at("plain")).unwrap().unwrap().git_dir, plain);
    for (name, config) in [
        ("bare", "[core]\n\tbare = true\n"),
        (
            "reftable",
            "[core]\n\trepositoryformatversion = 1\n[extensions]\n\trefStorage = reftable\n",
        ),
        ("strange", "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tfuture = x\n"),
        ("version", "[core]\n\trepositoryformatversion = 2\n"),
        ("elsewhere", "[core]\n\tworktree = /\n"),
        ("broken", "[core\n"),
    ] {
        write(&fresh(name).join("config"), config);
        let RootKind::Plain { why: Some(_) } = kind_of(&at(name)) else { panic!("{name}") };
    }
    for file in ["HEAD", "config", "packed-refs", "commondir", "objects/info/alternates"] {
        let git = fresh(&file.replace('/', "-"));
        let _absent = fs::remove_file(git.join(file));
        crate::support::temp::special(&git.join(file), rustix::fs::FileType::Fifo, 0o600);
        assert!(git_dirs(git.parent().unwrap()).is_err(), "{file}");
    }
    let foreign = fresh("foreign");
    if std::os::unix::fs::chown(&foreign, Some(12345), None).is_ok() {
        assert!(git_dirs(&at("foreign")).unwrap_err().contains("another user"));
    }
    fs::create_dir(at("linked")).unwrap();
    write(&at("linked/.git"), "gitdir: ../plain/.git/worktrees/l\n");
    write(&plain.join("worktrees/l/HEAD"), "ref: refs/heads/x\n");
    write(&plain.join("worktrees/l/commondir"), "../..\n");
    let linked = git_dirs(&at("linked")).unwrap().unwrap();
    assert_eq!((linked.git_dir, linked.common_dir), (plain.join("worktrees/l"), plain));
}

#[test]
fn worktrees_of_one_repository_keep_their_own_checkpoints() {
    let dir = TempDir::new();
    fs::create_dir_all(dir.path().join("main")).unwrap();
    init(&dir.path().join("main"), gix::hash::Kind::Sha1);
    let common_dir = dir.path().join("main/.git");
    write(&dir.path().join("linked/.git"), "gitdir: ../main/.git/worktrees/a b\n");
    write(&common_dir.join("worktrees/a b/HEAD"), "ref: refs/heads/x\n");
    write(&common_dir.join("worktrees/a b/commondir"), "../..\n");
    let state = StateDir::new(dir.path().join("state"));
    let stores = ["main", "linked"].map(|name| {
        let path = dir.path().join(name);
        let root = Root::new(path.clone(), kind_of(&path));
        GitStore::open(&root, &state).unwrap()
    });
    for store in &stores {
        write(&store.root().path().join("f"), store.root().path().as_os_str().as_bytes());
        let saved = store.save(draft(walk(store.root()))).unwrap().checkpoint;
        assert_eq!(store.list().unwrap(), std::slice::from_ref(&saved));
        assert_eq!(held(store, saved.id).len(), 1);
        assert_eq!(held(store, saved.id)[&b"f"[..]].kind, Kind::File);
    }
    let names = |dir: &Path| -> Vec<String> {
        let entries = fs::read_dir(dir).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    let shared = names(&state.repositories());
    assert_eq!(shared.len(), 1, "one repository, and one of ours: {shared:?}");
    let list = state.repositories().join(&shared[0]).join("packed-refs");
    let list = fs::read_to_string(list).unwrap();
    assert_eq!(list.matches("refs/checkpoints/main/").count(), 1, "{list}");
    assert_eq!(list.matches("refs/checkpoints/a-b-").count(), 1, "{list}");
}

#[test]
fn the_recipe_in_the_document_puts_the_files_back() {
    let fixture = GitFixture::new();
    let root = fixture.root().path();
    write(&root.join("d/crlf.txt"), "a\r\nb\r\n");
    write(&root.join(".gitattributes"), "* text=auto eol=crlf\n");
    write(&root.join("run"), "#!/bin/sh\n");
    chmod(&root.join("run"), 0o755);
    link(&root.join("l"), "d/crlf.txt");
    let id = save_new(&fixture);
    if fixture.git(&["--version"]).is_none() {
        return;
    }
    let document = include_str!("../../docs/FORMAT.md");
    let recipe = document.split("<!-- recipe: git -->\n```sh\n").nth(1).unwrap();
    let recipe = recipe.split("```").next().unwrap();
    let to = fixture.outside().join("back");
    let status = Command::new("sh")
        .args(["-c", recipe, "sh"])
        .arg(fixture.private_dir())
        .arg(format!("refs/checkpoints/main/{id}"))
        .arg(&to)
        .current_dir(fixture.outside())
        .env("HOME", fixture.outside())
        .env("GIT_CONFIG_GLOBAL", concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/empty.gitconfig"))
        .status();
    assert!(status.unwrap().success());
    assert_eq!(on_disk(&to), on_disk(root));
}

#[test]
fn a_pack_of_sha256_objects_is_one_to_git() {
    let fixture = Sha256Fixture::new();
    for number in 0..250 {
        write(&fixture.root().path().join(format!("f{number}")), format!("{number}"));
    }
    let saved = save(&fixture).checkpoint;
    assert_eq!(count(&fixture.0.private_dir().join("objects/pack")), 2);
    assert_eq!(held(&*fixture.open(), saved.id), on_disk(fixture.root().path()));
    fixture.0.fsck();
}
