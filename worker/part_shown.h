#ifndef PARASOL_WORKER_PART_SHOWN_H_
#define PARASOL_WORKER_PART_SHOWN_H_

#include <optional>

#include "worker/shown/lone_status.h"
#include "worker/training_report.h"

namespace parasol {

// Returns the part of a step that goes on in a training loop, as those who look
// on are told of it.
std::optional<LoneStatus::Doing> DoingOf(const TrainingReporter& reporter);

}  // namespace parasol

#endif  // PARASOL_WORKER_PART_SHOWN_H_
