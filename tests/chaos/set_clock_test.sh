#!/bin/bash
# Runs the tests in a process whose clock they set: LIBRARY PROCESS.
set -euo pipefail

offset="$TEST_TMPDIR/offset"
head -c 8 /dev/zero >"$offset"
LD_PRELOAD="$PWD/$1" PARASOL_CLOCK_OFFSET="$offset" exec "$2"
