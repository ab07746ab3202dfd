#include "worker/group/peer_model.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "ml/model/device_training.h"
#include "worker/store/wrapped_model.h"

namespace parasol {
namespace {

class PeerModel : public WrappedModel {
 public:
  PeerModel(std::unique_ptr<Model> model, DeviceGradients& gradients)
      : WrappedModel(std::move(model)),
        gradients_(gradients),
        device_(gradients.device()) {
    CHECK(device_training() != nullptr);
  }

  absl::Status Start() {
    absl::MutexLock lock(&gradients_.device_mutex());
    ASSIGN_OR_RETURN(const std::vector<DeviceTraining::Variable> arrays,
                     model().device_training()->Variables());
    if (arrays.empty()) return absl::OkStatus();
    float* last = values_ = arrays.front().value;
    for (const DeviceTraining::Variable& array : arrays) {
      values_ = std::min(values_, array.value);
    }
    for (size_t i = 0; i < arrays.size(); ++i) {
      first_.push_back(arrays[i].value - values_);
      last = std::max(last, arrays[i].value + variables()[i].elements());
    }
    ASSIGN_OR_RETURN(on_host_, device_.NewHostArray<float>(last - values_),
                     _ << "the values of variables");
    return absl::OkStatus();
  }

  // Values may still be on their way from here, if no pass followed them.
  absl::Span<float> HostValue(size_t index) override {
    if (is_copying_) {
      absl::MutexLock lock(&gradients_.device_mutex());
      // The next call that can fail says so.
      device_.Synchronize().IgnoreError();
      is_copying_ = false;
    }
    return on_host_.span().subspan(first_[index],
                                   variables()[index].elements());
  }
  // All values go in one copy, before the next pass.
  absl::Status Upload(size_t) override {
    has_uploads_ = true;
    return absl::OkStatus();
  }

  // The device may still read the batch that was trained on last; not the one
  // before it.
  absl::Status Stage(const Batch& batch, StagedBatch& staged) override {
    absl::MutexLock lock(&gradients_.device_mutex());
    if (&staged == last_trained_) {
      RETURN_IF_ERROR(device_.Synchronize());
    }
    return model().Stage(batch, staged);
  }
  absl::StatusOr<BatchResult> Gradients(StagedBatch& staged, uint64_t seed,
                                        GradientSinks sinks) override {
    absl::MutexLock lock(&gradients_.device_mutex());
    RETURN_IF_ERROR(CopyValues());
    RETURN_IF_ERROR(gradients_.BeginPass());
    last_trained_ = &staged;
    const auto take = [this](absl::Span<const DeviceTraining::Rows>) {
      gradients_.device_mutex().AssertHeld();
      return gradients_.Take();
    };
    return model().device_training()->Train(
        staged, seed, {.update = take, .rows = sinks.rows});
  }
  absl::StatusOr<EvaluatedBatch> Evaluate(StagedBatch& staged) override {
    absl::MutexLock lock(&gradients_.device_mutex());
    RETURN_IF_ERROR(CopyValues());
    return model().Evaluate(staged);
  }
  DeviceTraining* device_training() override {
    return model().device_training();
  }

 private:
  absl::Status CopyValues() {
    if (!std::exchange(has_uploads_, false)) return absl::OkStatus();
    is_copying_ = true;
    return device_.Copy(Device::Stream::kCompute,
                        absl::MakeConstSpan(on_host_.data(), on_host_.size()),
                        values_);
  }

  DeviceGradients& gradients_;
  Device& device_;
  float* values_ = nullptr;    // in the memory of the device
  std::vector<size_t> first_;  // index: variable; its first element
  Array<float> on_host_;
  bool has_uploads_ = false;
  bool is_copying_ = false;
  const StagedBatch* last_trained_ = nullptr;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> KeepGradientsOnDevice(
    std::unique_ptr<Model> model, DeviceGradients& gradients,
    bool values_stay) {
  auto peer = std::make_unique<PeerModel>(std::move(model), gradients);
  if (!values_stay) {
    RETURN_IF_ERROR(peer->Start());
  }
  return peer;
}

}  // namespace parasol
