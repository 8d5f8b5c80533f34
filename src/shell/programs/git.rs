//! `git`: which of its commands look, make, or lose. Knows nothing of the repository, so aliases
//! are unknown.

use super::{all, apply, strayed};
use crate::model::{Certainty, Target, TargetAction};
use crate::shell::flags::{self, Field, Mark, Parsed};
use crate::shell::names;
use crate::shell::table::{Row, Rule, looks, row};
use crate::shell::verdict::{Call, Verdict, creates, destroys, reads, unknown};
use crate::shell::walk::Walk;

/// Options before the command.
const GLOBAL: &str = "^ -Pp -C: -c: --git-dir= --work-tree= --namespace= --no-pager --paginate --bare --no-optional-locks \
    --literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs --no-replace-objects --no-lazy-fetch --no-advice \
    ~--exec-path= ~--config-env= %--version %-v %--help %-h %--html-path %--man-path %--info-path";

/// Beginnings of settings that neither run nor write anything.
const SETTINGS: &[&str] = &[
    "color.", "user.", "advice.", "log.", "i18n.", "status.", "column.", "safe.directory",
    "core.quotepath", "core.quotePath", "core.autocrlf", "core.abbrev", "core.precomposeunicode",
    "core.ignorecase", "core.filemode", "core.fileMode", "core.longpaths", "diff.renames",
    "diff.renameLimit", "diff.context", "diff.algorithm", "diff.mnemonicPrefix", "diff.noprefix",
    "diff.colorMoved", "diff.submodule", "format.pretty", "grep.", "blame.", "tag.sort",
    "branch.sort", "versionsort.", "http.", "protocol.", "init.defaultBranch",
    "merge.conflictStyle", "pull.rebase", "commit.gpgsign=false", "commit.gpgSign=false",
    "tag.gpgsign=false", "gc.auto=0", "push.default",
];

/// Commands that look, and what of theirs does not.
const LOOKS: &[Row] = &[
    row(
        "log diff show whatchanged shortlog diff-tree diff-index diff-files range-diff",
        "* ~--output= ~--ext-diff ~--output-directory=",
        Rule::Reads,
        "only shows",
    ),
    looks(
        "rev-parse rev-list merge-base name-rev describe cherry count-objects show-ref show-branch var version help status",
    ),
    looks(
        "ls-files ls-tree cat-file check-ignore check-attr check-mailmap check-ref-format verify-commit verify-tag verify-pack",
    ),
    looks(
        "for-each-ref blame annotate stripspace column patch-id get-tar-commit-id merge-tree last-modified",
    ),
    row("ls-remote", "* ~--upload-pack= ~--exec=", Rule::Reads, "only asks"),
    row("grep", "* ~-O? ~--open-files-in-pager?", Rule::Reads, "only looks"),
    row("fsck", "* ~--lost-found", Rule::Reads, "only checks"),
    row("interpret-trailers", "* !--in-place", Rule::Reads, "only prints"),
    row("hash-object", "* ~-w", Rule::Reads, "only computes"),
    row("symbolic-ref", "-q --short --quiet --no-recurse", Rule::ReadsAtMost(1), "changes a ref"),
    row("diff-pairs request-pull", "* ~--output=", Rule::Reads, "only shows"),
    looks(
        "bisect log, bisect view, bisect visualize, stash list, remote show, remote get-url, worktree list, notes list, notes show, submodule status, submodule summary, sparse-checkout list, bundle verify, bundle list-heads, lfs ls-files, lfs status, lfs env, lfs version, rerere status, rerere diff, reflog show, reflog list, reflog exists, config get, config list, config get-all, maintenance is-needed, refs verify, refs list, replace -l, replace --list, commit-graph verify, multi-pack-index verify",
    ),
    row("stash show,", "* ~--output= ~--ext-diff", Rule::Reads, "only shows"),
    row("bundle create, archive --list, archive -l", "*", Rule::Makes, "makes a bundle"),
];

