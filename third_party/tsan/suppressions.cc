// What ThreadSanitizer is told to leave alone: what Debian's gRPC, OpenSSL,
// Protobuf, oneDNN, Abseil, prometheus-cpp, CivetWeb and librdkafka, and
// Apache Arrow, do themselves. Of these libraries it sees malloc, memcpy and
// the like but not what orders them. Compiled in, so that a binary that is
// started by hand, or by a test, has them too. Each line matches one library.
// CivetWeb's threads call localtime() for their log at once.
//
// Not ignore_noninstrumented_modules=1: with GCC's runtime that silences memcpy
// and free() in this repository's code as well. Never name that code here.
extern "C" const char* __tsan_default_suppressions() {
  return "called_from_lib:libcivetweb.so\n"
         "called_from_lib:libgpr.so\n"
         "called_from_lib:libgrpc.so\n"
         "called_from_lib:libgrpc++.so\n"
         "called_from_lib:libcrypto.so\n"
         "called_from_lib:libdnnl.so\n"
         "called_from_lib:libprotobuf.so\n"
         "called_from_lib:libabsl_cord.so\n"
         "called_from_lib:libabsl_cord_internal.so\n"
         "called_from_lib:libabsl_graphcycles_internal.so\n"
         "called_from_lib:libabsl_random_internal_pool_urbg.so\n"
         "called_from_lib:libabsl_status.so\n"
         "called_from_lib:libabsl_str_format_internal.so\n"
         "called_from_lib:libabsl_strings.so\n"
         "called_from_lib:libabsl_strings_internal.so\n"
         "called_from_lib:libabsl_synchronization.so\n"
         "called_from_lib:libssl.so\n"
         // Allocates through std::string's functions, of which the dynamic
         // linker picks this repository's, instrumented, copy.
         "race:grpc_error_get_str\n"
         // Two libraries. They lock and free in a thread of CivetWeb what they
         // have made in another one. Nothing of this repository's that they
         // call is looked at.
         "race:libprometheus-cpp\n"
         // Its mutexes are seen (c11_threads.cc), its atomics are not.
         "race:librdkafka.so\n"
         // Its futures are counted by atomics. What its threads call of this
         // repository's (sources of uploads) is not looked at either.
         "race:libarrow.so\n"
         "race:libarrow_s3.so\n";
}
