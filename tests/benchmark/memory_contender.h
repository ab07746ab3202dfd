#ifndef PARASOL_TESTS_BENCHMARK_MEMORY_CONTENDER_H_
#define PARASOL_TESTS_BENCHMARK_MEMORY_CONTENDER_H_

#include <memory>

#include "tests/benchmark/contender.h"

namespace parasol {

// The floor below all: no network. A push is a memcpy and an update, a pull
// is a memcpy.
std::unique_ptr<Contender> MakeMemoryContender();

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_MEMORY_CONTENDER_H_
