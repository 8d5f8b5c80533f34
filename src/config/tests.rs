//! Tests of the settings as a whole.

#![expect(clippy::disallowed_methods, reason = "these tests make and remove their own files")]

use std::{
    ffi::OsString,
    fs,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use super::*;
use crate::{
    model::{BeforeShell, Dedupe, TroubleAnswer},
    process::{ProcessContext, Terminal},
};

/// A home, a project, and an environment.
struct ConfigFixture {
    dir: PathBuf,
    env: BTreeMap<OsString, OsString>,
}

impl ConfigFixture {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("beforehand-config-{}-{number}", std::process::id());
        let dir = std::env::temp_dir().canonicalize().unwrap().join(name);
        fs::create_dir_all(dir.join("home/.config/beforehand")).unwrap();
        fs::create_dir_all(dir.join("home/code/shop")).unwrap();
        let env = BTreeMap::from([("HOME".into(), dir.join("home").into())]);
        Self { dir, env }
    }

    fn with(text: &str) -> Self {
        let place = Self::new();
        fs::write(place.file(), text).unwrap();
        place
    }

    fn env(mut self, name: &str, value: &str) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    fn file(&self) -> PathBuf {
        self.dir.join("home/.config/beforehand/config.toml")
    }

    fn root(&self) -> PathBuf {
        self.dir.join("home/code/shop")
    }

    fn process<T>(&self, f: impl FnOnce(&Process<'_>) -> T) -> T {
        let context =
            ProcessContext { cwd: None, env: self.env.clone(), now: chrono::DateTime::UNIX_EPOCH };
        context.run(b"", Terminal::default(), &(), |process| f(process)).0
    }

    fn load(&self) -> LoadedSettings {
        self.process(|process| load(process, Some(&self.root())))
    }

    fn state(&self) -> Result<PathBuf> {
        self.process(|process| state(process, Some(&self.root()))).map(|state| state.dir().into())
    }

    /// What `beforehand config` says: the error with its hint, the directory shortened.
    fn refusal(&self) -> String {
        match self.process(|process| load_strictly(process, Some(&self.root()))) {
            Ok(_) => "nothing".to_owned(),
            Err(err) => format!("{err} — {}", err.hint().unwrap_or("no hint")),
        }
        .replace(self.dir.to_str().unwrap(), "")
    }
}

impl Drop for ConfigFixture {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.dir);
    }
}

/// Another value than the default for each key, as in a file and as in the environment.
const OTHERS: [(&str, &str, &str); 31] = [
    ("enabled", "false", "off"),
    ("triggers.before_write", "false", "false"),
    ("triggers.before_edit", "false", "no"),
    ("triggers.before_shell", "\"never\"", "never"),
    ("triggers.session_start", "false", "off"),
    ("shell.always", "[\"rm *\", \"git *\"]", "rm *, git *"),
    ("shell.never", "[\"npm *\"]", "npm *"),
    ("dedupe", "\"call\"", "call"),
    ("retention", "\"30d\"", "30 days"),
    ("keep_turns", "\"7d\"", "7 days"),
    ("keep_sessions", "\"365d\"", "365 days"),
    ("max_file_size", "\"64 MB\"", "64MB"),
    ("max_victim_size", "\"1 GiB\"", "1GiB"),
    ("max_files", "9", "9"),
    ("max_total_size", "\"3 TB\"", "3tb"),
    ("exclude", "[\"*.log\", \"tmp/\"]", "*.log,tmp/"),
    ("on_trouble", "\"deny\"", "deny"),
    ("deadline", "\"500ms\"", "500ms"),
    ("notify", "\"always\"", "always"),
    ("auto_prune", "false", "false"),
    ("prune_interval", "\"1h\"", "1h"),
    ("delete_orphans", "false", "false"),
    ("private", "[\"*.secret\"]", "*.secret"),
    ("free_space_floor", "\"10 %\"", "10%"),
    ("cannot_hold", "\"deny\"", "deny"),
    ("store", "\"files\"", "files"),
    ("self_defence", "\"deny\"", "deny"),
    ("on_session_end", "\"prune\"", "prune"),
    ("tell_model", "true", "on"),
    ("notice.files", "7", "7"),
    ("notice.untracked", "false", "false"),
];

