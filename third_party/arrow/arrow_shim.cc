// libparasol_arrow.so: what arrow_shim.h declares, by Apache Arrow C++.
// `deploy/arrow` compiles it; Bazel does not, for Debian has no Arrow.

#include "arrow_shim.h"

#include <arrow/c/bridge.h>
#include <arrow/io/interfaces.h>
#include <arrow/ipc/reader.h>
#include <arrow/memory_pool.h>
#include <arrow/record_batch.h>
#include <arrow/result.h>
#include <arrow/status.h>
#include <arrow/type.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>
#include <parquet/properties.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

using arrow::Result;
using arrow::Status;

constexpr char kParquetMagic[] = "PAR1";
constexpr size_t kMagicBytes = 4;
// Rows that are in memory at a time, of a Parquet file, at most, and about how
// many bytes they have.
constexpr int64_t kRowsAtATime = 4096;
constexpr int64_t kBytesAtATime = 16 << 20;
// Bytes of a column's pages that are read at a time.
constexpr int64_t kPageBufferBytes = 256 << 10;

// Most bytes that a buffer of a sound file has, by whose failure a lack of
// memory is told from a damaged length on every machine alike.
constexpr int64_t kMostOfAnyFile = int64_t{1} << 30;
constexpr int64_t kMostOfAByte = 1000;  // packed

// Bytes of the file that the thread reads.
thread_local int64_t file_bytes = INT64_MAX;
// Bytes that the thread lacked last.
thread_local int64_t lacked_bytes = 0;

// Returns true of a buffer that a sound file of file_bytes does not have.
bool IsDamagedLength(int64_t bytes) {
  return bytes > kMostOfAnyFile && bytes / kMostOfAByte > file_bytes;
}

// Memory of the system, which notes what it can't give, and gives nothing for
// a damaged length. What Arrow takes of its own pools stays with it; the
// system's is given back.
class NotingPool final : public arrow::ProxyMemoryPool {
 public:
  NotingPool() : ProxyMemoryPool(arrow::system_memory_pool()) {}
  using ProxyMemoryPool::Allocate;
  using ProxyMemoryPool::Reallocate;

  Status Allocate(int64_t size, int64_t alignment, uint8_t** out) override {
    return Noted(size, IsDamagedLength(size)
                           ? Refused(size)
                           : ProxyMemoryPool::Allocate(size, alignment, out));
  }
  Status Reallocate(int64_t old_size, int64_t new_size, int64_t alignment,
                    uint8_t** bytes) override {
    return Noted(new_size, IsDamagedLength(new_size)
                               ? Refused(new_size)
                               : ProxyMemoryPool::Reallocate(old_size, new_size,
                                                             alignment, bytes));
  }

 private:
  static Status Refused(int64_t size) {
    return Status::OutOfMemory("a buffer of ", size, " bytes in a file of ",
                               file_bytes);
  }
  static Status Noted(int64_t size, Status status) {
    if (status.IsOutOfMemory()) lacked_bytes = size;
    return status;
  }
};

// Outlives all buffers.
arrow::MemoryPool* Pool() {
  static auto* const pool = new NotingPool;
  return pool;
}

// The caller's bytes.
class InputFile final : public arrow::io::RandomAccessFile {
 public:
  explicit InputFile(const ParasolArrowInput& input) : input_(input) {}

  Status Close() override {
    closed_ = true;
    return Status::OK();
  }
  bool closed() const override { return closed_; }
  Result<int64_t> Tell() const override { return at_; }
  Status Seek(int64_t position) override {
    if (position < 0) return Status::Invalid("seeks to before the file");
    at_ = position;
    return Status::OK();
  }
  Result<int64_t> GetSize() override { return input_.size; }

