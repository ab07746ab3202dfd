// The part of the parameters that makes steps with a group.
#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/replica_sum/first_non_finite.h"
#include "cluster/replica_sum/vector_sum.h"
#include "worker/mirrored/encoded_rows.h"
#include "worker/mirrored/mirrored_parameters.h"
#include "worker/mirrored/state_transfer.h"
#include "worker/mirrored/wait_intervals.h"

namespace parasol {
absl::Status MirroredParameters::MakeSteps(const Group& group,
                                           Collective& collective) {
  const absl::Status agreed = AgreeOnState(
      collective, state_, [&] { return NoteLoading(group); }, clock_);
  if (!agreed.ok()) {
    // The group goes on: it is this worker that can't take the variables.
    if (!absl::IsCancelled(agreed) && collective.status().ok()) {
      state_.End(agreed);
    }
    return agreed;
  }
  RETURN_IF_ERROR(state_.ended());
  RETURN_IF_ERROR(MeetDevices(group, collective));
  {
    absl::MutexLock lock(&mu_);
    makes_steps_ = true;
    has_agreed_ = true;
  }
  LOG(INFO) << "summing gradients of " << absl::StrJoin(group.names, ", ")
            << " from step " << state_.version().step << " on; this worker "
            << "computes replica " << absl::StrJoin(group.replicas, ", ");
  while (true) RETURN_IF_ERROR(MakeStep(group, collective));
}

absl::Status MirroredParameters::MakeStep(const Group& group,
                                          Collective& collective) {
  const int64_t step = state_.version().step;
  tables_made_.reset();
  AskWhoIsThere(group, step, collective);
  if (options_.on_devices.empty()) {
    RETURN_IF_ERROR(SumPacks(group, step, collective));
    RETURN_IF_ERROR(LetRowsLeave(group, step, collective));
  } else {
    RETURN_IF_ERROR(SumOnDevices(group, step, collective));
  }
  RETURN_IF_ERROR(collective.Await());
  RETURN_IF_ERROR(AwaitTables(group, collective));
  RETURN_IF_ERROR(CheckOthersRows(collective));
  absl::Status made = CheckFinite(step);
  if (made.ok()) {
    made = state_.MakeStep(group.version, [this](LocalParameters& parameters) {
      return Apply(parameters);
    });
  }
  // No other group mends it.
  if (!made.ok()) state_.End(made);
  absl::MutexLock lock(&mu_);
  last_end_ = absl::OkStatus();
  return made;
}

// A peer that was told to stop, too, may be gone before this worker knows that
// it has its answers. Without the step no checkpoint would have tables and
// variables of the same step.
void MirroredParameters::MakeLeftStep() {
  if (!tables_made_ || state_.version().step != tables_made_->step) return;
  if (!CheckFinite(tables_made_->step).ok()) return;
  const absl::Status made = state_.MakeStep(
      tables_made_->group,
      [this](LocalParameters& parameters) { return Apply(parameters); });
  if (!made.ok()) state_.End(made);
}

Collective::Done MirroredParameters::CountPending(const Group& group) {
  absl::MutexLock lock(&mu_);
  ++pending_;
  return [this, version = group.version](const absl::Status& result) {
    absl::MutexLock lock(&mu_);
    --pending_;
    if (!result.ok()) failed_ = version;
  };
}

// A pack leaves as soon as the last of this worker's replicas has its
// gradients, while their backward pass goes on.
absl::Status MirroredParameters::SumPacks(const Group& group, int64_t step,
                                          Collective& collective) {
  for (size_t pack = 0; pack < sums_.size(); ++pack) {
    RETURN_IF_ERROR(AwaitGradients(group, collective, [&] {
      mu_.AssertHeld();
      return gradients_.HasPack(step, pack, group.replicas);
    }));
    std::vector<Contribution> contributions;
    {
      absl::MutexLock lock(&mu_);
      contributions = gradients_.ContributionsTo(pack, group.replicas);
    }
    collective.AllReduce(std::move(contributions), absl::MakeSpan(sums_[pack]),
                         CountPending(group));
    if ((pack + 1) % (Collective::kMaxPending / 2) == 0) {
      RETURN_IF_ERROR(collective.Await());
    }
  }
  return absl::OkStatus();
}

absl::Status MirroredParameters::LetRowsLeave(const Group& group, int64_t step,
                                              Collective& collective) {
  RETURN_IF_ERROR(GatherRows(group, step, collective));
  return SendRows(group, step, collective);
}

absl::Status MirroredParameters::GatherRows(const Group& group, int64_t step,
                                            Collective& collective) {
  for (size_t table = 0; table < rows_.size(); ++table) {
    RETURN_IF_ERROR(AwaitGradients(group, collective, [&] {
      mu_.AssertHeld();
      return gradients_.HasRows(step, table, group.replicas);
    }));
    std::string rows;
    {
      absl::MutexLock lock(&mu_);
      rows = gradients_.RowsOf(table, group.replicas);
    }
    collective.AllGather(rows, &rows_[table], CountPending(group));
    if ((table + 1) % (Collective::kMaxPending / 2) == 0) {
      RETURN_IF_ERROR(collective.Await());
    }
  }
  return absl::OkStatus();
}

// Before the step is made: a step is not made in part, and another connection
// may bring them whole.
absl::Status MirroredParameters::CheckOthersRows(Collective& collective) {
  for (size_t table = 0; table < rows_.size(); ++table) {
    const absl::Status right = CheckRows(
        rows_[table], state_.job().model().sparse_table(table).width(),
        options_.replicas);
    if (right.ok()) continue;
    collective.Abort(absl::UnavailableError(right.message()));
    return collective.status();
  }
  return absl::OkStatus();
}

// The answer is there long before the gradients are.
void MirroredParameters::AskWhoIsThere(const Group& group, int64_t step,
                                       Collective& collective) {
  if (options_.tables == nullptr || !options_.tables->in_step()) return;
  const Collective::Done count = CountPending(group);
  collective.AllGather("", &nothing_,
                       [this, step, count](const absl::Status& result) {
                         if (result.ok()) {
                           absl::MutexLock lock(&mu_);
                           all_began_ = step;
                         }
                         count(result);
                       });
}

absl::Status MirroredParameters::SendRows(const Group& group, int64_t step,
                                          Collective& collective) {
  TablePushes* const tables = options_.tables;
  if (tables == nullptr) return absl::OkStatus();
  if (tables->in_step()) {
    RETURN_IF_ERROR(AwaitGradients(group, collective, [&] {
      mu_.AssertHeld();
      return all_began_ == step;
    }));
  }
  return EndIfNotDone(collective, tables->Send(step, group.replicas, [&] {
    return CheckMayGoOn(group, collective);
  }));
}

absl::Status MirroredParameters::AwaitTables(const Group& group,
                                             Collective& collective) {
  TablePushes* const tables = options_.tables;
  if (tables == nullptr) return absl::OkStatus();
  // Once they were sent a step may still end within the finish limit.
  RETURN_IF_ERROR(EndIfNotDone(
      collective, tables->AwaitAnswers([&] { return collective.status(); })));
  if (!tables->in_step()) return absl::OkStatus();
  tables_made_ =
      TablesMade{.step = state_.version().step, .group = group.version};
  // All have their answers: nobody waits for them in a step that others have
  // made.
  std::vector<std::string> nothing;
  collective.AllGather("", &nothing, [](const absl::Status&) {});
  return collective.Await();
}

// The group goes on: it is this worker's pushes that can't.
absl::Status MirroredParameters::EndIfNotDone(Collective& collective,
                                              const absl::Status& pushed) {
  if (!pushed.ok() && !absl::IsCancelled(pushed) && collective.status().ok()) {
    state_.End(pushed);
  }
  return pushed;
}

absl::Status MirroredParameters::CheckMayGoOn(const Group& group,
                                              Collective& collective) {
  {
    absl::MutexLock lock(&mu_);
    if (IsOver(group)) return SupersededError();
  }
  return collective.status();
}

absl::Status MirroredParameters::AwaitGradients(
    const Group& group, Collective& collective,
    const std::function<bool()>& are_there) {
  while (true) {
    {
      absl::MutexLock lock(&mu_);
      const auto has_news = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
        return are_there() || failed_ == group.version || IsOver(group);
      };
      clock_.AwaitWithTimeout(mu_, absl::Condition(&has_news), kPollInterval);
      const bool has_failed = failed_ == group.version;
      if (are_there() && !has_failed && heard_ == group.version) {
        return absl::OkStatus();
      }
      if (IsOver(group)) return SupersededError();
    }
    RETURN_IF_ERROR(collective.status());
  }
}

