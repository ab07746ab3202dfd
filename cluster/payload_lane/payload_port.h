#ifndef PARASOL_CLUSTER_PAYLOAD_LANE_PAYLOAD_PORT_H_
#define PARASOL_CLUSTER_PAYLOAD_LANE_PAYLOAD_PORT_H_

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/descriptor.h"
#include "cluster/payload_lane/payload_offer.h"
#include "cluster/payload_lane/strangers.h"

namespace parasol {

// The port that a ps takes lanes on. A connection belongs to the stream whose
// offer it names, once it has proven that it has its secret. One that names no
// offer is closed, as is one that says nothing for kHelloLimit. Neither takes
// the place of the worker that was given the offer.
//
// Thread-safe.
class PayloadPort {
 public:
  // Time that a connection has for its first bytes, and a worker for its
  // connection after it was given a secret.
  static constexpr absl::Duration kHelloLimit = Strangers::kHelloLimit;

  // Takes the connection; or why there is none.
  //   DeadlineExceeded  none came within kHelloLimit.
  //   Cancelled         the listener is being destroyed.
  using Taken = std::function<void(absl::StatusOr<Descriptor>)>;

  // Listens on `host` ("127.0.0.1", "[::]", a name) and `port` (0: the system
  // chooses one).
  //   InvalidArgument  the host is not this machine, or the port is in use.
  static absl::StatusOr<std::unique_ptr<PayloadPort>> Start(
      const std::string& host, int port);
  ~PayloadPort();
  PayloadPort(const PayloadPort&) = delete;
  PayloadPort& operator=(const PayloadPort&) = delete;

  int port() const { return port_; }

  // Returns the offer for one lane. `taken` is called once, on the listener's
  // thread.
  PayloadOffer Expect(Taken taken) ABSL_LOCKS_EXCLUDED(mu_);
  // Takes an offer back. Returns false if its `taken` was called, or is being
  // called; otherwise it will not be.
  bool Forget(const PayloadId& id) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;

  struct Expected {
    std::string secret;
    Taken taken;
    SteadyTime deadline;
  };

  PayloadPort(Descriptor listening, Descriptor wake, int port);

  void Run();
  // Waits until something may have to be done.
  void Wait();
  // Receives what a connection has sent. Returns false when it is done with: it
  // was taken, or refused.
  bool Hear(Strangers::Stranger& stranger) ABSL_LOCKS_EXCLUDED(mu_);
  // Answers a whole hello with the ps's proof. Returns false if it names no
  // offer, or the connection is broken.
  bool Challenge(Strangers::Stranger& stranger) ABSL_LOCKS_EXCLUDED(mu_);
  // Takes a connection that has proven itself; closes another one.
  void Take(Strangers::Stranger& stranger) ABSL_LOCKS_EXCLUDED(mu_);
  void EndLate() ABSL_LOCKS_EXCLUDED(mu_);
  bool IsStopped() const ABSL_LOCKS_EXCLUDED(mu_);

  Strangers strangers_;    // used by the thread only
  const Descriptor wake_;  // an eventfd
  const int port_;

  mutable absl::Mutex mu_;
  std::map<PayloadId, Expected> expected_ ABSL_GUARDED_BY(mu_);
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;

  std::thread thread_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_PAYLOAD_LANE_PAYLOAD_PORT_H_
