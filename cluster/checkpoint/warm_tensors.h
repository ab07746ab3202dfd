#ifndef PARASOL_CLUSTER_CHECKPOINT_WARM_TENSORS_H_
#define PARASOL_CLUSTER_CHECKPOINT_WARM_TENSORS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cluster/checkpoint/warm_source.h"

namespace parasol {

// Returns true if `path` names tensors of other programs: a file
// ".safetensors" or ".npz", or a TensorFlow checkpoint, by its prefix or by the
// directory that has its file "checkpoint".
bool NamesTensors(const std::string& path);

// Opens such tensors: a table T is the tensors T/ids and T/rows, every other
// tensor of floats a variable. Errors are those of WarmSource::Open(), and
// NotFound and DataLoss in the place of InvalidArgument.
absl::StatusOr<std::unique_ptr<WarmSource>> OpenWarmTensors(
    const std::string& path);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECKPOINT_WARM_TENSORS_H_
