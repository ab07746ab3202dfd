#include "worker/group/host_sums.h"

#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "base/status_macros.h"

namespace parasol {

void HostSums::BeginGroup(GroupRun& run) {
  gradients_.AllocateBy(
      [collective = run.shared_collective()](size_t elements) {
        return collective->AllocateContribution(elements);
      });
}

// The allocator would keep the group.
void HostSums::EndGroup() { gradients_.AllocateBy(nullptr); }

// A pack leaves as soon as the last of this worker's replicas has its
// gradients, while their backward pass goes on.
absl::Status HostSums::Add(GroupRun& run, int64_t step,
                           absl::FunctionRef<absl::Status()> let_rows_leave) {
  const std::vector<int>& replicas = run.group().replicas;
  for (size_t pack = 0; pack < sums_.packs().count(); ++pack) {
    RETURN_IF_ERROR(
        run.AwaitOwn([&] { return gradients_.HasPack(step, pack, replicas); }));
    run.collective().AllReduce(gradients_.ContributionsTo(pack, replicas),
                               absl::MakeSpan(sums_.values()[pack]),
                               run.Count());
    if ((pack + 1) % (Collective::kMaxPending / 2) == 0) {
      RETURN_IF_ERROR(run.collective().Await());
    }
  }
  return let_rows_leave();
}

}  // namespace parasol
