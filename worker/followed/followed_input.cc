#include "worker/followed/followed_input.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "cluster/job/followed/followed_set.h"
#include "ml/input/file/file_set.h"
#include "ml/input/input_shard.h"
#include "ml/input/object/object_uri.h"

namespace parasol {
namespace {

// Larger files stay on the disk.
constexpr uint64_t kMostInMemory = uint64_t{64} << 20;
// Several files may be open at a time.
constexpr size_t kCacheBytes = size_t{32} << 20;

// What to do about a file that is another one than the chief has counted.
constexpr char kWayOn[] =
    ": put it back as it was, or have its records left out with "
    "train.on_corrupt: SKIP";

}  // namespace

absl::StatusOr<std::unique_ptr<InputPipeline>> FollowedInput::OpenAgain(
    const InputOptions&) const {
  return absl::UnimplementedError("a set that grows has one reader");
}

absl::StatusOr<std::string> FollowedInput::NameOf(Reader& reader) const {
  const wire::TrainingFile& file = reader.file;
  if (options_.topic == nullptr) {
    RETURN_IF_ERROR(CheckBytes(file));
    return file.path();
  }
  const bool skips = options_.dataset.on_corrupt() == job::Dataset::SKIP;
  ASSIGN_OR_RETURN(TopicSource::Brought brought,
                   options_.topic->Bring(file.path(), skips));
  reader.slice = std::move(brought.copy);
  if (static_cast<int64_t>(reader.slice->bytes()) == file.bytes()) {
    return reader.slice->uri();
  }
  return absl::DataLossError(absl::StrCat(
      OneLine(reader.slice->uri()), " has changed: it had ", file.bytes(),
      " bytes of records when the chief counted them, and has ",
      reader.slice->bytes(),
      ", as of a topic that is compacted, or was made anew: begin a run in "
      "another checkpoint directory, or have these records left out with "
      "train.on_corrupt: SKIP"));
}

absl::StatusOr<std::unique_ptr<InputPipeline>> FollowedInput::Open(
    Reader& reader) const {
  const wire::TrainingFile& file = reader.file;
  ASSIGN_OR_RETURN(const std::string name, NameOf(reader));
  InputOptions input;
  input.data_dir = options_.data_dir;
  input.seed = RandomBits(options_.seed, file.first_batch());
  input.by_number = true;
  input.memory.whole = kMostInMemory;
  input.memory.cache_bytes = kCacheBytes;
  absl::StatusOr<std::unique_ptr<InputPipeline>> pipeline = InputPipeline::Open(
      DatasetOfFile(options_.dataset, name), options_.inputs, input);
  if (absl::IsNotFound(pipeline.status())) {
    // Where nothing is, no file has gone.
    const absl::Status folders = CheckFoldersOfGrowingSet(
        options_.data_dir, FilePatterns(options_.dataset));
    if (!folders.ok()) return absl::UnavailableError(folders.message());
    return absl::NotFoundError(absl::StrCat(
        OneLine(file.path()), " has gone since the chief counted its ",
        file.records(), " records", kWayOn));
  }
  RETURN_IF_ERROR(pipeline.status())
      << "the chief has found " << OneLine(file.path()) << " with "
      << file.records() << " records";
  if ((*pipeline)->total_examples() == file.records()) return pipeline;
  return absl::DataLossError(
      absl::StrCat(OneLine(file.path()), " has changed: the chief has counted ",
                   file.records(), " records, and it has ",
                   (*pipeline)->total_examples(), kWayOn));
}

absl::Status FollowedInput::CheckBytes(const wire::TrainingFile& file) const {
  if (file.bytes() <= 0) return absl::OkStatus();
  std::error_code error;
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(
      JoinedPath(options_.data_dir, file.path()), error));
  // Who opens it says what lacks.
  if (error || bytes == file.bytes()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      OneLine(file.path()), " has changed: it had ", file.bytes(),
      " bytes when the chief counted its records, and has ", bytes, kWayOn));
}

std::optional<wire::TrainingFile> FollowedInput::FileOf(int64_t batch) const {
  const auto behind = readers_.upper_bound(batch);
  if (behind != readers_.begin()) {
    const wire::TrainingFile& file = std::prev(behind)->second->file;
    if (batch < file.first_batch() + file.batches()) return file;
  }
  return files_.FileOf(batch);
}

