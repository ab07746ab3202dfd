#ifndef PARASOL_DEPLOY_LOCAL_LAST_ERROR_H_
#define PARASOL_DEPLOY_LOCAL_LAST_ERROR_H_

#include <string>

#include "absl/strings/string_view.h"

namespace parasol {

// Returns the reason why a task ended, from the end of its log (text or JSON
// lines). The first of these that exists: the "message" of the last line
// "<binary>: message", which main() prints before it exits with an error, or of
// JSON with an "exit_code"; the
// message of the last ERROR or FATAL line; the last line that is not a log
// line, since the dynamic linker and the sanitizers write there too; an empty
// string.
std::string LastError(absl::string_view log, absl::string_view binary);

}  // namespace parasol

#endif  // PARASOL_DEPLOY_LOCAL_LAST_ERROR_H_
