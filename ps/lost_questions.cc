#include "ps/lost_questions.h"

#include <algorithm>

namespace parasol {

void LostQuestions::NoteLost(absl::Time now) {
  lost_at_ = now;
  next_ = now;
}

bool LostQuestions::Take(absl::Time now) {
  if (now < next_) return false;
  const absl::Duration since = now - lost_at_;
  next_ = since > kLimit ? absl::InfiniteFuture()
                         : now + std::clamp(since / 4, kFirst, kLongest);
  return true;
}

}  // namespace parasol
