//! `git`: which of its commands look, make, or lose. Knows nothing of the repository, so aliases
//! are unknown.

use super::{all, apply, strayed};
use crate::model::{Certainty, Level, Spares, Target, TargetAction};
use crate::shell::flags::{self, Field, Parsed};
use crate::shell::names;
use crate::shell::row::{ProgramRow, Rule, row};
use crate::shell::verdict::{CommandCall, CommandVerdict, creates, destroys, reads, unknown};
use crate::shell::walk::ShellWalk;

/// Options before the command.
const GLOBAL: &str = "^ -Pp -C: -c: --git-dir= --work-tree= --namespace= --no-pager --paginate --bare --no-optional-locks \
    --literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs --no-replace-objects --no-lazy-fetch --no-advice \
    %--version %-v %--help %-h %--html-path %--man-path %--info-path";

/// Settings that neither run nor write anything, whatever their value.
const SETTINGS: &[&str] = &[
    "color.ui", "color.diff", "color.status", "color.branch", "user.name", "user.email",
    "safe.directory", "core.quotepath", "core.abbrev", "core.precomposeunicode", "core.ignorecase",
    "core.filemode", "core.longpaths", "diff.renames", "diff.renamelimit", "diff.context",
    "diff.algorithm", "diff.mnemonicprefix", "diff.noprefix", "diff.colormoved", "diff.submodule",
    "log.date", "log.decorate", "i18n.logoutputencoding", "format.pretty", "column.ui",
    "advice.detachedhead", "init.defaultbranch", "merge.conflictstyle", "gc.auto",
    "commit.gpgsign", "tag.gpgsign", "tag.sort", "branch.sort", "grep.linenumber",
];

/// What chooses commits and how they are shown, and differences and how.
macro_rules! shown {
    ($more:literal) => {
        concat!(
            "-# -abcghilmpqrstuvwzEFPRW -n: -L: -S: -G: -U: -M? -C? -B? -D -O: -I: --oneline --graph --all --decorate? \
             --no-decorate --branches? --tags? --remotes? --glob= --exclude= --reflog --walk-reflogs --stdin --first-parent --merges --no-merges \
             --reverse --date-order --author-date-order --topo-order --max-count= --skip= --since= --after= --until= --before= \
             --author= --committer= --grep= --all-match --invert-grep --regexp-ignore-case --extended-regexp --fixed-strings \
             --perl-regexp --format= --pretty? --abbrev-commit --no-abbrev-commit --abbrev? --date= --relative-date --follow \
             --full-history --simplify-by-decoration --simplify-merges --ancestry-path? --left-right --cherry-pick --cherry-mark --cherry \
             --left-only --right-only --boundary --parents --children --no-show-signature --show-notes? --notes? --no-notes --source \
             --patch --no-patch --stat? --numstat --shortstat --dirstat? --summary --name-only --name-status --raw --patch-with-stat --patch-with-raw \
             --compact-summary --cached --staged --merge-base --no-index --check --color? --no-color --color-moved? --no-color-moved \
             --color-words? --word-diff? --word-diff-regex= --unified= --inter-hunk-context= --function-context --ignore-space-change \
             --ignore-all-space --ignore-space-at-eol --ignore-cr-at-eol --ignore-blank-lines --ignore-matching-lines= --find-renames? --find-copies? \
             --find-copies-harder --no-renames --diff-filter= --diff-algorithm= --minimal --patience --histogram --pickaxe-all \
             --pickaxe-regex --full-index --binary --text --exit-code --quiet --no-ext-diff --no-textconv --ignore-submodules? \
             --submodule? --src-prefix= --dst-prefix= --no-prefix --relative? --no-relative --root --cc --combined-all-paths --diff-merges= --no-diff-merges \
             --rename-empty --no-rename-empty --ws-error-highlight= --indent-heuristic --no-indent-heuristic \
             --encoding= --mailmap --use-mailmap --no-mailmap --clear-decorations --decorate-refs= --decorate-refs-exclude= --no-commit-id \
             --always --recursive --full-diff --log-size --line-prefix= --ita-visible-in-index --ita-invisible-in-index --end-of-options \
             --anchored= --break-rewrites? --color-moved-ws= --no-color-moved-ws --cumulative --default-prefix --dirstat-by-file? --find-object= \
             --irreversible-delete --no-abbrev --output-indicator-new= --output-indicator-old= --output-indicator-context= --rotate-to= --skip-to= \
             --stat-count= --stat-graph-width= --stat-name-width= --stat-width= --show-pulls --max-parents= --min-parents= --no-max-parents \
             --no-min-parents --remove-empty --not --no-walk? --do-walk --ignore-missing --no-expand-tabs --expand-tabs? --show-linear-break? \
             --alternate-refs --exclude-hidden= --single-worktree --merge --dense --sparse --since-as-filter= --bisect --no-standard-notes --standard-notes ",
            $more
        )
    };
}

