#include "parameters/client/operation_plan.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "cluster/placement/placement.h"
#include "cluster/rpc/protocol_limits.h"

namespace parasol {

// Numbers the blocks that the consecutive chunks of a shard fall into: as many
// chunks as fit into `capacity` elements, at least one.
class OperationPlan::BlockCounter {
 public:
  explicit BlockCounter(size_t capacity) : capacity_(capacity) {}

  // The block of the next chunk.
  size_t Next(size_t chunk_elements) {
    if (filled_ > 0 && filled_ + chunk_elements > capacity_) {
      filled_ = 0;
      ++block_;
    }
    filled_ += chunk_elements;
    return block_;
  }

 private:
  const size_t capacity_;
  size_t filled_ = 0;
  size_t block_ = 0;
};

namespace {

// Returns the number of elements of a message, or less if the shard is so small
// that a stream would be left without work; never less than a chunk.
size_t BlockElements(const wire::Shard& shard,
                     const OperationPlan::Limits& limits) {
  size_t elements = 0;
  for (const wire::PartSpec& part : shard.part()) elements += part.elements();
  const size_t message = limits.message_bytes / sizeof(float);
  const size_t share =
      (elements + limits.lanes_per_shard - 1) / limits.lanes_per_shard;
  return std::clamp(share, std::min(kChunkElements, message), message);
}

absl::StatusOr<size_t> VariableElements(const wire::PartSpec& part) {
  int64_t elements = 1;
  for (int64_t extent : part.variable_shape()) {
    if (extent < 0 || __builtin_mul_overflow(elements, extent, &elements)) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "placement: variable %s: bad shape", part.variable()));
    }
  }
  if (part.elements() <= 0 || part.first_element() < 0 ||
      part.elements() > elements - part.first_element()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "placement: variable %s: a part of %d elements at %d of %d",
        part.variable(), part.elements(), part.first_element(), elements));
  }
  return elements;
}

}  // namespace

void OperationPlan::AddPart(const wire::PartSpec& part, size_t shard,
                            BlockCounter& blocks, Variable* variable) {
  const size_t elements = part.elements();
  size_t last_block = 0;
  bool first_chunk = true;
  for (size_t first = 0; first < elements; first += kChunkElements) {
    const size_t count = std::min(kChunkElements, elements - first);
    const size_t block = blocks.Next(count);
    if (variable == nullptr) continue;
    if (!first_chunk && block == last_block) {
      variable->routes.back().range.count += count;
      continue;
    }
    Route route{.shard = shard, .lane = block % limits_.lanes_per_shard};
    route.range = {.part = part.id(),
                   .first = first,
                   .count = count,
                   .offset = part.first_element() + first};
    variable->routes.push_back(route);
    last_block = block;
    first_chunk = false;
  }
}

absl::StatusOr<OperationPlan> OperationPlan::Make(
    const wire::GetPlacementResponse& placement,
    const std::vector<std::string>& variables, const Limits& limits) {
  OperationPlan plan;
  plan.limits_ = limits;
  plan.num_shards_ = placement.shard_size();
  plan.variables_.resize(variables.size());
  std::map<std::string, Variable*> by_name;
  for (size_t i = 0; i < variables.size(); ++i) {
    by_name[variables[i]] = &plan.variables_[i];
  }
  for (size_t shard = 0; shard < plan.num_shards_; ++shard) {
    BlockCounter blocks(BlockElements(placement.shard(shard), limits));
    for (const wire::PartSpec& part : placement.shard(shard).part()) {
      ASSIGN_OR_RETURN(const size_t elements, VariableElements(part));
      const auto known = by_name.find(part.variable());
      Variable* variable = known == by_name.end() ? nullptr : known->second;
      if (variable != nullptr) {
        variable->elements = elements;
        variable->untrained = !IsTrained(part);
      }
      plan.AddPart(part, shard, blocks, variable);
    }
  }
  for (const auto& [name, variable] : by_name) {
    RETURN_IF_ERROR(SortAndCheck(*variable)) << "placement: variable " << name;
  }
  return plan;
}

absl::Status OperationPlan::SortAndCheck(Variable& variable) {
  if (variable.routes.empty()) {
    return absl::InvalidArgumentError("is on no shard");
  }
  std::sort(variable.routes.begin(), variable.routes.end(),
            [](const Route& a, const Route& b) {
              return a.range.offset < b.range.offset;
            });
  size_t covered = 0;
  for (const Route& route : variable.routes) {
    if (route.range.offset != covered) {
      return absl::InvalidArgumentError(
          absl::StrFormat("elements [%d, %d) are on no shard or on two",
                          std::min(covered, route.range.offset),
                          std::max(covered, route.range.offset)));
    }
    covered += route.range.count;
  }
  if (covered != variable.elements) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "elements [%d, %d) are on no shard", covered, variable.elements));
  }
  return absl::OkStatus();
}

absl::InlinedVector<OperationPlan::Operation, 1> OperationPlan::Operations(
    absl::Span<const size_t> variables) const {
  struct Open {
    size_t operation = SIZE_MAX;  // none is open
    size_t elements = 0;
  };
  absl::InlinedVector<Operation, 1> operations;
  // The open operations of each (shard, lane, untrained).
  absl::InlinedVector<Open, 16> open(2 * num_shards_ * limits_.lanes_per_shard);
  const size_t capacity =
      std::min(limits_.operation_bytes, limits_.message_bytes) / sizeof(float);
  // Whole chunks.
  const size_t max_count =
      std::max(capacity / kChunkElements, size_t{1}) * kChunkElements;
  const auto add = [&](const Route& route, bool untrained, const Range& range) {
    const size_t place = route.shard * limits_.lanes_per_shard + route.lane;
    Open& to = open[2 * place + untrained];
    if (to.operation == SIZE_MAX || to.elements + range.count > capacity ||
        operations[to.operation].ranges.size() == kMaxRangesPerMessage) {
      to = {.operation = operations.size()};
      operations.push_back(
          {.shard = route.shard, .lane = route.lane, .untrained = untrained});
    }
    operations[to.operation].ranges.push_back(range);
    to.elements += range.count;
  };
  for (size_t item = 0; item < variables.size(); ++item) {
    const Variable& variable = variables_[variables[item]];
    for (const Route& route : variable.routes) {
      Range left = route.range;
      left.item = item;
      while (left.count > 0) {
        Range some = left;
        some.count = std::min(left.count, max_count);
        add(route, variable.untrained, some);
        left.first += some.count;
        left.offset += some.count;
        left.count -= some.count;
      }
    }
  }
  return operations;
}

bool OperationPlan::SameSharding(const OperationPlan& other) const {
  return num_shards_ == other.num_shards_ && variables_ == other.variables_;
}

}  // namespace parasol