absl::Status MirroredParameters::CheckFinite(int64_t step) {
  const job::WorkerSettings& worker = state_.job().worker();
  if (worker.non_finite_loss() == job::WorkerSettings::CONTINUE) {
    return absl::OkStatus();
  }
  if (options_.variables_on_device != nullptr) {
    DeviceGradients& gradients = *options_.on_devices.front();
    ASSIGN_OR_RETURN(const bool has_non_finite, gradients.HasNonFinite());
    if (!has_non_finite) return absl::OkStatus();
    // To name one.
    RETURN_IF_ERROR(gradients.FetchSum());
    for (size_t i = sums_.size(); i < packs_.count(); ++i) {
      sums_.emplace_back(packs_.elements(i));
    }
    gradients.CopyTo(packs_, sums_);
  }
  return CheckSumsFinite(step);
}

absl::Status MirroredParameters::CheckSumsFinite(int64_t step) const {
  for (size_t i = 0; i < packs_.num_variables(); ++i) {
    if (state_.variables()[i].frozen) continue;
    const absl::Span<const float> sum =
        packs_.ValuesOf(i, sums_[packs_.place(i).pack]);
    const size_t element = FirstNonFinite(
        reinterpret_cast<const std::byte*>(sum.data()), sum.size());
    if (element == sum.size()) continue;
    return absl::OutOfRangeError(absl::StrCat(
        "the gradient of \"", state_.variables()[i].name, "\" in step ", step,
        " is not finite at element ", element,
        ": lower the learning rate, or set worker.non_finite_loss: CONTINUE"));
  }
  return absl::OkStatus();
}

absl::Status MirroredParameters::Apply(LocalParameters& parameters) {
  if (options_.variables_on_device != nullptr) return ApplyOnDevice();
  const float replicas = static_cast<float>(options_.replicas);
  for (std::vector<float>& sum : sums_) {
    DivideBy(absl::MakeSpan(sum), replicas);
  }
  for (size_t i = 0; i < parameters.num_variables(); ++i) {
    if (!state_.variables()[i].frozen) {
      parameters.ApplyBlock(i, /*first=*/0,
                            packs_.ValuesOf(i, sums_[packs_.place(i).pack]));
    }
    parameters.CountUpdate(i);
  }
  for (size_t table = 0; table < rows_.size(); ++table) {
    ASSIGN_OR_RETURN(const RowGradients means,
                     MeansOfRows(rows_[table], parameters.table_width(table),
                                 options_.replicas, *row_sums_[table]));
    RETURN_IF_ERROR(parameters.ApplyRows(table, means.ids, means.values));
  }
  return absl::OkStatus();
}

}  // namespace parasol
