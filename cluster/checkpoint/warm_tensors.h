#ifndef PARASOL_CLUSTER_CHECKPOINT_WARM_TENSORS_H_
#define PARASOL_CLUSTER_CHECKPOINT_WARM_TENSORS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cluster/checkpoint/warm_source.h"
#include "storage/tensor_files/tensor_format.h"

namespace parasol {

// Opens such tensors: a table T is the tensors T/ids and T/rows, or the rows
// with the ids 0, 1, … that T/embeddings has, as Keras names them; every other
// tensor of floats is a variable, and so is T/embeddings. Fails as
// WarmSource::Open() does, but with NotFound or DataLoss in the place of
// InvalidArgument.
absl::StatusOr<std::unique_ptr<WarmSource>> OpenWarmTensors(
    TensorFormat format, const std::string& path);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECKPOINT_WARM_TENSORS_H_
