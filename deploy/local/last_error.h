#ifndef PARASOL_DEPLOY_LOCAL_LAST_ERROR_H_
#define PARASOL_DEPLOY_LOCAL_LAST_ERROR_H_

#include <string>

#include "absl/strings/string_view.h"

namespace parasol {

// Why a task ended, from the end of its log (text or JSON lines): the last
// line "<binary>: message", which is what main() prints before it exits with
// an error, as "message"; else the message of the last ERROR or FATAL line;
// else the last line that is no log line, since the dynamic linker and the
// sanitizers write there too; else nothing.
std::string LastError(absl::string_view log, absl::string_view binary);

}  // namespace parasol

#endif  // PARASOL_DEPLOY_LOCAL_LAST_ERROR_H_
