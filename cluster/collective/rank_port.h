#ifndef PARASOL_CLUSTER_COLLECTIVE_RANK_PORT_H_
#define PARASOL_CLUSTER_COLLECTIVE_RANK_PORT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/descriptor.h"
#include "cluster/collective/collective_group.h"
#include "cluster/collective/rank_hello.h"
#include "cluster/payload_lane/strangers.h"

namespace parasol {

// The port at which the other ranks of groups, one after the other, reach this
// process. A connection that does not say the hello of a rank, and prove that
// it has the group's secret, within Strangers::kHelloLimit is closed.
// Thread-safe.
class RankPort {
 public:
  // Listens on `host` ("127.0.0.1", "[::]", a name) and `port` (0: the system
  // chooses one).
  //   InvalidArgument  the host is not this machine, or the port is in use.
  static absl::StatusOr<std::unique_ptr<RankPort>> Start(
      const std::string& host, int port);
  ~RankPort();
  RankPort(const RankPort&) = delete;
  RankPort& operator=(const RankPort&) = delete;

  int port() const { return port_; }

  // Takes connections of ranks of `group` from now on, and of no other group.
  void Expect(const CollectiveGroup& group) ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the connections that have come, by rank; the newest of each.
  std::map<int, Descriptor> TakeConnected() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  RankPort(Descriptor listening, Descriptor wake, int port);

  void Run();
  // Receives what a connection has said. Returns false when it is done with.
  bool Hear(Strangers::Stranger& stranger) ABSL_LOCKS_EXCLUDED(mu_);
  // Answers a hello of this group. Returns false if the connection has ended.
  bool Challenge(Strangers::Stranger& stranger)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Takes the connection of a rank that has proven itself; refuses another.
  void Take(Strangers::Stranger& stranger, int rank)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsStopped() const ABSL_LOCKS_EXCLUDED(mu_);

  Strangers strangers_;    // used by the thread only
  const Descriptor wake_;  // an eventfd
  const int port_;

  mutable absl::Mutex mu_;
  std::optional<CollectiveGroup> group_ ABSL_GUARDED_BY(mu_);
  std::map<int, Descriptor> connected_ ABSL_GUARDED_BY(mu_);
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;

  std::thread thread_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_COLLECTIVE_RANK_PORT_H_
