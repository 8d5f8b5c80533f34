//! Finds the repository of a worktree, and decides whether it can be used.
//!
//! Repository files are untrusted: a `.git` may point anywhere, be a pipe, or belong to another
//! user. Each is read at most once; nothing is run, and the environment is not consulted. A
//! repository that is not understood is not used, because the file store always works.

use std::{
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use gix::hash::Kind as HashKind;

use crate::{
    fs::{is_own, may_write, read_small},
    model::RootKind,
};

/// Larger than any handwritten configuration.
const CONFIG_MAX_BYTES: u64 = 4 << 20;
/// Enough for a path and a newline.
const POINTER_MAX_BYTES: u64 = 64 << 10;
/// Enough for five million refs; `store::git` reads no more.
const PACKED_REFS_MAX_BYTES: u64 = 512 << 20;
/// Git's own limit on alternates of alternates.
const ALTERNATES_DEPTH_MAX: usize = 5;

/// The directories of a repository that can hold our checkpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitDirs {
    /// The worktree's own. Absolute.
    pub git_dir: PathBuf,
    /// The one with objects and shared refs. Absolute; often the same.
    pub common_dir: PathBuf,
    /// How objects are named.
    pub hash: HashKind,
}

/// The kind of root that the directory `worktree` is.
pub fn kind_of(worktree: &Path) -> RootKind {
    look(worktree).0
}

/// The kind of root, and the repository that was found.
pub fn look(worktree: &Path) -> (RootKind, Option<GitDirs>) {
    match git_dirs(worktree) {
        Ok(Some(dirs)) => {
            let (git_dir, common_dir) = (dirs.git_dir.clone(), dirs.common_dir.clone());
            (RootKind::Git { git_dir, common_dir }, Some(dirs))
        }
        Ok(None) => (RootKind::Plain { why: None }, None),
        Err(why) => (RootKind::Plain { why: Some(why) }, None),
    }
}

/// Finds the repository with its worktree at `worktree`, which must be canonical. `None` if
/// there is none.
///
/// # Errors
///
/// Why the repository cannot be used, as a message fragment.
pub fn git_dirs(worktree: &Path) -> Result<Option<GitDirs>, String> {
    let dot_git = worktree.join(".git");
    let git_dir = match fs::metadata(&dot_git) {
        Err(_) if fs::symlink_metadata(&dot_git).is_err() => return Ok(None),
        Err(err) => return Err(format!("cannot look at `.git`: {err}")),
        Ok(found) if found.is_dir() => dot_git,
        Ok(found) if found.is_file() => pointer(&dot_git, worktree, b"gitdir: ")?
            .ok_or("`.git` does not say where the repository is")?,
        Ok(_) => return Err("`.git` is neither a directory nor a file".to_owned()),
    };
    let git_dir = fs::canonicalize(&git_dir).map_err(|err| format!("its git directory: {err}"))?;
    let common_dir = match pointer(&git_dir.join("commondir"), &git_dir, b"")? {
        Some(dir) => {
            fs::canonicalize(dir).map_err(|err| format!("its common git directory: {err}"))?
        }
        None => git_dir.clone(),
    };
    inspect(worktree, &git_dir, &common_dir).map(Some)
}

/// Checks whether a known pair of git directories can be used for `worktree` now.
///
/// # Errors
///
/// Why not, as a message fragment.
pub fn inspect(worktree: &Path, git_dir: &Path, common_dir: &Path) -> Result<GitDirs, String> {
    ours(git_dir)?;
    let head = read(&git_dir.join("HEAD"), POINTER_MAX_BYTES)?.ok_or("it has no HEAD")?;
    if head.is_empty() {
        return Err("its HEAD is empty".to_owned());
    }
    let config = usable(common_dir)?;
    // Settings for the main worktree do not apply to linked ones.
    if git_dir == common_dir {
        main_worktree(&config, worktree, git_dir)?;
        let own = read(&git_dir.join("config.worktree"), CONFIG_MAX_BYTES)?.unwrap_or_default();
        main_worktree(&parse(&own)?, worktree, git_dir)?;
    }
    let hash = hash_of(&config)?;
    let (git_dir, common_dir) = (git_dir.to_owned(), common_dir.to_owned());
    Ok(GitDirs { git_dir, common_dir, hash })
}

/// Marks the text of a symlink in records of `.git` files.
pub const LINK: &[u8] = b"link: ";

