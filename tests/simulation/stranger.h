#ifndef PARASOL_TESTS_SIMULATION_STRANGER_H_
#define PARASOL_TESTS_SIMULATION_STRANGER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/chief.pb.h"
#include "tests/simulation/chief_process.h"
#include "tests/simulation/ps_process.h"
#include "tests/simulation/random.h"
#include "tests/simulation/world.h"

namespace parasol::simulation {

// Somebody who reaches every process and sends messages that look right, with
// all that he can hear, and without what tasks tell only each other. Everything
// that he asks for must be refused, and change nothing.
class Stranger {
 public:
  // `world` must outlive this object.
  explicit Stranger(World& world);

  void Start() { Wait(); }

 private:
  void Wait();
  // Sends one message to each process.
  void Act();
  void Ask(ChiefProcess& chief);
  void Ask(PsProcess& ps);
  // Returns a task of the cluster, under the number of no process.
  wire::Task AnyTask();
  // Returns the callback that expects a refusal.
  template <typename Response>
  World::Done<Response> Refused(absl::string_view what);
  // Returns a number that he has heard, or guesses.
  uint64_t AnyIncarnation(const PsProcess& ps);

  World& world_;
  // His own: schedules are the same with him and without.
  Random random_;
};

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_STRANGER_H_
