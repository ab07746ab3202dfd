#!/bin/bash
# Some rounds of tests/chaos/run, and the control, which must be found to fail.
set -euo pipefail

python3 tests/chaos/run --bin_dir="$PWD" --minutes=0.7 --seed=1
if python3 tests/chaos/run --bin_dir="$PWD" --minutes=0 --seed=4 \
  --mode=checkpoint; then
  echo "a killed ps without a journal was not found to have lost updates" >&2
  exit 1
fi
