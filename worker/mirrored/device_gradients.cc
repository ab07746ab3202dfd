#include "worker/mirrored/device_gradients.h"

#include <algorithm>

#include "base/log.h"
#include "base/status_macros.h"
#include "ml/optimizer/device/replica_mean.h"

namespace parasol {

absl::StatusOr<std::unique_ptr<DeviceGradients>> DeviceGradients::Create(
    Device& device, DeviceTraining& training,
    const std::vector<VariableSpec>& variables, bool fetches_sum) {
  ASSIGN_OR_RETURN(const std::vector<DeviceTraining::Variable> arrays,
                   training.Variables());
  const absl::Span<float> all = training.AllGradients();
  std::unique_ptr<DeviceGradients> gradients(new DeviceGradients(device, all));
  for (size_t i = 0; i < variables.size(); ++i) {
    Place place;
    if (!variables[i].frozen) {
      place.first = arrays[i].gradient - all.data();
      place.elements = variables[i].elements();
      CHECK_LE(place.first + place.elements, all.size());
    }
    gradients->places_.push_back(place);
  }
  ASSIGN_OR_RETURN(gradients->sum_, device.NewArray<float>(all.size()),
                   _ << "the sum of gradients");
  if (fetches_sum) {
    ASSIGN_OR_RETURN(gradients->on_host_,
                     device.NewHostArray<float>(all.size()),
                     _ << "the sum of gradients");
  }
  return gradients;
}

void DeviceGradients::SetShare(std::vector<int> replicas) {
  absl::MutexLock lock(&mu_);
  share_ = std::move(replicas);
}

absl::StatusOr<float*> DeviceGradients::PlaceOf(int64_t step, int replica) {
  absl::MutexLock lock(&mu_);
  if (step < step_) return nullptr;
  if (step > step_) {
    step_ = step;
    has_pushed_.clear();
    std::erase_if(replicas_, [this](const auto& entry) {
      mu_.AssertHeld();
      return std::count(share_.begin(), share_.end(), entry.first) == 0;
    });
  }
  if (has_pushed_[replica]) return nullptr;
  Array<float>& array = replicas_[replica];
  if (array.size() == gradients_.size()) return array.data();
  ASSIGN_OR_RETURN(array, device_.NewArray<float>(gradients_.size()),
                   _ << "the gradients of replica " << replica);
  return array.data();
}

absl::Status DeviceGradients::Add(const ParameterClient::PushRequest& push) {
  CHECK(push.sync.has_value() && push.on_device.has_value());
  const int replica = push.sync->replica;
  const auto size = static_cast<int64_t>(gradients_.size());
  absl::MutexLock device_lock(&device_mu_);
  ASSIGN_OR_RETURN(float* const to, PlaceOf(push.sync->step, replica));
  if (to == nullptr) return device_.Synchronize();
  ReplicaGradients term = {.data = nullptr};
  if (push.on_device->has_examples) {
    term = {.data = gradients_.data(), .weight = push.on_device->weight};
  }
  RETURN_IF_ERROR(ReplicaMean(device_, {term}, /*divisor=*/1, size, to));
  RETURN_IF_ERROR(device_.Synchronize());
  absl::MutexLock lock(&mu_);
  has_pushed_[replica] = true;
  return absl::OkStatus();
}

bool DeviceGradients::Has(int64_t step,
                          const std::vector<int>& replicas) const {
  absl::MutexLock lock(&mu_);
  return std::all_of(replicas.begin(), replicas.end(), [&](int replica) {
    mu_.AssertReaderHeld();
    const auto pushed = has_pushed_.find(replica);
    return step == step_ && pushed != has_pushed_.end() && pushed->second;
  });
}

absl::Status DeviceGradients::AddUp(const std::vector<int>& replicas) {
  absl::MutexLock device_lock(&device_mu_);
  std::vector<ReplicaGradients> terms;
  {
    absl::MutexLock lock(&mu_);
    for (const int replica : replicas) {
      const auto pushed = replicas_.find(replica);
      CHECK(pushed != replicas_.end()) << "replica " << replica;
      terms.push_back({.data = pushed->second.data()});
    }
  }
  if (terms.empty()) terms.push_back({.data = nullptr});
  const auto size = static_cast<int64_t>(sum_.size());
  // A sum of more than one call can add goes on with the sum so far.
  for (size_t first = 0; first < terms.size();) {
    std::vector<ReplicaGradients> some;
    if (first > 0) some.push_back({.data = sum_.data()});
    while (some.size() < kMaxReplicasOfAMean && first < terms.size()) {
      some.push_back(terms[first++]);
    }
    RETURN_IF_ERROR(
        ReplicaMean(device_, some, /*divisor=*/1, size, sum_.data()));
  }
  return device_.Synchronize();
}

absl::Status DeviceGradients::FetchSum() {
  absl::MutexLock device_lock(&device_mu_);
  RETURN_IF_ERROR(device_.Copy(Device::Stream::kCompute,
                               absl::MakeConstSpan(sum_.data(), sum_.size()),
                               on_host_.data()));
  return device_.Synchronize();
}

void DeviceGradients::CopyTo(const GradientPacks& packs,
                             std::vector<std::vector<float>>& sums) const {
  for (size_t i = 0; i < places_.size(); ++i) {
    if (places_[i].elements == 0) continue;
    const GradientPacks::Place& to = packs.place(i);
    std::copy_n(on_host_.data() + places_[i].first, places_[i].elements,
                sums[to.pack].data() + to.first);
  }
}

}  // namespace parasol
