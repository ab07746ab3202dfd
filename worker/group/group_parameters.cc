#include "worker/group/group_parameters.h"

#include <cstddef>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "worker/group/device_sums.h"
#include "worker/group/gathered_rows.h"
#include "worker/group/host_sums.h"
#include "worker/group/pushed_rows.h"
#include "worker/group/state/wait_intervals.h"

namespace parasol {

// Copies when it is waited for: the memory is this process's own.
class GroupParameters::PendingPull : public Pending {
 public:
  PendingPull(GroupParameters& parameters, PullRequest request)
      : parameters_(parameters), request_(std::move(request)) {}

  absl::Status Wait() override {
    while (!parameters_.member_.AwaitAgreed(kPollInterval)) {
      parameters_.AbortIfStopping();
    }
    RETURN_IF_ERROR(parameters_.AwaitStep(0));
    ASSIGN_OR_RETURN(step_, parameters_.state_.Pull(std::move(request_)));
    return absl::OkStatus();
  }
  bool WaitFor(absl::Duration limit) override {
    return parameters_.member_.AwaitAgreed(limit) &&
           parameters_.state_.steps().Await(0, limit).has_value();
  }
  Outcome outcome() const override {
    return {.min_updates = step_, .max_updates = step_};
  }

 private:
  GroupParameters& parameters_;
  PullRequest request_;
  int64_t step_ = 0;
};

class GroupParameters::PendingPush : public Pending {
 public:
  PendingPush(GroupParameters& parameters, const SyncStep& step)
      : parameters_(parameters), step_(step) {}

  absl::Status Wait() override {
    RETURN_IF_ERROR(parameters_.AwaitStep(step_.step + 1));
    is_stale_ = parameters_.rows_->HasDropped(step_);
    return absl::OkStatus();
  }
  bool WaitFor(absl::Duration limit) override {
    return parameters_.state_.steps().Await(step_.step + 1, limit).has_value();
  }
  Outcome outcome() const override { return {.stale = is_stale_}; }

 private:
  GroupParameters& parameters_;
  const SyncStep step_;
  bool is_stale_ = false;
};

GroupParameters::GroupParameters(Options options, GroupState& state,
                                 CollectiveEndpoint& endpoint, Clock& clock,
                                 MetricsRegistry& metrics)
    : options_(std::move(options)),
      state_(state),
      packs_(GradientPacks::Of(state.variables(), options_.bytes_per_pack)),
      gradients_(packs_, state.num_tables()),
      sums_(MakeSums(clock)),
      rows_(MakeRows(clock)),
      steps_(state_, gradients_, *sums_, *rows_),
      member_(options_, state_, steps_, endpoint, clock, metrics) {
  for (DeviceGradients* const gradients : options_.on_devices) {
    gradients->SetOnTaken([this] { member_.LookAgain(); });
  }
}

GroupParameters::~GroupParameters() {
  for (DeviceGradients* const gradients : options_.on_devices) {
    gradients->SetOnTaken(nullptr);
  }
}

std::unique_ptr<GroupSums> GroupParameters::MakeSums(Clock& clock) {
  PackedSums sums(packs_, state_.variables(), options_.replicas);
  if (options_.on_devices.empty()) {
    return std::make_unique<HostSums>(std::move(sums), gradients_);
  }
  return std::make_unique<DeviceSums>(
      DeviceSums::Options{.replicas = options_.replicas,
                          .devices = options_.on_devices,
                          .variables = options_.variables_on_device},
      std::move(sums), state_, clock);
}

std::unique_ptr<GroupRows> GroupParameters::MakeRows(Clock& clock) {
  if (options_.tables != nullptr) {
    return std::make_unique<PushedRows>(
        PushedRows::Options{.tables = options_.tables,
                            .in_step = options_.tables_in_step,
                            .abort_if_stopping = [this] { AbortIfStopping(); }},
        state_, clock);
  }
  std::vector<size_t> widths;
  for (int i = 0; i < state_.num_tables(); ++i) {
    widths.push_back(state_.job().model().sparse_table(i).width());
  }
  return std::make_unique<GatheredRows>(widths, options_.replicas, gradients_);
}

std::unique_ptr<TrainingParameters::Pending> GroupParameters::Pull(
    PullRequest request) {
  if (auto elsewhere = rows_->Pull(request)) return elsewhere;
  return std::make_unique<PendingPull>(*this, std::move(request));
}

void GroupParameters::Expect(const SyncStep& step, const DevicePart& part) {
  const absl::Status expected =
      options_.on_devices[part.device]->Expect(step, part);
  if (!expected.ok()) state_.steps().End(expected);
}

std::unique_ptr<TrainingParameters::Pending> GroupParameters::Push(
    PushRequest request) {
  rows_->Take(request);
  for (DeviceGradients* const device : options_.on_devices) {
    const absl::Status taken = device->Push(*request.sync);
    if (!taken.ok()) state_.steps().End(taken);
  }
  StepGradients::Addition addition = gradients_.Begin(request);
  // Other replicas' threads copy meanwhile.
  addition.Copy();
  gradients_.End(std::move(addition));
  member_.LookAgain();
  return std::make_unique<PendingPush>(*this, *request.sync);
}

TrainingParameters::Awaited GroupParameters::Unanswered() const {
  Awaited awaited = member_.Unanswered();
  rows_->AddTo(awaited);
  return awaited;
}

absl::Status GroupParameters::AwaitStep(int64_t step) {
  while (true) {
    const std::optional<absl::Status> result =
        state_.steps().Await(step, kPollInterval);
    if (result) return *result;
    AbortIfStopping();
  }
}

}  // namespace parasol
