#ifndef PARASOL_TESTS_BENCHMARK_CONTENTS_H_
#define PARASOL_TESTS_BENCHMARK_CONTENTS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "proto/job.pb.h"

namespace parasol {

// What the server of a contender holds: equal variables, numbered from 0, and
// at most one sparse table.
struct Contents {
  size_t variables = 0;
  size_t elements = 0;   // float32, of each variable
  size_t row_width = 0;  // 0: no sparse table
  // A job.Optimizer as text.
  std::string optimizer = "sgd { learning_rate: 0.01 }";

  size_t variable_bytes() const { return elements * sizeof(float); }
};

// As command-line flags, which tell a server's process what to hold.
std::vector<std::string> ToFlags(const Contents& contents);
Contents ContentsFromFlags();

// CHECKs that it can be parsed: it is a constant of the benchmark.
job::Optimizer OptimizerOf(const Contents& contents);

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_CONTENTS_H_
