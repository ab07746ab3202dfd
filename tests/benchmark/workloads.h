#ifndef PARASOL_TESTS_BENCHMARK_WORKLOADS_H_
#define PARASOL_TESTS_BENCHMARK_WORKLOADS_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "parameters/client/parameter_client.h"
#include "tests/benchmark/contents.h"
#include "tests/benchmark/lineup.h"
#include "tests/benchmark/report.h"

namespace parasol {

using TakeComparison = std::function<void(EntrantComparison)>;

// The contender whose tensors lie in memory that worker and ps share.
inline constexpr char kOneMachine[] = "Parasol, one machine";

// Measures pushes of variables of 1 MiB, then of rows of 16 float32, with the
// contenders of `compare`.
using ComparePushes = std::function<std::vector<Measurement>(
    const Settings& settings, const Contents& contents, size_t bytes,
    const MakeLane& make_lane)>;
void TakePushes(const std::string& workload, const Settings& settings,
                const ComparePushes& compare, const TakeComparison& take);

// A workload that the command line can name. Each one starts the servers that
// it needs, gives its comparisons to `take` as they are done, and ends its
// servers.
struct Workload {
  std::string name;
  void (*run)(const Settings& settings, const TakeComparison& take);
};
const std::vector<Workload>& AllWorkloads();

// Measure variables of 64 KiB, 1 MiB and 16 MiB; SGD.
void RunPush(const Settings& settings, const TakeComparison& take);
void RunPull(const Settings& settings, const TakeComparison& take);
void RunPushPull(const Settings& settings, const TakeComparison& take);
// Measures variables of 4 KiB, many in flight.
void RunSmall(const Settings& settings, const TakeComparison& take);
// Measures 1000 variables of 4 KiB in one step, against an exchange per
// variable.
void RunSteps(const Settings& settings, const TakeComparison& take);
// Measures pushes of 16 MiB with encodings of fewer bytes.
void RunEncodings(const Settings& settings, const TakeComparison& take);
// Measures rows of a sparse table, 16 and 64 wide, with SGD and Adagrad.
void RunSparse(const Settings& settings, const TakeComparison& take);
// Measures the longest request while a sparse table grows.
void RunGrowth(const Settings& settings, const TakeComparison& take);
// Measures pushes of 1 MiB, and of rows, to a ps without and with a journal.
void RunJournal(const Settings& settings, const TakeComparison& take);
// Measures the same pushes while the ps writes one checkpoint after the other.
void RunCheckpoint(const Settings& settings, const TakeComparison& take);
// Measures an update by Adam, without any network.
void RunAdam(const Settings& settings, const TakeComparison& take);
// Measures 1, 2 and 4 worker processes on one server.
void RunWorkers(const Settings& settings, const TakeComparison& take);

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_WORKLOADS_H_
