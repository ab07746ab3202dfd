// Leaks that are Debian's gRPC's own: the reading end of a connection leaves a
// slice buffer behind that has grown (grpc_slice_buffer_trim_end() below
// tcp_posix's read), about 3 KB for each. Its library has no frame pointers, so
// a leak's stack ends with the allocation. Nothing of this repository allocates
// with gpr_realloc().
//
// And what the shim for Apache Arrow keeps on purpose: stores, which are never
// closed, one for each thread where several begin with one at once; and uploads
// that were left, which Google's library would make objects of.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:gpr_realloc\n"
         "leak:parasol_arrow_store\n"
         "leak:parasol_arrow_write\n";
}
