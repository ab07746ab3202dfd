#ifndef PARASOL_LOOP_PEERS_PEER_WATCH_H_
#define PARASOL_LOOP_PEERS_PEER_WATCH_H_

#include <functional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace parasol {

// Says in the log whom a program waits for, every 10 s, and gives up after a
// limit: a process that stands still is not lost to its peers. Thread-safe; a
// thread of its own looks.
class PeerWatch {
 public:
  struct Options {
    // Returns the names of those that are awaited; from the watch's thread.
    std::function<std::string()> awaited;
    // Called once a wait is longer than `limit`, from the watch's thread.
    std::function<void()> give_up;
    absl::Duration limit = absl::Minutes(5);
  };

  // `clock` must outlive this object.
  PeerWatch(Options options, Clock& clock);
  ~PeerWatch();

  // Notes that the program waits for others, for `what`, until End().
  void Begin(const std::string& what) ABSL_LOCKS_EXCLUDED(mu_);
  void End() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mu_);

  const Options options_;
  Clock& clock_;
  absl::Mutex mu_;
  absl::Time since_ ABSL_GUARDED_BY(mu_) = absl::InfiniteFuture();
  std::string what_ ABSL_GUARDED_BY(mu_);
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace parasol

#endif  // PARASOL_LOOP_PEERS_PEER_WATCH_H_
