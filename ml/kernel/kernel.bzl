"""One operation of the compute plane on every kind of device."""

load("//base:precompiled.bzl", "precompiled_copts", "precompiled_deps")
load("//third_party/cuda:cuda_objects.bzl", "CUDA_COPTS", "cuda_objects", "if_cuda")

def kernel(name, cuda_hdrs = [], cuda_rounds_each_operation = False, copts = [], deps = [], absl = [], **kwargs):
    """A cc_library of `<name>.h`, `<name>.cc`, `<name>_cpu.cc` and `<name>_cuda.cu`.

    `<name>.cc` chooses the version for a device. The CUDA version is compiled
    where there is a CUDA toolkit.

    Args:
      name: of the operation.
      cuda_hdrs: headers of this folder that the CUDA version alone includes.
      cuda_rounds_each_operation: as of cuda_objects.
      copts: as of cc_library.
      deps: as of cc_library.
      absl: components of Abseil.
      **kwargs: as of cc_library.
    """
    cuda_objects(
        name = name + "_cuda",
        srcs = [name + "_cuda.cu"],
        hdrs = [name + ".h"] + cuda_hdrs,
        rounds_each_operation = cuda_rounds_each_operation,
        deps = [dep for dep in deps if not dep.startswith("@")],
    )
    native.cc_library(
        name = name,
        srcs = [name + ".cc", name + "_cpu.cc"] + if_cuda([":" + name + "_cuda"]),
        hdrs = [name + ".h"],
        copts = precompiled_copts("common_headers") + CUDA_COPTS + copts,
        # A shared library of its own would bring a second CUDA runtime.
        linkstatic = True,
        deps = deps + ["@system//:absl_" + component for component in absl] + precompiled_deps("common_headers"),
        **kwargs
    )
