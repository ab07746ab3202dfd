#ifndef PARASOL_DEPLOY_TOOL_SERVING_SLOW_CLIENTS_H_
#define PARASOL_DEPLOY_TOOL_SERVING_SLOW_CLIENTS_H_

#include <map>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace parasol {

// A thread that shuts down connections whose client does not send or take its
// bytes in time: the blocked read or write then fails. It knows connections by
// their addresses, as civetweb keeps the sockets to itself. Thread-safe.
class SlowClients {
 public:
  // The two ends of a connection over TCP.
  struct Connection {
    std::string peer;  // the client's address as text, without the port
    int peer_port = 0;
    int local_port = 0;
  };

  explicit SlowClients(Clock& clock);
  ~SlowClients();

  // Watches a connection while it lives.
  class Watch {
   public:
    Watch(SlowClients& clients, Connection connection, absl::Duration limit);
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   private:
    SlowClients& clients_;
    std::multimap<absl::Time, Connection>::iterator place_;
  };

 private:
  void Run();
  static void ShutDown(const Connection& connection);

  Clock& clock_;
  absl::Mutex mu_;
  // Connections, by the time at which they are shut down.
  std::multimap<absl::Time, Connection> watched_ ABSL_GUARDED_BY(mu_);
  bool is_stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace parasol

#endif  // PARASOL_DEPLOY_TOOL_SERVING_SLOW_CLIENTS_H_
