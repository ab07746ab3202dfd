#ifndef PARASOL_CHIEF_SUSPECT_PROBES_H_
#define PARASOL_CHIEF_SUSPECT_PROBES_H_

#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "coordinator/coordinator.h"

namespace parasol {

// Looks whether suspects are gone, one after the other, on a thread of its own:
// a name that is resolved and a machine that does not answer take their time,
// and whoever asks is a heartbeat. Thread-safe.
class SuspectProbes {
 public:
  using Suspect = Coordinator::Suspect;

  // The thread calls `on_gone` with each suspect at whose address nobody is.
  SuspectProbes(std::function<bool(const std::string& address)> is_nobody_at,
                std::function<void(const Suspect&)> on_gone);
  // Waits for the look that is taken; takes no other.
  ~SuspectProbes();

  // Adds suspects to those that wait, of which there is one of each ps. Does
  // not block.
  void Add(const std::vector<Suspect>& suspects) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mu_);

  const std::function<bool(const std::string& address)> is_nobody_at_;
  const std::function<void(const Suspect&)> on_gone_;
  absl::Mutex mu_;
  bool is_ending_ ABSL_GUARDED_BY(mu_) = false;
  std::deque<Suspect> waiting_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;
};

}  // namespace parasol

#endif  // PARASOL_CHIEF_SUSPECT_PROBES_H_
