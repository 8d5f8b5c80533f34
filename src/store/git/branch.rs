//! Writes commits and one new branch into the user's repository, because the user asked for it. HEAD, the index
//! and every other ref stay as they are.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use gix::{
    ObjectId,
    hash::oid,
    objs::{
        Data, Find, Kind, Tree, TreeRef, Write as _, WriteTo as _,
        tree::{Editor, Entry, EntryKind, EntryMode},
    },
    refs::{store::WriteReflog, transaction::PreviousValue},
};

use super::{
    GitStore, head, refs,
    reset_branch::{WAIT, check_place, ref_edit, sync_lock, user_refs},
};
use crate::{
    crash,
    error::{Error, Result},
    fs::{hand_over, is_another_users, sync_dir},
    model::RelPath,
    store::plumbing::repo::Repo,
};

/// A file of a commit: its mode in the tree, as in `0o100644`, and its bytes.
pub(super) type CommittedFile = (u32, Vec<u8>);

/// A commit that is to be written.
#[derive(Debug)]
pub struct NewCommit<'a> {
    /// The whole message, ended by a line feed.
    pub message: &'a str,
    /// Name and address, as in `Ada <ada@example.com>`.
    pub author: &'a str,
    /// When, in seconds since 1970.
    pub at: i64,
    /// What becomes of files.
    pub files: Vec<NewFile<'a>>,
}

/// What becomes of a file.
#[derive(Debug)]
pub struct NewFile<'a> {
    /// Its path.
    pub path: &'a RelPath,
    /// Its mode in the tree, as in `0o100644`, and its bytes; `None` for one that goes.
    pub content: Option<(u32, &'a [u8])>,
}

impl GitStore {
    /// What a commit of the user's repository has at a path; `None` if there is no file or symlink.
    ///
    /// # Errors
    ///
    /// Fails if the repository no longer has the commit, or it is damaged.
    pub fn committed(&self, commit: &str, path: &RelPath) -> Result<Option<CommittedFile>> {
        let repo = self.repository()?;
        let mut here = head::tree_of(&repo, parse(commit)?)?;
        let mut names = path.names().peekable();
        while let (Some(tree), Some(name)) = (here, names.next()) {
            let body = repo.read(&tree, Kind::Tree)?;
            let tree = TreeRef::from_bytes(&body, repo.hash).map_err(|err| repo.error(&err))?;
            let Some(entry) = tree.entries.iter().find(|entry| entry.filename == name) else {
                return Ok(None);
            };
            let (id, kind) = (entry.oid.to_owned(), entry.mode.kind());
            match (names.peek(), kind) {
                (Some(_), EntryKind::Tree) => here = Some(id),
                (None, EntryKind::Blob | EntryKind::BlobExecutable | EntryKind::Link) => {
                    let mode = u32::from(entry.mode.value());
                    return Ok(Some((mode, repo.read_checked(&id, Kind::Blob)?)));
                }
                _ => return Ok(None),
            }
        }
        Ok(None)
    }

    /// The files and symlinks that a commit of the user's repository has below a path.
    ///
    /// # Errors
    ///
    /// Fails if the repository no longer has the commit, or it is damaged.
    pub fn committed_below(&self, commit: &str, path: &RelPath) -> Result<Vec<RelPath>> {
        let repo = self.repository()?;
        let mut here = head::tree_of(&repo, parse(commit)?)?;
        for name in path.names() {
            let Some(tree) = here else { return Ok(Vec::new()) };
            let tree = entries(&repo, &tree)?;
            let found = tree.into_iter().find(|entry| entry.filename == name);
            here = found.filter(|entry| entry.mode.is_tree()).map(|entry| entry.oid);
        }
        let mut found = Vec::new();
        let mut trees: Vec<(Vec<u8>, ObjectId)> =
            here.map(|tree| (path.as_bytes().to_vec(), tree)).into_iter().collect();
        while let Some((above, tree)) = trees.pop() {
            for entry in entries(&repo, &tree)? {
                let path = [&above[..], b"/", &entry.filename[..]].concat();
                match entry.mode.kind() {
                    EntryKind::Tree => trees.push((path, entry.oid)),
                    EntryKind::Blob | EntryKind::BlobExecutable | EntryKind::Link => {
                        found.extend(RelPath::from_bytes(&path));
                    }
                    EntryKind::Commit => (),
                }
            }
        }
        Ok(found)
    }

    /// The name that git gives a blob, in the repository's own hash.
    ///
    /// # Errors
    ///
    /// Fails for bytes of a known SHA-1 collision attack.
    pub fn blob_name(&self, bytes: &[u8]) -> Result<String> {
        let hash = self.repository()?.hash;
        crate::store::plumbing::repo::name(hash, Kind::Blob, bytes).map(|id| id.to_string())
    }

