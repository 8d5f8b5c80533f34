//! A place in which any command line can run: user, mount, process and network namespaces of its
//! own, in which nothing but one directory can be written.

#![expect(clippy::disallowed_methods, reason = "a sandbox needs the real PATH")]

use std::{
    path::Path,
    process::{Command, Stdio},
};

/// Makes the whole system read-only but for `$1`, and says so if that failed.
pub(crate) const CONFINE: &str = r#"
set -e
area=$1
mount --make-rprivate /
mount --bind "$area" "$area"
while read -r _ _ _ _ point _; do
    case $point in "$area"|/proc|/proc/*|/dev|/dev/*) ;; *) points="$points $point" ;; esac
done </proc/self/mountinfo
for point in $points; do mount -o remount,bind,ro "$point" 2>/dev/null || true; done
if touch /beforehand-sandbox 2>/dev/null; then rm -f /beforehand-sandbox; echo broken; exit 1; fi
set +e
"#;

/// A shell in a sandbox that runs `CONFINE` and then `script`, with the directory as `$1` and
/// nothing in its environment but what every shell has.
pub(crate) fn confined(area: &Path, home: &Path, script: &str) -> Command {
    let mut command = Command::new("unshare");
    command
        .args(["-U", "-r", "-m", "-n", "-p", "-f", "--kill-child", "--mount-proc", "bash", "-c"])
        .arg(format!("{CONFINE}{script}"))
        .arg("sandbox")
        .arg(area)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home)
        .envs([("LC_ALL", "C"), ("TERM", "dumb"), ("USER", "root")])
        .stderr(Stdio::null());
    command
}
