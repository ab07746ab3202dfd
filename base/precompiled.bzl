"""Headers that nearly every file includes, parsed once.

Parsing headers is two thirds of what compiling costs here. `precompiled_headers`
parses those of the standard library, Abseil, Protobuf and GoogleTest into one
file, which GCC loads in the place of their text. The macros of rules.bzl give it
to all sources, by `-include`: a source still includes what it uses, and compiles
without it (`tests/sanitize thread_safety` parses every source so). Headers of the
project are not among them: a change of one would compile everything again.

Only optimised builds have it: with `-c dbg` some sources are optimised, for which
headers parsed without don't serve. `--define=parasol_precompiled=off` compiles
without, as the sanitizers' configurations do: GCC 12 crashes on functions for
several machines (multiversion.h) with ThreadSanitizer and parsed headers.
"""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "CPP_COMPILE_ACTION_NAME")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

# The compiler looks through all that it has in memory when this has grown by some
# percent, and the parsed headers are most of it: 12 to 23 % of the time. What is
# found to be free is little: without, a source takes 10 % more memory.
_NO_COLLECTION = ["--param=ggc-min-heapsize=1048576"]

# Tests mostly wait: what optimising them costs, a third of the time, running them
# faster does not bring back. Fortified functions need optimised callers.
UNOPTIMIZED = ["-O0", "-U_FORTIFY_SOURCE"]

# The second one is chosen where both match.
_ON = "//base:precompiled_on"
_OFF = "//base:precompiled_off"

def _precompiled_headers_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    compiler = cc_common.get_tool_for_action(
        feature_configuration = features,
        action_name = CPP_COMPILE_ACTION_NAME,
    )
    header = ctx.actions.declare_file(ctx.label.name + ".h")
    ctx.actions.write(header, "".join(["#include <{}>\n".format(name) for name in ctx.attr.includes]))
    files = [header]

    # Clang checks when each parsed header was written, which a sandbox changes.
    if "clang" not in compiler:
        parsed = ctx.actions.declare_file(ctx.label.name + ".h.gch")
        variables = cc_common.create_compile_variables(
            feature_configuration = features,
            cc_toolchain = toolchain,
            source_file = header.path,
            output_file = parsed.path,
            user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + ctx.attr.copts,
            use_pic = True,
        )
        flags = cc_common.get_memory_inefficient_command_line(
            feature_configuration = features,
            action_name = CPP_COMPILE_ACTION_NAME,
            variables = variables,
        )
        ctx.actions.run(
            executable = compiler,
            arguments = ["-x", "c++-header"] + flags,
            env = cc_common.get_environment_variables(
                feature_configuration = features,
                action_name = CPP_COMPILE_ACTION_NAME,
                variables = variables,
            ),
            inputs = depset([header], transitive = [toolchain.all_files]),
            outputs = [parsed],
            mnemonic = "PrecompileHeaders",
            progress_message = "Parsing the headers of " + str(ctx.label),
        )
        files.append(parsed)
    return [
        DefaultInfo(files = depset(files)),
        CcInfo(compilation_context = cc_common.create_compilation_context(headers = depset(files))),
    ]

precompiled_headers = rule(
    implementation = _precompiled_headers_impl,
    attrs = {
        "includes": attr.string_list(mandatory = True, doc = "System headers, as `#include <...>` names them."),
        "copts": attr.string_list(doc = "Flags of the sources that are compiled behind them, as far as the headers depend on these."),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
    doc = "A file of parsed headers; `copts` and `deps` of this file's functions name it.",
)

def precompiled_copts(name, copts = []):
    """Returns the copts with which a source is compiled behind the headers `name` of //base.

    Args:
      name: of the headers.
      copts: of the headers' target; a source has them only with the headers.
    """
    return select({
        _OFF: [],
        # A file that does not fit the flags is passed over, but not in silence.
        _ON: ["-Winvalid-pch", "-Wno-error=invalid-pch", "-include", "base/{}.h".format(name)] + _NO_COLLECTION + copts,
        "//conditions:default": [],
    })

def precompiled_deps(name):
    """Returns the deps that precompiled_copts(name) needs."""
    return select({
        _OFF: [],
        _ON: ["//base:" + name],
        "//conditions:default": [],
    })
