#ifndef PARASOL_TESTS_SIMULATION_GROUP_SIMULATED_COLLECTIVE_H_
#define PARASOL_TESTS_SIMULATION_GROUP_SIMULATED_COLLECTIVE_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cluster/collective/group_protocol.h"
#include "cluster/collective/protocol_collective.h"
#include "tests/simulation/group/process_threads.h"
#include "tests/simulation/group/wire.h"
#include "tests/simulation/process.h"
#include "tests/simulation/world.h"

namespace parasol::simulation {

// The real protocol of a group over simulated connections: the model of
// SocketCollective and RankLink.
class SimulatedCollective : public ProtocolCollective {
 public:
  // `on_end` is called by the destructor.
  SimulatedCollective(World& world, Process& process, ProcessThreads& threads,
                      ProtocolPoints& points, const CollectiveGroup& group,
                      std::map<int, std::unique_ptr<WireEnd>> wires,
                      std::function<void()> on_end);
  ~SimulatedCollective() override;

  const CollectiveGroup& group() const override { return protocol_.group(); }
  absl::Status Await() override;
  std::vector<int> Awaited() const override { return protocol_.Awaited(); }
  void Abort(const absl::Status& why) override;
  absl::Status status() const override { return protocol_.status(); }
  std::shared_ptr<float[]> AllocateContribution(size_t count) override;

  // The rank takes part no more: another group has its place.
  void Leave(const absl::Status& why);
  // The process is gone: ends what is pending, and tells nobody more than the
  // kernel does.
  void Abandon();

 private:
  void Begin(const OperationSpec& spec, OperationMemory memory,
             Done done) override;
  void Receive(int peer, const WireMessage& message);
  void Tick();
  void Flush();
  void RunCompletions();

  World& world_;
  Process& process_;
  ProcessThreads& threads_;
  ProtocolPoints& points_;
  const std::function<void()> on_end_;
  GroupProtocol protocol_;
  std::map<int, std::unique_ptr<WireEnd>> wires_;
  int pending_ = 0;
  bool has_released_ = false;
  // False once this object is destroyed: timers outlive it.
  const std::shared_ptr<bool> is_there_ = std::make_shared<bool>(true);
};

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_GROUP_SIMULATED_COLLECTIVE_H_
