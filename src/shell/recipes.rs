//! What a project has written down for `npm run` and `make` to do, as shell script.
//!
//! Of a makefile no more is understood than most have: variables, rules, what they need, and their lines. What is
//! not understood becomes a variable that nothing is known of.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// What of a file is run.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ScriptPart {
    /// All of it: it is a shell script.
    #[default]
    All,
    /// A script of `package.json`.
    Npm(String),
    /// Targets of a makefile; the first one of the file if none is named. Before them what was set on the
    /// command line.
    Make(Vec<String>),
}

/// So many rules are followed.
const RULES_MAX: usize = 50;
/// So deep values of variables are followed into others.
const DEPTH_MAX: usize = 8;
/// A longer recipe is not judged.
const TEXT_MAX_BYTES: usize = 64 << 10;

/// What a call of a program that runs recipes runs, and in which directory.
pub(super) fn of_call(base: &str, args: &[&str]) -> Option<(String, ScriptPart)> {
    match base {
        "npm" | "pnpm" | "yarn" | "bun" => npm(base, args),
        "make" | "gmake" => make(args),
        _ => None,
    }
}

fn npm(base: &str, args: &[&str]) -> Option<(String, ScriptPart)> {
    let (mut dir, mut words) = ("", Vec::new());
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match *arg {
            "--" => break,
            "-C" | "--prefix" | "--cwd" | "--dir" => dir = args.next()?,
            _ if arg.starts_with('-') => {
                let given =
                    arg.split_once('=').filter(|(name, _)| ["--prefix", "--cwd"].contains(name));
                if let Some((_, given)) = given {
                    dir = given;
                }
            }
            word => words.push(word),
        }
    }
    let name = match *words.as_slice() {
        ["run" | "run-script" | "rum", name, ..] => name,
        [name @ ("test" | "start" | "stop" | "restart"), ..] => name,
        ["install" | "i" | "ci" | "add", ..] => "install",
        [name, ..] if base != "npm" => name,
        _ => return None,
    };
    Some((dir.to_owned(), ScriptPart::Npm(name.to_owned())))
}

fn make(args: &[&str]) -> Option<(String, ScriptPart)> {
    let (mut dir, mut words) = ("", Vec::new());
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match *arg {
            "-C" | "--directory" => dir = args.next().copied().unwrap_or_default(),
            // Another file than the usual ones.
            _ if arg.starts_with("-f") || arg.starts_with("--file") => return None,
            "-o" | "-W" | "-I" => drop(args.next()),
            _ if arg.starts_with("-C") => dir = &arg[2..],
            _ if arg.starts_with("--directory=") => dir = &arg["--directory=".len()..],
            _ if arg.starts_with('-') => (),
            word => words.push(word.to_owned()),
        }
    }
    Some((dir.to_owned(), ScriptPart::Make(words)))
}

impl ScriptPart {
    /// The names of the file that it is a part of, seen from the directory of the call: the first that is there.
    pub(super) fn files(&self) -> &'static [&'static str] {
        match self {
            Self::All => &[],
            Self::Npm(_) => &["package.json", "../package.json", "../../package.json"],
            Self::Make(_) => &["GNUmakefile", "makefile", "Makefile"],
        }
    }

    /// What of the text of that file is run.
    pub(super) fn of(&self, text: &str) -> Option<String> {
        let script = match self {
            Self::All => text.to_owned(),
            Self::Npm(name) => scripts(text, name)?,
            Self::Make(words) => Makefile::read(text, words).script(words),
        };
        (script.len() <= TEXT_MAX_BYTES).then_some(script)
    }
}

