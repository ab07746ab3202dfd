"""What programs with a user's own parts are built from outside of this tree."""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "CPP_COMPILE_ACTION_NAME", "CPP_LINK_STATIC_LIBRARY_ACTION_NAME")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _inputs(dep):
    return dep[CcInfo].linking_context.linker_inputs.to_list()

def _objects_of(library):
    objects = library.pic_objects or library.objects
    if not objects:
        fail("a library without objects: {}".format(library))
    return objects

def _objects(inputs):
    """Returns the object files of linker inputs, each once."""
    seen = {}
    for linker_input in inputs:
        for library in linker_input.libraries:
            for file in _objects_of(library):
                seen[file] = True
    return seen

def _flags(inputs):
    """Returns the linker's flags. Of those given twice the last one counts: a static library comes before those it uses."""
    last = {}
    flags = [flag for linker_input in inputs for flag in linker_input.user_link_flags]
    for flag in reversed(flags):
        last[flag] = True
    return reversed(last.keys())

def _is_of_main(linker_input, main):
    return (linker_input.owner == main.label or
            any([library.alwayslink for library in linker_input.libraries]))

def _headers(ctx, deps):
    """Returns the headers of this tree that what depends on `deps` may include."""

    # What is parsed once (base/precompiled.bzl) is no header to include.
    common = {}
    for dep in ctx.attr._common_headers:
        for file in dep[DefaultInfo].files.to_list():
            common[file] = True
    files = {}
    for dep in deps:
        for file in dep[CcInfo].compilation_context.headers.to_list():
            if file.extension == "h" and not file.owner.workspace_name and file not in common:
                files[file] = True
    return files.keys()

def _public_headers(library):
    return [file for file in library[CcInfo].compilation_context.direct_public_headers if file.extension == "h"]

def _header_lines(kind, files):
    return ["{} {} {}".format(kind, file.path, file.short_path) for file in files]

def _tool(features, action):
    return cc_common.get_tool_for_action(feature_configuration = features, action_name = action)

def _development_tree_impl(ctx):
    headers = _headers(ctx, [ctx.attr.parts, ctx.attr.testing])
    of_libraries = _headers(ctx, ctx.attr.libraries.keys())
    lines = _header_lines("header", headers) + _header_lines("possible", of_libraries)
    for library in ctx.attr.libraries:
        lines += _header_lines("public", _public_headers(library))
    objects = _objects(_inputs(ctx.attr.parts))
    of_mains = {}
    for main, name in ctx.attr.mains.items() + ctx.attr.libraries.items():
        inputs = _inputs(main)
        whole = _objects([i for i in inputs if _is_of_main(i, main)])
        of_mains.update(whole)
        objects.update(_objects([i for i in inputs if not _is_of_main(i, main)]))
        lines += ["main {} {}".format(name, file.path) for file in whole]
        lines.append("flags {} {}".format(name, " ".join(_flags(inputs))))
    lines.append("cflags - " + " ".join(ctx.attr.copts))
    for_tests = _inputs(ctx.attr.testing)
    of_tests = [file for file in _objects(for_tests) if file not in objects]
    lines.append("flags testing " + " ".join(_flags(for_tests)))
    lines += ["testing - " + file.path for file in of_tests]
    lines += ["library - " + file.path for file in objects]

    content = ctx.actions.declare_file(ctx.label.name + ".content")
    ctx.actions.write(content, "\n".join(lines) + "\n")
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    tree = ctx.actions.declare_directory(ctx.label.name)
    ctx.actions.run(
        executable = ctx.executable._make_tree,
        arguments = [
            tree.path,
            content.path,
            ctx.file.version.path,
            ctx.file.config.path,
            _tool(features, CPP_COMPILE_ACTION_NAME),
            _tool(features, CPP_LINK_STATIC_LIBRARY_ACTION_NAME),
        ],
        inputs = depset(
            [content, ctx.file.version, ctx.file.config] + headers + of_libraries +
            objects.keys() + of_mains.keys() + of_tests,
            transitive = [toolchain.all_files],
        ),
        outputs = [tree],
        use_default_shell_env = True,
        mnemonic = "DevelopmentTree",
        progress_message = "Collecting headers and libraries of " + str(ctx.label),
    )
    return [DefaultInfo(files = depset([tree]), runfiles = ctx.runfiles([tree]))]

development_tree = rule(
    implementation = _development_tree_impl,
    attrs = {
        "parts": attr.label(mandatory = True, providers = [CcInfo], doc = "What parts may include."),
        "testing": attr.label(mandatory = True, providers = [CcInfo], doc = "What tests of parts may include."),
        "mains": attr.label_keyed_string_dict(mandatory = True, providers = [CcInfo], doc = "Libraries with a main(), and what each is called."),
        "libraries": attr.label_keyed_string_dict(providers = [CcInfo], doc = "Libraries for programs with a main() of their own, and what each is called."),
        "copts": attr.string_list(doc = "What the user's compiler is told."),
        "version": attr.label(mandatory = True, allow_single_file = True, doc = "The source with kVersion."),
        "config": attr.label(mandatory = True, allow_single_file = True, doc = "What CMake's find_package() reads."),
        "_common_headers": attr.label_list(default = ["//base:common_headers", "//base:common_test_headers"]),
        "_make_tree": attr.label(default = ":make_tree", executable = True, cfg = "host"),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
    doc = """A directory to be copied below any prefix: include/parasol, lib/libparasol*.a, and
what pkg-config and CMake read. The archives have the objects of which the programs in this tree
are linked, and find each other by their own places.""",
)