/// Commands that make things and keep what is there.
const MAKES: &[&str] =
    &["init", "clone", "fetch", "write-tree", "commit-tree", "mktree", "mktag", "submodule"];

/// Judges `git`.
pub(in crate::shell) fn git(walk: &mut Walk<'_>, call: &Call<'_>) -> Verdict {
    let parsed = flags::parse(GLOBAL, call.args());
    if parsed.hits.iter().any(|hit| hit.mark == Mark::Talks) {
        return reads("only tells about git");
    }
    if let Some(verdict) = strayed(&parsed) {
        return verdict;
    }
    let settings =
        parsed.hits.iter().filter(|hit| hit.name == "-c").filter_map(|hit| hit.value.as_ref());
    if !settings.into_iter().all(is_plain_setting) {
        return unknown("a setting on the command line may run something");
    }
    let args = call.args().get(parsed.rest..).unwrap_or_default();
    let Some(first) = args.first() else { return reads("only tells about git") };
    let Some(name) = first.literal() else {
        return unknown("its command is not known before it runs");
    };
    let words = Call { words: args, stdin: call.stdin };
    if words.args().iter().any(|arg| names::is_one(arg, &["--help"]))
        || names::is_one(words.args().first().unwrap_or(first), &["-h"])
    {
        return reads("only tells about git");
    }
    let places: Vec<Field> = parsed
        .hits
        .iter()
        .filter(|hit| hit.name == "-C")
        .filter_map(|hit| hit.value.clone())
        .collect();
    let mut verdict = unknown("may change the repository");
    walk.apart(|walk| {
        for place in &places {
            walk.enter(Some(place));
        }
        verdict = command(walk, name, &words);
    });
    verdict
}

fn is_plain_setting(field: &Field) -> bool {
    let Some(setting) = field.literal() else { return false };
    let (name, value) = setting.split_once('=').unwrap_or((setting, "true"));
    let is_pager = name == "core.pager" || name.starts_with("pager.");
    let is_off = ["cat", "", "less", "less -FRX", "false", "true", "off"].contains(&value);
    let is_monitor = name.eq_ignore_ascii_case("core.fsmonitor") && ["false", ""].contains(&value);
    is_pager && is_off || is_monitor || SETTINGS.iter().any(|begin| setting.starts_with(begin))
}

fn command(walk: &mut Walk<'_>, name: &str, call: &Call<'_>) -> Verdict {
    if let Some(verdict) = listing(walk, name, call) {
        return verdict;
    }
    let two = call.args().first().and_then(Field::literal).map(|second| format!("{name} {second}"));
    let found = two.and_then(|two| LOOKS.iter().find(|row| row.is(&two))).map(|row| (row, 1));
    let found = found.or_else(|| LOOKS.iter().find(|row| row.is(name)).map(|row| (row, 0)));
    if let Some((row, skip)) = found {
        let words = call.words.get(skip..).unwrap_or_default();
        return apply(walk, row, &Call { words, stdin: call.stdin });
    }
    changing(walk, name, call.args())
}

