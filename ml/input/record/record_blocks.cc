#include "ml/input/record/record_blocks.h"

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

// Bytes that are read at a time while a file is gone through.
constexpr size_t kWindowBytes = 1 << 20;
// A block with more than so many times its usual bytes is read piece by piece:
// what it has may be no record.
constexpr size_t kUsualBlocks = 4;

SetMemory WithLeastCache(SetMemory memory) {
  memory.cache_bytes = LeastCache(memory);
  return memory;
}

int64_t LineEndsIn(absl::string_view text) {
  return std::count(text.begin(), text.end(), '\n');
}

}  // namespace

RecordBlocks::RecordBlocks(std::shared_ptr<RecordFormat> format, bool has_lines,
                           const SetMemory& memory)
    : format_(std::move(format)),
      has_lines_(has_lines),
      memory_(WithLeastCache(memory)),
      cache_(memory_.cache_bytes) {}

std::vector<int64_t> RecordBlocks::file_starts() const {
  std::vector<int64_t> starts;
  for (const File& file : files_) starts.push_back(file.first_record);
  starts.push_back(size_);
  return starts;
}

absl::Status RecordBlocks::AddFile(StoredFile file) {
  files_.push_back({.stored = std::move(file),
                    .first_record = size_,
                    .first_block = starts_.size()});
  const StoredFile& stored = files_.back().stored;
  lines_ = 0;
  counted_to_ = 0;
  FileWindow window(stored, 0);
  RETURN_IF_ERROR(window.Grow(kWindowBytes));
  while (true) {
    ASSIGN_OR_RETURN(const std::optional<size_t> begin,
                     format_->Begin(stored.path(), window.part()));
    if (begin.has_value()) {
      RETURN_IF_ERROR(Index(*begin, window));
      break;
    }
    RETURN_IF_ERROR(window.Grow(kWindowBytes));
  }
  cache_.KeepAtMost(CacheBytes());
  return absl::OkStatus();
}

size_t RecordBlocks::CacheBytes() const {
  // A record stays in a shuffle buffer while about as many are drawn as the
  // buffer has, the last one of a block's ten times as long: with less, blocks
  // are read again and again, 1.2 to 1.8 times with 6 buffers, 5 to 20 with 3.
  constexpr double kBuffers = 10;
  double bytes = 0;
  for (const File& file : files_) {
    bytes += static_cast<double>(file.stored.size());
  }
  const double buffer = bytes /
                        static_cast<double>(std::max<int64_t>(1, size_)) *
                        static_cast<double>(std::min(size_, memory_.shuffled));
  const auto most = static_cast<double>(MostInMemory(memory_));
  return std::max(memory_.cache_bytes,
                  static_cast<size_t>(std::min(kBuffers * buffer, most)));
}

absl::Status RecordBlocks::Index(size_t at, FileWindow& window) {
  const size_t end = files_.back().stored.size();
  if (at < end) {
    CountLines(window.part(), at);
    StartBlock(at);
  }
  while (at < end) {
    const FoundRecord found = FindRecord(*format_, window.part(), at);
    if (found.kind == FoundRecord::Kind::kCutOff) {
      CountLines(window.part(), at);
      window.DropBefore(at);
      RETURN_IF_ERROR(window.Grow(kWindowBytes));
      continue;
    }
    if (found.kind == FoundRecord::Kind::kBroken && first_broken_.ok()) {
      CountLines(window.part(), found.offset);
      first_broken_ =
          CorruptAt(files_.back(), found.offset, 1 + lines_, found.what);
    }
    if (found.kind != FoundRecord::Kind::kNone) ++size_;
    at = found.next;
    if (at >= end) break;
    if (at >= starts_.back().offset + memory_.block_bytes) {
      CountLines(window.part(), at);
      StartBlock(at);
    }
    if (at >= window.end()) {
      CountLines(window.part(), at);
      window.DropBefore(at);
      RETURN_IF_ERROR(window.Grow(kWindowBytes));
    }
  }
  return absl::OkStatus();
}

void RecordBlocks::StartBlock(uint64_t offset) {
  first_records_.push_back(size_);
  starts_.push_back({.offset = offset, .lines_before = lines_});
}

void RecordBlocks::CountLines(const FilePart& part, size_t end) {
  if (!has_lines_ || end <= counted_to_) return;
  lines_ += LineEndsIn(part.From(counted_to_).substr(0, end - counted_to_));
  counted_to_ = end;
}

absl::StatusOr<std::shared_ptr<const RecordBlock>> RecordBlocks::BlockOf(
    size_t number) const {
  return cache_.Get(number, [this, number] { return Load(number); });
}

size_t RecordBlocks::held() const {
  constexpr size_t kMostHeld = 256;
  return std::clamp<size_t>(memory_.cache_bytes / 8 / memory_.block_bytes, 1,
                            kMostHeld);
}

