#ifndef PARASOL_CHIEF_GROWN_FILES_H_
#define PARASOL_CHIEF_GROWN_FILES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"

namespace parasol {

// The files of a training set that grows which have become larger since they
// were taken: their writer did not rename them when they were whole, and what
// it has added is not trained. Watches the ones that were taken last. Pure.
class GrownFiles {
 public:
  static constexpr size_t kWatched = 256;

  struct Grown {
    std::string name;
    int64_t taken_bytes = 0;
    int64_t bytes = 0;
  };

  // Notes that a file was taken which had this size.
  void Take(std::string name, int64_t bytes);

  // Returns the files that have grown, each once. `size_of` returns a file's
  // size by its name; nullopt: it is gone.
  std::vector<Grown> Look(
      absl::FunctionRef<std::optional<int64_t>(const std::string&)> size_of);

 private:
  struct Taken {
    std::string name;
    int64_t bytes = 0;
  };

  std::deque<Taken> watched_;
};

}  // namespace parasol

#endif  // PARASOL_CHIEF_GROWN_FILES_H_
