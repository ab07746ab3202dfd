#include "cluster/placement/placement.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <queue>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "cluster/placement/partitioner.h"
#include "ml/optimizer/assigned/optimizer_of.h"
#include "ml/optimizer/assigned/plain_subtraction.h"

namespace parasol {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 50;

absl::Status CheckShape(const VariableSpec& variable) {
  int64_t elements = 1;
  for (const int64_t axis : variable.shape) {
    if (axis < 1 || axis > kMaxElements / elements) {
      return absl::InvalidArgumentError(absl::StrCat(
          "shape ", ShapeText(variable.shape),
          ": axes are at least 1 and their product at most ", kMaxElements));
    }
    elements *= axis;
  }
  return absl::OkStatus();
}

// Appends the variable's parts in the order of their elements, without ids.
absl::Status Split(const VariableSpec& variable,
                   const job::ParameterServerStrategy& strategy, int num_ps,
                   std::vector<wire::PartSpec>& parts) {
  RETURN_IF_ERROR(CheckShape(variable));
  const int64_t num_parts = NumParts(strategy, variable.shape, num_ps);
  if (num_parts > kMaxPartsOfVariable) {
    return absl::InvalidArgumentError(
        absl::StrCat("the partitioner splits it into ", num_parts,
                     " parts, more than ", kMaxPartsOfVariable));
  }
  const int64_t rows = variable.shape.empty() ? 1 : variable.shape[0];
  const int64_t row_elements = variable.elements() / rows;
  int64_t first_element = 0;
  for (const int64_t part_rows : SplitRows(rows, num_parts)) {
    wire::PartSpec& part = parts.emplace_back();
    part.set_variable(variable.name);
    part.mutable_variable_shape()->Assign(variable.shape.begin(),
                                          variable.shape.end());
    part.set_first_element(first_element);
    part.set_elements(part_rows * row_elements);
    *part.mutable_initializer() = variable.initializer;
    if (!variable.trained) {
      *part.mutable_optimizer() = PlainSubtraction();
    } else if (variable.learning_rate_multiplier != 1) {
      part.set_learning_rate_multiplier(variable.learning_rate_multiplier);
    }
    part.set_frozen(variable.frozen);
    first_element += part.elements();
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<wire::PartSpec>> SplitAll(
    const std::vector<VariableSpec>& variables,
    const job::ParameterServerStrategy& strategy, int num_ps) {
  std::vector<wire::PartSpec> parts;
  absl::flat_hash_set<absl::string_view> names;
  for (const VariableSpec& variable : variables) {
    if (!names.insert(variable.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("variable ", variable.name, " appears twice"));
    }
    RETURN_IF_ERROR(Split(variable, strategy, num_ps, parts))
        << "variable " << variable.name;
  }
  return parts;
}

// The shard of each part.
std::vector<int> RoundRobin(size_t num_parts, int num_ps) {
  std::vector<int> shards(num_parts);
  for (size_t i = 0; i < num_parts; ++i) shards[i] = i % num_ps;
  return shards;
}

// Gives each part, the largest first, to the shard with the fewest elements. On
// a tie the earlier part and the lower shard come first.
std::vector<int> BalanceBytes(const std::vector<wire::PartSpec>& parts,
                              int num_ps) {
  std::vector<size_t> order(parts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&parts](size_t a, size_t b) {
    return parts[a].elements() > parts[b].elements();
  });
  using Load = std::pair<int64_t, int>;  // elements, shard
  std::priority_queue<Load, std::vector<Load>, std::greater<>> least_loaded;
  for (int shard = 0; shard < num_ps; ++shard) least_loaded.emplace(0, shard);
  std::vector<int> shards(parts.size());
  for (const size_t part : order) {
    const auto [elements, shard] = least_loaded.top();
    least_loaded.pop();
    shards[part] = shard;
    least_loaded.emplace(elements + parts[part].elements(), shard);
  }
  return shards;
}

double Skew(const Placement& placement) {
  int64_t fullest = 0;
  int64_t total = 0;
  for (const auto& shard : placement.shards) {
    int64_t elements = 0;
    for (const wire::PartSpec& part : shard) elements += part.elements();
    fullest = std::max(fullest, elements);
    total += elements;
  }
  if (total == 0) return 1;
  return static_cast<double>(fullest) * placement.shards.size() / total;
}

}  // namespace

bool IsTrained(const wire::PartSpec& part) {
  return !part.has_optimizer() || part.has_learning_rate_multiplier();
}

void AssignOptimizers(const job::Job& job, Placement& placement) {
  for (std::vector<wire::PartSpec>& shard : placement.shards) {
    for (wire::PartSpec& part : shard) {
      const job::Optimizer& optimizer =
          OptimizerOfVariable(part.variable(), job);
      if (!IsTrained(part) || &optimizer == &job.optimizer()) continue;
      *part.mutable_optimizer() = optimizer;
      part.set_learning_rate_multiplier(part.has_learning_rate_multiplier()
                                            ? part.learning_rate_multiplier()
                                            : 1);
    }
  }
}

absl::StatusOr<Placement> Place(const std::vector<VariableSpec>& variables,
                                const job::ParameterServerStrategy& strategy,
                                int num_ps) {
  if (num_ps < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(num_ps, " ps can't hold variables"));
  }
  ASSIGN_OR_RETURN(std::vector<wire::PartSpec> parts,
                   SplitAll(variables, strategy, num_ps));
  const std::vector<int> shard_of =
      strategy.placement() == job::ParameterServerStrategy::ROUND_ROBIN
          ? RoundRobin(parts.size(), num_ps)
          : BalanceBytes(parts, num_ps);
  Placement placement;
  placement.shards.resize(num_ps);
  for (size_t i = 0; i < parts.size(); ++i) {
    auto& shard = placement.shards[shard_of[i]];
    parts[i].set_id(shard.size());
    shard.push_back(std::move(parts[i]));
  }
  placement.skew = Skew(placement);
  return placement;
}

}  // namespace parasol
