#ifndef PARASOL_SERVING_MODEL_DESCRIPTION_H_
#define PARASOL_SERVING_MODEL_DESCRIPTION_H_

#include "absl/status/statusor.h"
#include "proto/tensorflow_serving.pb.h"
#include "serving/prediction.h"

// The answers to gRPC calls that ask for what is served.
namespace parasol {

// Returns the inputs and outputs of a version.
//   InvalidArgument        metadata_field is not "signature_def" alone.
//   NotFound, Unavailable  as for Prediction::Find().
absl::StatusOr<tensorflow::serving::GetModelMetadataResponse> DescribeModel(
    const Prediction& prediction,
    const tensorflow::serving::GetModelMetadataRequest& request);

// Returns the states of the version that the request names, or of all.
//   InvalidArgument        it names a label.
//   NotFound, Unavailable  as for Prediction::Find().
absl::StatusOr<tensorflow::serving::GetModelStatusResponse> DescribeVersions(
    const Prediction& prediction,
    const tensorflow::serving::GetModelStatusRequest& request);

}  // namespace parasol

#endif  // PARASOL_SERVING_MODEL_DESCRIPTION_H_
