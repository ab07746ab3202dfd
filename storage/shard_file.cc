#include "storage/shard_file.h"

#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "rocksdb/env.h"
#include "rocksdb/options.h"
#include "rocksdb/sst_file_reader.h"
#include "rocksdb/table.h"
#include "rocksdb/table_properties.h"
#include "storage/byte_order.h"
#include "storage/checked_file_system.h"
#include "storage/checkpoint_name.h"
#include "storage/rocksdb_status.h"
#include "storage/row_entry.h"

namespace parasol {
namespace {

// A file is verified as a whole if no more than this part of it, or no more
// than these bytes, were not read.
constexpr uint64_t kRestShare = 16;
constexpr uint64_t kRestBytes = 64 << 10;

// RocksDB's block-based tables, format_version 1 to 5: a byte for the kind of
// checksum, the places (offset and size, as varints) of the metaindex and the
// index, padded to 40 bytes, the version, and a magic number.
constexpr size_t kFooterBytes = 53;
constexpr size_t kPlacesBytes = 40;
// The kind of compression and the checksum behind each block.
constexpr uint64_t kTrailerBytes = 5;
constexpr uint64_t kFooterMagic = 0x88e241b785f4cff7;
constexpr int kMaxVarintBytes = 10;
// The number at the end of a block: of its restarts, and a bit that says
// whether a hash index is before it.
constexpr uint64_t kRestartsBytes = 4;
constexpr uint32_t kHashIndexBit = 0x80000000;
// Kinds of checksums are 1 to 4. RocksDB knows 0, too: none at all, so that a
// changed block would be believed.
constexpr char kFirstChecksum = 1;
constexpr char kLastChecksum = 4;

// Takes a varint off the front of `bytes`; false if there is none.
bool TakeVarint(absl::string_view& bytes, uint64_t& value) {
  value = 0;
  for (int i = 0; i < kMaxVarintBytes && !bytes.empty(); ++i) {
    const auto byte = static_cast<uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    value |= uint64_t{byte & 0x7fu} << (7 * i);
    if ((byte & 0x80) == 0) return true;
  }
  return false;
}

// Checks the end of the properties, the block before the metaindex. RocksDB
// looks at them before it compares their checksum, and a damaged end fails an
// assertion there.
absl::StatusOr<bool> HasSoundProperties(CheckedFile& file, uint64_t metaindex) {
  if (metaindex < kRestartsBytes + kTrailerBytes) return false;
  char bytes[kRestartsBytes];
  RETURN_IF_ERROR(file.Read(metaindex - kTrailerBytes - kRestartsBytes,
                            kRestartsBytes, bytes));
  const auto restarts = LoadLittleEndian<uint32_t>(bytes);
  return (restarts & kHashIndexBit) == 0 &&
         restarts <= metaindex / kRestartsBytes;
}

absl::string_view AsView(const rocksdb::Slice& slice) {
  return absl::string_view(slice.data(), slice.size());
}

rocksdb::Options ReaderOptions(rocksdb::Env* env) {
  rocksdb::BlockBasedTableOptions table;
  table.no_block_cache = true;  // each block is read once
  rocksdb::Options options;
  options.env = env;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

class SstShardFile : public ShardFile {
 public:
  explicit SstShardFile(std::unique_ptr<CheckedFile> file)
      : file_(std::move(file)),
        env_(NewCheckedEnv(*file_)),
        reader_(ReaderOptions(env_.get())) {}

  absl::Status Open() {
    RETURN_IF_ERROR(CheckFooter(*file_));
    RETURN_IF_ERROR(FromRocksDbStatus(reader_.Open(path()), path()));
    const auto properties = reader_.GetTableProperties();
    if (properties != nullptr) {
      const auto& own = properties->user_collected_properties;
      const auto journal = own.find(kJournalProperty);
      if (journal != own.end()) {
        journal_ = JournalPlace::Decode(journal->second);
        if (!journal_.has_value()) {
          return absl::DataLossError(absl::StrCat(
              path(), ": its place in the journal can't be parsed"));
        }
      }
      const auto base = own.find(kIncrementProperty);
      if (base != own.end()) {
        base_ = IncrementBase::Decode(base->second);
        if (!base_.has_value()) {
          return absl::DataLossError(absl::StrCat(
              path(), ": what it says of the file before it can't be parsed"));
        }
      }
      const auto index = own.find(kIndexProperty);
      if (index != own.end()) {
        auto decoded = ShardIndex::Decode(index->second);
        if (!decoded.has_value()) {
          return absl::DataLossError(
              absl::StrCat(path(), ": its index can't be parsed"));
        }
        index_ = *std::move(decoded);
        return absl::OkStatus();
      }
    }
    return Scan();
  }

  const ShardIndex& index() const override { return index_; }
  const std::optional<JournalPlace>& journal() const override {
    return journal_;
  }

  const std::optional<IncrementBase>& base() const override { return base_; }

  absl::Status Read(const ShardIndex::Extent& extent, int64_t first,
                    absl::Span<float> out) const override {
    const std::unique_ptr<rocksdb::Iterator> entry(
        reader_.NewIterator(rocksdb::ReadOptions()));
    const std::string key = extent.key.Encode();
    entry->Seek(key);
    RETURN_IF_ERROR(FromRocksDbStatus(entry->status(), path()));
    if (!entry->Valid() || AsView(entry->key()) != key ||
        entry->value().size() != kUpdatesBytes + extent.count * sizeof(float)) {
      return Altered();
    }
    std::memcpy(out.data(),
                entry->value().data() + kUpdatesBytes +
                    (first - extent.key.first) * sizeof(float),
                out.size() * sizeof(float));
    return absl::OkStatus();
  }

  absl::Status ReadRows(const ShardIndex::Table& table,
                        RowVisit visit) const override {
    const std::unique_ptr<rocksdb::Iterator> entry(
        reader_.NewIterator(rocksdb::ReadOptions()));
    DecodedRows rows;
    for (entry->Seek(table.prefix);
         entry->Valid() && absl::StartsWith(AsView(entry->key()), table.prefix);
         entry->Next()) {
      const auto header = ParseRowsHeader(AsView(entry->value()));
      if (!header.has_value() ||
          (header->count > 0 && header->floats != table.floats)) {
        return Altered();
      }
      rows.Assign(*header, AsView(entry->value()));
      RETURN_IF_ERROR(visit(rows.batch()));
    }
    return FromRocksDbStatus(entry->status(), path());
  }

  absl::Status ReadCounts(const std::string& table_prefix,
                          CountVisit visit) const override {
    DecodedCounts counts;
    return ForEach(CountsPrefix(table_prefix), [&](absl::string_view value) {
      if (!counts.Assign(value)) return Altered();
      return visit(counts.batch());
    });
  }

  absl::Status ReadRemoved(const std::string& table_prefix,
                           RemovedVisit visit) const override {
    return ForEach(RemovedPrefix(table_prefix), [&](absl::string_view value) {
      const auto ids = DecodeRemoved(value);
      if (!ids.has_value()) return Altered();
      return visit(*ids);
    });
  }

  absl::StatusOr<std::vector<DedupEntry>> ReadDedup(
      const ShardNumber& shard) const override {
    const std::unique_ptr<rocksdb::Iterator> entry(
        reader_.NewIterator(rocksdb::ReadOptions()));
    std::vector<DedupEntry> entries;
    entry->Seek(DedupKey{.shard = shard.shard, .num_shards = shard.num_shards}
                    .Encode());
    for (; entry->Valid(); entry->Next()) {
      const auto key = ParseDedupKey(AsView(entry->key()));
      if (!key.has_value() || key->shard != shard.shard ||
          key->num_shards != shard.num_shards) {
        break;
      }
      entries.push_back(
          {key->worker_incarnation, std::string(AsView(entry->value()))});
    }
    RETURN_IF_ERROR(FromRocksDbStatus(entry->status(), path()));
    return entries;
  }

  absl::Status Verify() const override {
    const uint64_t rest = file_->size() - file_->bytes_covered();
    if (rest > kRestBytes && rest > file_->size() / kRestShare) {
      return absl::OkStatus();
    }
    return file_->Verify();
  }

  uint64_t bytes_read() const override { return file_->bytes_read(); }

 private:
  const std::string& path() const { return file_->path(); }

  // Calls `visit` with the value of each entry whose key begins with `prefix`.
  absl::Status ForEach(
      const std::string& prefix,
      absl::FunctionRef<absl::Status(absl::string_view value)> visit) const {
    const std::unique_ptr<rocksdb::Iterator> entry(
        reader_.NewIterator(rocksdb::ReadOptions()));
    for (entry->Seek(prefix);
         entry->Valid() && absl::StartsWith(AsView(entry->key()), prefix);
         entry->Next()) {
      RETURN_IF_ERROR(visit(AsView(entry->value())));
    }
    return FromRocksDbStatus(entry->status(), path());
  }

  // Makes the index from the entries.
  absl::Status Scan() {
    const std::unique_ptr<rocksdb::Iterator> entry(
        reader_.NewIterator(rocksdb::ReadOptions()));
    entry->SeekToFirst();
    if (!entry->Valid() || AsView(entry->key()) != kHeaderKey ||
        AsView(entry->value()) != kHeaderValue) {
      RETURN_IF_ERROR(FromRocksDbStatus(entry->status(), path()));
      return absl::DataLossError(absl::StrCat(
          path(), ": is not a shard file of a Parasol checkpoint"));
    }
    for (; entry->Valid(); entry->Next()) {
      RETURN_IF_ERROR(index_.Add(AsView(entry->key()), AsView(entry->value())))
          << path();
    }
    RETURN_IF_ERROR(FromRocksDbStatus(entry->status(), path()));
    return file_->Verify();
  }

  absl::Status Altered() const {
    return absl::DataLossError(
        absl::StrCat(path(), ": was altered after it had been opened"));
  }

  const std::unique_ptr<CheckedFile> file_;
  const std::unique_ptr<rocksdb::Env> env_;
  // Its reading methods are thread-safe, but not declared const.
  mutable rocksdb::SstFileReader reader_;
  ShardIndex index_;
  std::optional<JournalPlace> journal_;
  std::optional<IncrementBase> base_;
};

}  // namespace

absl::Status CheckFooter(CheckedFile& file) {
  const absl::Status damaged = absl::DataLossError(
      absl::StrCat(file.path(), ": does not end as an SST file does"));
  if (file.size() < kFooterBytes) return damaged;
  char bytes[kFooterBytes];
  RETURN_IF_ERROR(file.Read(file.size() - kFooterBytes, kFooterBytes, bytes));
  if (LoadLittleEndian<uint64_t>(bytes + kFooterBytes - sizeof(kFooterMagic)) !=
      kFooterMagic) {
    return damaged;
  }
  if (bytes[0] < kFirstChecksum || bytes[0] > kLastChecksum) return damaged;
  absl::string_view places(bytes + 1, kPlacesBytes);
  uint64_t ends[2], offsets[2];
  for (int i = 0; i < 2; ++i) {
    uint64_t& offset = offsets[i];
    uint64_t size;
    if (!TakeVarint(places, offset) || !TakeVarint(places, size) ||
        offset > file.size() || size > file.size() - offset) {
      return damaged;
    }
    ends[i] = offset + size + kTrailerBytes;
  }
  // The metaindex is the last block.
  const bool is_last = ends[0] == file.size() - kFooterBytes;
  if (!is_last || ends[1] > ends[0]) return damaged;
  ASSIGN_OR_RETURN(const bool is_sound, HasSoundProperties(file, offsets[0]));
  return is_sound ? absl::OkStatus() : damaged;
}

absl::StatusOr<std::unique_ptr<const ShardFile>> ShardFile::Open(
    const std::string& directory, const durable::CheckpointFile& file) {
  const std::string path = ListedPath(directory, file.name());
  absl::StatusOr<std::unique_ptr<CheckedFile>> opened =
      CheckedFile::Open(path, file);
  if (absl::IsNotFound(opened.status())) {
    return absl::DataLossError(absl::StrCat(path, ": is missing"));
  }
  RETURN_IF_ERROR(opened.status());
  auto shard = std::make_unique<SstShardFile>(*std::move(opened));
  RETURN_IF_ERROR(shard->Open());
  return shard;
}

}  // namespace parasol
