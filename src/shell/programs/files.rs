//! Programs that write files according to their options: links, archives, copies of blocks.

use super::{all, closed, copied, copied_over, strayed};
use crate::model::{Certainty, Level, Spares, Target, TargetAction};
use crate::shell::flags::{self, Field};
use crate::shell::names;
use crate::shell::verdict::{CommandCall, CommandVerdict, creates, destroys, reads, unknown};
use crate::shell::walk::ShellWalk;

/// Judges `rm`: directories go only if it is told so.
pub(in crate::shell) fn rm(walk: &mut ShellWalk<'_>, call: &CommandCall<'_>) -> CommandVerdict {
    let keeps_directories = |arg: &Field| match arg.literal() {
        Some("--" | "--force" | "--verbose") => true,
        Some(text) => {
            text.strip_prefix('-').is_none_or(|it| it.bytes().all(|it| b"dfivI".contains(&it)))
        }
        // What a pattern fits is looked at later.
        None => arg.sure == Certainty::Glob,
    };
    let spares = if call.args().iter().all(keeps_directories) {
        Spares::Directories
    } else {
        Spares::Nothing
    };
    removed(walk, "*", call, "rm removes its operands", &spares)
}

/// Judges what removes no directory, or only empty ones.
pub(in crate::shell) fn unlink(walk: &mut ShellWalk<'_>, call: &CommandCall<'_>) -> CommandVerdict {
    let list = "* -n: -s: --size= --iterations=";
    removed(walk, list, call, "removes its operands", &Spares::Directories)
}

fn removed(
    walk: &ShellWalk<'_>,
    list: &str,
    call: &CommandCall<'_>,
    why: &'static str,
    spares: &Spares,
) -> CommandVerdict {
    let (parsed, verdict) = closed(walk, list, call.args());
    if parsed.talks() && verdict.level == Level::ReadOnly {
        return reads("only shows what it would do");
    }
    let targets = all(walk, &parsed.operands, TargetAction::Delete, why);
    destroys(
        why,
        targets.into_iter().map(|target| Target { spares: spares.clone(), ..target }).collect(),
    )
}

/// Judges `tee`: every operand is written.
pub(in crate::shell) fn tee(walk: &mut ShellWalk<'_>, call: &CommandCall<'_>) -> CommandVerdict {
    let (parsed, verdict) = closed(
        walk,
        "-aip --append --ignore-interrupts --output-error? %--help %--version",
        call.args(),
    );
    if parsed.stray.is_some() {
        return verdict;
    }
    let action = if parsed.has(&["-a", "--append"]) {
        TargetAction::Modify
    } else {
        TargetAction::Overwrite
    };
    // A word that may be no word at all may also be a file.
    let targets = all(walk, &parsed.operands, action, "tee writes it");
    if targets.is_empty() {
        reads("copies its input to its output")
    } else {
        destroys("tee writes its operands", targets)
    }
}

/// Judges `sort`: it may write its output, and run a program to compress with.
pub(in crate::shell) fn sort(walk: &mut ShellWalk<'_>, call: &CommandCall<'_>) -> CommandVerdict {
    let list = "-bdfgiMhnRrVcCmsuz -k: >-o: -S: -t: -T: --ignore-leading-blanks --dictionary-order --ignore-case \
        --general-numeric-sort --ignore-nonprinting --month-sort --human-numeric-sort --numeric-sort --random-sort \
        --random-source= --reverse --sort= --version-sort --batch-size= --check? ~--compress-program= --debug --files0-from= \
        --key= --merge >--output= --stable --buffer-size= --field-separator= --temporary-directory= --parallel= --unique \
        --zero-terminated --help --version";
    closed(walk, list, call.args()).1
}

/// Judges `ln`.
pub(in crate::shell) fn link(walk: &mut ShellWalk<'_>, call: &CommandCall<'_>) -> CommandVerdict {
    let list = "-bdFfinLPrsTvwh -t: -S: --force --symbolic --backup? --no-dereference --relative --logical --physical \
        --interactive --no-target-directory --target-directory= --suffix= --verbose %--help %--version";
    let (parsed, _) = closed(walk, list, call.args());
    let forces = parsed.stray.is_some()
        || parsed.has(&["-f", "--force", "-b", "--backup", "-F", "-S", "--suffix", "-i"]);
    let why = "ln puts a link in its place";
    match parsed.operands.split_last() {
        None => reads("only tells about the program"),
        Some(_) if forces => destroys(why, copied(walk, &parsed, why)),
        Some((to, _)) => {
            walk.note_alias(&parsed.operands);
            creates("makes a link", vec![walk.target(to, TargetAction::Create, "makes a link")])
        }
    }
}

/// Judges `install`: with `-d` it makes directories.
pub(in crate::shell) fn install(
    walk: &mut ShellWalk<'_>,
    call: &CommandCall<'_>,
) -> CommandVerdict {
    let parsed = flags::parse(
        "* -d --directory -g: -m: -o: -S: -t: --target-directory= --mode= --owner= --group=",
        call.args(),
    );
    if parsed.has(&["-d", "--directory"]) && !parsed.operands.iter().any(Field::may_be_option) {
        let why = "makes directories";
        return creates(why, all(walk, &parsed.operands, TargetAction::Create, why));
    }
    let why = "install overwrites what has the name";
    destroys(why, copied(walk, &parsed, why))
}

