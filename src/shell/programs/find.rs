//! `find` and `fd`: looking for files, and what they do to those found.

use super::{closed, wrappers};
use crate::model::{Certainty, Level, Simple, Target, TargetAction};
use crate::shell::flags::Field;
use crate::shell::names;
use crate::shell::verdict::{CommandCall, CommandInput, CommandVerdict, destroys, reads, unknown};
use crate::shell::walk::{ShellWalk, worst};

/// Tests and options of `find` without a value.
const BARE: &str = " -a -and -o -or -not ! ( ) , -true -false -print -print0 -ls -prune -quit -empty \
    -readable -writable -executable -nouser -nogroup -daystart -depth -d -follow -ignore_readdir_race \
    -noignore_readdir_race -mount -xdev -noleaf -nowarn -warn -help --help -version --version -H -L -P -E -X -x -s ";

/// Those of them with which a test need not hold for all that is found.
const ALTERNATIVES: &str = " -o -or -not ! , ";

/// What happens to a file as soon as the tests before it hold.
const ACTIONS: &str = " -delete -exec -execdir -ok -okdir -print -print0 -ls -printf -fprint -fprint0 \
    -fls -fprintf -quit ";

/// Those that print the file itself.
const PRINTS: &str = " -print -print0 ";

/// Those of them that leave out no file.
const KEEPS_ALL: &str = " -print -print0 -ls -true -depth -d -follow -noleaf -nowarn -H -L -P ";

/// Those with one value.
const VALUED: &str = " -name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -xtype \
    -size -mtime -atime -ctime -mmin -amin -cmin -newer -anewer -cnewer -newermt -newerat -newerct -perm \
    -user -group -uid -gid -links -inum -samefile -fstype -maxdepth -mindepth -printf -lname -ilname -used \
    -context -D -newermm -newerBt -Bmin -Btime -flags ";

/// Judges `find`.
pub(in crate::shell) fn find(walk: &mut ShellWalk<'_>, call: &CommandCall<'_>) -> CommandVerdict {
    let args = call.args();
    let mut targets = Vec::new();
    let mut verdict = reads("only looks for files");
    // What happens to the files it finds, and whether that is every file.
    let (mut action, mut finds_all) = (Done::Nothing, true);
    let found = walk.found.len();
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        at += 1;
        let text = arg.text.as_str();
        if text == "-files0-from" || arg.may_be_option() {
            return unknown("its arguments are not known before it runs");
        }
        if !text.starts_with('-') && text != "(" && text != "!"
            || in_list(BARE, text)
            || text.starts_with("-O")
        {
            let is_test = text.starts_with(['-', '(', '!', ',']);
            finds_all &= !is_test || in_list(KEEPS_ALL, text);
            continue;
        }
        match text {
            "-delete" => {
                action = Done::Deleted;
                verdict = destroys("find -delete removes what it finds", Vec::new());
            }
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                let before = walk.found.len();
                at = exec(walk, args, at);
                let run = walk.found.get(before..).unwrap_or_default();
                // Any other command decides with its exit code what is found.
                finds_all &= matches!(run, [one] if deletes(one));
                action = action.max(done_by(run));
                if worst(run) > Level::Creates {
                    verdict = destroys("what it finds is given to a command", Vec::new());
                }
            }
            "-fprint" | "-fprint0" | "-fls" | "-fprintf" => {
                if let Some(file) = args.get(at).filter(|file| names::is_file(file)) {
                    targets.push(walk.target(
                        file,
                        TargetAction::Overwrite,
                        "find writes its list to it",
                    ));
                    verdict = destroys("find writes its list to a file", Vec::new());
                }
                at += if text == "-fprintf" { 2 } else { 1 };
            }
            _ if in_list(VALUED, text) => {
                if args.get(at).is_some_and(may_be_more) {
                    return unknown("its arguments are not known before it runs");
                }
                let value = args.get(at).and_then(Field::literal);
                finds_all &=
                    matches!((text, value), ("-type", Some("f")) | ("-mindepth", Some("1")));
                at += 1;
            }
            _ => return unknown(format!("has a test we do not know: `{text}`")),
        }
    }
    targets.extend(roots(walk, args, action, finds_all));
    if let Some(name) = name_first(args) {
        let run = walk.found.iter_mut().skip(found).flat_map(|simple| &mut simple.targets);
        wrappers::spare_other_names(run.chain(&mut targets), name);
        walk.files.finds = only_prints(args).then(|| name.to_owned());
    }
    verdict.targets = targets;
    verdict
}

/// Whether all it does is to print what it finds.
fn only_prints(args: &[Field]) -> bool {
    !args.iter().any(|arg| in_list(ACTIONS, &arg.text) && !in_list(PRINTS, &arg.text))
}

/// The pattern of names that all fit to which something happens: it is tested before that, and nothing stands in
/// for it.
fn name_first(args: &[Field]) -> Option<&str> {
    let is_one_of = |list| move |arg: &Field| in_list(list, &arg.text);
    if args.iter().any(is_one_of(ALTERNATIVES)) {
        return None;
    }
    let end = args.iter().position(is_one_of(ACTIONS)).unwrap_or(args.len());
    let at = args[..end].iter().position(|arg| names::is_one(arg, &["-name"]))?;
    args[..end].get(at + 1)?.literal()
}

