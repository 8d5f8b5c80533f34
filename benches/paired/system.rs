//! What is compared: a few shell lines each, which see `$WT`, `$STORE`, `$ID` and `$BEFOREHAND`.

use std::{
    io,
    process::{Command, Stdio},
    time::Instant,
};

use crate::place::Place;

/// One of the two.
pub(crate) struct System {
    pub(crate) name: &'static str,
    /// Prints the id of a snapshot on its last line.
    pub(crate) snapshot: &'static str,
    pub(crate) restore: &'static str,
    pub(crate) list: &'static str,
}

/// Git's own commands, with an index of their own that stays warm; nothing is written if the tree
/// is the same as before.
pub(crate) const GIT: System = System {
    name: "git",
    snapshot: "export GIT_INDEX_FILE=$STORE/index
        [ -f $STORE/index ] || cp .git/index $STORE/index
        git add -A && tree=$(git write-tree) &&
        if [ \"$tree\" = \"$(cat $STORE/tree 2>/dev/null)\" ]; then cat $STORE/id
        else id=$(git commit-tree $tree -m s) && git update-ref refs/paired/$id $id &&
        echo $tree >$STORE/tree && echo $id | tee $STORE/id; fi",
    restore: "export GIT_INDEX_FILE=$STORE/index
        git add -A && git read-tree --reset -u $ID",
    list: "git for-each-ref --sort=-creatordate --count=50 refs/paired/",
};

/// A copy of everything, for a tree without a repository.
pub(crate) const COPY: System = System {
    name: "cp -a",
    snapshot: "cp -a $WT \"$STORE/copy\" && echo x",
    restore: "false",
    list: "false",
};

/// This very build.
pub(crate) const BEFOREHAND: System = System {
    name: "beforehand",
    snapshot: "$BEFOREHAND create",
    restore: "$BEFOREHAND restore $ID --yes --exact >$STORE/out",
    list: "$BEFOREHAND list --limit 50",
};

impl System {
    /// Runs a script and tells how long it took, in milliseconds. Keeps the id it printed.
    pub(crate) fn time(&self, place: &mut Place, script: &str) -> io::Result<f64> {
        let mut command = shell(place, script);
        let begin = Instant::now();
        let output = command.output()?;
        let wall = begin.elapsed().as_secs_f64() * 1e3;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(io::Error::other(format!("{}: {said}", self.name)));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        place.id = text.trim_end().lines().last().map_or(place.id.clone(), str::to_owned);
        Ok(wall)
    }
}

/// What the shell and a program that does nothing take, in milliseconds.
pub(crate) fn floor(place: &Place) -> io::Result<f64> {
    let mut command = shell(place, "/bin/true; echo");
    let begin = Instant::now();
    command.output()?;
    Ok(begin.elapsed().as_secs_f64() * 1e3)
}

fn shell(place: &Place, script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/empty.gitconfig");
    command.args(["-c", script]).current_dir(&place.tree).stdin(Stdio::null()).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    for (name, value) in [("WT", &place.tree), ("STORE", &place.store), ("HOME", &place.store)] {
        command.env(name, value);
    }
    command.env("BEFOREHAND_HOME", place.store.join("home")).env("ID", &place.id);
    command.env("BEFOREHAND", format!("{}{}", place.watcher, env!("CARGO_BIN_EXE_beforehand")));
    command.env("GIT_CONFIG_GLOBAL", fixture).env("GIT_CONFIG_SYSTEM", fixture);
    for who in ["AUTHOR", "COMMITTER"] {
        command
            .env(format!("GIT_{who}_NAME"), "b")
            .env(format!("GIT_{who}_EMAIL"), "b@example.org");
    }
    command
}
