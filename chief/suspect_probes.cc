#include "chief/suspect_probes.h"

#include <algorithm>
#include <utility>

namespace parasol {

SuspectProbes::SuspectProbes(
    std::function<bool(const std::string& address)> is_nobody_at,
    std::function<void(const Suspect&)> on_gone)
    : is_nobody_at_(std::move(is_nobody_at)),
      on_gone_(std::move(on_gone)),
      thread_([this] { Run(); }) {}

SuspectProbes::~SuspectProbes() {
  {
    absl::MutexLock lock(&mu_);
    is_ending_ = true;
  }
  thread_.join();
}

void SuspectProbes::Add(const std::vector<Suspect>& suspects) {
  absl::MutexLock lock(&mu_);
  for (const Suspect& suspect : suspects) {
    const auto same = std::find_if(waiting_.begin(), waiting_.end(),
                                   [&suspect](const Suspect& other) {
                                     return other.ps_index == suspect.ps_index;
                                   });
    if (same != waiting_.end()) {
      *same = suspect;
    } else {
      waiting_.push_back(suspect);
    }
  }
}

void SuspectProbes::Run() {
  while (true) {
    Suspect suspect;
    {
      absl::MutexLock lock(&mu_);
      const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
        return is_ending_ || !waiting_.empty();
      };
      mu_.Await(absl::Condition(&has_work));
      if (is_ending_) return;
      suspect = std::move(waiting_.front());
      waiting_.pop_front();
    }
    if (is_nobody_at_(suspect.address)) on_gone_(suspect);
  }
}

}  // namespace parasol