    /// Why no branch of this name can be made, as a message fragment.
    ///
    /// # Errors
    ///
    /// Says it.
    pub fn refuse_branch(&self, branch: &str) -> Result<(), String> {
        let repo = self.repository().map_err(|err| err.to_string())?;
        let name = format!("refs/heads/{branch}");
        let is_ok = refs::full(&name).is_ok() && !branch.starts_with('-') && branch != "HEAD";
        if !is_ok {
            return Err("is no name that a branch can have".to_owned());
        }
        let packed = refs::packed_below(&repo, "refs/heads/").map_err(|err| err.to_string())?;
        let path = repo.common_dir.join(&name);
        if path.is_file() || packed.contains(&name) {
            return Err("is there already".to_owned());
        }
        let below = format!("{name}/");
        let is_above =
            |other: &String| name.strip_prefix(&**other).is_some_and(|it| it.starts_with('/'));
        let has_files = |dir: &Path| !crate::fs::names_in(dir).is_empty();
        let file_above = name.match_indices('/').map(|(at, _)| &name[..at]);
        let file_above = file_above.filter(|above| repo.common_dir.join(above).is_file()).count();
        if packed.iter().any(|other| other.starts_with(&below) || is_above(other))
            || path.is_dir() && has_files(&path)
            || file_above > 0
        {
            return Err(
                "cannot be beside a branch with a name that begins or ends within it".to_owned()
            );
        }
        check_place(&repo, &name).map_err(|err| err.to_string())
    }

    /// Writes commits, each on top of the one before it and the first on top of `base`, and a new branch that
    /// points at the last one. Returns their names. All is on the disk when it returns.
    ///
    /// # Errors
    ///
    /// Fails if the repository cannot be written, or if there is such a branch by now. Objects that nothing
    /// refers to may be left, which git's own garbage collection removes.
    pub fn write_branch(
        &self,
        branch: &str,
        base: Option<&str>,
        commits: &[NewCommit<'_>],
    ) -> Result<Vec<String>> {
        let repo = self.repository()?;
        refuse_others(&repo)?;
        let writer = BranchWriter::new(&repo)?;
        let mut parent = base.map(parse).transpose()?;
        let top = match parent {
            Some(commit) => head::tree_of(&repo, commit)?,
            None => None,
        };
        let mut tree = writer.read_tree(top)?;
        let mut names = Vec::new();
        for commit in commits {
            let (id, next) = writer.commit(tree, parent, commit)?;
            tree = next;
            parent = Some(id);
            names.push(id.to_string());
        }
        writer.sync()?;
        crash::point("export-objects");
        if let Some(last) = parent {
            create_ref(&repo, &format!("refs/heads/{branch}"), last)?;
        }
        Ok(names)
    }

    fn repository(&self) -> Result<Repo> {
        let none = || Error::Repository {
            path: self.repo.git_dir.clone(),
            why: "it is no longer there".to_owned(),
        };
        self.user().ok_or_else(none)
    }
}

/// What a tree of the user's repository has.
fn entries(repo: &Repo, tree: &oid) -> Result<Vec<Entry>> {
    let body = repo.read(tree, Kind::Tree)?;
    let tree = TreeRef::from_bytes(&body, repo.hash).map_err(|err| repo.error(&err))?;
    Ok(Tree::from(tree).entries)
}

fn parse(hex: &str) -> Result<ObjectId> {
    ObjectId::from_hex(hex.as_bytes()).map_err(|_| Error::damaged(hex, "no name of a commit"))
}

/// What another user would own in the repository, its owner could not remove.
fn refuse_others(repo: &Repo) -> Result<()> {
    if !is_another_users(&repo.common_dir) {
        return Ok(());
    }
    let why = "it belongs to another user".to_owned();
    Err(Error::Repository { path: repo.common_dir.clone(), why })
}

/// Adds blobs to the user's repository.
///
/// # Errors
///
/// Fails if it belongs to another user, or cannot be written.
pub(super) fn add_blobs(repo: &Repo, blobs: &[Vec<u8>]) -> Result<()> {
    if blobs.is_empty() {
        return Ok(());
    }
    refuse_others(repo)?;
    let writer = BranchWriter::new(repo)?;
    for bytes in blobs {
        writer.write(Kind::Blob, bytes)?;
    }
    writer.sync()
}

/// Writes loose objects as git does.
struct BranchWriter<'r> {
    repo: &'r Repo,
    loose: gix::odb::loose::Store,
    /// New trees, which the next commit begins with.
    trees: RefCell<BTreeMap<ObjectId, Vec<u8>>>,
    written: RefCell<BTreeSet<PathBuf>>,
}

impl Find for BranchWriter<'_> {
    fn try_find<'b>(
        &self,
        id: &oid,
        buffer: &'b mut Vec<u8>,
    ) -> std::result::Result<Option<Data<'b>>, gix::Error> {
        let body = match self.trees.borrow().get(id) {
            Some(body) => Some(body.clone()),
            None => self.repo.read(id, Kind::Tree).ok(),
        };
        Ok(body.map(|body| {
            *buffer = body;
            Data { kind: Kind::Tree, object_hash: self.repo.hash, data: buffer }
        }))
    }
}

