#include "cluster/rows/row_checkpoint.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "cluster/placement/row_shard.h"
#include "cluster/rows/row_form.h"
#include "storage/shard_entry.h"

namespace parasol {
namespace {

// The rows of a batch that one shard holds. Keeps its memory.
class RowsOfShard {
 public:
  RowsOfShard(uint32_t shard, uint32_t num_shards)
      : shard_(shard), num_shards_(num_shards) {}

  // Lives until the next call.
  RowBatch Select(const RowBatch& batch) {
    if (num_shards_ == 1 || batch.ids.empty()) return batch;
    const size_t floats = batch.rows.size() / batch.ids.size();
    ids_.clear();
    rows_.clear();
    touched_.clear();
    for (size_t i = 0; i < batch.ids.size(); ++i) {
      if (ShardOfRow(batch.ids[i], num_shards_) != shard_) continue;
      ids_.push_back(batch.ids[i]);
      const auto row = batch.rows.subspan(i * floats, floats);
      rows_.insert(rows_.end(), row.begin(), row.end());
      if (!batch.touched.empty()) touched_.push_back(batch.touched[i]);
    }
    return {.updates = batch.updates,
            .ids = ids_,
            .rows = rows_,
            .touched = touched_};
  }

  CountBatch Select(const CountBatch& batch) {
    if (num_shards_ == 1) return batch;
    ids_.clear();
    counts_.clear();
    touched_.clear();
    for (size_t i = 0; i < batch.ids.size(); ++i) {
      if (ShardOfRow(batch.ids[i], num_shards_) != shard_) continue;
      ids_.push_back(batch.ids[i]);
      counts_.push_back(batch.counts[i]);
      if (!batch.touched.empty()) touched_.push_back(batch.touched[i]);
    }
    return {.ids = ids_, .counts = counts_, .touched = touched_};
  }

 private:
  const uint32_t shard_;
  const uint32_t num_shards_;
  std::vector<uint64_t> ids_;
  std::vector<float> rows_;
  std::vector<int64_t> touched_;
  std::vector<uint32_t> counts_;
};

absl::Status CheckComplete(absl::Span<const RowSnapshot> tables) {
  for (const RowSnapshot& table : tables) {
    if (table.is_complete()) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("table ", table.name(),
                     ": more rows have gone than are kept track of; the next "
                     "checkpoint is whole"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteRemoved(absl::Span<const RowSnapshot> tables,
                          ShardWriter& writer) {
  constexpr size_t kIdsAtOnce = 4096;
  RETURN_IF_ERROR(CheckComplete(tables));
  for (const RowSnapshot& table : tables) {
    std::vector<uint64_t> ids(table.removed().begin(), table.removed().end());
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    absl::Span<const uint64_t> left = ids;
    for (; !left.empty();
         left = left.subspan(std::min(kIdsAtOnce, left.size()))) {
      RETURN_IF_ERROR(
          writer.AddRemoved(table.name(), left.subspan(0, kIdsAtOnce)));
    }
  }
  return absl::OkStatus();
}

absl::Status WriteTables(absl::Span<RowSnapshot> tables, ShardWriter& writer) {
  RETURN_IF_ERROR(CheckComplete(tables));
  for (RowSnapshot& table : tables) {
    RETURN_IF_ERROR(table.Drain([&](const RowBatch& batch) {
      return writer.AddRows(table.name(), batch);
    }));
  }
  for (const RowSnapshot& table : tables) {
    RETURN_IF_ERROR(table.VisitCounts([&](const CountBatch& batch) {
      return writer.AddCounts(table.name(), batch);
    }));
  }
  return absl::OkStatus();
}

absl::Status CheckTable(const durable::CheckpointManifest& manifest,
                        const RowTable& table) {
  for (const durable::CheckpointTable& saved : manifest.table()) {
    if (saved.name() != table.name()) continue;
    if (HasSameRows(saved, table.form())) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "table \"", table.name(), "\" has rows of width ", saved.width(),
        " and slots ", SlotsText(saved), ", the job's ", table.width(), " and ",
        SlotsText(table.form())));
  }
  return absl::NotFoundError(
      absl::StrCat("has no table \"", table.name(), "\""));
}

absl::Status ReadRows(const CheckpointReader& checkpoint, uint32_t shard,
                      uint32_t num_shards, RowTable& table) {
  RETURN_IF_ERROR(
      ReadRows(checkpoint, shard, num_shards, table,
               [&table](const RowBatch& rows) { return table.Insert(rows); }));
  RowsOfShard of_shard(shard, num_shards);
  RETURN_IF_ERROR(checkpoint.ReadCountsFor(
      table.name(), {shard, num_shards}, [&](const CountBatch& counts) {
        table.InsertCounts(of_shard.Select(counts));
        return absl::OkStatus();
      }));
  table.EndInsertions();
  return absl::OkStatus();
}

absl::Status ReadRows(const CheckpointReader& checkpoint, uint32_t shard,
                      uint32_t num_shards, const RowTable& like,
                      RowVisit insert) {
  RETURN_IF_ERROR(CheckTable(checkpoint.manifest(), like));
  RowsOfShard rows(shard, num_shards);
  return checkpoint.ReadRowsFor(
      like.name(), {shard, num_shards}, [&](const RowBatch& batch) {
        const absl::Status inserted = insert(rows.Select(batch));
        if (!absl::IsAlreadyExists(inserted)) return inserted;
        return absl::DataLossError(
            absl::StrCat(inserted.message(), " is in the checkpoint twice"));
      });
}

}  // namespace parasol
