#ifndef PARASOL_TESTS_FUZZ_READERS_SCRATCH_FOLDER_H_
#define PARASOL_TESTS_FUZZ_READERS_SCRATCH_FOLDER_H_

#include <string>

#include "absl/strings/string_view.h"

namespace parasol {

// A folder of this process for readers that take paths, in memory where the
// system has such a place. Removed when the process ends in good order.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }
  // Writes the file `name` and returns its path.
  std::string Write(absl::string_view name, absl::string_view bytes) const;
  // Returns the bytes of the file `name`.
  std::string Read(absl::string_view name) const;
  // Removes everything in the folder.
  void Clear() const;

 private:
  std::string path_;
};

}  // namespace parasol

#endif  // PARASOL_TESTS_FUZZ_READERS_SCRATCH_FOLDER_H_
