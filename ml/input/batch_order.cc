#include "ml/input/batch_order.h"

#include <optional>

namespace parasol {

BatchOrder::BatchOrder(const Selection& selection, const InputShard& shard,
                       const Options& options)
    : selection_(selection),
      shard_(shard),
      options_(options),
      batches_per_epoch_((shard.size() - 1) / options.batch_size + 1),
      order_(shard_.order()),
      epoch_(options.first_batch / batches_per_epoch_) {
  order_.StartEpoch(epoch_);
  const int64_t skipped = options.first_batch % batches_per_epoch_;
  for (int64_t i = skipped * options.batch_size; i > 0; --i) order_.Next();
}

int64_t BatchOrder::Next(std::vector<int64_t>& examples) {
  examples.clear();
  const auto take = [this, &examples] {
    while (static_cast<int64_t>(examples.size()) < options_.batch_size) {
      const std::optional<int64_t> number = order_.Next();
      if (!number) return;
      examples.push_back(selection_[shard_.PositionOf(*number)]);
    }
  };
  take();
  if (examples.empty() && options_.repeat) {
    order_.StartEpoch(++epoch_);
    take();
  }
  return epoch_;
}

}  // namespace parasol