impl<'r> BranchWriter<'r> {
    fn new(repo: &'r Repo) -> Result<Self> {
        let objects = repo.objects();
        if !fs::symlink_metadata(&objects).is_ok_and(|found| found.is_dir()) {
            let why = "its `objects` is no directory".to_owned();
            return Err(Error::Repository { path: repo.common_dir.clone(), why });
        }
        let loose = gix::odb::loose::Store::at(&objects, repo.hash);
        Ok(Self { repo, loose, trees: RefCell::default(), written: RefCell::default() })
    }

    fn read_tree(&self, id: Option<ObjectId>) -> Result<Tree> {
        let Some(id) = id else { return Ok(Tree::empty()) };
        let body = self.repo.read(&id, Kind::Tree)?;
        let tree = TreeRef::from_bytes(&body, self.repo.hash);
        tree.map(Tree::from).map_err(|err| self.repo.error(&err))
    }

    /// Writes a commit of `tree` with its changes. Returns its name, and that tree.
    fn commit(
        &self,
        tree: Tree,
        parent: Option<ObjectId>,
        new: &NewCommit<'_>,
    ) -> Result<(ObjectId, Tree)> {
        let mut editor = Editor::new(tree, self, self.repo.hash);
        // What goes makes room first: a file may become a directory.
        for NewFile { path, .. } in new.files.iter().filter(|file| file.content.is_none()) {
            editor.remove_if_leaf(names(path)).map_err(|err| self.repo.error(&err))?;
        }
        for NewFile { path, content } in &new.files {
            let Some((mode, bytes)) = content else { continue };
            let id = self.write(Kind::Blob, bytes)?;
            let kind = EntryMode::try_from(*mode).map_or(EntryKind::Blob, |mode| mode.kind());
            editor.upsert(names(path), kind, id).map_err(|err| self.repo.error(&err))?;
        }
        let mut top = Tree::empty();
        let id = editor.write(|tree| -> Result<ObjectId> {
            let mut body = Vec::new();
            tree.write_to(&mut body).map_err(Error::io("write", &self.repo.common_dir))?;
            let id = self.write(Kind::Tree, &body)?;
            self.trees.borrow_mut().insert(id, body);
            top = tree.clone();
            Ok(id)
        })?;
        let NewCommit { message, author, at, .. } = new;
        let parent = parent.map_or_else(String::new, |parent| format!("parent {parent}\n"));
        let body = format!(
            "tree {id}\n{parent}author {author} {at} +0000\ncommitter {author} {at} +0000\n\n{message}"
        );
        Ok((self.write(Kind::Commit, body.as_bytes())?, top))
    }

    fn write(&self, kind: Kind, body: &[u8]) -> Result<ObjectId> {
        let id = crate::store::plumbing::repo::name(self.repo.hash, kind, body)?;
        // These two every git knows, and misses all the same where they are not stored.
        let is_given = id.is_empty_blob() || id.is_empty_tree();
        if !is_given && self.repo.has(&id) {
            return Ok(id);
        }
        let hex = id.to_string();
        let dir = self.repo.objects().join(&hex[..2]);
        if fs::symlink_metadata(&dir).is_ok_and(|found| !found.is_dir()) {
            let why = format!("`objects/{}` is no directory", &hex[..2]);
            return Err(Error::Repository { path: self.repo.common_dir.clone(), why });
        }
        let written = self.loose.write_buf(kind, body);
        written.map_err(|err| self.repo.error(&err))?;
        self.written.borrow_mut().insert(dir.join(&hex[2..]));
        Ok(id)
    }

    /// Everything that was written is on the disk, and belongs to the owner of the repository.
    fn sync(&self) -> Result<()> {
        let mut dirs = BTreeSet::from([self.repo.objects()]);
        for path in self.written.borrow().iter() {
            let file = fs::File::open(path).map_err(Error::io("open", path))?;
            file.sync_data().map_err(Error::io("sync", path))?;
            hand_over(&file, path);
            dirs.extend(path.parent().map(Path::to_owned));
        }
        for dir in &dirs {
            if let Ok(open) = fs::File::open(dir) {
                hand_over(&open, dir);
            }
            sync_dir(dir)?;
        }
        Ok(())
    }
}

/// The names of a path, for the editor of trees.
fn names(path: &RelPath) -> Vec<&gix::bstr::BStr> {
    path.names().map(Into::into).collect()
}

/// Creates a ref under git's own lock, if there is none of that name. Without a reflog: it has no past.
fn create_ref(repo: &Repo, name: &str, id: ObjectId) -> Result<()> {
    check_place(repo, name)?;
    let edit = ref_edit(name, id, PreviousValue::MustNotExist, "beforehand: export".to_owned())?;
    let store = user_refs(repo, WriteReflog::Disable);
    let prepared = store.transaction().prepare(Some(edit), WAIT, WAIT);
    let prepared = prepared.map_err(|err| repo.error(&err))?;
    sync_lock(&repo.common_dir.join(name))?;
    prepared.commit(None).map_err(|err| repo.error(&err))?;
    let path = repo.common_dir.join(name);
    if let Ok(file) = fs::File::open(&path) {
        hand_over(&file, &path);
    }
    path.parent().map_or(Ok(()), sync_dir)
}
