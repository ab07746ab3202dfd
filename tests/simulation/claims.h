#ifndef PARASOL_TESTS_SIMULATION_CLAIMS_H_
#define PARASOL_TESTS_SIMULATION_CLAIMS_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/chief.pb.h"
#include "tests/simulation/world.h"
#include "worker/granted_steps.h"

namespace parasol::simulation {

// A worker's claims, one after the other: the model of ClaimLoop and of
// ChiefStepSource around the steps that are granted.
class Claims {
 public:
  // Calls `on_news` when a step may be started, when there are no more steps,
  // and when the chief refuses the worker.
  Claims(World& world, Process& worker, std::function<void()> on_news)
      : world_(world), worker_(worker), on_news_(std::move(on_news)) {}

  void Begin();
  void Stop() { stopped_ = true; }

  // Takes the next step and returns its batch, if there is one.
  std::optional<int64_t> TryStart();
  void Complete();

  int64_t completed() const { return steps_.completed(); }
  void Describe(wire::RegisterRequest& request) const { steps_.Tell(request); }
  // Returns OK, or why the worker has to end.
  const absl::Status& failure() const { return failure_; }

 private:
  bool ShouldEnd() const;
  bool MayWait() const;
  bool IsUrgent() const;
  // Claims now, or when the interval is over.
  void Look();
  void Claim();
  wire::ClaimStepsRequest NextRequest();
  void Hear(const absl::StatusOr<wire::ClaimStepsResponse>& response);

  World& world_;
  Process& worker_;
  const std::function<void()> on_news_;
  GrantedSteps steps_;
  bool begun_ = false;
  bool stopped_ = false;
  bool no_more_ = false;
  bool is_finishing_ = false;
  bool claiming_ = false;
  bool asked_in_vain_ = false;
  // True while an event is set that looks again.
  bool alarm_set_ = false;
  int64_t last_completed_ = 0;
  absl::Time last_call_ = absl::InfinitePast();
  absl::Status failure_;
};

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_CLAIMS_H_
