//! What is refused, what is asked about, and what passes.

#![expect(clippy::disallowed_methods, reason = "the files of a test are its own")]

use super::*;
use crate::{
    fs::{create_private_dirs, replace},
    model::Language,
    process::{ProcessContext, Terminal},
    shell::ShellContext,
};

/// The threat in a command line, with these variables.
fn threat_with(variables: &[(&str, &str)], command: &str) -> Option<String> {
    let home = [("HOME", "/home/me")];
    let variables = home.iter().chain(variables);
    let env = variables.map(|(name, value)| (name.into(), value.into())).collect();
    let context = ProcessContext { cwd: None, env, now: chrono::DateTime::UNIX_EPOCH };
    let scope = ShellContext { home: Some("/home/me".to_owned()), ..ShellContext::default() };
    let intent = Intent::Run { command: command.to_owned(), language: Language::Shell };
    let effect = shell::effect(&intent, &scope);
    let threat_in = |process: &Process<'_>| {
        let ours = GuardContext {
            process,
            agent: "claude-code",
            state: Path::new("/home/me/.local/state/beforehand"),
            settings: &["/home/me/.config/beforehand/config.toml".into()],
            cwd: Path::new("/home/me/p"),
            root: Path::new("/home/me/p"),
            real: &PathResolver::default(),
        };
        threat(&ours, &intent, &effect, &[])
    };
    context.run(b"", Terminal::default(), &(), |process| threat_in(process)).0
}

fn threat_of(command: &str) -> Option<String> {
    threat_with(&[], command)
}

#[test]
fn whatever_reaches_for_us_is_a_threat() {
    for command in [
        "rm -rf ~/.local",
        "rm -rf ~",
        "rm -rf /home/me/.local/state/beforehand/objects",
        "cd ~/.local/state && rm -rf beforehand",
        "echo x > ~/.local/state/beforehand/journal",
        "mv ~/.local /tmp/x",
        "chmod -R 000 ~/.local/state/beforehand",
        "git --git-dir ~/.local/state/beforehand/repositories/x update-ref -d refs/checkpoints/m/y",
        "git -C ~/.local/state/beforehand/repositories/x update-ref -d refs/checkpoints/main/y",
        "cd ~/.local/state/beforehand/repositories/x && git update-ref -d refs/checkpoints/main/y",
        "rm -rf ~/.local/state/beforehand/repositories",
        "rm -rf ~/.local/state/beforehand/repositories/x/refs",
        "beforehand clear --yes",
        "beforehand prune --all",
        "/usr/local/bin/beforehand uninstall",
        "sh -c 'beforehand restore latest --yes'",
        "BEFOREHAND=off make",
        "export BEFOREHAND_HOME=/tmp/x",
        "env BEFOREHAND=off claude -p hi",
        "python3 -c 'import shutil; shutil.rmtree(\"/home/me/.local/state/beforehand\")'",
        "rm ~/.cargo/bin/beforehand",
    ] {
        assert!(threat_of(command).is_some(), "{command}");
    }
}

#[test]
fn reading_and_everyday_work_is_free() {
    for command in [
        "beforehand list",
        "beforehand show latest",
        "beforehand diff 1",
        "beforehand explain -- rm -rf x",
        "beforehand create -m x",
        "beforehand restore --help",
        "cat ~/.local/state/beforehand/journal",
        "ls -la ~/.local/state/beforehand",
        "git --git-dir ~/.local/state/beforehand/repositories/x for-each-ref refs/checkpoints",
        "git for-each-ref --format='delete %(refname)' | git update-ref --stdin",
        "rm -rf .git/refs",
        "git update-ref -d refs/heads/old",
        "git commit -m 'keep refs/checkpoints/main'",
        "rg BEFOREHAND=off src",
        "rm -rf .git",
        "rm -rf node_modules",
        "rm -rf src/beforehand",
        "rm -rf /home/me/p/.claude",
        "rm ~/.local/share/x",
        "cargo build",
    ] {
        assert_eq!(threat_of(command), None, "{command}");
    }
}