#[test]
fn nothing_set_is_the_default_everywhere() {
    let loaded = ConfigFixture::new().load();
    assert_eq!(loaded.settings, Settings::default());
    assert!(loaded.notes.is_empty());
    assert!(loaded.rows().iter().all(|row| row.origin == SettingOrigin::Default));
}

#[test]
fn every_key_is_taken_from_every_source() {
    assert_eq!(
        OTHERS.map(|(key, ..)| key)[..],
        KEYS.iter().map(|key| key.name).collect::<Vec<_>>()
    );
    for (name, toml, text) in OTHERS {
        let key = SettingKey::find(name).unwrap();
        let shown = |loaded: &LoadedSettings| {
            assert_eq!(loaded.notes, Vec::<String>::new(), "{name}");
            assert_ne!(key.value(&loaded.settings), key.default(), "{name}");
            key.value(&loaded.settings).to_string()
        };
        let file = ConfigFixture::with(&format!("{name} = {toml}"));
        assert_eq!(shown(&file.load()), toml);
        assert_eq!(file.load().origin(name), SettingOrigin::File { path: file.file(), line: 1 });

        let env = ConfigFixture::new().env(&key.variable(), text);
        assert_eq!(shown(&env.load()), toml);
        assert_eq!(env.load().origin(name), SettingOrigin::Environment(key.variable()));

        let mut flagged = ConfigFixture::new().load();
        flagged.set_flag("--set", name, text).unwrap();
        assert_eq!(shown(&flagged), toml);

        let place = ConfigFixture::new();
        fs::write(place.file(), format!("\n[directory.\"~/code\"]\n{name} = {toml}")).unwrap();
        match key.scope {
            SettingScope::Directory => assert_eq!(shown(&place.load()), toml),
            SettingScope::Shared => assert!(place.refusal().contains("set it above"), "{name}"),
        }
    }
}

#[test]
fn the_nearer_source_wins() {
    let place = ConfigFixture::new();
    // One spelling is absolute and sorts first, so that order must come from the paths.
    let text = format!(
        "deadline = \"1s\"\ndedupe = \"call\"\nmax_files = 1\n\
         [directory.{:?}]\ndeadline = \"3m\"\n\
         [directory.\"~/code/\"]\ndeadline = \"2s\"\nmax_files = 2\n\
         [directory.\"~/code/sh\"]\ndedupe = \"strict\"\n\
         [directory.\"/elsewhere\"]\nmax_files = 9",
        place.root()
    );
    fs::write(place.file(), text).unwrap();
    let settings = place.load().settings;
    assert_eq!(settings.deadline, Duration::from_secs(180));
    assert_eq!((settings.max_files, settings.dedupe), (2, Dedupe::Call));
    assert_eq!(
        place.load().origin("deadline").words(place.load().home.as_deref()),
        "~/.config/beforehand/config.toml:5, for ~/code/shop"
    );
    let place = place.env("BEFOREHAND_DEADLINE", "4s");
    let mut loaded = place.load();
    assert_eq!(loaded.settings.deadline, Duration::from_secs(4));
    assert_eq!(
        loaded.set_by_environment().collect::<Vec<_>>(),
        [("deadline", "BEFOREHAND_DEADLINE")]
    );
    loaded.set_flag("--deadline", "deadline", "5s").unwrap();
    assert_eq!(loaded.origin("deadline").to_string(), "--deadline");
}

#[test]
fn without_a_root_no_table_holds() {
    let place = ConfigFixture::with("[directory.\"/\"]\nenabled = false");
    assert!(place.process(|process| load(process, None)).settings.enabled);
    assert!(!place.load().settings.enabled);
}

#[test]
fn beforehand_off_is_for_one_run() {
    let place = ConfigFixture::new().env("BEFOREHAND", "off").env("BEFOREHAND_ENABLED", "true");
    assert!(!place.load().settings.enabled);
    assert_eq!(place.load().origin("enabled").to_string(), "BEFOREHAND");
    let place = ConfigFixture::new().env("BEFOREHAND", "offf");
    assert!(place.load().settings.enabled);
    assert_eq!(place.load().notes.len(), 1);
}

