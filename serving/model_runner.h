#ifndef PARASOL_SERVING_MODEL_RUNNER_H_
#define PARASOL_SERVING_MODEL_RUNNER_H_

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "ml/input/feature/batch.h"
#include "serving/batch_queue.h"
#include "serving/serving_metrics.h"

namespace parasol {

// A thread that takes requests through a model, several at once: when it is
// free, all waiting requests become one batch. Thread-safe.
//
// Shutdown: no caller may be in Predict() when the destructor begins.
class ModelRunner {
 public:
  // Function that computes the outputs [batch.size, outputs] of a batch, valid
  // until its next call. Called on the runner's thread alone.
  using Compute =
      std::function<absl::StatusOr<absl::Span<const float>>(const Batch&)>;

  // `clock` and `metrics` must outlive the runner.
  ModelRunner(Compute compute, const BatchLimits& limits, Clock& clock,
              ServingMetrics& metrics);
  ~ModelRunner();
  ModelRunner(const ModelRunner&) = delete;
  ModelRunner& operator=(const ModelRunner&) = delete;

  // Returns the outputs of `batch`, which has examples. Blocks until the model
  // has computed them, or was not free before `deadline`. If a batch of several
  // requests fails, each is computed by itself: one answers for itself alone.
  //   ResourceExhausted  too many examples wait: try again later.
  //   DeadlineExceeded   the model was not free in time.
  //   any other          as for `compute`.
  absl::StatusOr<std::vector<float>> Predict(Batch batch, absl::Time deadline);

 private:
  // A request on its way, on the stack of its caller.
  struct Pending {
    Batch batch;
    absl::StatusOr<std::vector<float>> outputs =
        absl::UnknownError("not computed");
    absl::Notification is_done = {};
  };
  using Queue = BatchQueue<Pending*>;

  void Run();
  // Blocks until a batch is due. Nothing in it: shutting down.
  Queue::Taken NextBatch();
  void ComputeBatch(const std::vector<Pending*>& requests);
  // Computes the requests as one batch. Returns false, and answers none, if
  // that failed.
  bool ComputeJoined(absl::Span<Pending* const> requests);

  const Compute compute_;
  const BatchLimits limits_;
  Clock& clock_;
  ServingMetrics& metrics_;
  // Examples of all requests of a batch; only the runner's thread uses it.
  Batch joined_;

  absl::Mutex mu_;
  Queue queue_ ABSL_GUARDED_BY(mu_);
  bool is_stopping_ ABSL_GUARDED_BY(mu_) = false;

  std::thread thread_;
};

// Appends the examples of `from` to `to`, which has the same inputs or is
// empty.
void AppendExamples(const Batch& from, Batch& to);

}  // namespace parasol

#endif  // PARASOL_SERVING_MODEL_RUNNER_H_
