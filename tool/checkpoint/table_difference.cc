#include "tool/checkpoint/table_difference.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/row_hash.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

// Memory of a row besides its elements, about: its id and place in a hash map.
constexpr size_t kRowOverhead = 32;

// The rows whose ids fall to one of several equal parts.
struct PartOfIds {
  uint64_t part = 0;
  uint64_t parts = 1;

  bool Has(uint64_t id) const { return RowHash(id) % parts == part; }
};

// Rows of A, in memory, that the rows of B are compared with.
class ComparedRows {
 public:
  explicit ComparedRows(PartOfIds ids) : ids_(ids) {}

  absl::Status Insert(const RowBatch& batch) {
    for (size_t i = 0; i < batch.ids.size(); ++i) {
      if (!ids_.Has(batch.ids[i])) continue;
      floats_ = batch.rows.size() / batch.ids.size();
      if (!places_.emplace(batch.ids[i], values_.size()).second) {
        return absl::DataLossError(
            absl::StrCat("has the row ", batch.ids[i], " twice"));
      }
      const auto row = batch.rows.subspan(i * floats_, floats_);
      values_.insert(values_.end(), row.begin(), row.end());
    }
    return absl::OkStatus();
  }

  void Compare(const RowBatch& batch, TableDifference& difference) {
    for (size_t i = 0; i < batch.ids.size(); ++i) {
      if (!ids_.Has(batch.ids[i])) continue;
      ++difference.rows_b;
      const auto place = places_.find(batch.ids[i]);
      if (place == places_.end()) {
        ++difference.only_in_b;
        continue;
      }
      ++common_;
      CompareRow(values_.data() + place->second,
                 batch.rows.subspan(i * floats_, floats_), difference);
    }
  }

  // Adds the rows that no row of B was compared with.
  void Finish(TableDifference& difference) const {
    const int64_t rows = static_cast<int64_t>(places_.size());
    difference.rows_a += rows;
    difference.only_in_a += rows - common_;
  }

 private:
  static void CompareRow(const float* a, absl::Span<const float> b,
                         TableDifference& difference) {
    double largest = 0;
    for (size_t i = 0; i < b.size(); ++i) {
      largest = std::max(largest, DifferenceOf(a[i], b[i]));
    }
    if (largest > 0) ++difference.differing;
    difference.largest = std::max(difference.largest, largest);
  }

  const PartOfIds ids_;
  size_t floats_ = 0;
  absl::flat_hash_map<uint64_t, size_t> places_;  // first element, by id
  std::vector<float> values_;
  int64_t common_ = 0;
};

// The number of parts in which A's rows fit into `row_bytes`.
absl::StatusOr<uint64_t> PartsOf(const CheckpointReader& a,
                                 absl::string_view table, size_t row_bytes) {
  uint64_t bytes = 0;
  RETURN_IF_ERROR(a.ReadRows(table, [&bytes](const RowBatch& batch) {
    bytes +=
        batch.rows.size() * sizeof(float) + batch.ids.size() * kRowOverhead;
    return absl::OkStatus();
  }));
  return bytes / row_bytes + 1;
}

}  // namespace

double DifferenceOf(float a, float b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double difference = std::abs(static_cast<double>(a) - b);
  return std::isnan(difference) ? std::numeric_limits<double>::infinity()
                                : difference;
}

absl::StatusOr<TableDifference> CompareTable(const CheckpointReader& a,
                                             const CheckpointReader& b,
                                             absl::string_view table,
                                             size_t row_bytes) {
  TableDifference difference;
  difference.name = std::string(table);
  ASSIGN_OR_RETURN(const uint64_t parts, PartsOf(a, table, row_bytes));
  for (uint64_t part = 0; part < parts; ++part) {
    ComparedRows rows({.part = part, .parts = parts});
    RETURN_IF_ERROR(a.ReadRows(
        table, [&rows](const RowBatch& batch) { return rows.Insert(batch); }))
        << "table " << table;
    RETURN_IF_ERROR(b.ReadRows(table, [&](const RowBatch& batch) {
      rows.Compare(batch, difference);
      return absl::OkStatus();
    }));
    rows.Finish(difference);
  }
  return difference;
}

}  // namespace parasol
