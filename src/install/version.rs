//! Which version of an agent is installed, from the place of its program and the files beside it.
//! The program itself is never run.

use std::path::Path;

use serde_json::Value;

use crate::{
    agent::{AgentVersion, NewerEvents},
    fs::read_small,
    process::Process,
};

/// Larger than any `package.json` of an agent.
const MANIFEST_MAX_BYTES: u64 = 256 << 10;
/// How far above the program its package can begin: npm has `bin/`, native installers less.
const LEVELS_MAX: usize = 4;

impl NewerEvents {
    /// The events that must be left out; none if one of `programs` is known to be new enough.
    pub(super) fn left_out(
        &self,
        process: &Process<'_>,
        programs: &[&str],
    ) -> &'static [&'static str] {
        let mut found = programs.iter().filter_map(|name| process.which(name));
        let is_new = found.any(|path| version_of(&path).is_some_and(|it| it >= self.since));
        if is_new { &[] } else { self.events }
    }
}

/// The version of an agent's program, if its place says so.
fn version_of(program: &Path) -> Option<AgentVersion> {
    let real = std::fs::canonicalize(program).ok()?;
    real.ancestors().take(LEVELS_MAX).find_map(|path| {
        // Native installers and package managers name a directory or the file itself so.
        let name = path.file_name()?.to_str()?;
        parse(name.rsplit_once("claude-code-").map_or(name, |(_, version)| version))
            .or_else(|| manifest_version(&path.join("package.json")))
    })
}

fn manifest_version(path: &Path) -> Option<AgentVersion> {
    let bytes = read_small(path, MANIFEST_MAX_BYTES).ok()??;
    let manifest: Value = serde_json::from_slice(&bytes).ok()?;
    manifest.get("name")?.as_str().filter(|name| name.contains("claude"))?;
    parse(manifest.get("version")?.as_str()?)
}

fn parse(text: &str) -> Option<AgentVersion> {
    let mut parts = text.splitn(3, '.').map(|part| part.parse().ok());
    let version = [parts.next()??, parts.next()??, parts.next()??];
    Some(version)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "the files of a test are its own")]

    use std::fs;

    use super::*;

    #[test]
    fn a_version_is_read_from_where_the_program_is() {
        let dir = std::env::temp_dir().join(format!("beforehand-version-{}", std::process::id()));
        let manifest = |dir: &Path, text: &str| fs::write(dir.join("package.json"), text).unwrap();
        for (place, told, version) in [
            ("share/claude/versions/2.1.332", None, Some([2, 1, 332])),
            ("Caskroom/claude-code/2.2.0/claude", None, Some([2, 2, 0])),
            ("store/abc-claude-code-2.1.331/bin/claude", None, Some([2, 1, 331])),
            (
                "node/22.1.0/lib/node_modules/@anthropic-ai/claude-code/cli.js",
                Some("{\"name\": \"@anthropic-ai/claude-code\", \"version\": \"2.1.90\"}"),
                Some([2, 1, 90]),
            ),
            ("other/cli.js", Some("{\"name\": \"other\", \"version\": \"9.0.0\"}"), None),
            ("broken/cli.js", Some("{\"name\": 1, \"version\": [2.1]"), None),
            ("bin/claude", None, None),
        ] {
            let program = dir.join(place);
            fs::create_dir_all(program.parent().unwrap()).unwrap();
            fs::write(&program, "").unwrap();
            if let Some(text) = told {
                manifest(program.parent().unwrap(), text);
            }
            assert_eq!(version_of(&program), version, "{place}");
        }
        for text in ["", "2", "2.1", "v2.1.3", "2.1.3-beta", "2.1.3.4", "-1.0.0", "a.b.c"] {
            assert_eq!(parse(text), None, "{text}");
        }
        fs::remove_dir_all(&dir).unwrap();
    }
}
