//! Programs that read text and print it.

use super::{Row, Rule, looks, row};
use crate::shell::programs;

pub(super) const ROWS: &[Row] = &[
    row(
        "base64 base32 basenc iconv uconv",
        "* >-o: >--output= -f: -t: -i: -w: -b:",
        Rule::Reads,
        "only reads",
    ),
    looks("cat tac nl rev head tail wc cut paste tr fold fmt expand unexpand col colrm column"),
    looks("comm join look fgrep egrep grep zgrep bzgrep xzgrep zegrep zfgrep pcregrep pcre2grep"),
    looks("diff colordiff cmp diff3 zdiff zcmp diffstat wdiff dwdiff"),
    looks("md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum shasum md5"),
    looks("od hexdump hd strings  tsort pr zcat bzcat xzcat zstdcat gzcat lz4cat"),
    looks("echo seq yes factor expr numfmt basename dirname jq gron jless ansi2txt cowsay figlet"),
    looks("cloc tokei scc sloccount ascii cal ncal units nproc"),
    row("printf", "", Rule::By(programs::printf), "prints, or sets a variable"),
    row("ack", "* ~--pager= ~--create-ackrc ~--output=", Rule::Reads, "only reads"),
    row("ag pt", "* ~--pager=", Rule::Reads, "only reads"),
    row(
        "rg ripgrep",
        "& -.0abcFhHiIlLnNopPqsSuUvVwxz? -z -A: -B: -C: -d: -e: -f: -g: -j: -m: -M: -r: -t: -T: -E: \
         ~--pre= ~--pre-glob= ~--hostname-bin= --no-ignore --no-ignore-vcs --no-ignore-parent --no-ignore-dot --no-ignore-global --no-ignore-files \
         --no-ignore-exclude --hidden --no-hidden --files --files-with-matches --files-without-match --count --count-matches \
         --type= --type-not= --type-list --type-add= --type-clear= --glob= --iglob= --glob-case-insensitive --regexp= --file= \
         --ignore-case --smart-case --case-sensitive --fixed-strings --word-regexp --line-regexp \
         --invert-match --line-number --no-line-number --column --no-column --heading --no-heading \
         --with-filename --no-filename --only-matching --passthru --passthrough --pcre2 --no-pcre2 --multiline \
         --multiline-dotall --null --null-data --text --binary --encoding= --follow --one-file-system \
         --max-count= --max-depth= --maxdepth= --max-filesize= --max-columns= --max-columns-preview \
         --context= --after-context= --before-context= --context-separator= --no-context-separator \
         --field-match-separator= --field-context-separator= --replace= --sort= --sortr= --sort-files --stats --no-stats \
         --json --vimgrep --color= --colors= --pretty --quiet --threads= --trim --no-trim --unrestricted \
         --search-zip --no-search-zip --no-messages --debug --trace --engine= --crlf --mmap --no-mmap --line-buffered \
         --block-buffered --ignore-file= --ignore-file-case-insensitive --include-zero --dfa-size-limit= --regex-size-limit= \
         --path-separator= --no-config --no-require-git --require-git --hyperlink-format= --stop-on-nonmatch --auto-hybrid-regex \
         --no-unicode --unicode --byte-offset --pcre2-version --generate= --version --help",
        Rule::Reads,
        "only reads",
    ),
    row("sort gsort", "", Rule::By(programs::sort), "sorts text; may overwrite its output"),
    row(
        "uniq guniq",
        "& -cdDiuz -f: -s: -w: -# --count --repeated --all-repeated? --ignore-case --unique \
         --zero-terminated --skip-fields= --skip-chars= --check-chars= --group? %--help %--version",
        Rule::ReadsThenWrites(1),
        "uniq overwrites its second operand",
    ),
    row(
        "xxd",
        "& -abCdeEiprRuv -c: -g: -l: -n: -o: -s: -bits -ps -plain -postscript -revert -upper -uppercase \
         -include -autoskip -cols: -len: -seek: -groupsize: @",
        Rule::ReadsThenWrites(1),
        "xxd overwrites its second operand",
    ),
    row(
        "shuf",
        "-erz -i: -n: >-o: --echo --input-range= --head-count= >--output= --random-source= --repeat --zero-terminated",
        Rule::Reads,
        "only reads",
    ),
    row(
        "sdiff",
        "-ilaWbBEdHs -I: -w: >-o: >--output= --ignore-case --suppress-common-lines --width= --left-column",
        Rule::Reads,
        "only reads",
    ),
    row("less more most", "", Rule::By(programs::pager), "only shows"),
    row("bat batcat", "* ~--pager= ~cache ~--config-file", Rule::Reads, "only shows"),
    row("sed gsed ssed", "", Rule::By(programs::sed), "edits a stream, or files in place"),
    row(
        "awk gawk mawk nawk busybox-awk original-awk",
        "",
        Rule::By(programs::awk),
        "runs an awk program",
    ),
    row(
        "yq",
        "!-i !--inplace ~-s: ~--split-exp= -o: -p: -r -P -e -C -M -n -N -j -c -y -I: --arg: --output-format= --input-format= --prettyPrint --unwrapScalar? --exit-status --no-colors --colors --null-input --raw-output --no-doc --indent= --from-file=",
        Rule::Reads,
        "only reads",
    ),
    row("dasel fx xq", "~-w: ~-o: -f: -r: -p: ~--write= ~--out=", Rule::Reads, "only reads"),
    row("xmllint", "* >--output= >-o: ~--shell ~--save", Rule::Reads, "only reads"),
    row(
        "pandoc",
        "* >-o: >--output= ~--filter= ~-F: ~--lua-filter= ~-L: ~--pdf-engine= ~--extract-media= ~--log=",
        Rule::Reads,
        "prints the converted text",
    ),
    row("tee gtee", "", Rule::By(programs::tee), "tee writes its operands"),
    row(
        "sponge",
        "-a",
        Rule::Changes(crate::model::TargetAction::Overwrite, 0),
        "sponge overwrites its operand",
    ),
    row("split csplit", "*", Rule::Makes, "split writes files of its own naming"),
    row("patch", "* %--dry-run %-C", Rule::Destroys, "patch changes the files it names"),
];
