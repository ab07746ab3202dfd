"""Finds the CUDA toolkit and makes the repository `@cuda` from it.

`@cuda//:defs.bzl` says whether there is one (HAVE_CUDA) and where (CUDA_HOME),
and whether cuDNN's headers are there (HAVE_CUDNN); `@cuda//:cudart` is its
runtime. `CUDA_HOME=/nowhere bazel build …` builds
without CUDA on a machine that has it.

The runtime is linked statically and cuBLAS and cuDNN are opened when they are
first needed: a binary starts, and computes on the CPU, on a machine that has neither the
toolkit's libraries nor the driver. Where cuBLAS was at build time is kept as the
binary's run path.
"""

# Of the toolkit, and of Debian's packages.
_CUDNN_HEADERS = [
    "{}/include/cudnn.h",
    "/usr/include/cudnn.h",
    "/usr/include/x86_64-linux-gnu/cudnn.h",
]

_BUILD = """
cc_library(
    name = "nothing",
    visibility = ["//visibility:public"],
)

cc_library(
    name = "cudart",
    linkopts = {linkopts},
    visibility = ["//visibility:public"],
)
"""

def _cuda_configure_impl(ctx):
    home = ctx.os.environ.get("CUDA_HOME", "/usr/local/cuda")
    found = ctx.path(home + "/bin/nvcc").exists and ctx.path(home + "/lib64/libcudart_static.a").exists
    linkopts = [
        "-L{}/lib64".format(home),
        "-Wl,-rpath,{}/lib64".format(home),
        "-lcudart_static",
        "-ldl",
        "-lrt",
        "-lpthread",
    ]
    cudnn = found and any([ctx.path(header.format(home)).exists for header in _CUDNN_HEADERS])
    ctx.file("defs.bzl", "HAVE_CUDA = {}\nHAVE_CUDNN = {}\nCUDA_HOME = {}\n".format(
        found,
        cudnn,
        repr(home),
    ))
    ctx.file("BUILD", _BUILD.format(linkopts = repr(linkopts if found else [])))

cuda_configure = repository_rule(
    implementation = _cuda_configure_impl,
    environ = ["CUDA_HOME"],
    local = True,
)
