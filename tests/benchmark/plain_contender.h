#ifndef PARASOL_TESTS_BENCHMARK_PLAIN_CONTENDER_H_
#define PARASOL_TESTS_BENCHMARK_PLAIN_CONTENDER_H_

#include <memory>

#include "tests/benchmark/contender.h"

namespace parasol {

// gRPC and protobuf as they come: one unary call for each exchange, tensors in
// `bytes` fields, default settings but for the limit on a message's size.
std::unique_ptr<Contender> MakePlainContender();
[[noreturn]] void ServePlain();

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_PLAIN_CONTENDER_H_
