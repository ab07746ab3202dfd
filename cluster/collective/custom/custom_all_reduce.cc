#include "cluster/collective/custom/custom_all_reduce.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "ml/custom/code_registry.h"

namespace parasol {
namespace {

CodeRegistry<CustomAllReduceFactory>& Registry() {
  static auto* const registry =
      new CodeRegistry<CustomAllReduceFactory>("all-reduce", "worker");
  return *registry;
}

absl::StatusOr<std::shared_ptr<const AllReducePlanner>> MakeCustom(
    const job::Custom& spec) {
  const CustomAllReduceFactory* const factory = Registry().Find(spec.type());
  if (factory == nullptr) {
    return absl::FailedPreconditionError(Registry().Lacks(spec.type()));
  }
  absl::StatusOr<std::unique_ptr<const AllReducePlanner>> planner =
      (*factory)(spec);
  if (!planner.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "custom all-reduce ", spec.type(), ": ", planner.status().message()));
  }
  CHECK(*planner != nullptr) << "custom all-reduce " << spec.type();
  return std::shared_ptr<const AllReducePlanner>(*std::move(planner));
}

}  // namespace

CustomAllReduceRegistration::CustomAllReduceRegistration(
    absl::string_view type, CustomAllReduceFactory factory) {
  Registry().Add(type, std::move(factory));
}

absl::StatusOr<std::shared_ptr<const AllReducePlanner>> MakeAllReducePlanner(
    const job::MultiWorkerMirrored& strategy) {
  if (strategy.has_custom()) return MakeCustom(strategy.custom());
  return strategy.communication() == job::MultiWorkerMirrored::RING
             ? OwnerSlicesPlanner()
             : nullptr;
}

absl::StatusOr<std::shared_ptr<const AllReducePlanner>> MakeAllReducePlanner(
    const job::Mirrored& strategy) {
  if (!strategy.has_custom()) return nullptr;
  return MakeCustom(strategy.custom());
}

}  // namespace parasol
