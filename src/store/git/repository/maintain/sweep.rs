//! What no checkpoint needs is freed: objects of ours, and whole private repositories.

use std::{
    collections::HashSet,
    fs, io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    time::Instant,
};

use gix::ObjectId;

use super::{
    Marks, Pack, Private, REWRITTEN_MAX_BYTES, Repo, below, copy_rows, loose_in, names_of,
    own_packs, refs, remove_pack, rows_of, size_on_disk,
};
use crate::{
    crash,
    error::{Error, Result},
    fs::Lock,
    model::ContentId,
    state::State,
};

/// Frees objects of ours that neither a ref nor a record needs, and repositories that no record
/// names. `needed` are the trees that records name, by the names of repositories, as they are now.
/// Returns how many bytes that freed.
///
/// # Errors
///
/// Fails if somebody saves all the while, or something cannot be read or removed.
pub(in crate::store) fn sweep(
    state: &State,
    deadline: Instant,
    needed: &dyn Fn() -> Result<Needed>,
) -> Result<u64> {
    let mut freed = 0;
    for private in Private::all(state)? {
        let lock = private.dir().join("maintenance.lock");
        let _only_one = match Lock::acquire(&lock, Instant::now()) {
            Ok(lock) => lock,
            Err(Error::Busy { .. }) => continue,
            Err(err) => return Err(err),
        };
        freed += sweep_one(&private, deadline, needed)?;
    }
    Ok(freed)
}

/// Trees that records name, by the names of the private repositories they are in.
pub(in crate::store) type Needed = HashSet<(String, ContentId)>;

fn sweep_one(
    private: &Private,
    deadline: Instant,
    needed: &dyn Fn() -> Result<Needed>,
) -> Result<u64> {
    let repo = private.repo();
    let name = private.name();
    let is_idle = |repo: &Repo| -> Result<bool> {
        let names = refs::all(repo)?;
        let is_named = needed()?.iter().any(|(store, _)| store == name);
        Ok(!is_named && names.iter().all(|name| !name.starts_with("refs/checkpoints/")))
    };
    if is_idle(&repo)? {
        let _alone = private.alone(deadline)?;
        if is_idle(&repo)? {
            return remove_repository(private);
        }
    }
    // Whatever became of its ref, what a record names is needed.
    let of_records = |marks: &mut Marks, repo: &Repo| -> Result<Needed> {
        let needed = needed()?;
        for (_, tree) in needed.iter().filter(|(store, _)| store == name) {
            let tree = repo.object_id(tree);
            if repo.has(&tree) {
                below(repo, tree, &mut |id| marks.seen.insert(id))?;
            }
        }
        Ok(needed)
    };
    let mut marks = Marks::default();
    marks.look(&repo)?;
    let known = of_records(&mut marks, &repo)?;
    let dir = private.dir().join("objects");
    let packs = own_packs(&dir.join("pack"));
    let mut condemned = Vec::new();
    for (size, path) in packs {
        let rows = rows_of(&path, repo.hash)?;
        let dead: u64 = rows
            .iter()
            .filter(|(id, _, _)| !marks.seen.contains(id))
            .map(|(_, _, range)| range.end - range.start)
            .sum();
        let is_worth_it = dead > 0 && (size <= REWRITTEN_MAX_BYTES || dead > size / 4);
        if is_worth_it {
            condemned.push((path, rows));
        }
    }
    let loose: Vec<(PathBuf, ObjectId)> =
        loose_in(&dir).into_iter().filter(|(_, id)| !marks.seen.contains(id)).collect();
    let stale_holds = |repo: &Repo, needed: &Needed| -> Result<Vec<String>> {
        let held = |name: &String| {
            let id = ContentId::parse(name.strip_prefix("refs/repository/")?)?;
            (!needed.contains(&(private.name().to_owned(), id))).then(|| name.clone())
        };
        Ok(refs::all(repo)?.iter().filter_map(held).collect())
    };
    if condemned.is_empty() && loose.is_empty() && stale_holds(&repo, &known)?.is_empty() {
        return Ok(0);
    }
    // What stays of the condemned goes into a new pack first, while others save.
    let written = marks.seen.clone();
    let failed = |err| Error::io("free objects in", private.dir())(err);
    let mut added = 0;
    if condemned.iter().any(|(_, rows)| rows.iter().any(|(id, _, _)| written.contains(id))) {
        let mut pack = Pack::begin(&dir, repo.hash).map_err(failed)?;
        let mut seen = HashSet::new();
        for (path, _) in &condemned {
            copy_rows(path, repo.hash, &mut pack, |id| written.contains(id) && seen.insert(*id))
                .map_err(failed)?;
        }
        added = size_on_disk(&pack.finish().map_err(failed)?);
    }
    crash::point("sweep-pack");
    let _alone = private.alone(deadline)?;
    let fresh = repo.refreshed();
    marks.look(&fresh)?;
    let known = of_records(&mut marks, &fresh)?;
    for name in stale_holds(&repo, &known)? {
        refs::delete(&repo, &name)?;
    }
    let mut freed = 0;
    for (path, rows) in condemned {
        let is_needed_now =
            rows.iter().any(|(id, _, _)| marks.seen.contains(id) && !written.contains(id));
        if !is_needed_now {
            crash::point("sweep-object");
            freed += remove_pack(&path).map_err(failed)?;
        }
    }
    for (path, id) in loose {
        if !marks.seen.contains(&id) {
            crash::point("sweep-object");
            let size = size_on_disk(&path);
            fs::remove_file(&path).map_err(failed)?;
            freed += size;
        }
    }
    remove_unfinished(&dir);
    remove_locks(&private.dir().join("refs"));
    Ok(freed.saturating_sub(added))
}

fn remove_repository(private: &Private) -> Result<u64> {
    let freed = crate::store::own_bytes(private.dir());
    // Without its HEAD it is none, should this be cut off.
    let failed = |err| Error::io("remove", private.dir())(err);
    match fs::remove_file(private.dir().join("HEAD")) {
        Err(err) if err.kind() != io::ErrorKind::NotFound => return Err(failed(err)),
        Ok(()) | Err(_) => (),
    }
    crash::point("sweep-repository");
    crate::fs::remove_tree(private.dir()).map_err(failed)?;
    Ok(freed)
}

/// Removes unfinished files. For whoever is alone: nobody is writing one.
fn remove_unfinished(objects: &Path) {
    for dir in [objects.to_owned(), objects.join("pack")] {
        for name in names_of(&dir).unwrap_or_default() {
            if name.as_bytes().starts_with(b"tmp_") {
                let _gone = fs::remove_file(dir.join(name));
            }
        }
    }
}

/// Removes what is left of refs that somebody was killed over. For whoever is alone, too.
fn remove_locks(dir: &Path) {
    for name in names_of(dir).unwrap_or_default() {
        let path = dir.join(&name);
        if path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            remove_locks(&path);
        } else if name.as_bytes().ends_with(b".lock") {
            let _gone = fs::remove_file(path);
        }
    }
}