/// Commands that look, with the options that leave it at that.
pub(in crate::shell) const LOOKS: &[ProgramRow] = &[
    row(
        "log show whatchanged diff diff-tree diff-index diff-files",
        shown!(""),
        Rule::Reads,
        "only shows",
    ),
    row(
        "rev-list",
        shown!(
            "--count --objects --objects-edge --unpacked --max-age= --min-age= --in-commit-order --disk-usage? --timestamp --missing= --object-names --no-object-names --header"
        ),
        Rule::Reads,
        "only lists",
    ),
    row("shortlog", shown!("-e --summary --numbered --email --group="), Rule::Reads, "only shows"),
    row(
        "range-diff",
        shown!("--creation-factor= --no-dual-color --left-only --right-only"),
        Rule::Reads,
        "only shows",
    ),
    row(
        "reflog show, stash list, stash show",
        shown!("--include-untracked --no-include-untracked --only-untracked --expire="),
        Rule::Reads,
        "only shows",
    ),
    row("reflog list, reflog exists", "", Rule::Reads, "only lists"),
    row(
        "status",
        "-sbvz -u? -M? --null --no-short --no-branch --no-show-stash --no-long --no-verbose --no-ahead-behind --short --branch --show-stash --porcelain? --long --verbose --untracked-files? --ignored? \
         --ignore-submodules? --column? --no-column --ahead-behind --no-ahead-behind --renames --no-renames --find-renames?",
        Rule::Reads,
        "only shows",
    ),
    row(
        "rev-parse",
        "-q --abbrev-ref? --short? --verify --quiet --symbolic --symbolic-full-name --all --branches? --tags? --remotes? --glob= \
         --show-toplevel --show-prefix --show-cdup --show-superproject-working-tree --git-dir --git-common-dir --absolute-git-dir \
         --git-path: --is-inside-work-tree --is-inside-git-dir --is-bare-repository --is-shallow-repository --resolve-git-dir: \
         --show-object-format? --show-ref-format --path-format= --default: --revs-only --no-revs --flags --no-flags --not --sq \
         --sq-quote --since= --until= --disambiguate= --local-env-vars --shared-index-path --end-of-options",
        Rule::Reads,
        "only tells",
    ),
    row(
        "merge-base",
        "-a --all --octopus --independent --is-ancestor --fork-point",
        Rule::Reads,
        "only tells",
    ),
    row(
        "name-rev",
        "--tags --name-only --always --refs= --exclude= --all --undefined --no-undefined --annotate-stdin",
        Rule::Reads,
        "only tells",
    ),
    row(
        "describe",
        "--all --tags --contains --abbrev= --candidates= --exact-match --long --match= --exclude= --always --first-parent --dirty? --broken? --debug --no-exact-match --no-match --no-exclude --no-all --no-long",
        Rule::Reads,
        "only tells",
    ),
    row("cherry", "-v --verbose --abbrev? --no-abbrev", Rule::Reads, "only lists"),
    row("count-objects", "-vH --verbose --human-readable", Rule::Reads, "only counts"),
    row(
        "show-ref",
        "-hdqs? --head --heads --branches --tags --dereference --hash? --abbrev? --verify --quiet --exists --exclude-existing?",
        Rule::Reads,
        "only lists",
    ),
    row(
        "show-branch",
        "-ar --all --remotes --current --topo-order --list --merge-base --independent --no-name --sha1-name --topics --color? --no-color --more= --sparse --date-order",
        Rule::Reads,
        "only shows",
    ),
    row("var version", "-l --build-options", Rule::Reads, "only tells"),
    row("help", "-ag --all --guides --no-verbose", Rule::Reads, "only tells"),
    row(
        "ls-files",
        "-cdmoiusktvfz -x: -X: --cached --deleted --modified --others --ignored --stage --killed --unmerged --directory \
         --empty-directory --no-empty-directory --eol --deduplicate --exclude= --exclude-from= --exclude-per-directory= --exclude-standard \
         --error-unmatch --with-tree= --full-name --recurse-submodules --abbrev? --debug --sparse --format= --resolve-undo",
        Rule::Reads,
        "only lists",
    ),
    row(
        "ls-tree",
        "-drtlz --long --name-only --name-status --object-only --full-name --full-tree --abbrev? --format=",
        Rule::Reads,
        "only lists",
    ),
    row(
        "cat-file",
        "-etspzZ --batch? --batch-check? --batch-command? --batch-all-objects --buffer --unordered --follow-symlinks --allow-unknown-type --use-mailmap --no-mailmap --mailmap --path=",
        Rule::Reads,
        "only shows",
    ),
    row(
        "check-ignore",
        "-qvnz --quiet --verbose --non-matching --no-index --stdin",
        Rule::Reads,
        "only tells",
    ),
    row("check-attr", "-az --all --cached --stdin --source=", Rule::Reads, "only tells"),
    row(
        "check-mailmap check-ref-format",
        "--stdin --branch --normalize --allow-onelevel --no-allow-onelevel --refspec-pattern",
        Rule::Reads,
        "only tells",
    ),
    row(
        "for-each-ref",
        "--count= --shell --perl --python --tcl --sort= --format= --color? --points-at= --merged? --no-merged? --contains? --no-contains? --ignore-case --omit-empty --exclude= --include-root-refs --stdin",
        Rule::Reads,
        "only lists",
    ),
    row(
        "blame annotate",
        "-bltfnspcewM? -C? -L: -S: -h --incremental --porcelain --line-porcelain --root --show-stats --date= --ignore-rev= --ignore-revs-file= --color-lines --color-by-age --show-name --show-number --show-email --abbrev= --first-parent --reverse --since= --score-debug --progress --no-progress --minimal --contents= --no-abbrev --no-minimal",
        Rule::Reads,
        "only shows",
    ),
    row(
        "stripspace column patch-id get-tar-commit-id",
        "-sc --strip-comments --comment-lines --mode= --width= --indent= --nl= --padding= --raw-mode= --stable --unstable --verbatim",
        Rule::Reads,
        "only prints",
    ),
    row(
        "grep",
        "-# -aiIwvhHFEGPnolLcqzpWr -e: -f: -m: -A: -B: -C: --cached --untracked --no-index --no-exclude-standard --exclude-standard --recurse-submodules \
         --text --textconv? --no-textconv --ignore-case --max-depth= --recursive --no-recursive --word-regexp --invert-match --full-name \
         --extended-regexp --basic-regexp --perl-regexp --fixed-strings --line-number --column --files-with-matches \
         --name-only --files-without-match --null --only-matching --count --color? --no-color --break --heading --show-function \
         --context= --after-context= --before-context= --function-context --max-count= --threads= --and --or --not --all-match --quiet \
         --index --no-cached --no-untracked --no-line-number --no-column --no-heading --no-break --no-full-name --no-null --no-ignore-case",
        Rule::Reads,
        "only looks",
    ),
    row(
        "fsck",
        "-v --reflogs --no-verbose --no-strict --unreachable --no-dangling --dangling --root --tags --cache --no-reflogs --full --no-full --connectivity-only --strict --verbose --progress --no-progress --name-objects",
        Rule::Reads,
        "only checks",
    ),
    row(
        "hash-object",
        "-t: --stdin --stdin-paths --no-filters --path= --literally",
        Rule::Reads,
        "only computes",
    ),
    row(
        "symbolic-ref",
        "-q --short --quiet --no-recurse --recurse",
        Rule::ReadsAtMost(1),
        "changes a ref",
    ),
    row("verify-pack", "-vs --verbose --stat-only --object-format=", Rule::Reads, "only checks"),
    row(
        "remote show, bisect log, notes list, notes show, submodule status, submodule summary, sparse-checkout list, bundle verify, bundle list-heads, rerere status, rerere diff, config list, config get, worktree list, remote get-url, maintenance is-needed, replace -l, replace --list, lfs ls-files, lfs env, lfs version",
        "-lvzqn -f: --porcelain --verbose --all --push --recursive --cached --quiet --global --local --system --worktree --show-origin --show-scope --name-only --null --type= --default= --regexp --value= --file= --blob= --includes --no-includes --bool --int --path --size --long",
        Rule::Reads,
        "only lists",
    ),
    row("bundle create", "*", Rule::Destroys, "overwrites the bundle"),
    row("format-patch", "*", Rule::Destroys, "overwrites patches of the same name"),
];

