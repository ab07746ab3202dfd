#include "tests/benchmark/workloads.h"

#include <cstdint>

#include "tests/benchmark/exchange_lane.h"

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

void TakePushes(const std::string& workload, const Settings& settings,
                const ComparePushes& compare, const TakeComparison& take) {
  const Contents dense = {.variables = 32, .elements = (1 << 20) / 4};
  take({.workload = workload + ", 1 MiB",
        .unit = {"GB/s", 1e-9},
        .measurements = compare(settings, dense, dense.variable_bytes(),
                                [&](Session& session, const Share& share) {
                                  return MakeVariableLane(
                                      session, dense, Direction::kPush, share);
                                })});
  const Contents rows = {.row_width = 16};
  take({.workload = workload + ", rows",
        .unit = {"M rows/s", 1e-6},
        .measurements =
            compare(settings, rows,
                    kRowsPerRequest *
                        (sizeof(uint64_t) + rows.row_width * sizeof(float)),
                    [&](Session& session, const Share& share) {
                      return MakeRowLane(session, rows, Direction::kPush, share,
                                         settings.rows);
                    })});
}

}  // namespace parasol