/// Whether the value of a test may be several words: a pattern without quotes becomes the files it
/// fits, and one may be named `-delete`.
fn may_be_more(value: &Field) -> bool {
    let may_name_option = value.may_be_option() && !value.text.contains('.');
    value.splits || may_name_option && value.sure == Certainty::Glob
}

fn in_list(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|known| known == word)
}

/// What happens to the files that are found.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Done {
    Nothing,
    Changed,
    Deleted,
}

fn deletes(simple: &Simple) -> bool {
    simple.targets.iter().any(|target| target.action == TargetAction::Delete)
}

/// What the commands of an `-exec` do.
fn done_by(run: &[Simple]) -> Done {
    match worst(run) {
        Level::ReadOnly | Level::Creates => Done::Nothing,
        Level::Destroys | Level::Unknown if run.iter().any(deletes) => Done::Deleted,
        Level::Destroys | Level::Unknown => Done::Changed,
    }
}

/// Where something happens: to all of a directory, or to some of what is below.
fn roots(walk: &ShellWalk<'_>, args: &[Field], done: Done, finds_all: bool) -> Vec<Target> {
    let (action, why) = match done {
        Done::Nothing => return Vec::new(),
        Done::Changed => (TargetAction::Modify, "what it finds is changed"),
        Done::Deleted => (TargetAction::Delete, "what it finds is removed"),
    };
    let is_test = |field: &&Field| field.text.starts_with(['-', '(', '!']) && field.text.len() > 1;
    let named: Vec<&Field> = args
        .iter()
        .skip_while(|field| is_test(field))
        .take_while(|field| !is_test(field))
        .collect();
    let here = Field::exact(".");
    let roots = if named.is_empty() { vec![&here] } else { named };
    let target = |root: &Field| {
        if done == Done::Deleted && finds_all {
            return walk.target(root, action, why);
        }
        let inside =
            Field { text: format!("{}/**", root.text.trim_end_matches('/')), ..root.clone() };
        let mut target = walk.target(&inside, action, why);
        if target.certainty == Certainty::Exact {
            target.certainty = Certainty::Glob;
        }
        target
    };
    roots.into_iter().map(target).collect()
}

/// Judges the command of an `-exec`; says where the next test begins.
fn exec(walk: &mut ShellWalk<'_>, args: &[Field], from: usize) -> usize {
    let rest = args.get(from..).unwrap_or_default();
    let plus =
        |index: usize| index > 0 && rest.get(index - 1).is_some_and(|word| word.text == "{}");
    let end = rest
        .iter()
        .enumerate()
        .position(|(index, word)| word.text == ";" || (word.text == "+" && plus(index)))
        .unwrap_or(rest.len());
    let mut words = rest.get(..end).unwrap_or_default().to_vec();
    // What it finds begins with where it looks, which is no option.
    for word in words.iter_mut().filter(|word| word.text == "{}") {
        *word = Field { text: "./{}".to_owned(), sure: Certainty::Dynamic, splits: false };
    }
    wrappers::replace(&mut words, "{}");
    // One `{} +` is any number of files, of which a program may write the second or the third.
    if rest.get(end).is_some_and(|word| word.text == "+")
        && let Some(last) = words.last().cloned()
    {
        words.extend([last.clone(), last]);
    }
    if !words.is_empty() {
        walk.in_subshell(|walk| walk.run(&words, &CommandInput::Inherited));
    }
    from + end + 1
}

/// Judges `fd`: `-x` and `-X` end its own options.
pub(in crate::shell) fn fd(walk: &mut ShellWalk<'_>, call: &CommandCall<'_>) -> CommandVerdict {
    let args = call.args();
    let at =
        args.iter().position(|field| names::is_one(field, &["-x", "-X", "--exec", "--exec-batch"]));
    if let Some(at) = at {
        let mut words = args.get(at + 1..).unwrap_or_default().to_vec();
        words.retain(|word| word.text != ";");
        wrappers::replace(&mut words, "{");
        words.push(Field { text: "…".to_owned(), sure: Certainty::Dynamic, splits: true });
        walk.run(&words, &CommandInput::Inherited);
    }
    let own = args.get(..at.unwrap_or(args.len())).unwrap_or_default();
    let list = "-HIuasigFLp0l1qhV -d: -t: -e: -S: -o: -c: -j: -E: --hidden --no-ignore --no-ignore-vcs --unrestricted \
                --case-sensitive --ignore-case --glob --regex --fixed-strings --absolute-path --list-details \
                --follow --full-path --print0 --max-depth= --min-depth= --exact-depth= --exclude= --prune --type= --extension= \
                --size= --changed-within= --changed-before= --owner= --color= --threads= --max-results= --quiet --strip-cwd-prefix? \
                --show-errors --base-directory= --path-separator= --search-path= --one-file-system --format= --and= --hyperlink? --version --help";
    let (_, verdict) = closed(walk, list, own);
    verdict
}
