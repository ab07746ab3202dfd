#include "chief/chief_metrics.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cluster/progress/task_notes.h"
#include "cluster/rpc/proto_duration.h"

namespace parasol {
namespace {

constexpr const char* kRoles[] = {"ps", "worker", "evaluator"};

}  // namespace

ChiefMetrics::ChiefMetrics(MetricsRegistry& registry)
    : registry_(registry),
      global_step_(registry.AddGauge("parasol_chief_global_step",
                                     "Steps whose gradients were applied.")),
      end_step_(registry.AddGauge("parasol_chief_end_step",
                                  "Where the job ends; 0: not known yet.")),
      examples_per_second_(
          registry.AddGauge("parasol_chief_examples_per_second",
                            "Of all live workers together.")),
      loss_(registry.AddGauge("parasol_chief_loss",
                              "Mean of the live workers' last reports.")),
      placement_skew_ratio_(
          registry.AddGauge("parasol_chief_placement_skew_ratio",
                            "Largest shard's bytes over the mean.")),
      evaluated_step_(
          registry.AddGauge("parasol_chief_evaluated_step",
                            "Step of the newest evaluation of the run.")),
      due_evaluations_(
          registry.AddGauge("parasol_chief_due_evaluations",
                            "Evaluations that are due without a result.")),
      doubled_batches_total_(registry.AddCounter(
          "parasol_chief_doubled_batches_total",
          "Batches that two workers have completed, after one of them, or the "
          "chief, was lost.")),
      evaluation_wait_seconds_(registry.AddGauge(
          "parasol_chief_evaluation_wait_seconds",
          "Time for which the job has waited for an evaluation "
          "(evaluation.max_lag); 0 while it does not wait.")),
      checkpoints_written_total_(registry.AddCounter(
          "parasol_chief_checkpoints_total", "Checkpoints that were tried.",
          {{"result", "written"}})),
      checkpoints_failed_total_(registry.AddCounter(
          "parasol_chief_checkpoints_total", "Checkpoints that were tried.",
          {{"result", "failed"}})),
      loads_done_total_(registry.AddCounter("parasol_chief_shard_loads_total",
                                            "Shards ordered to load.",
                                            {{"result", "done"}})),
      loads_failed_total_(registry.AddCounter("parasol_chief_shard_loads_total",
                                              "Shards ordered to load.",
                                              {{"result", "failed"}})),
      checkpoint_duration_seconds_(registry.AddHistogram(
          "parasol_chief_checkpoint_duration_seconds",
          "From the order to the committed checkpoint.", LatencyBounds())) {
  for (int i = wire::WAITING_FOR_PS; i <= wire::FAILED; ++i) {
    const auto phase = static_cast<wire::JobPhase>(i);
    phase_.emplace(
        phase,
        registry.AddGauge(
            "parasol_chief_phase", "1 for the phase that the job is in.",
            {{"phase", absl::AsciiStrToLower(wire::JobPhase_Name(phase))}}));
  }
  for (const std::string role : kRoles) {
    live_tasks_.emplace(
        role, registry.AddGauge("parasol_chief_live_tasks",
                                "Tasks that hold a lease.", {{"role", role}}));
    missing_tasks_.emplace(
        role,
        registry.AddGauge("parasol_chief_missing_tasks",
                          "Tasks that the job waits for, or goes on without.",
                          {{"role", role}}));
    doubled_tasks_.emplace(
        role, registry.AddGauge("parasol_chief_doubled_tasks",
                                "Tasks as which two processes ran.",
                                {{"role", role}}));
    expired_leases_total_.emplace(
        role, registry.AddCounter("parasol_chief_expired_leases_total",
                                  "Tasks that were lost.", {{"role", role}}));
  }
}

void ChiefMetrics::Show(const wire::JobStatus& status) {
  for (auto& [phase, gauge] : phase_) gauge.Set(phase == status.phase());
  for (auto& [role, gauge] : live_tasks_) {
    int alive = 0;
    for (const wire::TaskStatus& task : status.task()) {
      alive += task.alive() && task.task().role() == role;
    }
    gauge.Set(alive);
  }
  for (auto& [role, gauge] : doubled_tasks_) {
    int doubled = 0;
    for (const wire::TaskStatus& task : status.task()) {
      doubled += !task.doubled().empty() && task.task().role() == role;
    }
    gauge.Set(doubled);
  }
  for (auto& [role, gauge] : missing_tasks_) {
    int missing = 0;
    const std::string front = absl::StrCat(role, "/");
    for (const std::string& task : status.missing_task()) {
      missing += absl::StartsWith(task, front);
    }
    for (const wire::AbsentTask& task : status.absent_task()) {
      missing += absl::StartsWith(task.task(), front);
    }
    gauge.Set(missing);
  }
  global_step_.Set(status.global_step());
  end_step_.Set(status.end_step());
  examples_per_second_.Set(status.examples_per_second());
  if (status.has_loss()) loss_.Set(status.loss());
  placement_skew_ratio_.Set(status.placement_skew());
  evaluated_step_.Set(status.evaluated_step());
  due_evaluations_.Set(status.due_evaluations());
  doubled_batches_total_.Add(
      static_cast<double>(status.doubled_batches() - doubled_batches_));
  doubled_batches_ = status.doubled_batches();
  evaluation_wait_seconds_.Set(SecondsIn(status.evaluation_waited()));
  if (status.has_followed()) {
    if (!data_) data_.emplace(registry_);
    data_->Show(status.followed());
  }
  for (const wire::TaskStatus& task : status.task()) {
    if (task.task().role() == "worker") ShowPace(task);
  }
}

void ChiefMetrics::ShowBound(const wire::JobStatus& status) {
  for (auto& [bound, gauge] : bounds_) gauge.Set(0);
  if (status.finding().empty()) return;
  const wire::Finding& first = status.finding(0);
  if (first.kind() == wire::Finding::KIND_UNSPECIFIED) return;
  const std::string kind =
      absl::AsciiStrToLower(wire::Finding::Kind_Name(first.kind()));
  const auto bound = std::pair(kind, first.task());
  if (!bounds_.contains(bound)) {
    bounds_.emplace(
        bound, registry_.AddGauge("parasol_chief_bound",
                                  "1 for what bounds the job, and the task at "
                                  "fault, as `parasol why` begins.",
                                  {{"kind", kind}, {"task", first.task()}}));
  }
  bounds_.at(bound).Set(1);
}

void ChiefMetrics::ShowPace(const wire::TaskStatus& worker) {
  const std::string name = NameOfTask(worker);
  auto it = paces_.find(name);
  if (it == paces_.end()) {
    const MetricLabels task = {{"task", name}};
    it =
        paces_
            .emplace(
                name,
                Pace{registry_.AddGauge(
                         "parasol_chief_slow_task",
                         "1 for a worker that is slower than the others, "
                         "or not heard.",
                         task),
                     registry_.AddGauge(
                         "parasol_chief_worker_slowness_ratio",
                         "A worker's own time for a batch over the "
                         "median of the others.",
                         task),
                     registry_.AddGauge("parasol_chief_worker_steps_per_second",
                                        "Steps of a worker.", task)})
            .first;
  }
  it->second.is_slow.Set(!worker.slow().empty());
  it->second.slowness_ratio.Set(worker.pace().slowness());
  it->second.steps_per_second.Set(worker.pace().steps_per_second());
}

void ChiefMetrics::LeaseExpired(const std::string& role) {
  auto it = expired_leases_total_.find(role);
  if (it != expired_leases_total_.end()) it->second.Add();
}

void ChiefMetrics::CheckpointTried(const absl::Status& result,
                                   absl::Duration took) {
  (result.ok() ? checkpoints_written_total_ : checkpoints_failed_total_).Add();
  if (result.ok()) {
    checkpoint_duration_seconds_.Observe(absl::ToDoubleSeconds(took));
  }
}

void ChiefMetrics::LoadTried(const absl::Status& result) {
  (result.ok() ? loads_done_total_ : loads_failed_total_).Add();
}

}  // namespace parasol
