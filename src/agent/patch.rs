//! Patches in the envelope of `apply_patch`: which files one touches.
//!
//! To report a file that a patch does not touch is harmless; to miss one is not. So a header counts wherever it stands
//! alone on a line, however indented, as the most forgiving of the programs that apply patches
//! would have it; the lines of a file's content begin with `+`, `-` or a blank and so differ.

use std::path::PathBuf;

/// Headers that name a file. A moved one is named twice: where it was and where it goes.
const FILES: &[&str] = &["Add File:", "Update File:", "Delete File:", "Move to:", "Move File:"];

/// Headers that name none.
const FRAME: &[&str] = &["Begin Patch", "End Patch", "End of File", "Environment ID:"];

/// Every path a patch names, in order, each once. None if it names none, or if it has a header we
/// do not know.
pub(super) fn paths(patch: &str) -> Option<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for line in patch.lines() {
        let Some(header) = line.trim().strip_prefix("*** ") else { continue };
        match FILES.iter().find_map(|kind| header.strip_prefix(kind)) {
            Some(name) => take(name.trim(), &mut paths)?,
            // Indented, it may be a line of the file around a change.
            None if !line.starts_with("***") => {}
            None if FRAME.iter().any(|frame| header.starts_with(frame)) => {}
            None => return None,
        }
    }
    Some(paths).filter(|paths| !paths.is_empty())
}

/// Takes one path, if it can exist.
fn take(name: &str, paths: &mut Vec<PathBuf>) -> Option<()> {
    if name.is_empty() || name.contains('\0') {
        return None;
    }
    if !paths.iter().any(|known| known.as_os_str() == name) {
        paths.push(PathBuf::from(name));
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(patch: &str) -> Option<Vec<String>> {
        let paths = paths(patch)?;
        Some(paths.iter().map(|path| path.display().to_string()).collect())
    }

    #[test]
    fn every_kind_of_change_names_its_files() {
        let patch = "*** Begin Patch\n*** Environment ID: e1\n*** Add File: sub/new.txt\n+hello\n\
            +*** Delete File: content.txt\n*** Update File: a b.txt\r\n*** Move to: c.txt\n@@ fn x\n\
            -old\n+new\n*** End of File\n*** Delete File: /abs/d.txt\n*** End Patch\n";
        let expected = ["sub/new.txt", "a b.txt", "c.txt", "/abs/d.txt"];
        assert_eq!(named(patch).unwrap(), expected);
    }

    #[test]
    fn an_indented_header_counts_too() {
        let patch = "*** Begin Patch\n  *** Update File: a\n@@\n *** Warning: context\n-b\n+c\n";
        assert_eq!(named(patch).unwrap(), ["a"]);
    }

    #[test]
    fn a_patch_we_do_not_understand_names_nothing() {
        for patch in [
            "",
            "*** Begin Patch\n*** End Patch\n",
            "--- a/x\n+++ b/x\n",
            "*** Begin Patch\n*** Add File:\n*** End Patch\n",
            "*** Begin Patch\n*** Add File: a\n*** Link File: b\n*** End Patch\n",
        ] {
            assert_eq!(named(patch), None, "{patch:?}");
        }
    }
}
