#include "worker/mirrored/mirrored_parameters.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "worker/mirrored/wait_intervals.h"

namespace parasol {
namespace {

// Number of groups that end with InvalidArgument in a row until a worker ends.
// A rank that was confused by a loss is not so again.
constexpr int kInvalidEnds = 5;

}  // namespace

// Copies when it is waited for: the memory is this process's own.
class MirroredParameters::PendingPull : public Pending {
 public:
  PendingPull(MirroredParameters& parameters, PullRequest request)
      : parameters_(parameters), request_(std::move(request)) {}

  absl::Status Wait() override {
    while (!parameters_.AwaitAgreed(kPollInterval)) {
      parameters_.AbortIfStopping();
    }
    RETURN_IF_ERROR(parameters_.AwaitStep(0));
    ASSIGN_OR_RETURN(step_, parameters_.state_.Pull(std::move(request_)));
    return absl::OkStatus();
  }
  bool WaitFor(absl::Duration limit) override {
    return parameters_.AwaitAgreed(limit) &&
           parameters_.state_.AwaitStep(0, limit).has_value();
  }
  Outcome outcome() const override {
    return {.min_updates = step_, .max_updates = step_};
  }

 private:
  MirroredParameters& parameters_;
  PullRequest request_;
  int64_t step_ = 0;
};

class MirroredParameters::PendingPush : public Pending {
 public:
  PendingPush(MirroredParameters& parameters, int64_t step)
      : parameters_(parameters), step_(step) {}

  absl::Status Wait() override { return parameters_.AwaitStep(step_ + 1); }
  bool WaitFor(absl::Duration limit) override {
    return parameters_.state_.AwaitStep(step_ + 1, limit).has_value();
  }
  Outcome outcome() const override { return {}; }

