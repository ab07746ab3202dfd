#include "cluster/collective/plan/plan_run.h"

#include <optional>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cluster/collective/plan/ordered_sum.h"

namespace parasol {
namespace {

// Few enough addends for the stack; larger sums have their own memory.
using Addends = absl::InlinedVector<const float*, 16>;

}  // namespace

PlanRun::PlanRun(std::shared_ptr<const CollectivePlan> plan,
                 std::vector<std::byte*> buffers)
    : plan_(std::move(plan)),
      buffers_(std::move(buffers)),
      is_done_(plan_->steps().size()),
      open_(plan_->steps().size()) {
  for (const CollectiveStep& step : plan_->steps()) {
    waits_for_.push_back(step.waits_for);
  }
}

void PlanRun::Begin(std::vector<Send>& sends) {
  for (size_t step = 0; step < plan_->steps().size(); ++step) {
    const int number = static_cast<int>(step);
    if (plan_->steps()[step].waits_for > 0) continue;
    if (BeginStep(number, sends)) Complete(number, sends);
  }
}

absl::StatusOr<std::byte*> PlanRun::Target(int peer, uint64_t piece,
                                           size_t bytes) const {
  const std::optional<int> step = plan_->FindReceive(peer, piece);
  if (!step.has_value() || is_done_[*step] || waits_for_[*step] > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("piece ", piece, " of ", bytes, " bytes is not due"));
  }
  const Region& region = plan_->steps()[*step].region;
  if (region.bytes == bytes) return At(region);
  return absl::InvalidArgumentError(absl::StrCat(
      "piece ", piece, " has ", bytes, " bytes, must be ", region.bytes));
}

void PlanRun::Received(int peer, uint64_t piece, std::vector<Send>& sends) {
  Complete(*plan_->FindReceive(peer, piece), sends);
}

void PlanRun::Complete(int step, std::vector<Send>& sends) {
  is_done_[step] = true;
  --open_;
  for (const int next : plan_->steps()[step].next) {
    if (--waits_for_[next] == 0 && BeginStep(next, sends)) {
      Complete(next, sends);
    }
  }
}

bool PlanRun::BeginStep(int step, std::vector<Send>& sends) {
  const CollectiveStep& begun = plan_->steps()[step];
  if (begun.kind == CollectiveStep::Kind::kReceive) return false;
  std::byte* const memory = At(begun.region);
  if (begun.kind == CollectiveStep::Kind::kSend) {
    sends.push_back(
        {step, begun.peer, begun.piece, {memory, begun.region.bytes}});
    return false;
  }
  Addends addends;
  for (const Region& region : begun.addends) {
    addends.push_back(reinterpret_cast<const float*>(At(region)));
  }
  SumInOrder(addends, {reinterpret_cast<float*>(memory),
                       begun.region.bytes / sizeof(float)});
  return true;
}

}  // namespace parasol
