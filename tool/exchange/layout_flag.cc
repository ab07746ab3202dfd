#include "tool/exchange/layout_flag.h"

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"

ABSL_FLAG(std::string, layout, "",
          "pytorch: names, axes and flattened images as in a PyTorch "
          "state_dict, without slots and numbers of steps. Default: the "
          "job's.");

namespace parasol {

absl::StatusOr<bool> HasPyTorchLayout() {
  const std::string layout = absl::GetFlag(FLAGS_layout);
  if (layout.empty()) return false;
  if (layout == "pytorch") return true;
  return absl::InvalidArgumentError(
      absl::StrCat("--layout=", layout, ": must be pytorch, or left out"));
}

}  // namespace parasol
