#ifndef PARASOL_WORKER_LONE_RECORD_H_
#define PARASOL_WORKER_LONE_RECORD_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "cluster/checkpoint/evaluation_log.h"
#include "cluster/progress/training_journal.h"
#include "cluster/progress/training_progress.h"
#include "proto/chief.pb.h"
#include "proto/job.pb.h"
#include "storage/event_file.h"
#include "worker/store/table/device_tables.h"
#include "worker/training_report.h"

namespace parasol {

// The record of the training of a worker without a cluster: training.jsonl,
// TensorBoard's event files, and lines in the log. A file that can't be
// written is no reason to end. Must be used from one thread at a time.
class LoneRecord {
 public:
  // Opens the files for the run that goes on at the options' first step.
  LoneRecord(const job::Job& job, TrainingJournal::Options options,
             Clock& clock);

  // Returns true if Note() may have something to write at this step.
  bool IsDue(int64_t step) const {
    return progress_.IsDue(step, steps_per_epoch_, clock_.Now());
  }
  // Writes down how far the training is, if that is due.
  void Note(const wire::JobStatus& status, bool is_end);
  // Adds work to the next line of the log.
  void AddWork(const TrainingReport& report,
               const DeviceTables::CacheUse& cache);
  // Logs the steps since the last such line, if there are any, and shows which
  // part of the time was waited.
  void LogSteps(int64_t step, int64_t end_step, Gauge& wait_ratio);
  // Adds the results of an evaluation to the event files.
  void AddEvaluation(const Evaluation& evaluation,
                     const EventFile::Histograms& histograms);

 private:
  Clock& clock_;
  std::unique_ptr<TrainingJournal> journal_;  // null: it can't be written
  TrainingProgress progress_;
  int64_t steps_per_epoch_ = 0;           // 0: not known yet
  std::optional<EventFile> eval_events_;  // nullopt: the job wants none
  // The training since the last line of the log.
  TrainingReport since_line_;
  DeviceTables::CacheUse cache_since_line_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_LONE_RECORD_H_
