"""Rules for the project's own targets.

What a target's name says is not written again: its files have the name as their
stem, and a test has GoogleTest's main() and is small. `absl` lists components of
Abseil by name: "status" is `@system//:absl_status`.
"""

load(":joined.bzl", "joined_sources")
load(":precompiled.bzl", "UNOPTIMIZED", "precompiled_copts", "precompiled_deps")

# The vectoriser of -O2 leaves loops of unknown length alone.
VECTORIZED = ["-O3"]

# The same bits on every machine (base/multiversion.h): every operation rounds.
MULTIVERSION = VECTORIZED + ["-ffp-contract=off"]

# Sums in vectors where `#pragma omp simd` says so; choices between two values
# that are both computed first.
VECTOR_MATH = MULTIVERSION + [
    "-fno-trapping-math",
    "-fopenmp-simd",
]

# Two flags that change what headers are compiled to: sources with them parse
# these as text (precompiled.bzl).
NO_MATH_ERRNO = ["-fno-math-errno", "-Wno-invalid-pch"]
OPENMP = ["-fopenmp", "-Wno-invalid-pch"]

_NOT_OF_A_ROOM = ["*_test.cc", "*_benchmark.cc", "*_main.cc"]

# What is parsed once for all sources, and for all tests but those that have copts.
_COMMON = "common_headers"
_COMMON_OF_TESTS = "common_test_headers"

def _headers_of_test(attributes):
    return _COMMON if "copts" in attributes else _COMMON_OF_TESTS

def _compiled(attributes, deps, absl, headers = _COMMON):
    """Returns attributes with the deps and copts of sources that are compiled behind precompiled headers.

    Args:
      attributes: other attributes of a cc_library, cc_binary or cc_test.
      deps: as of cc_library.
      absl: components of Abseil.
      headers: a target of precompiled_headers in //base.
    """
    absl_deps = ["@system//:absl_" + component for component in absl]
    return dict(
        attributes,
        copts = precompiled_copts(headers, UNOPTIMIZED if headers == _COMMON_OF_TESTS else []) +
                attributes.get("copts", []),
        deps = deps + absl_deps + precompiled_deps(headers),
    )

def _files(stems, extension):
    return native.glob([stem + extension for stem in stems])

def parasol_library(name, stems = None, srcs = None, hdrs = None, deps = [], absl = [], **kwargs):
    """A cc_library of the files `<stem>.cc` and `<stem>.h`, as far as there are any.

    Args:
      name: of the target.
      stems: of its files; default: the name.
      srcs: instead of the stems' `.cc` files.
      hdrs: instead of the stems' `.h` files.
      deps: as of cc_library.
      absl: components of Abseil.
      **kwargs: as of cc_library.
    """
    stems = stems or [name]
    native.cc_library(
        name = name,
        srcs = _files(stems, ".cc") if srcs == None else srcs,
        hdrs = _files(stems, ".h") if hdrs == None else hdrs,
        **_compiled(kwargs, deps, absl)
    )

def _stems(stems, apart, pattern, exclude):
    """Returns the stems, or those of the folder's files of a pattern."""
    if stems != None:
        return stems
    found = native.glob([pattern], exclude = exclude)
    return [path[:path.rindex(".")] for path in found if path[:path.rindex(".")] not in apart]

def parasol_room(name, stems = None, apart = [], joined = True, deps = [], absl = [], **kwargs):
    """A cc_library of a whole folder, or of several of its files.

    Args:
      name: of the target.
      stems: of its files; default: of all files of the folder but tests,
        benchmarks and mains.
      apart: stems of files that are targets of their own.
      joined: whether its sources are compiled as one (joined.bzl).
      deps: as of cc_library.
      absl: components of Abseil.
      **kwargs: as of cc_library.
    """
    srcs = _stems(stems, apart, "*.cc", _NOT_OF_A_ROOM)
    srcs = _files(srcs, ".cc")
    native.cc_library(
        name = name,
        srcs = joined_sources(name, srcs, testonly = kwargs.get("testonly", False)) if joined else srcs,
        hdrs = _files(_stems(stems, apart, "*.h", _NOT_OF_A_ROOM), ".h"),
        **_compiled(kwargs, deps, absl)
    )

def parasol_binary(name, deps = [], absl = [], **kwargs):
    """A cc_binary.

    Args:
      name: of the target.
      deps: as of cc_binary.
      absl: components of Abseil.
      **kwargs: as of cc_binary.
    """
    native.cc_binary(name = name, **_compiled(kwargs, deps, absl))

def parasol_test(name, srcs = None, size = "small", main = "@system//:gtest_main", deps = [], absl = [], **kwargs):
    """A cc_test of `<name>.cc`.

    Args:
      name: of the target.
      srcs: instead of `<name>.cc`.
      size: as of cc_test.
      main: the library that has main(); None: the test's own source has it.
      deps: as of cc_test.
      absl: components of Abseil.
      **kwargs: as of cc_test.
    """
    native.cc_test(
        name = name,
        srcs = srcs or [name + ".cc"],
        size = size,
        **_compiled(kwargs, deps + ([main] if main else []), absl, _headers_of_test(kwargs))
    )

def parasol_tests(name, stems = None, apart = [], size = "medium", deps = [], absl = [], **kwargs):
    """A cc_test of all tests of a folder, or of several: one program.

    Args:
      name: of the target.
      stems: of the tests' sources; default: of all `*_test.cc` of the folder.
      apart: stems of tests that are targets of their own.
      size: as of cc_test.
      deps: as of cc_test.
      absl: components of Abseil.
      **kwargs: as of cc_test.
    """
    srcs = _files(_stems(stems, apart, "*_test.cc", []), ".cc")
    native.cc_test(
        name = name,
        srcs = joined_sources(name, srcs, suffix = "_test.cc", own_namespaces = True, testonly = True),
        size = size,
        **_compiled(kwargs, deps + ["@system//:gtest_main"], absl, _headers_of_test(kwargs))
    )
