#ifndef PARASOL_TESTS_SIMULATION_GROUP_GROUP_CONTROL_H_
#define PARASOL_TESTS_SIMULATION_GROUP_GROUP_CONTROL_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tests/simulation/chief_process.h"
#include "tests/simulation/cluster_stop.h"
#include "tests/simulation/control_plane.h"
#include "tests/simulation/evaluator.h"
#include "tests/simulation/group/group_auditor.h"
#include "tests/simulation/group/group_keeper.h"
#include "tests/simulation/group/group_worker.h"
#include "tests/simulation/group/process_threads.h"
#include "tests/simulation/rules.h"
#include "tests/simulation/schedule.h"
#include "tests/simulation/world.h"

namespace parasol::simulation {

// A cluster whose workers have the variables, and its supervisor, under one
// schedule of faults. Deterministic, as ControlPlane is: the workers' threads
// run one at a time, in an order that the schedule decides.
class GroupControl {
 public:
  struct Report : ControlPlane::Report {
    // Number of messages and operations of the groups' protocol.
    int64_t points = 0;
  };

  // Runs the schedule to its end, or to the first violation.
  static Report Run(const Schedule& schedule, bool wants_trace = false);

 private:
  using Progress = std::tuple<int, int64_t, int64_t, int64_t>;

  explicit GroupControl(const Schedule& schedule);

  std::vector<Process*> Workers() const;
  void LaunchAll();
  // Starts all workers after a stop of the cluster.
  void StartAgain();
  // Launches worker 0 with the chief beside it, or another task.
  void Launch(const TaskId& place);
  void LaunchLater(const TaskId& place, absl::Duration delay);
  bool LivesSupervised(const TaskId& place) const;
  void LaunchKeeper(GroupWorker& worker);
  void OnPoint(int64_t point);
  void Inject(const Fault& fault);
  void Hit(const Fault& fault, Process& process);
  void Terminate(Process& process);
  void Part(const Fault& fault);
  void Flip(const Fault& fault);
  // A machine of worker 0: its process, the part of it that is a ps to the
  // chief, and the chief beside it.
  struct Host {
    GroupWorker* worker = nullptr;
    GroupKeeper* keeper = nullptr;  // null before it knows the run
    Process* chief = nullptr;       // null: the chief is apart
    absl::Status chief_result;
  };
  // Calls `act` with the process and, of worker 0, with the part that is a ps.
  void WithParts(Process& process, const std::function<void(Process&)>& act);
  void OnExit(Process& process, const absl::Status& status);
  void OnChiefExit(const Process& process, const absl::Status& status);
  // A worker has told the chief that it ends.
  void OnLeft(GroupWorker& worker, const absl::Status& result);
  void AwaitChief(GroupWorker& worker, const absl::Status& result,
                  absl::Time limit);
  // Judges what a chief has counted that was told to end.
  void CheckStopped(const ChiefProcess& chief);
  void EndJob();
  // Ends what does not outlive worker 0.
  void EndParts(const Process& worker);
  void Watch();
  bool IsBeside() const { return schedule_.shape.chief_beside; }
  ChiefProcess* chief() const;
  Progress ProgressNow() const;

  const Schedule& schedule_;
  const Rules rules_;
  ThreadTurns turns_;
  World world_;
  GroupAuditor auditor_;
  ProtocolPoints points_;
  GroupWorker::Cluster cluster_;
  Evaluator evaluator_;
  ClusterStop stop_;
  int launched_ = 0;
  // The number of the newest process at each place, live or not.
  std::map<TaskId, int> newest_;
  std::map<int, Host> hosts_;  // key: worker 0's number
  bool has_ended_ = false;
  Progress progress_;
  absl::Time progress_at_;
};

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_GROUP_GROUP_CONTROL_H_
