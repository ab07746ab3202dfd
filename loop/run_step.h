#ifndef PARASOL_LOOP_RUN_STEP_H_
#define PARASOL_LOOP_RUN_STEP_H_

#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "loop/core/world.h"
#include "loop/per_replica.h"
#include "loop/replica_context.h"
#include "ml/tape/tensor.h"

// What Strategy::Run() makes of a step's arguments and result.
namespace parasol::loop {

// A step's argument as replica `local` has it.
template <typename T>
const T& LocalOf(const PerReplica<T>& values, int local) {
  return values.values()[local];
}
template <typename T>
const T& LocalOf(const T& value, int /*local*/) {
  return value;
}

// Returns the error of an argument, if it has one instead of values.
template <typename T>
absl::Status ErrorOf(const PerReplica<T>& values) {
  return values.status();
}
template <typename T>
absl::Status ErrorOf(const T& /*value*/) {
  return absl::OkStatus();
}

// What a step returns, and what becomes of it.
template <typename T>
struct StepResult {
  using Value = T;
  static absl::Status Take(T result, std::optional<T>& value) {
    if constexpr (std::is_same_v<T, Tensor>) {
      if (!result.status().ok()) return result.status();
    }
    value = std::move(result);
    return absl::OkStatus();
  }
};
template <typename T>
struct StepResult<absl::StatusOr<T>> {
  using Value = T;
  static absl::Status Take(absl::StatusOr<T> result, std::optional<T>& value) {
    if (!result.ok()) return result.status();
    return StepResult<T>::Take(*std::move(result), value);
  }
};

// `run(calls)` calls `calls(local)` for each replica.
template <typename RunAll, typename Step, typename... Arguments>
auto RunStep(RunAll&& run, World& world, Step&& step,
             const Arguments&... arguments) {
  absl::Status fault;
  ((fault.Update(ErrorOf(arguments))), ...);
  const auto call = [&](int local) {
    ReplicaContext context(world, local);
    return step(context, LocalOf(arguments, local)...);
  };
  using Result = decltype(call(0));
  if constexpr (std::is_void_v<Result>) {
    if (!fault.ok()) return fault;
    return run([&](int local) {
      call(local);
      return absl::OkStatus();
    });
  } else if constexpr (std::is_same_v<Result, absl::Status>) {
    if (!fault.ok()) return fault;
    return run(call);
  } else {
    using Value = typename StepResult<Result>::Value;
    std::vector<std::optional<Value>> values(world.num_local());
    if (fault.ok()) {
      fault = run([&](int local) {
        return StepResult<Result>::Take(call(local), values[local]);
      });
    }
    if (!fault.ok()) return PerReplica<Value>(fault);
    std::vector<Value> all;
    for (std::optional<Value>& value : values) all.push_back(*std::move(value));
    return PerReplica<Value>(std::move(all));
  }
}

}  // namespace parasol::loop

#endif  // PARASOL_LOOP_RUN_STEP_H_
