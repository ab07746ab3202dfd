#include "loop/core/variable_state.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "loop/core/reduce.h"
#include "loop/core/shared_push.h"
#include "ml/tape/operations.h"
#include "ml/tape/tape.h"

namespace parasol::loop {
namespace {

Tensor Changed(const Tensor& value, VariableState::Change change,
               const Tensor& by) {
  if (change == VariableState::Change::kAssign) return StopGradient(by);
  return StopGradient(change == VariableState::Change::kAdd ? value + by
                                                            : value - by);
}

Tensor OrError(absl::StatusOr<Tensor> value) {
  return value.ok() ? *std::move(value) : Tensor::Error(value.status());
}

}  // namespace

VariableState::VariableState(VariableSpec spec, Aggregation aggregation,
                             Synchronization synchronization, Tensor value,
                             World& world)
    : spec_(std::move(spec)),
      shape_(value.shape()),
      aggregation_(aggregation),
      synchronization_(synchronization),
      world_(world),
      values_(world.num_local(), value) {}

absl::Status VariableState::CheckWorld() const {
  const World* const current = World::Current();
  if (current == nullptr || current == &world_) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "variable ", spec_.name,
      " is used in a step of another strategy than it was made under: make it "
      "while the scope of that step's strategy is open"));
}

Tensor VariableState::Read() {
  const absl::Status ours = CheckWorld();
  if (!ours.ok()) return Tensor::Error(ours);
  const int local = world_.current_local();
  if (local >= 0) return values_[local];
  if (is_with_ps() && world_.peers().shared() != nullptr) {
    VariableState* const own = this;
    const absl::Status pulled =
        PullShared(absl::MakeConstSpan(&own, 1), *world_.peers().shared());
    if (!pulled.ok()) return Tensor::Error(pulled);
  }
  return synchronization_ == Synchronization::kOnRead ? Aggregated(values_)
                                                      : values_[0];
}

Tensor VariableState::ReadSaved() {
  return aggregation_ == Aggregation::kNone ? values_[0] : Read();
}

Tensor VariableState::Aggregated(std::vector<Tensor> locals) {
  if (aggregation_ == Aggregation::kNone) {
    return Tensor::Error(absl::InvalidArgumentError(absl::StrCat(
        "variable ", spec_.name,
        " has a value of each replica and no aggregation: read it in a step, "
        "or choose kSum, kMean or kOnlyFirstReplica")));
  }
  const absl::StatusOr<std::vector<Tensor>> all = GatherValues(
      absl::StrCat("variable ", spec_.name), std::move(locals), world_.peers());
  if (!all.ok()) return Tensor::Error(all.status());
  if (aggregation_ == Aggregation::kOnlyFirstReplica) return all->front();
  return OrError(ReduceValues(aggregation_ == Aggregation::kMean, *all));
}

absl::Status VariableState::Apply(Change change, const Tensor& by) {
  RETURN_IF_ERROR(CheckWorld());
  RETURN_IF_ERROR(CheckFits(by));
  RETURN_IF_ERROR(CheckMayChange(change));
  const int local = world_.current_local();
  if (local < 0) return ApplyOutside(change, by);
  if (!has_own_values()) return ApplyTogether(local, change, by);
  values_[local] = Changed(values_[local], change, by);
  return values_[local].status();
}

absl::Status VariableState::CheckFits(const Tensor& by) const {
  RETURN_IF_ERROR(by.status()) << "variable " << spec_.name;
  if (by.dtype() == DType::kFloat32 && by.shape() == shape_) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "variable ", spec_.name, " has the shape ", shape_.ToString(),
      ", and what is assigned ", by.shape().ToString(),
      by.dtype() == DType::kFloat32 ? "" : ", of int64"));
}

absl::Status VariableState::ApplyTogether(int local, Change change,
                                          const Tensor& by) {
  const std::string what = absl::StrCat("variable ", spec_.name);
  return world_.Meet(
      local, what, &by,
      [&](absl::Span<const void* const> brought) -> absl::Status {
        std::vector<Tensor> locals;
        for (const void* one : brought) {
          locals.push_back(*static_cast<const Tensor*>(one));
        }
        const Tensor total = Aggregated(std::move(locals));
        RETURN_IF_ERROR(total.status()) << what;
        if (is_with_ps()) return ApplyShared(change, total);
        const Tensor changed = Changed(values_[0], change, total);
        RETURN_IF_ERROR(changed.status()) << what;
        SetAll(changed);
        return absl::OkStatus();
      });
}

absl::Status VariableState::ApplyOutside(Change change, const Tensor& by) {
  if (synchronization_ == Synchronization::kOnRead &&
      aggregation_ == Aggregation::kSum && change != Change::kAssign) {
    return absl::FailedPreconditionError(absl::StrCat(
        "variable ", spec_.name,
        " is a sum over replicas: outside of a step it can be assigned, but "
        "not changed by an amount"));
  }
  if (is_with_ps()) return ApplyShared(change, by);
  if (change == Change::kAssign) {
    Restore(by);
    return absl::OkStatus();
  }
  for (Tensor& value : values_) value = Changed(value, change, by);
  return absl::OkStatus();
}

absl::Status VariableState::CheckMayChange(Change change) const {
  if (trainer_ == nullptr || !is_shared()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "variable ", spec_.name, " is ",
      change == Change::kAssign ? "assigned" : "changed",
      ", but ps hold it and its optimizer changes it there: under "
      "parameter_server leave other changes to variables that no optimizer "
      "has"));
}

// A ps subtracts what is pushed. What is assigned is a change, too: that from
// the value which this worker knows.
absl::Status VariableState::ApplyShared(Change change, const Tensor& by) {
  const Tensor subtracted = change == Change::kAssign ? values_[0] - by
                            : change == Change::kAdd  ? -by
                                                      : by;
  RETURN_IF_ERROR(subtracted.status()) << "variable " << spec_.name;
  const SharedGradient gradient = {.variable = this,
                                   .values = subtracted.values()};
  if (world_.peers().shared() == nullptr) return JobIsComplete();
  RETURN_IF_ERROR(
      PushShared(absl::MakeConstSpan(&gradient, 1), *world_.peers().shared()))
      << "variable " << spec_.name;
  return absl::OkStatus();
}

void VariableState::SetAll(const Tensor& value) {
  for (Tensor& own : values_) own = value;
}

void VariableState::Restore(const Tensor& value) {
  const bool is_divided = synchronization_ == Synchronization::kOnRead &&
                          aggregation_ == Aggregation::kSum;
  SetAll(StopGradient(
      is_divided ? value / static_cast<float>(world_.num_replicas()) : value));
}

}  // namespace parasol::loop
