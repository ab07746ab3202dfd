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

// Name by which a manifest lists a file: "x.sst" is in the checkpoint's own
// directory, "ckpt-000000000005/x.sst" in another checkpoint's, beside it. An
// increment in a store names the files that it continues so.
struct ListedName {
  std::optional<int64_t> step;  // nullopt: of the checkpoint's own directory
  absl::string_view file;       // "x.sst"
};

// Returns the parts of a file's name in a manifest, which must outlive them;
// nullopt if it is neither of the two.
std::optional<ListedName> ParseListedName(absl::string_view name);

// Returns the name of a file without the directory that a manifest has with it.
std::string FileNameOf(absl::string_view listed);

// Returns the path of the file that the manifest of the checkpoint in
// `directory`, which may be a URI, lists as `name`.
std::string ListedPath(absl::string_view directory, absl::string_view name);

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
