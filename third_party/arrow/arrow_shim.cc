// libparasol_arrow.so: what arrow_shim.h declares, by Apache Arrow C++.
// `deploy/arrow` compiles it; Bazel does not, for Debian has no Arrow.

#include "arrow_shim.h"

#include <arrow/array/validate.h>
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
// Rows that are in memory at a time, of a Parquet file.
constexpr int64_t kRowsAtATime = 4096;
// Bytes of a column's pages that are read at a time.
constexpr int64_t kPageBufferBytes = 256 << 10;

// What Arrow takes of its own pools stays with it; the system's is given back.
arrow::MemoryPool* Pool() { return arrow::system_memory_pool(); }

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
    ARROW_ASSIGN_OR_RAISE(batches_, reader_->GetRecordBatchReader(
                                        {static_cast<int>(group)}, leaves));
    rows_left_ = RowsOf(static_cast<int>(group));
    return Status::OK();
  }

  Result<std::shared_ptr<arrow::RecordBatch>> Next() override {
    std::shared_ptr<arrow::RecordBatch> batch;
    if (batches_ == nullptr) return batch;
    ARROW_RETURN_NOT_OK(batches_->ReadNext(&batch));
    // The decoder wrote what is in it; the text's encoding is the file's.
    if (batch != nullptr) {
      ARROW_RETURN_NOT_OK(batch->Validate());
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
    // Its buffers are the file's bytes as they are.
    ARROW_RETURN_NOT_OK(batch->ValidateFull());
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

int Fail(const char* what, char* error) {
  std::snprintf(error, PARASOL_ARROW_ERROR_BYTES, "%s", what);
  return 1;
}

// Calls `function`, which returns a Status; whatever it throws becomes an
// error.
template <typename Function>
int Guarded(char* error, const Function& function) {
  try {
    const Status status = function();
    if (status.ok()) return 0;
    return Fail(status.message().c_str(), error);
  } catch (const std::bad_alloc&) {
    return Fail("no memory for what the file says that it has", error);
  } catch (const std::exception& thrown) {
    return Fail(thrown.what(), error);
  } catch (...) {
    return Fail("an unknown exception", error);
  }
}

}  // namespace

struct ParasolArrowFile {
  std::unique_ptr<File> file;
};

// All else is compiled hidden.
#pragma GCC visibility push(default)
extern "C" {

int parasol_arrow_interface(void) { return PARASOL_ARROW_INTERFACE; }

int parasol_arrow_open(const ParasolArrowInput* input, ParasolArrowFile** file,
                       char* error) {
  *file = nullptr;
  return Guarded(error, [&]() -> Status {
    auto bytes = std::make_shared<InputFile>(*input);
    char magic[kMagicBytes] = {};
    ARROW_RETURN_NOT_OK(bytes->ReadAt(0, kMagicBytes, magic));
    auto opened = std::make_unique<ParasolArrowFile>();
    if (std::memcmp(magic, kParquetMagic, kMagicBytes) == 0) {
      ARROW_ASSIGN_OR_RAISE(opened->file, ParquetFile::Open(std::move(bytes)));
    } else {
      ARROW_ASSIGN_OR_RAISE(opened->file, ArrowIpcFile::Open(std::move(bytes)));
    }
    *file = opened.release();
    return Status::OK();
  });
}

void parasol_arrow_close(ParasolArrowFile* file) {
  char error[PARASOL_ARROW_ERROR_BYTES];
  Guarded(error, [&] {
    delete file;
    return Status::OK();
  });
}

int parasol_arrow_schema(ParasolArrowFile* file, ArrowSchema* schema,
                         char* error) {
  return Guarded(error, [&] {
    return arrow::ExportSchema(*file->file->schema(), schema);
  });
}

int64_t parasol_arrow_groups(const ParasolArrowFile* file) {
  return file->file->groups();
}

int parasol_arrow_start(ParasolArrowFile* file, int64_t group,
                        const int* columns, size_t count, char* error) {
  return Guarded(error, [&] {
    return file->file->Start(group, std::vector<int>(columns, columns + count));
  });
}

int parasol_arrow_next(ParasolArrowFile* file, ArrowArray* array, char* error) {
  array->release = nullptr;
  return Guarded(error, [&]() -> Status {
    ARROW_ASSIGN_OR_RAISE(const std::shared_ptr<arrow::RecordBatch> batch,
                          file->file->Next());
    if (batch == nullptr) return Status::OK();
    return arrow::ExportRecordBatch(*batch, array);
  });
}

}  // extern "C"
#pragma GCC visibility pop
