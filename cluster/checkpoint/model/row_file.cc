#include "cluster/checkpoint/model/row_file.h"

#include <algorithm>
#include <queue>
#include <utility>

#include "base/log.h"
#include "base/row_hash.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

// Bytes that all runs together have in memory while they are merged, but at
// least one block of each.
constexpr size_t kMergeBytes = 16 << 20;
constexpr size_t kMaxReadBytes = 1 << 20;

// The rows of a run in their order, some blocks at a time.
class RunCursor {
 public:
  // `file` and `run` must outlive the cursor.
  RunCursor(const RowBlocksFile& file, const SortedRows& run, size_t buffer)
      : file_(file),
        run_(run),
        blocks_per_read_(
            std::max<size_t>(1, buffer / file.format().block_bytes)),
        values_(file.format().width) {}

  // Goes to the next row, the first one at first. Returns false at the end.
  absl::StatusOr<bool> Next() {
    const RowBlockFormat& format = file_.format();
    if (next_ == run_.rows) return false;
    const size_t block = next_ / format.rows_per_block;
    if (block == end_) {
      RETURN_IF_ERROR(ReadFrom(block));
    }
    const char* const bytes =
        buffer_.data() + (block - begin_) * format.block_bytes;
    const size_t i = next_++ % format.rows_per_block;
    hash_ = format.HashAt(bytes, i);
    format.ValuesAt(bytes, i, values_.data());
    return true;
  }

  HashedRow row() const { return {.hash = hash_, .values = values_.data()}; }

 private:
  absl::Status ReadFrom(size_t block) {
    const size_t count =
        std::min(blocks_per_read_, run_.first_hashes.size() - block);
    const size_t bytes = count * file_.format().block_bytes;
    buffer_.resize(bytes);
    RETURN_IF_ERROR(file_.Read(run_, block, count, buffer_.data()));
    file_.Discard(run_.OffsetOf(file_.format(), block), bytes);
    begin_ = block;
    end_ = block + count;
    return absl::OkStatus();
  }

  const RowBlocksFile& file_;
  const SortedRows& run_;
  const size_t blocks_per_read_;
  std::vector<char> buffer_;  // blocks [begin_, end_)
  size_t begin_ = 0;
  size_t end_ = 0;
  size_t next_ = 0;  // number of the next row
  uint64_t hash_ = 0;
  std::vector<float> values_;
};

// A run's next row. The smallest hash comes first; of equal hashes the latest
// run's does.
struct NextOfRun {
  uint64_t hash;
  size_t run;

  bool operator<(const NextOfRun& other) const {
    return hash != other.hash ? hash > other.hash : run < other.run;
  }
};

}  // namespace

RowFile::RowFile(RowBlocksFile file, SortedRows blocks)
    : file_(std::move(file)),
      blocks_(std::move(blocks)),
      block_(file_.format().block_bytes) {
  file_.ExpectRandomReads();
}

absl::Status RowFile::Read(absl::Span<const uint64_t> ids,
                           absl::Span<float> values, Fill fill) {
  const size_t width = file_.format().width;
  CHECK_EQ(values.size(), ids.size() * width);
  struct Late {
    size_t place;
    size_t block;
  };
  std::vector<Late> late;
  for (size_t i = 0; i < ids.size(); ++i) {
    float* const row = values.data() + i * width;
    const auto after =
        std::upper_bound(blocks_.first_hashes.begin(),
                         blocks_.first_hashes.end(), RowHash(ids[i]));
    if (after == blocks_.first_hashes.begin()) {
      fill(ids[i], row);
      continue;
    }
    const size_t block = after - blocks_.first_hashes.begin() - 1;
    ASSIGN_OR_RETURN(const bool is_read,
                     file_.TryRead(blocks_, block, block_.data()));
    if (is_read) {
      Take(ids[i], block, row, fill);
    } else {
      late.push_back({.place = i, .block = block});
    }
  }
  for (const Late& row : late) {
    RETURN_IF_ERROR(file_.Read(blocks_, row.block, 1, block_.data()));
    Take(ids[row.place], row.block, values.data() + row.place * width, fill);
  }
  return absl::OkStatus();
}

void RowFile::Take(uint64_t id, size_t b, float* values, Fill fill) const {
  const RowBlockFormat& format = file_.format();
  const uint64_t hash = RowHash(id);
  // Binary search for the first row whose hash is not smaller.
  size_t begin = 0;
  size_t end = blocks_.RowsIn(format, b);
  while (begin < end) {
    const size_t middle = (begin + end) / 2;
    if (format.HashAt(block_.data(), middle) < hash) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  if (begin < blocks_.RowsIn(format, b) &&
      format.HashAt(block_.data(), begin) == hash) {
    format.ValuesAt(block_.data(), begin, values);
  } else {
    fill(id, values);
  }
}

absl::StatusOr<std::unique_ptr<RowFileWriter>> RowFileWriter::Create(
    const std::string& directory, size_t width) {
  ASSIGN_OR_RETURN(RowBlocksFile runs,
                   RowBlocksFile::Create(directory, RowBlockFormat(width)));
  return std::unique_ptr<RowFileWriter>(
      new RowFileWriter(directory, std::move(runs)));
}

absl::Status RowFileWriter::AddRun(absl::Span<const HashedRow> rows) {
  RowBlocksWriter writer(runs_file_);
  for (const HashedRow& row : rows) RETURN_IF_ERROR(writer.Add(row));
  ASSIGN_OR_RETURN(SortedRows run, writer.Finish());
  runs_.push_back(std::move(run));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<RowFile>> RowFileWriter::Finish() {
  if (runs_.size() == 1) {
    return std::unique_ptr<RowFile>(
        new RowFile(std::move(runs_file_), std::move(runs_.front())));
  }
  std::vector<RunCursor> cursors;
  cursors.reserve(runs_.size());
  std::priority_queue<NextOfRun> next;
  const size_t buffer =
      std::min(kMaxReadBytes, kMergeBytes / std::max<size_t>(1, runs_.size()));
  const auto advance = [&](size_t run) -> absl::Status {
    ASSIGN_OR_RETURN(const bool has_row, cursors[run].Next());
    if (has_row) next.push({.hash = cursors[run].row().hash, .run = run});
    return absl::OkStatus();
  };
  for (size_t run = 0; run < runs_.size(); ++run) {
    cursors.emplace_back(runs_file_, runs_[run], buffer);
    RETURN_IF_ERROR(advance(run));
  }
  ASSIGN_OR_RETURN(RowBlocksFile file,
                   RowBlocksFile::Create(directory_, runs_file_.format()));
  RowBlocksWriter writer(file);
  while (!next.empty()) {
    const NextOfRun taken = next.top();
    RETURN_IF_ERROR(writer.Add(cursors[taken.run].row()));
    while (!next.empty() && next.top().hash == taken.hash) {
      const size_t run = next.top().run;
      next.pop();
      RETURN_IF_ERROR(advance(run));
    }
  }
  ASSIGN_OR_RETURN(SortedRows blocks, writer.Finish());
  return std::unique_ptr<RowFile>(
      new RowFile(std::move(file), std::move(blocks)));
}

}  // namespace parasol
