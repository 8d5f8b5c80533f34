#!/bin/sh
# Writes a seed file for every line of fixtures/commands.jsonl, as JSON text: close enough to begin with.
set -eu
cd "$(dirname "$0")"
mkdir -p corpus/classify
number=0
while IFS= read -r line; do
    number=$((number + 1))
    printf "%s" "$line" | sed "s/^{\"command\": \"//; s/\", \"level\".*//" > "corpus/classify/$number"
done < ../fixtures/commands.jsonl
