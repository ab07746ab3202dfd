#ifndef PARASOL_WORKER_GROUP_STATE_STATE_KEEPER_H_
#define PARASOL_WORKER_GROUP_STATE_STATE_KEEPER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "cluster/client/chief_session.h"
#include "cluster/rpc/server.h"
#include "cluster/trust/trust.h"
#include "proto/chief.pb.h"
#include "worker/group/state/group_state.h"
#include "worker/group/state/state_orders.h"
#include "worker/group/state/state_service.h"

namespace parasol {

// The part of worker 0 that is a ps to the chief where workers have the
// variables: it holds a place of a ps, loads the variables and writes them to
// checkpoints. Pushes and pulls it has none.
//
// Shutdown: Leave(), then destruction.
class StateKeeper {
 public:
  struct Options {
    // "host:port"; the system chooses the port if it is 0.
    std::string listen_address;
    std::string chief_address;
    // Name of the worker, and a process's number that no other task has.
    std::string task;
    uint64_t incarnation = 0;
    // Index of the ps that it is to the chief: StatePlace().
    int place = 0;
    absl::Duration chief_timeout = absl::Minutes(5);
    std::shared_ptr<const Trust> trust = nullptr;  // the worker's
    // Called once, with Unavailable, if the chief has given the place to
    // another process, or is gone: the worker has to start again.
    std::function<void(absl::Status)> on_lost = [](const absl::Status&) {};
  };

  // Listens; the chief is not contacted yet.
  //   InvalidArgument  the address can't be listened on.
  static absl::StatusOr<std::unique_ptr<StateKeeper>> Start(
      Options options, Clock& clock, MetricsRegistry& metrics);
  ~StateKeeper();

  int port() const { return server_->port(); }

  // Takes its place with `state`, which must outlive this object's Leave().
  // `registration` is the chief's answer to the worker. Blocks until the chief
  // has answered; polls `cancelled`. Returns errors of ChiefSession::Join().
  absl::Status Join(GroupState& state,
                    const wire::RegisterResponse& registration,
                    std::function<bool()> cancelled);

  // Asks the chief for a checkpoint, as a ps that leaves does. Blocks until it
  // is written, until the job has ended, or for `limit`.
  void AwaitCheckpoint(absl::Duration limit);

  // Gives the place up: no order comes any more.
  void Leave();

 private:
  StateKeeper(Options options, Clock& clock, MetricsRegistry& metrics);
  // Fills in what the keeper holds, in a registration or a heartbeat.
  template <typename Request>
  void Describe(const wire::RegisterResponse& registration,
                Request& request) const;

  const Options options_;
  Clock& clock_;
  MetricsRegistry& metrics_;
  StateOrders orders_;
  StateService service_;
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<ChiefSession> session_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_GROUP_STATE_STATE_KEEPER_H_
