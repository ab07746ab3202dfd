#ifndef PARASOL_ML_INPUT_OBJECT_FIND_OBJECTS_H_
#define PARASOL_ML_INPUT_OBJECT_FIND_OBJECTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace parasol {

// An object that a pattern names.
struct FoundObject {
  std::string uri;
  uint64_t bytes = 0;
};

// Returns the objects that a URI names, whose path may be a glob (*, ?, [a-z];
// none matches a '/'), in the byte order of their paths. A path that is itself
// an object's stands for that object. Only folders that the pattern goes
// through are listed. A web server has no lists: of it a URL names one file.
//   NotFound         there is none.
//   InvalidArgument  it is a folder, or more than 262,144 are looked at.
//   any other        as for OpenStoredObject() and ObjectStore.
absl::StatusOr<std::vector<FoundObject>> FindObjects(absl::string_view uri);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_OBJECT_FIND_OBJECTS_H_
