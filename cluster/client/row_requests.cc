#include "cluster/client/row_requests.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "cluster/rpc/row_shard.h"
#include "ml/compression/half.h"

namespace parasol {
namespace {

// A ps accepts messages of 64 MiB.
constexpr size_t kMaxPushBytes = 60 << 20;

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

absl::StatusOr<RowRequests> RowRequests::Make(
    const wire::GetPlacementResponse& placement,
    const std::vector<std::string>& tables, const Limits& limits) {
  RowRequests requests;
  requests.limits_ = limits;
  requests.num_shards_ = placement.shard_size();
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
    requests.tables_.push_back(table.value_or(Table()));
  }
  return requests;
}

std::shared_ptr<ShardRequest> RowRequests::Request(ShardRequest::Kind kind,
                                                   size_t shard, size_t table,
                                                   size_t rows) const {
  auto request = std::make_shared<ShardRequest>();
  request->kind = kind;
  request->shard = shard;
  request->lane = table % limits_.streams_per_shard;
  request->encoding = limits_.encoding;
  request->rows.table = tables_[table].id;
  request->rows.count = rows;
  request->rows.width = tables_[table].width;
  return request;
}

void RowRequests::AddPulls(
    size_t table, absl::Span<const uint64_t> ids, absl::Span<float> values,
    std::vector<std::shared_ptr<ShardRequest>>& requests) const {
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
      auto request = Request(ShardRequest::Kind::kRowPull, shard, table,
                             /*rows=*/some.size());
      if (AreAdjacent(some)) {
        request->rows.ids = &ids[some.front()];
        request->rows.target = &values[some.front() * width(table)];
      } else {
        request->rows.positions.assign(some.begin(), some.end());
        request->rows.target = values.data();
        request->payload = std::make_unique_for_overwrite<std::byte[]>(
            some.size() * sizeof(uint64_t));
        CopyIds(ids, some, request->payload.get());
      }
      request->payloads = 1;
      request->bytes = some.size() * row_bytes;
      requests.push_back(std::move(request));
    }
  }
}

absl::Status RowRequests::AddPushes(
    size_t table, absl::Span<const uint64_t> ids,
    absl::Span<const float> gradients,
    std::vector<std::shared_ptr<ShardRequest>>& requests) const {
  const RowPartition partition(ids, num_shards_);
  const size_t width = tables_[table].width;
  const size_t row_bytes = EncodedBytes(limits_.encoding, width);
  for (size_t shard = 0; shard < num_shards_; ++shard) {
    const absl::Span<const uint32_t> positions = partition.OfShard(shard);
    const size_t bytes = positions.size() * (sizeof(uint64_t) + row_bytes);
    if (bytes > kMaxPushBytes) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "table %s: gradients of %d rows make a message of %d bytes to ps/%d, "
          "over %d",
          tables_[table].name, positions.size(), bytes, shard, kMaxPushBytes));
    }
    auto request = Request(ShardRequest::Kind::kRowPush, shard, table,
                           /*rows=*/positions.size());
    request->payloads = 2;
    request->bytes = bytes;
    if (limits_.encoding == job::FLOAT32 && AreAdjacent(positions)) {
      request->rows.ids = &ids[positions.front()];
      request->rows.gradients = &gradients[positions.front() * width];
    } else {
      request->payload = std::make_unique_for_overwrite<std::byte[]>(bytes);
      std::byte* out = CopyIds(ids, positions, request->payload.get());
      for (const uint32_t position : positions) {
        Encode(limits_.encoding, gradients.subspan(position * width, width),
               out);
        out += row_bytes;
      }
    }
    requests.push_back(std::move(request));
  }
  return absl::OkStatus();
}

}  // namespace parasol
