#ifndef PARASOL_CHIEF_WORKER_REPORTS_H_
#define PARASOL_CHIEF_WORKER_REPORTS_H_

#include <map>
#include <optional>

#include "proto/chief.pb.h"

namespace parasol {

// The last report of each live worker about its training. Pure.
class WorkerReports {
 public:
  // Keeps the values of a heartbeat. Values that it lacks, or that are
  // not finite, stay as they are.
  void Keep(const wire::HeartbeatRequest& heartbeat);
  void Forget(int worker);

  // Returns the mean of the workers' losses; nullopt if none has reported one.
  std::optional<double> loss() const;
  // Returns the examples per second of all workers together.
  double examples_per_second() const;

 private:
  struct Report {
    std::optional<double> loss;
    double examples_per_second = 0;
  };
  std::map<int, Report> reports_;  // key: worker index
};

}  // namespace parasol

#endif  // PARASOL_CHIEF_WORKER_REPORTS_H_
