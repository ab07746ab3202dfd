#include "worker/step/granted_steps.h"

#include <algorithm>
#include <utility>

namespace parasol {
namespace {

// Largest number of batches that are taken from one answer.
constexpr size_t kMaxListed = 1 << 16;

// Adds a batch behind the others.
template <typename Ranges>
void AddTo(int64_t batch, Ranges& ranges) {
  if (!ranges.empty() && ranges.back().first + ranges.back().count == batch) {
    ++ranges.back().count;
  } else {
    ranges.push_back({.first = batch, .count = 1});
  }
}

}  // namespace

std::optional<int64_t> GrantedSteps::TryStart() {
  if (!steps_.TryStart()) return std::nullopt;
  const int64_t batch = batches_.front();
  batches_.pop_front();
  Keep(batch);
  return batch;
}

void GrantedSteps::Keep(int64_t batch) {
  if (kept_.empty()) kept_begin_ = steps_.started() - 1;
  AddTo(batch, kept_);
  if (kept_.size() > kMaxKept) Forget(kept_begin_ + kept_.front().count);
}

void GrantedSteps::Forget(int64_t saved) {
  while (!kept_.empty() && kept_begin_ < saved) {
    Range& oldest = kept_.front();
    const int64_t count = std::min(oldest.count, saved - kept_begin_);
    kept_begin_ += count;
    oldest.first += count;
    oldest.count -= count;
    if (oldest.count == 0) kept_.pop_front();
  }
}

void GrantedSteps::Tell(wire::ClaimStepsRequest& request) {
  has_registered_ = false;
  request.set_completed_steps(steps_.completed());
  request.set_started_steps(steps_.started());
  request.set_granted_steps(steps_.granted());
  request.set_assignment_version(version_);
}

void GrantedSteps::Tell(wire::RegisterRequest& request) {
  has_registered_ = true;
  request.set_completed_steps(steps_.completed());
  if (clock_lead_) request.set_clock_lead(*clock_lead_);
  request.set_steps_before_batches(kept_.empty() ? steps_.started()
                                                 : kept_begin_);
  std::vector<Range> ranges(kept_.begin(), kept_.end());
  // It may start these while it registers.
  for (const int64_t batch : Upcoming(static_cast<size_t>(steps_.held()))) {
    AddTo(batch, ranges);
  }
  for (const Range& range : ranges) {
    wire::BatchRange* told = request.add_batch();
    told->set_first(range.first);
    told->set_count(range.count);
  }
}

// The chief names the batches of all steps that it does not know to be
// completed; the first of them may have been started here.
bool GrantedSteps::Take(const wire::ClaimStepsResponse& response) {
  if (has_registered_) return false;
  const bool is_new =
      std::exchange(version_, response.assignment_version()) != version_;
  if (response.has_clock_lead()) clock_lead_ = response.clock_lead();
  Forget(response.saved_steps());
  int64_t started = steps_.started() - response.steps_before_batches();
  batches_.clear();
  for (const wire::BatchRange& range : response.batch()) {
    const int64_t skipped = std::clamp<int64_t>(started, 0, range.count());
    started -= skipped;
    for (int64_t i = skipped; i < range.count() && batches_.size() < kMaxListed;
         ++i) {
      batches_.push_back(range.first() + i);
    }
  }
  // A step without a batch is none.
  const auto listed = static_cast<int64_t>(batches_.size());
  steps_.Grant(std::min(response.granted_steps(), steps_.started() + listed));
  return is_new && steps_.held() == 0;
}

std::vector<int64_t> GrantedSteps::Upcoming(size_t limit) const {
  const size_t upcoming = std::min(batches_.size(), limit);
  return {batches_.begin(), batches_.begin() + upcoming};
}

}  // namespace parasol
