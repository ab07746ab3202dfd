#ifndef PARASOL_TESTS_BENCHMARK_PARASOL_CONTENDER_H_
#define PARASOL_TESTS_BENCHMARK_PARASOL_CONTENDER_H_

#include <memory>

#include "cluster/client/parameter_client.h"
#include "tests/benchmark/contender.h"

namespace parasol {

// A ParameterClient and a ps.
std::unique_ptr<Contender> MakeParasolContender(
    const ParameterClient::Options& options);
[[noreturn]] void ServeParasol();

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_PARASOL_CONTENDER_H_
