#ifndef PARASOL_TESTS_SIMULATION_CONTROL_PLANE_H_
#define PARASOL_TESTS_SIMULATION_CONTROL_PLANE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tests/simulation/auditor.h"
#include "tests/simulation/chief_process.h"
#include "tests/simulation/cluster_stop.h"
#include "tests/simulation/evaluator.h"
#include "tests/simulation/rules.h"
#include "tests/simulation/schedule.h"
#include "tests/simulation/stranger.h"
#include "tests/simulation/world.h"

namespace parasol::simulation {

// A whole cluster and its supervisor, which starts processes again as
// Kubernetes does, under one schedule of faults. Deterministic: equal schedules
// and rules give equal reports. No threads, no sockets, no files, no real time.
class ControlPlane {
 public:
  struct Report {
    // The first violation, if there is one.
    std::optional<Violation> violation;
    int64_t events = 0;
    // The simulated time until the chief ended.
    absl::Duration took;
    // A line for each notable event; empty unless it was asked for.
    std::vector<std::string> trace;
  };

  // Runs the schedule to its end, or to the first violation.
  static Report Run(const Schedule& schedule, const Rules& rules,
                    bool wants_trace = false);

 private:
  // Numbers that change when a job makes progress.
  using Progress = std::tuple<int, int64_t, int64_t, int64_t>;

  ControlPlane(const Schedule& schedule, const Rules& rules);

  void LaunchAll();
  void Launch(const TaskId& place);
  std::unique_ptr<Process> MakeWorker(int index, int number);
  // Launches a process at a place after a delay, unless one lives there then.
  void LaunchLater(const TaskId& place, absl::Duration delay);
  // Returns true if the process lives that was launched last at a place.
  bool LivesSupervised(const TaskId& place) const;
  void Inject(const Fault& fault);
  void Hit(const Fault& fault, Process& process);
  void Terminate(Process& process);
  // Starts all processes after a stop of the cluster.
  void StartAgain();
  void OnExit(Process& process, const absl::Status& status);
  void OnChiefExit(const absl::Status& status);
  // Judges the progress of the job once the faults are over.
  void Watch();
  void CheckJobs();
  const ChiefProcess* chief() const;
  Progress ProgressNow() const;

  const Schedule& schedule_;
  World world_;
  Evaluator evaluator_;
  Stranger stranger_;
  ClusterStop stop_;
  // The number of the newest process at each place, live or not.
  std::map<TaskId, int> newest_;
  JobChoice job_;
  bool has_ended_ = false;
  Progress progress_;
  absl::Time progress_at_;
};

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_CONTROL_PLANE_H_
