#ifndef PARASOL_CLUSTER_CHECK_VALUE_COUNTS_H_
#define PARASOL_CLUSTER_CHECK_VALUE_COUNTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace parasol {

// The different values of a column, counted within bounded memory. Not
// thread-safe.
class ValueCounts {
 public:
  // A value and how often it was seen.
  using Entry = std::pair<std::string, int64_t>;

  // The longest value that is told apart.
  static constexpr size_t kMaxBytes = 200;

  // Creates counts of up to `max_values` different values: those that come
  // later are not told apart.
  explicit ValueCounts(size_t max_values = 100'000) : max_values_(max_values) {}

  void Add(absl::string_view value);

  // Number of values, and of different ones; these are at least so many unless
  // is_complete().
  int64_t all() const { return all_; }
  int64_t distinct() const { return static_cast<int64_t>(counts_.size()); }
  // False if some values, too many or too long, were not told apart.
  bool is_complete() const { return others_ == 0; }

  int64_t CountOf(absl::string_view value) const;
  // Number of different values that were seen once.
  int64_t SeenOnce() const;
  // Returns up to `most` values: the most frequent one first, equally frequent
  // ones in the order of their bytes.
  std::vector<Entry> MostFrequent(size_t most) const;

 private:
  const size_t max_values_;
  absl::flat_hash_map<std::string, int64_t> counts_;
  int64_t all_ = 0;
  int64_t others_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECK_VALUE_COUNTS_H_
