"""Several sources compiled as one.

Most of what compiling a source costs here are headers, and templates that each
source instantiates again: eight sources in one cost less than half of what they cost
one by one. The joined source has the text of each, with `#line`, so messages name the
real files. So the names in the unnamed namespaces of a room must differ; those of
a test's source are in a namespace of its own.

`--define=parasol_joined=off` (`--config=apart`) compiles each source alone: a
change then compiles less, and it shows that each source includes what it uses.
"""

# How many sources are joined at most. The largest take the compiler 13 s and 1.6 GB;
# with eight at most the tests of three folders took 1.35 to 1.5 times as long.
_AT_MOST = 24

_NOT_JOINED = "//base:not_joined"

def _joined_source_impl(ctx):
    source = ctx.actions.declare_file(ctx.attr.out)
    edit = "s/^namespace {$/namespace ${stem}_ {/" if ctx.attr.own_namespaces else ""
    ctx.actions.run_shell(
        command = """out=$1; shift
            for source; do
              stem=${source##*/}; stem=${stem%.cc}
              echo "#line 1 \\"$source\\""
              sed "EDIT" "$source"
            done >"$out"
        """.replace("EDIT", edit),
        arguments = [source.path] + [f.path for f in ctx.files.srcs],
        inputs = ctx.files.srcs,
        outputs = [source],
        mnemonic = "JoinSources",
        progress_message = "Joining sources of " + str(ctx.label),
    )
    return [DefaultInfo(files = depset([source]))]

_joined_source = rule(
    implementation = _joined_source_impl,
    attrs = {
        "srcs": attr.label_list(mandatory = True, allow_files = [".cc"]),
        "out": attr.string(mandatory = True, doc = "Name of the joined source."),
        "own_namespaces": attr.bool(doc = "Whether each unnamed namespace gets the name of its source."),
    },
    doc = "One source with the text of others.",
)

def joined_sources(name, srcs, suffix = ".cc", own_namespaces = False, testonly = False):
    """Returns the `srcs` of a target that compiles sources joined, or alone where this is asked for.

    Args:
      name: of the target.
      srcs: the sources.
      suffix: of the joined sources' names.
      own_namespaces: whether sources may have the same names in unnamed namespaces.
      testonly: of the target.
    """
    if len(srcs) < 2:
        return srcs
    count = (len(srcs) + _AT_MOST - 1) // _AT_MOST
    each = (len(srcs) + count - 1) // count
    joined = []
    for i in range(count):
        part = "{}_joined_{}".format(name, i + 1)
        _joined_source(
            name = part,
            srcs = srcs[i * each:(i + 1) * each],
            out = part + suffix,
            own_namespaces = own_namespaces,
            testonly = testonly,
            visibility = ["//visibility:private"],
        )
        joined.append(":" + part)
    return select({
        _NOT_JOINED: srcs,
        "//conditions:default": joined,
    })
