#ifndef PARASOL_WORKER_STORE_TABLE_TABLES_ELSEWHERE_H_
#define PARASOL_WORKER_STORE_TABLE_TABLES_ELSEWHERE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cluster/rows/row_sample.h"
#include "cluster/rows/row_table.h"
#include "storage/shard_entry.h"

namespace parasol {

// The sparse tables of a ParameterStore that are not in host memory, but may go
// there: then all their rows do. Tables are numbered as in the job. Not
// thread-safe.
class TablesElsewhere {
 public:
  virtual ~TablesElsewhere() = default;

  // Starts again without rows, with all tables that belong elsewhere. `on_host`
  // has a table without rows for each of the job's; those that go to the host
  // go there. Borrows them until the next call.
  virtual absl::Status Start(std::vector<RowTable*> on_host) = 0;

  // Returns true while the table is elsewhere, and not in its RowTable.
  virtual bool Has(size_t table) const = 0;

  // Functions on a table. If it is, or goes, to the host, they are carried out
  // there. Errors beside RowTable's: Unavailable, the device was lost.
  //
  // Do what RowTable::Pull() and Insert() do.
  virtual absl::Status Pull(size_t table, absl::Span<const uint64_t> ids,
                            absl::Span<float> values) = 0;
  virtual absl::Status Insert(size_t table, const RowBatch& batch) = 0;
  // Calls `visit` with every row of a table that it has, once, in batches of
  // about 16 KiB, at least one, as a checkpoint has them.
  virtual absl::Status Visit(size_t table, RowVisit visit) = 0;
  // Tells `sample` all rows of a table that it has.
  virtual void AddTo(size_t table, RowSample& sample) const = 0;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_STORE_TABLE_TABLES_ELSEWHERE_H_