/// Commands that make things and keep what is there.
const MAKES: &[&str] =
    &["init", "clone", "fetch", "write-tree", "commit-tree", "mktree", "mktag", "submodule"];

/// Judges `git`.
pub(in crate::shell) fn git(walk: &mut ShellWalk<'_>, call: &CommandCall<'_>) -> CommandVerdict {
    let parsed = flags::parse(GLOBAL, call.args());
    if let Some(verdict) = strayed(&parsed) {
        return verdict;
    }
    if parsed.talks() {
        return reads("only tells about git");
    }
    let given = |name: &'static str| parsed.hits.iter().filter(move |hit| hit.name == name);
    // Whether a signature is good is found out by a program that keeps files of its own.
    let asks_signer = |arg: &Field| arg.text.contains("%G") || arg.text.contains("%(signature");
    if call.args().iter().any(asks_signer) {
        return unknown("looks at signatures, for which it runs a program");
    }
    let mut settings = given("-c").filter_map(|hit| hit.value.as_ref());
    let is_plain = settings.all(is_plain_setting);
    let args = call.args().get(parsed.rest..).unwrap_or_default();
    let Some(first) = args.first() else { return reads("only tells about git") };
    let Some(name) = first.literal() else {
        return unknown("its command is not known before it runs");
    };
    let words = CommandCall { words: args, stdin: call.stdin };
    if let [help] = words.args()
        && names::is_one(help, &["--help", "-h"])
    {
        return reads("only tells about git");
    }
    let places: Vec<Field> = parsed
        .hits
        .iter()
        .filter(|hit| hit.name == "-C" || hit.name == "--work-tree")
        .filter_map(|hit| hit.value.clone())
        .collect();
    let mut verdict = unknown("may change the repository");
    walk.in_subshell(|walk| {
        for place in &places {
            walk.enter(Some(place));
        }
        verdict = command(walk, name, &words);
    });
    // What it destroys all the same is known.
    if !is_plain && verdict.level != Level::Destroys {
        return unknown("a setting on the command line may run something");
    }
    verdict
}

