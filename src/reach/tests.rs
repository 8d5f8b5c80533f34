//! Lines of which the shell's grammar does not tell what they destroy: bash runs each, and what it took
//! had to be among what the call reaches.

#![expect(clippy::disallowed_methods, reason = "these tests make and remove their own files")]

use std::{collections::BTreeMap, fs, path::PathBuf, process::Command};

use super::*;
use crate::{
    fs::PathResolver,
    model::{Agent, Language, RootKind, SessionId},
    shell,
    state::StateDir,
};

/// A project with a directory beside it, below a directory of its own.
struct Scene {
    top: PathBuf,
}

impl Scene {
    fn new(name: &str) -> Self {
        let temp = fs::canonicalize(std::env::temp_dir()).unwrap();
        let scene = Self { top: temp.join(format!("beforehand-{name}-{}", std::process::id())) };
        scene.fill();
        scene
    }

    fn fill(&self) {
        let _gone = fs::remove_dir_all(&self.top);
        for dir in ["project/src", "project/inner", "outside/sub", "home"] {
            fs::create_dir_all(self.top.join(dir)).unwrap();
        }
        for file in [
            "project/f", "project/src/f", "project/big", "project/inner/big", "outside/o1",
            "outside/o2", "outside/oaa", "outside/sub/o2",
        ] {
            fs::write(self.top.join(file), file).unwrap();
        }
    }

    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let found = glob::expand(&self.top, "**/*").into_iter().filter(|path| path.is_file());
        found.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
    }

    /// Those that a line takes when bash runs it.
    fn taken(&self, line: &str) -> Vec<PathBuf> {
        let before = self.files();
        let mut bash = Command::new("bash");
        bash.args(["-c", line]).current_dir(self.top.join("project")).env_clear();
        bash.env("PATH", "/usr/bin:/bin").env("HOME", self.top.join("home"));
        let _said = bash.stdin(std::process::Stdio::null()).output().unwrap();
        let after = self.files();
        self.fill();
        before
            .into_iter()
            .filter(|(path, text)| after.get(path) != Some(text))
            .map(|it| it.0)
            .collect()
    }

    /// What a line reaches, by the words of the hook's own question.
    fn victims(&self, line: &str) -> Vec<PathBuf> {
        let (root, home) = (self.top.join("project"), self.top.join("home"));
        let scope = shell::ShellContext {
            home: Some(home.to_str().unwrap().to_owned()),
            ..shell::ShellContext::default()
        };
        let intent = Intent::Run { command: line.to_owned(), language: Language::Shell };
        let effect = shell::effect(&intent, &scope);
        let (state, real) = (StateDir::new(home.join("state")), PathResolver::default());
        let surroundings = Surroundings { home: Some(&home), state: Some(&state), real: &real };
        let context = CallContext {
            agent: Agent::ClaudeCode,
            session: SessionId("s".to_owned()),
            turn: None,
            cwd: Some(root.clone()),
            bases: Vec::new(),
            transcript: None,
            server: None,
            subagent: None,
            mode: None,
        };
        let around = (Root::new(root.clone(), RootKind::Plain { why: None }), ScanScope::Whole);
        reach_in(around, &root, &context, (&intent, &effect), &surroundings).victims
    }

    /// The first file that a line takes and that is not among what it reaches.
    fn lost(&self, line: &str) -> Option<PathBuf> {
        let victims = self.victims(line);
        // The walk holds the root's small files by itself.
        let in_walk =
            |path: &PathBuf| path.starts_with(self.top.join("project")) && !path.ends_with("big");
        let mut taken = self.taken(line).into_iter().filter(|path| !in_walk(path));
        taken.find(|path| !victims.iter().any(|victim| path.starts_with(victim)))
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.top);
    }
}

