#ifndef PARASOL_TESTS_SIMULATION_GROUP_WIRE_H_
#define PARASOL_TESTS_SIMULATION_GROUP_WIRE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "tests/simulation/process.h"
#include "tests/simulation/world.h"

namespace parasol::simulation {

// A message on a connection between two ranks: a frame, or the connection's
// end.
struct WireMessage {
  std::string header = {};
  std::string bytes = {};
  bool is_end = false;
};

// Counts what happens in the protocol of the groups, so that a fault may come
// at every point of it; and the damage to messages.
class ProtocolPoints {
 public:
  // Calls `on_point` with each number, from 1.
  explicit ProtocolPoints(std::function<void(int64_t)> on_point)
      : on_point_(std::move(on_point)) {}

  void Reach() { on_point_(++reached_); }
  int64_t reached() const { return reached_; }

  // Has each `every`-th message arrive with a flipped bit from now on; 0: none.
  void FlipEach(int64_t every) { flips_each_ = every; }
  // Flips a bit of the message if it is its turn: of all bytes but a piece's,
  // which have no checksum.
  void MayFlip(WireMessage& message);

 private:
  const std::function<void(int64_t)> on_point_;
  int64_t reached_ = 0;
  int64_t flips_each_ = 0;
  int64_t arrived_ = 0;  // messages
};

// One end of a connection between two processes. Messages arrive in the order
// in which they were sent, late if something cuts the processes from each
// other. Ends with the end's destruction, or with its process; then the other
// end hears that it has ended.
class WireEnd {
 public:
  // Connects two processes.
  static std::pair<std::unique_ptr<WireEnd>, std::unique_ptr<WireEnd>> Connect(
      World& world, ProtocolPoints& points, Process& a, Process& b);
  ~WireEnd() { Close(); }
  WireEnd(const WireEnd&) = delete;
  WireEnd& operator=(const WireEnd&) = delete;

  // Calls `receive` for each message from now on, those that have come
  // included. It may destroy the end.
  void OnMessage(std::function<void(const WireMessage&)> receive);
  void Send(WireMessage message);
  // Says that nothing follows. May be called twice.
  void Close();

 private:
  struct Shared;
  WireEnd(std::shared_ptr<Shared> shared, int side)
      : shared_(std::move(shared)), side_(side) {}

  const std::shared_ptr<Shared> shared_;
  const int side_;
  bool has_closed_ = false;
};

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_GROUP_WIRE_H_
