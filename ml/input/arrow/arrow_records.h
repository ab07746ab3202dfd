#ifndef PARASOL_ML_INPUT_ARROW_ARROW_RECORDS_H_
#define PARASOL_ML_INPUT_ARROW_ARROW_RECORDS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ml/input/arrow/arrow_file.h"
#include "ml/input/file/set_memory.h"
#include "ml/input/file/stored_file.h"
#include "ml/input/library/arrow_library.h"
#include "ml/input/record/records.h"

namespace parasol {

// Some columns of Parquet or Arrow files, as records (value_record.h), one for
// each row.
//
// Columns are packed in row groups, of a hundred megabytes and more, so that a
// single row costs as much as a row group: a shuffled set would keep them all
// in memory, or unpack them over and over. So the columns that a job reads are
// unpacked once, when the set is opened, as gzip's files are: into memory, or
// if they are too large for it into a file without a name, whose records
// are read like every other format's, in blocks. In memory are meanwhile some
// thousand rows of a file, or a record batch of an Arrow file.
struct ArrowRecords {
  // A row group or a record batch.
  struct Group {
    int64_t first_record = 0;
    size_t file = 0;
    int64_t number = 0;  // number in its file
  };

  explicit ArrowRecords(Records read) : records(std::move(read)) {}

  // Returns DataLoss: "<path>, row group <n>, row <m>: <what>", or of a
  // record that stands for the rest of a damaged group why that can't be read.
  absl::Status Corrupt(int64_t record, absl::string_view what) const;

  Records records;
  std::vector<std::string> paths;
  std::vector<Group> groups;
  std::map<int64_t, std::string> damaged;  // reasons by record
  uint64_t bytes = 0;                      // bytes of all records
};

struct ConversionOptions {
  // True if what remains of a damaged group becomes one record that can't be
  // read; otherwise it is an error.
  bool skip_corrupt = false;
  // Bytes of records that are taken of each file; 0: all.
  uint64_t sample_bytes = 0;
  SetMemory memory = {};
};

// The files of a set, which all have the columns that are read, of the same
// types. Move-only; not thread-safe.
class ArrowFiles {
 public:
  // Opens files, of which there is at least one, and reads the first one's
  // schema.
  //   any  as for StoredFiles::Open() and ArrowFile::Open().
  static absl::StatusOr<ArrowFiles> Open(const ArrowLibrary& library,
                                         const std::vector<std::string>& paths);

  // Columns of the first file.
  const std::vector<ArrowColumn>& columns() const { return columns_; }
  std::vector<std::string> names() const;

  // Returns OK if all files have these columns once, with types that can be
  // read and go together.
  //   InvalidArgument  names the file, the column, and its type or both types.
  //   any other        as for ArrowFile::Open().
  absl::Status CheckColumns(const std::vector<std::string>& names) const;

  // Returns the names of the columns that CheckColumns() accepts, in the first
  // file's order.
  //   any  as for ArrowFile::Open().
  absl::StatusOr<std::vector<std::string>> CommonColumns() const;

  // Reads the rows of columns that CheckColumns() has accepted. A record has
  // them in this order; one may come several times.
  //   InvalidArgument  there is no room for the records.
  //   any other        as for ArrowFile::Open() and ArrowFile::ReadGroup(); of
  //                    bytes that can't be read, however corrupt ones are
  //                    treated.
  absl::StatusOr<ArrowRecords> Convert(const std::vector<std::string>& names,
                                       const ConversionOptions& options) const;

 private:
  explicit ArrowFiles(const ArrowLibrary& library) : library_(library) {}

  // Returns the numbers of the columns in a file.
  //   InvalidArgument  as for CheckColumns().
  absl::StatusOr<std::vector<size_t>> Places(
      const std::vector<std::string>& names, const ArrowFile& file,
      const std::string& path) const;

  ArrowLibrary library_;
  std::vector<StoredFile> files_;
  std::vector<ArrowColumn> columns_;
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_ARROW_ARROW_RECORDS_H_
