#include "cluster/collective/contribution_memory.h"

#include <cstdlib>
#include <cstring>

#include "base/log.h"

namespace parasol {

std::shared_ptr<float[]> AllocateElements(size_t count) {
  constexpr size_t kAlignment = 64;
  const size_t bytes =
      (count * sizeof(float) + kAlignment - 1) / kAlignment * kAlignment +
      kAlignment;
  float* const memory =
      static_cast<float*>(std::aligned_alloc(kAlignment, bytes));
  CHECK(memory != nullptr) << "no memory for " << count << " elements";
  std::memset(memory, 0, bytes);
  return std::shared_ptr<float[]>(memory, [](float* p) { std::free(p); });
}

void CheckContributions(const CollectiveGroup& group,
                        const std::vector<Contribution>& contributions,
                        size_t count) {
  const std::vector<int>& replicas = group.own().replicas;
  CHECK_EQ(contributions.size(), replicas.size());
  for (size_t i = 0; i < replicas.size(); ++i) {
    CHECK_EQ(contributions[i].replica, replicas[i]);
    CHECK_EQ(contributions[i].values.size(), count);
  }
}

}  // namespace parasol