/// Lines, each of which takes something.
const LINES: &str = r#"a=(../outside/o1); rm "${a[0]}"
a=(../outside/o1 ../outside/sub); rm -rf "${a[@]}"
a=(../outside/o1); for f in "${a[@]}"; do rm "$f"; done
a=(); a+=(../outside/o1); rm ${a[*]}
a=(../outside/o1); rm $a
a=([0]=../outside/o1); rm "${a[0]}"
a=(rm -rf ../outside/o1); "${a[@]}"
a=(-rf ../outside/sub); rm "${a[@]}"
a=("../out"side/o1); rm "${a[@]}"
a=(../outside/o?); rm "${a[@]}"
declare -A m=([x]=../outside/o1); rm "${m[x]}"
declare -n r=x; x=../outside/o1; rm $r
x=../foo/o1; rm ${x/foo/outside}
x=../outside/; rm ${x%/}/o1
rm ${x:-../outside/o1}
rm ${x:=../outside/o1}
IFS=:; x=../outside/o1:../outside/sub/o2; rm $x
xargs -I% rm ../outside/% <<< o1
echo o1 | xargs -I% rm ../outside/%
rm "$(dirname ../outside/o1)/o2"
p=..; d=outside; a=("$p/$d"); rm -rf "${a[0]}"
split -b 1 f ../outside/o
csplit -s -f ../outside/o -n1 f 1
a=(big); rm "${a[0]}"
a=(inner); rm -rf "${a[0]}"
cd inner; a=(big); rm "${a[0]}"
rm "${x:-big}"
x=big; x=${x/q/}; rm $x
xargs -I% rm % <<< big
echo g | xargs -I% rm bi%
a=(*ig); rm "${a[@]}"
a=(f big); mv "${a[@]}"
ln -s ../outside l; rm l/o1
ln -s ../outside l && cd l && rm o1
ln -s ../outside/o1 .; echo > o1
ln -s ../outside l; rm -rf l/*
ln -s ../outside l; find l/ -name o1 -delete
ln ../outside/o1 hard; echo > hard
tar -cf /dev/null --remove-files -C .. outside
tar --remove-files -cf x -C ../outside -C sub o2
find . -size +0 -name b\* | xargs rm
rm $(ls | head -1)
x=../outside/o1.bak; rm ${x%.bak}
x=../outside/o1.bak; rm "${x:0:${#x}-4}"
for f in ../outside/o1.new; do echo > ${f%.new}; done
x=$(echo ../outside/o9 | sed s/9/1/); rm $x
rm $(echo ../outside/o9 | sed s/9/1/)
v=zz_big; rm ${v#zz_}
x=qbig; rm ${x/q/}
cd ../outside; v=zz_o1; rm ${v#zz_}
x=../outside/sub.d; rm -rf ${x%.d}"#;

#[test]
fn what_a_line_takes_is_reached_however_the_shell_gets_its_name() {
    let scene = Scene::new("unresolved");
    for line in LINES.lines() {
        assert!(!scene.taken(line).is_empty(), "takes nothing: {line}");
        assert_eq!(scene.lost(line), None, "{line}");
    }
}

/// Lines that follow a symlink in the middle of the tree.
const FOLLOWING: &str = r#"find -L . -type f -delete
find -L src -name 'o*' -exec rm {} +
find . -follow -name o1 -exec rm {} \;
grep -Rl outside . | xargs rm
rm $(grep -lR outside/o1 src)
find -L . -name o2 | while read -r f; do rm "$f"; done
find -L . -name o2 -print0 | xargs -0 sed -i s/o/0/"#;

#[test]
fn what_a_line_takes_over_symlinks_is_reached() {
    let scene = Scene::new("following");
    let lead =
        || std::os::unix::fs::symlink("../../outside", scene.top.join("project/src/lead")).unwrap();
    for line in FOLLOWING.lines() {
        lead();
        let victims = scene.victims(line);
        let taken = scene.taken(line);
        let outside: Vec<_> =
            taken.iter().filter(|path| path.starts_with(scene.top.join("outside"))).collect();
        assert!(!outside.is_empty(), "takes nothing outside: {line}");
        assert!(victims.contains(&scene.top.join("outside")), "{line}: {victims:?}");
    }
    lead();
    assert_eq!(scene.victims("find . -name o1 -delete"), [scene.top.join("project")]);
}

#[test]
fn words_of_a_line_do_not_reach_what_lies_beside_the_project() {
    let scene = Scene::new("beside");
    let victims = scene.victims("python3 ../outside/o1 sub project home --flag=../no-such");
    assert_eq!(victims, [scene.top.join("outside/o1")]);
}

/// The slashes around a pattern are signs of its language, and a word of a program is no name in the top
/// directory. A path in a program text is one.
#[test]
fn a_pattern_of_a_program_text_is_no_path() {
    let scene = Scene::new("patterns");
    let tops = fs::read_dir("/").unwrap().flatten().map(|entry| entry.path());
    let worth = |top: &PathBuf| {
        let is_plain = top.to_str().is_some_and(|it| it[1..].chars().all(char::is_alphanumeric));
        is_plain && top.is_dir() && !scene.top.starts_with(top) && named_paths::is_worth_a_copy(top)
    };
    let Some(top) = tops.into_iter().filter_map(|top| fs::canonicalize(top).ok()).find(worth)
    else {
        return;
    };
    let name = top.to_str().unwrap().trim_start_matches('/');
    for line in [
        "awk '/NAME/ {print > \"x\"}' f",
        "awk '/xyz/ {NAME = $1; print NAME > \"x\"}' f",
        "awk -F/ '/NAME/,/x/ {print $2/NAME > \"x\"}' f",
        "sed -i '/NAME/d' f",
        "sed -i '/x/,/NAME/s/NAME/y/' $f",
        "sed -i -e '/NAME/d;s/x/y/' -e /NAME/p $(ls)",
        "perl -ne 'print if /NAME/' f",
        "perl -pi -e 's/NAME/x/' $f",
        "node -e 'f(\"x\".match(/NAME/))'",
        "xyz /xyz/$x NAME",
    ] {
        let line = line.replace("NAME", name);
        assert!(!scene.victims(&line).contains(&top), "{line}");
    }
    for line in [
        "awk '/^\\/NAME/ {system(\"rm \" $1)}' f",
        "awk '{print > \"/NAME\"}' f",
        "sed -i 's/^/\\/NAME\\//' $f",
        "sed -n '/x/w /NAME' f",
        "perl -e 'unlink q{/NAME}'",
        "perl -e 'unlink \"/NAME\" if /x/'",
        "rm -rf $x /NAME; awk '/NAME/ {print > \"x\"}' f",
    ] {
        let line = line.replace("NAME", name);
        assert!(scene.victims(&line).contains(&top), "{line}");
    }
}

/// What it replaces is asked about. To hold all that is there would be too much.
#[test]
fn of_a_directory_in_which_an_archive_is_unpacked_nothing_more_is_held() {
    let scene = Scene::new("archive");
    fs::write(scene.top.join("project/a.tar"), "").unwrap();
    for line in ["tar xf a.tar", "unzip -o a.zip"] {
        let victims = scene.victims(line);
        assert!(victims.iter().all(|path| path.is_file()), "{line}: {victims:?}");
    }
}

/// Numbers that look like chance and are the same every time.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}

/// Something in which `NAME` stands for a word of the shell that becomes the path, and the lines before it.
const NAMES: &[(&str, &str)] = &[
    ("a=(NAME)", "\"${a[@]}\""),
    ("b=(); b+=(NAME)", "${b[0]}"),
    ("declare -a c=(NAME)", "${c[*]}"),
    ("declare -A m=([k]=NAME)", "\"${m[k]}\""),
    ("x=NAME", "$x"),
    ("y=NAME", "\"${y:-none}\""),
    ("z=NAME; declare -n r=z", "\"$r\""),
    ("v=zz/NAME", "${v#zz/}"),
    ("v=zz_NAME", "${v#zz_}"),
    ("u=NAME.bak", "\"${u%.bak}\""),
    ("printf -v w %s NAME", "$w"),
    ("read -r q <<< NAME", "$q"),
    (":", "${unset:-NAME}"),
    (":", "$(echo NAME)"),
    (":", "\"$(dirname NAME)/$(basename NAME)\""),
    ("mapfile -t l <<< NAME", "\"${l[0]}\""),
    ("set -- NAME", "\"$1\""),
    ("g() { printf %s \"$1\"; }", "$(g NAME)"),
];

const DEEDS: &[&str] = &[
    "rm -rf NAME",
    "> NAME",
    "cp f NAME",
    "eval \"rm NAME\"",
    "(rm NAME)",
    "{ rm NAME; }",
    "echo NAME | xargs rm -rf",
    "xargs -I% rm -rf % <<< NAME",
    "h() { rm -rf \"$@\"; }; h NAME",
    "for i in NAME; do rm -rf $i; done",
    "while read -r i; do rm -rf $i; done <<< NAME",
    "xargs rm -rf <<E\nNAME\nE",
    "d=(rm -rf NAME); \"${d[@]}\"",
    "truncate -s 0 NAME",
    "bash -c 'rm -rf \"$1\"' _ NAME",
    "if true; then tee NAME < src/f; fi",
];

/// Runs `count` random lines, and returns the first that loses something.
fn first_lost(scene: &Scene, seed: u64, count: usize) -> (usize, Option<(String, PathBuf)>) {
    const VICTIMS: &[&str] = &["../outside/o1", "../outside/sub/o2", "big", "inner/big"];
    let (mut draw, mut taken) = (Draw(seed), 0);
    for _ in 0..count {
        let mut word = VICTIMS[draw.below(VICTIMS.len())].to_owned();
        let mut line = String::new();
        for _ in 0..=draw.below(3) {
            let (before, name) = NAMES[draw.below(NAMES.len())];
            line += &format!("{}; ", before.replace("NAME", &word));
            word = name.replace("NAME", &word);
        }
        line += &DEEDS[draw.below(DEEDS.len())].replace("NAME", &word);
        taken += usize::from(!scene.taken(&line).is_empty());
        if let Some(path) = scene.lost(&line) {
            return (taken, Some((line, path)));
        }
    }
    (taken, None)
}

#[test]
fn random_indirection_loses_nothing() {
    let scene = Scene::new("indirect");
    let count =
        std::env::var("BEFOREHAND_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(40);
    let (taken, lost) = first_lost(&scene, 7, count);
    assert_eq!(lost, None);
    assert!(taken * 3 > count, "most lines have to take something: {taken} of {count}");
}