/// Commands that list unless told otherwise, and dry runs.
fn listing(walk: &Walk<'_>, name: &str, call: &Call<'_>) -> Option<Verdict> {
    let args = call.args();
    let list = match name {
        "branch" => {
            "-arvqli --all --remotes --list --verbose --ignore-case --show-current --no-color --no-column --omit-empty --contains? --no-contains? --merged? --no-merged? \
                     --points-at= --sort= --format= --color? --column? --abbrev? --no-abbrev"
        }
        "tag" => {
            "-lni? --list --contains? --no-contains? --merged? --no-merged? --points-at= --sort= --format= --color? --column? --no-column -n? -i --ignore-case --omit-empty"
        }
        "remote" => "-v --verbose",
        "stash" | "submodule" | "notes" | "reflog" | "bisect" | "worktree" | "config" => {
            return listing_of(name, args);
        }
        "add" | "rm" | "mv" | "clean" => "* -n --dry-run ~--no-dry-run -e: --exclude=",
        "push" | "commit" | "fetch" => {
            "* -m: -F: -C: -c: -o: --message= --dry-run ~--no-dry-run -n"
        }
        "apply" => {
            "~--apply * --check --stat --numstat --summary -p: -C: --directory= --include= --exclude="
        }
        "archive" => {
            "-v -l --list --format= --prefix= --verbose --worktree-attributes --mtime= -# --add-virtual-file= --add-file= >-o: >--output="
        }
        "format-patch" => "* --stdout ~--output= ~-o: ~--output-directory=",
        "update-index" => {
            "-q --refresh --really-refresh --unmerged --ignore-missing --ignore-submodules"
        }
        _ => return None,
    };
    let parsed = flags::parse(list, args);
    if strayed(&parsed).is_some() {
        return if name == "archive" { Some(unknown("may write the archive")) } else { None };
    }
    let looks = match name {
        "branch" | "tag" => {
            let lists = parsed.has(&[
                "-l", "--list", "--contains", "--no-contains", "--merged", "--no-merged",
                "--points-at",
            ]);
            lists || parsed.operands.is_empty()
        }
        "remote" => parsed.operands.is_empty(),
        "add" | "rm" | "mv" | "clean" | "push" => parsed.has(&["-n", "--dry-run"]),
        "commit" | "fetch" => parsed.has(&["--dry-run"]),
        "apply" => parsed.has(&["--check", "--stat", "--numstat", "--summary"]),
        "archive" => return Some(super::written(walk, &parsed)),
        "format-patch" => parsed.has(&["--stdout"]),
        _ => parsed.operands.is_empty() && parsed.has(&["--refresh", "--really-refresh"]),
    };
    if name == "format-patch" && !looks {
        return Some(creates("makes patch files", Vec::new()));
    }
    looks.then(|| reads("only lists, or shows what it would do"))
}

/// Commands with sub-commands of their own that list when given none.
fn listing_of(name: &str, args: &[Field]) -> Option<Verdict> {
    let list = reads("only lists");
    match (name, args.first()) {
        ("submodule" | "notes" | "reflog", None) => Some(list),
        ("reflog", Some(first)) => {
            let changes = names::is_one(first, &["expire", "delete", "drop", "write"])
                || first.literal().is_none();
            (!changes).then_some(list)
        }
        ("worktree", Some(first)) if names::is_one(first, &["prune"]) => {
            args.iter().any(|arg| names::is_one(arg, &["-n", "--dry-run"])).then_some(list)
        }
        ("config", _) => config(args),
        _ => None,
    }
}

fn config(args: &[Field]) -> Option<Verdict> {
    let list = "-lz -f: --list --get= --get-all= --get-regexp= --get-urlmatch= --get-color= --get-colorbool= --global --system --local --worktree --show-origin --show-scope --name-only --null \
                --type= --bool --int --path --bool-or-int --expiry-date --file= --blob= --default= --includes --no-includes --fixed-value --no-type";
    let parsed = flags::parse(list, args);
    if parsed.stray.is_some() {
        return None;
    }
    let asks = parsed
        .hits
        .iter()
        .any(|hit| hit.name.starts_with("--get") || hit.name == "-l" || hit.name == "--list");
    let is_word =
        |words: &[&str]| parsed.operands.first().is_some_and(|first| names::is_one(first, words));
    let reads_one = parsed.operands.len() == 1 && !is_word(&["edit", "set", "unset"]);
    (asks || reads_one || is_word(&["get", "list"])).then(|| reads("only reads settings"))
}

