#include "worker/store/device_steps.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/log.h"

namespace parasol {

// The caller's end of a push.
class DeviceSteps::PendingStep : public Pending {
 public:
  PendingStep(DeviceSteps& steps, int64_t step) : steps_(steps), step_(step) {}

  absl::Status Wait() override {
    return *steps_.Await(step_, absl::InfiniteDuration());
  }
  bool WaitFor(absl::Duration limit) override {
    return steps_.Await(step_, limit).has_value();
  }
  Outcome outcome() const override { return {}; }

 private:
  DeviceSteps& steps_;
  const int64_t step_;
};

DeviceSteps::DeviceSteps(MirroredVariables& variables, Options options)
    : variables_(variables),
      options_(std::move(options)),
      step_(options_.first_step),
      expected_(options_.devices.size()),
      parts_(options_.devices.size()) {}

std::unique_ptr<TrainingParameters::Pending> DeviceSteps::Pull(
    PullRequest request) {
  CHECK(request.targets.empty() && request.rows.empty());
  absl::MutexLock lock(&mu_);
  return std::make_unique<DonePending>(
      ended_, Outcome{.min_updates = step_, .max_updates = step_});
}

void DeviceSteps::Expect(const SyncStep& step, const DevicePart& part) {
  absl::MutexLock lock(&mu_);
  expected_[step.replica] = part;
}

// All other replicas wait for the last one's push, so its thread needs no lock
// while it enqueues.
std::unique_ptr<TrainingParameters::Pending> DeviceSteps::Push(
    PushRequest request) {
  CHECK(request.sync.has_value());
  CHECK(request.gradients.empty() && request.rows.empty());
  const int64_t step = request.sync->step;
  std::vector<DevicePart> parts;
  {
    absl::MutexLock lock(&mu_);
    auto pending = std::make_unique<PendingStep>(*this, step);
    if (!ended_.ok()) return pending;
    CHECK_EQ(step, step_);
    const int replica = request.sync->replica;
    CHECK(expected_[replica].has_value() && !parts_[replica].has_value())
        << "replica " << replica << " in step " << step;
    parts_[replica] = std::exchange(expected_[replica], std::nullopt);
    if (++collected_ < parts_.size()) return pending;
    for (const std::optional<DevicePart>& other : parts_) {
      parts.push_back(*other);
    }
  }
  const absl::Status updated = variables_.Update(parts);
  absl::MutexLock lock(&mu_);
  ended_.Update(updated);
  if (ended_.ok()) ++step_;
  parts_.assign(parts_.size(), std::nullopt);
  collected_ = 0;
  return std::make_unique<PendingStep>(*this, step);
}

std::optional<absl::Status> DeviceSteps::ResultOf(int64_t step) const {
  if (step < step_) return absl::OkStatus();
  if (!ended_.ok()) return ended_;
  return std::nullopt;
}

std::optional<absl::Status> DeviceSteps::Await(int64_t step,
                                               absl::Duration limit) {
  absl::MutexLock lock(&mu_);
  const auto has_ended = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return ResultOf(step).has_value();
  };
  Clock::Real().AwaitWithTimeout(mu_, absl::Condition(&has_ended), limit);
  return ResultOf(step);
}

TrainingParameters::Awaited DeviceSteps::Unanswered() const {
  absl::MutexLock lock(&mu_);
  Awaited awaited;
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (collected_ == 0 || parts_[i].has_value()) continue;
    awaited.peers.push_back(
        absl::StrCat("replica/", i, " (", options_.devices[i], ")"));
  }
  return awaited;
}

void DeviceSteps::Stop() {
  absl::MutexLock lock(&mu_);
  ended_.Update(absl::CancelledError("stopped"));
}

}  // namespace parasol