#[test]
fn people_are_refused_with_the_line_and_what_may_be_meant() {
    let refusal = |text: &str| ConfigFixture::with(text).refusal();
    let file = "/home/.config/beforehand/config.toml";
    for (text, expected) in [
        ("\n\nmax_fil_size = 3", ":3: unknown key `max_fil_size` — did you mean `max_file_size`?"),
        ("[trigger]\nx = 1", ":1: unknown key `trigger` — did you mean `triggers`?"),
        (
            "[triggers]\nbefore_shel = 1",
            ":2: unknown key `triggers.before_shel` — did you mean `triggers.before_shell`?",
        ),
        (
            "before_edit = true",
            ":1: unknown key `before_edit` — did you mean `triggers.before_edit`?",
        ),
        ("directry = 1", ":1: unknown key `directry` — did you mean `directory`?"),
        ("\u{1b} = 1", ":1: is not TOML: "),
        ("\"\\u001b\" = 1", ":1: unknown key `\\u{1b}` — no hint"),
        ("a = 1\nenabled = \"perhaps", ":2: is not TOML: "),
        ("triggers = 3", ":1: triggers: expected a table"),
        ("directory = 3", ":1: directory: expected `[directory.\"/path\"]`"),
        ("[directory.shop]", ":1: directory: expected an absolute path, found `shop`"),
        ("[directory]\n\"/x\" = 3", ":2: directory: expected `[directory.\"/path\"]`"),
        ("[directory.\"/x\"]\nenabled = 3", ":2: enabled: expected `true` or `false`, found `3`"),
        ("deadline = 3", ":1: deadline: expected a time with its unit, as in `3s`"),
        ("deadline = 1979-05-27", ":1: deadline: a datetime is no value for it"),
        ("exclude = [1]", ":1: exclude: expected a list of texts only"),
        ("max_files = 0xfffffffffffffffff", ":1: max_files: a number too large"),
        ("max_files = 0", ":1: max_files: expected a whole number from 1, found `0`"),
    ] {
        let refused = refusal(text);
        assert!(refused.starts_with(&format!("{file}{expected}")), "{text:?}: {refused}");
    }
    assert_eq!(
        ConfigFixture::new().env("BEFOREHAND_DEDUP", "call").refusal(),
        "the environment: unknown variable `BEFOREHAND_DEDUP` — did you mean `BEFOREHAND_DEDUPE`?"
    );
    assert_eq!(ConfigFixture::new().env("BEFOREHAND_SOMETHING_ELSE", "call").refusal(), "nothing");
    let loaded = ConfigFixture::new().process(|process| load_strictly(process, None)).unwrap();
    assert_eq!(loaded.rows().len(), KEYS.len());
}

#[test]
fn a_bad_value_never_disables() {
    for (name, ..) in OTHERS {
        for bad in ["\"\u{202e}nonsense\"", "-1", "3.5", "{}", "[[]]", "nan", "1979-05-27"] {
            let place =
                ConfigFixture::with(&format!("dedupe = \"call\"\n{name} = {bad}\nmax_files = 3"));
            let loaded = place.load();
            let is_list =
                matches!(SettingKey::find(name).unwrap().default(), SettingValue::List(_));
            assert!(loaded.settings.enabled, "{name} {bad}");
            assert_eq!(loaded.settings.triggers.before_shell, BeforeShell::Mutating);
            assert_eq!(
                loaded.notes.len(),
                usize::from(!is_list || !bad.starts_with('"')),
                "{name} {bad}"
            );
            assert!(loaded.notes.iter().all(|note| note.chars().all(crate::error::is_plain)));
        }
        let variable = SettingKey::find(name).unwrap().variable();
        assert!(ConfigFixture::new().env(&variable, "\u{1b}nonsense").load().settings.enabled);
        assert!(ConfigFixture::new().env(&variable, "").load().settings == Settings::default());
    }
}

