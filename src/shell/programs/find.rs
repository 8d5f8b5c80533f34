//! `find` and `fd`: looking for files, and what they do to those found.

use super::{closed, wrappers};
use crate::model::{Certainty, Level, Target, TargetAction};
use crate::shell::flags::Field;
use crate::shell::names;
use crate::shell::verdict::{Call, Stdin, Verdict, destroys, reads, unknown};
use crate::shell::walk::{Walk, worst};

/// Tests and options of `find` without a value.
const BARE: &str = " -a -and -o -or -not ! ( ) , -true -false -print -print0 -ls -prune -quit -empty \
    -readable -writable -executable -nouser -nogroup -daystart -depth -d -follow -ignore_readdir_race \
    -noignore_readdir_race -mount -xdev -noleaf -nowarn -warn -help --help -version --version -H -L -P -E -X -x -s ";

/// Those with one value.
const VALUED: &str = " -name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -xtype \
    -size -mtime -atime -ctime -mmin -amin -cmin -newer -anewer -cnewer -newermt -newerat -newerct -perm \
    -user -group -uid -gid -links -inum -samefile -fstype -maxdepth -mindepth -printf -lname -ilname -used \
    -context -D -newermm -newerBt -Bmin -Btime -flags ";

/// Judges `find`.
pub(in crate::shell) fn find(walk: &mut Walk<'_>, call: &Call<'_>) -> Verdict {
    let args = call.args();
    let mut targets = Vec::new();
    let mut verdict = reads("only looks for files");
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
            continue;
        }
        match text {
            "-delete" => {
                targets.extend(roots(walk, args));
                verdict = destroys("find -delete removes what it finds", Vec::new());
            }
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                let before = walk.found.len();
                at = exec(walk, args, at);
                let worst = worst(walk.found.get(before..).unwrap_or_default());
                if worst > Level::Creates {
                    targets.extend(roots(walk, args));
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
                // A pattern without quotes becomes the files it fits, and one may be named `-delete`.
                let may_be_more = |value: &Field| {
                    value.splits
                        || value.may_be_option()
                            && !value.text.contains('.')
                            && value.sure == Certainty::Glob
                };
                if args.get(at).is_some_and(may_be_more) {
                    return unknown("its arguments are not known before it runs");
                }
                at += 1;
            }
            _ => return unknown(format!("has a test we do not know: `{text}`")),
        }
    }
    verdict.targets = targets;
    verdict
}

fn in_list(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|known| known == word)
}

/// Where it looks.
fn roots(walk: &Walk<'_>, args: &[Field]) -> Vec<Target> {
    let is_test = |field: &&Field| field.text.starts_with(['-', '(', '!']) && field.text.len() > 1;
    let named: Vec<&Field> = args
        .iter()
        .skip_while(|field| is_test(field))
        .take_while(|field| !is_test(field))
        .collect();
    let here = Field::exact(".");
    let roots = if named.is_empty() { vec![&here] } else { named };
    let target = |root: &Field| {
        let inside =
            Field { text: format!("{}/**", root.text.trim_end_matches('/')), ..root.clone() };
        let mut target =
            walk.target(&inside, TargetAction::Delete, "find -delete removes what it finds");
        if target.certainty == Certainty::Exact {
            target.certainty = Certainty::Glob;
        }
        target
    };
    roots.into_iter().map(target).collect()
}

/// Judges the command of an `-exec`; says where the next test begins.
fn exec(walk: &mut Walk<'_>, args: &[Field], from: usize) -> usize {
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
        walk.apart(|walk| walk.run(&words, &Stdin::Inherited));
    }
    from + end + 1
}

/// Judges `fd`: `-x` and `-X` end its own options.
pub(in crate::shell) fn fd(walk: &mut Walk<'_>, call: &Call<'_>) -> Verdict {
    let args = call.args();
    let at =
        args.iter().position(|field| names::is_one(field, &["-x", "-X", "--exec", "--exec-batch"]));
    if let Some(at) = at {
        let mut words = args.get(at + 1..).unwrap_or_default().to_vec();
        words.retain(|word| word.text != ";");
        wrappers::replace(&mut words, "{");
        words.push(Field { text: "…".to_owned(), sure: Certainty::Dynamic, splits: true });
        walk.run(&words, &Stdin::Inherited);
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
