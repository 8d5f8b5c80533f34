//! Describes what a checkpoint leaves out: by file, or by directory if there are many.

use std::collections::BTreeMap;

use super::{count, escape, size};
use crate::model::{SkipReason, Skipped};

/// From this number on, files of one directory left out for one reason are described by the
/// directory.
const TOGETHER_MIN: usize = 3;

/// One line for each part of `skipped`, the most important first: `data/ (12 files, 3.4 GB, over
/// …)`.
pub fn left_out(skipped: &[Skipped]) -> Vec<String> {
    let mut groups: BTreeMap<(bool, &[u8], SkipReason), Vec<&Skipped>> = BTreeMap::new();
    for one in skipped {
        let key = (!one.reason.matters(), directory_of(&one.path), one.reason);
        groups.entry(key).or_default().push(one);
    }
    let mut lines = Vec::new();
    for ((_, directory, reason), group) in groups {
        let is_told_together = group.len() >= TOGETHER_MIN && !directory.is_empty();
        if !is_told_together {
            lines.extend(group.iter().map(|one| line(&one.path, None, one.size, reason)));
            continue;
        }
        let bytes = group.iter().fold(0_u64, |sum, one| sum.saturating_add(one.size));
        lines.push(line(&[directory, b"/"].concat(), Some(group.len()), bytes, reason));
    }
    lines
}

fn line(path: &[u8], files: Option<usize>, bytes: u64, reason: SkipReason) -> String {
    let mut said = Vec::new();
    said.extend(files.map(|files| count(files as u64, "path")));
    said.extend((bytes > 0).then(|| size(bytes)));
    said.push(reason.words().to_owned());
    format!("{} ({})", escape(path), said.join(", "))
}

fn directory_of(path: &[u8]) -> &[u8] {
    path.iter().rposition(|&byte| byte == b'/').map_or(&[], |at| &path[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_files_of_a_directory_are_one_line() {
        let one = |path: &str, reason, size| Skipped { path: path.into(), reason, size };
        let mut skipped = vec![
            one("node_modules", SkipReason::MadeAgain, 0),
            one("a.db", SkipReason::TooLarge, 3_000_000_000),
            one("b\n.db", SkipReason::Ignored, 0),
        ];
        for number in 0..4 {
            skipped.push(one(&format!("data/{number}"), SkipReason::Ignored, 10_000_000));
        }
        skipped.push(one("data/big", SkipReason::TooLarge, 100_000_000));
        assert_eq!(
            left_out(&skipped),
            [
                "b\\n.db (ignored, and more than is held unasked)",
                "a.db (3.0 GB, too large to be held unasked)",
                "data/ (4 paths, 40.0 MB, ignored, and more than is held unasked)",
                "data/big (100.0 MB, too large to be held unasked)",
                "node_modules (can be made again)",
            ]
        );
    }
}
