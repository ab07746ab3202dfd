#ifndef PARASOL_CLUSTER_ROWS_ROW_SAMPLE_H_
#define PARASOL_CLUSTER_ROWS_ROW_SAMPLE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "base/row_hash.h"

namespace parasol {

// The ids of some of a table's rows: those with the smallest hashes
// (RowHash()). Every program so takes the same rows of the same table, and all
// rows have the same chance. Later on the same rows are taken again, but for
// new ones that take the places of some. Not thread-safe.
class RowSample {
 public:
  // Most rows of a sample, and most values that they may have together unless
  // it is one row.
  static constexpr size_t kRows = 1024;
  static constexpr size_t kValues = size_t{1} << 20;

  // Starts a sample of a table whose rows have `width` values.
  explicit RowSample(size_t width);

  // Tells it a row of the table; again makes no difference.
  void Add(uint64_t id) {
    const uint64_t hash = RowHash(id);
    if (!IsFullBelow(hash)) Take(hash, id);
  }

  // Returns true if no row with this hash or a larger one would be taken.
  bool IsFullBelow(uint64_t hash) const { return is_full_ && hash >= largest_; }

  // Returns the ids, in the order of their hashes.
  std::vector<uint64_t> Ids() const;

 private:
  void Take(uint64_t hash, uint64_t id);

  const size_t limit_;
  std::map<uint64_t, uint64_t> ids_;  // ids by their hashes
  bool is_full_ = false;
  uint64_t largest_ = 0;  // largest hash, if it is full
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_ROWS_ROW_SAMPLE_H_
