#ifndef PARASOL_CLUSTER_RPC_TESTING_STALLING_PROXY_H_
#define PARASOL_CLUSTER_RPC_TESTING_STALLING_PROXY_H_

#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace parasol {

// A TCP proxy on the loopback interface for tests. Its connections can be made
// to carry nothing any more without being closed, as those to a machine that is
// gone do. Thread-safe.
class StallingProxy {
 public:
  // Forwards to the loopback port `target`.
  explicit StallingProxy(int target);
  ~StallingProxy();

  // Address of the proxy: "127.0.0.1:port".
  std::string address() const;

  // Stalls the connections that there are. Later ones are forwarded.
  void Stall() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Connection {
    int client = -1;
    int server = -1;
    bool is_stalled = false;
  };

  void Run();
  void Accept() ABSL_LOCKS_EXCLUDED(mu_);
  // Forwards what has come from one end; returns false if that end is closed.
  static bool Forward(int from, int to);

  const int target_;
  int listener_ = -1;
  int port_ = 0;
  int wake_ = -1;
  absl::Mutex mu_;
  std::vector<Connection> connections_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_RPC_TESTING_STALLING_PROXY_H_
