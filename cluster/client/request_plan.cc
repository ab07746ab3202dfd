#include "cluster/client/request_plan.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "cluster/rpc/chunk.h"

namespace parasol {

// Numbers the blocks that the consecutive chunks of a shard fall into: as many
// chunks as fit into `capacity` elements, at least one.
class RequestPlan::BlockCounter {
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
                     const RequestPlan::Limits& limits) {
  size_t elements = 0;
  for (const wire::PartSpec& part : shard.part()) elements += part.elements();
  const size_t message = limits.message_bytes / sizeof(float);
  const size_t share =
      (elements + limits.streams_per_shard - 1) / limits.streams_per_shard;
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

void RequestPlan::AddPart(const wire::PartSpec& part, size_t shard,
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
    Route route{.shard = shard, .stream = block % limits_.streams_per_shard};
    route.range = {.part = part.id(),
                   .first = first,
                   .count = count,
                   .offset = part.first_element() + first};
    variable->routes.push_back(route);
    last_block = block;
    first_chunk = false;
  }
}

absl::StatusOr<RequestPlan> RequestPlan::Make(
    const wire::GetPlacementResponse& placement,
    const std::vector<std::string>& variables, const Limits& limits) {
  RequestPlan plan;
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
        variable->untrained = part.has_optimizer();
      }
      plan.AddPart(part, shard, blocks, variable);
    }
  }
  for (const auto& [name, variable] : by_name) {
    RETURN_IF_ERROR(SortAndCheck(*variable)) << "placement: variable " << name;
  }
  return plan;
}

absl::Status RequestPlan::SortAndCheck(Variable& variable) {
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

std::vector<RequestPlan::Message> RequestPlan::Messages(
    const std::vector<size_t>& variables) const {
  struct Open {
    size_t message = 0;
    size_t elements = 0;
  };
  std::vector<Message> messages;
  // The open messages; the key is (shard, stream, untrained).
  std::map<std::tuple<size_t, size_t, bool>, Open> open;
  const size_t capacity = limits_.message_bytes / sizeof(float);
  for (size_t item = 0; item < variables.size(); ++item) {
    const Variable& variable = variables_[variables[item]];
    for (const Route& route : variable.routes) {
      const auto [found, is_new] =
          open.try_emplace({route.shard, route.stream, variable.untrained});
      Open& to = found->second;
      if (is_new || to.elements + route.range.count > capacity ||
          messages[to.message].ranges.size() == kMaxRangesPerMessage) {
        to = {.message = messages.size()};
        messages.push_back({.shard = route.shard,
                            .stream = route.stream,
                            .untrained = variable.untrained});
      }
      messages[to.message].ranges.push_back(route.range);
      messages[to.message].ranges.back().item = item;
      to.elements += route.range.count;
    }
  }
  return messages;
}

bool RequestPlan::SameSharding(const RequestPlan& other) const {
  return num_shards_ == other.num_shards_ && variables_ == other.variables_;
}

}  // namespace parasol
