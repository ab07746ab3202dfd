#ifndef PARASOL_ML_INPUT_FILE_LOCAL_FILES_H_
#define PARASOL_ML_INPUT_FILE_LOCAL_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace parasol {

// Has the files with these paths on this machine, for those who read all of
// them: objects of a store, which URIs name, are brought, several at a time.
// Whoever opens a file by its URI then reads the copy; of an object that was
// not brought, the bytes that are read come from the store.
//   any  as for ObjectCache::Bring().
absl::Status BringFiles(absl::Span<const std::string> paths);

// Returns a file's path on this machine; brings it there.
//   any  as for ObjectCache::Bring().
absl::StatusOr<std::string> BroughtFile(const std::string& path);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FILE_LOCAL_FILES_H_
