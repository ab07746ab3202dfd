#include "storage/shard_key.h"

#include <limits>

#include "storage/byte_order.h"

namespace parasol {
namespace {

constexpr char kElementsTag = 'e';
constexpr char kRowsTag = 'r';
constexpr char kRemovedTag = 'd';
constexpr char kCountsTag = 's';
constexpr char kDedupTag = 'w';
constexpr size_t kFirstBytes = 8;
constexpr size_t kBatchBytes = 8;
constexpr size_t kDedupKeyBytes = 1 + 4 + 4 + 8;

// Bytes of the escaped name at the start of `bytes`, its terminator included;
// 0: there is no well-formed one.
size_t EscapedNameSize(absl::string_view bytes) {
  for (size_t i = 0; i + 1 < bytes.size(); ++i) {
    if (bytes[i] != '\0') continue;
    if (bytes[i + 1] == '\x01') return i + 2;
    if (bytes[i + 1] != '\xff') return 0;
    ++i;
  }
  return 0;
}

std::string TaggedName(char tag, absl::string_view name) {
  std::string bytes(1, tag);
  bytes.reserve(name.size() + 4);
  for (const char byte : name) {
    bytes.push_back(byte);
    if (byte == '\0') bytes.push_back('\xff');
  }
  bytes.append("\x00\x01", 2);
  return bytes;
}

std::string WithTag(char tag, absl::string_view prefix) {
  std::string tagged(prefix);
  tagged[0] = tag;
  return tagged;
}

// Returns true for a key of batches of a table.
bool IsBatchKey(char tag, absl::string_view key) {
  if (key.empty() || key[0] != tag) return false;
  const size_t name_size = EscapedNameSize(key.substr(1));
  return name_size > 0 && key.size() == 1 + name_size + kBatchBytes;
}

}  // namespace

std::string ArrayPrefix(absl::string_view variable, int array) {
  std::string prefix = TaggedName(kElementsTag, variable);
  prefix.push_back(static_cast<char>(array));
  return prefix;
}

std::string TablePrefix(absl::string_view table) {
  return TaggedName(kRowsTag, table);
}

std::string RemovedKey(absl::string_view table, uint64_t batch) {
  return RowsKey{TaggedName(kRemovedTag, table), batch}.Encode();
}

std::string CountsKey(absl::string_view table, uint64_t batch) {
  return RowsKey{TaggedName(kCountsTag, table), batch}.Encode();
}

std::string RemovedPrefix(absl::string_view table_prefix) {
  return WithTag(kRemovedTag, table_prefix);
}

std::string CountsPrefix(absl::string_view table_prefix) {
  return WithTag(kCountsTag, table_prefix);
}

std::string ElementsKey::Encode() const {
  std::string key = array_prefix;
  AppendBigEndian(key, static_cast<uint64_t>(first));
  return key;
}

std::string RowsKey::Encode() const {
  std::string key = table_prefix;
  AppendBigEndian(key, batch);
  return key;
}

std::string DedupKey::Encode() const {
  std::string key(1, kDedupTag);
  AppendBigEndian(key, shard);
  AppendBigEndian(key, num_shards);
  AppendBigEndian(key, worker_incarnation);
  return key;
}

std::optional<ElementsKey> ParseElementsKey(absl::string_view key) {
  if (key.empty() || key[0] != kElementsTag) return std::nullopt;
  const size_t name_size = EscapedNameSize(key.substr(1));
  const size_t prefix_size = 1 + name_size + 1;
  if (name_size == 0 || key.size() != prefix_size + kFirstBytes) {
    return std::nullopt;
  }
  const uint64_t first = LoadBigEndian<uint64_t>(key.data() + prefix_size);
  if (first > std::numeric_limits<int64_t>::max()) return std::nullopt;
  return ElementsKey{.array_prefix = std::string(key.substr(0, prefix_size)),
                     .first = static_cast<int64_t>(first)};
}

std::optional<RowsKey> ParseRowsKey(absl::string_view key) {
  if (!IsBatchKey(kRowsTag, key)) return std::nullopt;
  const size_t prefix_size = key.size() - kBatchBytes;
  return RowsKey{.table_prefix = std::string(key.substr(0, prefix_size)),
                 .batch = LoadBigEndian<uint64_t>(key.data() + prefix_size)};
}

bool IsRemovedKey(absl::string_view key) {
  return IsBatchKey(kRemovedTag, key);
}

bool IsCountsKey(absl::string_view key) { return IsBatchKey(kCountsTag, key); }

std::optional<DedupKey> ParseDedupKey(absl::string_view key) {
  if (key.size() != kDedupKeyBytes || key[0] != kDedupTag) return std::nullopt;
  return DedupKey{
      .shard = LoadBigEndian<uint32_t>(key.data() + 1),
      .num_shards = LoadBigEndian<uint32_t>(key.data() + 5),
      .worker_incarnation = LoadBigEndian<uint64_t>(key.data() + 9)};
}

}  // namespace parasol
