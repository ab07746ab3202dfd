#include "storage/tier/testing/rocksdb_rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "rocksdb/cache.h"
#include "rocksdb/db.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/options.h"
#include "rocksdb/table.h"
#include "rocksdb/write_batch.h"

namespace parasol {
namespace {

absl::Status StatusOf(const rocksdb::Status& status) {
  if (status.ok()) return absl::OkStatus();
  return absl::UnavailableError(status.ToString());
}

rocksdb::Slice SliceOf(const uint64_t& id) {
  return rocksdb::Slice(reinterpret_cast<const char*>(&id), sizeof(id));
}

}  // namespace

struct RocksDbRows::Database {
  std::unique_ptr<rocksdb::DB> db;
};

absl::StatusOr<std::unique_ptr<RocksDbRows>> RocksDbRows::Create(
    const std::string& directory, size_t memory_bytes, size_t floats) {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.error_if_exists = true;
  options.compression = rocksdb::kNoCompression;
  options.use_direct_reads = true;
  options.use_direct_io_for_flush_and_compaction = true;
  options.max_background_jobs = 2;
  // A quarter of the memory for what is not written, as the log has.
  options.write_buffer_size = memory_bytes / 8;
  options.max_write_buffer_number = 2;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(memory_bytes * 3 / 4);
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  rocksdb::DB* db = nullptr;
  const absl::Status opened =
      StatusOf(rocksdb::DB::Open(options, directory, &db));
  if (!opened.ok()) return opened;
  auto database = std::make_unique<Database>();
  database->db.reset(db);
  return std::unique_ptr<RocksDbRows>(
      new RocksDbRows(std::move(database), floats));
}

RocksDbRows::RocksDbRows(std::unique_ptr<Database> database, size_t floats)
    : database_(std::move(database)), floats_(floats) {}

RocksDbRows::~RocksDbRows() = default;

absl::Status RocksDbRows::Get(absl::Span<const uint64_t> ids,
                              absl::Span<float> rows) {
  std::vector<rocksdb::Slice> keys(ids.size());
  std::transform(ids.begin(), ids.end(), keys.begin(), SliceOf);
  std::vector<rocksdb::PinnableSlice> values(ids.size());
  std::vector<rocksdb::Status> statuses(ids.size());
  database_->db->MultiGet(rocksdb::ReadOptions(),
                          database_->db->DefaultColumnFamily(), keys.size(),
                          keys.data(), values.data(), statuses.data());
  for (size_t i = 0; i < ids.size(); ++i) {
    float* const row = rows.data() + i * floats_;
    if (statuses[i].IsNotFound()) {
      std::fill_n(row, floats_, 0.f);
      continue;
    }
    if (!statuses[i].ok()) return StatusOf(statuses[i]);
    std::memcpy(row, values[i].data(), floats_ * sizeof(float));
  }
  return absl::OkStatus();
}

absl::Status RocksDbRows::Put(absl::Span<const uint64_t> ids,
                              absl::Span<const float> rows) {
  rocksdb::WriteBatch batch;
  for (size_t i = 0; i < ids.size(); ++i) {
    const rocksdb::Slice row(
        reinterpret_cast<const char*>(rows.data() + i * floats_),
        floats_ * sizeof(float));
    const absl::Status put = StatusOf(batch.Put(SliceOf(ids[i]), row));
    if (!put.ok()) return put;
  }
  rocksdb::WriteOptions options;
  options.disableWAL = true;
  return StatusOf(database_->db->Write(options, &batch));
}

}  // namespace parasol