 private:
  MirroredParameters& parameters_;
  const int64_t step_;
};

MirroredParameters::MirroredParameters(Options options, MirroredState& state,
                                       CollectiveEndpoint& endpoint,
                                       Clock& clock, MetricsRegistry& metrics)
    : options_(std::move(options)),
      state_(state),
      endpoint_(endpoint),
      clock_(clock),
      groups_joined_(metrics.AddCounter(
          "parasol_worker_collective_groups_total",
          "Groups of workers that this one has summed gradients with.",
          {{"end", "joined"}})),
      groups_lost_(metrics.AddCounter(
          "parasol_worker_collective_groups_total",
          "Groups of workers that this one has summed gradients with.",
          {{"end", "lost"}})),
      packs_(GradientPacks::Of(state.variables(), options_.bytes_per_pack)),
      gradients_(packs_, state.num_tables()) {
  const bool has_sums = options_.variables_on_device == nullptr;
  for (size_t i = 0; has_sums && i < packs_.count(); ++i) {
    sums_.emplace_back(packs_.elements(i));
  }
  rows_.resize(state.num_tables());
  for (size_t i = 0; i < rows_.size(); ++i) {
    row_sums_.push_back(std::make_unique<RowAccumulator>(
        state.job().model().sparse_table(i).width(), /*memory=*/nullptr));
  }
  if (!options_.on_devices.empty()) {
    calls_ = std::make_unique<ParallelCalls>(options_.on_devices.size());
  }
  for (DeviceGradients* const gradients : options_.on_devices) {
    CHECK_EQ(gradients->num_packs(), packs_.count());
    // Has AwaitGradients() look again.
    gradients->SetOnTaken([this] { absl::MutexLock lock(&mu_); });
  }
  thread_ = std::thread([this] { Run(); });
}

MirroredParameters::~MirroredParameters() {
  Stop();
  const auto has_ended = [this] {
    absl::MutexLock lock(&mu_);
    return clock_.AwaitWithTimeout(mu_, absl::Condition(&has_ended_),
                                   kPollInterval);
  };
  while (!has_ended()) AbortIfStopping();
  thread_.join();
  for (DeviceGradients* const gradients : options_.on_devices) {
    gradients->SetOnTaken(nullptr);
  }
}

void MirroredParameters::Hear(const wire::ClaimStepsResponse& answer) {
  Group group = GroupOf(answer, options_.task.incarnation());
  bool ends_group = false;
  int64_t joining = 0;
  {
    absl::MutexLock lock(&mu_);
    if (group.version < heard_) {
      LOG_EVERY(WARNING, kLogInterval)
          << "the chief says that workers' group " << group.version
          << " is the newest, but this worker has heard of " << heard_
          << ": it waits for a later one";
    }
    heard_ = std::max(heard_, group.version);
    if (group.is_member && group.version > group_.version) {
      group_ = std::move(group);
    }
    if (joining_ < heard_) joining = joining_;
    ends_group = collective_ != nullptr && collective_->group().epoch < heard_;
  }
  if (joining != 0) endpoint_.CancelJoin(joining);
  if (ends_group) Abort(SupersededError());
}

void MirroredParameters::Abort(const absl::Status& why) {
  std::shared_ptr<Collective> collective;
  int64_t joining;
  {
    absl::MutexLock lock(&mu_);
    collective = collective_;
    joining = joining_;
  }
  if (joining != 0) endpoint_.CancelJoin(joining);
  if (collective != nullptr) collective->Abort(why);
}

std::unique_ptr<ParameterClient::Pending> MirroredParameters::Pull(
    PullRequest request) {
  return std::make_unique<PendingPull>(*this, std::move(request));
}

void MirroredParameters::Expect(const SyncStep& step, const DevicePart& part) {
  const absl::Status expected =
      options_.on_devices[part.device]->Expect(step, part);
  if (!expected.ok()) state_.End(expected);
}

std::unique_ptr<ParameterClient::Pending> MirroredParameters::Push(
    PushRequest request) {
  const int64_t step = request.sync->step;
  if (request.on_device) {
    const absl::Status added =
        options_.on_devices[request.on_device->device]->Add(request);
    if (!added.ok()) state_.End(added);
  }
  StepGradients::Addition addition;
  {
    absl::MutexLock lock(&mu_);
    addition = gradients_.Begin(request);
  }
  // Other replicas' threads copy meanwhile.
  addition.Copy();
  {
    absl::MutexLock lock(&mu_);
    gradients_.End(std::move(addition));
  }
  return std::make_unique<PendingPush>(*this, step);
}

std::vector<std::string> MirroredParameters::Unanswered() const {
  absl::MutexLock lock(&mu_);
  if (group_.names.empty()) return {"the chief, for an assignment"};
  std::vector<std::string> names = group_.names;
  names.erase(names.begin() + group_.collective.own_rank);
  if (names.empty() && last_end_.ok()) {
    names.push_back("this worker itself, whose step a checkpoint may hold");
  }
  if (!last_end_.ok()) {
    if (names.empty()) names.push_back("the chief, for another group");
    absl::StrAppend(&names.back(),
                    " (the last group of workers ended: ", last_end_.message(),
                    ")");
  }
  return names;
}

void MirroredParameters::Stop() {
  {
    absl::MutexLock lock(&mu_);
    stopping_since_ = std::min(stopping_since_, clock_.Now());
  }
  AbortIfStopping();
}

void MirroredParameters::AbortIfStopping() {
  {
    // No step is made behind the last checkpoint.
    const bool stays = state_.stays();
    absl::MutexLock lock(&mu_);
    const absl::Duration limit =
        makes_steps_ && !stays ? options_.finish_limit : absl::ZeroDuration();
    if (!IsStopping() || clock_.Now() - stopping_since_ < limit) return;
  }
  if (options_.tables != nullptr) options_.tables->Stop();
  state_.EndStepsThatStay();
  Abort(absl::CancelledError("stopped"));
}

// Values before that may be others than those of the group.
bool MirroredParameters::AwaitAgreed(absl::Duration limit) {
  {
    absl::MutexLock lock(&mu_);
    const auto has_agreed = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return has_agreed_ || has_ended_;
    };
    if (clock_.AwaitWithTimeout(mu_, absl::Condition(&has_agreed), limit)) {
      return true;
    }
  }
  return !state_.ended().ok();
}

absl::Status MirroredParameters::AwaitStep(int64_t step) {
  while (true) {
    const std::optional<absl::Status> result =
        state_.AwaitStep(step, kPollInterval);
    if (result) return *result;
    AbortIfStopping();
  }
}

bool MirroredParameters::NoteLoading(const Group& group) {
  absl::MutexLock lock(&mu_);
  last_loading_ = clock_.Now();
  return !IsOver(group);
}

absl::Time MirroredParameters::last_loading() const {
  absl::MutexLock lock(&mu_);
  return last_loading_;
}

void MirroredParameters::Run() {
  Group group;
  while (AwaitGroup(group.version, group)) {
    const absl::Status why = RunGroup(group);
    if (IsPermanent(why)) state_.End(why);
    NoteEnd(group, why);
  }
  MakeLeftStep();
  state_.End(absl::CancelledError("the worker is stopping"));
  if (options_.tables != nullptr) options_.tables->Stop();
  absl::MutexLock lock(&mu_);
  has_ended_ = true;
}

