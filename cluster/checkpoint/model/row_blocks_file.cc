#include "cluster/checkpoint/model/row_blocks_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "base/status_macros.h"
#include "storage/durable_file.h"

namespace parasol {
namespace {

constexpr size_t kBlockBytes = 2048;
constexpr size_t kCrcBytes = sizeof(uint32_t);
constexpr size_t kWriteBytes = 1 << 20;

}  // namespace

RowBlockFormat::RowBlockFormat(size_t width)
    : width(width),
      record_bytes(sizeof(uint64_t) + width * sizeof(float)),
      rows_per_block(
          std::max<size_t>(1, (kBlockBytes - kCrcBytes) / record_bytes)),
      block_bytes(rows_per_block * record_bytes + kCrcBytes) {}

uint64_t RowBlockFormat::HashAt(const char* block, size_t i) const {
  uint64_t hash;
  std::memcpy(&hash, block + i * record_bytes, sizeof(hash));
  return hash;
}

void RowBlockFormat::ValuesAt(const char* block, size_t i,
                              float* values) const {
  std::memcpy(values, block + i * record_bytes + sizeof(uint64_t),
              width * sizeof(float));
}

size_t SortedRows::RowsIn(const RowBlockFormat& format, size_t b) const {
  return std::min(format.rows_per_block, rows - b * format.rows_per_block);
}

absl::StatusOr<RowBlocksFile> RowBlocksFile::Create(
    const std::string& directory, const RowBlockFormat& format) {
  std::string path = absl::StrCat(directory, "/parasol-rows-XXXXXX");
  Descriptor descriptor(mkostemp(path.data(), O_CLOEXEC));
  if (!descriptor.is_open()) {
    return FileError(errno, "make a file for rows in", directory);
  }
  if (unlink(path.c_str()) != 0) return FileError(errno, "unlink", path);
  return RowBlocksFile(std::move(path), std::move(descriptor), format);
}

absl::Status RowBlocksFile::Append(absl::Span<const char> bytes) {
  while (!bytes.empty()) {
    const ssize_t written =
        pwrite(descriptor_.get(), bytes.data(), bytes.size(), size_);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FileError(errno, "write rows to", path_);
    size_ += written;
    bytes.remove_prefix(written);
  }
  return absl::OkStatus();
}

absl::Status RowBlocksFile::Read(const SortedRows& blocks, size_t first,
                                 size_t count, char* out) const {
  const size_t bytes = count * format_.block_bytes;
  const uint64_t offset = blocks.OffsetOf(format_, first);
  for (size_t done = 0; done < bytes;) {
    const ssize_t got =
        pread(descriptor_.get(), out + done, bytes - done, offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ReadError(errno, "read rows from", path_);
    if (got == 0) {
      return absl::UnavailableError(absl::StrCat(
          path_, ": the rows of a sparse table end at byte ", offset + done,
          "; the disk is damaged: choose another one with --table_dir"));
    }
    done += got;
  }
  for (size_t i = 0; i < count; ++i) {
    RETURN_IF_ERROR(Verify(blocks, first + i, out + i * format_.block_bytes));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> RowBlocksFile::TryRead(const SortedRows& blocks, size_t b,
                                            char* out) const {
  const uint64_t offset = blocks.OffsetOf(format_, b);
  const iovec block = {.iov_base = out, .iov_len = format_.block_bytes};
  const ssize_t got = preadv2(descriptor_.get(), &block, 1, offset, RWF_NOWAIT);
  if (got == static_cast<ssize_t>(format_.block_bytes)) {
    RETURN_IF_ERROR(Verify(blocks, b, out));
    return true;
  }
  // Whatever the reason is, Read() says it.
  posix_fadvise(descriptor_.get(), offset, format_.block_bytes,
                POSIX_FADV_WILLNEED);
  return false;
}

absl::Status RowBlocksFile::Verify(const SortedRows& blocks, size_t b,
                                   const char* block) const {
  const size_t records = format_.rows_per_block * format_.record_bytes;
  uint32_t crc;
  std::memcpy(&crc, block + records, kCrcBytes);
  // The first hash tells the block from the others.
  if (crc == Crc32cOf({block, records}) &&
      format_.HashAt(block, 0) == blocks.first_hashes[b]) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat(
      path_, ": the rows of a sparse table at byte ",
      blocks.OffsetOf(format_, b),
      " are not those that were written; the disk is damaged: choose another "
      "one with --table_dir"));
}

void RowBlocksFile::Discard(uint64_t offset, uint64_t count) const {
  fallocate(descriptor_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
            offset, count);
}

void RowBlocksFile::ExpectRandomReads() const {
  posix_fadvise(descriptor_.get(), 0, 0, POSIX_FADV_RANDOM);
}

RowBlocksWriter::RowBlocksWriter(RowBlocksFile& file) : file_(file) {
  blocks_.offset = file.size();
  buffer_.reserve(kWriteBytes + file.format().block_bytes);
}

absl::Status RowBlocksWriter::Add(const HashedRow& row) {
  const RowBlockFormat& format = file_.format();
  if (blocks_.rows % format.rows_per_block == 0) {
    blocks_.first_hashes.push_back(row.hash);
  }
  const auto* const hash = reinterpret_cast<const char*>(&row.hash);
  const auto* const values = reinterpret_cast<const char*>(row.values);
  buffer_.insert(buffer_.end(), hash, hash + sizeof(row.hash));
  buffer_.insert(buffer_.end(), values, values + format.width * sizeof(float));
  ++blocks_.rows;
  if (blocks_.rows % format.rows_per_block != 0) return absl::OkStatus();
  EndBlock();
  return buffer_.size() < kWriteBytes ? absl::OkStatus() : Flush();
}

absl::StatusOr<SortedRows> RowBlocksWriter::Finish() {
  const RowBlockFormat& format = file_.format();
  if (const size_t rest = blocks_.rows % format.rows_per_block; rest > 0) {
    buffer_.resize(buffer_.size() +
                   (format.rows_per_block - rest) * format.record_bytes);
    EndBlock();
  }
  RETURN_IF_ERROR(Flush());
  blocks_.first_hashes.shrink_to_fit();
  return std::move(blocks_);
}

void RowBlocksWriter::EndBlock() {
  const RowBlockFormat& format = file_.format();
  const size_t records = format.rows_per_block * format.record_bytes;
  const uint32_t crc =
      Crc32cOf({buffer_.data() + buffer_.size() - records, records});
  const auto* const bytes = reinterpret_cast<const char*>(&crc);
  buffer_.insert(buffer_.end(), bytes, bytes + kCrcBytes);
}

absl::Status RowBlocksWriter::Flush() {
  RETURN_IF_ERROR(file_.Append(buffer_));
  buffer_.clear();
  return absl::OkStatus();
}

}  // namespace parasol