#[test]
fn words_that_lead_to_us_are_seen_whatever_is_done_with_them() {
    for command in [
        "find ~/.local -type f | xargs rm",
        "find ~ -name beforehand | xargs rm -rf",
        "find ~ -name beforehand -exec rm -rf {} +",
        "find ~ -name beforehand -exec sh -c 'rm -rf \"$1\"' _ {} \\;",
        "find / -name 'beforehand*' -print0 | xargs -0 rm -rf",
        "find / -path '*beforehand*' -delete",
        "find $HOME/.local -type f -exec truncate -s0 {} +",
        "cd ~/.local && rm -rf state",
        "cd ~/.local && ls | xargs rm -rf",
        "cd; cd .local; find . -type f | while read -r f; do rm \"$f\"; done",
        "cd ~ && rm -rf $(ls -d .l*)",
        "rm -rf \"$(echo ~/.local)\"",
        "python3 -c \"import os,shutil; shutil.rmtree(os.path.expanduser('~/.local/state/beforehand'))\"",
        "python3 -c \"import os,shutil; shutil.rmtree(os.path.expanduser('~') + '/.local')\"",
        "python3 -c \"import pathlib,shutil; shutil.rmtree(pathlib.Path.home() / '.local')\"",
        "python3 -c \"import os,shutil; shutil.rmtree(os.environ['HOME'])\"",
        "python3 <<'E'\nimport shutil, os\nshutil.rmtree(os.path.join(os.environ['HOME'], x))\nE",
        "node -e \"require('fs').rmSync(process.env.HOME + '/.local', {recursive: true})\"",
        "node -e 'require(\"fs\").rmSync(require(\"os\").homedir() + \"/.x\", \"/home/me/.local\")'",
        "perl -MFile::Path -e 'remove_tree(\"$ENV{HOME}/.local/state\")'",
        "perl -e 'unlink glob(\"/home/me/.local/state/beforehand/*\")'",
        "ruby -e 'FileUtils.rm_rf(File.expand_path(\"~/.local/state\"))'",
        "rsync -a --delete empty/ \"${XDG_STATE_HOME:-$HOME/.local/state}/\" $x",
        "sh -c 'cd ~/.local; ./wipe'",
        "tar -C ~/.local --remove-files -cf /tmp/x.tar $(ls ~/.local)",
        "./wipe --dir=/home/me/.local/state/beforehand",
        "make DIR=~/.local/../.local clean",
        "echo ~/.local | xargs rm -rf",
        "x=$HOME; ./wipe \"$x\"",
        "HOME=~/.local ./wipe",
        "printf '%s' '/home/me/.local/state' | ./wipe",
        "echo / | tr / _ | xargs rm -rf",
        "rg --files / | xargs rm -f",
        "grep -rl x / | xargs rm -f",
        "cd .. && make && ls | xargs rm -rf",
        "cd web && cd ../.. && make",
        "cd web && cd -- .. && cd .. && make",
        "cd $x && make && cd .. && ./wipe",
        "cd web; cd ..; cd ..; ./wipe",
        "trap ./wipe EXIT; cd ..",
        "cd() { ./wipe \"$1\"; }; cd ..",
        "alias cd=./wipe; cd ..",
        "echo / | cut -d/ -f1 | xargs rm -rf",
        "awk '/x/ {print \"/home\"}' f | xargs rm -rf",
        "sed 's/^/\\/home\\//' f | xargs rm -rf",
        "perl -e 'unlink q{/home/me/.local/state/beforehand/x}'",
    ] {
        assert!(threat_of(command).is_some(), "{command}");
    }
}

#[test]
fn words_that_lead_elsewhere_are_free() {
    for command in [
        "find ~/.local -type f | xargs grep -l x",
        "ls -la ~/.local/state | head",
        "find ~ -name beforehand",
        "cat ~/.local/state/beforehand/journal | sort | uniq -c > seen.txt",
        "cd ~ && rm -rf old-project",
        "cd ~/code/p && make",
        "cd / && make",
        "docker exec it ls /",
        "python3 -c \"print('a/b'.split('/'))\" && make",
        "echo a/b | tr / _ && ./run.sh",
        "perl -pe '$_ =~ s/a/b/' x | ./run.sh",
        "[[ $x =~ ^a ]] && make",
        "git reset --hard HEAD~1",
        "git commit -m 'rm -rf ~/.local/state/beforehand is asked about'",
        "PATH=$HOME/.local/bin:$PATH make",
        ". \"$HOME/.cargo/env\" && cargo build",
        "source ~/.bashrc; npm test",
        "find ~/code -name '*.pyc' -delete",
        "find . -name '*.pyc' | xargs rm",
        "rm -rf ~/code/x; npm i",
        "cp -r ~/.config/nvim . && ./install",
        "rsync -a ~/ /backup/",
        "tar czf backup.tgz ~",
        "curl -sSf https://sh.rustup.rs | sh",
        "HOME=/tmp/x make",
        "env -i PATH=\"$PATH\" HOME=\"$HOME\" make",
        "docker run -e HOME=${HOME} image make",
        "HOME=/home/me npm test",
        "git add -A && git commit -qm x && grep -E '^/' f",
        "git ls-files | cut -d/ -f2 | xargs rm -f",
        "git ls-files | awk -F/ '{print $2}' | xargs rm -f",
        "git branch | tr / _ | xargs git branch -D",
        "sed -i 's/ / /' $(git ls-files)",
        "sed -i '/home/d' $f",
        "awk '/home/ {print > \"x\"}' f",
        "perl -ne 'print if /home/' f",
        "cd web && npm run build && cd ..",
        "cd web/app && make && cd ../.. && cd api && make && cd ..",
        "cd web\nfor f in *.py; do sed -i s/a/b/ \"$f\"; done\ncd ..",
        "gh pr diff | awk '{ if ($0 ~ /a|b/) print; sub(/.*\\/x\\//, \"\"); }' | head",
        "find src -name '*.js' -exec sh -c 'echo \"// x\" >> \"$1\"' _ {} \\;",
    ] {
        assert_eq!(threat_of(command), None, "{command}");
    }
}

