#include "tests/benchmark/workloads.h"

namespace parasol {

const std::vector<Workload>& AllWorkloads() {
  static const auto& workloads = *new std::vector<Workload>{
      {"push", RunPush},          {"pull", RunPull},
      {"push+pull", RunPushPull}, {"small", RunSmall},
      {"steps", RunSteps},        {"adam", RunAdam},
      {"workers", RunWorkers},    {"encodings", RunEncodings},
      {"sparse", RunSparse},      {"growth", RunGrowth},
      {"journal", RunJournal},    {"checkpoint", RunCheckpoint}};
  return workloads;
}

}  // namespace parasol
