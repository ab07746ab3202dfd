#include "ml/input/record/file_window.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

namespace parasol {

void FileWindow::DropBefore(size_t at) {
  if (at >= end()) {
    size_ = 0;
  } else {
    size_ -= at - offset_;
    std::memmove(bytes_.get(), bytes_.get() + (at - offset_), size_);
  }
  offset_ = at;
}

absl::Status FileWindow::ReadTo(size_t end) {
  end = std::min<size_t>(end, file_.size());
  if (end <= this->end()) return absl::OkStatus();
  const size_t size = end - offset_;
  if (size > capacity_) {
    auto larger = std::make_unique_for_overwrite<char[]>(size);
    if (size_ > 0) std::memcpy(larger.get(), bytes_.get(), size_);
    bytes_ = std::move(larger);
    capacity_ = size;
  }
  const size_t before = std::exchange(size_, size);
  return file_.Read(offset_ + before,
                    absl::MakeSpan(bytes_.get() + before, size - before));
}

absl::Status FileWindow::Grow(size_t at_least) {
  if (size_ > kMaxRecordBytes) {
    return absl::DataLossError(
        absl::StrCat(file_.path(), " at byte ", file_.ShownOffset(offset_),
                     ": a record of more than ", kMaxRecordBytes, " bytes"));
  }
  return ReadTo(end() + std::max(size_, at_least));
}

}  // namespace parasol
