#ifndef PARASOL_SERVING_TENSOR_PREDICTION_H_
#define PARASOL_SERVING_TENSOR_PREDICTION_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/tensorflow_serving.pb.h"
#include "serving/prediction.h"

namespace parasol {

// Answers a request in tensors, which ends at `deadline` at the latest. Blocks.
// Fails as Prediction, ReadTensors() and ServedModel do, and with
//   InvalidArgument  output_filter names an output that there is not.
absl::StatusOr<tensorflow::serving::PredictResponse> PredictTensors(
    const Prediction& prediction,
    const tensorflow::serving::PredictRequest& request, absl::Time deadline);

}  // namespace parasol

#endif  // PARASOL_SERVING_TENSOR_PREDICTION_H_
