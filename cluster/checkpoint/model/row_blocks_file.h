#ifndef PARASOL_CLUSTER_CHECKPOINT_MODEL_ROW_BLOCKS_FILE_H_
#define PARASOL_CLUSTER_CHECKPOINT_MODEL_ROW_BLOCKS_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/descriptor.h"

namespace parasol {

// A row's values by the hash of its id. RowHash() is a bijection, so the hash
// stands for the id.
struct HashedRow {
  uint64_t hash = 0;
  const float* values = nullptr;
};

// The layout of rows in a file that only the process that wrote it reads:
//
//   block  := record{rows_per_block} crc      rows that are not there are 0
//   record := hash float32{width}             uint64, in the machine's order
//   crc    := uint32                          crc32c of the records
//
// A block has as many rows as fit in 2 KiB, or one.
struct RowBlockFormat {
  explicit RowBlockFormat(size_t width);

  uint64_t HashAt(const char* block, size_t i) const;
  void ValuesAt(const char* block, size_t i, float* values) const;

  size_t width;
  size_t record_bytes;
  size_t rows_per_block;
  size_t block_bytes;
};

// Rows in ascending order of their hashes, in blocks one behind the other.
struct SortedRows {
  // Returns the number of rows in block `b`.
  size_t RowsIn(const RowBlockFormat& format, size_t b) const;
  uint64_t OffsetOf(const RowBlockFormat& format, size_t b) const {
    return offset + b * format.block_bytes;
  }
  uint64_t bytes(const RowBlockFormat& format) const {
    return first_hashes.size() * format.block_bytes;
  }

  uint64_t offset = 0;  // place of the first block in the file
  size_t rows = 0;
  std::vector<uint64_t> first_hashes = {};  // hash of each block's first row
};

// A file without a name that has rows in blocks. Move-only; not thread-safe.
class RowBlocksFile {
 public:
  // Makes a file in `directory` and takes its name away.
  //   NotFound, PermissionDenied, …  the directory can't be used: names it.
  static absl::StatusOr<RowBlocksFile> Create(const std::string& directory,
                                              const RowBlockFormat& format);

  const RowBlockFormat& format() const { return format_; }

  // Appends bytes of blocks at the file's end.
  //   ResourceExhausted  the disk is full.
  //   Unavailable        the disk refuses.
  absl::Status Append(absl::Span<const char> bytes);
  uint64_t size() const { return size_; }

  // Reads `count` blocks from block `first` on and verifies them.
  //   Unavailable  the disk refuses, or a block is not what was written. No
  //                checkpoint is to blame.
  absl::Status Read(const SortedRows& blocks, size_t first, size_t count,
                    char* out) const;
  // Does the same with one block if it needs no disk. Returns false if it does:
  // its reading has begun.
  absl::StatusOr<bool> TryRead(const SortedRows& blocks, size_t b,
                               char* out) const;

  // Gives the space of what was read back to the disk, as far as the file
  // system can do so.
  void Discard(uint64_t offset, uint64_t count) const;
  // Announces reads of single blocks: none is read ahead.
  void ExpectRandomReads() const;

 private:
  RowBlocksFile(std::string path, Descriptor descriptor,
                const RowBlockFormat& format)
      : path_(std::move(path)),
        descriptor_(std::move(descriptor)),
        format_(format) {}
  absl::Status Verify(const SortedRows& blocks, size_t b,
                      const char* block) const;

  std::string path_;  // the name that the file had
  Descriptor descriptor_;
  RowBlockFormat format_;
  uint64_t size_ = 0;
};

// Writes rows as blocks at the end of a file, a mebibyte at a time.
class RowBlocksWriter {
 public:
  // `file` must outlive the writer.
  explicit RowBlocksWriter(RowBlocksFile& file);

  // Adds a row with a larger hash than the rows before. Fails as
  // RowBlocksFile::Append() does.
  absl::Status Add(const HashedRow& row);
  absl::StatusOr<SortedRows> Finish();

 private:
  void EndBlock();
  absl::Status Flush();

  RowBlocksFile& file_;
  SortedRows blocks_;
  std::vector<char> buffer_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECKPOINT_MODEL_ROW_BLOCKS_FILE_H_
