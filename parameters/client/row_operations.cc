#include "parameters/client/row_operations.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "cluster/placement/row_shard.h"
#include "cluster/rpc/protocol_limits.h"
#include "ml/compression/half.h"

namespace parasol {
namespace {

// Bytes of rows below which a pull is not cut for another lane.
constexpr size_t kMinPullBytes = 64 << 10;

// Writes the ids at `positions` of `ids`; returns the end.
std::byte* CopyIds(absl::Span<const uint64_t> ids,
                   absl::Span<const uint32_t> positions, std::byte* out) {
  for (const uint32_t position : positions) {
    std::memcpy(out, &ids[position], sizeof(uint64_t));
    out += sizeof(uint64_t);
  }
  return out;
}

// Writes ids, encoded gradients and counts of the rows at `positions`.
void CopyGradients(const TrainingParameters::RowGradient& gradients,
                   absl::Span<const uint32_t> positions, size_t width,
                   job::Encoding encoding, std::byte* out) {
  out = CopyIds(gradients.ids, positions, out);
  for (const uint32_t position : positions) {
    Encode(encoding, gradients.values.subspan(position * width, width), out);
    out += EncodedBytes(encoding, width);
  }
  if (gradients.counts.empty()) return;
  for (const uint32_t position : positions) {
    std::memcpy(out, &gradients.counts[position], sizeof(uint32_t));
    out += sizeof(uint32_t);
  }
}

// Whether rows at `positions`, ascending, lie one after the other.
bool AreAdjacent(absl::Span<const uint32_t> positions) {
  return !positions.empty() &&
         positions.back() - positions.front() == positions.size() - 1;
}

// Lets the answer of `rows` go to rows `positions` of `values`.
void SetTarget(absl::Span<const uint32_t> positions, size_t width,
               absl::Span<float> values, ShardOperation::Rows& rows) {
  if (AreAdjacent(positions)) {
    rows.target = &values[positions.front() * width];
  } else {
    rows.positions.assign(positions.begin(), positions.end());
    rows.target = values.data();
  }
}

}  // namespace

RowPartition::RowPartition(absl::Span<const uint64_t> ids, size_t num_shards)
    : positions(ids.size()), begin(num_shards + 1) {
  if (num_shards == 1) {
    begin[1] = ids.size();
    std::iota(positions.begin(), positions.end(), 0);
    return;
  }
  std::vector<uint32_t> shards(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    shards[i] = ShardOfRow(ids[i], num_shards);
    ++begin[shards[i] + 1];
  }
  for (size_t shard = 0; shard < num_shards; ++shard) {
    begin[shard + 1] += begin[shard];
  }
  std::vector<size_t> next(begin.begin(), begin.end() - 1);
  for (size_t i = 0; i < ids.size(); ++i) {
    positions[next[shards[i]]++] = i;
  }
}

absl::StatusOr<RowOperations> RowOperations::Make(
    const wire::GetPlacementResponse& placement,
    const std::vector<std::string>& tables, const Limits& limits) {
  RowOperations operations;
  operations.limits_ = limits;
  operations.num_shards_ = placement.shard_size();
  for (const std::string& name : tables) {
    std::optional<Table> table;
    for (int shard = 0; shard < placement.shard_size(); ++shard) {
      const auto& specs = placement.shard(shard).table();
      const auto spec = std::find_if(
          specs.begin(), specs.end(),
          [&](const wire::TableSpec& spec) { return spec.name() == name; });
      const Table here =
          spec == specs.end()
              ? Table()
              : Table{.name = name, .id = spec->id(), .width = spec->width()};
      if (here.width == 0) {
        return absl::InvalidArgumentError(absl::StrFormat(
            "placement: table %s is not on ps/%d", name, shard));
      }
      if (table.value_or(here) != here) {
        return absl::InvalidArgumentError(absl::StrFormat(
            "placement: table %s differs on ps/%d", name, shard));
      }
      table = here;
    }
    operations.tables_.push_back(table.value_or(Table()));
  }
  return operations;
}

EncodedOperation RowOperations::MakeOperation(
    const std::shared_ptr<const Call>& call, size_t shard, size_t table,
    ShardOperation::Rows rows) const {
  rows.table = tables_[table].id;
  rows.width = tables_[table].width;
  return {.asked = {.call = call,
                    .shard = shard,
                    .lane = table % limits_.lanes_per_shard,
                    .subject = std::move(rows)},
          .encoding = limits_.encoding};
}

void RowOperations::AddPulls(const std::shared_ptr<const Call>& call,
                             size_t table, absl::Span<const uint64_t> ids,
                             absl::Span<float> values, PullLanes pull_lanes,
                             std::vector<EncodedOperation>& operations) const {
  const RowPartition partition(ids, num_shards_);
  const size_t row_bytes =
      std::max(sizeof(uint64_t), EncodedBytes(limits_.encoding, width(table)));
  const size_t message_rows =
      std::max<size_t>(1, limits_.message_bytes / row_bytes);
  const size_t lanes =
      pull_lanes == PullLanes::kAll ? limits_.lanes_per_shard : 1;
  for (size_t shard = 0; shard < num_shards_; ++shard) {
    absl::Span<const uint32_t> left = partition.OfShard(shard);
    const size_t max_rows = std::clamp(
        (left.size() + lanes - 1) / lanes,
        std::min(message_rows, kMinPullBytes / row_bytes + 1), message_rows);
    for (size_t lane = 0; !left.empty(); lane = (lane + 1) % lanes) {
      const absl::Span<const uint32_t> some = left.subspan(0, max_rows);
      left.remove_prefix(some.size());
      ShardOperation::Rows rows;
      rows.count = some.size();
      std::unique_ptr<std::byte[]> payload;
      SetTarget(some, width(table), values, rows);
      if (AreAdjacent(some)) {
        rows.ids = &ids[some.front()];
      } else {
        payload = std::make_unique_for_overwrite<std::byte[]>(some.size() *
                                                              sizeof(uint64_t));
        CopyIds(ids, some, payload.get());
      }
      EncodedOperation& pull = operations.emplace_back(
          MakeOperation(call, shard, table, std::move(rows)));
      pull.asked.lane = (pull.asked.lane + lane) % limits_.lanes_per_shard;
      pull.payload = std::move(payload);
      pull.payloads = 1;
      pull.payload_bytes = some.size() * sizeof(uint64_t);
      pull.bytes = some.size() * row_bytes;
    }
  }
}

absl::Status RowOperations::AddPushes(
    const std::shared_ptr<const Call>& call,
    const TrainingParameters::RowGradient& gradients, absl::Span<float> values,
    std::vector<EncodedOperation>& operations) const {
  const RowPartition partition(gradients.ids, num_shards_);
  const Table& table = tables_[gradients.table];
  const size_t width = table.width;
  const bool has_counts = !gradients.counts.empty();
  const size_t row_bytes = EncodedBytes(limits_.encoding, width) +
                           (has_counts ? sizeof(uint32_t) : 0);
  for (size_t shard = 0; shard < num_shards_; ++shard) {
    const absl::Span<const uint32_t> positions = partition.OfShard(shard);
    const size_t bytes = positions.size() * (sizeof(uint64_t) + row_bytes);
    if (bytes > kMaxRowPushBytes) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "table %s: gradients of %d rows of width %d are %d bytes for ps/%d, "
          "over %d, which one push can have; use more ps or a smaller "
          "batch_size",
          table.name, positions.size(), width, bytes, shard, kMaxRowPushBytes));
    }
    ShardOperation::Rows rows;
    rows.count = positions.size();
    rows.has_counts = has_counts;
    if (!values.empty() && !positions.empty()) {
      SetTarget(positions, width, values, rows);
    }
    std::unique_ptr<std::byte[]> payload;
    if (limits_.encoding == job::FLOAT32 && AreAdjacent(positions)) {
      rows.ids = &gradients.ids[positions.front()];
      rows.gradients = &gradients.values[positions.front() * width];
      if (has_counts) rows.counts = &gradients.counts[positions.front()];
    } else {
      payload = std::make_unique_for_overwrite<std::byte[]>(bytes);
      CopyGradients(gradients, positions, width, limits_.encoding,
                    payload.get());
    }
    EncodedOperation& push = operations.emplace_back(
        MakeOperation(call, shard, gradients.table, std::move(rows)));
    push.payload = std::move(payload);
    push.payloads = has_counts ? 3 : 2;
    push.payload_bytes = bytes;
    push.bytes = bytes;
  }
  return absl::OkStatus();
}

}  // namespace parasol
