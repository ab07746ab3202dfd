#ifndef PARASOL_ML_INPUT_OBJECT_WEB_OBJECT_H_
#define PARASOL_ML_INPUT_OBJECT_WEB_OBJECT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "ml/input/object/stored_object.h"
#include "ml/input/web/web_client.h"

namespace parasol {

// Opens a file of a web server. Its version is the server's ETag, or else its
// time of change: a server that has neither is refused, for nobody would see
// that the file has changed. Every answer is held against it.
//   InvalidArgument  as for ParseWebUrl().
//   any other        as for StoredObject.
absl::StatusOr<std::shared_ptr<const StoredObject>> OpenWebObject(
    const std::string& url, WebClient& client, Clock& clock = Clock::Real());

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_OBJECT_WEB_OBJECT_H_
