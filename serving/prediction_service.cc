#include "serving/prediction_service.h"

#include <grpc/support/time.h>

#include "absl/time/time.h"
#include "cluster/rpc/status.h"
#include "serving/model_description.h"
#include "serving/tensor_prediction.h"

namespace parasol {
namespace {

// The client's deadline is of another clock: only what is left of it counts.
absl::Duration LeftOf(gpr_timespec deadline) {
  const gpr_timespec left =
      gpr_time_sub(gpr_convert_clock_type(deadline, GPR_CLOCK_MONOTONIC),
                   gpr_now(GPR_CLOCK_MONOTONIC));
  return absl::Milliseconds(gpr_time_to_millis(left));
}

}  // namespace

grpc::Status PredictionService::Predict(
    grpc::ServerContext* context,
    const tensorflow::serving::PredictRequest* request,
    tensorflow::serving::PredictResponse* response) {
  const absl::Time deadline =
      prediction_.Now() + LeftOf(context->raw_deadline());
  return parasol::Answer(PredictTensors(prediction_, *request, deadline),
                         response);
}

grpc::Status PredictionService::GetModelMetadata(
    grpc::ServerContext* /*context*/,
    const tensorflow::serving::GetModelMetadataRequest* request,
    tensorflow::serving::GetModelMetadataResponse* response) {
  return parasol::Answer(DescribeModel(prediction_, *request), response);
}

grpc::Status ModelService::GetModelStatus(
    grpc::ServerContext* /*context*/,
    const tensorflow::serving::GetModelStatusRequest* request,
    tensorflow::serving::GetModelStatusResponse* response) {
  return parasol::Answer(DescribeVersions(prediction_, *request), response);
}

}  // namespace parasol
