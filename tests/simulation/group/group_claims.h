#ifndef PARASOL_TESTS_SIMULATION_GROUP_GROUP_CLAIMS_H_
#define PARASOL_TESTS_SIMULATION_GROUP_GROUP_CLAIMS_H_

#include <functional>
#include <utility>

#include "proto/chief.pb.h"
#include "tests/simulation/group/group_auditor.h"
#include "tests/simulation/replica_claims.h"
#include "worker/group/group_parameters.h"

namespace parasol::simulation {

// A worker's questions which group it is in.
class GroupClaims : public ReplicaClaims {
 public:
  using ReplicaClaims::ReplicaClaims;

  // Sets what the chief's answers are for; before Begin().
  void SetParameters(GroupParameters* parameters, GroupAuditor* auditor) {
    auditor_ = auditor;
    parameters_ = parameters;
  }

  // Notes the steps that the state has had, and claims again if it is time.
  void NoteSteps() {
    SetCompleted(parameters_->steps());
    Complete(0);
  }

  // Also while the chief writes the last checkpoint: it may wait for steps that
  // were lost.
  bool HasWork() const override {
    return !IsOver() && !share().replicas.empty() && HasStepsLeft();
  }

 private:
  void Ask(absl::Duration since_last,
           wire::ClaimStepsRequest& request) override {
    SetCompleted(parameters_->steps());
    ReplicaClaims::Ask(since_last, request);
    request.set_broken_assignment(parameters_->broken());
  }
  void Take(const wire::ClaimStepsResponse& response) override {
    auditor_->Named(response);
    parameters_->Hear(response);
    ReplicaClaims::Take(response);
    SetCompleted(parameters_->steps());
  }

  GroupParameters* parameters_ = nullptr;
  GroupAuditor* auditor_ = nullptr;
};

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_GROUP_GROUP_CLAIMS_H_
