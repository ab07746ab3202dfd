#include "worker/followed/followed_input.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/job/followed/followed_set.h"
#include "ml/input/input_shard.h"

namespace parasol {
namespace {

// Larger files stay on the disk.
constexpr uint64_t kMostInMemory = uint64_t{64} << 20;
// Several files may be open at a time.
constexpr size_t kCacheBytes = size_t{32} << 20;

}  // namespace

FollowedInput::~FollowedInput() {
  for (auto& [first, reader] : readers_) reader->opening.join();
  for (auto& reader : last_) reader->opening.join();
}

absl::StatusOr<std::unique_ptr<InputPipeline>> FollowedInput::OpenAgain(
    const InputOptions&) const {
  return absl::UnimplementedError("a set that grows has one reader");
}

absl::StatusOr<std::unique_ptr<InputPipeline>> FollowedInput::Open(
    const wire::TrainingFile& file) const {
  InputOptions input;
  input.data_dir = options_.data_dir;
  input.seed = RandomBits(options_.seed, file.first_batch());
  input.by_number = true;
  input.memory.whole = kMostInMemory;
  input.memory.cache_bytes = kCacheBytes;
  ASSIGN_OR_RETURN(
      std::unique_ptr<InputPipeline> pipeline,
      InputPipeline::Open(DatasetOfFile(options_.dataset, file.path()),
                          options_.inputs, input),
      _ << "the chief has found " << file.path() << " with " << file.records()
        << " records");
  if (pipeline->total_examples() == file.records()) return pipeline;
  return absl::DataLossError(absl::StrCat(
      file.path(), " has changed: the chief has counted ", file.records(),
      " records, and it has ", pipeline->total_examples()));
}

FollowedInput::Reader& FollowedInput::ReaderOf(const wire::TrainingFile& file) {
  std::unique_ptr<Reader>& reader = readers_[file.first_batch()];
  if (reader != nullptr) return *reader;
  reader = std::make_unique<Reader>();
  reader->file = file;
  reader->opening = std::thread([this, reader = reader.get()] {
    reader->pipeline = Open(reader->file);
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
    const std::optional<wire::TrainingFile> file = files_.FileOf(number);
    if (!file) continue;
    Reader& reader = ReaderOf(*file);
    reader.is_wanted = true;
    reader.next.push_back(number - file->first_batch());
    reader.knows_next = false;
  }
  // The next file is opened while the last one is read.
  if (!numbers.empty()) {
    const auto last = files_.FileOf(numbers.back());
    const auto after =
        last ? files_.FileOf(last->first_batch() + last->batches())
             : std::nullopt;
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

absl::StatusOr<const Batch*> FollowedInput::Next() {
  // A batch is valid until the second next call.
  constexpr size_t kKept = 4;
  for (; last_.size() > kKept; last_.pop_front()) last_.front()->opening.join();
  const int64_t number = numbers_.front();
  const std::optional<wire::TrainingFile> file = files_.FileOf(number);
  if (!file) {
    return absl::InternalError(absl::StrCat(
        "batch ", number, " is of no file that the chief has named"));
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
  absl::StatusOr<const Batch*> batch = (*reader.pipeline)->Next();
  CountSkipped(reader);
  if (!IsLeftOut(batch.status())) return batch;
  LOG(WARNING) << file->path() << ": " << batch.status().message();
  return &empty_;
}

}  // namespace parasol
