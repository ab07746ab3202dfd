#ifndef PARASOL_SERVING_TENSOR_REQUEST_H_
#define PARASOL_SERVING_TENSOR_REQUEST_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "proto/tensorflow_serving.pb.h"
#include "proto/tensorflow_tensor.pb.h"
#include "serving/request_columns.h"

namespace parasol {

// Reads the inputs of a request, whose first axes count examples, into
// `columns`. Takes float32, float64, integers of 8 to 64 bits and texts.
//   InvalidArgument  an input is unknown, of another type or shape, has another
//                    number of elements than its shape, or is beyond the limits
//                    of `columns`: names the input.
absl::Status ReadTensors(const tensorflow::serving::PredictRequest& request,
                         const RequestLimits& limits, RequestColumns& columns);

// Returns `values` [values.size() / width, width] as a float32 tensor.
tensorflow::TensorProto TensorOf(absl::Span<const float> values, int64_t width);

}  // namespace parasol

#endif  // PARASOL_SERVING_TENSOR_REQUEST_H_
