#ifndef PARASOL_TESTS_SIMULATION_GROUP_SIMULATED_ENDPOINT_H_
#define PARASOL_TESTS_SIMULATION_GROUP_SIMULATED_ENDPOINT_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cluster/collective/collective.h"
#include "cluster/collective/rank_hello.h"
#include "tests/simulation/group/process_threads.h"
#include "tests/simulation/group/simulated_collective.h"
#include "tests/simulation/group/wire.h"
#include "tests/simulation/process.h"
#include "tests/simulation/world.h"

namespace parasol::simulation {

// A process's place in groups: the model of SocketEndpoint and RankPort, with
// their real answers to a hello.
class SimulatedEndpoint : public CollectiveEndpoint {
 public:
  // Returns the endpoint of the process that listens at an address; null if
  // none does.
  using Lookup = std::function<SimulatedEndpoint*(const std::string& address)>;

  SimulatedEndpoint(World& world, Process& process, ProcessThreads& threads,
                    ProtocolPoints& points, Lookup lookup)
      : world_(world),
        process_(process),
        threads_(threads),
        points_(points),
        lookup_(std::move(lookup)) {}

  absl::StatusOr<std::unique_ptr<Collective>> Join(
      const CollectiveGroup& group, absl::Duration limit) override;
  void CancelJoin(int64_t epoch) override {
    cancelled_ = std::max(cancelled_, epoch);
  }

  // The process is gone: its connections end.
  void Abandon();

 private:
  using Wires = std::map<int, std::unique_ptr<WireEnd>>;
  // A call of another rank.
  struct Call {
    bool is_over = false;  // answered, or waited for no more
    absl::Status result;
    std::unique_ptr<WireEnd> wire;
  };

  // Calls the ranks that are not in `wires` and that this one calls, and waits
  // for their answers; `missing` has why others are not there.
  absl::Status CallMissing(const CollectiveGroup& group, absl::Duration limit,
                           Wires& wires, std::map<int, std::string>& missing);
  std::shared_ptr<Call> CallRank(const CollectiveGroup& group, int rank);
  // Answers the call of another process's rank.
  void Answer(SimulatedEndpoint& caller, const RankHello& hello,
              const std::shared_ptr<Call>& call);

  World& world_;
  Process& process_;
  ProcessThreads& threads_;
  ProtocolPoints& points_;
  const Lookup lookup_;
  std::optional<CollectiveGroup> group_;
  int64_t cancelled_ = INT64_MIN;
  // Connections that other ranks of the newest group have made.
  Wires called_;
  SimulatedCollective* newest_ = nullptr;
};

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_GROUP_SIMULATED_ENDPOINT_H_
