#ifndef PARASOL_ML_INPUT_FILE_FILE_SET_H_
#define PARASOL_ML_INPUT_FILE_FILE_SET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace parasol {

// Files of a data set.
struct FoundFiles {
  std::vector<std::string> paths;  // Paths; of objects in stores URIs
  uint64_t bytes = 0;              // Size of all, packed or not
};

// Returns the files that `patterns`, of the data set's `field`, name. Patterns
// are paths relative to `data_dir`, or globs (*, ?, [a-z]). Either may be a URI
// (ml/input/object/object_uri.h). The files of a glob are ordered by the bytes
// of their names, whatever the locale. A pattern that is itself the name of a
// file stands for that file. Circles of links, and a volume's lost+found that
// may not be looked at, are passed over with a warning if other files are
// found.
//   NotFound         a pattern names no file: says so with the data_dir.
//   InvalidArgument  there is no pattern, or an empty one, or there are more
//                    than 65,536 files.
//   any other        OpenError() of what can't be looked at; as for
//                    FindObjects().
absl::StatusOr<FoundFiles> FindFiles(const std::string& data_dir,
                                     absl::Span<const std::string> patterns,
                                     absl::string_view field);

// Looks for the folders of a set that grows: the one in front of each pattern's
// first wildcard, or of its name. The files may be yet to come, but a folder
// that lacks is a wrong data_dir, or a volume that is not there.
//   NotFound         a folder is not there: names it, and data_dir.
//   InvalidArgument  data_dir is a URI.
//   any other        OpenError() of a folder.
absl::Status CheckFoldersOfGrowingSet(const std::string& data_dir,
                                      absl::Span<const std::string> patterns);

// Returns the names of the files that there are now of a set that grows, each
// once, by the bytes of their names. Names are relative to `data_dir` if their
// pattern is, and so the same for tasks with other directories. A pattern may
// name no file yet. No more than a million entries of folders are looked at.
//   InvalidArgument  there are more entries.
//   any other        OpenError() of what can't be looked at; as for
//                    CheckFoldersOfGrowingSet().
absl::StatusOr<std::vector<std::string>> NamesOfGrowingSet(
    const std::string& data_dir, absl::Span<const std::string> patterns);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FILE_FILE_SET_H_
