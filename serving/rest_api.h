#ifndef PARASOL_SERVING_REST_API_H_
#define PARASOL_SERVING_REST_API_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/metrics.h"
#include "serving/http_message.h"
#include "serving/prediction.h"

namespace parasol {

// The headers that have the version of the model in an answer, and the time at
// which its checkpoint was begun.
inline constexpr char kVersionHeader[] = "X-Parasol-Model-Version";
inline constexpr char kWrittenHeader[] = "X-Parasol-Model-Written";

// TensorFlow Serving's REST API for one model, beside /healthz and /metrics:
//
//   POST /v1/models/NAME[/versions/V]:predict
//   GET  /v1/models/NAME[/versions/V]
//   GET  /v1/models/NAME[/versions/V]/metadata
//
// Errors are {"error": …} with 400, 404, 405, 500, 503 or 504. Knows no
// socket. Thread-safe.
class RestApi {
 public:
  // Both references must outlive this object.
  RestApi(const Prediction& prediction, const MetricsRegistry& metrics)
      : prediction_(prediction), metrics_(metrics) {}

  HttpResponse Handle(const HttpRequest& request) const;

  // Lets /healthz say from now on that the server is not ready.
  void SetLeaving() { is_leaving_ = true; }

 private:
  // A path's parts: /v1/models/NAME[/versions/V][:predict or /metadata].
  struct Target {
    std::string model;
    std::optional<int64_t> version;
    std::string verb;
  };
  static std::optional<Target> TargetOf(absl::string_view path);

  HttpResponse Health() const;
  HttpResponse Predict(const Target& target, const HttpRequest& request) const;
  HttpResponse Metadata(const Target& target) const;
  HttpResponse State(const Target& target) const;

  const Prediction& prediction_;
  const MetricsRegistry& metrics_;
  std::atomic<bool> is_leaving_ = false;
};

// Returns the answer to a request that ends with `error`.
HttpResponse ErrorResponse(const absl::Status& error);

}  // namespace parasol

#endif  // PARASOL_SERVING_REST_API_H_
