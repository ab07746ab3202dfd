#ifndef PARASOL_WORKER_STEP_TRAINING_FILES_H_
#define PARASOL_WORKER_STEP_TRAINING_FILES_H_

#include <cstdint>
#include <map>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "proto/chief.pb.h"

namespace parasol {

// The files of a training set that grows, as the chief's answers to claims name
// them, by the batches that they have. A chief that has restarted may grant
// batches again that the one before had seen trained, so each names all files
// anew. Thread-safe.
class TrainingFiles {
 public:
  // Notes that the worker registers, perhaps with another chief. Answers to
  // claims before that are ignored.
  void StartOver();
  // Writes into a claim which files are known.
  void Tell(wire::ClaimStepsRequest& request);
  // Takes the files of the answer to the newest claim.
  void Take(const wire::ClaimStepsResponse& response);

  // Returns the file that has this batch; nullopt: the chief has not named it.
  std::optional<wire::TrainingFile> FileOf(int64_t batch) const;
  // Returns true if this batch will not be granted any more, as the chief says.
  bool IsTrained(int64_t batch) const;

 private:
  mutable absl::Mutex mu_;
  // Key: the first batch.
  std::map<int64_t, wire::TrainingFile> files_ ABSL_GUARDED_BY(mu_);
  // Number of batches, from 0, up to which this chief has named the files.
  int64_t known_ ABSL_GUARDED_BY(mu_) = 0;
  // Number of batches, from 0, that the chief will not grant any more.
  int64_t trained_ ABSL_GUARDED_BY(mu_) = 0;
  // True if the worker has registered since the newest claim.
  bool has_registered_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_STEP_TRAINING_FILES_H_
