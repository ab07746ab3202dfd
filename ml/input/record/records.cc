#include "ml/input/record/records.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace parasol {
namespace {

constexpr size_t kLineBlockBytes = 64 << 10;

int64_t LineEnds(absl::string_view text) {
  return std::count(text.begin(), text.end(), '\n');
}

}  // namespace

Records::Records(Content content, std::shared_ptr<RecordFormat> format,
                 const SetMemory& memory)
    : content_(content),
      blocks_(std::make_unique<RecordBlocks>(
          std::move(format), content == Content::kText, memory)) {}

absl::string_view Records::AddFile(std::string path, std::string bytes) {
  files_.push_back({.path = std::move(path),
                    .bytes = std::move(bytes),
                    .first_record = size(),
                    .lines = std::make_unique<LineCounts>()});
  return files_.back().bytes;
}

void Records::Add(size_t offset, size_t length) {
  if (length > kMaxRecordBytes) {
    AddBroken(offset, 0, absl::StrCat("a record of ", length, " bytes"));
    return;
  }
  offsets_.push_back(offset);
  lengths_.push_back(static_cast<uint32_t>(length));
}

void Records::AddBroken(size_t offset, size_t length, std::string what) {
  broken_.emplace(size(), std::move(what));
  Add(offset, std::min(length, kMaxRecordBytes));
}

void Records::AddAll(const RecordFormat& format, size_t begin, bool is_cut) {
  const std::string& bytes = files_.back().bytes;
  const FilePart part = {
      .bytes = bytes, .file_bytes = bytes.size(), .is_cut = is_cut};
  for (size_t at = begin; at < bytes.size();) {
    FoundRecord found = FindRecord(format, part, at);
    if (found.kind == FoundRecord::Kind::kCutOff) return;
    if (found.kind == FoundRecord::Kind::kWhole) {
      Add(found.offset, found.length);
    } else if (found.kind == FoundRecord::Kind::kBroken) {
      AddBroken(found.offset, found.length, std::move(found.what));
    }
    at = found.next;
  }
}

absl::Status Records::AddStored(StoredFile file) {
  return blocks_->AddFile(std::move(file));
}

std::vector<int64_t> Records::file_starts() const {
  if (blocks_ != nullptr) return blocks_->file_starts();
  std::vector<int64_t> starts;
  for (const File& file : files_) starts.push_back(file.first_record);
  starts.push_back(size());
  return starts;
}

absl::Status Records::CheckWhole(int64_t record) const {
  if (broken_.empty()) return absl::OkStatus();
  const auto broken = broken_.find(record);
  if (broken == broken_.end()) return absl::OkStatus();
  return Corrupt(record, 0, broken->second);
}

absl::Status Records::CheckAllWhole() const {
  if (blocks_ != nullptr) return blocks_->first_broken();
  if (broken_.empty()) return absl::OkStatus();
  return CheckWhole(broken_.begin()->first);
}

absl::Status Records::Corrupt(int64_t record, size_t inside,
                              absl::string_view what) const {
  const File& file = FileOf(record);
  const size_t offset = offsets_[record] + inside;
  if (content_ == Content::kBinary) {
    return absl::DataLossError(
        absl::StrCat(file.path, " at byte ", offset, ": ", what));
  }
  return absl::DataLossError(absl::StrCat(file.path, " line ",
                                          file.LineAt(offset), " at byte ",
                                          offset, ": ", what));
}

int64_t Records::File::LineAt(size_t offset) const {
  std::call_once(lines->counted, [this] {
    int64_t before = 0;
    for (size_t at = 0; at <= bytes.size(); at += kLineBlockBytes) {
      lines->before_block.push_back(before);
      before += LineEnds(absl::string_view(bytes).substr(at, kLineBlockBytes));
    }
  });
  const size_t block = offset / kLineBlockBytes;
  const size_t start = block * kLineBlockBytes;
  return 1 + lines->before_block[block] +
         LineEnds(absl::string_view(bytes).substr(start, offset - start));
}

const Records::File& Records::FileOf(int64_t record) const {
  if (files_.size() == 1) return files_.front();
  // A file without records begins where the one behind it does.
  const auto behind = std::upper_bound(files_.begin(), files_.end(), record,
                                       [](int64_t number, const File& file) {
                                         return number < file.first_record;
                                       });
  return behind[-1];
}

}  // namespace parasol
