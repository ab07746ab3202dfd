#include "worker/group/state/group_state.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "storage/shard_writer.h"

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
      rows_(rows),
      elsewhere_(elsewhere),
      steps_(clock) {
  CHECK(elsewhere_ == nullptr || num_tables() == 0);
}

GroupState::GroupState(ParameterStore& like, Clock& clock)
    : variables_(like.variables().specs()),
      job_(like.job()),
      rows_(TableStore::kPs),
      elsewhere_(nullptr),
      like_(&like),
      steps_(clock) {}

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
  if (like_ != nullptr) return StoreLike(*like_);
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
  if (!taken.ok()) {
    steps_.End(taken);
    return steps_.Set(Version());
  }
  steps_.Replace(version, differs);
}

void GroupState::Load(std::unique_ptr<ParameterStore> parameters,
                      int64_t step) {
  absl::MutexLock data_lock(&data_mu_);
  if (version().is_there()) return;
  const absl::Status taken = Take(std::move(parameters));
  if (!taken.ok()) return steps_.End(taken);
  steps_.Set({.step = step});
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
  steps_.Set({.step = step});
}

absl::StatusOr<int64_t> GroupState::Pull(
    TrainingParameters::PullRequest request) {
  // Whoever copies the variables meanwhile need not be waited for.
  if (request.targets.empty() && request.rows.empty()) {
    return steps_.NotePull();
  }
  ReadLock data_lock(*this);
  if (parameters_ == nullptr) return NotThere();
  RETURN_IF_ERROR(parameters_->Pull(std::move(request))->Wait());
  return steps_.NotePull();
}

absl::Status GroupState::MakeStep(
    int64_t epoch,
    absl::FunctionRef<absl::Status(ParameterStore& parameters)> update) {
  RETURN_IF_ERROR(steps_.AwaitNoHold());
  absl::MutexLock data_lock(&data_mu_);
  if (parameters_ == nullptr) return NotThere();
  const absl::Status updated = update(*parameters_);
  if (!updated.ok()) {
    parameters_ = nullptr;
    steps_.Set(Version());
    return updated;
  }
  steps_.Set({.step = version().step + 1, .epoch = epoch});
  return absl::OkStatus();
}

absl::Status GroupState::Read(
    absl::FunctionRef<absl::Status(ParameterStore& parameters)> read) {
  ReadLock data_lock(*this);
  if (parameters_ == nullptr) return NotThere();
  return read(*parameters_);
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
  if (step) there = steps_.AwaitCut(*step, is_cancelled);
  // No step is made while it is copied.
  ReadLock data_lock(*this);
  absl::StatusOr<StoreSnapshot> snapshot =
      there.ok() ? CopyAt(step) : absl::StatusOr<StoreSnapshot>(there);
  steps_.EndCut(stays && snapshot.ok());
  return snapshot;
}

absl::StatusOr<durable::CheckpointFile> SaveState(
    GroupState& state, std::optional<int64_t> step, const std::string& path,
    const std::function<bool()>& is_cancelled, bool stays) {
  ASSIGN_OR_RETURN(StoreSnapshot snapshot,
                   state.TakeSnapshot(step, is_cancelled, stays));
  ASSIGN_OR_RETURN(const std::unique_ptr<ShardWriter> writer,
                   ShardWriter::Create(path));
  writer->SetWriter({.shard = 0, .num_shards = 1});
  RETURN_IF_ERROR(std::move(snapshot).Write(*writer));
  return writer->Finish();
}

}  // namespace parasol
