#ifndef PARASOL_CLUSTER_COLLECTIVE_PLAN_PLAN_REHEARSAL_H_
#define PARASOL_CLUSTER_COLLECTIVE_PLAN_PLAN_REHEARSAL_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cluster/collective/plan/plan.h"
#include "cluster/collective/plan/plan_run.h"

namespace parasol {

// The plans of all ranks, carried out in one process. Messages from one rank to
// another arrive in the order in which they are sent; everything else happens
// in an order that is drawn from a seed. A message is read when it arrives, as
// late as can be, and its sender hears later that its memory is free.
class PlanRehearsal {
 public:
  explicit PlanRehearsal(uint64_t seed) : random_(seed) {}

  // Adds the next rank: its plan and the memory of the plan's buffers.
  void AddRank(std::shared_ptr<const CollectivePlan> plan,
               std::vector<std::byte*> buffers);

  // Carries the plans out to their end.
  //   InvalidArgument  a message comes that its receiver does not wait for, or
  //                    has another size; or a rank waits for ever.
  absl::Status CarryOut();

  // Returns the bytes that each rank has sent and received.
  const std::vector<size_t>& traffic() const { return traffic_; }

 private:
  struct Message {
    int step = 0;
    uint64_t piece = 0;
    absl::Span<const std::byte> bytes;
  };
  using Link = std::pair<int, int>;  // sender and receiver

  void BeginRank();
  void Queue(int from, const std::vector<PlanRun::Send>& sends);
  // Tells the sender of some message that arrived that its memory is free.
  void FreeMessage();
  // Returns a link with a message to a rank that has begun, or null.
  const Link* ChooseLink();
  absl::Status Deliver(Link link);
  absl::Status CheckAllComplete() const;

  std::mt19937_64 random_;
  std::vector<std::shared_ptr<const CollectivePlan>> plans_;
  std::vector<std::unique_ptr<PlanRun>> runs_;
  std::vector<int> not_begun_;
  std::vector<bool> has_begun_;
  std::map<Link, std::deque<Message>> links_;
  std::vector<Link> ready_;                   // memory of ChooseLink()
  std::vector<std::pair<int, int>> arrived_;  // rank and step
  std::vector<size_t> traffic_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_COLLECTIVE_PLAN_PLAN_REHEARSAL_H_
