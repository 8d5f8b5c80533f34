//! The files in a git directory that no repository's checkpoint holds.

/// The names of a path, below the outermost git directory on it; `None` if the path leads into none.
pub fn names_in_git(path: &[u8]) -> Option<Vec<&[u8]>> {
    let mut names = path.split(|&byte| byte == b'/');
    names.find(|name| *name == b".git")?;
    Some(names.collect())
}

/// Whether the file with these names below a git directory stays out when the repository is held: a lock, what
/// tells of a process, or a file among the objects that is none. What git can derive from the objects counts as
/// one of them.
pub fn is_beside_repository(names: &[&[u8]]) -> bool {
    let Some((name, above)) = names.split_last() else { return false };
    let is_ref = above.iter().any(|name| matches!(*name, b"refs" | b"logs"));
    if name.ends_with(b".lock") {
        return true;
    }
    if is_ref {
        return false;
    }
    if *name == b"gc.pid" || name.starts_with(b"fsmonitor--daemon") {
        return true;
    }
    let Some(at) = above.iter().position(|name| *name == b"objects") else { return false };
    // The files of git's extensions have arbitrary names.
    let is_extension = at > 0 && matches!(above[at - 1], b"lfs" | b"annex");
    !is_extension && !is_of_objects(&names[at + 1..])
}

/// Whether a path leads to a place of git's own, which only a repository's checkpoint brings back: anything in a
/// git directory but what is no object among the objects.
pub fn is_gits_own(path: &[u8]) -> bool {
    let Some(names) = names_in_git(path) else { return false };
    let is_transient = |name: &&[u8]| name.ends_with(b".lock") || *name == b"gc.pid";
    let is_among_objects = names.iter().rev().skip(1).any(|name| *name == b"objects");
    !is_among_objects || !is_beside_repository(&names) || names.last().is_some_and(is_transient)
}

/// Whether git makes a file of this path below `objects`: an object, a pack and its companions, or a list of
/// them that it can make again.
fn is_of_objects(below: &[&[u8]]) -> bool {
    match below {
        [b"info", rest @ ..] => {
            matches!(rest, [b"alternates" | b"commit-graph" | b"packs"] | [b"commit-graphs", _])
        }
        [b"pack", name] => {
            let is_pack = name.starts_with(b"pack-") && !name.ends_with(b".keep");
            is_pack || name.starts_with(b"multi-pack-index")
        }
        [fan, rest] => {
            fan.len() == 2 && matches!(rest.len(), 38 | 62) && is_hex(fan) && is_hex(rest)
        }
        _ => false,
    }
}

fn is_hex(name: &[u8]) -> bool {
    name.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_repository_holds_is_told_by_its_path() {
        let is = |path: &str| is_beside_repository(&names_in_git(path.as_bytes()).unwrap());
        let object = "0123456789abcdef0123456789abcdef012345";
        for path in [
            ".git/index.lock",
            ".git/refs/heads/main.lock",
            ".git/gc.pid",
            ".git/objects/pack/tmp_pack_1",
            ".git/objects/pack/pack-1.keep",
            ".git/objects/pack/note.txt",
            ".git/objects/info/mine",
            ".git/objects/ab/short",
            ".git/objects/notes",
            ".git/modules/lib/objects/notes",
            "nest/.git/objects/deep/er/notes",
        ] {
            assert!(is(path), "{path}");
        }
        for path in [
            ".git",
            ".git/config",
            ".git/refs/heads/objects/notes",
            ".git/refs/heads/gc.pid",
            ".git/lfs/objects/ab/cd/abcd",
            &format!(".git/objects/ab/{object}"),
            ".git/objects/pack/pack-1.idx",
            ".git/objects/info/commit-graph",
        ] {
            assert!(!is(path), "{path}");
        }
        assert!(!is_gits_own(b"a/.git/objects/notes"));
        for path in [
            ".git",
            ".git/objects",
            ".git/index.lock",
            ".git/objects/pack/pack-1.lock",
            ".git/hooks/x",
        ] {
            assert!(is_gits_own(path.as_bytes()), "{path}");
        }
        assert_eq!(names_in_git(b"objects/notes"), None);
        assert_eq!(names_in_git(b"a.git/objects/notes"), None);
        assert_eq!(names_in_git(b".GIT/config"), None, "that is a directory like any other");
    }
}
