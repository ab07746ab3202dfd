#ifndef PARASOL_SERVING_MODEL_SPEC_H_
#define PARASOL_SERVING_MODEL_SPEC_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "proto/tensorflow_serving.pb.h"
#include "serving/prediction.h"
#include "serving/served_model.h"

namespace parasol {

// Returns the version that a gRPC request asks for; nullopt: the served one.
//   InvalidArgument  it asks for a label: versions have none.
absl::StatusOr<std::optional<int64_t>> VersionOf(
    const tensorflow::serving::ModelSpec& spec);

// Returns the model that a gRPC request is for. Fails as VersionOf() and
// Prediction::Find() do.
absl::StatusOr<std::shared_ptr<ServedModel>> FindModel(
    const Prediction& prediction, const tensorflow::serving::ModelSpec& spec);

}  // namespace parasol

#endif  // PARASOL_SERVING_MODEL_SPEC_H_