size_t RecordBlocks::NumberOf(int64_t record) const {
  // Most blocks have about as many records: the search begins at a guess, and
  // in few of the processor's cache lines.
  const size_t blocks = first_records_.size();
  size_t low = std::min<size_t>(
      blocks - 1, static_cast<size_t>(static_cast<double>(record) /
                                      static_cast<double>(size_) *
                                      static_cast<double>(blocks)));
  size_t step = 1;
  size_t high = low + 1;
  while (low > 0 && first_records_[low] > record) {
    high = low;
    low -= std::min(low, step);
    step *= 2;
  }
  while (high < blocks && first_records_[high] <= record) {
    low = high;
    high = std::min(blocks, high + step);
    step *= 2;
  }
  // Blocks without records begin where the one behind them does.
  return std::upper_bound(first_records_.begin() + low,
                          first_records_.begin() + high, record) -
         first_records_.begin() - 1;
}

absl::StatusOr<RecordBlock> RecordBlocks::Load(size_t number) const {
  const auto behind = std::upper_bound(files_.begin(), files_.end(), number,
                                       [](size_t wanted, const File& file) {
                                         return wanted < file.first_block;
                                       });
  const File& file = behind[-1];
  const bool is_last =
      number + 1 == starts_.size() ||
      (behind != files_.end() && number + 1 == behind->first_block);
  RecordBlock block;
  block.first_record = first_records_[number];
  block.file = static_cast<size_t>(behind - files_.begin()) - 1;
  block.offset = starts_[number].offset;
  block.lines_before = starts_[number].lines_before;
  const size_t end = is_last ? file.stored.size() : starts_[number + 1].offset;
  const int64_t next =
      number + 1 == starts_.size() ? size_ : first_records_[number + 1];
  try {
    block.places.reserve(next - block.first_record);
    RETURN_IF_ERROR(Fill(file, end, block));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat(file.stored.path(), " at byte ", block.offset,
                     ": no memory for a block of records"));
  }
  if (static_cast<int64_t>(block.places.size()) == next - block.first_record) {
    return block;
  }
  return OtherRecords(file, block);
}

absl::Status RecordBlocks::Fill(const File& file, size_t end,
                                RecordBlock& block) const {
  FileWindow window(file.stored, block.offset);
  const size_t all = end - block.offset;
  RETURN_IF_ERROR(window.ReadTo(all <= kUsualBlocks * memory_.block_bytes
                                    ? end
                                    : block.offset + memory_.block_bytes));
  size_t at = block.offset;
  while (at < end) {
    FoundRecord found = FindRecord(*format_, window.part(), at);
    if (found.kind == FoundRecord::Kind::kCutOff) {
      RETURN_IF_ERROR(window.Grow(memory_.block_bytes));
      continue;
    }
    at = found.next;
    // What goes on behind the block's end was not there before.
    if (at > end) return OtherRecords(file, block);
    if (found.kind == FoundRecord::Kind::kNone) continue;
    if (found.kind == FoundRecord::Kind::kBroken) {
      block.broken.emplace_back(block.places.size(), std::move(found.what));
      found.length = 0;
    }
    RETURN_IF_ERROR(window.ReadTo(found.offset + found.length));
    block.places.push_back(
        {.offset = static_cast<uint32_t>(found.offset - block.offset),
         .length = static_cast<uint32_t>(found.length)});
  }
  block.bytes = window.part().bytes.substr(0, end - block.offset);
  block.allocated = window.capacity();
  block.memory = std::move(window).Take();
  return absl::OkStatus();
}

absl::Status RecordBlocks::OtherRecords(const File& file,
                                        const RecordBlock& block) const {
  return CorruptAt(file, block.offset, 1 + block.lines_before,
                   "other records than when the file was opened: it has "
                   "changed");
}

absl::Status RecordBlocks::Corrupt(const RecordBlock& block, int64_t record,
                                   size_t inside,
                                   absl::string_view what) const {
  const size_t in_block =
      block.places[record - block.first_record].offset + inside;
  const int64_t line =
      has_lines_
          ? 1 + block.lines_before + LineEndsIn(block.bytes.substr(0, in_block))
          : 0;
  return CorruptAt(files_[block.file], block.offset + in_block, line, what);
}

absl::Status RecordBlocks::CorruptAt(const File& file, uint64_t offset,
                                     int64_t line,
                                     absl::string_view what) const {
  const std::string where =
      has_lines_ ? absl::StrCat(" line ", line) : std::string();
  return absl::DataLossError(
      absl::StrCat(file.stored.path(), where, " at byte ",
                   file.stored.ShownOffset(offset), ": ", what));
}

}  // namespace parasol
