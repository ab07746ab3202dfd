#ifndef PARASOL_STORAGE_CHECKPOINT_NAME_H_
#define PARASOL_STORAGE_CHECKPOINT_NAME_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

// Names of checkpoints' directories and files; storage/FORMAT.md lists them.
namespace parasol {

// Returns true if `name` can be a file's in a checkpoint: it does not begin
// with '.', leads to no other directory, and begins no options of a URI ('?').
bool IsPlainName(absl::string_view name);

// Returns `step` with the digits that names have: 12, or more if it needs them.
std::string StepDigits(int64_t step);

// Returns the name of the complete checkpoint at `step`: "ckpt-000000001200".
std::string CheckpointName(int64_t step);

// Returns the step of a name that CheckpointName() gives; nullopt for any other
// name.
std::optional<int64_t> StepOfName(absl::string_view name);

// Checks that a manifest with `global_step` belongs into `directory`; a
// directory whose name is not a checkpoint's may have any.
//   DataLoss  the directory's name says another step.
absl::Status CheckStepOfName(absl::string_view directory, int64_t global_step);

}  // namespace parasol

#endif  // PARASOL_STORAGE_CHECKPOINT_NAME_H_
