#ifndef PARASOL_TESTS_SIMULATION_REPLICA_CLAIMS_H_
#define PARASOL_TESTS_SIMULATION_REPLICA_CLAIMS_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "proto/chief.pb.h"
#include "tests/simulation/claim_caller.h"

namespace parasol::simulation {

// A worker's questions which replicas it has: the model of ChiefReplicaSource.
class ReplicaClaims : public ClaimCaller {
 public:
  struct Share {
    int64_t version = 0;
    std::vector<int> replicas;
    int64_t completed_steps = 0;
    int64_t end_step = 0;
  };

  using ClaimCaller::ClaimCaller;

  const Share& share() const { return share_; }
  // Records that the cluster is known to have completed `steps` steps.
  void Complete(int64_t steps);
  // Makes this the number of steps that are known to be complete.
  void SetCompleted(int64_t steps) { share_.completed_steps = steps; }
  // Records that this worker has pushed all its gradients of the steps before
  // `steps`.
  void Pushed(int64_t steps) { pushed_ = steps; }

  // Returns true if there is a replica to compute and a step to do.
  virtual bool HasWork() const {
    return !IsOver() && !is_finishing() && !share_.replicas.empty() &&
           HasStepsLeft();
  }

 protected:
  bool HasStepsLeft() const { return share_.completed_steps < share_.end_step; }
  void Ask(absl::Duration since_last,
           wire::ClaimStepsRequest& request) override;
  void Take(const wire::ClaimStepsResponse& response) override;

 private:
  bool MayWait() const override {
    return share_.replicas.empty() || !HasStepsLeft();
  }
  bool IsUrgent() const override;

  Share share_;
  int64_t reported_ = 0;
  int64_t pushed_ = 0;
};

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_REPLICA_CLAIMS_H_
