#!/bin/bash
# Runs every block of commands of docs/tutorial.md, in their order and word for
# word, and checks what the page says about the results.
set -euo pipefail

tree=$PWD
work=$TEST_TMPDIR/tutorial
mkdir -p "$work/bin"
link() {  # NAME PROGRAM
  ln -s "$(realpath "$tree/$2")" "$work/bin/$1"
}
link parasol tool/parasol
link parasol-launch deploy/local/launcher
for role in chief ps worker evaluator; do
  link "parasol-$role" "$role/$role"
done
export PATH=$work/bin:$PATH HOME=$work

# The text between ```sh and ```.
sed -n '/^```sh$/,/^```$/{/^```/d;p}' docs/tutorial.md >"$work/commands"
blocks=$(grep -c '^```sh$' docs/tutorial.md)
[ "$blocks" -ge 6 ] || { echo "docs/tutorial.md has only $blocks blocks of commands" >&2; exit 1; }
(cd "$work" && bash -euxo pipefail commands >output 2>errors) || {
  tail -n 20 "$work/output" "$work/errors" >&2
  exit 1
}

fail() { echo "docs/tutorial.md: $*" >&2; exit 1; }
cd "$work/customers"
[ "$(head -1 customers.csv)" = plan,country,age,minutes,complaints,left ] || fail "another header"
# Each line of the page's table is a line of the file.
while read -r line; do
  grep -qxF "$line" customers.csv || fail "the table has no line $line"
done < <(grep -E '^(basic|plus|pro),[a-z]{2},' "$tree/docs/tutorial.md")
examples=$(($(wc -l <customers.csv) - 1))
[ "$examples" -eq 5000 ] || fail "$examples examples, not 5000"
[ "$(head -1 scores.csv)" = plan,age,left,probability,class ] || fail "other scores: $(head -1 scores.csv)"
grep -q ',yes$' scores.csv && grep -q ',no$' scores.csv || fail "the scores have no classes"
scores=$(wc -l <scores.csv)
[ "$scores" -gt 900 ] && [ "$scores" -lt 1100 ] || fail "$scores scores: not a fifth of the examples"
evaluations=$(wc -l <curve/evaluations.jsonl)
[ "$evaluations" -ge 29 ] && [ "$evaluations" -le 32 ] || fail "$evaluations evaluations, not three in each epoch"
points=$(wc -l <curve/training.jsonl)
[ "$points" -eq 10 ] || fail "$points points of the training's curve, not one for each epoch"
[ -s model.npz ] || fail "no model.npz"
# It says "81.70 %" after 10 epochs; other thread timings give a percent more or less.
accuracy=$(sed -nE 's/.*"eval":\{"accuracy":([0-9.]+).*/\1/p' "$work/output" | head -1)
awk -v a="$accuracy" 'BEGIN { exit !(a > .78 && a < .86) }' || fail "accuracy $accuracy"
echo "$blocks blocks of commands ran; accuracy $accuracy, $scores scores"
