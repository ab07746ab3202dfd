#ifndef PARASOL_PARAMETERS_CLIENT_PUSH_PULLS_H_
#define PARASOL_PARAMETERS_CLIENT_PUSH_PULLS_H_

#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "parameters/training_parameters.h"

// Finds what a push and the pull behind it both name, which travels as one
// operation. Something that is pushed again later in the same push stays a push
// of its own: its values would be too old.
namespace parasol {

// A variable that is pushed and pulled.
struct PushPullItem {
  size_t variable = 0;
  absl::Span<const float> gradient;
  absl::Span<float> target;
};

// Takes the variables that both requests name out of both. Their numbers are
// below `num_variables`.
std::vector<PushPullItem> TakeCommonVariables(
    size_t num_variables, TrainingParameters::PushRequest& push,
    TrainingParameters::PullRequest& pull);

// Returns the target of push.rows[number] if `pull` has the same rows, and
// takes it out of there; otherwise empty.
absl::Span<float> TakeCommonRows(
    const TrainingParameters::PushRequest& push, size_t number,
    std::vector<TrainingParameters::RowTarget>& pull);

}  // namespace parasol

#endif  // PARASOL_PARAMETERS_CLIENT_PUSH_PULLS_H_