fn is_plain_setting(field: &Field) -> bool {
    let Some(setting) = field.literal() else { return false };
    let (name, value) = setting.split_once('=').unwrap_or((setting, "true"));
    let name = name.to_ascii_lowercase();
    let is_pager = name == "core.pager" || name.starts_with("pager.");
    let is_off = ["cat", "", "false", "off"].contains(&value);
    let is_monitor = name == "core.fsmonitor" && ["false", ""].contains(&value);
    is_pager && is_off || is_monitor || SETTINGS.contains(&name.as_str())
}

fn command(walk: &mut ShellWalk<'_>, name: &str, call: &CommandCall<'_>) -> CommandVerdict {
    if let Some(verdict) = listing(walk, name, call) {
        return verdict;
    }
    let two = call.args().first().and_then(Field::literal).map(|second| format!("{name} {second}"));
    let found = two.and_then(|two| LOOKS.iter().find(|row| row.is(&two))).map(|row| (row, 1));
    let found = found.or_else(|| LOOKS.iter().find(|row| row.is(name)).map(|row| (row, 0)));
    if let Some((row, skip)) = found {
        let words = call.words.get(skip..).unwrap_or_default();
        return apply(walk, row, &CommandCall { words, stdin: call.stdin });
    }
    changing(walk, name, call.args())
}

/// Commands that list unless told otherwise, and dry runs.
fn listing(walk: &ShellWalk<'_>, name: &str, call: &CommandCall<'_>) -> Option<CommandVerdict> {
    let args = call.args();
    if matches!(name, "stash" | "submodule" | "notes" | "worktree" | "config") {
        return listing_of(name, args);
    }
    let list = listing_options(name)?;
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
        "remote" | "reflog" => parsed.operands.is_empty(),
        // `ext::` runs a program for the connection.
        "ls-remote" => !parsed.operands.iter().any(|operand| operand.text.contains("::")),
        // A dry run of a push runs the repository's `pre-push` hook all the same.
        "push" if parsed.has(&["-n", "--dry-run"]) && !parsed.has(&["--no-verify"]) => {
            return Some(unknown("runs the repository's `pre-push` hook"));
        }
        "push" => parsed.has(&["-n", "--dry-run"]),
        "add" | "rm" | "mv" | "clean" => parsed.has(&["-n", "--dry-run"]),
        "commit" => parsed.has(&["--dry-run"]),
        "apply" => parsed.has(&["--check", "--stat", "--numstat", "--summary"]),
        "archive" => return Some(super::written(walk, &parsed)),
        "format-patch" => parsed.has(&["--stdout"]),
        _ => parsed.operands.is_empty() && parsed.has(&["--refresh", "--really-refresh"]),
    };
    looks.then(|| reads("only lists, or shows what it would do"))
}