  Result<int64_t> ReadAt(int64_t offset, int64_t size, void* out) override {
    if (offset < 0 || size < 0) {
      return Status::Invalid("a place outside of the file");
    }
    size = std::clamp<int64_t>(input_.size - offset, 0, size);
    if (size > 0 && input_.read(input_.context, offset, size, out) != 0) {
      return Status::IOError("the file can't be read");
    }
    return size;
  }
  Result<std::shared_ptr<arrow::Buffer>> ReadAt(int64_t offset,
                                                int64_t size) override {
    // A wrong length takes no more memory than the file has bytes.
    if (offset < 0 || size < 0) {
      return Status::Invalid("a place outside of the file");
    }
    size = std::clamp<int64_t>(input_.size - offset, 0, size);
    ARROW_ASSIGN_OR_RAISE(std::unique_ptr<arrow::Buffer> buffer,
                          arrow::AllocateBuffer(size, Pool()));
    ARROW_ASSIGN_OR_RAISE(size, ReadAt(offset, size, buffer->mutable_data()));
    return std::shared_ptr<arrow::Buffer>(std::move(buffer));
  }
  Result<int64_t> Read(int64_t size, void* out) override {
    ARROW_ASSIGN_OR_RAISE(const int64_t read, ReadAt(at_, size, out));
    at_ += read;
    return read;
  }
  Result<std::shared_ptr<arrow::Buffer>> Read(int64_t size) override {
    ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::Buffer> buffer,
                          ReadAt(at_, size));
    at_ += buffer->size();
    return buffer;
  }

 private:
  const ParasolArrowInput input_;
  int64_t at_ = 0;
  bool closed_ = false;
};

// Numbers of a field's columns in the file, where each leaf is one.
void AddLeaves(const parquet::arrow::SchemaField& field,
               std::vector<int>& leaves) {
  if (field.is_leaf()) leaves.push_back(field.column_index);
  for (const parquet::arrow::SchemaField& child : field.children) {
    AddLeaves(child, leaves);
  }
}

// A file of either format.
class File {
 public:
  virtual ~File() = default;
  virtual std::shared_ptr<arrow::Schema> schema() const = 0;
  virtual int64_t groups() const = 0;
  virtual int64_t rows(int64_t group) const = 0;  // -1: unknown
  virtual Status Start(int64_t group, const std::vector<int>& columns) = 0;
  // Null: the group has no more rows.
  virtual Result<std::shared_ptr<arrow::RecordBatch>> Next() = 0;
};

class ParquetFile final : public File {
 public:
  static Result<std::unique_ptr<File>> Open(std::shared_ptr<InputFile> input) {
    parquet::ReaderProperties properties(Pool());
    properties.enable_buffered_stream();
    properties.set_buffer_size(kPageBufferBytes);
    properties.set_page_checksum_verification(true);
    parquet::ArrowReaderProperties arrow_properties(/*use_threads=*/false);
    arrow_properties.set_pre_buffer(false);
    arrow_properties.set_batch_size(kRowsAtATime);
    parquet::arrow::FileReaderBuilder builder;
    ARROW_RETURN_NOT_OK(builder.Open(std::move(input), properties));
    builder.memory_pool(Pool())->properties(arrow_properties);
    auto file = std::make_unique<ParquetFile>();
    ARROW_RETURN_NOT_OK(builder.Build(&file->reader_));
    ARROW_RETURN_NOT_OK(file->reader_->GetSchema(&file->schema_));
    int64_t rows = 0;
    for (int i = 0; i < file->reader_->num_row_groups(); ++i) {
      rows += file->RowsOf(i);
    }
    const int64_t all = file->reader_->parquet_reader()->metadata()->num_rows();
    if (rows == all) return file;
    return Status::Invalid("the file says that it has ", all,
                           " rows, and its row groups that they have ", rows);
  }

  std::shared_ptr<arrow::Schema> schema() const override { return schema_; }
  int64_t groups() const override { return reader_->num_row_groups(); }
  int64_t rows(int64_t group) const override {
    return RowsOf(static_cast<int>(group));
  }

