"""Compiles `.cu` files with nvcc, where there is a CUDA toolkit."""

load("@cuda//:defs.bzl", "CUDA_HOME", "HAVE_CUDA", "HAVE_CUDNN")

# Turing, Ampere and Hopper as machine code; later ones compile the last one's
# PTX when they first see it.
_ARCHITECTURES = [
    "-gencode=arch=compute_75,code=sm_75",
    "-gencode=arch=compute_80,code=sm_80",
    "-gencode=arch=compute_90,code=[sm_90,compute_90]",
]

_HOST_COMPILER = [
    "-fPIC",
    "-fno-omit-frame-pointer",
    "-Wall",
    "-Wextra",
    "-Wno-unused-parameter",
    # As in .bazelrc: GCC 12's false positives inside the standard library.
    "-Wno-maybe-uninitialized",
]

_ON_HOST = "//third_party/cuda_on_host:enabled"

# Compiles a .cu file as C++, with third_party/cuda_on_host as its toolkit. Each
# access of memory calls that, which checks what the threads of a grid do.
ON_HOST_COPTS = [
    "-x",
    "c++",
    "-DPARASOL_CUDA_ON_HOST=1",
] + select({
    # ThreadSanitizer's stack of calls is that of one of a grid's threads.
    "//third_party/cuda_on_host:sanitized": [
        "--param=tsan-instrument-func-entry-exit=0",
    ],
    "//conditions:default": [
        "-fsanitize=thread",
        "-U__SANITIZE_THREAD__",
        "--param=tsan-instrument-func-entry-exit=0",
    ],
})

# For the `copts` of what chooses between the CPU and a CUDA device. No `defines`:
# nothing else is to be compiled differently.
CUDA_COPTS = ["-DPARASOL_HAVE_CUDA=1"] if HAVE_CUDA else select({
    _ON_HOST: ["-DPARASOL_HAVE_CUDA=1"],
    "//conditions:default": ["-DPARASOL_HAVE_CUDA=0"],
})

# For the `copts` of what calls cuDNN.
CUDNN_COPTS = select({
    _ON_HOST: ["-DPARASOL_HAVE_CUDNN=1"],
    "//conditions:default": ["-DPARASOL_HAVE_CUDNN=1"] if HAVE_CUDNN else [],
})

# CUDA's runtime, for the `deps` of what has a CUDA version.
# @cuda in both cases: each external repository is part of the include paths of
# all that depends on it.
CUDA_RUNTIME = select({
    _ON_HOST: ["@cuda//:nothing", "//third_party/cuda_on_host:runtime"],
    "//conditions:default": ["@cuda//:cudart" if HAVE_CUDA else "@cuda//:nothing"],
})

# The `target_compatible_with` of tests that need the stand-in.
ONLY_ON_HOST = select({
    _ON_HOST: [],
    "//conditions:default": ["//third_party/cuda_on_host:incompatible"],
})

def if_cuda(values):
    """`values` where there is a CUDA toolkit, also the stand-in; otherwise nothing."""
    return values if HAVE_CUDA else select({
        _ON_HOST: values,
        "//conditions:default": [],
    })

# One source of all: four compilers of nvcc parse the headers of each source.
def _joined_cuda_source_impl(ctx):
    source = ctx.actions.declare_file(ctx.label.name + ".cu")
    ctx.actions.write(source, "".join(["#include \"%s\"\n" % f.path for f in ctx.files.srcs]))
    return [DefaultInfo(files = depset([source]))]

_joined_cuda_source = rule(
    implementation = _joined_cuda_source_impl,
    attrs = {"srcs": attr.label_list(allow_files = [".cu"])},
)

def _cuda_objects_impl(ctx):
    context = cc_common.merge_cc_infos(
        cc_infos = [dep[CcInfo] for dep in ctx.attr.deps],
    ).compilation_context
    source = ctx.file.source
    compiled = ctx.actions.declare_file(ctx.label.name + ".pic.o")
    arguments = ctx.actions.args()
    arguments.add_all(["-std=c++20", "-O3", "-Werror=all-warnings"])
    arguments.add_all(_ARCHITECTURES)
    arguments.add_all(ctx.attr.copts)
    arguments.add_all(_HOST_COMPILER, format_each = "--compiler-options=%s")
    arguments.add_all(context.defines, format_each = "-D%s")
    arguments.add_all(context.quote_includes, format_each = "-I%s")
    arguments.add_all(context.includes, format_each = "-I%s")
    arguments.add_all(context.system_includes, before_each = "-isystem")
    arguments.add("-c", source)
    arguments.add("-o", compiled)
    ctx.actions.run(
        executable = CUDA_HOME + "/bin/nvcc",
        arguments = [arguments],
        inputs = depset([source] + ctx.files.hdrs, transitive = [context.headers]),
        outputs = [compiled],
        use_default_shell_env = True,
        mnemonic = "CudaCompile",
        progress_message = "Compiling {}.cu".format(ctx.label.name),
    )
    return [DefaultInfo(files = depset([compiled]))]

_cuda_objects = rule(
    implementation = _cuda_objects_impl,
    attrs = {
        "source": attr.label(mandatory = True, allow_single_file = [".cu"]),
        "copts": attr.string_list(),
        "hdrs": attr.label_list(allow_files = [".h", ".cu"]),
        "deps": attr.label_list(providers = [CcInfo]),
    },
)

def _objects_on_host(name, source, hdrs, deps, copts):
    """Object files of a source that is compiled as C++, in the filegroup `name`."""
    native.cc_library(
        name = name + "_library",
        srcs = [source],
        textual_hdrs = hdrs,
        copts = ON_HOST_COPTS + copts,
        linkstatic = True,
        tags = ["manual"],
        deps = deps + ["//third_party/cuda_on_host:toolkit"],
    )
    native.filegroup(
        name = name,
        srcs = [":" + name + "_library"],
        output_group = "compilation_outputs",
        tags = ["manual"],
    )

def cuda_objects(name, srcs, hdrs = [], deps = [], copts = [], rounds_each_operation = False):
    """Object files for the `srcs` of a cc_library: `if_cuda([":<name>"])`.

    All `srcs` are compiled as one: their names in unnamed namespaces must differ.

    The library needs CUDA_RUNTIME and `linkstatic`: a shared library of its
    own would bring a second CUDA runtime, which knows none of the first's
    kernels.

    Args:
      name: of the target.
      srcs: `.cu` files.
      hdrs: of the same library.
      deps: of the same library, cc_library.
      copts: for the compiler.
      rounds_each_operation: True if no multiplication and addition may be fused.
    """
    host_copts = ["-ffp-contract=off"] if rounds_each_operation else []
    nvcc_copts = ["-fmad=false"] if rounds_each_operation else []
    source = name + "_joined"
    _joined_cuda_source(name = source, srcs = srcs, tags = ["manual"])
    _objects_on_host(name + "_on_host", source, srcs + hdrs, deps, copts + host_copts)
    if HAVE_CUDA:
        _cuda_objects(
            name = name + "_nvcc",
            source = source,
            hdrs = srcs + hdrs,
            copts = nvcc_copts + copts,
            tags = ["manual"],
            deps = deps,
        )
    native.alias(
        name = name,
        actual = select({
            _ON_HOST: ":" + name + "_on_host",
            "//conditions:default": ":" + name + ("_nvcc" if HAVE_CUDA else "_on_host"),
        }),
        tags = ["manual"],
    )
