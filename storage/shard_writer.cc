#include "storage/shard_writer.h"

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "base/status_macros.h"
#include "base/uri/uri_path.h"
#include "rocksdb/file_checksum.h"
#include "rocksdb/options.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/table.h"
#include "rocksdb/table_properties.h"
#include "storage/byte_order.h"
#include "storage/durable_file.h"
#include "storage/remote/remote_files.h"
#include "storage/rocksdb_status.h"
#include "storage/row_entry.h"
#include "storage/shard_key.h"

namespace parasol {
namespace {

// Elements that one entry may hold: a reader of few elements reads whole
// entries.
constexpr size_t kEntryElements = 65536;
constexpr int kMaxArray = 255;

// Lets RocksDB compute a file's crc32c while it writes: nothing is read back,
// and what the disk makes of the bytes is found out by the readers.
class Crc32cGenerator : public rocksdb::FileChecksumGenerator {
 public:
  void Update(const char* data, size_t n) override {
    crc_ = ExtendCrc32c(crc_, absl::string_view(data, n));
  }
  void Finalize() override {}
  std::string GetChecksum() const override {
    std::string bytes;
    AppendLittleEndian(bytes, crc_);
    return bytes;
  }
  const char* Name() const override { return "Crc32c"; }

 private:
  uint32_t crc_ = 0;
};

class Crc32cGeneratorFactory : public rocksdb::FileChecksumGenFactory {
 public:
  std::unique_ptr<rocksdb::FileChecksumGenerator> CreateFileChecksumGenerator(
      const rocksdb::FileChecksumGenContext&) override {
    return std::make_unique<Crc32cGenerator>();
  }
  const char* Name() const override { return "Crc32c"; }
};

// Facts about a file that its properties have.
struct Description {
  ShardIndex index;
  std::optional<JournalPlace> journal;
  std::optional<IncrementBase> base;
};

// Lets RocksDB write a description among a file's properties.
class IndexCollector : public rocksdb::TablePropertiesCollector {
 public:
  explicit IndexCollector(const Description& file) : file_(file) {}
  rocksdb::Status AddUserKey(const rocksdb::Slice&, const rocksdb::Slice&,
                             rocksdb::EntryType, rocksdb::SequenceNumber,
                             uint64_t) override {
    return rocksdb::Status::OK();
  }
  rocksdb::Status Finish(rocksdb::UserCollectedProperties* out) override {
    out->emplace(kIndexProperty, file_.index.Encode());
    if (file_.journal.has_value()) {
      out->emplace(kJournalProperty, file_.journal->Encode());
    }
    if (file_.base.has_value()) {
      out->emplace(kIncrementProperty, file_.base->Encode());
    }
    return rocksdb::Status::OK();
  }
  rocksdb::UserCollectedProperties GetReadableProperties() const override {
    return {};
  }
  const char* Name() const override { return "ShardIndex"; }

 private:
  const Description& file_;
};

class IndexCollectorFactory : public rocksdb::TablePropertiesCollectorFactory {
 public:
  explicit IndexCollectorFactory(const Description& file) : file_(file) {}
  rocksdb::TablePropertiesCollector* CreateTablePropertiesCollector(
      rocksdb::TablePropertiesCollectorFactory::Context) override {
    return new IndexCollector(file_);  // RocksDB deletes it
  }
  const char* Name() const override { return "ShardIndex"; }

 private:
  const Description& file_;
};

rocksdb::Options WriterOptions(const Description& file) {
  rocksdb::Options options;
  options.compression = rocksdb::kNoCompression;
  options.use_fsync = true;
  options.file_checksum_gen_factory =
      std::make_shared<Crc32cGeneratorFactory>();
  options.table_properties_collector_factories.push_back(
      std::make_shared<IndexCollectorFactory>(file));
  return options;
}

rocksdb::Slice AsSlice(absl::string_view bytes) {
  return rocksdb::Slice(bytes.data(), bytes.size());
}

class SstShardWriter : public ShardWriter {
 public:
  // `path` is on this machine. A file for a store, `uri`, is made in `scratch`,
  // and sent when it is whole.
  explicit SstShardWriter(std::string path, std::string uri = "",
                          std::unique_ptr<LocalScratch> scratch = nullptr)
      : path_(std::move(path)),
        uri_(std::move(uri)),
        scratch_(std::move(scratch)),
        writer_(rocksdb::EnvOptions(), WriterOptions(file_)) {}

  absl::Status Open() {
    // RocksDB does not tell a directory that is missing from one that may not
    // be written.
    RETURN_IF_ERROR(
        FileDescriptor::Open(path_, O_WRONLY | O_CREAT | O_TRUNC).status());
    RETURN_IF_ERROR(FromRocksDbStatus(writer_.Open(path_), path_));
    return Put(kHeaderKey, kHeaderValue);
  }

  void SetWriter(const ShardNumber& shard) override {
    file_.index.writer = shard;
  }
  void SetJournal(const JournalPlace& place) override { file_.journal = place; }
  void SetBase(const IncrementBase& base) override { file_.base = base; }