  Status Start(int64_t group, const std::vector<int>& columns) override {
    batches_.reset();
    const auto& fields = reader_->manifest().schema_fields;
    std::vector<int> leaves;
    for (const int column : columns) {
      if (static_cast<size_t>(column) >= fields.size()) {
        return Status::Invalid("no such column");
      }
      AddLeaves(fields[column], leaves);
    }
    reader_->set_batch_size(RowsAtATime(static_cast<int>(group), leaves));
    ARROW_ASSIGN_OR_RAISE(batches_, reader_->GetRecordBatchReader(
                                        {static_cast<int>(group)}, leaves));
    rows_left_ = RowsOf(static_cast<int>(group));
    return Status::OK();
  }

  Result<std::shared_ptr<arrow::RecordBatch>> Next() override {
    std::shared_ptr<arrow::RecordBatch> batch;
    if (batches_ == nullptr) return batch;
    ARROW_RETURN_NOT_OK(batches_->ReadNext(&batch));
    if (batch != nullptr) {
      rows_left_ -= batch->num_rows();
    } else if (rows_left_ != 0) {
      return Status::Invalid("the row group has ", std::abs(rows_left_),
                             " rows ", rows_left_ > 0 ? "less" : "more",
                             " than the file says");
    }
    return batch;
  }

 private:
  int64_t RowsOf(int group) const {
    return reader_->parquet_reader()->metadata()->RowGroup(group)->num_rows();
  }

  // As many rows as have kBytesAtATime, if all of the group's are alike.
  int64_t RowsAtATime(int group, const std::vector<int>& leaves) const {
    const auto about = reader_->parquet_reader()->metadata()->RowGroup(group);
    double bytes = 1;
    for (const int leaf : leaves) {
      bytes += std::max<double>(
          0, about->ColumnChunk(leaf)->total_uncompressed_size());
    }
    const double rows = kBytesAtATime / bytes * about->num_rows();
    return static_cast<int64_t>(std::clamp<double>(rows, 1, kRowsAtATime));
  }

  std::unique_ptr<parquet::arrow::FileReader> reader_;
  std::shared_ptr<arrow::Schema> schema_;
  std::shared_ptr<arrow::RecordBatchReader> batches_;
  int64_t rows_left_ = 0;  // of the group
};

class ArrowIpcFile final : public File {
 public:
  static Result<std::unique_ptr<File>> Open(std::shared_ptr<InputFile> input) {
    auto file = std::make_unique<ArrowIpcFile>();
    file->input_ = std::move(input);
    ARROW_ASSIGN_OR_RAISE(file->reader_, file->OpenReader({}));
    return file;
  }

  std::shared_ptr<arrow::Schema> schema() const override {
    return reader_->schema();
  }
  int64_t groups() const override { return reader_->num_record_batches(); }
  int64_t rows(int64_t /*group*/) const override { return -1; }

  Status Start(int64_t group, const std::vector<int>& columns) override {
    if (of_columns_ == nullptr || columns != columns_) {
      ARROW_ASSIGN_OR_RAISE(of_columns_, OpenReader(columns));
      columns_ = columns;
    }
    group_ = group;
    return Status::OK();
  }

  Result<std::shared_ptr<arrow::RecordBatch>> Next() override {
    std::shared_ptr<arrow::RecordBatch> batch;
    if (of_columns_ == nullptr || group_ < 0) return batch;
    const int64_t group = std::exchange(group_, -1);
    ARROW_ASSIGN_OR_RAISE(
        batch, of_columns_->ReadRecordBatch(static_cast<int>(group)));
    return batch;
  }

 private:
  Result<std::shared_ptr<arrow::ipc::RecordBatchFileReader>> OpenReader(
      const std::vector<int>& columns) const {
    arrow::ipc::IpcReadOptions options = arrow::ipc::IpcReadOptions::Defaults();
    options.memory_pool = Pool();
    options.use_threads = false;
    options.included_fields = columns;
    return arrow::ipc::RecordBatchFileReader::Open(input_, options);
  }

  std::shared_ptr<InputFile> input_;
  std::shared_ptr<arrow::ipc::RecordBatchFileReader> reader_;
  // A reader of these columns alone.
  std::shared_ptr<arrow::ipc::RecordBatchFileReader> of_columns_;
  std::vector<int> columns_;
  int64_t group_ = -1;
};

