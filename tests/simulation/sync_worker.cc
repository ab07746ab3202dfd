#include "tests/simulation/sync_worker.h"

#include <algorithm>

#include "tests/simulation/job_of.h"

namespace parasol::simulation {
namespace {

// As worker/last_answers.h.
constexpr absl::Duration kLastPushLimit = absl::Seconds(1);

}  // namespace

SyncWorker::SyncWorker(World& world, int index, int number)
    : WorkerProcess(world, index, number),
      claims_(world, *this, [this] { OnNews(); }),
      next_sequence_(world.schedule().shape.ps, 1) {}

void SyncWorker::OnNews() {
  if (has_failed()) return;
  if (!claims_.failure().ok()) return Fail(claims_.failure());
  // A replica may have become this worker's during the step.
  if (stage_ == Stage::kInStep) return ComputeNext();
  BeginStep();
}

// A step that is begun is computed and pushed, as MayAwaitLastPushes() has it.
bool SyncWorker::Drain() {
  is_ending_ = true;
  if (stage_ != Stage::kInStep) return true;
  if (is_computing_) return false;
  const absl::Time now = world().Now(*this);
  stopped_at_ = std::min(stopped_at_, now);
  return now - stopped_at_ >= kLastPushLimit;
}

void SyncWorker::BeginStep() {
  if (is_ending_ || stage_ != Stage::kIdle || !claims_.HasWork()) return;
  stage_ = Stage::kPulling;
  PullValues(claims_.share().completed_steps);
}

void SyncWorker::PullValues(int64_t min_step) {
  const int shards = world().schedule().shape.ps;
  step_ = min_step;
  pulled_ = {.min = INT64_MAX, .max = 0};
  unanswered_ = shards;
  for (int shard = 0; shard < shards; ++shard) {
    Operation pull;
    pull.min_updates = min_step;
    Send(shard, pull, [this](const OperationResult& result) {
      pulled_.min = std::min(pulled_.min, result.updates.min);
      pulled_.max = std::max(pulled_.max, result.updates.max);
      if (--unanswered_ == 0) HaveValues();
    });
  }
}

void SyncWorker::HaveValues() {
  claims_.Complete(pulled_.max);
  // Some chunks may be a step further.
  if (pulled_.min < pulled_.max) return PullValues(pulled_.max);
  step_ = pulled_.max;
  stage_ = Stage::kIdle;
  if (step_ >= claims_.share().end_step) return BeginStep();
  stage_ = Stage::kInStep;
  computed_.clear();
  pushed_.clear();
  world().Trace(this, "begins step ", step_);
  ComputeNext();
}

void SyncWorker::ComputeNext() {
  if (is_computing_) return;
  for (const int replica : claims_.share().replicas) {
    if (computed_.contains(replica)) continue;
    computed_.insert(replica);
    is_computing_ = true;
    const absl::Duration compute = world().schedule().shape.compute;
    return world().After(*this,
                         world().random().Between(compute / 2, compute * 1.5),
                         [this, replica] {
                           is_computing_ = false;
                           if (has_failed()) return;
                           Push(replica);
                           ComputeNext();
                         });
  }
  claims_.Pushed(step_ + 1);
  OnPushed();
}

void SyncWorker::Push(int replica) {
  pushed_.insert(replica);
  for (int shard = 0; shard < world().schedule().shape.ps; ++shard) {
    PushTo(shard, replica);
  }
}

// Each chunk gets its part of the gradient in a message of its own.
void SyncWorker::PushTo(int shard, int replica) {
  for (int chunk = 0; chunk < kChunksPerShard; ++chunk) {
    Operation push;
    push.sequence = next_sequence_[shard]++;
    push.chunk = chunk;
    push.push = {.step = step_, .replica = replica};
    ++unanswered_;
    Send(shard, push, [this](const OperationResult&) {
      --unanswered_;
      OnPushed();
    });
  }
}

// What the process before had acknowledged may be lost with it.
void SyncWorker::OnMoved() {
  if (stage_ != Stage::kInStep || !world().rules().worker_pushes_again) return;
  for (const int replica : pushed_) {
    for (int shard = 0; shard < world().schedule().shape.ps; ++shard) {
      PushTo(shard, replica);
    }
  }
}

void SyncWorker::OnPushed() {
  const bool is_waiting =
      stage_ == Stage::kInStep && !is_computing_ && unanswered_ == 0;
  if (!is_waiting || computed_.empty()) return;
  stage_ = Stage::kIdle;
  claims_.Complete(step_ + 1);
  BeginStep();
}

}  // namespace parasol::simulation
