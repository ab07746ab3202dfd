"""C++ protobuf and gRPC code from `.proto` files with Debian's protoc."""

def cc_proto(name, src, deps = [], grpc = False, visibility = None):
    """Generates and compiles one `.proto` file.

    Args:
      name: the cc_library; include "proto/<stem>.pb.h" (and ".grpc.pb.h").
      src: the `.proto` file, in this package.
      deps: other cc_proto targets of this package that it imports.
      grpc: also generate the service stubs.
      visibility: as for any rule.
    """
    stem = src[:-len(".proto")]
    outs = [stem + ".pb.h", stem + ".pb.cc"]
    command = "$(location @system//:protoc) -I. --cpp_out=$(GENDIR)"
    tools = ["@system//:protoc"]
    if grpc:
        outs += [stem + ".grpc.pb.h", stem + ".grpc.pb.cc"]
        command += " --grpc_out=$(GENDIR) --plugin=protoc-gen-grpc=$(location @system//:grpc_cpp_plugin)"
        tools.append("@system//:grpc_cpp_plugin")
    native.genrule(
        name = name + "_generated",
        srcs = [src] + [dep[1:] + "_source" for dep in deps],
        outs = outs,
        cmd = command + " $(location {})".format(src),
        tools = tools,
    )
    native.filegroup(
        name = name + "_source",
        srcs = [src] + [dep[1:] + "_source" for dep in deps],
    )
    native.cc_library(
        name = name,
        srcs = [out for out in outs if out.endswith(".cc")],
        hdrs = [out for out in outs if out.endswith(".h")],
        copts = ["-w"],
        visibility = visibility,
        deps = deps + ["@system//:protobuf"] + (["@system//:grpc++"] if grpc else []),
    )