#[test]
fn text_in_a_file_is_no_switch() {
    for (key, _, word) in OTHERS {
        let default = SettingKey::find(key).unwrap().default();
        if !matches!(default, SettingValue::Switch(_)) {
            continue;
        }
        for word in [word, "off", "no", "false", "on", "0"] {
            let place = ConfigFixture::with(&format!("{key} = {word:?}"));
            let loaded = place.load();
            assert_eq!(SettingKey::find(key).unwrap().value(&loaded.settings), default);
            let why = format!(":1: {key}: expected `true` or `false`, found `{word:?}`");
            assert!(loaded.notes[0].contains(&why), "{:?}", loaded.notes);
            assert!(place.refusal().contains(&why), "{}", place.refusal());
        }
    }
}

#[test]
fn one_slip_leaves_the_rest_standing() {
    let loaded = ConfigFixture::with("dedupe = \"cal\"\non_trouble = \"ask\"\nnonsense = 1").load();
    assert_eq!(
        (loaded.settings.dedupe, loaded.settings.on_trouble),
        (Dedupe::Turn, TroubleAnswer::Ask)
    );
    assert_eq!(loaded.notes.len(), 2, "{:?}", loaded.notes);
}

#[test]
fn a_hostile_file_is_one_note() {
    let note = |make: &dyn Fn(&Path)| {
        let place = ConfigFixture::new();
        make(&place.file());
        let loaded = place.load();
        assert_eq!(loaded.settings, Settings::default());
        assert_eq!(loaded.notes.len(), 1, "{:?}", loaded.notes);
        assert_ne!(place.refusal(), "nothing");
        loaded.notes[0].replace(place.dir.to_str().unwrap(), "")
    };
    let write = |bytes: Vec<u8>| note(&move |path| fs::write(path, &bytes).unwrap());
    let file = "/home/.config/beforehand/config.toml";
    let fifo = note(&|path| {
        assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    });
    assert_eq!(fifo, format!("{file}: cannot be read: not a regular file; ignored"));
    let zero = note(&|path| std::os::unix::fs::symlink("/dev/zero", path).unwrap());
    assert_eq!(zero, format!("{file}: cannot be read: not a regular file; ignored"));
    let huge = note(&|path| fs::File::create(path).unwrap().set_len(1 << 30).unwrap());
    assert!(huge.contains("larger than"), "{huge}");
    assert!(note(&|path| fs::create_dir(path).unwrap()).contains("not a regular file"));
    assert_eq!(write(b"x = \"\xff\"".to_vec()), format!("{file}: is not UTF-8 text; ignored"));
    assert!(write(vec![0; 1 << 10]).contains("is not TOML"));
    // Deep nesting in each way that TOML has.
    assert!(write(format!("x = {}", "[".repeat(1 << 19)).into_bytes()).contains("is not TOML"));
    assert!(write(format!("x = {}", "{x=".repeat(1 << 18)).into_bytes()).contains("is not TOML"));
    assert!(write(format!("x{} = 1", ".x".repeat(1 << 18)).into_bytes()).contains("is not TOML"));
    assert!(write(format!("[x{}]", ".x".repeat(1 << 18)).into_bytes()).contains("is not TOML"));
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(64))]

    #[test]
    fn whatever_stands_in_the_file_is_survived(
        bytes: Vec<u8>,
        key in 0..KEYS.len(),
        value in "[-\\[\\]{}\"'a-z0-9., %\\\\]{0,12}",
    ) {
        let name = KEYS[key].name;
        for text in [bytes, format!("{name} = {value}\n[directory.\"/\"]\n{name} = {value}").into()] {
            let place = ConfigFixture::new();
            fs::write(place.file(), text).unwrap();
            let loaded = place.load();
            let plain = |note: &String| note.chars().all(crate::error::is_plain);
            proptest::prop_assert!(loaded.notes.iter().all(plain), "{:?}", loaded.notes);
            proptest::prop_assert!(loaded.settings.deadline > Duration::ZERO);
        }
    }
}

