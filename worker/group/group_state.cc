#include "worker/group/group_state.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "storage/shard_writer.h"
#include "worker/group/wait_intervals.h"

namespace parasol {
namespace {

absl::Status NotThere() {
  return absl::FailedPreconditionError("this worker has no variables yet");
}

// Compares variables and slots, to the bit.
bool HaveOtherValues(ParameterStore& a, ParameterStore& b) {
  for (size_t i = 0; i < a.num_variables(); ++i) {
    for (int array = 0; array < a.variables().num_arrays(i); ++array) {
      const auto of_a = a.variables().Read(i, array);
      const auto of_b = b.variables().Read(i, array);
      if (!of_a.ok() || !of_b.ok() || of_a->size() != of_b->size() ||
          std::memcmp(of_a->data(), of_b->data(),
                      of_a->size() * sizeof(float)) != 0) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

class ABSL_SCOPED_LOCKABLE GroupState::ReadLock {
 public:
  explicit ReadLock(GroupState& state) ABSL_SHARED_LOCK_FUNCTION(state.data_mu_)
      : mu_(state.data_mu_), is_exclusive_(state.elsewhere_ != nullptr) {
    is_exclusive_ ? mu_.Lock() : mu_.ReaderLock();
  }
  ~ReadLock() ABSL_UNLOCK_FUNCTION() {
    is_exclusive_ ? mu_.Unlock() : mu_.ReaderUnlock();
  }

 private:
  absl::Mutex& mu_;
  const bool is_exclusive_;
};

GroupState::GroupState(std::vector<VariableSpec> variables, job::Job job,
                       Clock& clock, TableStore rows,
                       StoredVariables* elsewhere)
    : variables_(std::move(variables)),
      job_(std::move(job)),
      clock_(clock),
      rows_(rows),
      elsewhere_(elsewhere) {
  CHECK(elsewhere_ == nullptr || num_tables() == 0);
}

absl::Status GroupState::Take(std::unique_ptr<ParameterStore> parameters) {
  if (elsewhere_ == nullptr) {
    parameters_ = std::move(parameters);
    return absl::OkStatus();
  }
  absl::Status copied = CopyElsewhere(*parameters);
  if (!copied.ok()) parameters_ = nullptr;
  return copied;
}

absl::Status GroupState::CopyElsewhere(ParameterStore& from) {
  if (parameters_ == nullptr) {
    ASSIGN_OR_RETURN(parameters_, ParameterStore::Create(*elsewhere_, job_));
  }
  for (size_t i = 0; i < from.num_variables(); ++i) {
    for (int array = 0; array < elsewhere_->num_arrays(i); ++array) {
      ASSIGN_OR_RETURN(const absl::Span<const float> elements,
                       from.variables().Read(i, array));
      RETURN_IF_ERROR(elsewhere_->Write(i, array, elements));
    }
    elsewhere_->SetUpdates(i, from.variables().updates()[i]);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ParameterStore>> GroupState::MakeParameters()
    const {
  return rows_ == TableStore::kPs
             ? ParameterStore::CreateWithoutTables(variables_, job_)
             : ParameterStore::Create(variables_, job_);
}

int GroupState::num_tables() const {
  return rows_ == TableStore::kPs ? 0 : job_.model().sparse_table_size();
}

void GroupState::Replace(std::unique_ptr<ParameterStore> parameters,
                         const Version& version) {
  absl::MutexLock data_lock(&data_mu_);
  if (this->version() >= version) return;
  const bool differs = parameters_ != nullptr &&
                       this->version().step == version.step &&
                       HaveOtherValues(*parameters_, *parameters);
  const absl::Status taken = Take(std::move(parameters));
  absl::MutexLock lock(&mu_);
  if (!taken.ok()) {
    if (ended_.ok()) ended_ = taken;
    version_ = Version();
    return;
  }
  // Gradients of this step have been computed from the other values, or will
  // be.
  if (differs && pulled_ == version.step && ended_.ok()) {
    ended_ = absl::UnavailableError(absl::StrCat(
        "another worker has other variables after step ", version.step,
        ", with updates that this one lacks: it has to start again"));
  }
  version_ = version;
}

void GroupState::Load(std::unique_ptr<ParameterStore> parameters,
                      int64_t step) {
  absl::MutexLock data_lock(&data_mu_);
  if (version().is_there()) return;
  const absl::Status taken = Take(std::move(parameters));
  if (!taken.ok()) return End(taken);
  SetVersion({.step = step});
}

GroupState::Version GroupState::version() const {
  absl::MutexLock lock(&mu_);
  return version_;
}

void GroupState::SetVersion(const Version& version) {
  absl::MutexLock lock(&mu_);
  version_ = version;
}

void GroupState::SetGoesOnAt(int64_t step) {
  absl::MutexLock lock(&mu_);
  goes_on_at_ = step;
}

int64_t GroupState::goes_on_at() const {
  absl::MutexLock lock(&mu_);
  return goes_on_at_;
}

void GroupState::GoOnAt(int64_t step) {
  absl::MutexLock data_lock(&data_mu_);
  const Version now = version();
  if (parameters_ == nullptr || now.step >= step) return;
  LOG(WARNING) << "variables "
               << (now.epoch == 0 ? "loaded at" : "that this worker kept from")
               << " step " << now.step << " go on at step " << step
               << ", where the tables are: the updates in between are lost";
  for (size_t i = 0; i < parameters_->num_variables(); ++i) {
    parameters_->variables().SetUpdates(i, step);
  }
  SetVersion({.step = step});
}

std::optional<absl::Status> GroupState::AwaitStep(int64_t step,
                                                  absl::Duration limit) {
  absl::MutexLock lock(&mu_);
  const auto has_result = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return version_.step >= step || !ended_.ok();
  };
  if (!clock_.AwaitWithTimeout(mu_, absl::Condition(&has_result), limit)) {
    return std::nullopt;
  }
  return version_.step >= step ? absl::OkStatus() : ended_;
}

void GroupState::End(const absl::Status& why) {
  absl::MutexLock lock(&mu_);
  if (ended_.ok()) ended_ = why;
}

absl::Status GroupState::ended() const {
  absl::MutexLock lock(&mu_);
  return ended_;
}

absl::StatusOr<int64_t> GroupState::Pull(
    TrainingParameters::PullRequest request) {
  // Whoever copies the variables meanwhile need not be waited for.
  if (request.targets.empty() && request.rows.empty()) {
    absl::MutexLock lock(&mu_);
    if (!version_.is_there()) return NotThere();
    return pulled_ = version_.step;
  }
  ReadLock data_lock(*this);
  if (parameters_ == nullptr) return NotThere();
  RETURN_IF_ERROR(parameters_->Pull(std::move(request))->Wait());
  absl::MutexLock lock(&mu_);
  pulled_ = version_.step;
  return version_.step;
}

absl::Status GroupState::AwaitNoHold() {
  absl::MutexLock lock(&mu_);
  const auto may_go_on = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return !held_ || version_.step < held_->step ||
           (IsStaying() && ends_steps_that_stay_);
  };
  while (!may_go_on() && held_->until > clock_.Now()) {
    clock_.AwaitWithTimeout(mu_, absl::Condition(&may_go_on),
                            std::min(held_->until - clock_.Now(), kHoldLimit));
  }
  if (!may_go_on()) held_.reset();
  if (!held_ || version_.step < held_->step) return absl::OkStatus();
  return absl::CancelledError(
      absl::StrCat("the worker is stopping, and its variables stay with the "
                   "checkpoint of step ",
                   held_->step));
}

absl::Status GroupState::MakeStep(
    int64_t epoch,
    absl::FunctionRef<absl::Status(ParameterStore& parameters)> update) {
  RETURN_IF_ERROR(AwaitNoHold());
  absl::MutexLock data_lock(&data_mu_);
  if (parameters_ == nullptr) return NotThere();
  const absl::Status updated = update(*parameters_);
  if (!updated.ok()) {
    parameters_ = nullptr;
    SetVersion(Version());
    return updated;
  }
  SetVersion({.step = version().step + 1, .epoch = epoch});
  return absl::OkStatus();
}

absl::Status GroupState::Read(
    absl::FunctionRef<absl::Status(ParameterStore& parameters)> read) {
  ReadLock data_lock(*this);
  if (parameters_ == nullptr) return NotThere();
  return read(*parameters_);
}

absl::StatusOr<int64_t> GroupState::Hold() {
  absl::MutexLock lock(&mu_);
  if (!version_.is_there()) return NotThere();
  if (IsStaying()) return version_.step;
  held_ = {.step = version_.step, .until = clock_.Now() + kHoldLimit};
  return version_.step;
}

absl::Status GroupState::AwaitCut(int64_t step,
                                  const std::function<bool()>& is_cancelled) {
  absl::MutexLock lock(&mu_);
  if (held_ && !IsStaying())
    held_ = {.step = step, .until = clock_.Now() + kHoldLimit};
  const auto is_there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return version_.step >= step || !ended_.ok();
  };
  while (!clock_.AwaitWithTimeout(mu_, absl::Condition(&is_there),
                                  kPollInterval)) {
    if (is_cancelled()) return absl::CancelledError("the chief waits no more");
    if (held_ && !IsStaying()) held_->until = clock_.Now() + kHoldLimit;
  }
  return version_.step >= step ? absl::OkStatus() : ended_;
}

absl::StatusOr<StoreSnapshot> GroupState::CopyAt(std::optional<int64_t> step) {
  if (parameters_ == nullptr) return NotThere();
  const int64_t had = version().step;
  if (step && had > *step) {
    return absl::AbortedError(absl::StrCat("this worker has had ", had,
                                           " steps, the cut is at ", *step));
  }
  return parameters_->TakeSnapshot();
}

absl::StatusOr<StoreSnapshot> GroupState::TakeSnapshot(
    std::optional<int64_t> step, const std::function<bool()>& is_cancelled,
    bool stays) {
  absl::Status there;
  if (step) there = AwaitCut(*step, is_cancelled);
  // No step is made while it is copied.
  ReadLock data_lock(*this);
  const int64_t had = version().step;
  absl::StatusOr<StoreSnapshot> snapshot =
      there.ok() ? CopyAt(step) : absl::StatusOr<StoreSnapshot>(there);
  absl::MutexLock lock(&mu_);
  if (stays && snapshot.ok()) {
    held_ = {.step = had, .until = absl::InfiniteFuture()};
  } else if (!IsStaying()) {
    held_.reset();
  }
  return snapshot;
}

void GroupState::GoOn() {
  absl::MutexLock lock(&mu_);
  if (IsStaying()) held_.reset();
}

bool GroupState::stays() const {
  absl::MutexLock lock(&mu_);
  return IsStaying();
}

void GroupState::EndStepsThatStay() {
  absl::MutexLock lock(&mu_);
  ends_steps_that_stay_ = true;
}

absl::StatusOr<durable::CheckpointFile> GroupState::Save(
    std::optional<int64_t> step, const std::string& path,
    const std::function<bool()>& is_cancelled, bool stays) {
  ASSIGN_OR_RETURN(StoreSnapshot snapshot,
                   TakeSnapshot(step, is_cancelled, stays));
  ASSIGN_OR_RETURN(const std::unique_ptr<ShardWriter> writer,
                   ShardWriter::Create(path));
  writer->SetWriter({.shard = 0, .num_shards = 1});
  RETURN_IF_ERROR(std::move(snapshot).Write(*writer));
  return writer->Finish();
}

}  // namespace parasol