/// The repository that something called `.git` leads to: the git directory that all its worktrees
/// share, and the text of the file (or [`LINK`] and the target, for a symlink). `None` if it leads
/// to none.
pub fn repository_at(dot_git: &Path) -> Option<(PathBuf, Option<Vec<u8>>)> {
    let found = fs::symlink_metadata(dot_git).ok()?;
    if found.is_dir() || found.is_symlink() {
        let git_dir = fs::canonicalize(dot_git).ok().filter(|dir| dir.is_dir())?;
        let link = fs::read_link(dot_git).ok();
        let text = link.map(|text| [LINK, text.as_os_str().as_bytes()].concat());
        // A damaged repository still has its history.
        return Some((common_dir_of(&git_dir).unwrap_or(git_dir), text));
    }
    if !found.is_file() {
        return None;
    }
    let text = read(dot_git, POINTER_MAX_BYTES).ok()??;
    let git_dir = pointer(dot_git, dot_git.parent()?, b"gitdir: ").ok()??;
    let git_dir = fs::canonicalize(git_dir).ok()?;
    common_dir_of(&git_dir).map(|dir| (dir, Some(text)))
}

/// Whether a directory is a git directory, whatever it is called.
pub fn is_git_dir(dir: &Path) -> bool {
    let found = |name: &str| fs::symlink_metadata(dir.join(name)).ok();
    found("HEAD").is_some_and(|head| head.is_file())
        && ["objects", "refs"].iter().all(|name| found(name).is_some_and(|it| it.is_dir()))
}

/// The text of a `.git` file or symlink, in the form of [`repository_at`], wherever it leads. `None`
/// for anything else.
pub fn pointer_text(dot_git: &Path) -> Option<Vec<u8>> {
    let found = fs::symlink_metadata(dot_git).ok()?;
    if found.is_symlink() {
        let target = fs::read_link(dot_git).ok()?;
        return Some([LINK, target.as_os_str().as_bytes()].concat());
    }
    read(dot_git, POINTER_MAX_BYTES).ok()?.filter(|_| found.is_file())
}

/// The directory with objects and shared refs behind a git directory. That of a submodule lies in
/// its superproject's.
fn common_dir_of(git_dir: &Path) -> Option<PathBuf> {
    let common = pointer(&git_dir.join("commondir"), git_dir, b"").ok()?;
    let common = match common {
        Some(dir) => fs::canonicalize(dir).ok()?,
        None => git_dir.to_owned(),
    };
    let above = common.ancestors().skip(1).find(|above| {
        above.file_name() == Some(OsStr::new(".git")) && common.starts_with(above.join("modules"))
    });
    let common = above.map_or(common.clone(), Path::to_owned);
    common.join("objects").is_dir().then_some(common)
}

/// The hash function of a repository, as far as its configuration can be read.
pub fn hash_kind_of(common_dir: &Path) -> HashKind {
    let config = inspect_config(common_dir);
    config.and_then(|config| hash_of(&config)).unwrap_or(HashKind::Sha1)
}

/// Reads a repository's own configuration.
///
/// # Errors
///
/// Why it cannot be read, as a message fragment.
pub fn inspect_config(common_dir: &Path) -> Result<gix::config::File, String> {
    parse(&read(&common_dir.join("config"), CONFIG_MAX_BYTES)?.unwrap_or_default())
}

/// Checks what all worktrees of a repository share; returns its configuration.
fn usable(common_dir: &Path) -> Result<gix::config::File, String> {
    let objects = common_dir.join("objects");
    let refs = common_dir.join("refs");
    for dir in [common_dir, &objects, &refs] {
        ours(dir)?;
    }
    if refs.is_symlink() {
        return Err("its refs are those of another repository".to_owned());
    }
    regular_or_absent(&common_dir.join("packed-refs"))?;
    alternates(&objects, 0)?;
    let bytes = read(&common_dir.join("config"), CONFIG_MAX_BYTES)?.unwrap_or_default();
    let config = parse(&bytes)?;
    extensions(&config, version(&config)?)?;
    Ok(config)
}

/// Reads a file that names a directory, absolute or relative to `base`; `None` if there is none,
/// or if it does not begin with `prefix`.
fn pointer(path: &Path, base: &Path, prefix: &[u8]) -> Result<Option<PathBuf>, String> {
    let Some(bytes) = read(path, POINTER_MAX_BYTES)? else { return Ok(None) };
    let Some(target) = bytes.trim_ascii_end().strip_prefix(prefix) else { return Ok(None) };
    if target.is_empty() || target.contains(&0) {
        return Ok(None);
    }
    Ok(Some(base.join(OsStr::from_bytes(target))))
}

