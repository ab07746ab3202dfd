#include "ml/input/batch_order.h"

#include <algorithm>
#include <optional>

#include "ml/input/epoch_batches.h"

namespace parasol {

BatchOrder::BatchOrder(const Selection& selection,
                       const std::vector<InputShard>& shards,
                       const Options& options)
    : selection_(selection),
      options_(options),
      next_batch_(options.first_batch) {
  for (const InputShard& shard : shards) {
    sequences_.push_back({.shard = shard,
                          .order = ExampleOrder(shard.order()),
                          .first_batch = batches_per_epoch_});
    batches_per_epoch_ += BatchesOf(shard.size(), options.batch_size);
  }
}

int64_t BatchOrder::Next(std::vector<int64_t>& examples) {
  if (options_.repeat || next_batch_ < batches_per_epoch_) {
    return Take(next_batch_++, examples);
  }
  examples.clear();
  return 0;
}

size_t BatchOrder::SequenceOf(int64_t batch) const {
  const auto behind =
      std::upper_bound(sequences_.begin(), sequences_.end(), batch,
                       [](int64_t wanted, const Sequence& sequence) {
                         return wanted < sequence.first_batch;
                       });
  return behind - sequences_.begin() - 1;
}

int64_t BatchOrder::PlaceOf(int64_t number) const {
  const int64_t epoch = number / batches_per_epoch_;
  const int64_t batch = number % batches_per_epoch_;
  const int64_t counted = options_.counted_per_epoch > 0
                              ? options_.counted_per_epoch
                              : batches_per_epoch_;
  const int64_t in_shard = batch - sequences_[SequenceOf(batch)].first_batch;
  const auto shards = static_cast<int64_t>(sequences_.size());
  return epoch * counted + std::min(in_shard * shards, counted - 1);
}

int64_t BatchOrder::Take(int64_t number, std::vector<int64_t>& examples) {
  examples.clear();
  const int64_t epoch = number / batches_per_epoch_;
  const int64_t batch = number % batches_per_epoch_;
  Sequence& sequence = sequences_[SequenceOf(batch)];
  if (sequence.epoch != epoch || sequence.next_batch > batch) {
    sequence.order.StartEpoch(epoch);
    sequence.epoch = epoch;
    sequence.next_batch = sequence.first_batch;
  }
  sequence.order.Skip((batch - sequence.next_batch) * options_.batch_size);
  sequence.next_batch = batch + 1;
  while (static_cast<int64_t>(examples.size()) < options_.batch_size) {
    const std::optional<int64_t> number_in_shard = sequence.order.Next();
    if (!number_in_shard) break;
    examples.push_back(selection_[sequence.shard.PositionOf(*number_in_shard)]);
  }
  return epoch;
}

}  // namespace parasol
