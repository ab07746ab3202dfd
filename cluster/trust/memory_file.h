#ifndef PARASOL_CLUSTER_TRUST_MEMORY_FILE_H_
#define PARASOL_CLUSTER_TRUST_MEMORY_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/descriptor.h"

namespace parasol {

// A file that lies in this process's memory alone, for libraries that take
// paths. Whoever opens the path sees one of the contents whole, never parts of
// two, and each has another time of modification than the one before.
class MemoryFile {
 public:
  // Puts contents in the place of the present ones, or makes the file. Not
  // thread-safe.
  //   ResourceExhausted  the system has no descriptor or memory left; the
  //                      former contents stay.
  absl::Status Replace(absl::string_view contents);

  // Returns the path, for this process and others of its user while this one
  // lives. Requires that Replace() has succeeded once; does not change later.
  std::string path() const;

 private:
  Descriptor file_;
  int64_t version_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_TRUST_MEMORY_FILE_H_
