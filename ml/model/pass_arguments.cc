#include "ml/model/pass_arguments.h"

#include <algorithm>

#include "base/status_macros.h"

namespace parasol {
namespace {

size_t CountEntries(const Plan& plan, size_t tables) {
  const bool has_seed = std::any_of(
      plan.steps.begin(), plan.steps.end(),
      [](const PlanStep& step) { return step.layer->ReadsStoredSeed(); });
  return std::max(tables, size_t{has_seed});
}

}  // namespace

PassArguments::PassArguments(const Plan& plan, size_t tables, Device& device)
    : device_(device), entries_(CountEntries(plan, tables)) {}

absl::Status PassArguments::Reserve() {
  if (is_empty() || host_.size() > 0) return absl::OkStatus();
  if (!device_.shares_host_memory()) {
    ASSIGN_OR_RETURN(on_device_, device_.NewArray<Entry>(entries_));
  }
  ASSIGN_OR_RETURN(host_, device_.NewHostArray<Entry>(entries_));
  return absl::OkStatus();
}

void PassArguments::SetSeed(uint64_t seed) {
  if (!is_empty()) host_.data()->seed = seed;
}

void PassArguments::SetRows(size_t table, const TableRows& rows) {
  host_.data()[table].rows = rows;
}

absl::Status PassArguments::Load() {
  if (is_empty() || device_.shares_host_memory()) return absl::OkStatus();
  return device_.Copy(Device::Stream::kCompute,
                      absl::Span<const Entry>(host_.span()), on_device_.data());
}

const uint64_t* PassArguments::seed() const {
  return is_empty() ? nullptr : &where_read().data()->seed;
}

const TableRows* PassArguments::rows(size_t table) const {
  return &where_read().data()[table].rows;
}

}  // namespace parasol
