#!/bin/bash
# Facts that are stamped into the binaries (--version).
commit=$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
if [ "$commit" != unknown ] && [ -n "$(git status --porcelain --untracked-files=no 2>/dev/null)" ]; then
  commit="$commit-dirty"
fi
echo "STABLE_PARASOL_COMMIT $commit"
