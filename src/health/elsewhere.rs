//! Calls of an agent that are held in another state directory than ours.

use std::path::Path;

use super::{Evidence, HealthQuery};
use crate::{
    install::{self, InstallRow, Off},
    ui,
};

impl Evidence<'_, '_> {
    /// Where the calls of an agent are held, if its variables name another state directory than ours.
    pub(super) fn held_elsewhere(&self, row: &InstallRow, query: HealthQuery<'_>) -> Option<Off> {
        let mut variables = install::variables(row, self.process, query.root);
        let (dir, file) = variables.remove("BEFOREHAND_HOME")?;
        if !Path::new(&dir).is_absolute() || Path::new(&dir) == self.state.dir() {
            return None;
        }
        let [dir, file] = [Path::new(&dir), &file]
            .map(|path| ui::path(path, self.home().as_deref()).into_owned());
        Some(Off {
            message: format!(
                "its calls are held in {dir}, by `BEFOREHAND_HOME` in the variables of {file}"
            ),
            hint: format!(
                "take `BEFOREHAND_HOME` out of {file}, or set it to {dir} for yourself too"
            ),
        })
    }
}
