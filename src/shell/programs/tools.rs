//! Development and cloud tools whose options decide between looking and changing.

use super::{all, closed, strayed};
use crate::model::{Level, TargetAction};
use crate::shell::flags::{self, Field, Mark};
use crate::shell::names;
use crate::shell::verdict::{Call, Verdict, destroys, reads, unknown};
use crate::shell::walk::Walk;

/// Judges `make`: only a dry run looks.
pub(in crate::shell) fn make(walk: &mut Walk<'_>, call: &Call<'_>) -> Verdict {
    let list = "-nBikqrRsSwpd -C: -f: -I: -j? -l? -o: -W: --dry-run --just-print --recon --question --always-make --directory= --file= --makefile= --keep-going --silent --quiet \
                --jobs? --no-print-directory --print-directory --print-data-base --no-builtin-rules --trace --debug? %--version %-v %--help %-h";
    let (parsed, verdict) = closed(walk, list, call.args());
    if parsed.hits.iter().any(|hit| hit.mark == Mark::Talks) {
        return reads("only tells about the program");
    }
    let sets = parsed.operands.iter().any(|operand| operand.text.contains('='));
    let is_dry = parsed.has(&["-n", "--dry-run", "--just-print", "--recon", "-q", "--question"]);
    if is_dry && !sets && verdict.level == Level::ReadOnly {
        return reads("only shows what it would do");
    }
    unknown("runs the project's recipes")
}

/// Judges `cargo fmt` and `rustfmt`: they rewrite unless they check or print.
pub(in crate::shell) fn cargo_fmt(walk: &mut Walk<'_>, call: &Call<'_>) -> Verdict {
    let words: Vec<Field> = call.args().iter().filter(|arg| arg.text != "--").cloned().collect();
    let list = "-vqp: -l --all --check --package= --manifest-path= --message-format= --emit= --edition= --config= --config-path= --color= --files-with-diff %--version %-V %--help %-h --style-edition=";
    let (parsed, _) = closed(walk, list, &words);
    let prints = parsed
        .value(&["--emit"])
        .is_some_and(|emit| names::is_one(emit, &["stdout", "json", "checkstyle"]));
    let talks = parsed.hits.iter().any(|hit| hit.mark == Mark::Talks);
    if parsed.stray.is_none() && (parsed.has(&["--check"]) || prints || talks) {
        return reads("only checks");
    }
    let why = "rewrites sources in its style";
    destroys(why, all(walk, &parsed.operands, TargetAction::Modify, why))
}

/// Sub-commands of `npm` that look.
const NPM: &[&str] = &[
    "ls", "list", "ll", "la", "view", "info", "show", "v", "outdated", "root", "prefix", "bin",
    "ping", "whoami", "search", "find", "explain", "why", "fund", "help", "help-search", "docs",
    "bugs", "repo", "query", "sbom", "diff", "doctor", "stars", "audit",
];
const NPM_TWO: &[&str] = &[
    "config get", "config list", "config ls", "c get", "pkg get", "cache ls", "cache verify",
    "dist-tag ls", "owner ls", "access list", "profile get", "team ls", "token list",
    "get registry", "hook ls",
];

/// Judges `npm`.
pub(in crate::shell) fn npm(walk: &mut Walk<'_>, call: &Call<'_>) -> Verdict {
    let list = "* -w: --workspace= --prefix= --loglevel= --depth= --registry= --omit= --include= -s -g %--version %-v %--help %-h";
    let parsed = flags::parse(list, call.args());
    let before = call.args().iter().take_while(|arg| arg.text != "--");
    let is_dry = before.clone().any(|arg| names::is_one(arg, &["--dry-run"]));
    let words: Vec<&str> = parsed.operands.iter().map_while(Field::literal).take(2).collect();
    let talks = parsed.hits.iter().any(|hit| hit.mark == Mark::Talks);
    if words.is_empty() {
        return if talks || call.args().is_empty() {
            reads("only tells about the program")
        } else {
            unknown("does nothing we know")
        };
    }
    let first = words.first().copied().unwrap_or_default();
    let dry = [
        "install", "i", "ci", "add", "uninstall", "remove", "rm", "update", "prune", "publish",
        "pack", "dedupe", "audit",
    ];
    let audits = first == "audit" && words.get(1) == Some(&"fix");
    let lists_scripts =
        ["run", "run-script"].contains(&first) && words.len() == 1 && parsed.operands.len() == 1;
    let looks = (NPM.contains(&first) && !audits)
        || NPM_TWO.contains(&words.join(" ").as_str())
        || (is_dry && dry.contains(&first))
        || lists_scripts
        || (first == "version" && parsed.operands.len() == 1)
        || (words == ["config", "get"]);
    // `exec` and `x` run a program given as words.
    if ["exec", "x"].contains(&first) {
        let rest: Vec<Field> = parsed.operands.iter().skip(1).cloned().collect();
        if !rest.is_empty() {
            walk.run(&rest, call.stdin);
        }
        return unknown("runs a package");
    }
    if looks {
        reads("only looks")
    } else {
        unknown("runs the project's scripts or changes packages")
    }
}

