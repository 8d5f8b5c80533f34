//! What the script files that a line runs destroy.
//!
//! A script is judged as if its text stood in the line, but only what it is known to destroy counts: it can be changed
//! before it runs, so nothing in it makes the line harmless.

use std::{collections::BTreeSet, path::Path};

use super::{
    ScriptReader, ShellContext, is_mention, names,
    recipes::ScriptPart,
    shell_line,
    walk::{ScriptFile, lexical, mentions},
};
use crate::model::{Finding, Level, Simple};

/// How many script files are read for one line, those that scripts run included.
const SCRIPTS_MAX: usize = 4;

/// The commands of script files that are known to destroy something, without what they only mention.
pub(super) fn destroying(
    mut scripts: Vec<ScriptFile>,
    reader: &ScriptReader,
    scope: &ShellContext,
) -> Vec<Simple> {
    let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
    while let Some(script) = scripts.pop().filter(|_| seen.len() < SCRIPTS_MAX) {
        let Some((script, text)) = read(script, reader) else { continue };
        if !seen.insert(script.clone()) {
            continue;
        }
        let path = reader.dir.join(&script.path);
        let scope =
            ShellContext { script: path.to_str().map(str::to_owned), ..ShellContext::clone(scope) };
        let (finding, more) = shell_line(&there(&script, &text), &scope);
        let destroys = finding.commands.into_iter().filter(|it| it.level == Level::Destroys);
        found.extend(destroys.map(|mut command| {
            command.targets.retain(|target| !is_mention(target));
            command
        }));
        scripts.extend(more.scripts);
    }
    found
}

/// Adds what the files name that a line reads to the last command that may take it.
pub(super) fn add_named(
    finding: &mut Finding,
    data: &[String],
    reader: &ScriptReader,
    scope: &ShellContext,
) {
    let Some(last) = finding.commands.iter_mut().rev().find(|it| it.level > Level::Creates) else {
        return;
    };
    for path in data {
        let text = (reader.read)(&reader.dir.join(path)).unwrap_or_default();
        last.targets.extend(mentions::of_text(&text, scope.home.as_deref()));
    }
}

/// A script with its text. A recipe runs where its file was found.
fn read(script: ScriptFile, reader: &ScriptReader) -> Option<(ScriptFile, String)> {
    let text = |path: &str| (reader.read)(&reader.dir.join(path));
    if script.part == ScriptPart::All {
        let text = text(&script.path).filter(|text| is_shell(text))?;
        return Some((script, text));
    }
    script.part.files().iter().find_map(|name| {
        let path =
            lexical(&format!("{}/{name}", if script.dir.is_empty() { "." } else { &script.dir }));
        let text = script.part.of(&text(&path)?)?;
        let dir = path.rsplit_once('/').map_or("", |(dir, _)| dir).to_owned();
        Some((ScriptFile { dir, path, part: script.part.clone() }, text))
    })
}

/// The text of a script as a line in the call's directory.
fn there(script: &ScriptFile, text: &str) -> String {
    if script.dir.is_empty() {
        return text.to_owned();
    }
    format!("cd -- {} || exit\n{text}", shell_words::quote(&script.dir))
}