/// Longer than what is kept of a command for showing.
fn long() -> String {
    format!("/home/me/{}", "a/".repeat(200))
}

#[test]
fn a_long_line_hides_nothing() {
    let long = long();
    for command in [
        format!("{long}beforehand clear --yes"),
        format!("git -C {long} update-ref -d refs/checkpoints/main/abc"),
        format!(
            "python3 -c 'import shutil; x = \"{long}\"; shutil.rmtree(\"/home/me/.local/state/beforehand\")'"
        ),
        format!("env A={long} BEFOREHAND=off make"),
        format!("make {long} BEFOREHAND_HOME=/tmp/x"),
        format!("make {long} && beforehand prune --all"),
        format!("sh -c 'cd {long}; beforehand restore latest --yes'"),
        format!("mystery {long} beforehand undo --yes"),
    ] {
        assert!(threat_of(&command).is_some(), "{command}");
    }
    for command in [
        format!("rm {long}"),
        format!("cat {long} ~/.local/state/beforehand/journal"),
        format!("make {long}"),
        format!("git commit -m 'run beforehand clear after {long}'"),
    ] {
        assert_eq!(threat_of(&command), None, "{command}");
    }
}

#[test]
fn words_are_the_commands_own() {
    for command in [
        "git commit -m 'run beforehand clear --yes'",
        "git commit -m 'set BEFOREHAND=off when'",
        "touch 'beforehand clear'",
        "rm -f beforehand restore",
        "make beforehand-clear",
    ] {
        assert_eq!(threat_of(command), None, "{command}");
    }
    for command in [
        "A=1 beforehand clear --yes",
        "t=beforehand; $t clear --yes",
        "echo 'rm -rf /home/me/.local/state/beforehand' | sh",
        "python3 <<'E'\nimport shutil; shutil.rmtree('/home/me/.config/beforehand')\nE",
        "x \"$(beforehand clear --yes)\"",
        "beforehand allow --once 12ab34cd",
        "beforehand --root . clear --yes",
        "beforehand \"$(echo clear)\" --yes",
        "\"$(which beforehand)\" clear --yes",
        "rm \"$(command -v beforehand)\"",
        "cargo uninstall beforehand",
        "find ~ -path '*beforehand*' -delete",
    ] {
        assert!(threat_of(command).is_some(), "{command}");
    }
}

#[test]
fn the_places_of_hooks_are_those_that_install_writes_to() {
    let dir = std::env::temp_dir().join(format!("beforehand-guard-{}", std::process::id()));
    let there = dir.to_str().unwrap();
    for (variable, file) in [
        ("CLAUDE_CONFIG_DIR", "settings.json"),
        ("CODEX_HOME", "hooks.json"),
        ("CODEX_HOME", "config.toml"),
        ("COPILOT_HOME", "hooks/beforehand.json"),
        ("HERMES_HOME", "config.yaml"),
        ("XDG_CONFIG_HOME", "opencode/plugins/beforehand.js"),
        ("XDG_CONFIG_HOME", "crush/crush.json"),
    ] {
        let path = dir.join(file);
        create_private_dirs(path.parent().unwrap()).unwrap();
        replace(&path, b"beforehand hook").unwrap();
        for command in [
            format!("rm {there}/{file}"),
            format!("rm -rf {there}"),
            format!("echo x > {there}/{file}"),
            format!("sed -i d {there}/{file}"),
            format!("mv {there}/{file} /tmp/x"),
            format!("python3 -c 'open(\"{there}/{file}\", \"w\")'"),
        ] {
            let told = threat_with(&[(variable, there)], &command);
            assert!(told.is_some(), "{variable}: {command}");
        }
        for command in [
            format!("echo x > \"${variable}/{file}\""),
            format!("echo {} && rm -f ${{{variable}}}/{file}", long()),
            format!("python3 -c 'import os; os.remove(os.environ[\"{variable}\"])'"),
        ] {
            let told = threat_with(&[(variable, there)], &command);
            assert!(told.is_some(), "{variable}: {command}");
        }
        for command in
            [format!("cat ${variable}/{file}"), format!("git commit -m 'tell of {variable}'")]
        {
            assert_eq!(threat_with(&[(variable, there)], &command), None, "{command}");
        }
        assert_eq!(threat_with(&[(variable, there)], &format!("cat {there}/{file}")), None);
        replace(&path, b"{}").unwrap();
        let command = format!("rm {there}/{file}");
        assert_eq!(threat_with(&[(variable, there)], &command), None, "{file}");
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn what_can_switch_hooks_off_is_not_written_unseen() {
    for command in [
        "echo '{\"disableAllHooks\": true}' > .claude/settings.local.json",
        "echo x > /home/me/.claude/settings.json",
        "cp x .claude/settings.json",
    ] {
        let told = threat_of(command).unwrap_or_default();
        assert!(told.contains("can be switched off there"), "{command}: {told}");
    }
    for command in [
        "rm -f .claude/settings.local.json",
        "echo x > .gemini/settings.json",
        "echo x > .claude/commands/x.md",
    ] {
        assert_eq!(threat_of(command), None, "{command}");
    }
}
