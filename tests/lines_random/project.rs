//! The project that lines are let loose on, and its neighbours, as the shell script that makes them.

use crate::support::dice::Dice;

pub(super) struct Project {
    /// Makes `shop`, `other` and `plain` in the current directory.
    pub(super) script: String,
    /// Whether `shop` is a repository.
    pub(super) is_git: bool,
    /// Whether calls are made in `shop/src`.
    pub(super) is_below: bool,
}

/// Files of every kind, in the root of a repository or of none.
const FILES: &str = r"
mkdir -p src/deep/a data/x data/y build dist drafts empty .cache private
printf 'int main() { return 0; }\n' >src/main.c; printf 'int util;\n' >src/util.c; echo deep >src/deep/a/b.txt
printf '# shop\na line\nanother\n' >README.md; printf 'spaced\n' >'with space.txt'; echo u >ü.txt; echo ro >ro.txt
printf 'a = 1\n' >both.txt; echo gone >removed.txt
ln -s src link; ln -s README.md lnk.txt; ln -s nowhere dangling
printf 'clean:\n\trm -rf build dist data/x\ndistclean: clean\n\trm -f .env *.db *.log\nreset:\n\tfind . -name \x27*.txt\x27 -exec rm -f {} +\n' >Makefile
printf '#!/bin/sh\nfor f in \x22$@\x22; do : >\x22$f\x22; done\nrm -rf build\n' >run.sh; chmod 755 run.sh
printf 'import os, shutil\nshutil.rmtree(\x22data\x22, ignore_errors=True)\nopen(\x22.env\x22, \x22w\x22).close()\nfor n in os.listdir(\x22.\x22):\n    if n.endswith(\x22.bin\x22): os.truncate(n, 3)\n' >wipe.py
printf 'rm -rf \x22${1:-dist}\x22\n: >notes.md\n' >clean.sh
printf '{ \x22scripts\x22: { \x22wipe\x22: \x22rm -rf dist data && : >.env\x22 } }\n' >package.json
printf '.env\n*.log\n*.db\nbuild/\ndata/\n.cache/\ndist/\nsecret.key\n.wt/\n' >.gitignore
";

/// What comes after the commits: changes, and what git does not know.
const LATER: &str = r#"
echo changed >>README.md; echo 'a note' >notes.md; echo one >drafts/one.txt; echo two >drafts/two.txt
echo SECRET=1 >.env; chmod 600 .env; echo key >secret.key; chmod 400 secret.key; echo log >local.log
for i in $(seq 1 $COUNT); do echo "$i,row" >data/x/f$i.csv; done; for i in 1 2 3; do echo $i >data/y/f$i.csv; done
echo object >build/out.o; echo app >dist/app.js; echo cached >.cache/c; echo p >private/p; chmod 700 private
chmod 444 ro.txt; chmod 640 src/util.c
if command -v sqlite3 >/dev/null; then sqlite3 app.db 'CREATE TABLE t(a); INSERT INTO t VALUES (1);'; else echo db >app.db; fi
tar cf a.tar src README.md; if command -v zip >/dev/null; then zip -qr a.zip src notes.md; fi
printf -- '--- a/README.md\n+++ b/README.md\n@@ -1,2 +1,2 @@\n-# shop\n+# shop 2\n a line\n' >fix.patch
"#;

const GIT: &str = r"
git init -q -b main; git config user.name a; git config user.email a@b; git config advice.detachedHead false
git add -A; git commit -qm one
git switch -qc next; echo other >local.log; mkdir -p data; echo theirs >data/tracked.csv; echo 2 >>src/main.c
git add -Af local.log data/tracked.csv src; git commit -qm next; git switch -q main
echo second >>src/util.c; git commit -qam two; git tag v1
echo stashed >>both.txt; git stash -q
";

const GIT_LATER: &str = r"
echo staged >staged.txt; git add staged.txt; echo 'a = 2' >both.txt; git add both.txt; echo 'a = 3' >both.txt; rm removed.txt
git worktree add -q .wt/x next 2>/dev/null; echo mine >.wt/x/mine.txt; echo dirty >>.wt/x/README.md
";

const NEIGHBOURS: &str = r"
cd ..; mkdir -p other/src plain/src
cd other; git init -q -b main; git config user.name a; git config user.email a@b
echo o >a.txt; echo s >src/s.c; printf '*.log\n' >.gitignore; git add -A; git commit -qm o; echo changed >>a.txt; echo n >notes.md
echo l >o.log; cd ../plain; echo p >a.txt; echo s >src/s.c; echo n >notes.md; cd ..
";

impl Project {
    pub(super) fn new(dice: &mut Dice) -> Self {
        let is_git = !dice.is(3);
        let mut script = format!("set -e; COUNT={}\nmkdir shop; cd shop", [12, 300][dice.below(2)]);
        script += FILES;
        if is_git {
            script += GIT;
        }
        script += LATER;
        if is_git {
            script += GIT_LATER;
        }
        if dice.is(2) {
            script += "(git init -q -b main sub; cd sub; git config user.name a; git config user.email a@b; \
                echo s >s.txt; git add -A; git commit -qm s; echo more >>s.txt; echo n >new.txt)\n";
        }
        if dice.is(4) {
            script += "seq 1 1700000 | head -c 12582912 >large.bin\n";
        }
        if dice.is(6) {
            script += "seq 1 1700000 | head -c 6291456 >data/huge.bin\n";
        }
        script += NEIGHBOURS;
        Self { script, is_git, is_below: dice.is(8) }
    }

    pub(super) fn cwd(&self) -> &'static str {
        if self.is_below { "shop/src" } else { "shop" }
    }

    pub(super) fn about(&self) -> String {
        format!("{} root, in {}", if self.is_git { "git" } else { "plain" }, self.cwd())
    }
}

/// The kind of a file, by its path beside the project.
pub(super) fn kind(path: &str) -> &'static str {
    let Some(path) = path.strip_prefix("shop/") else {
        return if path == "shop" { "root" } else { "outside" };
    };
    let is_below = |dir: &str| path == dir || path.starts_with(&format!("{dir}/"));
    let extension = path.rsplit('.').next().unwrap_or_default();
    if extension == "bin" {
        "large"
    } else if is_below(".wt") {
        "worktree"
    } else if is_below("sub") {
        "nested"
    } else if ["data", "build", "dist", ".cache"].into_iter().any(is_below)
        || [".env", "secret.key"].contains(&path)
        || ["log", "db"].contains(&extension)
    {
        "ignored"
    } else if is_below(".git") {
        "git"
    } else {
        "plain"
    }
}
