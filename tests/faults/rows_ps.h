#ifndef PARASOL_TESTS_FAULTS_ROWS_PS_H_
#define PARASOL_TESTS_FAULTS_ROWS_PS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/uri/uri_path.h"
#include "cluster/client/ps_client.h"
#include "coordinator/order.h"
#include "proto/job.pb.h"
#include "storage/checkpoint_manifest.h"
#include "storage/checkpoint_name.h"
#include "storage/checkpoint_reader.h"
#include "storage/checkpoint_store.h"
#include "storage/shard_writer.h"

namespace parasol {

// Number of the shards that have the table of RowsPs.
inline constexpr uint32_t kRowShards = 2;

// The rows of a table of width 1, by their ids.
using Rows = std::map<uint64_t, float>;

// Returns a number that depends on `x` alone, and on all of its bits
// (SplitMix64).
inline uint64_t Mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Returns the rows of the checkpoint's table "t", or those that it has for a
// shard, and verifies what was read.
//   DataLoss  an id is there twice.
inline absl::StatusOr<Rows> RowsOf(const CheckpointReader& reader,
                                   std::optional<ShardNumber> shard) {
  Rows rows;
  const auto visit = [&rows](const RowBatch& batch) -> absl::Status {
    for (size_t i = 0; i < batch.ids.size(); ++i) {
      if (!rows.emplace(batch.ids[i], batch.rows[i]).second) {
        return absl::DataLossError(
            absl::StrCat(batch.ids[i], " is there twice"));
      }
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(shard.has_value() ? reader.ReadRowsFor("t", *shard, visit)
                                    : reader.ReadRows("t", visit));
  RETURN_IF_ERROR(reader.Verify());
  return rows;
}

// A ps with one table, which writes what has changed since a snapshot as ps do.
class RowsPs {
 public:
  explicit RowsPs(uint32_t shard) : shard_(shard) {}

  Rows& rows() { return rows_; }

  // Another process takes its place, with the rows of a checkpoint.
  void Restore(Rows rows) {
    rows_ = std::move(rows);
    newest_.reset();
    complete_.reset();
  }

  absl::StatusOr<wire::SnapshotResponse> Snapshot(
      const wire::SnapshotRequest& request) {
    const Saved* const base = BaseOf(request);
    ASSIGN_OR_RETURN(const auto writer,
                     ShardWriter::Create(CheckpointStore::PathInWorking(
                         request.directory(), request.file_name())));
    writer->SetWriter({.shard = shard_, .num_shards = kRowShards});
    Rows changed = rows_;
    if (base != nullptr) {
      writer->SetBase({base->file.bytes(), base->file.crc32c()});
      std::vector<uint64_t> removed;
      for (const auto& [id, value] : base->rows) {
        if (!rows_.contains(id)) removed.push_back(id);
        if (rows_.contains(id) && rows_[id] == value) changed.erase(id);
      }
      if (!removed.empty()) {
        RETURN_IF_ERROR(writer->AddRemoved("t", removed));
      }
    }
    std::vector<uint64_t> ids;
    std::vector<float> values;
    for (const auto& [id, value] : changed) {
      ids.push_back(id);
      values.push_back(value);
    }
    RETURN_IF_ERROR(writer->AddRows(
        "t", {.updates = ++updates_, .ids = ids, .rows = values}));
    ASSIGN_OR_RETURN(durable::CheckpointFile file, writer->Finish());
    file.set_name(request.file_name());
    newest_ = {.file = file, .rows = rows_};
    wire::SnapshotResponse response;
    response.set_bytes(file.bytes());
    response.set_crc32c(file.crc32c());
    response.set_is_increment(base != nullptr);
    return response;
  }

 private:
  struct Saved {
    durable::CheckpointFile file;
    Rows rows;
  };

  const Saved* BaseOf(const wire::SnapshotRequest& request) {
    if (request.since().empty()) return nullptr;
    const size_t slash = request.since().find('/');
    const auto manifest =
        CheckpointStore(ParentPath(request.directory()))
            .ReadManifest(*StepOfName(request.since().substr(0, slash)));
    if (!manifest.ok()) return nullptr;
    for (const durable::CheckpointFile& file : manifest->file()) {
      if (file.name() != request.since().substr(slash + 1)) continue;
      if (newest_ && IsSameFile(newest_->file, file)) complete_ = newest_;
      if (complete_ && IsSameFile(complete_->file, file)) return &*complete_;
    }
    return nullptr;
  }

  const uint32_t shard_;
  int64_t updates_ = 0;
  Rows rows_;
  std::optional<Saved> newest_;
  std::optional<Saved> complete_;
};

// A client of a RowsPs, which must outlive it. Loads nothing.
class RowsClient : public PsClient {
 public:
  explicit RowsClient(RowsPs& ps) : ps_(ps) {}

  absl::StatusOr<wire::LoadResponse> Load(const wire::LoadRequest&) override {
    return wire::LoadResponse();
  }
  absl::StatusOr<wire::SnapshotResponse> Snapshot(
      const wire::SnapshotRequest& request) override {
    return ps_.Snapshot(request);
  }
  absl::StatusOr<wire::PrepareSnapshotResponse> PrepareSnapshot(
      const wire::PrepareSnapshotRequest&) override {
    return wire::PrepareSnapshotResponse();
  }
  void MoveTo(const std::string&, std::optional<int>) override {}
  void CancelCalls() override {}

 private:
  RowsPs& ps_;
};

// Returns the order to write the checkpoint of `step` of all shards' rows.
inline CheckpointOrder RowsOrder(const std::string& run_id, const job::Job& job,
                                 int64_t step) {
  CheckpointOrder order;
  order.manifest.set_global_step(step);
  order.manifest.set_run_id(run_id);
  *order.manifest.mutable_job() = job;
  durable::CheckpointTable& table = *order.manifest.add_table();
  table.set_name("t");
  table.set_width(1);
  order.incarnations = {1, 2};
  return order;
}

}  // namespace parasol

#endif  // PARASOL_TESTS_FAULTS_ROWS_PS_H_
