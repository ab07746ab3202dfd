#include "tests/simulation/auditor.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cluster/checkpoint/evaluation_decisions.h"

namespace parasol::simulation {
namespace {

// Returns true if a worker may lose its lease, after which nobody waits for it
// and its batches are others'.
bool MayLoseLeases(const Schedule& schedule) {
  return schedule.Hits("worker") || schedule.Has(Fault::Kind::kLoss) ||
         schedule.Has(Fault::Kind::kStopAll) ||
         schedule.Has(Fault::Kind::kCutFromAll, "chief") ||
         schedule.Has(Fault::Kind::kCutFromChief, "chief") ||
         schedule.Has(Fault::Kind::kReplace, "chief");
}

}  // namespace

Auditor::Auditor(const Schedule& schedule)
    : schedule_(schedule),
      checks_staleness_(schedule.shape.mode == Shape::Mode::kBoundedStaleness &&
                        !MayLoseLeases(schedule)),
      shards_(schedule.shape.ps) {}

void Auditor::Violate(const std::string& kind, const std::string& what) {
  if (!violation_) violation_ = Violation{kind, what};
}

void Auditor::WorkerEnters(uint64_t worker) {
  workers_[worker];
  // The clock of one that comes later starts higher: only the ledger knows.
  if (!steps_.empty()) checks_staleness_ = false;
}

void Auditor::WorkerLeaves(uint64_t worker) {
  const auto it = workers_.find(worker);
  if (it != workers_.end()) it->second.has_left = true;
}

StepId Auditor::StepStarts(uint64_t worker, int64_t batch) {
  const auto id = static_cast<StepId>(steps_.size());
  steps_.push_back({worker, batch});
  Worker& starts = workers_[worker];
  starts.steps.push_back(id);
  if (checks_staleness_) CheckStaleness(starts);
  return id;
}

// A worker may begin a step when the slowest one is at most `bound` behind.
void Auditor::CheckStaleness(const Worker& worker) {
  const int64_t done = static_cast<int64_t>(worker.steps.size()) - 1;
  for (const auto& [incarnation, other] : workers_) {
    const bool is_near = done - other.completed <= schedule_.shape.bound;
    if (other.has_left || is_near) continue;
    return Violate("staleness bound",
                   absl::StrCat("a worker begins step ", done + 1,
                                " while another one has done ", other.completed,
                                ", bound ", schedule_.shape.bound));
  }
}

void Auditor::StepCompletes(StepId step) {
  steps_[step].completed = true;
  ++workers_[steps_[step].worker].completed;
  ++completed_;
}

void Auditor::StepReached(int64_t updates) {
  completed_ = std::max(completed_, updates);
}

void Auditor::Loaded(int ps, const ShardValues& values,
                     const ShardValues* held) {
  Shard& shard = shards_[values.shard];
  if (held != nullptr && held->run_id == values.run_id &&
      held->layout == values.layout && ps == shard.holder) {
    Violate("needless load",
            absl::StrCat("ps ", values.shard,
                         " is loaded again, and loses what it had"));
  }
  shard.holder = ps;
  CheckAcknowledged(values);
  shard.lost.AddDifference(shard.acknowledged, values.applied);
}

void Auditor::Applied(int ps, const ShardValues& values, StepId step,
                      bool is_duplicate) {
  Shard& shard = shards_[values.shard];
  const bool was_applied = values.applied.Contains(step);
  if (was_applied != is_duplicate) {
    Violate(is_duplicate ? "push dropped" : "push applied twice",
            absl::StrCat("ps ", values.shard, ", step ", step));
  }
  if (schedule_.shape.replicates) return;
  shard.acknowledged.Add(step);
  // Nobody will see it there.
  if (ps != shard.holder) shard.lost.Add(step);
}

void Auditor::Acknowledged(int ps, int shard, StepId step, bool is_alone) {
  Shard& of = shards_[shard];
  of.acknowledged.Add(step);
  if (ps == of.holder || !is_alone) return;
  // Nobody will see it there.
  of.lost.Add(step);
  of.excused.Add(step);
}

void Auditor::Excuse(int shard) {
  shards_[shard].excused = shards_[shard].acknowledged;
}

void Auditor::CheckAcknowledged(const ShardValues& values) {
  if (!schedule_.shape.replicates) return;
  const Shard& shard = shards_[values.shard];
  for (StepId step = 0; step < steps_.size(); ++step) {
    if (!shard.acknowledged.Contains(step) || shard.excused.Contains(step) ||
        values.applied.Contains(step)) {
      continue;
    }
    return Violate("acknowledged update lost",
                   absl::StrCat("ps ", values.shard, ", step ", step));
  }
}

void Auditor::PsLeaves(int ps, const ShardValues& values,
                       const Checkpoint* newest) {
  const Shard& shard = shards_[values.shard];
  if (ps != shard.holder || schedule_.Has(Fault::Kind::kDamage)) return;
  for (StepId step = 0; step < steps_.size(); ++step) {
    if (!shard.acknowledged.Contains(step) || shard.lost.Contains(step) ||
        shard.excused.Contains(step)) {
      continue;
    }
    if (newest != nullptr &&
        newest->files[values.shard]->applied.Contains(step)) {
      continue;
    }
    return Violate("update lost with a ps that left",
                   absl::StrCat("ps ", values.shard, ", step ", step));
  }
}

void Auditor::Stopped(const Checkpoint* newest) {
  const int64_t step = newest == nullptr ? 0 : newest->manifest.global_step();
  if (schedule_.shape.mode == Shape::Mode::kSynchronous ||
      schedule_.shape.mode == Shape::Mode::kGroup) {
    // Workers may make the step whose gradients are on their way at the cut.
    const int64_t behind = schedule_.shape.mode == Shape::Mode::kGroup ? 1 : 0;
    if (step + behind >= completed_) return;
    return Violate("update lost by a stop",
                   absl::StrCat("the newest checkpoint is of step ", step, ", ",
                                completed_, " were done"));
  }
  for (size_t shard = 0; shard < shards_.size(); ++shard) {
    for (StepId id = 0; id < steps_.size(); ++id) {
      const bool is_saved =
          newest != nullptr && newest->files[shard]->applied.Contains(id);
      if (!shards_[shard].acknowledged.Contains(id) || is_saved) continue;
      return Violate("update lost by a stop",
                     absl::StrCat("ps ", shard, ", step ", id,
                                  ", the newest checkpoint is of step ", step));
    }
  }
}

void Auditor::ChiefStarts(int chief) {
  newest_chief_ = std::max(newest_chief_, chief);
  // A worker that has heard nothing yet comes new to the next chief.
  for (const auto& [incarnation, worker] : workers_) {
    if (!worker.has_left && !worker.is_answered) checks_staleness_ = false;
  }
}

void Auditor::Credited(int64_t global_step) {
  if (global_step <= completed_) return;
  Violate("credited more than done",
          absl::StrCat("the chief counts ", global_step, " steps, ", completed_,
                       " were done"));
}

void Auditor::Committed(int chief, const Checkpoint& checkpoint) {
  const durable::CheckpointManifest& manifest = checkpoint.manifest;
  if (chief < newest_chief_) {
    Violate("two chiefs write",
            absl::StrCat("a chief that has a successor commits checkpoint ",
                         manifest.global_step()));
  }
  for (const auto& file : checkpoint.files) {
    if (file->layout != checkpoint.files[0]->layout ||
        file->run_id != manifest.run_id()) {
      Violate("mixed checkpoint",
              absl::StrCat("checkpoint ", manifest.global_step(),
                           " has shards of several layouts or runs"));
    }
  }
  CheckCut(checkpoint);
  CheckRates(checkpoint);
  if (on_committed_) on_committed_(checkpoint);
  for (const durable::WorkerProgress& progress : manifest.worker_progress()) {
    const auto worker = workers_.find(progress.incarnation());
    if (worker == workers_.end()) continue;
    const std::vector<StepId>& steps = worker->second.steps;
    const auto credited = static_cast<size_t>(progress.completed_steps());
    if (credited > steps.size()) {
      Violate("credited more than done",
              absl::StrCat("a worker with ", credited, " of ", steps.size()));
    }
    for (size_t i = 0; i < std::min(credited, steps.size()); ++i) {
      for (const auto& file : checkpoint.files) {
        if (file->applied.Contains(steps[i]) ||
            shards_[file->shard].lost.Contains(steps[i])) {
          continue;
        }
        return Violate(
            "credited step is missing",
            absl::StrCat("checkpoint ", manifest.global_step(), ", ps ",
                         file->shard, ": a step that was acknowledged"));
      }
    }
  }
}

void Auditor::CheckCut(const Checkpoint& checkpoint) {
  const int64_t step = checkpoint.manifest.global_step();
  for (const auto& file : checkpoint.files) {
    for (const int64_t updates : file->updates) {
      if (updates == step) continue;
      Violate("no cut",
              absl::StrCat("checkpoint ", step, ", ps ", file->shard,
                           ": a chunk has had ", updates, " updates"));
    }
  }
}

void Auditor::CheckpointFails(const absl::Status& status) {
  if (on_checkpoint_fails_) on_checkpoint_fails_();
  if (!schedule_.faults.empty() || schedule_.shape.loss > 0) return;
  Violate("checkpoint failed without a fault", status.ToString());
}

void Auditor::CheckRates(const Checkpoint& checkpoint) {
  if (!schedule_.faults.empty() || schedule_.shape.loss > 0) return;
  const double rate = checkpoint.manifest.reduced_learning_rate();
  for (const auto& file : checkpoint.files) {
    if (file->learning_rate.value_or(0) == rate) continue;
    Violate("rate not given",
            absl::StrCat("checkpoint ", checkpoint.manifest.global_step(),
                         ", ps ", file->shard, ": the shard's rate is ",
                         file->learning_rate.value_or(0), ", not ", rate));
  }
}

void Auditor::RateTaken(int ps, const ShardValues& values) {
  Shard& shard = shards_[values.shard];
  if (ps != shard.holder) return;
  const double rate = values.learning_rate.value_or(1);
  // A chief that goes back behind a damaged checkpoint forgets its evaluation.
  if (rate > shard.learning_rate && shard.run_id == values.run_id &&
      shard.hyperparameters == values.hyperparameters &&
      !schedule_.Has(Fault::Kind::kDamage)) {
    Violate("rate raised", absl::StrCat("ps ", values.shard, ": from ",
                                        shard.learning_rate, " to ", rate));
  }
  shard.run_id = values.run_id;
  shard.hyperparameters = values.hyperparameters;
  shard.learning_rate = rate;
}

void Auditor::Evaluated(const Evaluation& evaluation) {
  if (on_evaluated_) on_evaluated_(evaluation);
  if (evaluation.global_step == 0) return;
  const auto [it, is_first] = best_.try_emplace(
      evaluation.run_id, Best{evaluation.global_step, evaluation.loss});
  if (is_first || evaluation.loss >= it->second.loss) return;
  it->second = {evaluation.global_step, evaluation.loss};
}

void Auditor::Pruned(const Disk& disk, const std::string& run_id) {
  const auto best = best_.find(run_id);
  if (best == best_.end() || schedule_.Has(Fault::Kind::kDamage)) return;
  if (disk.Find(best->second.step) != nullptr) return;
  Violate("best checkpoint removed",
          absl::StrCat("that of step ", best->second.step, ", with loss ",
                       best->second.loss));
}

void Auditor::Ended(const Checkpoint& final,
                    const std::vector<Evaluation>& evaluations) {
  if (final.manifest.global_step() >= schedule_.shape.steps) {
    if (schedule_.shape.mode == Shape::Mode::kGroup &&
        final.manifest.global_step() != schedule_.shape.steps) {
      Violate("ended late", absl::StrCat("the last checkpoint is of step ",
                                         final.manifest.global_step(), " of ",
                                         schedule_.shape.steps));
    }
    return CheckBatches(schedule_.shape.steps);
  }
  CheckEarlyEnd(final, evaluations);
}

// A job ends early if evaluations say so, with all steps that were done.
void Auditor::CheckEarlyEnd(const Checkpoint& final,
                            const std::vector<Evaluation>& evaluations) {
  const int64_t step = final.manifest.global_step();
  const bool is_decided =
      DecideByEvaluations(final.manifest.job(), evaluations).stop.has_value();
  if (!is_decided) {
    Violate("ended early", absl::StrCat("the last checkpoint is of step ", step,
                                        " of ", schedule_.shape.steps));
  }
  // A synchronous step that was not complete at the end counts for nothing.
  const bool counts_all = schedule_.shape.mode != Shape::Mode::kSynchronous &&
                          !MayLoseLeases(schedule_) && !schedule_.ChangesJob();
  if (step < completed_ && counts_all) {
    Violate("steps not counted",
            absl::StrCat("the job ends early at step ", step, ", ", completed_,
                         " were done"));
  }
}

// A chief that is lost while all workers live costs no batch.
void Auditor::CheckBatches(int64_t end_step) {
  if (schedule_.shape.mode >= Shape::Mode::kSynchronous) return;
  std::vector<int> times(end_step);
  for (const Step& step : steps_) {
    if (step.completed && step.batch < end_step) ++times[step.batch];
  }
  // Or a moment is not enough for those that come back.
  const bool loses_more =
      schedule_.Has(Fault::Kind::kLoseMachine, "chief") ||
      (schedule_.Hits("chief") &&
       (schedule_.Hits("ps") || schedule_.Has(Fault::Kind::kDamage)));
  const bool may_repeat =
      MayLoseLeases(schedule_) || schedule_.ChangesJob() || loses_more;
  for (int64_t batch = 0; batch < end_step; ++batch) {
    if (times[batch] == 0) {
      Violate("batch left out", absl::StrCat("batch ", batch));
    } else if (times[batch] > 1 && !may_repeat) {
      Violate("batch repeated", absl::StrCat("batch ", batch));
    }
  }
}

}  // namespace parasol::simulation
