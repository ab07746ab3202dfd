#include "storage/checked_file_system.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "rocksdb/file_system.h"
#include "rocksdb/io_status.h"

namespace parasol {
namespace {

rocksdb::IOStatus ToIoStatus(const absl::Status& status) {
  if (status.ok()) return rocksdb::IOStatus::OK();
  const std::string message(status.message());
  if (absl::IsDataLoss(status)) return rocksdb::IOStatus::Corruption(message);
  return rocksdb::IOStatus::IOError(message);
}

class RandomAccessFile : public rocksdb::FSRandomAccessFile {
 public:
  explicit RandomAccessFile(CheckedFile& file) : file_(file) {}

  // Gives less at the file's end, as RocksDB expects.
  rocksdb::IOStatus Read(uint64_t offset, size_t count,
                         const rocksdb::IOOptions&, rocksdb::Slice* result,
                         char* out, rocksdb::IODebugContext*) const override {
    const uint64_t left = file_.size() - std::min(offset, file_.size());
    count = static_cast<size_t>(std::min<uint64_t>(count, left));
    *result = rocksdb::Slice(out, count);
    return ToIoStatus(file_.Read(offset, count, out));
  }

  // Nothing is read that was not asked for: RocksDB would read ahead into
  // memory itself, half a MiB at the file's end, and read parts twice. The
  // kernel reads ahead in any case.
  rocksdb::IOStatus Prefetch(uint64_t, size_t, const rocksdb::IOOptions&,
                             rocksdb::IODebugContext*) override {
    return rocksdb::IOStatus::OK();
  }
  size_t GetRequiredBufferAlignment() const override { return 1; }

 private:
  CheckedFile& file_;
};

class CheckedFileSystem : public rocksdb::FileSystemWrapper {
 public:
  explicit CheckedFileSystem(CheckedFile& file)
      : FileSystemWrapper(rocksdb::FileSystem::Default()), file_(file) {}

  const char* Name() const override { return "CheckedFileSystem"; }

  rocksdb::IOStatus GetFileSize(const std::string&, const rocksdb::IOOptions&,
                                uint64_t* size,
                                rocksdb::IODebugContext*) override {
    *size = file_.size();
    return rocksdb::IOStatus::OK();
  }
  rocksdb::IOStatus NewRandomAccessFile(
      const std::string&, const rocksdb::FileOptions&,
      std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
      rocksdb::IODebugContext*) override {
    *result = std::make_unique<RandomAccessFile>(file_);
    return rocksdb::IOStatus::OK();
  }

 private:
  CheckedFile& file_;
};

}  // namespace

std::unique_ptr<rocksdb::Env> NewCheckedEnv(CheckedFile& file) {
  return rocksdb::NewCompositeEnv(std::make_shared<CheckedFileSystem>(file));
}

}  // namespace parasol
