#!/bin/bash
# Some rounds of tests/chaos/run, and its controls, which must be found to have
# lost updates.
set -euo pipefail

python3 tests/chaos/run --bin_dir="$PWD" --minutes=0.7 --seed=1

# Runs a control's rounds until one has lost updates: MODE SEED... Most do, but
# where a round is over before much has happened to it; another failure does not
# count.
loses() {
  local seed kept
  kept=$(mktemp -d)
  for seed in "${@:2}"; do
    TMPDIR="$kept" python3 tests/chaos/run --bin_dir="$PWD" --minutes=0 \
      --mode="$1" --seed="$seed" >>"$kept/out" || true
    if grep -qE 'rows lack updates|updates of the bias|updates too many' \
      "$kept/out"; then
      rm -r "$kept"
      return
    fi
  done
  echo "lost updates were not found:" >&2
  cat "$kept/out" >&2
  exit 1
}
loses checkpoint 4 5 6 7 8 9
loses power_journal 34 66 297 {1..12}
