#ifndef PARASOL_TESTS_BENCHMARK_WORKER_PROCESS_H_
#define PARASOL_TESTS_BENCHMARK_WORKER_PROCESS_H_

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "base/subprocess.h"
#include "tests/benchmark/lineup.h"

namespace parasol {

// What a worker's process is told: to push and pull the variables that a
// server holds.
struct WorkOrder {
  std::string kind;  // "parasol", "tcp"
  int port = 0;
  Contents contents;
  size_t worker = 0;
  size_t workers = 1;
  // It warms up until then.
  absl::Time start;
  absl::Duration time;
};

// This binary once more, as a worker (--work=<kind>).
class WorkerProcess {
 public:
  explicit WorkerProcess(const WorkOrder& order);

  // Waits for its bytes per second, one way.
  double Wait();

 private:
  std::unique_ptr<Subprocess> process_;
};

// The worker's side: what its command line orders.
WorkOrder WorkOrderFromFlags(const std::string& kind);
void Work(const WorkOrder& order, const ParameterClient::Options& options);

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_WORKER_PROCESS_H_