/// Whether a shell would read a text. One without a first line that says so is read by the shell that is asked to.
fn is_shell(text: &str) -> bool {
    let Some(first) = text.strip_prefix("#!") else { return !text.contains('\0') };
    let words = first.lines().next().unwrap_or_default().split_ascii_whitespace();
    let mut programs = words.map(|word| Path::new(word).file_name().unwrap_or_default());
    programs.any(|name| name.to_str().is_some_and(|name| names::SHELLS.contains(&name)))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::{
        model::{Certainty, Language, TargetAction},
        shell::classify,
    };

    fn text_of(path: &Path) -> Option<String> {
        let text = match path.to_str()? {
            "/p/clean.sh" | "/p/in/clean.sh" => {
                "#!/bin/sh\nset -e\nOUT=/srv/out\nrm -rf \"$OUT\" build\nls /etc\n"
            }
            "/p/calls.sh" => "#!/usr/bin/env bash\n./clean.sh; ./calls.sh; cat /srv/list\n",
            "/p/python.sh" => "#!/usr/bin/python3\nrm -rf /srv/out\n",
            "/p/none" => "rm -rf /srv/out\n",
            "/p/broken.sh" => "#!/bin/sh\nrm -rf 'x\n",
            _ => return None,
        };
        Some(text.to_owned())
    }

    /// The directory `/p`, with files of these texts.
    fn with_files(read: fn(&Path) -> Option<String>) -> ShellContext {
        let reader = ScriptReader { dir: PathBuf::from("/p"), read };
        ShellContext { scripts: Some(reader), ..ShellContext::default() }
    }

    /// What a line destroys.
    fn destroyed_in(scope: &ShellContext, line: &str) -> Vec<String> {
        let finding = classify(line, Language::Shell, scope);
        let commands = finding.commands.iter().filter(|it| it.level == Level::Destroys);
        commands.flat_map(|it| &it.targets).map(|target| target.path.clone()).collect()
    }

    /// The same with the scripts above, and without.
    fn destroyed(line: &str) -> (Vec<String>, Vec<String>) {
        (destroyed_in(&with_files(text_of), line), destroyed_in(&ShellContext::default(), line))
    }

    /// Asserts that a line in `/p` destroys `/lib`.
    #[track_caller]
    fn assert_destroys_lib(scope: &ShellContext, line: &str) {
        let found = destroyed_in(scope, line);
        let is_lib = |path: &String| {
            [lexical(path), lexical(&format!("/p/{path}"))].contains(&"/lib".to_owned())
        };
        assert!(found.iter().any(is_lib), "{line}: {found:?}");
    }

    #[test]
    fn what_a_script_destroys_counts_as_if_it_stood_in_the_line() {
        let all = ["/srv/out", "build"].map(str::to_owned).to_vec();
        for line in [
            "./clean.sh",
            "bash clean.sh",
            "sh -eu ./clean.sh now",
            "source clean.sh",
            ". ./clean.sh",
            "cd x && bash ../clean.sh; true | nohup /p/clean.sh",
            "./calls.sh",
            "echo | env A=1 ./calls.sh",
        ] {
            let (with, without) = destroyed(line);
            let plain =
                if line.starts_with("cd") { "x/build".to_owned() } else { "build".to_owned() };
            assert!(with.contains(&all[0]) && with.contains(&plain), "{line}: {with:?}");
            assert_eq!(without, Vec::<String>::new(), "{line}");
        }
        assert_eq!(destroyed("bash none").0, ["/srv/out"]);
        assert_eq!(destroyed("cd in && ./clean.sh").0, ["/srv/out", "in/build"]);
    }

    #[test]
    fn a_script_that_asks_where_it_is_is_followed() {
        fn text_of(path: &Path) -> Option<String> {
            let script = match path.to_str()? {
                "/p/s/a.sh" => "D=$(cd \"$(dirname \"$0\")\" && pwd)\nrm -rf \"$D/../../lib\"",
                "/p/s/b.sh" => "cd \"$(dirname \"${BASH_SOURCE[0]}\")/..\" || exit\nrm -rf ../lib",
                "/p/s/c.sh" => "rm -rf \"${0%/*}/../../lib\"",
                "/p/s/d.sh" => "D=$(dirname \"$(realpath \"$0\")\")\nrm -rf \"$D\"/../../lib",
                "/p/s/e.sh" => "cd `dirname $0`; cd ..; cd ..; rm -rf lib",
                "/p/s/f.sh" => "T=${TARGET:-../lib}\nrm -rf \"$T\"",
                "/p/s/g.sh" => ": \"${TARGET:=../lib}\"\nrm -rf \"$TARGET\"",
                "/p/s/h.sh" => {
                    "D=$(cd -- \"$(dirname -- \"$0\")\" >/dev/null 2>&1; pwd -P)\nrm -rf \"$D\"/../../lib"
                }
                "/p/s/i.sh" => "up() { cd ..; }\nup\nrm -rf lib",
                "/p/s/j.sh" => "for i in 1 2; do cd ..; done; rm -rf p/../lib lib",
                "/p/s/k.sh" => "HOME=..; cd; rm -rf lib",
                "/p/s/l.sh" => "CDPATH=..; cd x; rm -rf ../lib",
                _ => return None,
            };
            Some(script.to_owned())
        }
        let scope = with_files(text_of);
        for name in 'a'..='l' {
            for line in [
                format!("bash s/{name}.sh"),
                format!("bash < s/{name}.sh"),
                format!("cat s/{name}.sh | sh -s x"),
                format!("eval \"$(cat s/{name}.sh)\""),
                format!("bash -c \"$(<s/{name}.sh)\""),
                format!("cp s/{name}.sh s/x.sh && s/x.sh"),
                format!("mv -f s/{name}.sh t && sh t/{name}.sh"),
            ] {
                assert_destroys_lib(&scope, &line);
            }
        }
    }

    #[test]
    fn recipes_of_the_project_and_what_a_sourced_file_sets_are_followed() {
        fn text_of(path: &Path) -> Option<String> {
            let text = match path.to_str()? {
                "/p/package.json" => {
                    r#"{"scripts": {"clean": "cd .. && rm -rf lib", "all": "npm run clean"}}"#
                }
                "/p/web/Makefile" => "OUT = ../../lib\nclean:\n\trm -rf $(OUT)\nall: clean\n",
                "/p/cfg" => "OUT=../lib\nwipe() { rm -rf \"$OUT\"; }\n",
                "/p/.git/HEAD" => "ref: x\n",
                "/p/use.sh" => ". ./cfg\nrm -rf \"$OUT\"\n",
                _ => return None,
            };
            Some(text.to_owned())
        }
        let scope = with_files(text_of);
        for line in [
            "npm run clean",
            "cd web && npm run clean",
            "pnpm clean",
            "yarn run all",
            "make -C web clean",
            "cd web; make all",
            ". ./cfg && rm -rf $OUT",
            "source cfg; wipe",
            "bash use.sh",
            "f() { rm -rf \"$1\"; }; f ../lib",
            "set -- a ../lib; rm -rf \"$2\"",
            "T=${1:-../lib}; rm -rf \"$T\"",
            "A=(x ../lib y); rm -rf \"${A[@]}\"",
            "A=(x ../lib); for t in \"${A[@]}\"; do rm -rf $t; done",
            "A=(x); A+=(../lib); rm -rf \"${A[@]}\"",
            "f() { :; }; f a; rm -rf \"${1:-../lib}\"",
            "echo ../lib | xargs rm -rf",
            "echo 'cd .. && rm -rf lib' | bash",
            "cd \"$(git rev-parse --show-toplevel)\" && rm -rf ../lib",
        ] {
            assert_destroys_lib(&scope, line);
        }
        // What is not known any more is no element, and no word.
        for line in [
            "A=(../lib); A[0]=x; rm -rf \"${A[@]}\"",
            "A=(../lib); read -a A; rm -rf \"${A[@]}\"",
            "echo ../lib:x | xargs -d: rm -rf",
            "echo \"'../lib x'\" | xargs rm -rf",
        ] {
            let finding = classify(line, Language::Shell, &scope);
            let mut targets = finding.targets().filter(|it| it.action == TargetAction::Delete);
            assert!(targets.all(|it| it.certainty == Certainty::Dynamic), "{line}: {finding:?}");
        }
        assert_eq!(destroyed_in(&scope, "npm run none"), Vec::<String>::new());
    }

    #[test]
    fn what_a_line_writes_and_then_runs_counts() {
        for line in [
            "echo 'cd ..; rm -rf lib' > w.sh; bash w.sh",
            "cat > w.sh <<'EOF'\ncd ..\nrm -rf lib\nEOF\nchmod +x w.sh && ./w.sh",
            "printf 'cd ..\\nrm -rf lib\\n' > /tmp/w.sh; sh /tmp/w.sh",
            "echo cd .. > w; echo rm -rf lib >> w; . ./w",
        ] {
            assert!(destroyed(line).1.contains(&"../lib".to_owned()), "{line}");
        }
    }

    #[test]
    fn what_a_list_names_may_be_taken() {
        let scope = with_files(|_| Some("a\n../lib/x\n".to_owned()));
        let names = |line: &str| {
            let finding = classify(line, Language::Shell, &scope);
            finding.targets().any(|target| target.path == "../lib/x" && is_mention(target))
        };
        for line in [
            "xargs rm < list",
            "cat list | xargs -n1 rm -f",
            "rm $(cat list)",
            "rm $(<list)",
            "while read f; do rm \"$f\"; done < list",
            "grep -v '#' list | xargs rm -rf",
            "for f in $(cat list); do rm -rf \"$f\"; done",
        ] {
            assert!(names(line), "{line}");
        }
        for line in ["cat list", "cat list | wc -l", "xargs ls < list", "cat list; rm b"] {
            assert!(!names(line), "{line}");
        }
    }

    #[test]
    fn no_other_text_counts_and_nothing_gets_harmless() {
        for line in [
            "./python.sh", "bash python.sh", "./broken.sh", "./missing", "bash -n clean.sh",
            "cat clean.sh",
        ] {
            assert_eq!(destroyed(line).0, Vec::<String>::new(), "{line}");
        }
        let scope = with_files(|_| Some("ls\n".to_owned()));
        for line in ["./x", "bash x", ". x"] {
            assert_eq!(classify(line, Language::Shell, &scope).level, Level::Unknown, "{line}");
        }
    }
}
