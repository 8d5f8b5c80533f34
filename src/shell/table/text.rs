//! Programs that read text and print it.

use crate::shell::programs;
use crate::shell::row::{ProgramRow, Rule, row};

pub(super) const ROWS: &[ProgramRow] = &[
    row("echo expr", "", Rule::By(programs::words), "prints its words"),
    row("printf", "", Rule::By(programs::printf), "prints, or sets a variable"),
    row(
        "cat",
        "$ -AETbenstuv --show-all --number-nonblank --show-ends --number --squeeze-blank \
         --show-tabs --show-nonprinting --help --version",
        Rule::Reads,
        "only reads",
    ),
    row(
        "tac",
        "$ -br -s: --before --regex --separator= --help --version",
        Rule::Reads,
        "only reads",
    ),
    row(
        "nl",
        "$ -p -b: -d: -f: -h: -i: -l: -n: -s: -v: -w: --body-numbering= --section-delimiter= \
         --footer-numbering= --header-numbering= --line-increment= --join-blank-lines= \
         --number-format= --no-renumber --number-separator= --starting-line-number= \
         --number-width= --help --version -#",
        Rule::Reads,
        "only reads",
    ),
    row(
        "head",
        "$ -qvz -c: -n: --bytes= --lines= --quiet --silent --verbose --zero-terminated --help \
         --version -#",
        Rule::Reads,
        "only reads",
    ),
    row(
        "tail",
        "$ -Fqvz -c: -f? -n: -s: --bytes= --follow? --lines= --max-unchanged-stats= --pid= \
         --quiet --silent --retry --sleep-interval= --verbose --zero-terminated --help \
         --version -r -#",
        Rule::Reads,
        "only reads",
    ),
    row(
        "wc",
        "$ -Lclmw --bytes --chars --lines --files0-from= --max-line-length --words --help \
         --version",
        Rule::Reads,
        "only reads",
    ),
    row(
        "cut",
        "$ -Mnsz -b: -c: -d: -f: --bytes= --characters= --delimiter= --fields= --complement \
         --only-delimited --output-delimiter= --zero-terminated --help --version",
        Rule::Reads,
        "only reads",
    ),
    row(
        "paste",
        "$ -sz -d: --delimiters= --serial --zero-terminated --help --version",
        Rule::Reads,
        "only reads",
    ),
    row(
        "tr",
        "$ -Ccdst --complement --delete --squeeze-repeats --truncate-set1 --help --version",
        Rule::Reads,
        "only reads",
    ),
    row(
        "fold",
        "$ -bs -w: --bytes --spaces --width= --help --version -#",
        Rule::Reads,
        "only reads",
    ),
    row(
        "fmt",
        "$ -cstu -g: -p: -w: --crown-margin --prefix= --split-only --tagged-paragraph \
         --uniform-spacing --width= --goal= --help --version -#",
        Rule::Reads,
        "only reads",
    ),
    row(
        "expand unexpand",
        "$ -ai -# -t: --initial --tabs= --all --first-only --help --version",
        Rule::Reads,
        "only reads",
    ),
    row(
        "rev col colrm tsort yes factor",
        "$ -Vhbfpx -l: --no-backspaces --fine --pass --tabs --spaces --lines= --help --version",
        Rule::Reads,
        "only reads",
    ),
    row(
        "column",
        "$ -JLVdehtx -E: -H: -N: -O: -R: -T: -W: -c: -i: -l: -n: -o: -p: -r: -s: --table \
         --table-name= --table-order= --table-columns= --table-columns-limit= \
         --table-noextreme= --table-noheadings --table-header-repeat --table-hide= \
         --table-right= --table-truncate= --table-wrap= --keep-empty-lines --json --tree= \
         --tree-id= --tree-parent= --output-width= --output-separator= --separator= --fillrows \
         --help --version",
        Rule::Reads,
        "only reads",
    ),
    row(
        "comm",
        "$ -123z --check-order --nocheck-order --output-delimiter= --total --zero-terminated \
         --help --version",
        Rule::Reads,
        "only reads",
    ),
    row(
        "join",
        "$ -iz -1: -2: -a: -e: -j: -o: -t: -v: --ignore-case --check-order --nocheck-order \
         --header --zero-terminated --help --version",
        Rule::Reads,
        "only reads",
    ),
    row(
        "look",
        "$ -Vadfh -t: --alternative --alphanum --ignore-case --terminate= --help --version",
        Rule::Reads,
        "only reads",
    ),
    row(
        "grep egrep fgrep",
        "$ -EFGHILNPRTUVZabchilnoqrsvwxz -A: -B: -C: -D: -d: -e: -f: -m: --extended-regexp \
         --fixed-strings --basic-regexp --perl-regexp --regexp= --file= --ignore-case \
         --no-ignore-case --word-regexp --line-regexp --null-data --no-messages --invert-match \
         --version --help --max-count= --byte-offset --line-number --line-buffered \
         --with-filename --no-filename --label= --only-matching --quiet --silent \
         --binary-files= --text --directories= --devices= --recursive --dereference-recursive \
         --include= --exclude= --exclude-from= --exclude-dir= --files-without-match \
         --files-with-matches --count --initial-tab --null --before-context= --after-context= \
         --context= --group-separator= --no-group-separator --color? --colour? --binary -y -# \
         --devices= --no-ignore-file",
        Rule::Reads,
        "only reads",
    ),
    row(
        "zgrep zegrep zfgrep bzgrep xzgrep",
        "-EFGHILNPRTUVZabchilnoqrsvwxz -A: -B: -C: -D: -d: -e: -f: -m: --extended-regexp \
         --fixed-strings --basic-regexp --perl-regexp --regexp= --file= --ignore-case \
         --no-ignore-case --word-regexp --line-regexp --null-data --no-messages --invert-match \
         --version --help --max-count= --byte-offset --line-number --line-buffered \
         --with-filename --no-filename --label= --only-matching --quiet --silent \
         --binary-files= --text --directories= --devices= --recursive --dereference-recursive \
         --include= --exclude= --exclude-from= --exclude-dir= --files-without-match \
         --files-with-matches --count --initial-tab --null --before-context= --after-context= \
         --context= --group-separator= --no-group-separator --color? --colour? --binary -#",
        Rule::Reads,
        "only reads",
    ),
    row(
        "diff",
        "$ -BENTZabdeilnpqrstvwy -C: -D: -F: -I: -S: -U: -W: -X: -c? -u? -x: --normal --brief \
         --report-identical-files --context? --unified? --ed --rcs --side-by-side --width= \
         --left-column --suppress-common-lines --show-c-function --show-function-line= \
         --label= --expand-tabs --initial-tab --tabsize= --suppress-blank-empty --paginate \
         --recursive --no-dereference --new-file --unidirectional-new-file \
         --ignore-file-name-case --no-ignore-file-name-case --exclude= --exclude-from= \
         --starting-file= --from-file= --to-file= --ignore-case --ignore-tab-expansion \
         --ignore-trailing-space --ignore-space-change --ignore-all-space --ignore-blank-lines \
         --ignore-matching-lines= --text --strip-trailing-cr --ifdef= --GTYPE-group-format= \
         --line-format= --LTYPE-line-format= --minimal --horizon-lines= --speed-large-files \
         --color? --palette= --help --version -#",
        Rule::Reads,
        "only reads",
    ),
    row(
        "cmp",
        "$ -blsv -i: -n: --print-bytes --ignore-initial= --verbose --bytes= --quiet --silent \
         --help --version",
        Rule::Reads,
        "only reads",
    ),
    row(
        "diff3",
        "-3AETXaeimvx -L: --show-all --ed --show-overlap --easy-only --overlap-only --merge \
         --text --strip-trailing-cr --initial-tab --label= --help --version",
        Rule::Reads,
        "only reads",
    ),
    row(
        "md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum",
        "$ -bctwz -l: --binary --check --length= --tag --text --zero --ignore-missing --quiet \
         --status --strict --warn --help --version --binary --text",
        Rule::Reads,
        "only reads",
    ),
    row(
        "cksum sum shasum md5",
        "$ -0Ubchqrstvwz -a: -l: --algorithm= --check --length= --tag --untagged --zero \
         --ignore-missing --quiet --status --strict --warn --debug --help --version \
         --algorithm --binary --check --tag --text --UNIVERSAL --01 --ignore-missing --quiet \
         --status --strict --warn --help --version --sysv",
        Rule::Reads,
        "only reads",
    ),
    row(
        "od",
        "$ -abcdfilosvx -A: -N: -S: -j: -t: -w? --address-radix= --endian= --skip-bytes= \
         --read-bytes= --strings? --format= --output-duplicates --width? --traditional --help \
         --version",
        Rule::Reads,
        "only reads",
    ),
    row(
        "hexdump hd",
        "$ -CVbcdhovx -L? -e: -f: -n: -s: --one-byte-octal --one-byte-char --canonical \
         --two-bytes-decimal --two-bytes-octal --two-bytes-hex --color? --format= \
         --format-file= --length= --skip= --no-squeezing --help --version",
        Rule::Reads,
        "only reads",
    ),
    row(
        "strings",
        "$ -UVadfhov -T: -e: -n: -s: -t: -w: --all --data --print-file-name --bytes= --radix= \
         --include-all-whitespace= --target= --encoding= --unicode= --output-separator= --help \
         --version -#",
        Rule::Reads,
        "only reads",
    ),
    row(
        "pr",
        "$ -FJTacdfmrtv -C: -D: -N: -S? -W: -e? -h: -i? -l: -n? -o: -s? -w: --columns= \
         --across --show-control-chars --double-space --date-format= --expand-tabs? \
         --form-feed --header= --output-tabs? --join-lines --length= --merge --number-lines? \
         --first-line-number= --indent= --no-file-warnings --separator? --sep-string? \
         --omit-header --omit-pagination --show-nonprinting --width= --page-width= --help \
         --version -#",
        Rule::Reads,
        "only reads",
    ),
    row(
        "zcat bzcat xzcat gzcat",
        "-fqtvl --force --quiet --test --verbose --list --help --version",
        Rule::Reads,
        "only reads",
    ),
    row(
        "zstdcat lz4cat zdiff zcmp",
        "-qvu --quiet --verbose --help --version",
        Rule::Reads,
        "only reads",
    ),
    row(
        "seq",
        "$ -w -f: -s: --format= --separator= --equal-width --help --version -# -t:",
        Rule::Reads,
        "only reads",
    ),
    row(
        "numfmt",
        "$ -Mz -d: --debug --delimiter= --field= --format= --from= --from-unit= --grouping \
         --header? --invalid= --padding= --round= --suffix= --to= --to-unit= --zero-terminated \
         --help --version -#",
        Rule::Reads,
        "only reads",
    ),
    row(
        "basename dirname",
        "$ -az -s: --multiple --suffix= --zero --help --version",
        Rule::Reads,
        "only reads",
    ),
    row(
        "base64 base32 basenc",
        "-dD -w: -b: --base64 --base64url --base32 --base32hex --base16 --base2msbf --base2lsbf \
         --decode --ignore-garbage --wrap= --z85 --help --version --input= -i: >-o: \
         >--output=",
        Rule::Reads,
        "only reads",
    ),
    row(
        "iconv",
        ">-o: -Vcls -f: -t: --from-code= --to-code= --list --silent --verbose --help --usage \
         --version >--output=",
        Rule::Reads,
        "only reads",
    ),
    row(
        "jq",
        "$ -nrRscCMSejahV -f: -L: --tab --indent= --raw-output --raw-output0 --raw-input \
         --slurp --compact-output --color-output --monochrome-output --sort-keys --exit-status \
         --join-output --null-input --ascii-output --unbuffered --seq --stream --stream-errors \
         --arg= --argjson= --slurpfile= --rawfile= --args --jsonargs --from-file= --help \
         --version --build-configuration",
        Rule::Reads,
        "only reads",
    ),
    row(
        "rg ripgrep",
        "-.0abcFhHiIlLnNopPqsSuUvVwxz -A: -B: -C: -d: -e: -f: -g: -j: -m: -M: -r: -t: -T: -E: \
         --no-ignore --no-ignore-vcs --no-ignore-parent --no-ignore-dot --no-ignore-global --no-ignore-files \
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
        "-cdDiuz -f: -s: -w: -# --count --repeated --all-repeated? --ignore-case --unique \
         --zero-terminated --skip-fields= --skip-chars= --check-chars= --group? --help --version",
        Rule::ReadsThenWrites(1),
        "uniq overwrites its second operand",
    ),
    row(
        "xxd",
        "-a -b -C -d -e -E -i -p -r -R: -u -v -c: -g: -l: -n: -o: -s: -bits -ps -plain -postscript -revert -upper -uppercase \
         -include -autoskip -cols: -len: -seek: -groupsize: @",
        Rule::ReadsThenWrites(1),
        "xxd overwrites its second operand",
    ),
    row(
        "shuf",
        "-erz -i: -n: >-o: --echo --input-range= --head-count= >--output= --random-source= --repeat \
         --zero-terminated --help --version",
        Rule::Reads,
        "only reads",
    ),
    row(
        "sdiff",
        "-ilaWbBEdHstvZ -I: -w: >-o: >--output= --ignore-case --ignore-tab-expansion \
         --ignore-trailing-space --ignore-space-change --ignore-all-space --ignore-blank-lines \
         --ignore-matching-lines= --strip-trailing-cr --text --width= --left-column \
         --suppress-common-lines --expand-tabs --tabsize= --minimal --speed-large-files --help --version",
        Rule::Reads,
        "only reads",
    ),
    row("less more most", "", Rule::By(programs::pager), "only shows"),
    row(
        "bat batcat",
        "-AnpPufS -l: -H: -r: -m: --plain? --number --show-all --line-range= --language= --style= --color= \
         --paging= --theme= --wrap= --decorations= --highlight-line= --diff --tabs= --file-name= \
         --list-languages --list-themes --help --version",
        Rule::Reads,
        "only shows",
    ),
    row("sed gsed ssed", "", Rule::By(programs::sed), "edits a stream, or files in place"),
    row(
        "yq",
        "!-i !--inplace -o: -p: -rPeCMnNjcy -I: --output-format= --input-format= --prettyPrint \
         --unwrapScalar? --exit-status --no-colors --colors --null-input --raw-output --no-doc --indent=",
        Rule::Reads,
        "only reads",
    ),
    row(
        "xmllint",
        "--noout --format --xpath= --nonet --huge --recover --valid --html --noblanks --schema= >--output= >-o:",
        Rule::Reads,
        "only reads",
    ),
    row(
        "tokei",
        "-fC -e: -t: -s: -r: -o: -c: --files --hidden --no-ignore --exclude= --types= --sort= --rsort= \
         --output= --columns= --compact --help --version",
        Rule::Reads,
        "only counts",
    ),
    row("cal ncal", "-# -3yjhM1 -m: -A: -B:", Rule::Reads, "only shows"),
    row("tee gtee", "", Rule::By(programs::tee), "tee writes its operands"),
    row(
        "sponge",
        "-a",
        Rule::Changes(crate::model::TargetAction::Overwrite, 0),
        "sponge overwrites its operand",
    ),
    row("split csplit", "*", Rule::Destroys, "split writes files of its own naming"),
    row(
        "patch",
        "%--dry-run %-C -p: -i: -d: -RNsfltEu --strip= --input= --directory= --reverse --forward \
         --silent --quiet --batch --force --verbose --binary --ignore-whitespace",
        Rule::Destroys,
        "patch changes the files it names",
    ),
];
