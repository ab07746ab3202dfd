#ifndef PARASOL_WORKER_LAST_ANSWERS_H_
#define PARASOL_WORKER_LAST_ANSWERS_H_

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "parameters/training_parameters.h"

namespace parasol {

// Time without an answer of a ps that can't be reached, or refuses to work,
// after which a worker that was told to stop waits for it no more.
inline constexpr absl::Duration kAwayLimit = absl::Milliseconds(500);

// Longest wait of worker 0, after Stop(), for the checkpoint that it asks for.
inline constexpr absl::Duration kCheckpointLimit = absl::Seconds(40);

// SyncTrainingLoop::Options::last_push_limit where ps have the variables.
inline constexpr absl::Duration kLastPushLimit = absl::Seconds(1);

// Blocks until `is_drained` holds: the last gradients of a worker that was told
// to stop are answered. Gives up after `limit`, or when they are for a ps that
// is gone or leaves, and says so in the log: others are granted their steps.
// `mu`, which is held, guards `parameters` and the condition; null: there are
// none yet.
void AwaitLastAnswers(const std::unique_ptr<TrainingParameters>& parameters,
                      absl::Duration limit, Clock& clock, absl::Mutex& mu,
                      const absl::Condition& is_drained)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);

}  // namespace parasol

#endif  // PARASOL_WORKER_LAST_ANSWERS_H_
