//! Makes the repositories of a checkpoint in another directory, each on its own: nothing in them leads
//! back to the user's repositories, and nothing is written there.
//!
//! The root's own repository comes as `.git`, also where the root was a linked worktree or a submodule: its
//! part of the shared git directory then becomes the main one. A nested repository comes where it was. Files
//! that lead to a repository lead to its copy. Linked worktrees outside the root stay with the original.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{
    Build, Held, PrivateRepository,
    held_paths::{led_to, part_at, place_of},
    open_up, remove_tree, write_pointer,
};
use crate::{
    error::{Error, Result},
    fs::{read_small, replace_with},
    model::CheckpointId,
    state::StateDir,
    store::record::Record,
};

/// Larger than any handwritten configuration.
const CONFIG_MAX_BYTES: u64 = 4 << 20;

/// What is one worktree's own in a git directory, besides files with names in capitals.
const OF_A_WORKTREE: [&str; 8] = [
    "index", "config.worktree", "rebase-merge", "rebase-apply", "sequencer", "refs/bisect",
    "refs/worktree", "logs/HEAD",
];

/// Makes the repositories of `record`, a checkpoint of `root`, below the directory `to`. Returns where
/// they are, relative to it.
///
/// # Errors
///
/// Fails if the private repositories lack something, or if something cannot be written. What was made by
/// then stays.
pub fn fork(
    state: &StateDir,
    root: &Path,
    record: &Record,
    to: &Path,
) -> Result<BTreeSet<PathBuf>> {
    let mut made = BTreeSet::new();
    let is_own = |held: &&Held| record.store.as_deref() == Some(&held.store);
    let (own, others): (Vec<&Held>, Vec<&Held>) = record.repositories.iter().partition(is_own);
    for held in own.into_iter().chain(others) {
        let Some(copy) = RepositoryCopy::of(root, held, record) else { continue };
        let site = to.join(&copy.site);
        if site.symlink_metadata().is_ok() {
            continue;
        }
        copy.make(state, root, record, &site)?;
        copy.lead_there(to, &site)?;
        made.insert(copy.site);
    }
    Ok(made)
}

/// Where [`fork`] would make them.
pub fn fork_sites(root: &Path, record: &Record) -> BTreeSet<PathBuf> {
    let copies = record.repositories.iter().filter_map(|it| RepositoryCopy::of(root, it, record));
    copies.map(|copy| copy.site).collect()
}

/// One repository that is made again elsewhere.
struct RepositoryCopy<'a> {
    held: &'a Held,
    /// Where it was. Absolute.
    place: PathBuf,
    /// Where it comes, relative to the new directory.
    site: PathBuf,
    /// The part of it that the site was, if that was no whole repository.
    part: Option<PathBuf>,
    /// Files below the root that led to other parts of it: their paths, relative to the root, and those parts.
    pointers: Vec<(PathBuf, PathBuf)>,
}

impl<'a> RepositoryCopy<'a> {
    /// `None` for a repository to which nothing in the root leads.
    fn of(root: &Path, held: &'a Held, record: &Record) -> Option<Self> {
        let place = place_of(root, held);
        let below = |path: &Path| path.strip_prefix(root).ok().map(Path::to_owned);
        let mut pointers: Vec<(PathBuf, PathBuf)> = Vec::new();
        for (path, text) in &held.pointers {
            let pointer = root.join(OsStr::from_bytes(path));
            let part = text
                .strip_prefix(b"gitdir: ")
                .and_then(|_| part_at(&place, &led_to(&pointer, text)))
                .unwrap_or_default();
            pointers.extend(below(&pointer).map(|pointer| (pointer, part)));
        }
        pointers.sort();
        let own = PathBuf::from(".git");
        let is_own = record.store.as_deref() == Some(&held.store);
        let (site, part) = match below(&place) {
            Some(site) if !site.as_os_str().is_empty() && (!is_own || site == own) => (site, None),
            // The root is a git directory itself: its files are those of the checkpoint.
            Some(site) if site.as_os_str().is_empty() => return None,
            Some(_) | None => {
                let at = pointers.iter().position(|(pointer, _)| *pointer == own);
                let led = at.or((!pointers.is_empty()).then_some(0)).map(|at| pointers.remove(at));
                let (site, part) = led.or(is_own.then(|| (own, PathBuf::new())))?;
                (site, Some(part).filter(|part| !part.as_os_str().is_empty()))
            }
        };
        Some(Self { held, place, site, part, pointers })
    }

    fn make(&self, state: &StateDir, root: &Path, record: &Record, site: &Path) -> Result<()> {
        let private = PrivateRepository::named(state, &self.held.store);
        let parent = site.parent().unwrap_or(root);
        fs::create_dir_all(parent).map_err(Error::io("make the directory", parent))?;
        open_up(&private.linked());
        let repo = private.repo();
        Build::new(&private, &repo, self.held)?.whole(site, root, record)?;
        if let Some(part) = &self.part {
            self.promote(record.checkpoint.id, site, part)?;
        }
        self.leave_worktrees(site)?;
        for lock in ["index.lock", "HEAD.lock", "config.lock", "packed-refs.lock"] {
            let _there_is_none = fs::remove_file(site.join(lock));
        }
        for name in ["config", "config.worktree"] {
            stand_alone(&site.join(name), None)?;
        }
        Ok(())
    }

