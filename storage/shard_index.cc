#include "storage/shard_index.h"

#include <limits>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/byte_order.h"
#include "storage/row_entry.h"

namespace parasol {
namespace {

void AppendText(std::string& out, absl::string_view text) {
  AppendLittleEndian(out, static_cast<uint32_t>(text.size()));
  absl::StrAppend(&out, text);
}

// Takes values off the front of bytes; after one that is not there, none is.
class Taker {
 public:
  explicit Taker(absl::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  T Take() {
    if (bytes_.size() < sizeof(T)) return Fail<T>();
    const T value = LoadLittleEndian<T>(bytes_.data());
    bytes_.remove_prefix(sizeof(T));
    return value;
  }
  std::string TakeText() {
    const uint32_t size = Take<uint32_t>();
    if (bytes_.size() < size) return Fail<std::string>();
    std::string text(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
    return text;
  }
  // Returns false if fewer than `count` values of `bytes` each are left.
  bool Has(uint64_t count, size_t bytes) const {
    return ok_ && count <= bytes_.size() / bytes;
  }
  bool AtEnd() const { return ok_ && bytes_.empty(); }

 private:
  template <typename T>
  T Fail() {
    ok_ = false;
    bytes_ = {};
    return T();
  }

  absl::string_view bytes_;
  bool ok_ = true;
};

// An array has no more elements than this.
constexpr int64_t kMaxElements = int64_t{1} << 48;
// The name of an array, and what stands before it in a key, is no longer.
constexpr size_t kMaxPrefixBytes = 1 << 16;

bool MayHold(int64_t first, int64_t count) {
  return first >= 0 && count > 0 && count <= kMaxElements &&
         first <= std::numeric_limits<int64_t>::max() - count;
}

absl::Status AddRows(ShardIndex& index, const std::string& prefix,
                     absl::string_view value) {
  const auto header = ParseRowsHeader(value);
  if (!header.has_value()) {
    return absl::DataLossError(
        absl::StrCat("an entry of ", value.size(), " bytes can't hold rows"));
  }
  if (index.tables.empty() || index.tables.back().prefix != prefix) {
    index.tables.push_back({.prefix = prefix});
  }
  ShardIndex::Table& table = index.tables.back();
  if (header->count == 0) return absl::OkStatus();
  if (table.floats == 0) table.floats = header->floats;
  if (table.floats == header->floats) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("rows of one table have ",
                                          table.floats, " and ", header->floats,
                                          " float32"));
}

}  // namespace

absl::Status ShardIndex::Add(absl::string_view key, absl::string_view value) {
  if (key == kHeaderKey && value == kHeaderValue) return absl::OkStatus();
  if (const auto rows = ParseRowsKey(key); rows.has_value()) {
    return AddRows(*this, rows->table_prefix, value);
  }
  if (ParseDedupKey(key).has_value() || IsRemovedKey(key) || IsCountsKey(key)) {
    return absl::OkStatus();
  }
  auto elements = ParseElementsKey(key);
  if (!elements.has_value()) {
    return absl::DataLossError(absl::StrCat(
        "has an entry whose key is unknown: ", absl::CHexEscape(key)));
  }
  const size_t bytes = value.size() - kUpdatesBytes;
  const int64_t count = bytes / sizeof(float);
  if (value.size() <= kUpdatesBytes || bytes % sizeof(float) != 0 ||
      !MayHold(elements->first, count)) {
    return absl::DataLossError(absl::StrCat("an entry of ", value.size(),
                                            " bytes can't hold elements"));
  }
  const auto updates = LoadLittleEndian<int64_t>(value.data());
  extents.push_back({*std::move(elements), count, updates});
  return absl::OkStatus();
}

std::string ShardIndex::Encode() const {
  const ShardNumber shard = writer.value_or(ShardNumber());
  std::string bytes;
  AppendLittleEndian(bytes, shard.shard);
  AppendLittleEndian(bytes, shard.num_shards);
  AppendLittleEndian(bytes, static_cast<uint32_t>(tables.size()));
  for (const Table& table : tables) {
    AppendText(bytes, table.prefix);
    AppendLittleEndian(bytes, table.floats);
  }
  for (size_t first = 0, last = 0; first < extents.size(); first = last) {
    const std::string& prefix = extents[first].key.array_prefix;
    while (last < extents.size() && extents[last].key.array_prefix == prefix) {
      ++last;
    }
    AppendText(bytes, prefix);
    AppendLittleEndian(bytes, static_cast<uint32_t>(last - first));
    for (size_t i = first; i < last; ++i) {
      AppendLittleEndian(bytes, static_cast<uint64_t>(extents[i].key.first));
      AppendLittleEndian(bytes, static_cast<uint64_t>(extents[i].count));
      AppendLittleEndian(bytes, static_cast<uint64_t>(extents[i].updates));
    }
  }
  return bytes;
}

std::optional<ShardIndex> ShardIndex::Decode(absl::string_view bytes) {
  Taker taker(bytes);
  ShardIndex index;
  const auto shard = taker.Take<uint32_t>();
  const auto num_shards = taker.Take<uint32_t>();
  if (num_shards > 0) index.writer = {.shard = shard, .num_shards = num_shards};
  const auto tables = taker.Take<uint32_t>();
  if (!taker.Has(tables, 8)) return std::nullopt;
  for (uint32_t i = 0; i < tables; ++i) {
    std::string prefix = taker.TakeText();
    index.tables.push_back({std::move(prefix), taker.Take<uint32_t>()});
  }
  while (taker.Has(1, 1)) {
    const std::string prefix = taker.TakeText();
    const auto count = taker.Take<uint32_t>();
    if (prefix.size() > kMaxPrefixBytes || !taker.Has(count, 24)) {
      return std::nullopt;
    }
    for (uint32_t i = 0; i < count; ++i) {
      Extent extent = {.key = {.array_prefix = prefix}};
      extent.key.first = taker.Take<int64_t>();
      extent.count = taker.Take<int64_t>();
      extent.updates = taker.Take<int64_t>();
      if (!MayHold(extent.key.first, extent.count)) return std::nullopt;
      index.extents.push_back(std::move(extent));
    }
  }
  if (!taker.AtEnd()) return std::nullopt;
  return index;
}

std::string JournalPlace::Encode() const {
  std::string bytes;
  AppendLittleEndian(bytes, journal);
  AppendLittleEndian(bytes, segment);
  return bytes;
}

std::string IncrementBase::Encode() const {
  std::string encoded;
  AppendLittleEndian(encoded, bytes);
  AppendLittleEndian(encoded, crc32c);
  return encoded;
}

std::optional<IncrementBase> IncrementBase::Decode(absl::string_view bytes) {
  Taker taker(bytes);
  IncrementBase base;
  base.bytes = taker.Take<uint64_t>();
  base.crc32c = taker.Take<uint32_t>();
  if (!taker.AtEnd()) return std::nullopt;
  return base;
}

std::optional<JournalPlace> JournalPlace::Decode(absl::string_view bytes) {
  Taker taker(bytes);
  JournalPlace place;
  place.journal = taker.Take<uint64_t>();
  place.segment = taker.Take<uint64_t>();
  if (!taker.AtEnd()) return std::nullopt;
  return place;
}

}  // namespace parasol
