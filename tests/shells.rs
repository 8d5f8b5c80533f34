//! `beforehand init`: each shell's script, loaded by that shell, with real keys.

use std::{
    path::PathBuf,
    process::{Command, Output},
    time::Duration,
};

use crate::support::{
    temp::write,
    tmux::{Tmux, has},
    world::World,
};

/// A project with a turn to go back to.
fn world() -> World {
    let mut world = World::new();
    world.set("TERM", "screen");
    world.set("LC_ALL", "C.UTF-8");
    world.write("a.txt", "one\n");
    world.agent_writes("t1", "a.txt", "two\n");
    world
}

/// Runs a shell with our program on its path.
fn shell(world: &World, words: &[&str]) -> Output {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_beforehand"));
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", program.parent().unwrap().display());
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(world.root()).env_clear().envs(&world.env);
    command.env("PATH", path).output().unwrap()
}

/// What it printed; it must not complain.
fn said(world: &World, words: &[&str]) -> String {
    let output = shell(world, words);
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.success(), &*complaint), (true, ""), "{words:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Long enough for a shell on a busy machine to take a lone Esc for one.
const PAUSE: Duration = Duration::from_millis(1500);

/// Esc twice. zsh and bash read them as one key; in fish they are two.
fn escape_twice(tmux: &Tmux, is_fish: bool) {
    if is_fish {
        tmux.press(&["Escape"]);
        std::thread::sleep(Duration::from_millis(100));
        tmux.press(&["Escape"]);
    } else {
        tmux.press(&["Escape", "Escape"]);
    }
}

/// Presses Esc twice until the picker is there: on a busy machine the second may come late.
fn opens(tmux: &Tmux, is_fish: bool) -> String {
    for _ in 0..10 {
        escape_twice(tmux, is_fish);
        for _ in 0..20 {
            std::thread::sleep(Duration::from_millis(100));
            if tmux.screen().contains("Enter choose") {
                return tmux.sees("since then:");
            }
        }
    }
    panic!("it never opens:\n{}", tmux.screen());
}

/// The lines that have something on them.
fn lines(screen: &str) -> Vec<&str> {
    screen.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect()
}

/// What holds in every shell whose prompt is `p> `. `alt_up` is what Alt with the up arrow makes of an
/// empty line after `echo hi`.
fn is_well_behaved(world: &World, tmux: &Tmux, alt_up: &str) {
    // It is fish that has a meaning of its own for it.
    let is_fish = alt_up == "p> hi";
    tmux.until("a prompt", |screen| lines(screen) == ["p>"]);
    // It opens, and leaves the prompt as it was.
    let screen = opens(tmux, is_fish);
    assert!(screen.contains("1 turn"), "{screen}");
    tmux.press(&["Escape"]);
    tmux.until("the very prompt", |screen| lines(screen) == ["p>"]);
    // On a line with something in it nothing opens and nothing is lost.
    tmux.press(&["e", "c", "h", "o", "Space", "h", "i"]);
    tmux.sees("p> echo hi");
    escape_twice(tmux, is_fish);
    std::thread::sleep(PAUSE);
    tmux.press(&["Enter"]);
    tmux.until("the command's output", |screen| lines(screen) == ["p> echo hi", "hi", "p>"]);
    // Alt with an arrow key is one key in two Escs.
    tmux.bytes(b"\x1b\x1b[A");
    tmux.until("history", |screen| lines(screen).last() == Some(&alt_up));
    tmux.press(&["C-u"]);
    tmux.until("an empty line", |screen| lines(screen).last() == Some(&"p>"));
    // What was done is printed between two prompts.
    opens(tmux, is_fish);
    tmux.press(&["Enter"]);
    tmux.sees("1 path would change");
    tmux.press(&["Enter"]);
    let screen = tmux.until("what was done", |screen| {
        screen.contains("undo with: beforehand undo") && lines(screen).last() == Some(&"p>")
    });
    let last = lines(&screen);
    assert!(last[last.len() - 3].starts_with("restored 1 path from "), "{screen}");
    assert_eq!(world.read("a.txt"), "one\n");
    // Our commands are completed.
    tmux.line("clear");
    tmux.until("a prompt", |screen| lines(screen) == ["p>"]);
    for key in "beforehand".split("").filter(|key| !key.is_empty()) {
        tmux.press(&[key]);
    }
    tmux.press(&["Space", "r", "e", "w", "Tab"]);
    tmux.sees("beforehand rewind");
}

