#!/bin/bash
# Builds docs/examples/custom_model and the program of docs/custom_loop.md outside
# of the tree, as these pages say, with what `deploy/install --development`
# installs, and trains with them.
set -euo pipefail

tree=$PWD
work=$TEST_TMPDIR
example=$work/custom_model
prefix=$work/prefix
mkdir "$prefix" "$example"
cp -rL deploy/development/tree/. "$prefix"
cp -L docs/examples/custom_model/* "$example"
cp -L docs/examples/custom_loop/guide.cc "$work"
chmod -R u+w "$prefix" "$example"
cd "$example"

fail() { echo "development_test: $*" >&2; exit 1; }
quietly() {  # COMMAND...: shows what it writes if it fails
  "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "failed: $*"; }
}
has() { grep -qF -- "$1" "$2" || { cat "$2" >&2; fail "no \"$1\" in $2"; }; }

# Each header has what it includes. Those of CUDA are for nvcc.
(cd "$prefix/include/parasol" && find . -name '*.h' ! -name 'cuda_*') |
  sed 's/.*/#include "&"/' >"$work/headers.cc"
[ "$(wc -l <"$work/headers.cc")" -gt 100 ] || fail "only few headers"
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
quietly g++ $(pkg-config --cflags parasol-parts) -fsyntax-only "$work/headers.cc"

# The guide's loop, compiled by one command, prints what the tree's does.
"$tree/docs/examples/custom_loop/guide" >"$work/expected" || fail "the guide failed"
[ "$(wc -l <"$work/expected")" -ge 30 ] || fail "the guide prints few losses"
(cd "$work" &&
  quietly g++ -O2 guide.cc $(pkg-config --cflags --libs parasol-loop) -o guide)
"$work/guide" >"$work/printed" || fail "the guide failed outside of the tree"
cmp "$work/expected" "$work/printed" || fail "the guide prints other losses"

# The jobs, with the programs in a directory.
train() {  # DIRECTORY
  local programs=$1 out=$work/run
  rm -rf "$out"
  quietly "$tree/deploy/local/launcher" --job=quantile.textproto --data_dir="$work" \
    --checkpoint_dir="$out" --set=end.steps=60 --device=cpu --ps=1 --workers=1 \
    --worker_binary="$programs/worker" --evaluator_binary="$programs/evaluator" \
    --ps_binary="$programs/ps"
  has '"status":"succeeded"' "$work/log"
  has '"coverage":' "$work/log"
  quietly "$programs/parasol" check quantile.textproto --data_dir="$work"
  has "no faults" "$work/log"
  quietly "$programs/parasol" evaluate "$out" --data_dir="$work" --device=cpu
  has "step 60: coverage " "$work/log"

  # The layer, and the commit that the library is of.
  rm -rf "$out"
  quietly "$programs/worker" --job=job.textproto --data_dir="$work" \
    --checkpoint_dir="$out" --set=end.steps=10 --device=cpu
  has "step 10: accuracy " "$work/log"
  quietly "$programs/worker" --version
  has "$("$tree/worker/worker" --version)" "$work/log"
}
quietly "$tree/docs/examples/custom_model/make_vectors" "$work"
quietly "$tree/deploy/local/make_digits" --out="$work" --train=640 --test=100

quietly make -j2
train "$example"

quietly cmake -S . -B build -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$prefix"
quietly cmake --build build -j2 --target all maxout_test
train "$example/build"
quietly build/maxout_test

# Another minor version has another interface.
sed -i 's/Parasol 0.1/Parasol 0.0/' CMakeLists.txt
! cmake -S . -B other -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" 2>&1 ||
  fail "CMake takes another version"
has "parasol-config.cmake, version: 0" "$work/log"
