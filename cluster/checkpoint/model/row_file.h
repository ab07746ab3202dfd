#ifndef PARASOL_CLUSTER_CHECKPOINT_MODEL_ROW_FILE_H_
#define PARASOL_CLUSTER_CHECKPOINT_MODEL_ROW_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cluster/checkpoint/model/row_blocks_file.h"

namespace parasol {

// The values of a sparse table's rows on disk, in a file that has no name: it
// is gone as soon as this object or the process is. Holds 8 bytes in memory for
// each 2 KiB of rows. What is read often stays in the system's page cache.
//
// The file is read, not mapped: an error of the disk is a status and no signal,
// and its pages do not count as the process's memory. Not thread-safe.
class RowFile {
 public:
  // Function that writes the values of a row that the file lacks.
  using Fill = absl::FunctionRef<void(uint64_t id, float* values)>;

  // Writes the rows of `ids` to `values`, [ids.size(), width]. Rows that are
  // not in the page cache are fetched from the disk side by side.
  //   Unavailable  the disk refuses, or gives other bytes than were written;
  //                names the file.
  absl::Status Read(absl::Span<const uint64_t> ids, absl::Span<float> values,
                    Fill fill);

  size_t rows() const { return blocks_.rows; }
  size_t file_bytes() const { return blocks_.bytes(file_.format()); }
  // Bytes that the object has in memory.
  size_t memory_bytes() const {
    return blocks_.first_hashes.capacity() * sizeof(uint64_t);
  }

 private:
  friend class RowFileWriter;
  RowFile(RowBlocksFile file, SortedRows blocks);

  // Writes row `id`, which may be in block `b` alone, from block_.
  void Take(uint64_t id, size_t b, float* values, Fill fill) const;

  const RowBlocksFile file_;
  const SortedRows blocks_;
  std::vector<char> block_;  // the last one that was read
};

// Makes a RowFile of any number of rows in any order, sorted on disk: it takes
// runs of rows that are sorted, and merges them.
class RowFileWriter {
 public:
  // Makes a file in `directory`, which must be there. The file has no name from
  // here on.
  //   NotFound, PermissionDenied, …  the directory can't be used: names it.
  static absl::StatusOr<std::unique_ptr<RowFileWriter>> Create(
      const std::string& directory, size_t width);

  // Writes rows, in ascending order of their hashes, which differ. A row that
  // an earlier run has too takes its place.
  //   ResourceExhausted  the disk is full.
  //   Unavailable        the disk refuses.
  absl::Status AddRun(absl::Span<const HashedRow> rows);

  // Merges the runs, in about 16 MiB of memory. Must be called once, last. The
  // space of runs is given back while they are merged.
  //   any  as for AddRun() and RowFile::Read().
  absl::StatusOr<std::unique_ptr<RowFile>> Finish();

 private:
  RowFileWriter(std::string directory, RowBlocksFile runs_file)
      : directory_(std::move(directory)), runs_file_(std::move(runs_file)) {}

  const std::string directory_;
  RowBlocksFile runs_file_;  // the runs, one behind the other
  std::vector<SortedRows> runs_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECKPOINT_MODEL_ROW_FILE_H_
