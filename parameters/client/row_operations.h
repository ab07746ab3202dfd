#ifndef PARASOL_PARAMETERS_CLIENT_ROW_OPERATIONS_H_
#define PARASOL_PARAMETERS_CLIENT_ROW_OPERATIONS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "parameters/client/shard_operation.h"
#include "parameters/training_parameters.h"
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

// The operations that a push or pull of rows of sparse tables consists of. All
// pushes of a table to one shard travel in the same lane. So do pulls that have
// to come after pushes that are not answered yet, without waiting for them;
// other pulls are spread over all lanes, so that several threads of the ps
// answer them. If the rows of one operation lie one after the other in the
// caller's memory, as with one shard, they are sent from there and received
// there; otherwise they are sent from a copy. Immutable.
class RowOperations {
 public:
  struct Limits {
    size_t lanes_per_shard = 1;
    // Maximum bytes of one message; a longer list of rows to be pulled is cut.
    size_t message_bytes = 0;
    job::Encoding encoding = job::FLOAT32;
  };

  //   InvalidArgument  a shard lacks a table or has it in another form than the
  //                    others; the message names it.
  static absl::StatusOr<RowOperations> Make(
      const wire::GetPlacementResponse& placement,
      const std::vector<std::string>& tables, const Limits& limits);

  size_t num_tables() const { return tables_.size(); }
  size_t width(size_t table) const { return tables_[table].width; }

  // The lanes of pulls: the lane of the table's pushes, or all.
  enum class PullLanes { kOfPushes, kAll };
  // Appends the operations of `call` that pull rows `ids` to `values`,
  // ids.size() x width.
  void AddPulls(const std::shared_ptr<const Call>& call, size_t table,
                absl::Span<const uint64_t> ids, absl::Span<float> values,
                PullLanes lanes,
                std::vector<EncodedOperation>& operations) const;

  // Appends one operation of `call` for each shard, with its part of
  // `gradients`, encoded. Unless `values` is empty, they are push-pulls, whose
  // answers go there: ids.size() x width. A push counts as one update and so
  // can't be cut:
  //   InvalidArgument  a shard's part is too large for a message.
  absl::Status AddPushes(const std::shared_ptr<const Call>& call,
                         const TrainingParameters::RowGradient& gradients,
                         absl::Span<float> values,
                         std::vector<EncodedOperation>& operations) const;

  // Returns true if operations of this object mean the same in `other`.
  bool SameTables(const RowOperations& other) const {
    return num_shards_ == other.num_shards_ && tables_ == other.tables_;
  }

 private:
  struct Table {
    std::string name = {};
    uint32_t id = 0;
    size_t width = 0;

    friend bool operator==(const Table&, const Table&) = default;
  };

  RowOperations() = default;
  // Returns the operation of `rows`, whose table is not set yet.
  EncodedOperation MakeOperation(const std::shared_ptr<const Call>& call,
                                 size_t shard, size_t table,
                                 ShardOperation::Rows rows) const;

  Limits limits_;
  size_t num_shards_ = 0;
  std::vector<Table> tables_;
};

}  // namespace parasol

#endif  // PARASOL_PARAMETERS_CLIENT_ROW_OPERATIONS_H_
