#ifndef PARASOL_LOOP_PEERS_PROGRAM_CHIEF_H_
#define PARASOL_LOOP_PEERS_PROGRAM_CHIEF_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "loop/peers/peers.h"
#include "loop/peers/recorded_gauges.h"
#include "proto/chief.pb.h"
#include "proto/job.pb.h"
#include "storage/shard_writer.h"
#include "worker/lone_chief.h"
#include "worker/lone_record.h"
#include "worker/part_shown.h"
#include "worker/shown/lone_status.h"
#include "worker/store/lone_shard.h"
#include "worker/store/parameter_store.h"
#include "worker/training_report.h"
#include "worker/worker_metrics.h"

namespace parasol {

// The checkpoints and the record of a program, in its first process: the chief
// of a worker without a cluster, to which each iteration is a step. Used by one
// thread, but for Status().
class ProgramChief {
 public:
  struct Options {
    // Its directory, policies of checkpoints and curves, and the end if it has
    // one; defaults are filled in.
    job::Job job;
    int replicas = 1;  // of all processes
    // Time for which the first and the last checkpoint are tried again, and a
    // directory that is full at the start.
    absl::Duration checkpoint_timeout = absl::Minutes(10);
    // Returns true when the program is told to stop; from any thread.
    std::function<bool()> is_stopping;
    // Shows the program to those who look on; null: nothing does. Must outlive
    // the chief.
    LoneStatus* shown = nullptr;
  };

  ProgramChief(Options options, Clock& clock, MetricsRegistry& metrics);
  ~ProgramChief();

  // Takes the checkpoint directory, and gives `store` the values of the newest
  // checkpoint, if there is one; a new run's first checkpoint has the values
  // that it has. `store` must outlive this object. Returns the number of
  // iterations that the values have had. Fails as LoneChief::Start() does.
  absl::StatusOr<int64_t> Start(ParameterStore& store) ABSL_LOCKS_EXCLUDED(mu_);
  // Has the values which `save` writes, of `step` iterations, in the place of
  // the store's, and begins the record of what comes.
  using Save = std::function<absl::Status(ShardWriter& writer)>;
  void GoOnWith(Save save, int64_t step);
  // Notes an iteration that is done, of all processes, and writes a checkpoint
  // of it if one is due. Returns false if there is to be no other one.
  absl::StatusOr<bool> Commit(const Iteration& iteration);
  // Writes the last checkpoint. Returns how the program ends.
  absl::Status End();

  // Returns how the training goes, in the words of a chief. May be called from
  // any thread, as may Part().
  wire::JobStatus Status() const ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the part of an iteration that goes on.
  std::optional<LoneStatus::Doing> Part() const { return DoingOf(reporter_); }
  // Told of the parts of an iteration within the program's own work.
  TrainingReporter& reporter() { return reporter_; }

 private:
  class Shard;

  // Carries the chief's orders out until it grants an iteration. Returns false
  // if it grants none any more: `outcome_` says why.
  absl::StatusOr<bool> FollowOrders();
  absl::Status CarryOut(const LoadOrder& order);
  absl::Status CarryOut(const CheckpointOrder& order);
  // Tells the chief what was done, and writes down what is due.
  void Report(bool is_end);

  const Options options_;
  Clock& clock_;
  WorkerMetrics metrics_;
  TrainingReporter reporter_;
  RecordedGauges recorded_;
  std::unique_ptr<Shard> shard_;
  std::unique_ptr<LoneChief> chief_;
  std::unique_ptr<LoneRecord> record_;
  int64_t step_ = 0;  // number of iterations that are done
  absl::Time reported_ = absl::InfinitePast();
  std::optional<absl::Status> outcome_;  // the chief's

  mutable absl::Mutex mu_;
  std::string trouble_ ABSL_GUARDED_BY(mu_);   // the thing Start() waits for
  int64_t end_step_ ABSL_GUARDED_BY(mu_) = 0;  // as the program says it
  const LoneChief* shown_ ABSL_GUARDED_BY(mu_) = nullptr;  // `chief_`
};

}  // namespace parasol

#endif  // PARASOL_LOOP_PEERS_PROGRAM_CHIEF_H_
