#!/bin/bash
# Every command that README.md and CONTRIBUTING.md document is in the table of
# tests/commands, and no other; and a command that the table lacks is found.
set -euo pipefail

# Bazel shows a test the tree through links: follow one to the real root.
root=$(dirname "$(readlink -f WORKSPACE)")
"$root/tests/commands" --check

# A tree with a document that has one command more, and one less.
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
for entry in "$root"/*; do ln -s "$entry" "$tree"; done
rm "$tree/tests" "$tree/CONTRIBUTING.md"
mkdir "$tree/tests"
for entry in "$root"/tests/*; do ln -s "$entry" "$tree/tests"; done
rm "$tree/tests/commands"
cp "$root/tests/commands" "$tree/tests"
{
  grep -v 'tests/debian_package' "$root/CONTRIBUTING.md"
  printf 'Then `tests/run --new_flag` is run, and:\n\n'
  printf '```sh\ndeploy/setup --twice \\\n  --again  # it'"'"'s a comment\n```\n'
} >"$tree/CONTRIBUTING.md"
found=$("$tree/tests/commands" --check || true)
for expected in '`tests/run --new_flag` is not in the table' \
  '`deploy/setup --twice --again` is not in the table' \
  '`tests/debian_package` is in no document'; do
  if ! grep -qF "$expected" <<<"$found"; then
    printf 'not found: %s; but:\n%s\n' "$expected" "$found"
    exit 1
  fi
done