bool MirroredParameters::AwaitGroup(int64_t version, Group& group) {
  absl::MutexLock lock(&mu_);
  const auto is_there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return IsStopping() || group_.version > version;
  };
  while (
      !clock_.AwaitWithTimeout(mu_, absl::Condition(&is_there), kLogInterval)) {
    LOG(INFO) << "waiting for the chief to assign replicas";
  }
  if (IsStopping()) return false;
  group = group_;
  return true;
}

absl::StatusOr<CollectiveGroup> MirroredParameters::WithPlanner(
    CollectiveGroup group) {
  if (options_.planner == nullptr) return group;
  const absl::Status right = CheckPlanner(*options_.planner, group.layout());
  if (!right.ok()) {
    state_.End(right);
    return right;
  }
  group.planner = options_.planner;
  return group;
}

absl::Status MirroredParameters::RunGroup(const Group& group) {
  ASSIGN_OR_RETURN(const CollectiveGroup members,
                   WithPlanner(group.collective));
  {
    absl::MutexLock lock(&mu_);
    if (IsOver(group)) return SupersededError();
    joining_ = group.version;
  }
  absl::StatusOr<std::unique_ptr<Collective>> joined =
      endpoint_.Join(members, options_.join_limit);
  std::shared_ptr<Collective> collective;
  if (joined.ok()) collective = *std::move(joined);
  {
    absl::MutexLock lock(&mu_);
    joining_ = 0;
    if (IsOver(group)) return SupersededError();
    RETURN_IF_ERROR(joined.status());
    collective_ = collective;
    gradients_.SetShare(group.replicas);
    for (DeviceGradients* const device : options_.on_devices) {
      device->SetShare(group.replicas);
    }
    gradients_.AllocateBy([collective](size_t elements) {
      return collective->AllocateContribution(elements);
    });
  }
  groups_joined_.Add();
  const absl::Status why = MakeSteps(group, *collective);
  peers_.clear();
  Release(*collective, why);
  return why;
}

// What is in flight uses the sums, rows and gradients, as the next group will,
// and whoever ends the group from another thread may not have told it yet. An
// operation that is complete here is left to complete elsewhere.
void MirroredParameters::Release(Collective& collective,
                                 const absl::Status& why) {
  bool has_pending;
  {
    absl::MutexLock lock(&mu_);
    has_pending = pending_ > 0;
  }
  if (has_pending) collective.Abort(why);
  collective.Await().IgnoreError();
  absl::MutexLock lock(&mu_);
  CHECK_EQ(pending_, 0);
  makes_steps_ = false;
  // Others stop waiting for this worker. The allocator would keep the group.
  gradients_.AllocateBy(nullptr);
  collective_ = nullptr;
}

bool MirroredParameters::IsPermanent(const absl::Status& why) {
  // Whoever hears of the next group first says nothing of this one.
  if (absl::IsCancelled(why)) return false;
  const int64_t step = state_.version().step;
  if (!absl::IsInvalidArgument(why) || step != invalid_step_) invalid_ends_ = 0;
  invalid_step_ = step;
  if (absl::IsInvalidArgument(why)) ++invalid_ends_;
  return invalid_ends_ >= kInvalidEnds;
}

// The chief may know of the loss by itself, and name another group. If it does
// not, all members may be alive: they connect anew.
void MirroredParameters::NoteEnd(const Group& group, const absl::Status& why) {
  absl::MutexLock lock(&mu_);
  if (!absl::IsCancelled(why)) last_end_ = why;
  if (IsOver(group)) return;
  // Cancelled: another member has heard of the next group before this one.
  if (!absl::IsCancelled(why)) {
    const std::optional<int> lost = LostRank(why);
    LOG(WARNING) << "the workers' group has ended: "
                 << (lost ? absl::StrCat(group.names[*lost], ", ") : "")
                 << why.message()
                 << "; the step is made again with those that are there";
    groups_lost_.Add();
  }
  const auto is_over = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return IsOver(group);
  };
  clock_.AwaitWithTimeout(mu_, absl::Condition(&is_over),
                          options_.report_delay);
  if (!is_over()) broken_ = group.version;
}

int64_t MirroredParameters::broken() const {
  absl::MutexLock lock(&mu_);
  return broken_ == heard_ ? broken_ : 0;
}

}  // namespace parasol
