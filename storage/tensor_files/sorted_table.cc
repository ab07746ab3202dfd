#include "storage/tensor_files/sorted_table.h"

#include <snappy.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "base/status_macros.h"
#include "storage/byte_order.h"
#include "storage/tensor_files/varint.h"

namespace parasol {
namespace {

constexpr size_t kFooterBytes = 48;
constexpr size_t kHandlesBytes = 40;
constexpr uint64_t kTableMagic = 0xdb4775248b80fb57;
constexpr size_t kTrailerBytes = 5;
constexpr char kPlain = 0;
constexpr char kSnappy = 1;
// Entries of a data block between two whole keys.
constexpr int kRestartInterval = 16;
// A larger block is damage: TensorFlow closes them at 256 KiB.
constexpr size_t kMaxBlockBytes = 64 << 20;
// Keys share their beginnings, so that few bytes may say many: the limit of all
// entries of a table together.
constexpr uint64_t kMaxEntriesBytes = 256 << 20;
// Memory of an entry beside its bytes.
constexpr uint64_t kEntryBytes = 128;

struct Handle {
  uint64_t offset = 0;
  uint64_t size = 0;

  std::string Encode() const {
    std::string bytes;
    AppendVarint(offset, bytes);
    AppendVarint(size, bytes);
    return bytes;
  }
};

// A block that grows, entry by entry, in ascending order of the keys.
class BlockBuilder {
 public:
  explicit BlockBuilder(int restart_interval)
      : restart_interval_(restart_interval) {}

  void Add(absl::string_view key, absl::string_view value) {
    size_t shared = 0;
    if (since_restart_ < restart_interval_) {
      const size_t most = std::min(key.size(), last_key_.size());
      while (shared < most && key[shared] == last_key_[shared]) ++shared;
      ++since_restart_;
    } else {
      restarts_.push_back(static_cast<uint32_t>(bytes_.size()));
      since_restart_ = 1;
    }
    AppendVarint(shared, bytes_);
    AppendVarint(key.size() - shared, bytes_);
    AppendVarint(value.size(), bytes_);
    absl::StrAppend(&bytes_, key.substr(shared), value);
    last_key_ = std::string(key);
  }

  size_t size() const {
    return bytes_.size() + (restarts_.size() + 1) * sizeof(uint32_t);
  }
  bool empty() const { return bytes_.empty(); }
  const std::string& last_key() const { return last_key_; }

  std::string Finish() const {
    std::string block = bytes_;
    for (const uint32_t restart : restarts_) AppendLittleEndian(block, restart);
    AppendLittleEndian(block, static_cast<uint32_t>(restarts_.size()));
    return block;
  }

