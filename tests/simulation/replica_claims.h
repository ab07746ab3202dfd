#ifndef PARASOL_TESTS_SIMULATION_REPLICA_CLAIMS_H_
#define PARASOL_TESTS_SIMULATION_REPLICA_CLAIMS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/chief.pb.h"
#include "tests/simulation/world.h"

namespace parasol::simulation {

// A worker's questions which replicas it has, one after the other: the model of
// ChiefReplicaSource and ClaimLoop.
class ReplicaClaims {
 public:
  struct Share {
    int64_t version = 0;
    std::vector<int> replicas;
    int64_t completed_steps = 0;
    int64_t end_step = 0;
  };

  // Calls `on_news` after each answer.
  ReplicaClaims(World& world, Process& worker, std::function<void()> on_news)
      : world_(world), worker_(worker), on_news_(std::move(on_news)) {}

  void Begin() { Look(); }
  void Stop() { stopped_ = true; }

  const Share& share() const { return share_; }
  // Records that the cluster is known to have completed `steps` steps.
  void Complete(int64_t steps);
  // Records that this worker has pushed all its gradients of the steps before
  // `steps`.
  void Pushed(int64_t steps) { pushed_ = steps; }

  // Returns true if there is a replica to compute and a step to do.
  bool HasWork() const {
    return !no_more_ && !is_finishing_ && !share_.replicas.empty() &&
           HasStepsLeft();
  }
  const absl::Status& failure() const { return failure_; }

 private:
  bool HasStepsLeft() const { return share_.completed_steps < share_.end_step; }
  void Look();
  void Claim();
  wire::ClaimStepsRequest NextRequest();
  void Hear(const absl::StatusOr<wire::ClaimStepsResponse>& response);

  World& world_;
  Process& worker_;
  const std::function<void()> on_news_;
  Share share_;
  bool stopped_ = false;
  bool no_more_ = false;
  bool is_finishing_ = false;
  bool claiming_ = false;
  // True while an event is set that looks again.
  bool alarm_set_ = false;
  int64_t reported_ = 0;
  int64_t pushed_ = 0;
  absl::Time last_call_ = absl::InfinitePast();
  absl::Status failure_;
};

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_REPLICA_CLAIMS_H_