    /// Makes a linked worktree's part of a git directory its main one, or a submodule's part all of it.
    fn promote(&self, id: CheckpointId, site: &Path, part: &Path) -> Result<()> {
        let of = site.join(part);
        if !of.is_dir() {
            return Err(Error::damaged(
                self.place.display().to_string(),
                format!("its part `{}` is not held", part.display()),
            ));
        }
        if part.parent().is_none_or(|above| !above.ends_with("worktrees")) {
            let aside = super::beside(id, site, super::OLD);
            let swapped = fs::rename(&of, &aside).and_then(|()| remove_tree(site));
            return swapped
                .and_then(|()| fs::rename(&aside, site))
                .map_err(Error::io("make", site));
        }
        for name in own_names(site)? {
            remove_tree(&site.join(name)).map_err(Error::io("remove", site))?;
        }
        for name in own_names(&of)? {
            let to = site.join(&name);
            if let Some(above) = to.parent() {
                fs::create_dir_all(above).map_err(Error::io("make the directory", above))?;
            }
            fs::rename(of.join(&name), &to).map_err(Error::io("make", &to))?;
        }
        Ok(())
    }

    /// Leaves out the parts of linked worktrees that are not in the new directory: `git worktree remove`
    /// would remove the original's.
    fn leave_worktrees(&self, site: &Path) -> Result<()> {
        let worktrees = site.join("worktrees");
        let is_led_to = |name: &OsStr| {
            self.pointers.iter().any(|(_, part)| *part == Path::new("worktrees").join(name))
        };
        for name in super::names_of(&worktrees).unwrap_or_default() {
            if !is_led_to(&name) {
                let path = worktrees.join(name);
                remove_tree(&path).map_err(Error::io("remove", &path))?;
            }
        }
        let _if_empty = fs::remove_dir(&worktrees);
        Ok(())
    }

    /// Writes the files that lead to parts of the copy, and what leads back from there.
    fn lead_there(&self, to: &Path, site: &Path) -> Result<()> {
        for (pointer, part) in &self.pointers {
            let (pointer, target) = (to.join(pointer), site.join(part));
            if pointer.symlink_metadata().is_ok() || !target.is_dir() {
                continue;
            }
            let above = pointer.parent().unwrap_or(to);
            let way = relative(above, &target);
            let text = [b"gitdir: ", way.as_os_str().as_bytes(), b"\n"].concat();
            write_pointer(&pointer, &text)?;
            let back = target.join("gitdir");
            if back.symlink_metadata().is_ok() {
                let text = [pointer.as_os_str().as_bytes(), b"\n"].concat();
                replace_with(&back, &text, 0o644)?;
            } else {
                stand_alone(&target.join("config"), Some(&relative(&target, above)))?;
            }
        }
        Ok(())
    }
}

/// What belongs to one worktree, of what is in a git directory.
fn own_names(git_dir: &Path) -> Result<Vec<PathBuf>> {
    let all = super::names_of(git_dir).map_err(Error::io("list", git_dir))?;
    let is_capital = |name: &OsStr| {
        name.as_bytes().iter().all(|byte| byte.is_ascii_uppercase() || *byte == b'_')
    };
    let capitals = all.into_iter().filter(|name| is_capital(name)).map(PathBuf::from);
    let named = OF_A_WORKTREE.map(PathBuf::from).into_iter();
    let is_there = |name: &PathBuf| git_dir.join(name).symlink_metadata().is_ok();
    Ok(capitals.chain(named).filter(is_there).collect())
}

/// Makes a configuration that of a repository beside its own work tree: one that names the original's would
/// have git work there. A `worktree` is written if it had one and belongs to a submodule.
fn stand_alone(config: &Path, worktree: Option<&Path>) -> Result<()> {
    use gix::config::File;
    let Some(bytes) = read_small(config, CONFIG_MAX_BYTES)? else { return Ok(()) };
    let options = gix::config::file::init::Options::default();
    let meta = gix::config::file::Metadata::api();
    let parsed = File::from_bytes_no_includes(&bytes, meta, options);
    // One that git cannot read either is as it was.
    let Ok(mut parsed) = parsed else { return Ok(()) };
    let ids: Vec<_> = parsed
        .sections_and_ids_by_name("core")
        .into_iter()
        .flatten()
        .filter(|(section, _)| section.header().subsection_name().is_none())
        .map(|(_, id)| id)
        .collect();
    let mut is_changed = false;
    for id in ids {
        let Some(mut core) = parsed.section_mut_by_id(id) else { continue };
        let mut had_worktree = false;
        while core.remove("worktree").is_some() {
            (had_worktree, is_changed) = (true, true);
        }
        if let (true, Some(worktree)) = (had_worktree, worktree) {
            let _it_takes_any = core.push("worktree", worktree.as_os_str().as_bytes());
        }
        let is_bare = core.value("bare").is_some_and(|bare| !bare.eq_ignore_ascii_case(b"false"));
        if is_bare && worktree.is_none() {
            while core.remove("bare").is_some() {}
            let _it_takes_any = core.push("bare", "false");
            is_changed = true;
        }
    }
    if is_changed { replace_with(config, &parsed.to_bstring(), 0o644) } else { Ok(()) }
}

/// The path that leads from the directory `from` to `to`; both are absolute.
fn relative(from: &Path, to: &Path) -> PathBuf {
    let common = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    let up = from.components().skip(common).map(|_| Path::new(".."));
    up.chain(to.components().skip(common).map(|part| Path::new(part.as_os_str()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_path_leads_from_one_directory_to_another() {
        let lead = |from: &str, to: &str| relative(Path::new(from), Path::new(to));
        assert_eq!(lead("/a/sub", "/a/.git/modules/sub"), Path::new("../.git/modules/sub"));
        assert_eq!(lead("/a/.git/modules/sub", "/a/sub"), Path::new("../../../sub"));
        assert_eq!(lead("/a", "/a/.git"), Path::new(".git"));
    }
}
