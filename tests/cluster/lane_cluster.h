#ifndef PARASOL_TESTS_CLUSTER_LANE_CLUSTER_H_
#define PARASOL_TESTS_CLUSTER_LANE_CLUSTER_H_

#include <cstddef>
#include <memory>
#include <string>

#include "base/metrics.h"
#include "cluster/payload_lane/payload_host.h"
#include "cluster/rpc/server.h"
#include "cluster/trust/trust.h"
#include "parameters/client/parameter_client.h"
#include "proto/chief.pb.h"
#include "ps/exchange/parameter_service.h"
#include "ps/shard/parameter_server.h"
#include "ps/shard/ps_metrics.h"

namespace parasol {

// A ps in this process, with real sockets on the loopback interface: one
// variable "w" of zeros and a table "rows" of rows of kWidth zeros, to which
// SGD applies gradients with a rate of 1.
class PsOnThisMachine {
 public:
  static constexpr size_t kWidth = 64;

  // The hosts at which the ps takes calls and lanes, and its keys.
  struct Hosts {
    std::string calls = "127.0.0.1";
    std::string lanes = "127.0.0.1";
    std::shared_ptr<const Trust> trust = nullptr;
  };
  // `elements` of "w".
  explicit PsOnThisMachine(size_t elements)
      : PsOnThisMachine(elements, Hosts()) {}
  PsOnThisMachine(size_t elements, const Hosts& hosts);
  ~PsOnThisMachine();

  // Names the ps as 127.0.0.1, where a relay may be.
  wire::GetPlacementResponse Placement() const;
  int call_port() const { return port_; }
  int lane_port() const { return lanes_->port(); }

  // Cuts all streams; the tables stay.
  void Reconnect();

  // Breaks all lanes, whatever they are carrying. Both ends are in this
  // process.
  void BreakLanes();

  std::string Metrics() const { return registry_.Text(); }

 private:
  void Listen(int port);

  const size_t elements_;
  const Hosts hosts_;
  MetricsRegistry registry_;
  PsMetrics metrics_;
  ParameterServer server_;
  const std::unique_ptr<PayloadHost> lanes_;
  std::unique_ptr<ParameterService> service_;
  std::unique_ptr<RpcServer> rpc_server_;
  int port_ = 0;
};

// A worker's client of such a ps.
class WorkerOnThisMachine {
 public:
  WorkerOnThisMachine(const PsOnThisMachine& ps,
                      ParameterClient::Options options);

  ParameterClient& operator*() { return *client_; }
  ParameterClient* operator->() { return client_.get(); }

 private:
  MetricsRegistry registry_;
  std::unique_ptr<ParameterClient> client_;
};

}  // namespace parasol

#endif  // PARASOL_TESTS_CLUSTER_LANE_CLUSTER_H_