/// Judges `tsc`: it compiles to files unless told not to.
pub(in crate::shell) fn tsc(walk: &mut Walk<'_>, call: &Call<'_>) -> Verdict {
    let list = "@ * --noEmit --noemit -noEmit --showConfig --listFilesOnly -p: --project: --init -b --build --incremental -i --tsBuildInfoFile: --generateTrace: --generateCpuProfile: %--version %-v %--help %-h %-V";
    let (parsed, _) = closed(walk, list, call.args());
    let talks = parsed.hits.iter().any(|hit| hit.mark == Mark::Talks);
    let checks = parsed
        .has(&["--noEmit", "--noemit", "-noEmit", "--showConfig", "--listFilesOnly"])
        && !parsed.has(&[
            "--init", "-b", "--build", "--incremental", "-i", "--tsBuildInfoFile",
            "--generateTrace", "--generateCpuProfile",
        ]);
    if talks || checks {
        reads("only checks")
    } else {
        destroys("tsc writes what it compiles", Vec::new())
    }
}

/// Judges `journalctl`: vacuuming and rotating change the log.
pub(in crate::shell) fn journalctl(walk: &mut Walk<'_>, call: &Call<'_>) -> Verdict {
    let list = "-aefklmNqrx -b? -D: -F: -g: -h -i: -M: -n? -o: -p: -S: -t: -u: -U: -c: --all --unit= --user-unit= --user --system --since= --until= --lines? --follow --no-pager --no-tail --output= --priority= --grep= --boot? --list-boots \
                --disk-usage --dmesg --reverse --identifier= --no-hostname --utc --merge --pager-end --catalog --quiet --field= --fields --case-sensitive? --cursor= --directory= --file= --header --verify --full --no-full --facility= --version --help";
    let parsed = flags::parse(list, call.args());
    match strayed(&parsed) {
        None => closed(walk, list, call.args()).1,
        Some(_) => destroys("journalctl may trim the log", Vec::new()),
    }
}

/// Judges `aws` by the verb of its command.
pub(in crate::shell) fn aws(_walk: &mut Walk<'_>, call: &Call<'_>) -> Verdict {
    let parsed = flags::parse(
        "* --profile= --region= --output= --query= --endpoint-url= --color= %--version",
        call.args(),
    );
    let words: Vec<&str> = parsed.operands.iter().map_while(Field::literal).take(2).collect();
    let looks = match words.as_slice() {
        ["s3", "ls" | "presign"] | ["sts", "get-caller-identity"] | ["configure", _]
            if words.get(1) != Some(&"set") =>
        {
            true
        }
        ["help", ..] | [_, "help"] => true,
        [_, verb] => ["describe-", "list-"].iter().any(|begin| verb.starts_with(begin)),
        _ => parsed.hits.iter().any(|hit| hit.mark == Mark::Talks),
    };
    if looks { reads("only asks") } else { unknown("may change an account or download") }
}

/// Judges `gcloud` and `az` by the verb, their last word that is no name.
pub(in crate::shell) fn gcloud(_walk: &mut Walk<'_>, call: &Call<'_>) -> Verdict {
    let words = call
        .args()
        .iter()
        .take_while(|arg| !arg.text.starts_with('-'))
        .map(|arg| arg.text.as_str());
    let words: Vec<&str> = words.take(6).collect();
    let changes = [
        "delete", "create", "update", "set", "deploy", "rm", "start", "stop", "ssh", "scp", "run",
        "apply", "reset", "login", "add", "remove", "cp", "mv", "invoke", "rest", "batch",
    ];
    let looks = words.iter().any(|word| {
        ["list", "describe", "show", "get-value", "info", "version", "ls"].contains(word)
    });
    let is_plain = !words.iter().any(|word| changes.contains(word));
    if looks && is_plain { reads("only asks") } else { unknown("may change an account") }
}