/// Judges `dd` by its `of=`.
pub(in crate::shell) fn dd(walk: &mut ShellWalk<'_>, call: &CommandCall<'_>) -> CommandVerdict {
    for arg in call.args() {
        if arg.may_be_option() {
            return unknown("its arguments are not known before it runs");
        }
        if arg.text.starts_with("of=") {
            let file = arg.after("of=");
            if names::is_file(&file) {
                let why = "dd overwrites its `of=`";
                return destroys(why, vec![walk.target(&file, TargetAction::Overwrite, why)]);
            }
        }
    }
    reads("copies to its output")
}

/// Flags of `tar` that neither write nor run anything; the mode letters are read apart.
const TAR: &str = "-tcxruAdzjJaZvwphPkmOolBSsinU0 -f: -C: -X: -b: -H: -N: -K: -V: --file= --directory= --list --create --extract --get \
    --append --update --catenate --concatenate --delete --diff --compare --gzip --gunzip --ungzip --bzip2 --xz --zstd --lzma --lzip \
    --auto-compress --verbose --to-stdout --strip-components= --exclude= --exclude-from= --exclude-vcs --exclude-vcs-ignores --exclude-caches \
    --wildcards --no-wildcards --anchored --no-anchored --ignore-case --null --totals? --show-transformed-names --transform= --xform= --full-time \
    --numeric-owner --owner= --group= --mode= --mtime= --sort= --format= --no-recursion --recursion --dereference --one-file-system \
    --absolute-names --preserve-permissions --same-permissions --same-owner --no-same-owner --no-same-permissions --keep-old-files --skip-old-files \
    --keep-newer-files --overwrite --touch --occurrence? --block-number --utc --quoting-style= --warning= --acls --xattrs --selinux --no-acls --no-xattrs --hard-dereference \
    --starting-file= --newer= --remove-files --unlink-first --sparse --posix --no-auto-compress %--help %--version";

/// Judges `tar`.
pub(in crate::shell) fn tar(walk: &mut ShellWalk<'_>, call: &CommandCall<'_>) -> CommandVerdict {
    let mut args = call.args().to_vec();
    old_style(&mut args);
    let parsed = flags::parse(TAR, &args);
    if let Some(verdict) = strayed(&parsed) {
        return verdict;
    }
    if parsed.talks() {
        return reads("only tells about the program");
    }
    let file = parsed.value(&["-f", "--file"]).filter(|file| names::is_file(file));
    if file.is_some_and(|file| file.text.contains(':')) {
        return unknown("its archive is on another host");
    }
    if parsed.has(&["-x", "--extract", "--get"]) {
        if parsed.has(&["-O", "--to-stdout"]) {
            return reads("unpacks to its output");
        }
        let to = parsed.value(&["-C", "--directory"]);
        // It keeps what is there, or the names in the archive are not those on the disk.
        let other_names = ["--strip-components", "--transform", "--xform", "-k"];
        let keeps = ["--keep-old-files", "--skip-old-files", "--keep-newer-files"];
        let archive = file.filter(|_| !parsed.has(&other_names) && !parsed.has(&keeps));
        return unpacks(walk, to, archive, "tar unpacks over files");
    }
    if parsed.has(&[
        "-c", "--create", "-r", "--append", "-u", "--update", "-A", "--catenate", "--concatenate",
        "--delete", "--remove-files",
    ]) {
        let mut targets: Vec<_> = file
            .iter()
            .map(|file| walk.target(file, TargetAction::Overwrite, "tar writes the archive"))
            .collect();
        if parsed.has(&["--remove-files"]) {
            let why = "tar removes what it packed";
            let each =
                |walk: &ShellWalk<'_>| all(walk, &parsed.operands, TargetAction::Delete, why);
            targets.extend(each(walk));
            let dirs =
                parsed.hits.iter().filter(|hit| hit.name == "-C" || hit.name == "--directory");
            walk.in_subshell(|walk| {
                for dir in dirs {
                    walk.enter(dir.value.as_ref());
                    targets.extend(each(walk));
                }
            });
        }
        return if targets.is_empty() {
            reads("packs to its output")
        } else {
            destroys("tar writes the archive", targets)
        };
    }
    if parsed.has(&["-t", "--list", "-d", "--diff", "--compare"]) {
        reads("only lists")
    } else {
        unknown("does nothing we know")
    }
}

/// Turns `tar xzf a.tgz` into `tar -x -z -f a.tgz`: every letter takes its value in turn.
fn old_style(args: &mut Vec<Field>) {
    let is_old = args
        .first()
        .is_some_and(|first| first.literal().is_some_and(|text| !text.starts_with('-')));
    if !is_old {
        return;
    }
    let letters = args.remove(0).text;
    let mut at = 0;
    for letter in letters.chars() {
        args.insert(at, Field::exact(&format!("-{letter}")));
        at += 1 + usize::from("fCTXbHNKLVIF".contains(letter) && at + 1 < args.len());
    }
}

