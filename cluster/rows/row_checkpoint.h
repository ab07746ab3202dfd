#ifndef PARASOL_CLUSTER_ROWS_ROW_CHECKPOINT_H_
#define PARASOL_CLUSTER_ROWS_ROW_CHECKPOINT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cluster/rows/row_snapshot.h"
#include "cluster/rows/row_table.h"
#include "proto/checkpoint.pb.h"
#include "storage/checkpoint_reader.h"
#include "storage/shard_entry.h"
#include "storage/shard_writer.h"

namespace parasol {

// Writes the ids of snapshots whose rows have gone, before all elements of an
// increment. Errors here and below are ShardWriter's: tables must come in
// ascending order of their names; and
//   FailedPrecondition  a snapshot is not complete.
absl::Status WriteRemoved(absl::Span<const RowSnapshot> tables,
                          ShardWriter& writer);
// Writes the rows of snapshots, and lets go of each block as soon as it is
// written, and then their counts.
absl::Status WriteTables(absl::Span<RowSnapshot> tables, ShardWriter& writer);

// Returns OK if the checkpoint of this manifest has the table with the same
// rows: the first two errors of ReadRows().
absl::Status CheckTable(const durable::CheckpointManifest& manifest,
                        const RowTable& table);

// Adds to `table`, which must be without rows, the rows, and the counts of ids
// without a row, of the table of its name in the checkpoint that belong to
// shard `shard` of `num_shards`, whatever shards wrote them. Also sets the
// number of updates that the table has had. After an error the table is of no
// use.
//   NotFound           the checkpoint has no such table.
//   InvalidArgument    its rows have another width or other slots.
//   DataLoss           the checkpoint was altered, or has a row twice.
//   ResourceExhausted  the rows exceed the table's memory limit.
absl::Status ReadRows(const CheckpointReader& checkpoint, uint32_t shard,
                      uint32_t num_shards, RowTable& table);

// Does the same, but for the counts, for a table that is not a RowTable, but
// has the name, width and slots of `like`: calls `insert` with its rows, batch
// by batch. Takes AlreadyExists of `insert` for a row that is there twice.
absl::Status ReadRows(const CheckpointReader& checkpoint, uint32_t shard,
                      uint32_t num_shards, const RowTable& like,
                      RowVisit insert);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_ROWS_ROW_CHECKPOINT_H_
