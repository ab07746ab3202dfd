#ifndef PARASOL_CLUSTER_CLIENT_ROW_REQUESTS_H_
#define PARASOL_CLUSTER_CLIENT_ROW_REQUESTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cluster/client/shard_request.h"
#include "proto/chief.pb.h"
#include "proto/job.pb.h"

namespace parasol {

// The positions 0 … ids.size() - 1 sorted by the shard of their ids; ascending
// within a shard.
struct RowPartition {
  RowPartition(absl::Span<const uint64_t> ids, size_t num_shards);

  absl::Span<const uint32_t> OfShard(size_t shard) const {
    return absl::MakeSpan(positions).subspan(begin[shard],
                                             begin[shard + 1] - begin[shard]);
  }

  std::vector<uint32_t> positions;
  std::vector<size_t> begin;  // begin of each shard's positions, and the end
};

// The requests that a push or pull of rows of sparse tables consists of. All
// requests of a table to one shard travel on the same stream, so that a pull
// comes after the earlier pushes without waiting for them. If the rows of one
// request lie one after the other in the caller's memory, as with one shard,
// they are sent from there and received there; otherwise they are sent from a
// copy. Immutable.
class RowRequests {
 public:
  struct Limits {
    size_t streams_per_shard = 1;
    // Maximum bytes of one message; a longer list of rows to be pulled is cut.
    size_t message_bytes = 0;
    job::Encoding encoding = job::FLOAT32;
  };

  //   InvalidArgument  a shard lacks a table or has it in another form than the
  //                    others; the message names it.
  static absl::StatusOr<RowRequests> Make(
      const wire::GetPlacementResponse& placement,
      const std::vector<std::string>& tables, const Limits& limits);

  size_t num_tables() const { return tables_.size(); }
  size_t width(size_t table) const { return tables_[table].width; }

  // Appends the requests that pull rows `ids` to `values`, ids.size() x width.
  // Their run, completion and min_updates are not set yet.
  void AddPulls(size_t table, absl::Span<const uint64_t> ids,
                absl::Span<float> values,
                std::vector<std::shared_ptr<ShardRequest>>& requests) const;

  // Appends one request for each shard, with its part of `gradients`, encoded.
  // Their run, completion and step are not set yet. A push counts as one update
  // and so can't be cut:
  //   InvalidArgument  a shard's part is too large for a message.
  absl::Status AddPushes(
      size_t table, absl::Span<const uint64_t> ids,
      absl::Span<const float> gradients,
      std::vector<std::shared_ptr<ShardRequest>>& requests) const;

  // Returns true if requests of this object mean the same in `other`.
  bool SameTables(const RowRequests& other) const {
    return num_shards_ == other.num_shards_ && tables_ == other.tables_;
  }

 private:
  struct Table {
    std::string name = {};
    uint32_t id = 0;
    size_t width = 0;

    friend bool operator==(const Table&, const Table&) = default;
  };

  RowRequests() = default;
  std::shared_ptr<ShardRequest> Request(ShardRequest::Kind kind, size_t shard,
                                        size_t table, size_t rows) const;

  Limits limits_;
  size_t num_shards_ = 0;
  std::vector<Table> tables_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLIENT_ROW_REQUESTS_H_