/// The harmless options of a command that lists, or shows what it would do.
fn listing_options(name: &str) -> Option<&'static str> {
    Some(match name {
        "branch" => {
            "-arvqli --all --remotes --list --verbose --ignore-case --show-current --no-color --no-column --omit-empty --contains? --no-contains? --merged? --no-merged? \
                     --points-at= --sort= --format= --color? --column? --abbrev? --no-abbrev"
        }
        "tag" => {
            "-li -n? --list --contains? --no-contains? --merged? --no-merged? --points-at= --sort= --format= --color? --column? --no-column --ignore-case --omit-empty"
        }
        "remote" => "-v --verbose",
        "reflog" => shown!(""),
        "ls-remote" => {
            "-hqt --heads --branches --tags --refs --quiet --exit-code --get-url --sort= --symref"
        }
        "add" => "-nvAuf --dry-run --verbose --all --update --force --ignore-errors",
        "rm" => "-nrfq --dry-run --cached --force --quiet --ignore-unmatch",
        "mv" => "-nvfk --dry-run --verbose --force",
        "clean" => "-nxXdfq -e: --dry-run --force --quiet --exclude=",
        "push" => {
            "-nuf --dry-run --set-upstream --force --tags --all --porcelain --no-verify --verbose"
        }
        "commit" => {
            "-v -m: --dry-run --message= --short --branch --porcelain --long --null --allow-empty"
        }
        "apply" => {
            "-pR? --check --stat --numstat --summary -p: -C: --directory= --include= --exclude= --reverse --cached --index"
        }
        "archive" => {
            "-vl --list --format= --prefix= --verbose --worktree-attributes --mtime= -# >-o: >--output="
        }
        "format-patch" => {
            "-# -kns --stdout --numbered --no-numbered --signoff --no-stat --root --subject-prefix= --base= --cover-letter"
        }
        "update-index" => {
            "-q --refresh --really-refresh --unmerged --ignore-missing --ignore-submodules"
        }
        _ => return None,
    })
}

/// Commands with sub-commands of their own that list when given none.
fn listing_of(name: &str, args: &[Field]) -> Option<CommandVerdict> {
    match (name, args) {
        ("submodule" | "notes", []) => Some(reads("only lists")),
        ("config", _) => config(args),
        _ => None,
    }
}

