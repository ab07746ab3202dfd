#include "storage/shard_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "base/status_macros.h"
#include "rocksdb/options.h"
#include "rocksdb/sst_file_reader.h"
#include "rocksdb/table.h"
#include "storage/byte_order.h"
#include "storage/durable_file.h"
#include "storage/rocksdb_status.h"
#include "storage/row_entry.h"

namespace parasol {
namespace {

constexpr size_t kReadBytes = 1 << 20;
constexpr size_t kUpdatesBytes = 8;

absl::string_view AsView(const rocksdb::Slice& slice) {
  return absl::string_view(slice.data(), slice.size());
}

absl::Status VerifyBytes(const std::string& path,
                         const durable::CheckpointFile& file) {
  ASSIGN_OR_RETURN(const FileDescriptor descriptor,
                   FileDescriptor::OpenForReading(path));
  posix_fadvise(descriptor.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  const auto buffer = std::make_unique_for_overwrite<char[]>(kReadBytes);
  uint32_t crc = 0;
  uint64_t size = 0;
  while (true) {
    const ssize_t got = read(descriptor.get(), buffer.get(), kReadBytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ReadError(errno, "read", path);
    if (got == 0) break;
    size += got;
    crc = ExtendCrc32c(crc, absl::string_view(buffer.get(), got));
  }
  if (size != file.bytes()) {
    return absl::DataLossError(absl::StrCat(
        path, ": has ", size, " bytes, should have ", file.bytes()));
  }
  if (crc != file.crc32c()) {
    return absl::DataLossError(
        absl::StrCat(path, ": its bytes don't have the manifest's crc32c"));
  }
  return absl::OkStatus();
}

rocksdb::Options ReaderOptions() {
  rocksdb::BlockBasedTableOptions table;
  table.no_block_cache = true;  // each block is read once
  rocksdb::Options options;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

class SstShardFile : public ShardFile {
 public:
  explicit SstShardFile(std::string path)
      : path_(std::move(path)), reader_(ReaderOptions()) {}

  absl::Status Open() {
    RETURN_IF_ERROR(FromRocksDbStatus(reader_.Open(path_), path_));
    const std::unique_ptr<rocksdb::Iterator> entry(
        reader_.NewIterator(rocksdb::ReadOptions()));
    entry->SeekToFirst();
    if (!entry->Valid() || AsView(entry->key()) != kHeaderKey ||
        AsView(entry->value()) != kHeaderValue) {
      RETURN_IF_ERROR(FromRocksDbStatus(entry->status(), path_));
      return absl::DataLossError(
          absl::StrCat(path_, ": is not a shard file of a Parasol checkpoint"));
    }
    for (entry->Next(); entry->Valid(); entry->Next()) {
      RETURN_IF_ERROR(Index(AsView(entry->key()), AsView(entry->value())));
    }
    return FromRocksDbStatus(entry->status(), path_);
  }

  const std::vector<Extent>& extents() const override { return extents_; }
  const std::vector<Table>& tables() const override { return tables_; }
  const std::vector<Dedup>& dedup() const override { return dedup_; }

  absl::Status Read(const Extent& extent, int64_t first,
                    absl::Span<float> out) const override {
    const std::unique_ptr<rocksdb::Iterator> entry(
        reader_.NewIterator(rocksdb::ReadOptions()));
    const std::string key = extent.key.Encode();
    entry->Seek(key);
    RETURN_IF_ERROR(FromRocksDbStatus(entry->status(), path_));
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

  absl::Status ReadRows(const Table& table, RowVisit visit) const override {
    rocksdb::ReadOptions options;
    options.readahead_size = kReadBytes;
    const std::unique_ptr<rocksdb::Iterator> entry(
        reader_.NewIterator(options));
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
    return FromRocksDbStatus(entry->status(), path_);
  }

 private:
  absl::Status Altered() const {
    return absl::DataLossError(
        absl::StrCat(path_, ": was altered after it had been opened"));
  }

  absl::Status Index(absl::string_view key, absl::string_view value) {
    if (const auto rows = ParseRowsKey(key); rows.has_value()) {
      return IndexRows(rows->table_prefix, value);
    }
    if (auto dedup = ParseDedupKey(key); dedup.has_value()) {
      dedup_.push_back({*dedup, std::string(value)});
      return absl::OkStatus();
    }
    auto elements = ParseElementsKey(key);
    if (!elements.has_value()) {
      return absl::DataLossError(absl::StrCat(
          path_,
          ": has an entry whose key is unknown: ", absl::CHexEscape(key)));
    }
    const size_t bytes = value.size() - kUpdatesBytes;
    const int64_t count = bytes / sizeof(float);
    if (value.size() <= kUpdatesBytes || bytes % sizeof(float) != 0 ||
        elements->first > std::numeric_limits<int64_t>::max() - count) {
      return absl::DataLossError(absl::StrCat(
          path_, ": an entry of ", value.size(), " bytes can't hold elements"));
    }
    const auto updates = LoadLittleEndian<int64_t>(value.data());
    extents_.push_back({*std::move(elements), count, updates});
    return absl::OkStatus();
  }

  absl::Status IndexRows(const std::string& prefix, absl::string_view value) {
    const auto header = ParseRowsHeader(value);
    if (!header.has_value()) {
      return absl::DataLossError(absl::StrCat(
          path_, ": an entry of ", value.size(), " bytes can't hold rows"));
    }
    if (tables_.empty() || tables_.back().prefix != prefix) {
      tables_.push_back({.prefix = prefix});
    }
    Table& table = tables_.back();
    if (header->count == 0) return absl::OkStatus();
    if (table.floats == 0) table.floats = header->floats;
    if (table.floats == header->floats) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat(path_, ": rows of one table have ",
                                            table.floats, " and ",
                                            header->floats, " float32"));
  }

  const std::string path_;
  // Its reading methods are thread-safe, but not declared const.
  mutable rocksdb::SstFileReader reader_;
  std::vector<Extent> extents_;
  std::vector<Table> tables_;
  std::vector<Dedup> dedup_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<const ShardFile>> ShardFile::Open(
    const std::string& directory, const durable::CheckpointFile& file) {
  const std::string path = absl::StrCat(directory, "/", file.name());
  const absl::Status verified = VerifyBytes(path, file);
  if (absl::IsNotFound(verified)) {
    return absl::DataLossError(absl::StrCat(path, ": is missing"));
  }
  RETURN_IF_ERROR(verified);
  auto shard = std::make_unique<SstShardFile>(path);
  RETURN_IF_ERROR(shard->Open());
  return shard;
}

}  // namespace parasol
