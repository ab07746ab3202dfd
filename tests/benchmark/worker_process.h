#ifndef PARASOL_TESTS_BENCHMARK_WORKER_PROCESS_H_
#define PARASOL_TESTS_BENCHMARK_WORKER_PROCESS_H_

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "base/subprocess.h"
#include "tests/benchmark/lineup.h"

namespace parasol {

// The order for a worker's process: to push and pull the variables that a
// server holds.
struct WorkOrder {
  std::string kind;  // "parasol", "tcp"
  int port = 0;
  Contents contents;
  size_t worker = 0;
  size_t workers = 1;
  // End of the warm-up and start of the measurement.
  absl::Time start;
  absl::Duration time;
};

// A process of this binary that runs as a worker (--work=<kind>).
class WorkerProcess {
 public:
  explicit WorkerProcess(const WorkOrder& order);

  // Waits for the worker's result and returns it: bytes per second, one way.
  double Wait();

 private:
  std::unique_ptr<Subprocess> process_;
};

// Worker side: returns the order that is on its command line.
WorkOrder WorkOrderFromFlags(const std::string& kind);
void Work(const WorkOrder& order, const ParameterClient::Options& options);

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_WORKER_PROCESS_H_
