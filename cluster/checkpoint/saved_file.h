#ifndef PARASOL_CLUSTER_CHECKPOINT_SAVED_FILE_H_
#define PARASOL_CLUSTER_CHECKPOINT_SAVED_FILE_H_

#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "proto/checkpoint.pb.h"

namespace parasol {

// The newest file that a ps, or a worker that has the variables, has written
// for a checkpoint, and whether that checkpoint is complete: then nothing is
// lost with the process, whatever becomes of the chief. Thread-safe.
class SavedFile {
 public:
  // Notes that `file` was written into `working_directory`, a directory in the
  // checkpoint directory, for `run_id`. `progress` grows with each update.
  void Note(const std::string& working_directory, const std::string& run_id,
            durable::CheckpointFile file, int64_t progress)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Forgets the file: another one is being written.
  void Forget() ABSL_LOCKS_EXCLUDED(mu_);

  // Returns true if the file has all updates up to `progress`, and a complete
  // checkpoint of the run has the file. Reads manifests. Returns false also if
  // the directory can't be read.
  bool Has(int64_t progress) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  mutable absl::Mutex mu_;
  // Path of the checkpoint directory; empty: no file was written.
  std::string directory_ ABSL_GUARDED_BY(mu_);
  std::string run_id_ ABSL_GUARDED_BY(mu_);
  durable::CheckpointFile file_ ABSL_GUARDED_BY(mu_);
  int64_t progress_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECKPOINT_SAVED_FILE_H_
