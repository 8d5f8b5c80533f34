//! Files that become private after a checkpoint has held them as public ones.
//!
//! The checkpoint keeps its tree, but below its private part: no ref that may be pushed reaches the file any more.

use std::collections::HashMap;

use gix::ObjectId;

use super::{super::read_listing, Listing, ObjectWriter, Save, add_tree};
use crate::{
    error::Result,
    model::{Directory, Kind, RelPath},
    store::plumbing::{
        refs,
        repo::{Repo, content_id},
        tree::{self, PrivatePart},
    },
};

impl Save<'_> {
    /// Moves each checkpoint with a public file at a path that is private now. Call it before the new checkpoint
    /// has its name: only the comparison with the newest one tells which paths are newly private.
    pub(super) fn retract(&self, below: &Listing) -> Result<()> {
        let newest = self.newest.as_ref().and_then(|newest| newest.record.as_ref());
        let known = match newest.and_then(|record| record.overlay) {
            Some(id) => read_listing(&self.repo, &id).unwrap_or_default(),
            None => Listing::new(),
        };
        let new = below.keys().filter(|path| !known.contains_key(*path));
        let paths: Vec<RelPath> = new.filter_map(|path| RelPath::from_bytes(path).ok()).collect();
        if paths.is_empty() || newest.is_none() {
            return Ok(());
        }
        let mut directories = HashMap::new();
        let writer = ObjectWriter::new(&self.repo);
        let mut moved = Vec::new();
        for name in refs::public(&self.repo)? {
            let Some(tree) = refs::read(&self.repo, &name)? else { continue };
            let Ok((parts, _)) = tree::read_parts(&self.repo, tree) else { continue };
            let Some(files) = parts.files else { continue };
            if !paths.iter().any(|path| has_path(&self.repo, &mut directories, files, path)) {
                continue;
            }
            let private_name = refs::private_of(&name);
            let Some(private) = refs::read(&self.repo, &private_name)? else { continue };
            let part = tree::private_part(&self.repo, private)?;
            let part = PrivatePart { public: Some(tree), ..part };
            moved.push((name, private_name, add_tree(&self.repo, &writer, part.entries())?));
        }
        if moved.is_empty() {
            return Ok(());
        }
        writer.finish()?;
        for (_, private_name, part) in &moved {
            refs::set(&self.repo, private_name, *part)?;
        }
        let names: Vec<String> = moved.into_iter().map(|(name, _, _)| name).collect();
        refs::delete(&self.repo, &names)
    }
}

fn has_path(
    repo: &Repo,
    directories: &mut HashMap<ObjectId, Directory>,
    top: ObjectId,
    path: &RelPath,
) -> bool {
    let mut directory = top;
    let mut names = path.names().peekable();
    while let Some(name) = names.next() {
        let entries = directories
            .entry(directory)
            .or_insert_with(|| tree::read(repo, &content_id(&directory)).unwrap_or_default());
        match entries.get(name) {
            Some(_) if names.peek().is_none() => return true,
            Some(entry) if entry.kind == Kind::Directory => match entry.content {
                Some(content) => directory = repo.object_id(&content.id),
                None => return false,
            },
            Some(_) | None => return false,
        }
    }
    false
}
