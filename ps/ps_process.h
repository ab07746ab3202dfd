#ifndef PARASOL_PS_PS_PROCESS_H_
#define PARASOL_PS_PS_PROCESS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "proto/chief.pb.h"
#include "ps/lost_questions.h"
#include "ps/ps_task.h"

namespace parasol {

// A ps's process: the task of its own place and, on the chief's order, one that
// acts for a lost ps, from the standby that is here, until a process of that ps
// is back (docs/design/standby.md). It tells the chief at once when the stream
// of a primary ends. Thread-safe.
//
// Shutdown: Stop() or the job's end, then Wait(), then destroy the process.
class PsProcess {
 public:
  struct Options {
    PsTaskOptions task;
    // "host:port" of this ps for others, with any port.
    std::string address;
    // Port of a task that acts; 0: the system chooses one.
    int acting_port = 0;
    // Address of the /metrics of a task that acts, with port 0; empty: it has
    // none.
    std::string acting_metrics_address;
  };

  // Starts the process's own task; fails as PsTask::Start() does.
  static absl::StatusOr<std::unique_ptr<PsProcess>> Start(
      const Options& options, Clock& clock, MetricsRegistry& metrics);
  ~PsProcess();

  int port() const { return own_->port(); }

  // Blocks until the process's own task has ended, and one that acts has left
  // in good order. Returns PsTask::Wait() of its own.
  absl::Status Wait() ABSL_LOCKS_EXCLUDED(mu_);

  // Ends both tasks as PsTask::Stop() does. May be called twice, from any
  // thread.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // A task that acts, with what it serves.
  struct Acting {
    int ps_index = 0;
    MetricsRegistry registry;
    std::unique_ptr<MetricsServer> metrics;
    std::unique_ptr<PsTask> task;
  };

  PsProcess(const Options& options, Clock& clock, MetricsRegistry& metrics);

  // The thread's.
  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  // Asks the chief about primaries whose streams have ended.
  void AskForLost() ABSL_LOCKS_EXCLUDED(mu_);
  void Act(const wire::ActingOrder& order) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Begin(const wire::ActingOrder& order) ABSL_LOCKS_EXCLUDED(mu_);
  PsTaskOptions OptionsFor(const wire::ActingOrder& order);
  // Lets the task that acts go, if it has ended or may leave.
  void LookAtActing() ABSL_LOCKS_EXCLUDED(mu_);

  std::shared_ptr<Acting> acting() const ABSL_LOCKS_EXCLUDED(mu_);
  void StopActing() ABSL_LOCKS_EXCLUDED(mu_);

  const Options options_;
  Clock& clock_;
  Gauge acting_for_;

  mutable absl::Mutex mu_;
  bool is_ending_ ABSL_GUARDED_BY(mu_) = false;  // ends the thread
  bool is_stopping_ ABSL_GUARDED_BY(mu_) = false;
  // True if the thread has something to look at.
  bool has_news_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<wire::ActingOrder> orders_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<Acting> acting_ ABSL_GUARDED_BY(mu_);
  // News of the task that acts: that it may leave, or has ended.
  bool may_leave_ ABSL_GUARDED_BY(mu_) = false;
  bool has_ended_ ABSL_GUARDED_BY(mu_) = false;
  // Times of questions about primaries whose streams have ended.
  LostQuestions questions_ ABSL_GUARDED_BY(mu_);

  // The thread's: the time before which no task acts again.
  absl::Time next_act_ = absl::InfinitePast();
  std::unique_ptr<PsTask> own_;
  std::thread thread_;
};

}  // namespace parasol

#endif  // PARASOL_PS_PS_PROCESS_H_
