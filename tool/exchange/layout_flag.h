#ifndef PARASOL_TOOL_EXCHANGE_LAYOUT_FLAG_H_
#define PARASOL_TOOL_EXCHANGE_LAYOUT_FLAG_H_

#include <string>

#include "absl/flags/declare.h"
#include "absl/status/statusor.h"

// --layout, a flag of the commands that write models for other programs.
ABSL_DECLARE_FLAG(std::string, layout);

namespace parasol {

// Returns true for --layout=pytorch, false without it.
//   InvalidArgument  it names another layout.
absl::StatusOr<bool> HasPyTorchLayout();

}  // namespace parasol

#endif  // PARASOL_TOOL_EXCHANGE_LAYOUT_FLAG_H_
