#ifndef PARASOL_CLUSTER_CHECKPOINT_SAVED_FILE_H_
#define PARASOL_CLUSTER_CHECKPOINT_SAVED_FILE_H_

#include <cstdint>
#include <deque>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "proto/checkpoint.pb.h"

namespace parasol {

// The newest files that a ps, or a worker that has the variables, has written
// for checkpoints, and whether these checkpoints are complete: then nothing is
// lost with the process, whatever becomes of the chief. Thread-safe.
class SavedFile {
 public:
  // Notes that `file` was written into `working_directory`, a directory in the
  // checkpoint directory, for `run_id`. `progress` grows with each update.
  void Note(const std::string& working_directory, const std::string& run_id,
            durable::CheckpointFile file, int64_t progress)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Notes that a file is being written whose checkpoint has to be complete
  // before the process may go: Has() is false until then.
  void Await() ABSL_LOCKS_EXCLUDED(mu_);

  // Returns true if the newest file has all updates up to `progress`, and a
  // complete checkpoint of the run has the file. Reads manifests. Returns false
  // also if the directory can't be read.
  bool Has(int64_t progress) const ABSL_LOCKS_EXCLUDED(mu_);
  // Returns true if one of the newest kKept files has, and is, which may be one
  // from before Await().
  bool AnyHas(int64_t progress) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  static constexpr size_t kKept = 3;

  struct File {
    std::string directory;  // path of the checkpoint directory
    std::string run_id;
    durable::CheckpointFile file;
    int64_t progress = 0;
  };

  mutable absl::Mutex mu_;
  std::deque<File> files_ ABSL_GUARDED_BY(mu_);  // the newest one is last
  bool is_awaited_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECKPOINT_SAVED_FILE_H_
