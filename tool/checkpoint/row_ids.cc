#include "tool/checkpoint/row_ids.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/row_hash.h"
#include "base/status_macros.h"
#include "proto/checkpoint.pb.h"

namespace parasol {
namespace {

absl::Status CheckHas(const CheckpointReader& checkpoint,
                      absl::string_view table, absl::string_view which) {
  std::vector<std::string> names;
  for (const durable::CheckpointTable& one : checkpoint.manifest().table()) {
    if (one.name() == table) return absl::OkStatus();
    names.push_back(one.name());
  }
  return absl::NotFoundError(absl::StrCat(
      "--row_ids=", table, ": ", which, " has no such table; it has ",
      names.empty() ? "none" : absl::StrJoin(names, ", ")));
}

absl::StatusOr<uint64_t> RowsOf(const CheckpointReader& checkpoint,
                                absl::string_view table) {
  uint64_t rows = 0;
  RETURN_IF_ERROR(checkpoint.ReadRows(table, [&rows](const RowBatch& batch) {
    rows += batch.ids.size();
    return absl::OkStatus();
  }));
  return rows;
}

// Returns the ids of a part, ascending.
absl::StatusOr<std::vector<uint64_t>> IdsOf(const CheckpointReader& checkpoint,
                                            absl::string_view table,
                                            uint64_t part, uint64_t parts,
                                            uint64_t rows) {
  std::vector<uint64_t> ids;
  // A little more than the mean: a vector that grows takes twice as much.
  constexpr uint64_t kSpread = 64;
  ids.reserve(rows / parts + rows / parts / kSpread + kSpread);
  RETURN_IF_ERROR(checkpoint.ReadRows(table, [&](const RowBatch& batch) {
    for (const uint64_t id : batch.ids) {
      if (RowHash(id) % parts == part) ids.push_back(id);
    }
    return absl::OkStatus();
  }));
  std::sort(ids.begin(), ids.end());
  return ids;
}

void VisitOnly(const std::vector<uint64_t>& in,
               const std::vector<uint64_t>& not_in,
               absl::FunctionRef<void(uint64_t id)> visit) {
  auto other = not_in.begin();
  for (const uint64_t id : in) {
    while (other != not_in.end() && *other < id) ++other;
    if (other == not_in.end() || *other != id) visit(id);
  }
}

}  // namespace

absl::Status CompareRowIds(const CheckpointReader& a, const CheckpointReader& b,
                           absl::string_view table,
                           absl::FunctionRef<void(uint64_t id)> only_in_a,
                           absl::FunctionRef<void(uint64_t id)> only_in_b,
                           size_t ids_at_a_time) {
  RETURN_IF_ERROR(CheckHas(a, table, "A"));
  RETURN_IF_ERROR(CheckHas(b, table, "B"));
  ASSIGN_OR_RETURN(const uint64_t rows_a, RowsOf(a, table));
  ASSIGN_OR_RETURN(const uint64_t rows_b, RowsOf(b, table));
  const uint64_t parts = std::max(rows_a, rows_b) / ids_at_a_time + 1;
  for (uint64_t part = 0; part < parts; ++part) {
    ASSIGN_OR_RETURN(const std::vector<uint64_t> ids_a,
                     IdsOf(a, table, part, parts, rows_a));
    ASSIGN_OR_RETURN(const std::vector<uint64_t> ids_b,
                     IdsOf(b, table, part, parts, rows_b));
    VisitOnly(ids_a, ids_b, only_in_a);
    VisitOnly(ids_b, ids_a, only_in_b);
  }
  return absl::OkStatus();
}

}  // namespace parasol