fn config(args: &[Field]) -> Option<CommandVerdict> {
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
fn changing(walk: &ShellWalk<'_>, name: &str, args: &[Field]) -> CommandVerdict {
    let parsed = flags::parse("* -m: -b: -B: -s: --source= --message=", args);
    let paths = |action, why: &str| all(walk, &parsed.operands, action, why);
    match name {
        "rm" => removed(walk, args, &parsed.operands),
        "mv" => destroys("git mv moves its operands", paths(TargetAction::Move, "git mv moves it")),
        "restore" => destroys(
            "git restore replaces its operands",
            committed(paths(TargetAction::Overwrite, "git restore replaces it")),
        ),
        "checkout" => destroys(
            "git checkout replaces files of the worktree",
            checked_out(walk, args, &parsed),
        ),
        "clean" => cleaned(walk, args),
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
            let mut tree = worktree(walk, TargetAction::Overwrite, why);
            if name == "reset" && !replaces_files(args) {
                tree.spares = Spares::Nothing;
            }
            // Of two targets at one place, the first counts.
            let targets = stashed(walk, name, args).into_iter().chain([tree]).collect();
            destroys(why, targets)
        }
        "add" => creates("git add changes the index", Vec::new()),
        "commit" => unknown("git commit runs hooks"),
        "worktree" if args.first().is_some_and(|first| names::is_one(first, &["add"])) => {
            creates("makes a worktree", Vec::new())
        }
        "worktree" if args.first().is_some_and(|first| names::is_one(first, &["remove"])) => {
            let why = "git removes the worktree";
            let operands = parsed.operands.get(1..).unwrap_or_default();
            destroys(why, all(walk, operands, TargetAction::Delete, why))
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

/// What `git rm` removes: operands that git tracks, unless the index alone is meant.
fn removed(walk: &ShellWalk<'_>, args: &[Field], operands: &[Field]) -> CommandVerdict {
    if args.iter().any(|arg| names::is_one(arg, &["--cached"])) {
        return state(walk, "git rm --cached changes the index");
    }
    let targets = all(walk, operands, TargetAction::Delete, "git rm removes it").into_iter();
    let tracked = |target| Target { spares: Spares::Ignored, ..target };
    destroys("git rm removes its operands", targets.map(tracked).collect())
}

/// What `git clean` removes: what git ignores only if it is told so.
fn cleaned(walk: &ShellWalk<'_>, args: &[Field]) -> CommandVerdict {
    let why = "git clean removes what is not tracked";
    let list = "-fdqxXi -e: --force --quiet --interactive --exclude=";
    let parsed = flags::parse(list, args);
    let is_known = parsed.stray.is_none();
    // An operand may be a pattern of git's own, which fits names in directories too.
    let is_path = |operand: &Field| {
        operand
            .literal()
            .is_some_and(|it| !it.starts_with(':') && !it.contains(['*', '?', '[', '\\']))
    };
    let names_all = is_known && !parsed.operands.is_empty() && parsed.operands.iter().all(is_path);
    let operands = if names_all { parsed.operands.clone() } else { vec![Field::exact(".")] };
    let keeps_ignored = is_known && !parsed.has(&["-x", "-X"]);
    let spares = if keeps_ignored { Spares::Ignored } else { Spares::Nothing };
    let targets = all(walk, &operands, TargetAction::Delete, why).into_iter();
    destroys(why, targets.map(|target| Target { spares: spares.clone(), ..target }).collect())
}

/// Targets of which git replaces what commits have.
fn committed(targets: Vec<Target>) -> Vec<Target> {
    let committed = |target| Target { spares: Spares::Uncommitted, ..target };
    targets.into_iter().map(committed).collect()
}

/// What of the worktree is meant is a guess; that it is another one is known.
fn worktree(walk: &ShellWalk<'_>, action: TargetAction, why: &str) -> Target {
    let target = walk.target(&Field::exact("."), action, why);
    let target = Target { spares: Spares::Uncommitted, ..target };
    if target.path.starts_with(['/', '.']) && target.path != "." {
        return Target { action: TargetAction::Modify, ..target };
    }
    Target { certainty: Certainty::Dynamic, ..target }
}

/// Whether a `git reset` changes more than the index and a branch.
fn replaces_files(args: &[Field]) -> bool {
    // Git takes the beginning of an option for the whole.
    let replaces = |arg: &str| ["--h", "--me", "--k"].iter().any(|begin| arg.starts_with(begin));
    args.iter().any(|arg| arg.literal().is_none_or(replaces))
}

/// What `git stash` takes away although git does not track it: the stash has it only until that is dropped.
fn stashed(walk: &ShellWalk<'_>, name: &str, args: &[Field]) -> Option<Target> {
    let list = "* -m: --message= -auqkpS --all --include-untracked";
    let takes = ["-a", "--all", "-u", "--include-untracked"];
    if name != "stash" || !flags::parse(list, args).has(&takes) {
        return None;
    }
    let why = "git stash takes away what is not tracked";
    let target = walk.target(&Field::exact("."), TargetAction::Delete, why);
    Some(Target { certainty: Certainty::Dynamic, ..target })
}

/// The repository itself, where commits can go for good.
fn objects(walk: &ShellWalk<'_>, why: &str) -> Target {
    walk.target(&Field::exact(".git"), TargetAction::Git, why)
}

fn state(walk: &ShellWalk<'_>, why: &'static str) -> CommandVerdict {
    let mut target = walk.target(&Field::exact(".git"), TargetAction::Git, why);
    target.certainty = Certainty::Dynamic;
    destroys(why, vec![target])
}

/// The paths after `--` are known; without it a word may be a branch or a path.
fn checked_out(walk: &ShellWalk<'_>, args: &[Field], parsed: &Parsed) -> Vec<Target> {
    let why = "git checkout replaces it";
    if let Some(at) = args.iter().position(|arg| arg.text == "--") {
        committed(all(walk, args.get(at + 1..).unwrap_or_default(), TargetAction::Overwrite, why))
    } else {
        let mut targets = all(walk, &parsed.operands, TargetAction::Overwrite, why);
        for target in &mut targets {
            target.certainty = Certainty::Dynamic;
        }
        targets.push(worktree(walk, TargetAction::Overwrite, why));
        targets
    }
}
