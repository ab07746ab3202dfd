#ifndef PARASOL_TESTS_BENCHMARK_PLAIN_CONTENDER_H_
#define PARASOL_TESTS_BENCHMARK_PLAIN_CONTENDER_H_

#include "tests/benchmark/contender.h"
#include "tests/benchmark/contents.h"

namespace parasol {

// Makes a contender of plain gRPC and protobuf: one unary call for each
// exchange, several in flight, tensors in `bytes` fields, default settings
// except for the limit on a message's size. No sparse table.
Contender MakePlainContender(const Contents& contents);
[[noreturn]] void ServePlain(const Contents& contents);

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_PLAIN_CONTENDER_H_
