#ifndef PARASOL_TESTS_SIMULATION_CLAIMS_H_
#define PARASOL_TESTS_SIMULATION_CLAIMS_H_

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "proto/chief.pb.h"
#include "tests/simulation/claim_caller.h"
#include "worker/step/granted_steps.h"
#include "worker/step/training_files.h"

namespace parasol::simulation {

// A worker's claims for steps: the model of ChiefStepSource around the steps
// that are granted.
class Claims : public ClaimCaller {
 public:
  using ClaimCaller::ClaimCaller;

  // Takes the next step and returns its batch, if there is one.
  std::optional<int64_t> TryStart();
  void Complete();

  int64_t completed() const { return steps_.completed(); }
  // Returns true if the chief has named the file of a batch.
  bool HasFileOf(int64_t batch) const {
    return files_.FileOf(batch).has_value();
  }
  void Describe(wire::RegisterRequest& request) {
    files_.StartOver();
    steps_.Tell(request);
  }

 private:
  bool IsAllReported() const override {
    return steps_.completed() == steps_.started();
  }
  bool MayWait() const override {
    return steps_.held() == 0 && IsAllReported();
  }
  bool IsUrgent() const override;
  void Ask(absl::Duration since_last,
           wire::ClaimStepsRequest& request) override;
  void Take(const wire::ClaimStepsResponse& response) override;

  GrantedSteps steps_;
  TrainingFiles files_;
  bool asked_in_vain_ = false;
  int64_t last_completed_ = 0;
};

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_CLAIMS_H_
