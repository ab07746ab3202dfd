#ifndef PARASOL_ML_INPUT_OBJECT_OPEN_OBJECT_H_
#define PARASOL_ML_INPUT_OBJECT_OPEN_OBJECT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "ml/input/object/stored_object.h"

namespace parasol {

// Opens what a URI names: an object of a store, or a file of a web server.
//   InvalidArgument  as for ParseObjectUri() and ParseWebUrl().
//   any other        as for StoredObject.
absl::StatusOr<std::shared_ptr<const StoredObject>> OpenStoredObject(
    const std::string& uri);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_OBJECT_OPEN_OBJECT_H_
