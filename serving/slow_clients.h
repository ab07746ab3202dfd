#ifndef PARASOL_SERVING_SLOW_CLIENTS_H_
#define PARASOL_SERVING_SLOW_CLIENTS_H_

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
// their addresses, as civetweb keeps the sockets to itself: when one is late,
// all descriptors of the process are looked through, once for all that are late
// and without a lock. Thread-safe.
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

 private:
  struct Watched {
    Connection connection = {};
    bool is_shut = false;  // true: its thread will close it
  };

 public:
  // Watches a connection while it lives.
  class Watch {
   public:
    Watch(SlowClients& clients, Connection connection, absl::Duration limit);
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   private:
    SlowClients& clients_;
    std::multimap<absl::Time, Watched>::iterator place_;
  };

 private:
  void Run();
  bool HasLate() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Shuts down the late ones among `sockets`, descriptors by their ends.
  void ShutDownLate(const std::multimap<std::string, int>& sockets)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  Clock& clock_;
  absl::Mutex mu_;
  // Connections, by the time at which they are shut down.
  std::multimap<absl::Time, Watched> watched_ ABSL_GUARDED_BY(mu_);
  bool is_stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace parasol

#endif  // PARASOL_SERVING_SLOW_CLIENTS_H_
