#include "worker/group/sum_on_device.h"

#include <cstdint>

#include "base/status_macros.h"
#include "ml/optimizer/device/non_finite.h"

namespace parasol {

absl::StatusOr<std::unique_ptr<SumOnDevice>> SumOnDevice::Create(
    Device& device, size_t elements, bool is_fetched) {
  std::unique_ptr<SumOnDevice> sum(new SumOnDevice(device));
  ASSIGN_OR_RETURN(sum->values_, device.NewArray<float>(elements),
                   _ << "the sum of gradients");
  ASSIGN_OR_RETURN(sum->read_, device.NewEvent());
  if (is_fetched) {
    ASSIGN_OR_RETURN(sum->on_host_, device.NewHostArray<float>(elements),
                     _ << "the sum of gradients");
  }
  return sum;
}

absl::Status SumOnDevice::AddUp(std::vector<ReplicaGradients> terms) {
  if (terms.empty()) terms.push_back({.data = nullptr});
  const auto size = static_cast<int64_t>(values_.size());
  // A sum of more than one call can add goes on with the sum so far.
  for (size_t first = 0; first < terms.size();) {
    std::vector<ReplicaGradients> some;
    if (first > 0) some.push_back({.data = values_.data()});
    while (some.size() < kMaxReplicasOfAMean && first < terms.size()) {
      some.push_back(terms[first++]);
    }
    RETURN_IF_ERROR(
        ReplicaMean(device_, some, /*divisor=*/1, size, values_.data()));
  }
  return on_host_.size() > 0 ? CopyToHost() : absl::OkStatus();
}

absl::Status SumOnDevice::CopyToHost() {
  return device_.Copy(Device::Stream::kCompute,
                      absl::MakeConstSpan(values_.data(), values_.size()),
                      on_host_.data());
}

absl::Status SumOnDevice::Fetch() {
  if (on_host_.size() == 0) {
    ASSIGN_OR_RETURN(on_host_, device_.NewHostArray<float>(values_.size()),
                     _ << "the sum of gradients");
  }
  RETURN_IF_ERROR(CopyToHost());
  return device_.Synchronize();
}

absl::StatusOr<bool> SumOnDevice::HasNonFinite() {
  if (non_finite_.size() == 0) {
    ASSIGN_OR_RETURN(non_finite_on_host_, device_.NewHostArray<float>(1),
                     _ << "the number of gradients that are not finite");
    ASSIGN_OR_RETURN(non_finite_, device_.NewArray<float>(1),
                     _ << "the number of gradients that are not finite");
  }
  *non_finite_on_host_.data() = 0;
  RETURN_IF_ERROR(device_.Copy(
      Device::Stream::kCompute,
      absl::MakeConstSpan(non_finite_on_host_.data(), 1), non_finite_.data()));
  RETURN_IF_ERROR(CountNonFinite(device_, values_.data(),
                                 static_cast<int64_t>(values_.size()),
                                 non_finite_.data()));
  RETURN_IF_ERROR(device_.Copy(Device::Stream::kCompute,
                               absl::MakeConstSpan(non_finite_.data(), 1),
                               non_finite_on_host_.data()));
  RETURN_IF_ERROR(device_.Synchronize());
  return *non_finite_on_host_.data() > 0;
}

absl::Status SumOnDevice::WriteMean(int replicas, float* mean) {
  RETURN_IF_ERROR(ReplicaMean(device_, {{.data = values_.data()}},
                              static_cast<float>(replicas),
                              static_cast<int64_t>(values_.size()), mean));
  return device_.Record(Device::Stream::kCompute, *read_);
}

}  // namespace parasol
