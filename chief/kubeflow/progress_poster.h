#ifndef PARASOL_CHIEF_KUBEFLOW_PROGRESS_POSTER_H_
#define PARASOL_CHIEF_KUBEFLOW_PROGRESS_POSTER_H_

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "chief/kubeflow/post_schedule.h"
#include "cluster/checkpoint/evaluation_log.h"
#include "cluster/progress/step_rate.h"
#include "proto/chief.pb.h"

namespace parasol {

// Posts a job's progress to Kubeflow Trainer, on a thread of its own: whatever
// the server does, the training does not wait for it. Thread-safe.
class ProgressPoster {
 public:
  // Time between two looks at the status.
  static constexpr absl::Duration kLook = absl::Seconds(1);
  // Time that the server has to answer, and for the post at the end.
  static constexpr absl::Duration kTimeout = absl::Seconds(10);
  static constexpr absl::Duration kLastTimeout = absl::Seconds(2);

  struct Options {
    // Function that returns the job's status. Thread-safe.
    std::function<wire::JobStatus()> status;
    // Posts a body: PostJson() with a server.
    std::function<absl::Status(const std::string& body, absl::Duration timeout,
                               const std::atomic<bool>& cancelled)>
        post;
  };

  // Begins to post. `clock` must outlive this object.
  ProgressPoster(Options options, Clock& clock);
  // Ends a post that waits for its answer, posts how the job has ended if the
  // server does not know, and returns when the thread has ended.
  ~ProgressPoster();

  // Takes the newest evaluation.
  void Evaluated(const Evaluation& evaluation) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Run();
  // Returns the status, with the last loss that there was: none is reported by
  // workers that have left.
  wire::JobStatus Status();
  void Look() ABSL_LOCKS_EXCLUDED(mu_);
  void PostTheEnd() ABSL_LOCKS_EXCLUDED(mu_);
  void Post(const wire::JobStatus& status, absl::Duration timeout,
            const std::atomic<bool>& cancelled) ABSL_LOCKS_EXCLUDED(mu_);

  const Options options_;
  Clock& clock_;
  // The thread's own.
  StepRate rate_;
  PostSchedule schedule_;
  std::optional<double> loss_;
  std::atomic<bool> cancelled_ = false;
  absl::Mutex mu_;
  std::optional<Evaluation> evaluation_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace parasol

#endif  // PARASOL_CHIEF_KUBEFLOW_PROGRESS_POSTER_H_
