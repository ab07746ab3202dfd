#ifndef PARASOL_TESTS_BENCHMARK_MEMORY_CONTENDER_H_
#define PARASOL_TESTS_BENCHMARK_MEMORY_CONTENDER_H_

#include "tests/benchmark/contender.h"
#include "tests/benchmark/contents.h"

namespace parasol {

// Makes the contender that bounds all others: no network, one thread. A push is
// a memcpy and an update, a pull is a memcpy. No sparse table.
Contender MakeMemoryContender(const Contents& contents);

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_MEMORY_CONTENDER_H_
