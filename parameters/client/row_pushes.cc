#include "parameters/client/row_pushes.h"

#include <utility>

namespace parasol {

void RowPushes::Add(size_t table, std::shared_ptr<const Call> call) {
  absl::MutexLock lock(&mu_);
  Unfinished(table).push_back(std::move(call));
}

bool RowPushes::AreUnanswered(size_t table) {
  absl::MutexLock lock(&mu_);
  return !Unfinished(table).empty();
}

RowPushes::Calls& RowPushes::Unfinished(size_t table) {
  Calls& calls = calls_[table];
  std::erase_if(calls, [](const std::shared_ptr<const Call>& call) {
    return call->completion.IsFinished();
  });
  return calls;
}

}  // namespace parasol
