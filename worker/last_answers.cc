#include "worker/last_answers.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "base/log.h"

namespace parasol {
namespace {

constexpr absl::Duration kLookInterval = absl::Milliseconds(100);

}  // namespace

void AwaitLastAnswers(const std::unique_ptr<TrainingParameters>& parameters,
                      absl::Duration limit, Clock& clock, absl::Mutex& mu,
                      const absl::Condition& is_drained) {
  const absl::Time deadline = clock.Now() + limit;
  absl::Duration left = limit;
  while (
      !clock.AwaitWithTimeout(mu, is_drained, std::min(left, kLookInterval))) {
    left = deadline - clock.Now();
    TrainingParameters::Awaited awaited;
    if (parameters != nullptr) awaited = parameters->Unanswered();
    const bool is_in_vain = clock.Now() - awaited.away_since >= kAwayLimit;
    if (!is_in_vain && left > absl::ZeroDuration()) continue;
    LOG(INFO) << "leaving without an answer to the last gradients"
              << (parameters == nullptr
                      ? ""
                      : " of " + absl::StrJoin(awaited.peers, ", "))
              << ": their steps are to be granted again";
    return;
  }
}

}  // namespace parasol
