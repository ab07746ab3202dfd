#include "cluster/client/row_operations.h"

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

// Writes the ids at `positions` of `ids`; returns the end.
std::byte* CopyIds(absl::Span<const uint64_t> ids,
                   absl::Span<const uint32_t> positions, std::byte* out) {
  for (const uint32_t position : positions) {
    std::memcpy(out, &ids[position], sizeof(uint64_t));
    out += sizeof(uint64_t);
  }
  return out;
}

// Whether rows at `positions`, ascending, lie one after the other.
bool AreAdjacent(absl::Span<const uint32_t> positions) {
  return !positions.empty() &&
         positions.back() - positions.front() == positions.size() - 1;
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

std::shared_ptr<ShardOperation> RowOperations::Request(
    ShardOperation::Kind kind, size_t shard, size_t table, size_t rows) const {
  auto operation = std::make_shared<ShardOperation>();
  operation->kind = kind;
  operation->shard = shard;
  operation->lane = table % limits_.lanes_per_shard;
  operation->encoding = limits_.encoding;
  operation->rows.table = tables_[table].id;
  operation->rows.count = rows;
  operation->rows.width = tables_[table].width;
  return operation;
}

void RowOperations::AddPulls(
    size_t table, absl::Span<const uint64_t> ids, absl::Span<float> values,
    std::vector<std::shared_ptr<ShardOperation>>& operations) const {
  const RowPartition partition(ids, num_shards_);
  const size_t row_bytes =
      std::max(sizeof(uint64_t), EncodedBytes(limits_.encoding, width(table)));
  const size_t max_rows =
      std::max<size_t>(1, limits_.message_bytes / row_bytes);
  for (size_t shard = 0; shard < num_shards_; ++shard) {
    absl::Span<const uint32_t> left = partition.OfShard(shard);
    while (!left.empty()) {
      const absl::Span<const uint32_t> some = left.subspan(0, max_rows);
      left.remove_prefix(some.size());
      auto operation = Request(ShardOperation::Kind::kRowPull, shard, table,
                               /*rows=*/some.size());
      if (AreAdjacent(some)) {
        operation->rows.ids = &ids[some.front()];
        operation->rows.target = &values[some.front() * width(table)];
      } else {
        operation->rows.positions.assign(some.begin(), some.end());
        operation->rows.target = values.data();
        operation->payload = std::make_unique_for_overwrite<std::byte[]>(
            some.size() * sizeof(uint64_t));
        CopyIds(ids, some, operation->payload.get());
      }
      operation->payloads = 1;
      operation->bytes = some.size() * row_bytes;
      operations.push_back(std::move(operation));
    }
  }
}

absl::Status RowOperations::AddPushes(
    size_t table, absl::Span<const uint64_t> ids,
    absl::Span<const float> gradients,
    std::vector<std::shared_ptr<ShardOperation>>& operations) const {
  const RowPartition partition(ids, num_shards_);
  const size_t width = tables_[table].width;
  const size_t row_bytes = EncodedBytes(limits_.encoding, width);
  for (size_t shard = 0; shard < num_shards_; ++shard) {
    const absl::Span<const uint32_t> positions = partition.OfShard(shard);
    const size_t bytes = positions.size() * (sizeof(uint64_t) + row_bytes);
    if (bytes > kMaxRowPushBytes) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "table %s: gradients of %d rows make a message of %d bytes to ps/%d, "
          "over %d",
          tables_[table].name, positions.size(), bytes, shard,
          kMaxRowPushBytes));
    }
    auto operation = Request(ShardOperation::Kind::kRowPush, shard, table,
                             /*rows=*/positions.size());
    operation->payloads = 2;
    operation->bytes = bytes;
    if (limits_.encoding == job::FLOAT32 && AreAdjacent(positions)) {
      operation->rows.ids = &ids[positions.front()];
      operation->rows.gradients = &gradients[positions.front() * width];
    } else {
      operation->payload = std::make_unique_for_overwrite<std::byte[]>(bytes);
      std::byte* out = CopyIds(ids, positions, operation->payload.get());
      for (const uint32_t position : positions) {
        Encode(limits_.encoding, gradients.subspan(position * width, width),
               out);
        out += row_bytes;
      }
    }
    operations.push_back(std::move(operation));
  }
  return absl::OkStatus();
}

}  // namespace parasol
