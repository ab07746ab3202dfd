"""Turns Debian's development packages into `@system//:<name>` targets.

Headers live in the compiler's default path, so a target is its linker flags as
pkg-config reports them. A package that is missing stops the build with the
name to give to apt-get.
"""

# Target name -> (pkg-config module, Debian package).
_PKG_CONFIG = {
    "benchmark": ("benchmark", "libbenchmark-dev"),
    "curl": ("libcurl", "libcurl4-openssl-dev"),
    "gmock": ("gmock", "libgmock-dev"),
    "gtest": ("gtest", "libgtest-dev"),
    "gtest_main": ("gmock_main", "libgmock-dev"),
    "grpc++": ("grpc++", "libgrpc++-dev"),
    "highway": ("libhwy", "libhwy-dev"),
    "nlohmann_json": ("nlohmann_json", "nlohmann-json3-dev"),
    "openssl": ("openssl", "libssl-dev"),
    "prometheus_core": ("prometheus-cpp-core", "prometheus-cpp-dev"),
    "protobuf": ("protobuf", "libprotobuf-dev"),
    "rdkafka": ("rdkafka", "librdkafka-dev"),
    "re2": ("re2", "libre2-dev"),
    "rocksdb": ("rocksdb", "librocksdb-dev"),
    "yaml-cpp": ("yaml-cpp", "libyaml-cpp-dev"),
    "zlib": ("zlib", "zlib1g-dev"),
    "zstd": ("libzstd", "libzstd-dev"),
}

# Debian's oneDNN and others have no pkg-config module.
_PLAIN = {
    "civetweb": ("/usr/include/civetweb.h", "-lcivetweb", "libcivetweb-dev"),
    "dnnl": ("/usr/include/oneapi/dnnl/dnnl.hpp", "-ldnnl", "libdnnl-dev"),
    "grpc++_reflection": ("/usr/include/grpcpp/ext/proto_server_reflection_plugin.h", "-lgrpc++_reflection", "libgrpc++-dev"),
    "snappy": ("/usr/include/snappy.h", "-lsnappy", "libsnappy-dev"),
}

# Abseil's components that the project uses, as `@system//:absl_<component>`.
_ABSL = [
    "base",
    "bind_front",
    "btree",
    "cleanup",
    "cord",
    "core_headers",
    "fixed_array",
    "flags",
    "flags_parse",
    "flags_reflection",
    "flags_usage",
    "flat_hash_map",
    "flat_hash_set",
    "function_ref",
    "hash",
    "inlined_vector",
    "memory",
    "numeric",
    "random_random",
    "span",
    "status",
    "statusor",
    "str_format",
    "strings",
    "symbolize",
    "synchronization",
    "time",
    "variant",
]

def _pkg_config(ctx, module, package):
    found = ctx.execute(["pkg-config", "--libs", module])
    if found.return_code != 0:
        fail("{} is not installed: run deploy/setup, or apt-get install {} pkg-config".format(module, package))
    return found.stdout.strip().split(" ")

def _cc_library(name, linkopts):
    # Library paths and order come from pkg-config; repeated flags only slow the linker down.
    seen = {}
    for opt in linkopts:
        if opt:
            seen[opt] = True
    return 'cc_library(name = "{}", linkopts = {})\n'.format(name, repr(seen.keys()))

def _system_libraries_impl(ctx):
    build = 'package(default_visibility = ["//visibility:public"])\n'
    for name, (module, package) in _PKG_CONFIG.items():
        build += _cc_library(name, _pkg_config(ctx, module, package))
    for component in _ABSL:
        module = "absl_" + component
        build += _cc_library(module, _pkg_config(ctx, module, "libabsl-dev"))
    for name, (header, linkopt, package) in _PLAIN.items():
        if not ctx.path(header).exists:
            fail("{} is missing: run deploy/setup, or apt-get install {}".format(header, package))
        build += _cc_library(name, [linkopt])
    build += 'exports_files(["protoc", "grpc_cpp_plugin"])\n'
    for tool, package in [("protoc", "protobuf-compiler"), ("grpc_cpp_plugin", "protobuf-compiler-grpc")]:
        path = ctx.which(tool)
        if not path:
            fail("{} is not installed: run deploy/setup, or apt-get install {}".format(tool, package))
        ctx.symlink(path, tool)
    ctx.file("BUILD", build)

system_libraries = repository_rule(
    implementation = _system_libraries_impl,
    environ = ["PKG_CONFIG_PATH"],
    local = True,
)
