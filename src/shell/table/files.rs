//! Programs about files and directories.

use crate::model::TargetAction::{Delete, Modify, Overwrite};
use crate::shell::programs;
use crate::shell::row::{ProgramRow, Rule, row};

pub(super) const ROWS: &[ProgramRow] = &[
    row(
        "ls dir vdir",
        "$ -1ABCDGHLNQRSUXZabcdfghiklmnoqrstuvx -F? -I: -T: -p: -w: --all --almost-all \
         --author --escape --block-size= --ignore-backups --color? --directory --dired \
         --classify? --file-type --format= --full-time --group-directories-first --no-group \
         --human-readable --si --dereference-command-line \
         --dereference-command-line-symlink-to-dir --hide= --hyperlink? --indicator-style= \
         --inode --ignore= --kibibytes --dereference --numeric-uid-gid --literal \
         --hide-control-chars --show-control-chars --quote-name --quoting-style= --reverse \
         --recursive --size --sort= --time= --time-style= --tabsize= --width= --context --zero \
         --help --version -eOW@%",
        Rule::Reads,
        "only reads",
    ),
    row(
        "stat",
        "$ -L --dereference --file-system --cached= --printf= --terse --help --version \
         --terse= --file-system= -c: -f: -Fnlqrsx -t: --format=",
        Rule::Reads,
        "only reads",
    ),
    row(
        "du",
        "$ -0DHLPSabchklmsx -B: -X: -d: -t: --null --all --apparent-size --block-size= --bytes \
         --total --dereference-args --max-depth= --files0-from= --human-readable --inodes \
         --dereference --count-links --no-dereference --separate-dirs --si --summarize \
         --threshold= --time --time-style= --exclude-from= --exclude= --one-file-system --help \
         --version --time? -gnr",
        Rule::Reads,
        "only reads",
    ),
    row(
        "df",
        "$ -HPTahiklv -B: -t: -x: --all --block-size= --human-readable --si --inodes --local \
         --no-sync --output? --portability --sync --total --type= --print-type --exclude-type= \
         --help --version -bcgmn",
        Rule::Reads,
        "only reads",
    ),
    row(
        "realpath readlink",
        "$ -LPemqszfnv --canonicalize-existing --canonicalize-missing --logical --physical \
         --quiet --relative-to= --relative-base= --strip --no-symlinks --zero --help --version \
         --canonicalize --no-newline --silent --verbose",
        Rule::Reads,
        "only reads",
    ),
    row(
        "pwd pathchk namei",
        "$ -LPphlmnovxV --logical --physical --portability --modes --owners --long --vertical \
         --nosymlinks --mountpoints --help --version",
        Rule::Reads,
        "only reads",
    ),
    row(
        "readelf",
        "-ADHILPSVWacdeghlnrstuvz -C? -R: -T: -U: -p: -w: -x: --all --file-header \
         --program-headers --segments --section-headers --sections --section-groups \
         --section-details --headers --syms --symbols --dyn-syms --lto-syms --sym-base= \
         --demangle? --no-demangle --recurse-limit --no-recurse-limit --unicode= --notes \
         --relocs --unwind --dynamic --version-info --arch-specific --archive-index \
         --use-dynamic --lint --hex-dump= --string-dump= --relocated-dump= --decompress \
         --debug-dump= --process-links --dwarf-depth= --dwarf-start= --ctf= --ctf-parent= \
         --ctf-symbols= --ctf-strings= --sframe? --histogram --wide --silent-truncation= \
         --help --version",
        Rule::Reads,
        "only reads",
    ),
    row(
        "objdump",
        "-DFGHLRSTUadefghilprstvwxz -C? -E: -I: -M: -P: -W: -b: -j: -m: --archive-headers \
         --file-headers --private-headers --private= --all-headers --disassemble \
         --disassemble-all --disassemble= --source --source-comment? --full-contents \
         --debugging --debugging-tags --stabs --dwarf= --process-links --ctf? --sframe? --syms \
         --dynamic-syms --reloc --dynamic-reloc --version --info --help --target= \
         --architecture= --section= --disassembler-options= --endian= --file-start-context \
         --include= --line-numbers --file-offsets --demangle? --recurse-limit \
         --no-recurse-limit --wide --unicode= --disassemble-zeroes --start-address= \
         --stop-address= --no-addresses --prefix-addresses --insn-width= --adjust-vma= \
         --show-all-symbols --special-syms --inlines --prefix= --prefix-strip= --dwarf-depth= \
         --dwarf-start= --dwarf-check --ctf-parent= --visualize-jumps --visualize-jumps= \
         --disassembler-color=",
        Rule::Reads,
        "only reads",
    ),
    row(
        "nm",
        "-ABDPSUVWXaeghjlnoprsu -C? -f: -t: --debug-syms --print-file-name --demangle? \
         --no-demangle --recurse-limit --no-recurse-limit= --dynamic --format= --extern-only \
         --ifunc-chars= --just-symbols --line-numbers --numeric-sort --no-sort --portability \
         --reverse-sort --print-size --print-armap --quiet --size-sort --special-syms \
         --synthetic --radix= --target= --undefined-only --defined-only --unicode= --no-weak \
         --with-symbol-versions --help --version --line-numbers",
        Rule::Reads,
        "only reads",
    ),
    row(
        "size addr2line c++filt",
        "-Rafhiprsv -C? -b: -e: -j: --addresses --target= --exe= --inlines --section= \
         --pretty-print --basenames --functions --demangle? --recurse-limit --no-recurse-limit \
         --help --version -Adox -_n --format= --radix= --common --totals --strip-underscore \
         --no-demangle",
        Rule::Reads,
        "only reads",
    ),
    row(
        "file",
        "-0LNZbcdhiklnrsvz -F: -e: -f: -m: --help --version --magic-file= --uncompress \
         --uncompress-noreport --brief --checking-printout --exclude= --exclude-quiet= \
         --files-from= --separator= --mime --apple --extension --mime-type --mime-encoding \
         --keep-going --list --dereference --no-dereference --no-buffer --no-pad --print0 \
         --parameter --raw --special-files --debug -P:",
        Rule::Reads,
        "only reads",
    ),
    row(
        "tree",
        "-adflxqNQpugshDFvtcUrACSnXJi -L: -P: -I: -H: -T: >-o: --gitignore --gitfile= --ignore-case --matchdirs \
         --metafirst --info --infofile= --prune --filelimit= --timefmt= --si --du --inodes --device --noreport \
         --charset= --dirsfirst --filesfirst --sort? --nolinks --hintro= --houtro= --fromfile --fromtabfile --fflinks --version --help",
        Rule::Reads,
        "only reads",
    ),
    row(
        "eza exa lsd",
        "-1aAlLGFRTdrsbBgHhimnuUSx@ -I: -t: -D --all --long --tree --recurse --level= --git --icons? --color= \
         --color-scale --header --inode --reverse --sort= --group-directories-first --only-dirs --git-ignore",
        Rule::Reads,
        "only reads",
    ),
    row(
        "locate mlocate plocate",
        "-bceiw0 -l: -n: --all --basename --count --existing --ignore-case --limit= --regex --wholename",
        Rule::Reads,
        "only reads",
    ),
    row("find gfind", "", Rule::By(programs::find), "looks for files and may act on them"),
    row("fd fdfind", "", Rule::By(programs::fd), "looks for files and may run commands on them"),
    row("rm grm", "*", Rule::By(programs::rm), "rm removes its operands"),
    row("rmdir unlink shred", "", Rule::By(programs::unlink), "removes its operands"),
    row(
        "wipe srm trash trash-put rimraf del-cli",
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
        "* -T -t: -S: --target-directory= --no-target-directory --suffix=",
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
    row(
        "mkdir gmkdir",
        "-pvZ -m: --mode= --parents --verbose --context? %--help %--version",
        Rule::Makes,
        "makes directories",
    ),
    row(
        "touch gtouch",
        "-acfhm -t: -d: -r: --no-create --no-dereference --date= --reference= --time=",
        Rule::Makes,
        "makes files and sets times",
    ),
    row(
        "mktemp",
        "-dqt -p: --directory --quiet --suffix= --tmpdir? %-u %--dry-run",
        Rule::Makes,
        "makes a new file",
    ),
    row("mkfifo", "-m: --mode=", Rule::Makes, "makes special files"),
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
    row("rename prename mmv", "*", Rule::Destroys, "renames files"),
    row("dos2unix unix2dos", "*", Rule::Changes(Modify, 0), "rewrites its operands"),
    row("tar gtar bsdtar", "", Rule::By(programs::tar), "packs or unpacks"),
    row(
        "gzip gunzip bzip2 bunzip2 xz unxz lzma zstd unzstd pigz pbzip2",
        "",
        Rule::By(programs::compress),
        "replaces files by packed ones",
    ),
    // `lz4 -l` writes an old format.
    row(
        "lz4 unlz4 brotli compress uncompress",
        "*",
        Rule::Changes(Overwrite, 0),
        "packs or unpacks",
    ),
    row("zip", "", Rule::By(programs::zip), "changes an archive"),
    row("unzip", "", Rule::By(programs::unzip), "unpacks over files"),
    row("zipinfo", "-12smlvhzCTMt -x:", Rule::Reads, "only lists"),
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

const SEVEN_ZIP: &[ProgramRow] = &[
    row("l t", "-ba -slt -bd -p: -r @", Rule::Reads, "only lists or tests"),
    row("x e a d u rn", "*", Rule::Destroys, "unpacks over files or changes an archive"),
];

const GIO: &[ProgramRow] = &[
    row("list info cat tree", "-hlu -a: --hidden --attributes= --long", Rule::Reads, "only reads"),
    row("trash remove", "*", Rule::Changes(Delete, 0), "removes its operands"),
    row("move rename", "*", Rule::Moves, "moves its operands"),
    row("copy save", "*", Rule::Copies, "overwrites what has the name"),
];
