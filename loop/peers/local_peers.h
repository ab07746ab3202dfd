#ifndef PARASOL_LOOP_PEERS_LOCAL_PEERS_H_
#define PARASOL_LOOP_PEERS_LOCAL_PEERS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cluster/collective/collective.h"
#include "loop/peers/peers.h"

namespace parasol {

// Base of peers whose steps no other process takes part in: sums are over
// this process's replicas. Used by one thread.
class LocalPeers : public Peers {
 public:
  int rank() const override { return 0; }
  int num_processes() const override { return 1; }
  void BeginAllReduce(absl::string_view what,
                      std::vector<Contribution> contributions,
                      absl::Span<float> sum) override;
  absl::Status Await() override { return failure_; }
  absl::StatusOr<std::vector<std::string>> AllGather(
      absl::string_view what, absl::string_view own) override;

 protected:
  // `replicas`: number of replicas of the process.
  explicit LocalPeers(int replicas) : replicas_(replicas) {}
  int replicas() const { return replicas_; }

 private:
  const int replicas_;
  absl::Status failure_;  // of a sum
};

}  // namespace parasol

#endif  // PARASOL_LOOP_PEERS_LOCAL_PEERS_H_
