#include "storage/shard_file.h"

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
#include "storage/checked_file.h"
#include "storage/checked_file_system.h"
#include "storage/rocksdb_status.h"
#include "storage/row_entry.h"
#include "storage/sst_footer.h"

namespace parasol {
namespace {

// A file is verified as a whole if no more than this part of it, or no more
// than these bytes, were not read.
constexpr uint64_t kRestShare = 16;
constexpr uint64_t kRestBytes = 64 << 10;

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
      if (journal != own.end())
        journal_ = JournalPlace::Decode(journal->second);
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
};

}  // namespace

absl::StatusOr<std::unique_ptr<const ShardFile>> ShardFile::Open(
    const std::string& directory, const durable::CheckpointFile& file) {
  const std::string path = absl::StrCat(directory, "/", file.name());
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
