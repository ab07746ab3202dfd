#ifndef PARASOL_WORKER_LOCAL_LOCAL_STATUS_H_
#define PARASOL_WORKER_LOCAL_LOCAL_STATUS_H_

#include <cstdint>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/chief.pb.h"

namespace parasol {

// How the training of a worker without a cluster goes, in the words of a chief:
// `parasol status` and the launcher ask it as they ask a chief. Thread-safe.
class LocalStatus {
 public:
  // Changes the status.
  void Update(absl::FunctionRef<void(wire::JobStatus&)> change)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Notes the number of steps that were done by `now`, each of `batch_size`
  // examples of all replicas: the status's rate is that of the last seconds.
  void NoteStep(int64_t completed, int64_t batch_size, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Forgets the rate: no step is made now, for an evaluation perhaps.
  void Pause() ABSL_LOCKS_EXCLUDED(mu_);

  wire::JobStatus Get() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // The beginning of a measurement of the rate.
  struct Mark {
    absl::Time time;
    int64_t step = 0;
  };

  mutable absl::Mutex mu_;
  wire::JobStatus status_ ABSL_GUARDED_BY(mu_);
  std::optional<Mark> mark_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_WORKER_LOCAL_LOCAL_STATUS_H_
