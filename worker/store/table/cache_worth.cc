#include "worker/store/table/cache_worth.h"

namespace parasol {

void CacheWorth::Add(int64_t rows, int64_t misses) {
  if (rows == 0) return;
  rows_ += rows;
  misses_ += misses;
  if (++batches_ == options_.batches) EndWindow();
}

// The first window begins with what lay on the device by chance: it is one to
// compare with.
void CacheWorth::EndWindow() {
  const double share =
      1 - static_cast<double>(misses_) / static_cast<double>(rows_);
  const bool is_low = last_share_.has_value() && share < options_.least_share &&
                      share <= *last_share_ + options_.rise;
  if (!is_low) {
    low_windows_ = 0;
    sum_of_shares_ = 0;
  } else if (low_windows_ < options_.windows) {
    ++low_windows_;
    sum_of_shares_ += share;
  }
  last_share_ = share;
  batches_ = 0;
  rows_ = 0;
  misses_ = 0;
}

std::optional<double> CacheWorth::LowShare() const {
  if (low_windows_ < options_.windows) return std::nullopt;
  return sum_of_shares_ / options_.windows;
}

}  // namespace parasol
