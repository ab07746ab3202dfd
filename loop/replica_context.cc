#include "loop/replica_context.h"

#include <optional>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "loop/core/reduce.h"
#include "ml/tape/operations.h"
#include "ml/tape/tape.h"

namespace parasol::loop {
namespace {

using Combine =
    absl::FunctionRef<absl::StatusOr<Tensor>(absl::Span<const Tensor>)>;

// What a replica brings to a meeting, and takes from it.
struct Brought {
  const Tensor* value = nullptr;
  Tensor* result = nullptr;
};

// Returns what `combine` makes of all replicas' values.
Tensor Together(World& world, int local, absl::string_view what,
                const Tensor& value, Combine combine) {
  Tensor result;
  const Brought own = {.value = &value, .result = &result};
  const absl::Status status = world.Meet(
      local, what, &own,
      [&](absl::Span<const void* const> all) -> absl::Status {
        std::vector<Tensor> locals;
        for (const void* one : all) {
          locals.push_back(*static_cast<const Brought*>(one)->value);
        }
        ASSIGN_OR_RETURN(const std::vector<Tensor> values,
                         GatherValues(what, std::move(locals), world.peers()));
        ASSIGN_OR_RETURN(const Tensor combined, combine(values));
        for (const void* one : all) {
          *static_cast<const Brought*>(one)->result = combined;
        }
        return absl::OkStatus();
      });
  return status.ok() ? StopGradient(result) : Tensor::Error(status);
}

}  // namespace

Tensor ReplicaContext::AllReduce(ReduceOp op, const Tensor& value) {
  return Together(world_, local_, "AllReduce()", value,
                  [&](absl::Span<const Tensor> values) {
                    return ReduceValues(op == ReduceOp::kMean, values);
                  });
}

Tensor ReplicaContext::Gather(const Tensor& value, int axis) {
  return Together(world_, local_, "Gather()", value,
                  [&](absl::Span<const Tensor> values) {
                    return ConcatenateValues(axis, values);
                  });
}

}  // namespace parasol::loop
