#ifndef PARASOL_TESTS_SIMULATION_CLAIM_CALLER_H_
#define PARASOL_TESTS_SIMULATION_CLAIM_CALLER_H_

#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/chief.pb.h"
#include "tests/simulation/world.h"

namespace parasol::simulation {

// A worker's claims, one after the other: the model of ClaimLoop.
class ClaimCaller {
 public:
  // Calls `on_news` after each answer.
  ClaimCaller(World& world, Process& worker, std::function<void()> on_news)
      : world_(world), worker_(worker), on_news_(std::move(on_news)) {}
  virtual ~ClaimCaller() = default;

  void Begin();
  void Stop() { stopped_ = true; }
  // Returns OK, or why the worker has to end.
  const absl::Status& failure() const { return failure_; }

 protected:
  World& world() const { return world_; }
  Process& worker() const { return worker_; }
  bool is_finishing() const { return is_finishing_; }
  // Returns true if the worker starts no more steps.
  bool IsOver() const { return stopped_ || no_more_ || !failure_.ok(); }
  static absl::Duration report_interval();

  // Claims now, or when the interval is over.
  void Look();

  // Returns true if the chief knows of all steps that the worker has done.
  virtual bool IsAllReported() const { return true; }
  // Returns true if a claim does not wait for the interval.
  virtual bool IsUrgent() const = 0;
  // Returns true if the chief may wait for news before it answers.
  virtual bool MayWait() const = 0;
  // Writes the worker's own part of a claim.
  virtual void Ask(absl::Duration since_last,
                   wire::ClaimStepsRequest& request) = 0;
  virtual void Take(const wire::ClaimStepsResponse& response) = 0;

 private:
  void Claim();
  wire::ClaimStepsRequest NextRequest();
  void Hear(const absl::StatusOr<wire::ClaimStepsResponse>& response);

  World& world_;
  Process& worker_;
  const std::function<void()> on_news_;
  bool begun_ = false;
  bool stopped_ = false;
  bool no_more_ = false;
  bool is_finishing_ = false;
  bool claiming_ = false;
  // True while an event is set that looks again.
  bool alarm_set_ = false;
  absl::Time last_call_ = absl::InfinitePast();
  absl::Status failure_;
};

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_CLAIM_CALLER_H_
