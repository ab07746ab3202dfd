"""Finds the CUDA toolkit and makes the repository `@cuda` from it."""

def _cuda_configure_impl(ctx):
    home = ctx.os.environ.get("CUDA_HOME", "/usr/local/cuda")
    found = ctx.path(home + "/bin/nvcc").exists
    ctx.file("defs.bzl", "HAVE_CUDA = {}\nCUDA_HOME = {}\n".format(found, repr(home)))
    ctx.file("BUILD", "")

cuda_configure = repository_rule(
    implementation = _cuda_configure_impl,
    environ = ["CUDA_HOME"],
    local = True,
)
