#include "cluster/hook/training_hook.h"

#include <map>

#include "base/log.h"

namespace parasol {
namespace {

// Filled before main(), and only read afterwards.
std::map<std::string, TrainingHookFactory>& Registered() {
  static auto& registered = *new std::map<std::string, TrainingHookFactory>();
  return registered;
}

}  // namespace

TrainingHookRegistration::TrainingHookRegistration(
    absl::string_view name, TrainingHookFactory factory) {
  const bool is_first =
      Registered().emplace(std::string(name), std::move(factory)).second;
  CHECK(is_first) << "two are registered as hook \"" << name << "\"";
}

std::vector<std::string> TrainingHookNames() {
  std::vector<std::string> names;
  for (const auto& [name, factory] : Registered()) names.push_back(name);
  return names;
}

std::vector<std::unique_ptr<TrainingHook>> MakeTrainingHooks(
    const TrainingHook::Task& task) {
  std::vector<std::unique_ptr<TrainingHook>> hooks;
  for (const auto& [name, factory] : Registered()) {
    hooks.push_back(factory(task));
    CHECK(hooks.back() != nullptr)
        << "the factory of hook \"" << name << "\" returns null";
  }
  return hooks;
}

}  // namespace parasol
