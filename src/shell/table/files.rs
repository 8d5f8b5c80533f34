//! Programs about files and directories.

use super::{Row, Rule, looks, row};
use crate::model::TargetAction::{Delete, Modify, Overwrite};
use crate::shell::programs;

pub(super) const ROWS: &[Row] = &[
    looks(
        "ls dir vdir stat du df realpath readlink pwd lsattr getfacl namei pathchk exa eza lsd dust duf",
    ),
    looks("readelf objdump nm size ldd c++filt addr2line otool dwarfdump rabin2"),
    looks("zipinfo zless zmore bzless xzless lsar zipgrep zstdless mediainfo"),
    row(
        "tree",
        "& -adflxqNQpugshDFvtcUrACSnXJi -L: -P: -I: -H: -T: >-o: --gitignore --gitfile= --ignore-case --matchdirs \
         --metafirst --info --infofile= --prune --filelimit= --timefmt= --si --du --inodes --device --noreport \
         --charset= --dirsfirst --filesfirst --sort? --nolinks --hintro= --houtro= --fromfile --fromtabfile --fflinks --version --help",
        Rule::Reads,
        "only reads",
    ),
    row("file", "* ~-C ~--compile", Rule::Reads, "only reads"),
    row("find gfind", "", Rule::By(programs::find), "looks for files and may act on them"),
    row("fd fdfind", "", Rule::By(programs::fd), "looks for files and may run commands on them"),
    row("locate mlocate plocate mdfind", "*", Rule::Reads, "only reads"),
    row("rm grm", "*", Rule::Changes(Delete, 0), "rm removes its operands"),
    row(
        "rmdir unlink shred wipe srm trash trash-put rimraf del-cli",
        "* -n: -s: --size= --iterations=",
        Rule::Changes(Delete, 0),
        "removes its operands",
    ),
    row(
        "mv gmv",
        "* -t: -S: --target-directory= --suffix=",
        Rule::Moves,
        "mv takes its sources away and overwrites",
    ),
    row(
        "cp gcp",
        "* -t: -S: --target-directory= --suffix=",
        Rule::Copies,
        "cp overwrites what has the name",
    ),
    row(
        "scp",
        "* -c: -D: -F: -i: -J: -l: -o: -P: -S: -X:",
        Rule::Copies,
        "scp overwrites what has the name",
    ),
    row("ln gln", "", Rule::By(programs::link), "makes links"),
    row(
        "install ginstall",
        "",
        Rule::By(programs::install),
        "install overwrites what has the name",
    ),
    row("dd gdd", "", Rule::By(programs::dd), "dd overwrites its `of=`"),
    row("mkdir gmkdir", "* -m: --mode=", Rule::Makes, "makes directories"),
    row(
        "touch gtouch",
        "* -t: -d: -r: --date= --reference=",
        Rule::Makes,
        "makes files and sets times",
    ),
    row("mktemp", "*  %-u %--dry-run", Rule::Makes, "makes a new file"),
    row("mkfifo mknod", "* -m:", Rule::Makes, "makes special files"),
    row(
        "truncate",
        "* -s: -r: --size= --reference=",
        Rule::Changes(Modify, 0),
        "truncate cuts its operands",
    ),
    row(
        "fallocate",
        "* -l: -o: --length= --offset=",
        Rule::Changes(Modify, 0),
        "fallocate changes its operand",
    ),
    row("chmod chown chgrp", "* --reference=", Rule::Changes(Modify, 1), "changes modes or owners"),
    row(
        "setfacl setfattr xattr chattr chflags",
        "*",
        Rule::Changes(Modify, 0),
        "changes attributes",
    ),
    row("rename prename mmv", "* %-n %--nono %--no-act", Rule::Destroys, "renames files"),
    row("dos2unix unix2dos", "*", Rule::Changes(Modify, 0), "rewrites its operands"),
    row("tar gtar bsdtar", "", Rule::By(programs::tar), "packs or unpacks"),
    row(
        "gzip gunzip bzip2 bunzip2 xz unxz lzma zstd unzstd lz4 pigz pbzip2 brotli compress uncompress",
        "",
        Rule::By(programs::compress),
        "replaces files by packed ones",
    ),
    row("zip", "", Rule::By(programs::zip), "changes an archive"),
    row("unzip", "", Rule::By(programs::unzip), "unpacks over files"),
    row("7z 7za 7zr 7zz", "^", Rule::Sub(SEVEN_ZIP), "packs or unpacks"),
    row("rsync", "", Rule::By(programs::rsync), "rsync overwrites its destination"),
    row("gio", "^", Rule::Sub(GIO), "changes files"),
    row("indent", "* >-o:", Rule::Changes(Overwrite, 0), "rewrites its operands"),
    row("strip objcopy", "*", Rule::Changes(Modify, 0), "rewrites its operands"),
    row("script", "*", Rule::Destroys, "script overwrites its typescript"),
    row(
        "chroot mount umount mkfs fdisk parted losetup swapon swapoff wipefs sgdisk btrfs zfs zpool lvremove mkswap",
        "*",
        Rule::Destroys,
        "changes file systems",
    ),
];

const SEVEN_ZIP: &[Row] = &[
    looks("l t i h b"),
    row("x e a d u rn", "*", Rule::Destroys, "unpacks over files or changes an archive"),
];

const GIO: &[Row] = &[
    looks("list info cat tree version help monitor"),
    row("trash remove", "*", Rule::Changes(Delete, 0), "removes its operands"),
    row("move rename", "*", Rule::Moves, "moves its operands"),
    row("copy save", "*", Rule::Copies, "overwrites what has the name"),
];