/// Commands that change something; most lose what they replace.
fn changing(walk: &Walk<'_>, name: &str, args: &[Field]) -> Verdict {
    let parsed = flags::parse("* -m: -b: -B: -s: --source= --message=", args);
    let paths = |action, why: &str| all(walk, &parsed.operands, action, why);
    match name {
        "rm" => {
            let keeps = args.iter().any(|arg| names::is_one(arg, &["--cached"]));
            if keeps {
                state(walk, "git rm --cached changes the index")
            } else {
                destroys(
                    "git rm removes its operands",
                    paths(TargetAction::Delete, "git rm removes it"),
                )
            }
        }
        "mv" => destroys("git mv moves its operands", paths(TargetAction::Move, "git mv moves it")),
        "restore" => destroys(
            "git restore replaces its operands",
            paths(TargetAction::Overwrite, "git restore replaces it"),
        ),
        "checkout" => destroys(
            "git checkout replaces files of the worktree",
            checked_out(walk, args, &parsed),
        ),
        "clean" => {
            let mut targets = paths(TargetAction::Delete, "git clean removes what is not tracked");
            if targets.is_empty() {
                targets.push(worktree(
                    walk,
                    TargetAction::Delete,
                    "git clean removes what is not tracked",
                ));
            }
            for target in &mut targets {
                target.certainty = Certainty::Dynamic;
            }
            destroys("git clean removes what is not tracked", targets)
        }
        "stash"
            if args.first().is_some_and(|arg| names::is_one(arg, &["drop", "clear", "pop"])) =>
        {
            let why = "git stash lets go of what was stashed";
            let mut targets = vec![objects(walk, why)];
            targets.push(worktree(walk, TargetAction::Overwrite, why));
            destroys(why, targets)
        }
        "filter-branch" | "filter-repo" => {
            let why = "git rewrites every commit";
            let mut targets = vec![objects(walk, why)];
            targets.push(worktree(walk, TargetAction::Overwrite, why));
            destroys(why, targets)
        }
        "reset" | "switch" | "stash" | "merge" | "rebase" | "revert" | "cherry-pick" | "pull"
        | "am" | "apply" | "checkout-index" | "read-tree" | "bisect" | "sparse-checkout" => {
            let why = "git replaces files of the worktree";
            destroys(why, vec![worktree(walk, TargetAction::Overwrite, why)])
        }
        "add" => creates("git add changes the index", Vec::new()),
        "commit" => unknown("git commit runs hooks"),
        "worktree" if args.first().is_some_and(|first| names::is_one(first, &["add"])) => {
            creates("makes a worktree", Vec::new())
        }
        name if MAKES.contains(&name) => creates("adds to a repository", Vec::new()),
        "branch" | "tag" | "gc" | "prune" | "reflog" | "update-ref" | "worktree" | "replace"
        | "repack" | "maintenance" => {
            let why = "git can drop refs or objects for good";
            destroys(why, vec![objects(walk, why)])
        }
        "remote" | "config" | "push" | "update-index" | "symbolic-ref" | "notes" | "pack-refs" => {
            state(walk, "git changes refs, settings or objects")
        }
        _ => unknown(format!("`git {}` is no command we know", super::shown(name))),
    }
}

fn worktree(walk: &Walk<'_>, action: TargetAction, why: &str) -> Target {
    let mut target = walk.target(&Field::exact("."), action, why);
    target.certainty = Certainty::Dynamic;
    target
}

/// The repository itself, where commits can go for good.
fn objects(walk: &Walk<'_>, why: &str) -> Target {
    walk.target(&Field::exact(".git"), TargetAction::Git, why)
}

fn state(walk: &Walk<'_>, why: &'static str) -> Verdict {
    let mut target = walk.target(&Field::exact(".git"), TargetAction::Git, why);
    target.certainty = Certainty::Dynamic;
    destroys(why, vec![target])
}

/// The paths after `--` are known; without it a word may be a branch or a path.
fn checked_out(walk: &Walk<'_>, args: &[Field], parsed: &Parsed) -> Vec<Target> {
    let why = "git checkout replaces it";
    if let Some(at) = args.iter().position(|arg| arg.text == "--") {
        all(walk, args.get(at + 1..).unwrap_or_default(), TargetAction::Overwrite, why)
    } else {
        let mut targets = all(walk, &parsed.operands, TargetAction::Overwrite, why);
        for target in &mut targets {
            target.certainty = Certainty::Dynamic;
        }
        targets.push(worktree(walk, TargetAction::Overwrite, why));
        targets
    }
}
