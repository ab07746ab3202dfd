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

# For the `defines` of what chooses between the CPU and a CUDA device.
CUDA_DEFINES = ["PARASOL_HAVE_CUDA=1"] if HAVE_CUDA else []

# For the `copts` of what calls cuDNN.
CUDNN_COPTS = ["-DPARASOL_HAVE_CUDNN=1"] if HAVE_CUDNN else []

def if_cuda(values):
    """`values` where there is a CUDA toolkit, otherwise nothing."""
    return values if HAVE_CUDA else []

def _cuda_objects_impl(ctx):
    context = cc_common.merge_cc_infos(
        cc_infos = [dep[CcInfo] for dep in ctx.attr.deps],
    ).compilation_context
    objects = []
    for source in ctx.files.srcs:
        compiled = ctx.actions.declare_file(source.basename[:-len(".cu")] + ".pic.o")
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
            progress_message = "Compiling " + source.short_path,
        )
        objects.append(compiled)
    return [DefaultInfo(files = depset(objects))]

_cuda_objects = rule(
    implementation = _cuda_objects_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cu"]),
        "copts": attr.string_list(),
        "hdrs": attr.label_list(allow_files = [".h"]),
        "deps": attr.label_list(providers = [CcInfo]),
    },
)

def cuda_objects(name, **kwargs):
    """Object files for the `srcs` of a cc_library: `if_cuda([":<name>"])`.

    The library needs `@cuda//:cudart` and `linkstatic`: a shared library of its
    own would bring a second CUDA runtime, which knows none of the first's
    kernels.

    Args:
      name: of the target; there is none without CUDA.
      **kwargs: srcs (`.cu`), hdrs (of the same library), deps (cc_library), copts.
    """
    if HAVE_CUDA:
        _cuda_objects(name = name, **kwargs)
