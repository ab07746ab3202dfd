#ifndef PARASOL_CLUSTER_COLLECTIVE_TESTING_SIMULATED_GROUP_H_
#define PARASOL_CLUSTER_COLLECTIVE_TESTING_SIMULATED_GROUP_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cluster/collective/group_protocol.h"
#include "cluster/collective/testing/contributions.h"

namespace parasol {

// A group of GroupProtocols over a simulated network, in an order that a seed
// decides: when operations are begun, when messages leave and when they arrive.
// One rank may be killed or stopped after any number of events.
class SimulatedGroup {
 public:
  // kFlip: a bit of the next message to the victim is flipped, in its header or
  // in what follows that is no piece.
  enum class Fault { kKill, kStop, kStopThenGoOn, kAbort, kFlip };
  struct FaultAt {
    Fault fault = Fault::kKill;
    int victim = 0;
    int after = 0;  // events
  };
  struct Options {
    Layout layout;
    int seed = 1;
    std::vector<size_t> packs;  // elements of the all-reduces, in order
    std::optional<ReductionAlgorithm> algorithm = std::nullopt;
    std::shared_ptr<const AllReducePlanner> planner = nullptr;
    size_t ranks_of_a_machine = 2;
    std::optional<FaultAt> fault = std::nullopt;
  };

  explicit SimulatedGroup(Options options);
  ~SimulatedGroup();

  // Goes on until nothing is pending at any rank that lives, or until that
  // takes longer than the limit.
  void Run();

  // Each returns what has happened after Run().
  int events() const { return events_; }
  // The time from the fault, or from the start, to the end.
  absl::Duration duration() const { return now_ - fault_time_; }
  // Operations at ranks that live which never ended.
  int open() const;
  // Sums that a rank was told are right and are not.
  int wrong() const { return wrong_; }
  // The errors that living ranks' operations ended with.
  const std::vector<absl::Status>& errors() const { return errors_; }

  // One operation of a rank: two contributions and the sum, or strings.
  struct Call;

 private:
  // A message: first it waits to leave, then it is under way.
  struct Message {
    GroupProtocol::Frame frame;
    std::string bytes;
    bool has_left = false;
  };
  struct Link {
    std::deque<Message> messages;
    bool is_cut = false;     // nothing follows; the end is told after the rest
    bool has_ended = false;  // the end was told
  };
  struct Rank {
    std::unique_ptr<GroupProtocol> protocol;
    std::vector<std::unique_ptr<Call>> calls;
    bool is_dead = false;
    bool is_stopped = false;
  };

  bool Acts(int rank) const {
    return !ranks_[rank].is_dead && !ranks_[rank].is_stopped;
  }
  // Does one thing of those that can be done; returns false if there is none.
  bool Step();
  void BeginNext(int rank);
  void Leave(Link& link, int from);
  void Deliver(Link& link, int from, int to);
  void Strike();
  void Kill(int victim);
  // Gives the protocol of rank `to` a message as it has come from rank `from`.
  void Take(int from, int to, std::string message);
  // Takes what has come up at the rank.
  void Collect(int rank);
  void Ended(Call& call, int rank, const absl::Status& status);

  const Options options_;
  std::mt19937 random_;
  std::vector<Rank> ranks_;
  std::map<std::pair<int, int>, Link> links_;
  absl::Time now_ = absl::FromUnixSeconds(1000);
  absl::Time fault_time_ = now_;
  int events_ = 0;
  int wrong_ = 0;
  bool flips_next_ = false;  // message to the victim
  std::vector<absl::Status> errors_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_COLLECTIVE_TESTING_SIMULATED_GROUP_H_
