#!/bin/bash
# Makes the directory of development_tree (development.bzl):
#
#   make_tree TREE CONTENT VERSION_HEADER CMAKE_CONFIG COMPILER AR
#
# CONTENT has lines of a kind, a name and a path or flags:
#
#   header SOURCE PATH     a header, and how it is included
#   public SOURCE PATH     a header that goes along with all that it includes,
#   possible SOURCE PATH   of these
#   library - OBJECT       libparasol.a
#   testing - OBJECT       libparasol_testing.a
#   main NAME OBJECT       libparasol_NAME.a, linked as a whole
#   flags NAME FLAG…       what the linker needs beside these
#   cflags - FLAG…         what the compiler is told
set -euo pipefail

tree=$1 content=$2 version_header=$3 config=$4 compiler=$5 ar=$6
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$tree/lib/pkgconfig" "$tree/lib/cmake/parasol"

version=$(sed -nE 's/.*kVersion\[\] = "([^"]+)".*/\1/p' "$version_header")
[ -n "$version" ] || { echo "make_tree: $version_header has no kVersion" >&2; exit 1; }

declare -A flags=()
cflags=
while read -r kind name rest; do
  case $kind in
    header | public | possible) printf '%s %s\n' "$name" "$rest" >>"$work/${kind}s" ;;
    flags) flags[$name]=$rest ;;
    cflags) cflags=$rest ;;
    *) printf '%s\n' "$rest" >>"$work/$kind$name" ;;
  esac
done <"$content"

# What public headers include, and what that includes.
declare -A source_of=() taken=()
while read -r source path; do source_of[$path]=$source; done <"$work/possibles"
mapfile -t next < <(cut -d ' ' -f 2 "$work/publics")
while [ ${#next[@]} -gt 0 ]; do
  sources=()
  for path in "${next[@]}"; do
    source=${source_of[$path]:-}
    if [ -z "$source" ] || [ -n "${taken[$path]:-}" ]; then continue; fi
    taken[$path]=1
    sources+=("$source")
    printf '%s %s\n' "$source" "$path" >>"$work/headers"
  done
  [ ${#sources[@]} -gt 0 ] || break
  mapfile -t next < <(sed -nE 's/^#include "([^"]+)".*/\1/p' "${sources[@]}" | sort -u)
done

while read -r source path; do
  mkdir -p "$tree/include/parasol/$(dirname "$path")"
  cp "$source" "$tree/include/parasol/$path"
done <"$work/headers"

# `q` keeps members of one name from several folders; Bazel's `D` has no times.
archive() {  # NAME OBJECT-LIST
  "$ar" qcsD "$tree/lib/lib$1.a" "@$2"
}
archive parasol "$work/library-"
archive parasol_testing "$work/testing-"
for name in "${!flags[@]}"; do
  [ "$name" != testing ] || continue
  # As one object: main(), or a program of one's own, brings what nothing
  # refers to.
  "$compiler" -r -nostdlib -o "$work/$name.o" "@$work/main$name"
  printf '%s\n' "$work/$name.o" >"$work/merged"
  archive "parasol_$name" "$work/merged"
done

module() {  # NAME DESCRIPTION LIBRARIES
  cat >"$tree/lib/pkgconfig/parasol-$1.pc" <<MODULE
prefix=\${pcfiledir}/../..

Name: parasol-$1
Description: $2
Version: $version
Cflags: -std=c++20 -I\${prefix}/include/parasol $cflags
${3:+Libs: -L\${prefix\}/lib $3}
MODULE
}
module parts "Headers for parts of one's own that Parasol is linked with" ""
for name in "${!flags[@]}"; do
  case $name in
    testing) description="What tests of such parts use" ;;
    *_main) description="The ${name%_main} of Parasol, to be linked with such parts" ;;
    *) description="Training loops of one's own" ;;
  esac
  module "$name" "$description" "-lparasol_$name -lparasol ${flags[$name]}"
done

cmake=$tree/lib/cmake/parasol
{
  sed "s|@CFLAGS@|$cflags|" "$config"
  for name in $(printf '%s\n' "${!flags[@]}" | sort); do
    echo "_parasol_library($name ${flags[$name]})"
  done
  echo "unset(_parasol_prefix)"
} >"$cmake/parasol-config.cmake"
# Before 1.0 a minor version may change what parts are compiled against.
cat >"$cmake/parasol-config-version.cmake" <<VERSION
set(PACKAGE_VERSION "$version")
set(PACKAGE_VERSION_COMPATIBLE FALSE)
if(PACKAGE_FIND_VERSION VERSION_LESS_EQUAL PACKAGE_VERSION AND
   "\${PACKAGE_FIND_VERSION_MAJOR}.\${PACKAGE_FIND_VERSION_MINOR}" VERSION_EQUAL "${version%.*}")
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
  set(PACKAGE_VERSION_EXACT TRUE)
endif()
VERSION
