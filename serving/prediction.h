#ifndef PARASOL_SERVING_PREDICTION_H_
#define PARASOL_SERVING_PREDICTION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "serving/model_versions.h"
#include "serving/request_columns.h"
#include "serving/served_model.h"
#include "serving/serving_metrics.h"

namespace parasol {

// The part of a request that HTTP and gRPC have in common: which model it is
// for, its limits, and how it is counted. Thread-safe.
class Prediction {
 public:
  struct Options {
    // The name of the model in requests.
    std::string name = {};
    RequestLimits limits = {};
    // Time within which the model must be free for a request.
    absl::Duration timeout = absl::Seconds(5);
  };

  // All references must outlive this object.
  Prediction(const Options& options, const ModelVersions& versions,
             Clock& clock, ServingMetrics& metrics)
      : options_(options),
        versions_(versions),
        clock_(clock),
        metrics_(metrics) {}

  const std::string& name() const { return options_.name; }
  const RequestLimits& limits() const { return options_.limits; }
  const ModelVersions& versions() const { return versions_; }
  absl::Time Now() const { return clock_.Now(); }

  // Returns the served version of the model `name`.
  //   NotFound     another name, or another version is served.
  //   Unavailable  none is served yet.
  absl::StatusOr<std::shared_ptr<ServedModel>> Find(
      absl::string_view name, std::optional<int64_t> version) const;

  // Returns the states of one version of the model `name`, or of all. Fails as
  // Find() does, if there is no such version.
  absl::StatusOr<std::vector<VersionState>> States(
      absl::string_view name, std::optional<int64_t> version) const;

  // Returns the outputs of the request's examples. Fails as
  // RequestColumns::ToBatch() and ServedModel::Predict() do.
  absl::StatusOr<std::vector<float>> Predict(ServedModel& model,
                                             absl::string_view signature,
                                             const RequestColumns& columns,
                                             absl::Time deadline) const;

  // Returns the deadline of a request that has come now.
  absl::Time Deadline() const { return clock_.Now() + options_.timeout; }

  // Counts a request that came at `begin` and ends with `status`.
  void Count(absl::Time begin, const absl::Status& status) const;

 private:
  const Options options_;
  const ModelVersions& versions_;
  Clock& clock_;
  ServingMetrics& metrics_;
};

}  // namespace parasol

#endif  // PARASOL_SERVING_PREDICTION_H_