fn read(path: &Path, size_max: u64) -> Result<Option<Vec<u8>>, String> {
    use std::error::Error as _;
    read_small(path, size_max).map_err(|err| {
        let why = err.source().map(ToString::to_string).unwrap_or_default();
        format!("{err}: {why}")
    })
}

/// Whether we can write in `dir` without creating files of the wrong owner. Root can write
/// anywhere, and would leave objects that the owner's git cannot change.
fn ours(dir: &Path) -> Result<(), String> {
    let name = dir.display();
    let found = fs::metadata(dir).map_err(|err| format!("`{name}`: {err}"))?;
    if !found.is_dir() {
        return Err(format!("`{name}` is not a directory"));
    }
    if !is_own(&found) {
        return Err(format!("`{name}` belongs to another user"));
    }
    may_write(dir).map_err(|err| format!("`{name}` cannot be written: {err}"))
}

fn regular_or_absent(path: &Path) -> Result<(), String> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(format!("`{}` is not a file", path.display())),
        Ok(found) if found.len() > PACKED_REFS_MAX_BYTES => {
            Err(format!("`{}` is larger than any such file", path.display()))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Follows the alternates as git does, so that no pipe among them can block us.
fn alternates(objects: &Path, depth: usize) -> Result<(), String> {
    if depth > ALTERNATES_DEPTH_MAX {
        return Err("its alternates are nested too deep".to_owned());
    }
    let Some(list) = read(&objects.join("info/alternates"), CONFIG_MAX_BYTES)? else {
        return Ok(());
    };
    for line in list.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        if line[0] == b'"' {
            return Err("an alternate has a quoted name".to_owned());
        }
        if line[0] != b'#' {
            alternates(&objects.join(OsStr::from_bytes(line)), depth + 1)?;
        }
    }
    Ok(())
}

/// The version of the repository's format.
fn version(config: &gix::config::File) -> Result<u32, String> {
    let version = config.string("core.repositoryformatversion").unwrap_or_else(|| "0".into());
    match &version[..] {
        b"0" => Ok(0),
        b"1" => Ok(1),
        other => Err(format!("its format {} is unknown", String::from_utf8_lossy(other))),
    }
}

fn hash_of(config: &gix::config::File) -> Result<HashKind, String> {
    match config.string("extensions.objectformat").as_deref().map(|format| &format[..]) {
        None | Some(b"sha1") => Ok(HashKind::Sha1),
        Some(b"sha256") if version(config)? == 1 => Ok(HashKind::Sha256),
        Some(other) => {
            Err(format!("its object format {} is unknown", String::from_utf8_lossy(other)))
        }
    }
}

/// Refuses unknown extensions. In format 0 git ignores most of them; refusing is safe in both
/// formats.
fn extensions(config: &gix::config::File, version: u32) -> Result<(), String> {
    const KNOWN: [&str; 8] = [
        "noop", "noop-v1", "partialclone", "preciousobjects", "worktreeconfig", "objectformat",
        "relativeworktrees", "refstorage",
    ];
    let Some(sections) = config.sections_by_name("extensions") else { return Ok(()) };
    for section in sections {
        for name in section.value_names() {
            let name = name.to_ascii_lowercase();
            if version == 1 && !KNOWN.contains(&name.as_str()) {
                return Err(format!("its extension `{name}` is unknown"));
            }
        }
    }
    match config.string("extensions.refstorage") {
        Some(kind) if !kind.eq_ignore_ascii_case(b"files") => {
            Err(format!("its refs are kept as {}", String::from_utf8_lossy(&kind)))
        }
        Some(_) | None => Ok(()),
    }
}

fn main_worktree(
    config: &gix::config::File,
    worktree: &Path,
    git_dir: &Path,
) -> Result<(), String> {
    match config.boolean("core.bare") {
        Ok(None | Some(false)) => (),
        Ok(Some(true)) => return Err("it is bare".to_owned()),
        Err(_) => return Err("`core.bare` is neither true nor false".to_owned()),
    }
    let Some(elsewhere) = config.string("core.worktree") else { return Ok(()) };
    match fs::canonicalize(git_dir.join(OsStr::from_bytes(&elsewhere))) {
        Ok(path) if path == worktree => Ok(()),
        Ok(_) | Err(_) => Err("`core.worktree` points elsewhere".to_owned()),
    }
}

fn parse(bytes: &[u8]) -> Result<gix::config::File, String> {
    let options = gix::config::file::init::Options { lossy: true, ..Default::default() };
    gix::config::File::from_bytes_no_includes(bytes, gix::config::file::Metadata::api(), options)
        .map_err(|err| format!("its configuration cannot be read: {err}"))
}
