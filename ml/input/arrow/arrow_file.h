#ifndef PARASOL_ML_INPUT_ARROW_ARROW_FILE_H_
#define PARASOL_ML_INPUT_ARROW_ARROW_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ml/input/arrow/arrow_type.h"
#include "ml/input/file/stored_file.h"
#include "ml/input/library/arrow_library.h"

namespace parasol {

// A column of a file, as its schema has it.
struct ArrowColumn {
  std::string name;
  ArrowType type;
};

// A file of Parquet or Arrow IPC (Feather, version 2), read row group by row
// group, or record batch by record batch: in memory are some thousand rows of
// a row group, or a record batch. Move-only; not thread-safe.
class ArrowFile {
 public:
  // Reads the schema of a file, which outlives this.
  //   InvalidArgument        the file is of another format: says which, if that
  //                          is known.
  //   DataLoss               it is damaged, cut off, or has changed since it
  //                          was opened.
  //   ResourceExhausted      there is no memory for it.
  //   Unavailable            as for StoredFile::Read().
  // All name the file.
  static absl::StatusOr<ArrowFile> Open(const ArrowLibrary& library,
                                        const StoredFile& stored);

  const std::vector<ArrowColumn>& columns() const { return columns_; }
  // Returns the numbers of the columns of that name.
  std::vector<size_t> Find(absl::string_view name) const;

  // Number of row groups or record batches.
  int64_t groups() const { return library_.groups(handle_.get()); }
  // Returns the number of a group's rows; -1 if it is not known.
  int64_t RowsOf(int64_t group) const {
    return library_.rows(handle_.get(), group);
  }

  // Returns OK unless the file's bytes could not be read: then what a read
  // returned first, which is no damage of a group.
  const absl::Status& source_status() const { return source_->status; }

  // Takes some rows: an array for each column that is read.
  using VisitRows = absl::FunctionRef<absl::Status(
      int64_t rows, const std::vector<const ArrowArray*>& arrays)>;

  // Reads a group's rows, one part after the other, of the columns with these
  // numbers, which ascend.
  //   DataLoss           the group is damaged: names the file, the group, and
  //                      the column if it is one; or the file has changed.
  //   ResourceExhausted  there is no memory for its rows: names the file.
  //   Unavailable        as for StoredFile::Read().
  //   any other          what `visit` returns.
  absl::Status ReadGroup(int64_t group, const std::vector<size_t>& columns,
                         VisitRows visit);

  // Returns DataLoss that names the file and a group.
  absl::Status Damaged(int64_t group, absl::string_view what) const;

 private:
  // The bytes that the library reads, and why it could not.
  struct Source {
    const StoredFile* stored;
    absl::Status status;
  };
  using Handle = std::unique_ptr<ParasolArrowFile, void (*)(ParasolArrowFile*)>;

  ArrowFile(const ArrowLibrary& library, std::unique_ptr<Source> source,
            Handle handle)
      : library_(library),
        source_(std::move(source)),
        handle_(std::move(handle)) {}

  static int ReadSource(void* context, int64_t offset, int64_t size, void* out);
  // Returns what an error of the library, with its number, or of the disk below
  // it, is.
  static absl::Status Error(const Source& source, absl::string_view what,
                            int code = 1);

  absl::Status ReadSchema();
  // Reads the next part of the group. Returns false at its end.
  absl::StatusOr<bool> ReadPart(size_t columns, VisitRows visit);
  absl::Status ReadColumns(int64_t group, const std::vector<size_t>& columns,
                           VisitRows visit);
  // Returns the name of the only column that can't be read, or what is wrong
  // with all of them.
  std::string WhereDamaged(int64_t group, const std::vector<size_t>& columns,
                           const absl::Status& status);

  ArrowLibrary library_;
  std::unique_ptr<Source> source_;
  Handle handle_;
  std::vector<ArrowColumn> columns_;
  bool is_from_visit_ = false;  // ReadColumns() returned an error of `visit`
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_ARROW_ARROW_FILE_H_
