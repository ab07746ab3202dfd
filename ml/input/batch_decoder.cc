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
    if (slot->batch.size > 0) {
      empty_in_a_row_ = 0;
      lent_ = slot;
      return &slot->batch;
    }
    const int64_t epoch = slot->epoch;
    Release(slot);
    if (++empty_in_a_row_ >= batches_per_epoch_) {
      failure_ = absl::DataLossError(absl::StrCat(
          "not one record can be decoded in all ", batches_per_epoch_,
          " batches of epoch ", epoch, "; the log names some"));
      return failure_;
    }
  }
  return nullptr;
}

void BatchDecoder::Run() {
  const std::unique_ptr<ExampleDecoder> decoder = set_.NewDecoder();
  while (Slot* slot = TakeTurn()) {
    Decode(*decoder, *slot);
    absl::MutexLock lock(&mu_);
    slot->is_decoded = true;
  }
}

BatchDecoder::Slot* BatchDecoder::TakeTurn() {
  const auto has_turn = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return is_stopping_ || is_drawn_ || !free_.empty();
  };
  absl::MutexLock lock(&mu_, absl::Condition(&has_turn));
  if (is_stopping_ || is_drawn_) return nullptr;
  Slot* slot = free_.back();
  slot->epoch = order_.Next(slot->examples);
  if (slot->examples.empty()) {
    is_drawn_ = true;
    return nullptr;
  }
  free_.pop_back();
  slot->is_decoded = false;
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
  slot.status = absl::OkStatus();
  const uint64_t seed = RandomBits(options_.seed, slot.epoch);
  for (const int64_t example : slot.examples) {
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
}

void BatchDecoder::LeaveOut(const absl::Status& corrupt) {
  const int64_t skipped = ++skipped_;
  LOG_EVERY(WARNING, kLogPeriod) << "left out: " << corrupt.message() << " ("
                                 << skipped << " corrupt records so far)";
}

}  // namespace parasol