#[test]
fn zsh_opens_the_picker() {
    let mut world = world();
    if !has("zsh") {
        return;
    }
    let script = said(&world, &["beforehand", "init", "zsh"]);
    let home = world.root().join("../../home");
    write(&home.join("init.zsh"), script);
    let file = home.join("init.zsh");
    assert_eq!(said(&world, &["zsh", "-n", file.to_str().unwrap()]), "");
    let load = "autoload -Uz compinit; compinit -u; eval \"$(beforehand init zsh)\"";
    let completer = said(&world, &["zsh", "-fc", &format!("{load}; print $_comps[beforehand]")]);
    assert_eq!(completer, "_beforehand\n");
    // Without completions it loads as well.
    assert_eq!(said(&world, &["zsh", "-fc", "eval \"$(beforehand init zsh)\""]), "");
    write(&home.join(".zshrc"), format!("PS1='p> '\n{load}\n"));
    world.set("ZDOTDIR", home.to_str().unwrap());
    let Some(tmux) = Tmux::start(&world, (80, 24), "zsh -i") else { return };
    is_well_behaved(&world, &tmux, "p> echo hi");
}

#[test]
fn zsh_in_vi_mode_keeps_its_escape() {
    let mut world = world();
    if !has("zsh") {
        return;
    }
    let home = world.root().join("../../home");
    write(&home.join(".zshrc"), "PS1='p> '\nbindkey -v\neval \"$(beforehand init zsh)\"\n");
    world.set("ZDOTDIR", home.to_str().unwrap());
    let Some(tmux) = Tmux::start(&world, (80, 24), "zsh -i") else { return };
    has_vi_keys(&tmux);
}

#[test]
fn bash_opens_the_picker() {
    let world = world();
    if !has("bash") {
        return;
    }
    let script = said(&world, &["beforehand", "init", "bash"]);
    let home = world.root().join("../../home");
    write(&home.join("init.bash"), script);
    let file = home.join("init.bash");
    assert_eq!(said(&world, &["bash", "-n", file.to_str().unwrap()]), "");
    let load = "eval \"$(beforehand init bash)\"";
    let completer = said(&world, &["bash", "-c", &format!("{load}; complete -p beforehand")]);
    assert!(completer.contains("_beforehand"), "{completer}");
    write(&home.join(".bashrc"), format!("PS1='p> '\n{load}\n"));
    let Some(tmux) = Tmux::start(&world, (80, 24), "bash -i") else { return };
    is_well_behaved(&world, &tmux, "p> echo hi");
    // What Esc Esc did before on a line with something in it: complete a name.
    tmux.press(&["C-u"]);
    tmux.until("an empty line", |screen| lines(screen) == ["p>"]);
    tmux.press(&["c", "a", "t", "Space", "a", ".", "t"]);
    escape_twice(&tmux, false);
    tmux.sees("p> cat a.txt");
}

#[test]
fn bash_in_vi_mode_keeps_its_escape() {
    let world = world();
    if !has("bash") {
        return;
    }
    let home = world.root().join("../../home");
    write(&home.join(".bashrc"), "PS1='p> '\nset -o vi\neval \"$(beforehand init bash)\"\n");
    let Some(tmux) = Tmux::start(&world, (80, 24), "bash -i") else { return };
    has_vi_keys(&tmux);
}

/// Esc still leaves the insert mode, and Esc Esc at an empty prompt opens the picker.
fn has_vi_keys(tmux: &Tmux) {
    tmux.until("a prompt", |screen| lines(screen) == ["p>"]);
    tmux.press(&["e", "c", "h", "o", "x"]);
    tmux.sees("p> echox");
    tmux.press(&["Escape"]);
    std::thread::sleep(PAUSE);
    tmux.press(&["0", "x"]);
    tmux.sees("p> chox");
    escape_twice(tmux, false);
    std::thread::sleep(PAUSE);
    tmux.press(&["x"]);
    tmux.sees("p> hox");
    tmux.press(&["d", "d"]);
    tmux.until("an empty line", |screen| lines(screen) == ["p>"]);
    opens(tmux, false);
    tmux.press(&["Escape"]);
    tmux.until("the very prompt", |screen| lines(screen) == ["p>"]);
}

#[test]
fn fish_opens_the_picker() {
    let world = world();
    if !has("fish") {
        return;
    }
    let script = said(&world, &["beforehand", "init", "fish"]);
    let home = world.root().join("../../home");
    write(&home.join("init.fish"), script);
    let file = home.join("init.fish");
    assert_eq!(said(&world, &["fish", "-n", file.to_str().unwrap()]), "");
    let load = "beforehand init fish | source";
    let words = said(&world, &["fish", "-c", &format!("{load}; complete -C 'beforehand rew'")]);
    assert!(words.starts_with("rewind\t"), "{words}");
    let config = "function fish_prompt; echo -n 'p> '; end\nfunction fish_greeting; end\n";
    write(&home.join(".config/fish/config.fish"), format!("{config}{load}\n"));
    let Some(tmux) = Tmux::start(&world, (80, 24), "fish -i") else { return };
    // fish takes the last word of the line before.
    is_well_behaved(&world, &tmux, "p> hi");
}
