#include "ml/input/batch_decoder.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/log.h"
#include "ml/input/input_shard.h"

namespace parasol {
namespace {

constexpr int kLentBatches = 2;
// Number of examples between the one that is decoded and the one whose bytes
// are fetched.
constexpr size_t kPrefetched = 4;
constexpr absl::Duration kLogPeriod = absl::Seconds(10);

}  // namespace

BatchDecoder::BatchDecoder(const ExampleSet& set, const ModelInputs& inputs,
                           BatchOrder order, const Options& options,
                           std::atomic<int64_t>& skipped)
    : set_(set),
      inputs_(inputs),
      options_(options),
      batches_per_epoch_(order.batches_per_epoch()),
      skipped_(skipped),
      slots_(options.ahead + kLentBatches),
      order_(std::move(order)) {
  for (Slot& slot : slots_) free_.push_back(&slot);
}

BatchDecoder::~BatchDecoder() {
  {
    absl::MutexLock lock(&mu_);
    is_stopping_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

absl::StatusOr<const Batch*> BatchDecoder::Next() {
  if (!failure_.ok()) return failure_;
  while (threads_.size() < static_cast<size_t>(options_.threads)) {
    threads_.emplace_back([this] { Run(); });
  }
  if (lent_before_ != nullptr) Release(lent_before_);
  lent_before_ = std::exchange(lent_, nullptr);
  while (Slot* slot = AwaitTurn()) {
    if (!slot->status.ok()) {
      failure_ = slot->status;
      return failure_;
    }
    if (slot->batch.size > 0) empty_in_a_row_ = 0;
    const bool is_empty = slot->batch.size == 0;
    if (is_empty) ++empty_in_a_row_;
    const int64_t epoch = slot->epoch;
    if (!is_empty ||
        (options_.empty_batches && empty_in_a_row_ < batches_per_epoch_)) {
      lent_ = slot;
      return &slot->batch;
    }
    Release(slot);
    if (empty_in_a_row_ >= batches_per_epoch_) {
      failure_ = absl::DataLossError(absl::StrCat(
          "not one record can be decoded in all ", batches_per_epoch_,
          " batches of epoch ", epoch, "; the log names some"));
      return failure_;
    }
  }
  return nullptr;
}

void BatchDecoder::SetNext(const std::vector<int64_t>& numbers) {
  absl::MutexLock lock(&mu_);
  size_t kept = 0;
  while (kept < turns_.size() && kept < numbers.size() &&
         turns_[kept]->number == numbers[kept]) {
    ++kept;
  }
  while (turns_.size() > kept) {
    Slot* const unwanted = turns_.back();
    turns_.pop_back();
    unwanted->is_unwanted = true;
    if (unwanted->is_decoded) free_.push_back(unwanted);
  }
  named_.assign(numbers.begin() + kept, numbers.end());
}

bool BatchDecoder::CanTakeTurn() const {
  if (is_stopping_ || is_drawn_) return true;
  return !free_.empty() && (!options_.by_number || !named_.empty());
}

void BatchDecoder::Run() {
  const std::unique_ptr<ExampleDecoder> decoder = set_.NewDecoder();
  while (Slot* slot = TakeTurn()) {
    Decode(*decoder, *slot);
    absl::MutexLock lock(&mu_);
    slot->is_decoded = true;
    if (slot->is_unwanted) free_.push_back(slot);
  }
}

BatchDecoder::Slot* BatchDecoder::TakeTurn() {
  absl::MutexLock lock(&mu_, absl::Condition(this, &BatchDecoder::CanTakeTurn));
  if (is_stopping_ || is_drawn_) return nullptr;
  Slot* slot = free_.back();
  if (options_.by_number) {
    slot->number = named_.front();
    named_.pop_front();
    slot->place = order_.PlaceOf(slot->number);
    slot->epoch = order_.Take(slot->number, slot->examples);
  } else {
    slot->place = order_.PlaceOf(order_.next_batch());
    slot->epoch = order_.Next(slot->examples);
  }
  if (slot->examples.empty()) {
    is_drawn_ = true;
    return nullptr;
  }
  free_.pop_back();
  slot->is_decoded = slot->is_unwanted = false;
  turns_.push_back(slot);
  return slot;
}

BatchDecoder::Slot* BatchDecoder::AwaitTurn() {
  const auto is_there = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return turns_.empty() ? is_drawn_ : turns_.front()->is_decoded;
  };
  absl::MutexLock lock(&mu_, absl::Condition(&is_there));
  if (turns_.empty()) return nullptr;
  Slot* slot = turns_.front();
  turns_.pop_front();
  return slot;
}

void BatchDecoder::Release(Slot* slot) {
  absl::MutexLock lock(&mu_);
  free_.push_back(slot);
}

void BatchDecoder::Decode(ExampleDecoder& decoder, Slot& slot) {
  Batch& batch = slot.batch;
  ClearBatch(inputs_, batch);
  batch.shard = options_.shard;
  batch.number = slot.place;
  slot.status = absl::OkStatus();
  const uint64_t seed = RandomBits(options_.seed, slot.epoch);
  for (size_t i = 0; i < slot.examples.size(); ++i) {
    const int64_t example = slot.examples[i];
    if (i + kPrefetched < slot.examples.size()) {
      decoder.Prefetch(slot.examples[i + kPrefetched]);
    }
    const absl::Status status =
        decoder.Append(example, RandomBits(seed, example), batch);
    if (status.ok()) {
      ++batch.size;
    } else if (options_.skip_corrupt && absl::IsDataLoss(status)) {
      TruncateBatch(inputs_, batch.size, batch);
      LeaveOut(status);
    } else {
      slot.status = status;
      return;
    }
  }
  SetScales(batch);
  ApplyClassWeights(inputs_, batch);
}

void BatchDecoder::LeaveOut(const absl::Status& corrupt) {
  const int64_t skipped = ++skipped_;
  LOG_EVERY(WARNING, kLogPeriod) << "left out: " << corrupt.message() << " ("
                                 << skipped << " corrupt records so far)";
}

}  // namespace parasol