#[test]
fn no_end_of_nonsense_is_a_few_notes() {
    let text = (0..20_000).fold(String::new(), |text, n| text + &format!("nonsense{n} = 1\n"));
    let notes = ConfigFixture::with(&text).load().notes;
    assert_eq!(notes.len(), TROUBLES_MAX + 1);
    assert_eq!(notes[TROUBLES_MAX], "and 19992 more like these");
}

#[test]
fn state_is_where_the_user_says() {
    let place = ConfigFixture::new();
    assert_eq!(place.state().unwrap(), place.dir.join("home/.local/state/beforehand"));
    let place = place.env("XDG_STATE_HOME", "/var/state");
    assert_eq!(place.state().unwrap(), Path::new("/var/state/beforehand"));
    let place = place.env("BEFOREHAND_HOME", "/var/own");
    assert_eq!(place.state().unwrap(), Path::new("/var/own"));
    assert_eq!(place.load().file.unwrap(), Path::new("/var/own/config.toml"));
}

#[test]
fn a_relative_place_is_no_place() {
    let place = ConfigFixture::new().env("BEFOREHAND_HOME", "own").env("XDG_CONFIG_HOME", "./x");
    assert_eq!(place.state().unwrap(), place.dir.join("home/.local/state/beforehand"));
    assert_eq!(
        place.load().notes,
        [
            "BEFOREHAND_HOME: `own` is not an absolute path; ignored",
            "XDG_CONFIG_HOME: `./x` is not an absolute path; ignored"
        ]
    );
    let mut place = ConfigFixture::new();
    place.env.clear();
    assert_eq!(
        place.state().unwrap_err().to_string(),
        "there is no place for checkpoints: `HOME` is not set to an absolute path, and the user \
         database has no home"
    );
    assert_eq!(place.load().settings, Settings::default());
    assert!(place.env("HOME", "here").state().is_err());
}

#[test]
fn nothing_inside_the_protected_directory_configures_us() {
    let place = ConfigFixture::new();
    let own = place.root().join("own");
    fs::create_dir_all(own.join("beforehand")).unwrap();
    fs::write(own.join("config.toml"), "enabled = false").unwrap();
    fs::write(own.join("beforehand/config.toml"), "enabled = false").unwrap();
    let link = place.dir.join("link");
    std::os::unix::fs::symlink(&own, &link).unwrap();
    for dir in [own, link] {
        let dir = dir.to_str().unwrap();
        for name in ["BEFOREHAND_HOME", "XDG_CONFIG_HOME"] {
            let place =
                ConfigFixture { env: place.env.clone(), dir: place.dir.clone() }.env(name, dir);
            let loaded = place.load();
            assert!(loaded.settings.enabled);
            assert!(loaded.notes[0].contains("inside the protected directory"), "{name} {dir}");
            assert!(place.state().unwrap().ends_with("home/.local/state/beforehand"));
            std::mem::forget(place);
        }
    }
}

#[test]
fn a_settings_file_that_is_a_symlink_into_the_protected_directory_is_not_read() {
    for name in ["XDG_CONFIG_HOME", "BEFOREHAND_HOME"] {
        let place = ConfigFixture::new();
        fs::write(place.root().join("x.toml"), "enabled = false").unwrap();
        let own = place.dir.join("own");
        fs::create_dir_all(own.join("beforehand")).unwrap();
        for file in ["config.toml", "beforehand/config.toml"] {
            std::os::unix::fs::symlink(place.root().join("x.toml"), own.join(file)).unwrap();
        }
        let loaded = place.env(name, own.to_str().unwrap()).load();
        assert!(loaded.settings.enabled && loaded.notes.len() == 1, "{:?}", loaded.notes);
    }
}

#[test]
fn settings_in_a_protected_settings_directory_are_not_read() {
    let place = ConfigFixture::with("enabled = false");
    let config = place.dir.join("home/.config");
    let loaded = place.process(|process| load(process, Some(&config)));
    assert!(loaded.settings.enabled && loaded.notes.len() == 1, "{:?}", loaded.notes);
    // The home itself is protected by name only, and self-defence watches our files.
    let home = place.dir.join("home");
    assert!(!place.process(|process| load(process, Some(&home))).settings.enabled);
}
