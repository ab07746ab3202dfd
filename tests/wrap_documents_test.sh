#!/bin/bash
# tests/wrap_documents fills prose, and leaves alone what is none. (format_test
# runs it on all documents.)
set -euo pipefail

# Bazel shows a test the tree through links: follow one to the real root.
root=$(dirname "$(readlink -f WORKSPACE)")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/page.md" <<'MARKDOWN'
# A heading that is longer than a line may be, for a heading is one line whatever it says, and this one says a lot of nothing

Short lines
are joined, and a line that is longer than the 120 columns that the documents have is broken between two words of it.
A command as `bazel test //tests:format_test //tests:comments_test --test_output=errors` stays in one line, also where it
was `broken between
two lines`, and so does a ([link](docs/design/compute_plane.md#a-heading-of-it)). It ends here with a break,  
and goes on: no line begins with what would be a list, or a heading, or a quote, or a row of a table, also if 22 is > 1 - 0 and is not # 1.

- An item of a list whose text is so long that it needs a second line, which begins under the first word of the item's text
  and an item's
  second line.
  1. An item below it
     in two lines.

  A second paragraph of
  the item.
- Another.

| a table | is left alone, however long its lines are, since a row of it is one line and can't be anything else at all, is it |
|---|---|
| so | is this |

```sh
code   is left   alone, however long it is, since it would not be what is to be written if it were broken into two lines
- too
```

> A quote
> too.
MARKDOWN
cat >"$work/wanted.md" <<'MARKDOWN'
# A heading that is longer than a line may be, for a heading is one line whatever it says, and this one says a lot of nothing

Short lines are joined, and a line that is longer than the 120 columns that the documents have is broken between two
words of it. A command as `bazel test //tests:format_test //tests:comments_test --test_output=errors` stays in one line,
also where it was `broken between two lines`, and so does a ([link](docs/design/compute_plane.md#a-heading-of-it)). It
ends here with a break,  
and goes on: no line begins with what would be a list, or a heading, or a quote, or a row of a table, also if 22 is >
1 - 0 and is not # 1.

- An item of a list whose text is so long that it needs a second line, which begins under the first word of the item's
  text and an item's second line.
  1. An item below it in two lines.

  A second paragraph of the item.
- Another.

| a table | is left alone, however long its lines are, since a row of it is one line and can't be anything else at all, is it |
|---|---|
| so | is this |

```sh
code   is left   alone, however long it is, since it would not be what is to be written if it were broken into two lines
- too
```

> A quote
> too.
MARKDOWN
if "$root/tests/wrap_documents" --check "$work/page.md" >"$work/found"; then
  echo "--check finds nothing in $(cat "$work/page.md")"
  exit 1
fi
grep -qF "page.md:3: not as" "$work/found" || { cat "$work/found"; exit 1; }
"$root/tests/wrap_documents" "$work/page.md"
diff "$work/wanted.md" "$work/page.md"
"$root/tests/wrap_documents" --check "$work/page.md"
