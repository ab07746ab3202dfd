#include "tests/benchmark/workloads.h"

namespace parasol {

const std::vector<Workload>& AllWorkloads() {
  static const auto& workloads = *new std::vector<Workload>{
      {"dense", RunDense},         {"small", RunSmall},
      {"steps", RunSteps},         {"sparse", RunSparse},
      {"adam", RunAdam},           {"workers", RunWorkers},
      {"encodings", RunEncodings}, {"growth", RunGrowth}};
  return workloads;
}

}  // namespace parasol
