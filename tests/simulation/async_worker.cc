#include "tests/simulation/async_worker.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"

namespace parasol::simulation {

AsyncWorker::AsyncWorker(World& world, int index, int number)
    : WorkerProcess(world, index, number),
      claims_(world, *this, [this] { OnNews(); }),
      next_sequence_(world.schedule().shape.ps, 1) {}

void AsyncWorker::OnNews() {
  if (has_failed()) return;
  if (!claims_.failure().ok()) return Fail(claims_.failure());
  StartSteps();
}

bool AsyncWorker::Drain() {
  is_ending_ = true;
  return !is_computing_ &&
         std::none_of(steps_.begin(), steps_.end(), [](const Step& step) {
           return step.is_computed && !step.is_pushed;
         });
}

void AsyncWorker::StartSteps() {
  if (is_ending_) return;
  const auto limit = static_cast<size_t>(world().schedule().shape.overlap);
  while (steps_.size() < limit) {
    const std::optional<int64_t> batch = claims_.TryStart();
    if (!batch) return;
    if (world().schedule().shape.growth > 0 && !claims_.HasFileOf(*batch)) {
      world().auditor().Violate("batch without a file",
                                absl::StrCat("batch ", *batch));
    }
    Step& step = steps_.emplace_back();
    step.id = world().auditor().StepStarts(incarnation(), *batch);
    world().Trace(this, "begins batch ", *batch);
    Pull(step);
  }
}

void AsyncWorker::Pull(Step& step) {
  const int shards = world().schedule().shape.ps;
  step.unanswered = shards;
  for (int shard = 0; shard < shards; ++shard) {
    Send(shard, {}, [this, &step](const OperationResult&) {
      if (--step.unanswered > 0) return;
      step.has_values = true;
      ComputeNext();
    });
  }
}

// One step computes at a time, in their order.
void AsyncWorker::ComputeNext() {
  if (is_computing_ || is_ending_) return;
  for (Step& step : steps_) {
    if (!step.has_values) return;
    if (step.is_computed) continue;
    is_computing_ = true;
    const absl::Duration compute = world().schedule().shape.compute;
    return world().After(*this,
                         world().random().Between(compute / 2, compute * 1.5),
                         [this, &step] {
                           is_computing_ = false;
                           step.is_computed = true;
                           Push(step);
                           ComputeNext();
                         });
  }
}

void AsyncWorker::Push(Step& step) {
  const int shards = world().schedule().shape.ps;
  step.unanswered = shards;
  for (int shard = 0; shard < shards; ++shard) {
    Operation push;
    push.sequence = next_sequence_[shard]++;
    push.step = step.id;
    Send(shard, push, [this, &step](const OperationResult&) {
      if (--step.unanswered > 0) return;
      step.is_pushed = true;
      CompleteSteps();
    });
  }
}

void AsyncWorker::CompleteSteps() {
  while (!steps_.empty() && steps_.front().is_pushed) {
    world().auditor().StepCompletes(steps_.front().id);
    steps_.pop_front();
    claims_.Complete();
  }
  StartSteps();
}

}  // namespace parasol::simulation