int Fail(const char* what, char* error, int code = 1) {
  std::snprintf(error, PARASOL_ARROW_ERROR_BYTES, "%s", what);
  return code;
}

// Returns what a lack of memory is.
int Lack() {
  return IsDamagedLength(lacked_bytes) ? 1 : PARASOL_ARROW_NO_MEMORY;
}

// Calls `function`, which reads a file of so many bytes and returns a Status;
// whatever it throws becomes an error.
template <typename Function>
int Guarded(int64_t bytes, char* error, const Function& function) {
  file_bytes = bytes;
  lacked_bytes = 0;
  try {
    const Status status = function();
    if (status.ok()) return 0;
    return Fail(status.message().c_str(), error,
                status.IsOutOfMemory() ? Lack() : 1);
  } catch (const std::bad_alloc&) {
    return Fail("no memory for what the file says that it has", error, Lack());
  } catch (const parquet::ParquetStatusException& thrown) {
    return Fail(thrown.what(), error,
                thrown.status().IsOutOfMemory() ? Lack() : 1);
  } catch (const std::exception& thrown) {
    return Fail(thrown.what(), error);
  } catch (...) {
    return Fail("an unknown exception", error);
  }
}

}  // namespace

struct ParasolArrowFile {
  std::unique_ptr<File> file;
  int64_t bytes = 0;
};

// All else is compiled hidden.
#pragma GCC visibility push(default)
extern "C" {

int parasol_arrow_interface(void) { return PARASOL_ARROW_INTERFACE; }

int parasol_arrow_open(const ParasolArrowInput* input, ParasolArrowFile** file,
                       char* error) {
  *file = nullptr;
  return Guarded(input->size, error, [&]() -> Status {
    auto bytes = std::make_shared<InputFile>(*input);
    char magic[kMagicBytes] = {};
    ARROW_RETURN_NOT_OK(bytes->ReadAt(0, kMagicBytes, magic));
    auto opened = std::make_unique<ParasolArrowFile>();
    if (std::memcmp(magic, kParquetMagic, kMagicBytes) == 0) {
      ARROW_ASSIGN_OR_RAISE(opened->file, ParquetFile::Open(std::move(bytes)));
    } else {
      ARROW_ASSIGN_OR_RAISE(opened->file, ArrowIpcFile::Open(std::move(bytes)));
    }
    opened->bytes = input->size;
    *file = opened.release();
    return Status::OK();
  });
}

void parasol_arrow_close(ParasolArrowFile* file) {
  char error[PARASOL_ARROW_ERROR_BYTES];
  Guarded(file->bytes, error, [&] {
    delete file;
    return Status::OK();
  });
}

int parasol_arrow_schema(ParasolArrowFile* file, ArrowSchema* schema,
                         char* error) {
  return Guarded(file->bytes, error, [&] {
    return arrow::ExportSchema(*file->file->schema(), schema);
  });
}

int64_t parasol_arrow_groups(const ParasolArrowFile* file) {
  return file->file->groups();
}

int64_t parasol_arrow_rows(const ParasolArrowFile* file, int64_t group) {
  return file->file->rows(group);
}

int parasol_arrow_start(ParasolArrowFile* file, int64_t group,
                        const int* columns, size_t count, char* error) {
  return Guarded(file->bytes, error, [&] {
    return file->file->Start(group, std::vector<int>(columns, columns + count));
  });
}

int parasol_arrow_next(ParasolArrowFile* file, ArrowArray* array, char* error) {
  array->release = nullptr;
  return Guarded(file->bytes, error, [&]() -> Status {
    ARROW_ASSIGN_OR_RAISE(const std::shared_ptr<arrow::RecordBatch> batch,
                          file->file->Next());
    if (batch == nullptr) return Status::OK();
    // ValidateFull() would refuse all rows for a text that is no UTF-8.
    ARROW_RETURN_NOT_OK(batch->Validate());
    return arrow::ExportRecordBatch(*batch, array);
  });
}

}  // extern "C"
#pragma GCC visibility pop
