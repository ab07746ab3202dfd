#include "ml/input/format/data_files.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ml/input/file/file_set.h"
#include "ml/input/file/known_format.h"
#include "ml/input/file/local_files.h"
#include "ml/input/format/whole_file.h"

namespace parasol {
namespace {

constexpr size_t kSampledFiles = 4;

std::vector<std::string> SpreadOver(const std::vector<std::string>& files) {
  if (files.size() <= kSampledFiles) return files;
  std::vector<std::string> some;
  for (size_t i = 0; i < kSampledFiles; ++i) {
    some.push_back(files[i * (files.size() - 1) / (kSampledFiles - 1)]);
  }
  return some;
}

}  // namespace

DataFiles::DataFiles(FoundFiles found, int64_t sample_bytes)
    : paths_(std::move(found.paths)),
      stored_bytes_(found.bytes),
      left_(sample_bytes),
      is_limited_(sample_bytes > 0) {
  // What packed files have shows only when they are read.
  if (!is_limited_ || stored_bytes_ <= static_cast<uint64_t>(sample_bytes)) {
    return;
  }
  is_cut_ = true;
  std::vector<std::string> some = SpreadOver(paths_);
  is_sample_ = some.size() < paths_.size();
  paths_ = std::move(some);
}

absl::StatusOr<DataFiles> DataFiles::Find(
    const std::string& data_dir, absl::Span<const std::string> patterns,
    absl::string_view field, int64_t sample_bytes) {
  ASSIGN_OR_RETURN(FoundFiles files, FindFiles(data_dir, patterns, field));
  if (sample_bytes == 0) {
    RETURN_IF_ERROR(BringFiles(files.paths));
  }
  return DataFiles(std::move(files), sample_bytes);
}

absl::StatusOr<StoredFile> DataFiles::OpenNext(bool is_text,
                                               StoredFiles& files) {
  const std::string& path = paths_[next_++];
  ASSIGN_OR_RETURN(StoredFile file, files.Open(path));
  std::string start(std::min<uint64_t>(file.size(), kKnownFormatBytes), '\0');
  RETURN_IF_ERROR(file.Read(0, absl::MakeSpan(start)));
  RETURN_IF_ERROR(CheckFormat(path, start, is_text));
  return file;
}

absl::StatusOr<DataFile> DataFiles::ReadNext(bool is_text, uint64_t most) {
  if (is_limited_) {
    const size_t files = is_cut_ ? paths_.size() - next_ : 1;
    most = static_cast<size_t>(left_) / files;
  }
  ASSIGN_OR_RETURN(DataFile file, ReadDataFile(paths_[next_], is_text, most));
  ++next_;
  is_sample_ = is_sample_ || !file.is_whole;
  if (!is_limited_) return file;
  left_ -= static_cast<int64_t>(file.bytes.size());
  if (left_ <= 0 && HasNext()) {
    is_sample_ = true;
    paths_.resize(next_);
  }
  return file;
}

absl::StatusOr<DataFile> ReadDataFile(const std::string& path, bool is_text,
                                      size_t max_bytes) {
  ASSIGN_OR_RETURN(FileStart start, ReadFileStart(path, max_bytes));
  RETURN_IF_ERROR(CheckFormat(path, start.bytes, is_text));
  return DataFile{.path = path,
                  .bytes = std::move(start.bytes),
                  .is_whole = start.is_whole};
}

absl::Status CheckFormat(const std::string& path, absl::string_view start,
                         bool is_text) {
  const std::string other =
      KnownFormat(start.substr(0, kKnownFormatBytes), is_text);
  if (other.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", other));
}

}  // namespace parasol
