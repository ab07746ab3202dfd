#ifndef PARASOL_CHIEF_PROGRESS_WRITER_H_
#define PARASOL_CHIEF_PROGRESS_WRITER_H_

#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "cluster/progress/training_journal.h"
#include "cluster/progress/training_progress.h"
#include "proto/chief.pb.h"

namespace parasol {

// Writes what a job's status says of its training to the log, for each epoch,
// and to the checkpoint directory, on a thread of its own: the disk
// may not answer, and a chief waits for nothing here.
class ProgressWriter {
 public:
  // Time between two looks at the status.
  static constexpr absl::Duration kInterval = absl::Milliseconds(200);
  // Time that the last record waits for, behind the end: what workers say of
  // their last steps comes with a heartbeat.
  static constexpr absl::Duration kLastReports = absl::Seconds(2);

  struct Options {
    // Function that returns the job's status. Thread-safe.
    std::function<wire::JobStatus()> status;
    TrainingJournal::Options journal;
    job::SummaryPolicy summary = {};  // has its defaults
    // Function that returns an error if another process may write to the
    // checkpoint directory. Asked once the training or the process ends.
    std::function<absl::Status()> check_owner = [] { return absl::OkStatus(); };
  };

  // Begins to look. `clock` must outlive this object.
  ProgressWriter(Options options, Clock& clock);
  // Writes what is left, and returns when the thread has ended.
  ~ProgressWriter();

 private:
  void Run();
  // `is_last`: nothing comes behind it.
  void Look(bool is_last);
  // Begins the progress where the run did, or was resumed: all that follows is
  // counted from there, however late the first look is.
  void Begin();
  // Logs and writes the epochs, or their parts, of which all is known, or all
  // that have ended. Returns true if none is left.
  bool WriteEpochs(const wire::JobStatus& status, bool is_last, absl::Time now);
  void Write(const ProgressRecord& record, absl::Time now);
  // Opens the journal, unless it is open or can't be now.
  void OpenJournal();

  const Options options_;
  Clock& clock_;
  // The thread's own.
  std::unique_ptr<TrainingJournal> journal_;  // null: not open yet
  std::optional<TrainingProgress> progress_;  // nullopt: no training seen yet
  std::optional<absl::Time> ended_;           // time of the end
  absl::Mutex mu_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace parasol

#endif  // PARASOL_CHIEF_PROGRESS_WRITER_H_