/// A script of `package.json`, with those that run before and after it.
fn scripts(text: &str, name: &str) -> Option<String> {
    let package: Value = serde_json::from_str(text).ok()?;
    let names = [format!("pre{name}"), name.to_owned(), format!("post{name}")];
    let lines = names.iter().filter_map(|name| package["scripts"][name].as_str());
    let lines: Vec<String> = lines.map(|line| format!("( {line}\n)")).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// What is understood of a makefile.
#[derive(Default)]
struct Makefile {
    variables: BTreeMap<String, String>,
    /// What each target needs, and its lines.
    rules: BTreeMap<String, (Vec<String>, Vec<String>)>,
    first: Option<String>,
}

impl Makefile {
    /// `words` are those of the command line.
    fn read(text: &str, words: &[String]) -> Self {
        let mut all = Self::default();
        all.variables.insert("RM".to_owned(), "rm -f".to_owned());
        let mut current: Vec<String> = Vec::new();
        for line in text.replace("\\\n", " ").lines() {
            if let Some(recipe) = line.strip_prefix('\t') {
                for target in &current {
                    all.rules.entry(target.clone()).or_default().1.push(recipe.to_owned());
                }
                continue;
            }
            let line = line.split('#').next().unwrap_or_default().trim();
            if let Some((name, value)) = assignment(line) {
                all.variables.insert(name.to_owned(), value.to_owned());
            } else if let Some((targets, rest)) = line.split_once(':') {
                let (needs, recipe) = rest.split_once(';').unwrap_or((rest, ""));
                let needs = all.expand(needs.trim_start_matches(':'), "", 0);
                current =
                    all.expand(targets, "", 0).split_whitespace().map(str::to_owned).collect();
                for target in &current {
                    if all.first.is_none() && !target.starts_with('.') {
                        all.first = Some(target.clone());
                    }
                    let rule = all.rules.entry(target.clone()).or_default();
                    rule.0.extend(needs.split_whitespace().map(str::to_owned));
                    rule.1.extend((!recipe.trim().is_empty()).then(|| recipe.to_owned()));
                }
            }
        }
        for (name, value) in words.iter().filter_map(|word| word.split_once('=')) {
            all.variables.insert(name.trim_end_matches(':').to_owned(), value.to_owned());
        }
        all
    }

    /// The lines that lead to some targets, each in a shell of its own.
    fn script(&self, words: &[String]) -> String {
        let named = words.iter().filter(|word| !word.contains('='));
        let mut wanted: Vec<String> = named.cloned().collect();
        if wanted.is_empty() {
            wanted.extend(self.first.clone());
        }
        let (mut seen, mut script) = (BTreeSet::new(), String::new());
        while let Some(target) = wanted.pop().filter(|_| seen.len() < RULES_MAX) {
            let Some((needs, lines)) = self.rules.get(&target) else { continue };
            if seen.insert(target.clone()) {
                wanted.extend(needs.iter().cloned());
                for line in lines {
                    let line = self.expand(line, &target, 0);
                    let line = line.trim_start().trim_start_matches(['@', '-', '+']);
                    script.push_str(&format!("( {line}\n)\n"));
                }
            }
        }
        script
    }

    /// A text with the values of variables in it.
    fn expand(&self, text: &str, target: &str, depth: usize) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('$').filter(|_| depth < DEPTH_MAX) {
            out.push_str(&rest[..at]);
            let after = &rest[at + 1..];
            let close = match after.chars().next() {
                Some('(') => after.find(')'),
                Some('{') => after.find('}'),
                Some(_) => None,
                None => break,
            };
            let first = after.chars().next().map_or(0, char::len_utf8);
            let (name, end) = match close {
                Some(close) => (&after[1..close], close + 1),
                None => (&after[..first], first),
            };
            rest = &after[end..];
            match (name, self.variables.get(name)) {
                ("$", _) => out.push('$'),
                ("@", _) => out.push_str(target),
                ("CURDIR", None) => out.push_str("$PWD"),
                (_, Some(value)) => out.push_str(&self.expand(value, target, depth + 1)),
                // What the environment has, the shell has as well.
                (name, None) if is_name(name) => out.push_str(&format!("${{{name}}}")),
                (_, None) => out.push_str("${_MAKE_}"),
            }
            if out.len() > TEXT_MAX_BYTES {
                break;
            }
        }
        out.push_str(rest);
        out
    }
}

fn assignment(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    let name = name.trim_end_matches([':', '?', '+', '!']).trim();
    let name = name.strip_prefix("export ").unwrap_or(name).trim();
    is_name(name).then(|| (name, value.trim()))
}

fn is_name(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !name.is_empty() && name.bytes().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_makefile_is_read_as_far_as_most_go() {
        let text = "OUT ?= ../out\nDIST := $(OUT)/dist\nexport X=1\n.PHONY: clean\nall: build\n\t@echo hi\n\
                    build: gen ; touch $@\ngen:\n\t-rm -rf $(DIST) \\\n\t  ${HOME}/x\n\
                    clean distclean: gen\n\t$(RM) -r $(OUT) $$tmp $(wildcard *.o)\n\tcd .. && rm $(CURDIR)/y\n";
        let script = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            ScriptPart::Make(words).of(text).unwrap()
        };
        let made = "( rm -rf ../out/dist  \t  ${HOME}/x\n)\n";
        assert_eq!(script(&["gen"]), made);
        assert_eq!(script(&[]), format!("( echo hi\n)\n( touch build\n)\n{made}"));
        let clean = "( rm -f -r ../out $tmp ${_MAKE_}\n)\n( cd .. && rm $PWD/y\n)\n";
        assert_eq!(script(&["clean"]), format!("{clean}{made}"));
        assert!(script(&["OUT=/o", "gen"]).starts_with("( rm -rf /o/dist"));
        assert_eq!(script(&["none"]), "");
        let endless = "A = $(A)$(A)\nx: x\n\trm $(A)\n";
        assert!(ScriptPart::Make(Vec::new()).of(endless).is_some());
    }

    #[test]
    fn a_script_of_a_package_comes_with_those_around_it() {
        let text = r#"{"scripts": {"preclean": "a", "clean": "rm -rf ../b", "x": 1}}"#;
        let script = |name: &str| ScriptPart::Npm(name.to_owned()).of(text);
        assert_eq!(script("clean").as_deref(), Some("( a\n)\n( rm -rf ../b\n)"));
        assert_eq!([script("x"), script("none")], [None, None]);
        assert_eq!(ScriptPart::Npm("clean".to_owned()).of("no json"), None);
    }

    #[test]
    fn calls_name_what_they_run_in_many_ways() {
        let of = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            of_call(words[0], &words[1..])
        };
        let npm = |dir: &str, name: &str| Some((dir.to_owned(), ScriptPart::Npm(name.to_owned())));
        assert_eq!(of("npm run clean -- --force"), npm("", "clean"));
        assert_eq!(of("npm --prefix web run clean"), npm("web", "clean"));
        assert_eq!(of("yarn --cwd=web clean"), npm("web", "clean"));
        assert_eq!(of("pnpm -C web test"), npm("web", "test"));
        assert_eq!(of("npm ls"), None);
        let make = |dir: &str, words: &[&str]| {
            let words = words.iter().map(|&word| word.to_owned()).collect();
            Some((dir.to_owned(), ScriptPart::Make(words)))
        };
        assert_eq!(of("make -j4 -C web OUT=x clean"), make("web", &["OUT=x", "clean"]));
        assert_eq!([of("make -f x.mk"), of("make -fx.mk all")], [None, None]);
        assert_eq!(of("cmake ."), None);
    }
}
