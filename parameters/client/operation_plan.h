#ifndef PARASOL_PARAMETERS_CLIENT_OPERATION_PLAN_H_
#define PARASOL_PARAMETERS_CLIENT_OPERATION_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/chief.pb.h"

namespace parasol {

// The operations that a push or pull of variables consists of: large parts are
// cut on chunk boundaries, small ones travel together. Variables that are not
// trained share operations with each other only: they travel whole and exact,
// whatever the encoding of the others.
//
// A chunk always travels in the same lane to its shard. So a pull comes after
// the earlier pushes of its chunks without waiting for them, and two lanes
// never update one chunk at the same time. Immutable.
class OperationPlan {
 public:
  struct Limits {
    size_t lanes_per_shard = 1;
    // Bytes of neighbouring chunks that travel in the same lane.
    size_t message_bytes = 0;
    // Maximum bytes of one operation, unless a single chunk is larger. A ps
    // checks and applies an operation as a whole: one that fits into a core's
    // cache is read from there.
    size_t operation_bytes = 256 << 10;
  };

  //   InvalidArgument  a variable is missing or is not covered by its parts;
  //                    the message names it.
  static absl::StatusOr<OperationPlan> Make(
      const wire::GetPlacementResponse& placement,
      const std::vector<std::string>& variables, const Limits& limits);

  // A range of whole chunks of one part.
  struct Range {
    uint32_t part = 0;
    uint64_t first = 0;  // index in the part
    uint64_t count = 0;
    size_t offset = 0;  // index of its first element in the variable
    size_t item = 0;    // index of the variable in the request

    friend bool operator==(const Range&, const Range&) = default;
  };
  struct Operation {
    size_t shard = 0;
    size_t lane = 0;
    // True if the variables are not trained: their parts have optimizers of
    // their own.
    bool untrained = false;
    absl::InlinedVector<Range, 1> ranges = {};
  };

  // Returns the operations for `variables`, which are numbers. Each element is
  // in exactly one range.
  absl::InlinedVector<Operation, 1> Operations(
      absl::Span<const size_t> variables) const;

  size_t num_shards() const { return num_shards_; }
  size_t num_variables() const { return variables_.size(); }
  // Number of elements of the whole variable.
  size_t elements(size_t variable) const {
    return variables_[variable].elements;
  }

  // Number of elements of each variable.
  std::vector<size_t> elements() const {
    std::vector<size_t> elements;
    for (const Variable& each : variables_) elements.push_back(each.elements);
    return elements;
  }

  // Returns true if messages of this plan mean the same in `other`.
  bool SameSharding(const OperationPlan& other) const;

 private:
  // A range (its item is not set), and the shard and lane on which it
  // travels.
  struct Route {
    size_t shard = 0;
    size_t lane = 0;
    Range range = {};

    friend bool operator==(const Route&, const Route&) = default;
  };
  struct Variable {
    size_t elements = 0;
    bool untrained = false;
    std::vector<Route> routes;  // sorted by offset

    friend bool operator==(const Variable&, const Variable&) = default;
  };

  class BlockCounter;

  OperationPlan() = default;
  void AddPart(const wire::PartSpec& part, size_t shard, BlockCounter& blocks,
               Variable* variable);
  static absl::Status SortAndCheck(Variable& variable);

  Limits limits_;
  size_t num_shards_ = 0;
  std::vector<Variable> variables_;
};

}  // namespace parasol

#endif  // PARASOL_PARAMETERS_CLIENT_OPERATION_PLAN_H_