/// Judges compressors: they replace their operands unless they print.
pub(in crate::shell) fn compress(
    walk: &mut ShellWalk<'_>,
    call: &CommandCall<'_>,
) -> CommandVerdict {
    let list = "-# -cdkltvqfnN -S: --stdout --to-stdout --list --test --decompress --uncompress --keep --verbose --quiet --force --fast --best \
        --name --no-name --suffix= %--version %--help %-V";
    let parsed = flags::parse(list, call.args());
    let prints = parsed.has(&["-c", "--stdout", "--to-stdout", "-l", "--list", "-t", "--test"]);
    if parsed.talks() || parsed.stray.is_none() && (prints || parsed.operands.is_empty()) {
        return reads("packs or unpacks to its output");
    }
    let why = "is replaced by its packed or unpacked form";
    destroys("replaces its operands", all(walk, &parsed.operands, TargetAction::Delete, why))
}

/// Judges `zip`: the first operand is the archive.
pub(in crate::shell) fn zip(walk: &mut ShellWalk<'_>, call: &CommandCall<'_>) -> CommandVerdict {
    let parsed = flags::parse("-# -rqjyXDv -x: -i:", call.args());
    let why = "zip changes the archive";
    match parsed.operands.first() {
        Some(archive) if parsed.stray.is_none() && !names::is_file(archive) => {
            reads("packs to its output")
        }
        Some(archive) => destroys(why, vec![walk.target(archive, TargetAction::Modify, why)]),
        None => unknown("does nothing we know"),
    }
}

/// Judges `unzip`.
pub(in crate::shell) fn unzip(walk: &mut ShellWalk<'_>, call: &CommandCall<'_>) -> CommandVerdict {
    let parsed = flags::parse("-lptvZzqcCaUs12M -x: -d: %--help %--version %-h", call.args());
    let looks = parsed.has(&["-l", "-p", "-t", "-v", "-Z", "-z", "-c"]);
    let only_looks = parsed.stray.is_none() && (looks || parsed.operands.is_empty());
    if only_looks {
        return reads("only lists or prints");
    }
    unpacks(walk, parsed.value(&["-d"]), None, "unzip unpacks over files")
}

/// What unpacking an archive to a directory, the current one if none is named, can overwrite.
fn unpacks(
    walk: &ShellWalk<'_>,
    to: Option<&Field>,
    archive: Option<&Field>,
    why: &'static str,
) -> CommandVerdict {
    let here = Field::exact(".");
    let to = to.unwrap_or(&here);
    let inside = Field { text: format!("{}/**", to.text.trim_end_matches('/')), ..to.clone() };
    let mut somewhere = walk.target(&inside, TargetAction::Overwrite, why);
    somewhere.certainty = Certainty::Dynamic;
    let over = archive.map(|archive| walk.target(archive, TargetAction::Move, why));
    let over = over.filter(|archive| archive.certainty == Certainty::Exact).map(|archive| {
        let target = walk.target(to, TargetAction::Overwrite, why);
        Target { spares: Spares::NotPacked(archive.path), ..target }
    });
    destroys(why, over.into_iter().chain([somewhere]).collect())
}

/// Judges `rsync`: a dry run looks, everything else writes its last operand.
pub(in crate::shell) fn rsync(walk: &mut ShellWalk<'_>, call: &CommandCall<'_>) -> CommandVerdict {
    let list = "-avzrlptgoDnhPcuiqHAXSWxmRkKLJOsEUd0468 --dry-run --archive --verbose --delete --delete-after --delete-before --delete-during --delete-excluded \
        --exclude= --include= --filter= -f: --exclude-from= --include-from= --files-from= --itemize-changes --stats --progress --checksum --recursive --human-readable \
        --list-only --size-only --ignore-existing --update --existing --compress --numeric-ids --one-file-system --info= --omit-dir-times --no-perms --no-owner --no-group --out-format= %--version %--help";
    let parsed = flags::parse(list, call.args());
    let looks = parsed.has(&["-n", "--dry-run", "--list-only"]) && parsed.stray.is_none();
    if parsed.talks() || looks {
        return reads("only shows what it would do");
    }
    let Some(to) = parsed.operands.last().filter(|_| parsed.operands.len() > 1) else {
        return if parsed.stray.is_some() { unknown("may write") } else { reads("only lists") };
    };
    let removes = call.args().iter().any(|arg| arg.text.starts_with("--del"));
    let action = if removes { TargetAction::Delete } else { TargetAction::Overwrite };
    let why = "rsync replaces what is in its destination";
    let sources = &parsed.operands[..parsed.operands.len() - 1];
    let sources = if removes { &[] } else { sources };
    let over = sources.iter().map(|source| {
        let name = source.text.rsplit('/').next().unwrap_or_default();
        let inside = format!("{}/{name}", to.text.trim_end_matches('/'));
        let place = if name.is_empty() { to.clone() } else { Field { text: inside, ..to.clone() } };
        copied_over(walk, &place, source, why)
    });
    destroys(why, over.chain([walk.target(to, action, why)]).collect())
}
