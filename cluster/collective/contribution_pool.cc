#include "cluster/collective/contribution_pool.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/status/statusor.h"
#include "cluster/collective/contribution_memory.h"

namespace parasol {
namespace {

constexpr size_t kPage = 4096;

}  // namespace

std::shared_ptr<float[]> ContributionPool::Allocate(size_t count) {
  const size_t bytes =
      std::max<size_t>(1, (count * sizeof(float) + kPage - 1) / kPage) * kPage;
  absl::StatusOr<std::shared_ptr<SharedMemory>> memory =
      SharedMemory::Create(bytes);
  absl::MutexLock lock(&mu_);
  const size_t number = allocations_.size();
  const bool can_share = memory.ok() && number < SharedWords::kMaxAllocations &&
                         (*memory)->offer().size() < SharedWords::kOfferBytes &&
                         (*memory)->Populate(0, bytes);
  if (!can_share) return AllocateElements(count);
  SharedWords::Allocation& listed = words_.allocations[number];
  listed.bytes = bytes;
  std::memcpy(listed.offer, (*memory)->offer().c_str(),
              (*memory)->offer().size() + 1);
  allocations_.push_back(*memory);
  float* const elements = reinterpret_cast<float*>((*memory)->data());
  return std::shared_ptr<float[]>(*std::move(memory), elements);
}

std::optional<ContributionPool::Place> ContributionPool::Find(
    const void* memory, size_t bytes) const {
  const std::byte* const first = static_cast<const std::byte*>(memory);
  absl::MutexLock lock(&mu_);
  for (size_t i = 0; i < allocations_.size(); ++i) {
    const std::byte* const begin = allocations_[i]->data();
    if (first < begin || first + bytes > begin + allocations_[i]->size()) {
      continue;
    }
    return Place{static_cast<uint32_t>(i),
                 static_cast<uint64_t>(first - begin)};
  }
  return std::nullopt;
}

}  // namespace parasol
