#!/bin/sh
# Writes what each target begins with below fuzz/corpus: real payloads, lines, and files of ours.
#
#     sh fuzz/seeds.sh
#     cargo +nightly fuzz run payload -- -runs=1000000       # with cargo-fuzz, or without it:
#     cd fuzz && RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module \
#         -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
#         -Cllvm-args=-sanitizer-coverage-pc-table" \
#         cargo build --release --target x86_64-unknown-linux-gnu
#     target/x86_64-unknown-linux-gnu/release/payload corpus/payload -runs=1000000
#
# Targets: classify payload patch cache records tree index.
set -eu
cd "$(dirname "$0")"
mkdir -p corpus/classify corpus/payload corpus/patch corpus/cache corpus/records corpus/tree corpus/index

# As JSON text: close enough to begin with.
number=0
while IFS= read -r line; do
    number=$((number + 1))
    printf "%s" "$line" | sed "s/^{\"command\": \"//; s/\", \"level\".*//" > "corpus/classify/$number"
done < ../fixtures/commands.jsonl

number=0
for file in ../fixtures/payloads/*/*.json; do
    number=$((number + 1))
    cp "$file" "corpus/payload/$number"
    if grep -q "Begin Patch" "$file"; then
        grep -o "\*\*\* Begin Patch.*End Patch" "$file" | sed "s/\\\\n/\\
/g" > "corpus/patch/$number"
    fi
done

number=0
find ../fixtures/formats -type f 2>/dev/null | while IFS= read -r file; do
    number=$((number + 1))
    case $file in
    */cache) tail -c +17 "$file" > "corpus/cache/$number" ;;
    */index) head -c -20 "$file" > "corpus/index/$number" ;;
    *.tar) ;;
    *) cp "$file" "corpus/records/$number"; cp "$file" "corpus/tree/$number" ;;
    esac
done
