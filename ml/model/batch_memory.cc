#include "ml/model/batch_memory.h"

#include <algorithm>
#include <utility>

#include "absl/types/span.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

constexpr auto kCompute = Device::Stream::kCompute;
constexpr auto kCopyIn = Device::Stream::kCopyIn;
constexpr auto kCopyOut = Device::Stream::kCopyOut;

}  // namespace

BatchMemory::BatchMemory(Device& device, int64_t inputs,
                         std::vector<int64_t> outputs)
    : device_(&device), inputs_(inputs), outputs_(std::move(outputs)) {}

absl::Status BatchMemory::Load(const Batch& batch) {
  if (batch.size > capacity_) {
    RETURN_IF_ERROR(Grow(batch.size));
  }
  examples_ = batch.size;
  if (!device_->shares_host_memory()) return CopyIn(batch);
  input_ = {batch.dense.front().values.data(), examples_, inputs_};
  std::copy(batch.labels.begin(), batch.labels.end(), host_labels_.data());
  labels_ = host_labels_.data();
  return absl::OkStatus();
}

absl::Status BatchMemory::Grow(int64_t examples) {
  capacity_ = 0;
  layer_outputs_.resize(outputs_.size());
  for (size_t i = 0; i < outputs_.size(); ++i) {
    ASSIGN_OR_RETURN(layer_outputs_[i],
                     device_->NewArray<float>(examples * outputs_[i]));
  }
  const int64_t widest = *std::max_element(outputs_.begin(), outputs_.end());
  for (Array<float>& gradient : output_gradients_) {
    ASSIGN_OR_RETURN(gradient, device_->NewArray<float>(examples * widest));
  }
  ASSIGN_OR_RETURN(losses_, device_->NewArray<float>(examples));
  ASSIGN_OR_RETURN(host_losses_, device_->NewHostArray<float>(examples));
  ASSIGN_OR_RETURN(correct_, device_->NewArray<int32_t>(examples));
  ASSIGN_OR_RETURN(losses_fetched_, device_->NewEvent());
  if (!device_->shares_host_memory()) {
    ASSIGN_OR_RETURN(host_outputs_,
                     device_->NewHostArray<float>(examples * outputs_.back()));
    const int64_t features = examples * inputs_;
    ASSIGN_OR_RETURN(device_features_, device_->NewArray<float>(features));
    ASSIGN_OR_RETURN(host_features_, device_->NewHostArray<float>(features));
    ASSIGN_OR_RETURN(device_labels_, device_->NewArray<int32_t>(examples));
  }
  ASSIGN_OR_RETURN(host_labels_, device_->NewHostArray<int32_t>(examples));
  capacity_ = examples;
  return absl::OkStatus();
}

// Through pinned memory: from pageable memory the driver would copy the same
// bytes the same way, but keep this thread waiting for it.
absl::Status BatchMemory::CopyIn(const Batch& batch) {
  const std::vector<float>& features = batch.dense.front().values;
  std::copy(features.begin(), features.end(), host_features_.data());
  std::copy(batch.labels.begin(), batch.labels.end(), host_labels_.data());
  RETURN_IF_ERROR(device_->Copy(
      kCopyIn, absl::MakeConstSpan(host_features_.data(), features.size()),
      device_features_.data()));
  RETURN_IF_ERROR(device_->Copy(
      kCopyIn, absl::MakeConstSpan(host_labels_.data(), batch.labels.size()),
      device_labels_.data()));
  input_ = {device_features_.data(), examples_, inputs_};
  labels_ = device_labels_.data();
  return absl::OkStatus();
}

MutableMatrixView BatchMemory::output(size_t layer) const {
  return {layer_outputs_[layer].data(), examples_, outputs_[layer]};
}

MutableMatrixView BatchMemory::output_gradient(size_t layer) const {
  return {output_gradients_[layer % 2].data(), examples_, outputs_[layer]};
}

CrossEntropyOutputs BatchMemory::losses() const {
  return {losses_.data(), correct_.data(), /*gradient=*/nullptr};
}

absl::Status BatchMemory::FetchLosses() {
  if (device_->shares_host_memory()) return absl::OkStatus();
  RETURN_IF_ERROR(device_->Order(kCompute, kCopyOut));
  RETURN_IF_ERROR(device_->Copy(kCopyOut,
                                absl::MakeConstSpan(losses_.data(), examples_),
                                host_losses_.data()));
  return device_->Record(kCopyOut, *losses_fetched_);
}

absl::Status BatchMemory::FetchOutputs() {
  if (device_->shares_host_memory()) return absl::OkStatus();
  RETURN_IF_ERROR(device_->Order(kCompute, kCopyOut));
  const MatrixView last = output(outputs_.size() - 1);
  return device_->Copy(kCopyOut, absl::MakeConstSpan(last.data, last.size()),
                       host_outputs_.data());
}

absl::Span<const float> BatchMemory::outputs() const {
  const MatrixView last = output(outputs_.size() - 1);
  return absl::MakeConstSpan(
      device_->shares_host_memory() ? last.data : host_outputs_.data(),
      last.size());
}

absl::StatusOr<BatchMemory::Sums> BatchMemory::AwaitLosses() {
  RETURN_IF_ERROR(device_->Wait(*losses_fetched_));
  const bool shared = device_->shares_host_memory();
  const float* const losses = shared ? losses_.data() : host_losses_.data();
  Sums sums;
  for (int64_t i = 0; i < examples_; ++i) {
    sums.loss += losses[i];
  }
  return sums;
}

}  // namespace parasol