 private:
  const int restart_interval_;
  int since_restart_ = 0;
  std::string bytes_;
  std::vector<uint32_t> restarts_ = {0};
  std::string last_key_;
};

// Appends the block with its trailer; returns its handle.
Handle AppendBlock(const BlockBuilder& block, std::string& table) {
  std::string bytes = block.Finish();
  const Handle handle = {.offset = table.size(), .size = bytes.size()};
  bytes.push_back(kPlain);
  AppendLittleEndian(bytes, MaskCrc(Crc32cOf(bytes)));
  table += bytes;
  return handle;
}

// A short key that is not before `key`, and before `next`, which follows it.
std::string Separator(const std::string& key, const std::string& next) {
  const size_t most = std::min(key.size(), next.size());
  size_t i = 0;
  while (i < most && key[i] == next[i]) ++i;
  if (i == most) return key;
  const uint8_t byte = static_cast<uint8_t>(key[i]);
  if (byte == 0xff || byte + 1 >= static_cast<uint8_t>(next[i])) return key;
  return absl::StrCat(key.substr(0, i),
                      std::string(1, static_cast<char>(byte + 1)));
}

// A short key that is not before `key`.
std::string Successor(const std::string& key) {
  const size_t i = key.find_first_not_of('\xff');
  if (i == std::string::npos) return key;
  return absl::StrCat(key.substr(0, i),
                      std::string(1, static_cast<char>(key[i] + 1)));
}

absl::Status Damaged(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("is no table of LevelDB: ", what));
}

std::optional<Handle> TakeHandle(absl::string_view& bytes) {
  const auto offset = TakeVarint(bytes);
  const auto size = TakeVarint(bytes);
  if (!offset || !size) return std::nullopt;
  return Handle{.offset = *offset, .size = *size};
}

// The contents of a block, checked and not compressed.
absl::StatusOr<std::string> ReadBlock(absl::string_view table,
                                      const Handle& handle) {
  if (handle.offset > table.size() ||
      table.size() - handle.offset < kTrailerBytes ||
      handle.size > table.size() - handle.offset - kTrailerBytes) {
    return Damaged(absl::StrCat("a block of ", handle.size, " bytes from ",
                                handle.offset, " on is outside of the file"));
  }
  const absl::string_view block = table.substr(handle.offset, handle.size);
  const absl::string_view checked =
      table.substr(handle.offset, handle.size + 1);
  if (LoadLittleEndian<uint32_t>(checked.data() + checked.size()) !=
      MaskCrc(Crc32cOf(checked))) {
    return Damaged(absl::StrCat("the checksum of the block from byte ",
                                handle.offset, " on is wrong"));
  }
  const char type = checked.back();
  if (type == kPlain) return std::string(block);
  size_t size = 0;
  std::string plain;
  if (type != kSnappy ||
      !snappy::GetUncompressedLength(block.data(), block.size(), &size) ||
      size > kMaxBlockBytes ||
      !snappy::Uncompress(block.data(), block.size(), &plain)) {
    return Damaged(absl::StrCat("the block from byte ", handle.offset,
                                " on can't be uncompressed"));
  }
  return plain;
}

using Entries = std::vector<std::pair<std::string, std::string>>;

// Counts the entries' memory in `total`.
absl::StatusOr<Entries> EntriesOf(absl::string_view block, uint64_t& total) {
  constexpr size_t kNumber = sizeof(uint32_t);
  if (block.size() < kNumber) return Damaged("a block is too short");
  const uint64_t restarts =
      LoadLittleEndian<uint32_t>(block.data() + block.size() - kNumber);
  if (restarts > block.size() / kNumber - 1) {
    return Damaged("a block has more restarts than bytes");
  }
  block.remove_suffix((restarts + 1) * kNumber);
  Entries entries;
  std::string key;
  while (!block.empty()) {
    const auto shared = TakeVarint(block);
    const auto unshared = TakeVarint(block);
    const auto size = TakeVarint(block);
    if (!shared || !unshared || !size || *shared > key.size() ||
        *unshared > block.size() || *size > block.size() - *unshared) {
      return Damaged("an entry is longer than its block");
    }
    total += *shared + *unshared + *size + kEntryBytes;
    if (total > kMaxEntriesBytes) return Damaged("its entries are too large");
    key.resize(*shared);
    absl::StrAppend(&key, block.substr(0, *unshared));
    entries.emplace_back(key, std::string(block.substr(*unshared, *size)));
    block.remove_prefix(*unshared + *size);
  }
  return entries;
}

absl::StatusOr<Entries> ReadEntries(absl::string_view table,
                                    const Handle& handle, uint64_t& total) {
  ASSIGN_OR_RETURN(const std::string block, ReadBlock(table, handle));
  return EntriesOf(block, total);
}

}  // namespace

std::string EncodeSortedTable(const std::map<std::string, std::string>& entries,
                              size_t block_bytes) {
  std::string table;
  BlockBuilder index(/*restart_interval=*/1);
  std::optional<BlockBuilder> data;
  for (const auto& [key, value] : entries) {
    if (data && data->size() >= block_bytes) {
      index.Add(Separator(data->last_key(), key),
                AppendBlock(*data, table).Encode());
      data.reset();
    }
    if (!data) data.emplace(kRestartInterval);
    data->Add(key, value);
  }
  if (data) {
    index.Add(Successor(data->last_key()), AppendBlock(*data, table).Encode());
  }
  const Handle metaindex = AppendBlock(BlockBuilder(kRestartInterval), table);
  const Handle index_handle = AppendBlock(index, table);
  std::string footer = absl::StrCat(metaindex.Encode(), index_handle.Encode());
  footer.resize(kHandlesBytes);
  AppendLittleEndian(footer, kTableMagic);
  return absl::StrCat(table, footer);
}

absl::StatusOr<std::map<std::string, std::string>> DecodeSortedTable(
    absl::string_view table) {
  if (table.size() < kFooterBytes ||
      LoadLittleEndian<uint64_t>(table.data() + table.size() -
                                 sizeof(uint64_t)) != kTableMagic) {
    return Damaged("it does not end with LevelDB's magic number");
  }
  absl::string_view footer = table.substr(table.size() - kFooterBytes);
  const auto metaindex = TakeHandle(footer);
  const auto index = TakeHandle(footer);
  if (!metaindex || !index) return Damaged("its footer is damaged");
  uint64_t total = 0;
  ASSIGN_OR_RETURN(const Entries blocks, ReadEntries(table, *index, total));
  std::map<std::string, std::string> entries;
  for (const auto& [last, encoded] : blocks) {
    absl::string_view bytes = encoded;
    const auto handle = TakeHandle(bytes);
    if (!handle) return Damaged("its index is damaged");
    ASSIGN_OR_RETURN(Entries of_block, ReadEntries(table, *handle, total));
    for (auto& [key, value] : of_block) {
      if (!entries.emplace(std::move(key), std::move(value)).second) {
        return Damaged("a key is there twice");
      }
    }
  }
  return entries;
}

}  // namespace parasol
