#!/bin/bash
# Every C++ and CUDA file is as clang-format (.clang-format) would write it, and
# every document as tests/wrap_documents.
set -euo pipefail

# Bazel shows a test the tree through links: follow one to the real root.
cd "$(dirname "$(readlink -f WORKSPACE)")"
tests/wrap_documents --check
if ! command -v clang-format >/dev/null; then
  echo "skipped: no clang-format here (apt-get install clang-format)"
  exit 0
fi
find base chief cluster deploy evaluator ml parameters proto ps serving storage tests \
  third_party tool worker \
  -name '*.cc' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' |
  xargs clang-format --dry-run -Werror
