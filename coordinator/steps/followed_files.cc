#include "coordinator/steps/followed_files.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

// Largest number of records of a file, and of its bytes.
constexpr int64_t kMaxRecords = int64_t{1} << 48;
constexpr int64_t kMaxBytes = int64_t{1} << 60;

bool IsIn(int64_t value, int64_t low, int64_t high) {
  return value >= low && value <= high;
}

int64_t EndOf(const durable::FollowedFile& file) {
  return file.first_batch() + file.batches();
}

}  // namespace

absl::StatusOr<FollowedFiles> FollowedFiles::Of(
    const durable::FollowedSet& set) {
  if (!IsIn(set.batches(), 0, kMaxBatches)) {
    return absl::DataLossError(absl::StrCat(
        "the checkpoint's training set has ", set.batches(), " batches"));
  }
  const bool is_empty = set.file().empty();
  FollowedFiles files(is_empty ? set.batches() : set.file(0).first_batch());
  for (const durable::FollowedFile& file : set.file()) {
    const absl::Status added = files.Add(file);
    if (added.ok()) continue;
    return absl::DataLossError(
        absl::StrCat("the checkpoint's training set: ", added.message()));
  }
  if (files.batches_ != set.batches() || set.last_path() < files.last_path_) {
    return absl::DataLossError(
        absl::StrCat("the checkpoint's training set has ", set.batches(),
                     " batches, but its last file ", files.last_path_,
                     " ends at batch ", files.batches_));
  }
  files.last_path_ = set.last_path();
  return files;
}

durable::FollowedFile FollowedFiles::Next(absl::string_view path, int64_t bytes,
                                          int64_t records,
                                          int64_t batch_size) const {
  durable::FollowedFile file;
  file.set_path(std::string(path));
  file.set_bytes(bytes);
  file.set_records(records);
  file.set_first_batch(batches_);
  file.set_batches((records + batch_size - 1) / batch_size);
  return file;
}

absl::Status FollowedFiles::Add(const durable::FollowedFile& file) {
  const bool has_batches = (file.batches() > 0) == (file.records() > 0);
  if (!has_batches || !IsIn(file.records(), 0, kMaxRecords) ||
      !IsIn(file.batches(), 0, file.records()) ||
      !IsIn(file.bytes(), 0, kMaxBytes) ||
      !IsIn(file.first_batch(), 0, kMaxBatches) || EndOf(file) > kMaxBatches) {
    return absl::InvalidArgumentError(absl::StrCat(
        file.path(), " has ", file.records(), " records in the batches ",
        file.first_batch(), " to ", EndOf(file), ", which can't be"));
  }
  if (file.first_batch() != batches_ || file.path() <= last_path_) {
    return absl::InvalidArgumentError(absl::StrCat(
        file.path(), ", from batch ", file.first_batch(),
        " on, is not next: ", last_path_.empty() ? "nothing" : last_path_,
        " ends at batch ", batches_));
  }
  batches_ = EndOf(file);
  last_path_ = file.path();
  if (file.batches() > 0) files_.push_back(file);
  return absl::OkStatus();
}

void FollowedFiles::Forget(int64_t batches) {
  trained_ = std::max(trained_, std::min(batches, batches_));
  while (!files_.empty() && EndOf(files_.front()) <= trained_) {
    files_.pop_front();
  }
}

int64_t FollowedFiles::RecordsOfLast(int64_t batches) const {
  int64_t records = 0;
  for (auto file = files_.rbegin(); file != files_.rend() && batches > 0;
       ++file) {
    const int64_t of_file = std::min(batches, file->batches());
    batches -= of_file;
    // The last batch may be smaller.
    const int64_t size = (file->records() + file->batches() - 1) /
                         std::max<int64_t>(1, file->batches());
    const int64_t before = (file->batches() - of_file) * size;
    records += std::max<int64_t>(1, file->records() - before);
  }
  return records;
}

void FollowedFiles::AddTo(durable::FollowedSet& set) const {
  for (const durable::FollowedFile& file : files_) *set.add_file() = file;
  set.set_batches(batches_);
  set.set_last_path(last_path_);
}

void FollowedFiles::AddTo(int64_t known,
                          wire::ClaimStepsResponse& response) const {
  response.set_trained_batches(trained_);
  auto file = std::partition_point(
      files_.begin(), files_.end(),
      [known](const auto& each) { return EndOf(each) <= known; });
  for (; file != files_.end(); ++file) {
    wire::TrainingFile& told = *response.add_file();
    told.set_path(file->path());
    told.set_bytes(file->bytes());
    told.set_records(file->records());
    told.set_first_batch(file->first_batch());
    told.set_batches(file->batches());
  }
}

}  // namespace parasol
