#ifndef PARASOL_CHIEF_KUBEFLOW_TRAINER_STATUS_H_
#define PARASOL_CHIEF_KUBEFLOW_TRAINER_STATUS_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "cluster/checkpoint/evaluation_log.h"
#include "proto/chief.pb.h"

namespace parasol {

// Limits of Kubeflow Trainer's status server and of the TrainJob's schema.
inline constexpr size_t kMaxTrainerStatusBytes = 1 << 16;
inline constexpr size_t kMaxTrainerMetrics = 256;
inline constexpr size_t kMaxTrainerMetricBytes = 64;

// Returns the body of a POST to the status server, UpdateTrainJobStatusRequest:
//   {"trainerStatus":{"progressPercentage":45,"estimatedRemainingSeconds":120,
//    "metrics":[{"name":"loss","value":"0.25"},…],
//    "lastUpdatedTime":"2026-11-28T15:00:00Z"}}
// `left` is the time that the training still takes, and `evaluation` the newest
// one; nullopt: not known. Numbers that are not known or not finite are left
// out, and so are metrics beyond the limits above.
std::string TrainerStatusBody(const wire::JobStatus& status,
                              std::optional<absl::Duration> left,
                              const std::optional<Evaluation>& evaluation,
                              absl::Time now);

}  // namespace parasol

#endif  // PARASOL_CHIEF_KUBEFLOW_TRAINER_STATUS_H_
