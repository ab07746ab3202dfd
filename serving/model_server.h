#ifndef PARASOL_SERVING_MODEL_SERVER_H_
#define PARASOL_SERVING_MODEL_SERVER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "cluster/checkpoint/model/checkpoint_model.h"
#include "serving/batch_queue.h"
#include "serving/http_server.h"
#include "serving/model_versions.h"
#include "serving/request_columns.h"

namespace parasol {

// A server of predictions: HTTP, gRPC, and the thread that follows the
// checkpoints.
class ModelServer {
 public:
  struct Options {
    // A directory of checkpoints, or a checkpoint's own, or DIR/BEST: the best
    // one of a directory, and what takes its place.
    std::string path = {};
    // The only step to serve.
    std::optional<int64_t> version = {};
    // Name of the model in requests; empty: the directory's.
    std::string name = {};
    CheckpointModel::Options model = {};
    // Changes of the checkpoint's job ("eval.batch_size=100").
    std::vector<std::string> overrides = {};
    HttpServer::Options http = {};
    int grpc_port = -1;  // -1: no gRPC
    RequestLimits limits = {};
    BatchLimits batches = {};
    absl::Duration request_timeout = absl::Seconds(5);
    absl::Duration poll_interval = absl::Seconds(1);
    // Loads a checkpoint; none: ServedModel::Load().
    ModelVersions::Load load = {};
  };

  // Listens, before any checkpoint is loaded. `clock` and `registry` must
  // outlive the server.
  //   InvalidArgument, NotFound  `path` or a port can't be used: names it.
  static absl::StatusOr<std::unique_ptr<ModelServer>> Start(
      const Options& options, Clock& clock, MetricsRegistry& registry);
  virtual ~ModelServer() = default;

  virtual int http_port() const = 0;

  // Serves until Stop(), then answers the requests in progress, and waits for a
  // load in progress to end. Fails as ModelVersions::Run() does.
  virtual absl::Status Run() = 0;
  // Says at once that the server is not ready, and lets Run() end. Does not
  // wait. Thread-safe.
  virtual void Stop() = 0;
};

}  // namespace parasol

#endif  // PARASOL_SERVING_MODEL_SERVER_H_