  absl::Status AddElements(absl::string_view variable, int array, int64_t first,
                           int64_t updates,
                           absl::Span<const float> values) override {
    if (array < 0 || array > kMaxArray || first < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(path_, ": array ", array, " of ", variable,
                       " from element ", first, ": array must be 0 to ",
                       kMaxArray, ", and the element not negative"));
    }
    ElementsKey key = {ArrayPrefix(variable, array), first};
    if (key.array_prefix == last_array_prefix_ && first < next_element_) {
      return absl::InvalidArgumentError(absl::StrCat(
          path_, ": elements of array ", array, " of ", variable, " from ",
          first, " were added after elements up to ", next_element_));
    }
    while (!values.empty()) {
      const size_t count = std::min(values.size(), kEntryElements);
      RETURN_IF_ERROR(PutElements(key, updates, values.first(count)));
      key.first += count;
      values.remove_prefix(count);
    }
    next_element_ = key.first;
    last_array_prefix_ = std::move(key.array_prefix);
    return absl::OkStatus();
  }

  absl::Status AddRows(absl::string_view table,
                       const RowBatch& batch) override {
    if (!EncodeRows(batch, value_)) {
      return absl::InvalidArgumentError(absl::StrCat(
          path_, ": table ", table, ": ", batch.rows.size(),
          " float32 can't be ", batch.ids.size(), " rows of one width"));
    }
    std::string prefix = TablePrefix(table);
    if (prefix != next_rows_.table_prefix) {
      next_rows_ = {.table_prefix = std::move(prefix)};
    }
    RETURN_IF_ERROR(Put(next_rows_.Encode(), value_));
    ++next_rows_.batch;
    return absl::OkStatus();
  }

  absl::Status AddRemoved(absl::string_view table,
                          absl::Span<const uint64_t> ids) override {
    EncodeRemoved(ids, value_);
    return Put(RemovedKey(table, NextBatch("removed", table)), value_);
  }

  absl::Status AddCounts(absl::string_view table,
                         const CountBatch& batch) override {
    if (!EncodeCounts(batch, value_)) {
      return absl::InvalidArgumentError(absl::StrCat(
          path_, ": table ", table, ": ", batch.counts.size(), " counts of ",
          batch.ids.size(), " ids, with ", batch.touched.size(), " updates"));
    }
    return Put(CountsKey(table, NextBatch("counts", table)), value_);
  }

  absl::Status AddDedup(uint32_t shard, uint32_t num_shards,
                        const DedupEntry& entry) override {
    const DedupKey key = {.shard = shard,
                          .num_shards = num_shards,
                          .worker_incarnation = entry.worker_incarnation};
    return Put(key.Encode(), entry.window);
  }

  absl::StatusOr<durable::CheckpointFile> Finish() override {
    rocksdb::ExternalSstFileInfo info;
    RETURN_IF_ERROR(FromRocksDbStatus(writer_.Finish(&info), path_));
    const std::filesystem::path path(path_);
    if (uri_.empty()) {
      RETURN_IF_ERROR(SyncDirectory(
          path.has_parent_path() ? path.parent_path().string() : "."));
    } else {
      ASSIGN_OR_RETURN(RemoteFiles* const files, RemoteFilesFor(uri_));
      RETURN_IF_ERROR(files->Upload(path_, uri_));
      scratch_.reset();
    }
    durable::CheckpointFile file;
    file.set_name(path.filename().string());
    file.set_bytes(info.file_size);
    file.set_crc32c(LoadLittleEndian<uint32_t>(info.file_checksum.data()));
    return file;
  }

 private:
  // Returns the number of the next batch of a kind and table, whose batches
  // come one after the other.
  uint64_t NextBatch(absl::string_view kind, absl::string_view table) {
    std::string name = absl::StrCat(kind, " ", table);
    if (name != batches_of_) {
      batches_of_ = std::move(name);
      next_batch_ = 0;
    }
    return next_batch_++;
  }

  absl::Status PutElements(const ElementsKey& key, int64_t updates,
                           absl::Span<const float> values) {
    value_.clear();
    AppendLittleEndian(value_, static_cast<uint64_t>(updates));
    value_.append(reinterpret_cast<const char*>(values.data()),
                  values.size() * sizeof(float));
    return Put(key.Encode(), value_);
  }

  absl::Status Put(absl::string_view key, absl::string_view value) {
    const rocksdb::Status status = writer_.Put(AsSlice(key), AsSlice(value));
    // RocksDB's word for keys that don't ascend.
    if (status.IsInvalidArgument()) {
      return absl::InvalidArgumentError(absl::StrCat(
          path_, ": entries are not in ascending order: ", status.ToString()));
    }
    RETURN_IF_ERROR(FromRocksDbStatus(status, path_));
    const absl::Status indexed = file_.index.Add(key, value);
    if (indexed.ok()) return indexed;
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ": ", indexed.message()));
  }

  const std::string path_;
  const std::string uri_;
  std::unique_ptr<LocalScratch> scratch_;
  Description file_;  // what was written so far
  rocksdb::SstFileWriter writer_;
  std::string last_array_prefix_;
  int64_t next_element_ = 0;
  RowsKey next_rows_;
  std::string batches_of_;  // of removed ids or counts
  uint64_t next_batch_ = 0;
  std::string value_;  // kept for its memory
};

}  // namespace

absl::StatusOr<std::unique_ptr<ShardWriter>> ShardWriter::Create(
    const std::string& path) {
  std::unique_ptr<SstShardWriter> writer;
  if (IsUri(path)) {
    ASSIGN_OR_RETURN(auto scratch, LocalScratch::Make(path));
    std::string local = absl::StrCat(scratch->path(), "/", LastName(path));
    writer = std::make_unique<SstShardWriter>(std::move(local), path,
                                              std::move(scratch));
  } else {
    writer = std::make_unique<SstShardWriter>(path);
  }
  RETURN_IF_ERROR(writer->Open());
  return writer;
}

}  // namespace parasol
