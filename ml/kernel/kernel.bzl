"""Operations of the compute plane on every kind of device."""

load("//base:precompiled.bzl", "precompiled_copts", "precompiled_deps")
load("//third_party/cuda:cuda_objects.bzl", "CUDA_COPTS", "CUDA_RUNTIME", "cuda_objects", "if_cuda")

def kernel(name, copts = [], deps = [], absl = [], **kwargs):
    """A cc_library of `<name>.h`, `<name>.cc` and `<name>_cpu.cc`.

    `<name>.cc` chooses the version for a device. `<name>_cuda.cu` is in the
    folder's cuda_kernels.

    Args:
      name: of the operation.
      copts: as of cc_library.
      deps: as of cc_library.
      absl: components of Abseil.
      **kwargs: as of cc_library.
    """
    native.cc_library(
        name = name,
        srcs = [name + ".cc", name + "_cpu.cc"],
        hdrs = [name + ".h"],
        copts = precompiled_copts("common_headers") + CUDA_COPTS + copts,
        linkstatic = True,
        deps = deps + ["@system//:absl_" + component for component in absl] + precompiled_deps("common_headers") +
               if_cuda([":cuda_kernels"]),
        **kwargs
    )

def cuda_kernels(name, rounded = [], deps = []):
    """A cc_library of the `.cu` files of a folder, where there is a CUDA toolkit.

    Args:
      name: of the target.
      rounded: the files in which no multiplication and addition may be fused.
      deps: as of cc_library.
    """
    objects = []
    for rounds in [False, True]:
        srcs = rounded if rounds else native.glob(["*.cu"], exclude = rounded)
        if srcs:
            objects.append(":" + name + ("_rounded" if rounds else "_fused"))
            cuda_objects(
                name = objects[-1][1:],
                srcs = srcs,
                hdrs = native.glob(["*.h"]),
                rounds_each_operation = rounds,
                deps = deps,
            )
    native.cc_library(
        name = name,
        srcs = if_cuda(objects),
        # A shared library of its own would bring a second CUDA runtime.
        linkstatic = True,
        deps = deps + CUDA_RUNTIME,
    )
