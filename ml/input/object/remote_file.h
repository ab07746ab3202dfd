#ifndef PARASOL_ML_INPUT_OBJECT_REMOTE_FILE_H_
#define PARASOL_ML_INPUT_OBJECT_REMOTE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "ml/input/object/stored_object.h"

namespace parasol {

// An object of which only some bytes are read, in blocks, without a copy on
// this machine. Thread-safe; one read at a time.
class RemoteFile {
 public:
  explicit RemoteFile(std::shared_ptr<const StoredObject> object)
      : object_(std::move(object)) {}

  uint64_t size() const { return object_->bytes(); }

  // Fills `out` with the bytes from `offset` on, which the object has.
  //   DataLoss   the object has changed since it was opened, or is gone.
  //   any other  as for StoredObject.
  absl::Status Read(uint64_t offset, absl::Span<char> out)
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Block {
    uint64_t begin;
    std::string bytes;
  };

  absl::Status ReadChecked(uint64_t offset, absl::Span<char> out) const;
  absl::StatusOr<const Block*> FindBlock(uint64_t begin)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::shared_ptr<const StoredObject> object_;
  absl::Mutex mu_;
  std::deque<Block> blocks_ ABSL_GUARDED_BY(mu_);  // the oldest one first
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_OBJECT_REMOTE_FILE_H_
