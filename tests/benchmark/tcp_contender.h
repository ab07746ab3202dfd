#ifndef PARASOL_TESTS_BENCHMARK_TCP_CONTENDER_H_
#define PARASOL_TESTS_BENCHMARK_TCP_CONTENDER_H_

#include <memory>

#include "tests/benchmark/contender.h"

namespace parasol {

// The floor of the network: tensors over two TCP connections without any
// protocol but a fixed header, each half of a tensor on its own connection and
// thread, applied as it arrives from a buffer that stays in the cache.
std::unique_ptr<Contender> MakeTcpContender();
[[noreturn]] void ServeTcp();

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_TCP_CONTENDER_H_
