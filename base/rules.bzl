"""Rules for the project's own targets.

What a target's name says is not written again: its files have the name as their
stem, and a test has GoogleTest's main() and is small. `absl` lists components of
Abseil by name: "status" is `@system//:absl_status`.
"""

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

_NOT_OF_A_ROOM = ["*_test.cc", "*_benchmark.cc", "*_main.cc"]

def _with_absl(deps, absl):
    return deps + ["@system//:absl_" + component for component in absl]

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
        deps = _with_absl(deps, absl),
        **kwargs
    )

def parasol_room(name, apart = [], deps = [], absl = [], **kwargs):
    """A cc_library of a whole folder, whose files are never used one without the others.

    Args:
      name: of the target.
      apart: stems of files that are targets of their own.
      deps: as of cc_library.
      absl: components of Abseil.
      **kwargs: as of cc_library.
    """
    exclude = _NOT_OF_A_ROOM + [stem + ".*" for stem in apart]
    native.cc_library(
        name = name,
        srcs = native.glob(["*.cc"], exclude = exclude),
        hdrs = native.glob(["*.h"], exclude = exclude),
        deps = _with_absl(deps, absl),
        **kwargs
    )

def parasol_binary(name, deps = [], absl = [], **kwargs):
    """A cc_binary.

    Args:
      name: of the target.
      deps: as of cc_binary.
      absl: components of Abseil.
      **kwargs: as of cc_binary.
    """
    native.cc_binary(name = name, deps = _with_absl(deps, absl), **kwargs)

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
        deps = _with_absl(deps, absl) + ([main] if main else []),
        **kwargs
    )
