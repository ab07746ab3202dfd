#include "parameters/client/push_pulls.h"

#include <algorithm>
#include <utility>

#include "cluster/rpc/protocol_limits.h"

namespace parasol {

std::vector<PushPullItem> TakeCommonVariables(
    size_t num_variables, TrainingParameters::PushRequest& push,
    TrainingParameters::PullRequest& pull) {
  std::vector<const TrainingParameters::Gradient*> last(num_variables);
  for (const TrainingParameters::Gradient& gradient : push.gradients) {
    last[gradient.variable] = &gradient;
  }
  std::vector<PushPullItem> common;
  std::vector<bool> is_common(push.gradients.size());
  std::erase_if(pull.targets, [&](const TrainingParameters::Target& target) {
    const auto* const gradient = std::exchange(last[target.variable], nullptr);
    if (gradient == nullptr) return false;
    common.push_back({target.variable, gradient->values, target.values});
    is_common[gradient - push.gradients.data()] = true;
    return true;
  });
  size_t i = 0;
  std::erase_if(push.gradients, [&](const TrainingParameters::Gradient&) {
    return is_common[i++];
  });
  return common;
}

absl::Span<float> TakeCommonRows(
    const TrainingParameters::PushRequest& push, size_t number,
    std::vector<TrainingParameters::RowTarget>& pull) {
  const TrainingParameters::RowGradient& rows = push.rows[number];
  const bool is_last = std::none_of(
      push.rows.begin() + number + 1, push.rows.end(),
      [&](const auto& later) { return later.table == rows.table; });
  if (!is_last || rows.values.size() > kMaxPullBytes / sizeof(float)) return {};
  const auto common =
      std::find_if(pull.begin(), pull.end(),
                   [&](const TrainingParameters::RowTarget& target) {
                     return target.table == rows.table &&
                            target.ids.data() == rows.ids.data() &&
                            target.ids.size() == rows.ids.size();
                   });
  if (common == pull.end()) return {};
  const absl::Span<float> values = common->values;
  pull.erase(common);
  return values;
}

}  // namespace parasol
