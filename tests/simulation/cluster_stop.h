#ifndef PARASOL_TESTS_SIMULATION_CLUSTER_STOP_H_
#define PARASOL_TESTS_SIMULATION_CLUSTER_STOP_H_

#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tests/simulation/process.h"
#include "tests/simulation/schedule.h"
#include "tests/simulation/world.h"

namespace parasol::simulation {

// The stop of a whole cluster: all processes are told to end within some time,
// in some order, and start again later. Judges how long it takes and whether
// the newest checkpoint has what it should.
class ClusterStop {
 public:
  // `terminate` tells a process to end, if it lives; `start_again` starts all
  // of them.
  ClusterStop(World& world, std::function<void(Process&)> terminate,
              std::function<void()> start_again)
      : world_(world),
        terminate_(std::move(terminate)),
        start_again_(std::move(start_again)) {}

  // Begins to stop `processes` as the fault has it.
  void Begin(const Fault& fault, const std::vector<Process*>& processes);
  // Ends a stop without a judgement: the job has ended.
  void Cancel() { is_going_ = false; }
  // Notes that a process has ended. Returns true if that is part of a stop:
  // nobody starts the process again.
  bool TakesExit(const absl::Status& status);
  // True while nobody starts a process.
  bool is_going() const { return is_going_; }

 private:
  void End();

  World& world_;
  const std::function<void(Process&)> terminate_;
  const std::function<void()> start_again_;
  bool is_going_ = false;
  absl::Time last_exit_;
  absl::Time last_told_;
};

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_CLUSTER_STOP_H_
