#!/bin/bash
# Runs processes whose clocks are set while they wait: LIBRARY PROCESS...
set -euo pipefail

offset="$TEST_TMPDIR/offset"
for process in "${@:2}"; do
  head -c 8 /dev/zero >"$offset"
  LD_PRELOAD="$PWD/$1" PARASOL_CLOCK_OFFSET="$offset" "$process"
done
