#ifndef PARASOL_TESTS_CLUSTER_CUTTING_RELAY_H_
#define PARASOL_TESTS_CLUSTER_CUTTING_RELAY_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/descriptor.h"

namespace parasol {

// A TCP relay for tests: it passes on what two ends send each other, in pieces
// of a given size, and cuts each connection after a given byte. Thread-safe.
class CuttingRelay {
 public:
  enum class Cut {
    kReset,  // both ends get a reset; what they have not read is lost
    kClose,  // both ends get what was sent before, then the end
    kHalf,   // the receiver gets the end; the other direction goes on
    kNone,   // the connection goes on; Plan::at_cut is all that happens
  };
  // The fate of one connection.
  struct Plan {
    Cut cut = Cut::kReset;
    // The direction that is cut, and how many bytes pass in it before the cut.
    bool to_target = true;
    size_t bytes = SIZE_MAX;
    // Most bytes that are passed on at once.
    size_t piece_bytes = 64 << 10;
    // Called on the relay's thread when the connection is cut.
    std::function<void()> at_cut = nullptr;
  };

  // Listens on `host` and `port`, and connects to the same port of
  // `target_host`. `plan` is called on the relay's thread for each connection,
  // with its number: 0, 1, 2, … Returns null if the port is in use.
  static std::unique_ptr<CuttingRelay> Start(
      const std::string& host, const std::string& target_host, int port,
      std::function<Plan(size_t connection)> plan);
  ~CuttingRelay();
  CuttingRelay(const CuttingRelay&) = delete;
  CuttingRelay& operator=(const CuttingRelay&) = delete;

  // Resets the connections that there are, soon. Any thread may call it.
  void ResetAll();

  // Number of connections that were cut.
  size_t cuts() const { return cuts_; }

 private:
  // One direction of a connection.
  struct Direction {
    std::vector<char> kept;  // received, and not yet passed on
    size_t passed_on = 0;    // bytes, of those that the cut counts
    bool has_ended = false;  // nothing is passed on any more
  };
  struct Connection {
    Plan plan;
    std::array<Descriptor, 2> ends;  // the one that connected, the target
    // directions[i] is from ends[i] to the other one.
    std::array<Direction, 2> directions;
  };

  CuttingRelay(Descriptor listening, const std::string& target_host, int port,
               std::function<Plan(size_t)> plan);

  void Run();
  void Accept();
  // Passes on what there is. Returns false when the connection has ended.
  bool Serve(Connection& connection);
  // Returns false if the connection has ended, in one way or another.
  bool PassOn(Connection& connection, size_t from);
  // Returns false if the connection has ended with it.
  bool DoCut(Connection& connection);
  static void Reset(Connection& connection);

  const std::string target_host_;
  const int port_;
  const std::function<Plan(size_t)> plan_;
  const Descriptor listening_;
  const Descriptor wake_;              // an eventfd
  std::list<Connection> connections_;  // the thread's
  size_t accepted_ = 0;                // the thread's
  std::atomic<size_t> cuts_ = 0;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> resets_all_ = false;
  std::thread thread_;
};

}  // namespace parasol

#endif  // PARASOL_TESTS_CLUSTER_CUTTING_RELAY_H_