FollowedInput::Reader& FollowedInput::ReaderOf(const wire::TrainingFile& file) {
  std::unique_ptr<Reader>& reader = readers_[file.first_batch()];
  if (reader != nullptr) return *reader;
  reader = std::make_unique<Reader>();
  reader->file = file;
  reader->opening = std::thread([this, reader = reader.get()] {
    reader->pipeline = Open(*reader);
    reader->is_opened.Notify();
  });
  return *reader;
}

void FollowedInput::SetNext(const std::vector<int64_t>& numbers) {
  numbers_.assign(numbers.begin(), numbers.end());
  for (auto& [first, reader] : readers_) {
    reader->is_wanted = false;
    reader->next.clear();
  }
  for (const int64_t number : numbers) {
    const std::optional<wire::TrainingFile> file = FileOf(number);
    if (!file) continue;
    Reader& reader = ReaderOf(*file);
    reader.is_wanted = true;
    reader.next.push_back(number - file->first_batch());
    reader.knows_next = false;
  }
  // The next file is opened while the last one is read.
  if (!numbers.empty()) {
    const auto last = FileOf(numbers.back());
    const auto after =
        last ? FileOf(last->first_batch() + last->batches()) : std::nullopt;
    if (after) ReaderOf(*after).is_wanted = true;
  }
  for (auto it = readers_.begin(); it != readers_.end();) {
    const bool is_closed = !it->second->is_wanted;
    if (is_closed) last_.push_back(std::move(it->second));
    it = is_closed ? readers_.erase(it) : std::next(it);
  }
  for (auto& [first, reader] : readers_) {
    if (reader->is_opened.HasBeenNotified()) TellNext(*reader);
  }
}

bool FollowedInput::IsLeftOut(const absl::Status& fault) const {
  return (absl::IsNotFound(fault) || absl::IsDataLoss(fault)) &&
         options_.dataset.on_corrupt() == job::Dataset::SKIP;
}

void FollowedInput::TellNext(Reader& reader) {
  if (std::exchange(reader.knows_next, true) || !reader.pipeline.ok()) return;
  if (*reader.pipeline != nullptr) (*reader.pipeline)->SetNext(reader.next);
}

void FollowedInput::CountSkipped(Reader& reader) {
  const int64_t skipped = (*reader.pipeline)->skipped_records();
  skipped_ += skipped - std::exchange(reader.counted, skipped);
}

void FollowedInput::Close() {
  std::erase_if(last_, [this](const std::unique_ptr<Reader>& reader) {
    // A batch is valid until the second next call. Nobody waits for a file that
    // is being opened.
    return reader->lent_at + 1 < calls_ && reader->is_opened.HasBeenNotified();
  });
}

absl::StatusOr<const Batch*> FollowedInput::Next() {
  ++calls_;
  Close();
  const int64_t number = numbers_.front();
  const std::optional<wire::TrainingFile> file = FileOf(number);
  if (!file) {
    if (!files_.IsTrained(number)) {
      return absl::InternalError(absl::StrCat(
          "batch ", number, " is of no file that the chief has named"));
    }
    if (!std::exchange(has_named_trained_, true)) {
      LOG(WARNING) << "passes over batch " << number
                   << ": another worker has trained it";
    }
    numbers_.pop_front();
    return &empty_;
  }
  Reader& reader = ReaderOf(*file);
  reader.is_opened.WaitForNotification();
  TellNext(reader);
  if (!reader.pipeline.ok()) {
    const absl::Status fault = reader.pipeline.status();
    if (!IsLeftOut(fault)) return fault;
    LOG(WARNING) << "leaves out all records of a file: " << fault.message();
    reader.pipeline = nullptr;
  }
  numbers_.pop_front();
  if (*reader.pipeline == nullptr) {
    // An example is counted once: with its batch.
    const int64_t size = options_.dataset.batch_size();
    skipped_ +=
        std::min(size, file->records() - (number - file->first_batch()) * size);
    return &empty_;
  }
  reader.lent_at = calls_;
  absl::StatusOr<const Batch*> batch = (*reader.pipeline)->Next();
  CountSkipped(reader);
  if (!IsLeftOut(batch.status())) return batch;
  LOG(WARNING) << OneLine(file->path()) << ": " << batch.status().message();
  return &empty_;
}

}  // namespace parasol
