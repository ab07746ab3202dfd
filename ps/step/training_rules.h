#ifndef PARASOL_PS_STEP_TRAINING_RULES_H_
#define PARASOL_PS_STEP_TRAINING_RULES_H_

#include <cstddef>
#include <memory>

#include "cluster/rows/row_memory.h"
#include "ps/step/non_finite.h"
#include "ps/step/step_state.h"

namespace parasol {

// The way in which all tables of a shard take gradients.
struct TrainingRules {
  // Number of gradients that make an update; 0: asynchronous, each makes one.
  size_t replicas_to_aggregate = 0;
  StepState::Origin origin = StepState::Origin::kInitial;
  NonFinite non_finite = NonFinite::kReject;
  // Memory for gradients that wait until lower replicas' have come; null: no
  // limit.
  std::shared_ptr<RowMemory> memory = nullptr;
};

}  // namespace parasol

#endif  // PARASOL_PS_STEP_TRAINING_RULES_H_
