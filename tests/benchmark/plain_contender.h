#ifndef PARASOL_TESTS_BENCHMARK_PLAIN_CONTENDER_H_
#define PARASOL_TESTS_BENCHMARK_PLAIN_CONTENDER_H_

#include "tests/benchmark/contender.h"
#include "tests/benchmark/contents.h"

namespace parasol {

// gRPC and protobuf as they come: one unary call for each exchange, several in
// flight, tensors in `bytes` fields, default settings but for the limit on a
// message's size. No sparse table.
Contender MakePlainContender(const Contents& contents);
[[noreturn]] void ServePlain(const Contents& contents);

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_PLAIN_CONTENDER_H_
