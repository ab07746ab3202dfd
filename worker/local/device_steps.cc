#include "worker/local/device_steps.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"

namespace parasol {

// The caller's end of a push, or of a pull, which has failed.
class DeviceSteps::PendingStep : public Pending {
 public:
  PendingStep(DeviceSteps& steps, int64_t step) : steps_(&steps), step_(step) {}
  explicit PendingStep(absl::Status failure) : failure_(std::move(failure)) {}

  absl::Status Wait() override {
    if (steps_ == nullptr) return failure_;
    return *steps_->Await(step_, absl::InfiniteDuration());
  }
  bool WaitFor(absl::Duration limit) override {
    return steps_ == nullptr || steps_->Await(step_, limit).has_value();
  }
  Outcome outcome() const override { return {}; }

 private:
  DeviceSteps* const steps_ = nullptr;
  const int64_t step_ = 0;
  const absl::Status failure_;
};

DeviceSteps::DeviceSteps(MirroredVariables& variables, Options options)
    : variables_(variables),
      options_(std::move(options)),
      step_(options_.first_step),
      parts_(options_.devices.size()) {}

std::unique_ptr<ParameterClient::Pending> DeviceSteps::Pull(PullRequest) {
  return std::make_unique<PendingStep>(
      absl::FailedPreconditionError("the values are in the memory of devices"));
}

// All other replicas wait for the last one's push, so its thread needs no lock
// while it enqueues.
std::unique_ptr<ParameterClient::Pending> DeviceSteps::Push(
    PushRequest request) {
  CHECK(request.sync.has_value() && request.on_device.has_value());
  CHECK(request.gradients.empty() && request.rows.empty());
  const int64_t step = request.sync->step;
  std::vector<DevicePart> parts;
  {
    absl::MutexLock lock(&mu_);
    auto pending = std::make_unique<PendingStep>(*this, step);
    if (!ended_.ok()) return pending;
    CHECK_EQ(step, step_);
    std::optional<DevicePart>& part = parts_[request.sync->replica];
    CHECK(!part.has_value()) << "replica " << request.sync->replica
                             << " has pushed step " << step << " before";
    part = *request.on_device;
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
  mu_.AwaitWithTimeout(absl::Condition(&has_ended), limit);
  return ResultOf(step);
}

absl::Status DeviceSteps::Update(const wire::GetPlacementResponse&) {
  return absl::FailedPreconditionError("a worker without a cluster has no ps");
}

std::vector<std::string> DeviceSteps::Unanswered() const {
  absl::MutexLock lock(&mu_);
  std::vector<std::string> names;
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (collected_ == 0 || parts_[i].has_value()) continue;
    names.push_back(
        absl::StrCat("replica/", i, " (", options_.devices[i], ")"));
  }
  return names;
}

void DeviceSteps::Stop() {
  absl::MutexLock lock(&mu_);
  ended_.Update(absl::CancelledError("stopped"));
}

}  // namespace parasol
