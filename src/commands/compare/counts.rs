//! How much differs, in numbers and in words.

use crate::ui::{self, LineCounts};

/// How many files and lines differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Files, links and special files.
    pub(crate) files: u64,
    /// Repositories that are gone or others now, and files that led to one.
    pub(crate) repositories: u64,
    /// Lines of texts; `None` if some of what was there is not held.
    pub(crate) lines: Option<LineCounts>,
}

impl Counts {
    /// Both together.
    pub(crate) fn and(self, other: Self) -> Self {
        let lines = self.lines.zip(other.lines).map(|(mut lines, other)| {
            lines += other;
            lines
        });
        let repositories = self.repositories + other.repositories;
        Self { files: self.files + other.files, repositories, lines }
    }

    /// It in a few words.
    pub(crate) fn words(self) -> String {
        let Counts { files, repositories, lines } = self;
        let files = match (files, lines.filter(|lines| *lines != LineCounts::default())) {
            (0, _) => None,
            (files, None) => Some(ui::count(files, "file")),
            (files, Some(lines)) => Some(format!("{}  {lines}", ui::count(files, "file"))),
        };
        let gone = (repositories > 0).then(|| ui::count(repositories, "repository"));
        let said: Vec<String> = files.into_iter().chain(gone).collect();
        if said.is_empty() { "no file".to_owned() } else { said.join(", ") }
    }
}
