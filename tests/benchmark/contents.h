#ifndef PARASOL_TESTS_BENCHMARK_CONTENTS_H_
#define PARASOL_TESTS_BENCHMARK_CONTENTS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "proto/job.pb.h"

namespace parasol {

// The contents of a contender's server: equal variables, numbered from 0, and
// at most one sparse table.
struct Contents {
  size_t variables = 0;
  size_t elements = 0;   // float32 elements of each variable
  size_t row_width = 0;  // 0: no sparse table
  // The optimizer, a job.Optimizer in text format.
  std::string optimizer = "sgd { learning_rate: 0.01 }";

  size_t variable_bytes() const { return elements * sizeof(float); }
};

// Converts `contents` to command-line flags for a server's process.
std::vector<std::string> ToFlags(const Contents& contents);
Contents ContentsFromFlags();

// Parses the optimizer of `contents`; CHECKs that the text can be parsed, as it
// is a constant of the benchmark.
job::Optimizer OptimizerOf(const Contents& contents);

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_CONTENTS_H_
