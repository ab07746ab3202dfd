#include "worker/store/gradient_means.h"

#include <algorithm>

#include "base/log.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

using Part = DevicePart;

// Slices begin at multiples of 256 bytes, as a device's memory accesses do.
constexpr int64_t kAlignment = 64;

int64_t RoundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Returns the gradients as ReplicaMean() takes them.
ReplicaGradients TermOf(const Part& part, const float* gradients) {
  if (!part.has_examples) return {.data = nullptr};
  return {.data = gradients, .weight = part.weight};
}

bool IsPlain(const Part& part) { return part.has_examples && part.weight == 1; }

}  // namespace

absl::StatusOr<std::unique_ptr<GradientMeans>> GradientMeans::Create(
    DeviceGroup& group, std::vector<absl::Span<float>> gradients, Way way) {
  CHECK_EQ(gradients.size(), group.size());
  CHECK_LE(gradients.size(), kMaxReplicasOfAMean);
  for (const absl::Span<float> array : gradients) {
    CHECK_EQ(array.size(), gradients.front().size());
  }
  std::unique_ptr<GradientMeans> means(
      new GradientMeans(group, std::move(gradients), way));
  if (way != Way::kNccl) {
    RETURN_IF_ERROR(means->DivideWork());
  }
  return means;
}

absl::Status GradientMeans::DivideWork() {
  const auto devices = static_cast<int64_t>(group_.size());
  const int64_t most =
      way_ == Way::kFirstDevice
          ? size()
          : RoundUp((size() + devices - 1) / devices, kAlignment);
  for (int64_t i = 0; i < devices; ++i) {
    Slice slice = {.first = std::min(i * most, size())};
    slice.size = std::min(most, size() - slice.first);
    ASSIGN_OR_RETURN(
        slice.of_others,
        group_.device(i).NewArray<float>((devices - 1) * slice.size),
        _ << "gradients of other replicas");
    slices_.push_back(std::move(slice));
  }
  return absl::OkStatus();
}

// Between the two orders a device reads the others' gradients of its slice, and
// replaces them by the mean; it alone touches that slice. What a device does
// next, an update and the next pass, follows what all have read and written.
absl::Status GradientMeans::Enqueue(absl::Span<const Part> parts) {
  CHECK_EQ(parts.size(), gradients_.size());
  if (size() == 0) return absl::OkStatus();
  if (parts.size() == 1 && IsPlain(parts.front())) return absl::OkStatus();
  if (way_ == Way::kNccl) return AddByNccl(parts);
  RETURN_IF_ERROR(group_.Join());
  for (size_t i = 0; i < slices_.size(); ++i) {
    if (slices_[i].size == 0) continue;
    RETURN_IF_ERROR(AddSlice(i, parts));
  }
  return group_.Join();
}

absl::Status GradientMeans::AddSlice(size_t device,
                                     absl::Span<const Part> parts) {
  const Slice& slice = slices_[device];
  const auto place = [&](size_t of) {
    return DeviceGroup::Place{of, gradients_[of].data() + slice.first};
  };
  std::vector<ReplicaGradients> terms;
  float* copy = slice.of_others.data();
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i == device || !parts[i].has_examples) {
      terms.push_back(TermOf(parts[i], place(i).data));
      continue;
    }
    RETURN_IF_ERROR(group_.Copy(device, place(i), {device, copy}, slice.size));
    terms.push_back(TermOf(parts[i], copy));
    copy += slice.size;
  }
  RETURN_IF_ERROR(ReplicaMean(group_.device(device), terms, divisor(),
                              slice.size, place(device).data));
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i == device) continue;
    RETURN_IF_ERROR(group_.Copy(device, place(device), place(i), slice.size));
  }
  return absl::OkStatus();
}

// NCCL has no weights, and its own mean may round otherwise than a division.
absl::Status GradientMeans::AddByNccl(absl::Span<const Part> parts) {
  std::vector<float*> arrays;
  for (size_t i = 0; i < parts.size(); ++i) {
    arrays.push_back(gradients_[i].data());
    if (IsPlain(parts[i])) continue;
    RETURN_IF_ERROR(ReplicaMean(group_.device(i),
                                {TermOf(parts[i], arrays.back())},
                                /*divisor=*/1, size(), arrays.back()));
  }
  RETURN_IF_ERROR(group_.AllReduce(arrays, size()));
  for (size_t i = 0; i < parts.size(); ++i) {
    RETURN_IF_ERROR(ReplicaMean(group_.device(i), {{.data = arrays[i]}},
                                divisor(), size(), arrays[i]));
  }
  return absl::OkStatus();
}

}  // namespace parasol
