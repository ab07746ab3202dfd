#include "worker/group/device_gradients.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/status_macros.h"
#include "ml/optimizer/device/replica_mean.h"

namespace parasol {
namespace {

using SyncStep = TrainingParameters::SyncStep;

// The stream that copies a pass's gradients beside the pass. It waits for
// passes alone, never for other ranks.
constexpr Device::Stream kCopies = Device::Stream::kCopyOut;

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceGradients>> DeviceGradients::Create(
    Device& device, DeviceTraining& training,
    const std::vector<VariableSpec>& variables, const Options& options) {
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
  const GradientPacks packs =
      GradientPacks::Of(variables, options.bytes_per_pack);
  std::vector<VariableRange> ranges;
  for (size_t i = 0; i < packs.count(); ++i) ranges.push_back(packs.range(i));
  ASSIGN_OR_RETURN(gradients->packs_, training.WriteInPieces(ranges),
                   _ << "the packs of gradients");
  ASSIGN_OR_RETURN(gradients->sum_, SumOnDevice::Create(device, all.size(),
                                                        options.fetches_sum));
  return gradients;
}

void DeviceGradients::SetShare(std::vector<int> replicas) {
  absl::MutexLock lock(&mu_);
  share_ = std::move(replicas);
}

void DeviceGradients::SetOnTaken(std::function<void()> on_taken) {
  absl::MutexLock lock(&mu_);
  on_taken_ = std::move(on_taken);
}

// Copies to what is freed may be under way, if another worker has made the step
// meanwhile. Nobody waits for the device with mu_ held.
absl::Status DeviceGradients::BeginStep(int64_t step) {
  std::vector<int> of_another;
  {
    absl::MutexLock lock(&mu_);
    for (const auto& [number, replica] : replicas_) {
      if (std::count(share_.begin(), share_.end(), number) == 0) {
        of_another.push_back(number);
      }
    }
  }
  if (!of_another.empty()) {
    RETURN_IF_ERROR(device_.Synchronize());
  }
  absl::MutexLock lock(&mu_);
  for (const int number : of_another) replicas_.erase(number);
  for (auto& [number, replica] : replicas_) {
    replica.is_taken = replica.has_pushed = false;
  }
  step_ = step;
  return absl::OkStatus();
}

absl::StatusOr<DeviceGradients::Replica*> DeviceGradients::PlaceOf(
    const SyncStep& step) {
  bool begins = false;
  {
    absl::MutexLock lock(&mu_);
    if (step.step < step_) return nullptr;
    begins = step.step > step_;
  }
  if (begins) {
    RETURN_IF_ERROR(BeginStep(step.step));
  }
  Replica* replica = nullptr;
  {
    absl::MutexLock lock(&mu_);
    replica = &replicas_[step.replica];
    if (replica->is_taken) return nullptr;
    if (replica->gradients.size() == gradients_.size()) return replica;
  }
  std::vector<std::unique_ptr<Device::Event>> written(packs_.size());
  for (std::unique_ptr<Device::Event>& event : written) {
    ASSIGN_OR_RETURN(event, device_.NewEvent());
  }
  ASSIGN_OR_RETURN(Array<float> gradients,
                   device_.NewArray<float>(gradients_.size()),
                   _ << "the gradients of replica " << step.replica);
  absl::MutexLock lock(&mu_);
  replica->written = std::move(written);
  replica->gradients = std::move(gradients);
  return replica;
}

absl::Status DeviceGradients::ExpectLocked(const SyncStep& step,
                                           const DevicePart& part) {
  expected_.reset();
  ASSIGN_OR_RETURN(Replica* const replica, PlaceOf(step));
  if (replica == nullptr) return absl::OkStatus();
  expected_ = Expected{.step = step, .part = part, .replica = replica};
  return absl::OkStatus();
}

absl::Status DeviceGradients::Expect(const SyncStep& step,
                                     const DevicePart& part) {
  absl::MutexLock device_lock(&device_mu_);
  return ExpectLocked(step, part);
}

absl::Status DeviceGradients::BeginPass() {
  return device_.Order(kCopies, Device::Stream::kCompute);
}

absl::Status DeviceGradients::Take() {
  if (!expected_) return absl::OkStatus();
  const Expected pass = *std::exchange(expected_, std::nullopt);
  for (size_t i = 0; i < packs_.size(); ++i) {
    const DeviceTraining::Piece& pack = packs_[i];
    ReplicaGradients term = {.data = nullptr};
    if (pass.part.has_examples) {
      term = {.data = gradients_.data() + pack.first,
              .weight = pass.part.weight};
      RETURN_IF_ERROR(device_.Follow(*pack.written, kCopies));
    }
    RETURN_IF_ERROR(ReplicaMean(
        device_, {term}, /*divisor=*/1, static_cast<int64_t>(pack.elements),
        pass.replica->gradients.data() + pack.first, kCopies));
    RETURN_IF_ERROR(device_.Record(kCopies, *pass.replica->written[i]));
  }
  std::function<void()> on_taken;
  {
    absl::MutexLock lock(&mu_);
    pass.replica->is_taken = true;
    on_taken = on_taken_;
  }
  if (on_taken != nullptr) on_taken();
  return absl::OkStatus();
}

absl::Status DeviceGradients::Push(const SyncStep& step) {
  absl::MutexLock device_lock(&device_mu_);
  if (expected_ && expected_->step.step == step.step &&
      expected_->step.replica == step.replica) {
    RETURN_IF_ERROR(Take());
  }
  absl::MutexLock lock(&mu_);
  const auto pushed = replicas_.find(step.replica);
  if (step.step == step_ && pushed != replicas_.end()) {
    pushed->second.has_pushed = pushed->second.is_taken;
  }
  return absl::OkStatus();
}

const DeviceGradients::Replica* DeviceGradients::Find(int64_t step,
                                                      int replica) const {
  const auto found = replicas_.find(replica);
  return step == step_ && found != replicas_.end() ? &found->second : nullptr;
}

bool DeviceGradients::IsTaken(int64_t step,
                              const std::vector<int>& replicas) const {
  absl::MutexLock lock(&mu_);
  return std::all_of(replicas.begin(), replicas.end(), [&](int number) {
    mu_.AssertReaderHeld();
    const Replica* const replica = Find(step, number);
    return replica != nullptr && replica->is_taken;
  });
}

bool DeviceGradients::Has(int64_t step,
                          const std::vector<int>& replicas) const {
  absl::MutexLock lock(&mu_);
  return std::all_of(replicas.begin(), replicas.end(), [&](int number) {
    mu_.AssertReaderHeld();
    const Replica* const replica = Find(step, number);
    return replica != nullptr && replica->has_pushed;
  });
}

std::unique_ptr<DeviceGradients::Part> DeviceGradients::PartOf(
    size_t pack, const std::vector<int>& replicas) {
  const DeviceTraining::Piece& piece = packs_[pack];
  auto part = std::make_unique<Part>();
  part->written.push_back(&sum_->read());
  {
    absl::MutexLock lock(&mu_);
    for (const int number : replicas) {
      const auto found = replicas_.find(number);
      CHECK(found != replicas_.end()) << "replica " << number;
      part->terms.push_back(found->second.gradients.data() + piece.first);
      part->written.push_back(found->second.written[pack].get());
    }
  }
  part->pack = {.terms = part->terms,
                .written = part->written,
                .elements = static_cast<int64_t>(piece.elements),
                .sum = sum_->values().data() + piece.first,
                .on_host = sum_->on_host().empty()
                               ? nullptr
                               : sum_->on_host().data() + piece.first};
  return part;
}

absl::Status DeviceGradients::AddUp(const std::vector<int>& replicas) {
  absl::MutexLock device_lock(&device_mu_);
  RETURN_IF_ERROR(BeginPass());
  std::vector<ReplicaGradients> terms;
  {
    absl::MutexLock lock(&mu_);
    for (const int replica : replicas) {
      const auto pushed = replicas_.find(replica);
      CHECK(pushed != replicas_.end()) << "replica " << replica;
      terms.push_back({.data = pushed->second.gradients.data()});
    }
  }
  RETURN_IF_ERROR(sum_->AddUp(std::move(terms)));
  return device_.Synchronize();
}

absl::Status DeviceGradients::MakeMean(int replicas) {
  RETURN_IF_ERROR(BeginPass());
  return sum_->WriteMean(replicas, gradients_.data());
}

void DeviceGradients::CopyTo(const GradientPacks& packs,
                             std::vector<std::vector<float>>& sums) const {
  for (size_t i = 0; i < places_.size(); ++i) {
    if (places_[i].elements == 0) continue;
    const GradientPacks::Place& to = packs.place(i);
    std::copy_n(sum_->on_host().data() + places_[i].first, places_[i].elements,
                sums[to.pack].data() + to.first);
  }
}

}  // namespace parasol
