// Leaks that are Debian's gRPC's own: the reading end of a connection leaves a
// slice buffer behind that has grown (grpc_slice_buffer_trim_end() below
// tcp_posix's read), about 3 KB for each. Its library has no frame pointers, so
// a leak's stack ends with the allocation. Nothing of this repository allocates
// with gpr_realloc().
extern "C" const char* __lsan_default_suppressions() {
  return "leak:gpr_realloc\n";
}
