#include "loop/distributed_dataset.h"

#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "worker/training_report.h"

namespace parasol::loop {

DistributedDataset::Iterator DistributedDataset::begin() const {
  return Iterator(dataset_, pieces_, first_, locals_, peers_);
}

DistributedDataset::Iterator::Iterator(Dataset dataset, int pieces, int first,
                                       int locals, Peers* peers)
    : dataset_(std::move(dataset)),
      pieces_(pieces),
      first_(first),
      locals_(locals),
      peers_(peers) {
  // The error is the first batch.
  Seek(0).IgnoreError();
}

absl::Status DistributedDataset::Iterator::Seek(int64_t position) {
  position_ = position;
  stream_ = nullptr;
  absl::StatusOr<std::unique_ptr<Stream>> stream = dataset_.Open();
  absl::Status status = stream.status();
  if (status.ok()) status = (*stream)->Skip(position);
  if (!status.ok()) {
    batch_ = PerReplica<Batch>(status);
    return status;
  }
  stream_ = *std::move(stream);
  Read();
  return absl::OkStatus();
}

DistributedDataset::Iterator& DistributedDataset::Iterator::operator++() {
  ++position_;
  Read();
  return *this;
}

PerReplica<Batch> DistributedDataset::Iterator::Next() {
  if (is_at_end()) {
    return absl::OutOfRangeError("a batch behind a data set's end");
  }
  PerReplica<Batch> batch = *std::move(batch_);
  ++*this;
  return batch;
}

void DistributedDataset::Iterator::Read() {
  batch_.reset();
  if (stream_ == nullptr) return;
  const InnerPart input(peers_ == nullptr ? nullptr : peers_->reporter(),
                        StepPart::kInput);
  absl::StatusOr<std::optional<Batch>> batch = stream_->Next();
  if (!batch.ok()) {
    batch_ = PerReplica<Batch>(batch.status());
    stream_ = nullptr;
  } else if (batch->has_value()) {
    batch_ = Cut(**batch);
  }
}

PerReplica<Batch> DistributedDataset::Iterator::Cut(const Batch& batch) const {
  if (pieces_ == 1) return PerReplica<Batch>({batch});
  const int64_t piece = (batch.size() + pieces_ - 1) / pieces_;
  std::vector<Batch> own;
  for (int i = 0; i < locals_; ++i) {
    absl::StatusOr<Batch> cut = SliceBatch(batch, (first_ + i) * piece, piece);
    if (!cut.ok()) return cut.status();
    own.push_back(*std::move(cut));
  }
  return PerReplica<Batch>(std::move(own));
}

}  // namespace parasol::loop
