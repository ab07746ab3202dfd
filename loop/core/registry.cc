#include "loop/core/registry.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace parasol::loop {

absl::Status Registry::Add(std::shared_ptr<VariableState> variable) {
  RETURN_IF_ERROR(Take("variable", variable->spec().name));
  variables_.push_back(std::move(variable));
  return absl::OkStatus();
}

absl::Status Registry::Add(std::shared_ptr<OptimizerState> optimizer) {
  RETURN_IF_ERROR(Take("optimizer", optimizer->name()));
  optimizers_.push_back(std::move(optimizer));
  return absl::OkStatus();
}

absl::Status Registry::Add(KeptValue value) {
  RETURN_IF_ERROR(Take("kept value", value.name));
  kept_.push_back(std::move(value));
  return absl::OkStatus();
}

absl::Status Registry::Take(absl::string_view kind, const std::string& name) {
  if (is_closed_) {
    return absl::FailedPreconditionError(absl::StrCat(
        kind, " ", name,
        " is made after the first step: make everything that a checkpoint has "
        "before it"));
  }
  if (name.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(kind, " without a name"));
  }
  if (name == kIterationsVariable || !names_.insert(name).second) {
    return absl::AlreadyExistsError(absl::StrCat(
        kind, " ", name, ": the name is taken; give it another one"));
  }
  return absl::OkStatus();
}

}  // namespace parasol::loop
