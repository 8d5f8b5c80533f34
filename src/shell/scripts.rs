//! What the script files that a line runs destroy.
//!
//! A script is judged as if its text stood in the line, but only what it is known to destroy counts: it can be changed
//! before it runs, so nothing in it makes the line harmless.

use std::{collections::BTreeSet, path::Path};

use super::{ScriptReader, ShellContext, is_mention, names, shell_line, walk::ScriptFile};
use crate::model::{Level, Simple};

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
        let text = (reader.read)(&reader.dir.join(&script.path)).filter(|text| is_shell(text));
        let Some(text) = text.filter(|_| seen.insert(script.clone())) else { continue };
        let (finding, more) = shell_line(&there(&script, &text), scope);
        let destroys = finding.commands.into_iter().filter(|it| it.level == Level::Destroys);
        found.extend(destroys.map(|mut command| {
            command.targets.retain(|target| !is_mention(target));
            command
        }));
        scripts.extend(more);
    }
    found
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
    use crate::{model::Language, shell::classify};

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

    /// What a line destroys, with the scripts above and without.
    fn destroyed(line: &str) -> (Vec<String>, Vec<String>) {
        let reader = ScriptReader { dir: PathBuf::from("/p"), read: text_of };
        let scope = ShellContext { scripts: Some(reader), ..ShellContext::default() };
        let of = |scope: &ShellContext| {
            let finding = classify(line, Language::Shell, scope);
            let commands = finding.commands.iter().filter(|it| it.level == Level::Destroys);
            commands.flat_map(|it| &it.targets).map(|target| target.path.clone()).collect()
        };
        (of(&scope), of(&ShellContext::default()))
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
    fn no_other_text_counts_and_nothing_gets_harmless() {
        for line in [
            "./python.sh", "bash python.sh", "./broken.sh", "./missing", "bash -n clean.sh",
            "cat clean.sh",
        ] {
            assert_eq!(destroyed(line).0, Vec::<String>::new(), "{line}");
        }
        let reader = ScriptReader { dir: PathBuf::from("/p"), read: |_| Some("ls\n".to_owned()) };
        let scope = ShellContext { scripts: Some(reader), ..ShellContext::default() };
        for line in ["./x", "bash x", ". x"] {
            assert_eq!(classify(line, Language::Shell, &scope).level, Level::Unknown, "{line}");
        }
    }
}
