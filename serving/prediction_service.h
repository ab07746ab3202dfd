#ifndef PARASOL_SERVING_PREDICTION_SERVICE_H_
#define PARASOL_SERVING_PREDICTION_SERVICE_H_

#include "grpcpp/server_context.h"
#include "grpcpp/support/status.h"
#include "proto/tensorflow_serving.grpc.pb.h"
#include "serving/prediction.h"

namespace parasol {

// TensorFlow Serving's gRPC service of predictions. Thread-safe.
class PredictionService final
    : public tensorflow::serving::PredictionService::Service {
 public:
  // `prediction` must outlive the service.
  explicit PredictionService(const Prediction& prediction)
      : prediction_(prediction) {}

  grpc::Status Predict(grpc::ServerContext* context,
                       const tensorflow::serving::PredictRequest* request,
                       tensorflow::serving::PredictResponse* response) override;

  grpc::Status GetModelMetadata(
      grpc::ServerContext* context,
      const tensorflow::serving::GetModelMetadataRequest* request,
      tensorflow::serving::GetModelMetadataResponse* response) override;

 private:
  const Prediction& prediction_;
};

// TensorFlow Serving's gRPC service of versions' states. Thread-safe.
class ModelService final : public tensorflow::serving::ModelService::Service {
 public:
  // `prediction` must outlive the service.
  explicit ModelService(const Prediction& prediction)
      : prediction_(prediction) {}

  grpc::Status GetModelStatus(
      grpc::ServerContext* context,
      const tensorflow::serving::GetModelStatusRequest* request,
      tensorflow::serving::GetModelStatusResponse* response) override;

 private:
  const Prediction& prediction_;
};

}  // namespace parasol

#endif  // PARASOL_SERVING_PREDICTION_SERVICE_H_
