#ifndef PARASOL_CHIEF_WORKER_REPORTS_H_
#define PARASOL_CHIEF_WORKER_REPORTS_H_

#include <map>
#include <optional>

#include "proto/chief.pb.h"

namespace parasol {

// What each live worker last said about its training. Pure.
class WorkerReports {
 public:
  // What a heartbeat does not say stays as it was.
  void Keep(const wire::HeartbeatRequest& heartbeat);
  void Forget(int worker);

  // The mean of the workers' losses; nothing if none has told one.
  std::optional<double> loss() const;
  // Of all together.
  double examples_per_second() const;

 private:
  struct Report {
    std::optional<double> loss;
    double examples_per_second = 0;
  };
  std::map<int, Report> reports_;  // by worker index
};

}  // namespace parasol

#endif  // PARASOL_CHIEF_WORKER_REPORTS_H_
