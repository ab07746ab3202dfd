#ifndef PARASOL_STORAGE_JOURNAL_JOURNAL_FENCE_H_
#define PARASOL_STORAGE_JOURNAL_JOURNAL_FENCE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace parasol {

class FileDescriptor;  // storage/durable_file.h

// The mark of the process that writes a journal: the file DIRECTORY.owner
// beside its directory, which each process replaces before it reads the
// journal. A process that was stopped and goes on finds that its own file has
// no name any more: its successor may not have what it writes. Thread-safe.
class JournalFence {
 public:
  // Makes the directory if it is missing, and takes the journal in it. Fails as
  // durable_file.h says.
  static absl::StatusOr<std::unique_ptr<JournalFence>> Take(
      const std::string& directory);
  ~JournalFence();

  // Returns false if another process has taken the journal: it may not read
  // what was written before this call.
  bool IsHeld() const;

 private:
  explicit JournalFence(std::unique_ptr<const FileDescriptor> file);

  const std::unique_ptr<const FileDescriptor> file_;
};

}  // namespace parasol

#endif  // PARASOL_STORAGE_JOURNAL_JOURNAL_FENCE_H_
