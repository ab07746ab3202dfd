// Ranks as processes, one of which is killed or stopped while all sum.

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "base/log.h"
#include "cluster/collective/collective.h"
#include "cluster/collective/socket_endpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::StartsWith;

constexpr int kRanks = 3;
constexpr absl::Duration kJoinLimit = absl::Seconds(60);

// Lines between the test and a rank, over a socket.
class Lines {
 public:
  explicit Lines(int fd) : fd_(fd) {}

  void Write(const std::string& line) const {
    const std::string text = line + "\n";
    // The test may have ended.
    (void)!send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
  }
  // Returns the next line; "gone" if the other end is.
  std::string Read() const {
    std::string line;
    for (char c; read(fd_, &c, 1) == 1;) {
      if (c == '\n') return line;
      line += c;
    }
    return "gone";
  }

 private:
  const int fd_;
};

// Sums until that fails, and says "sum" for each. Returns why it failed.
absl::Status SumOn(Collective& collective, const Lines& test, int rounds) {
  const CollectiveGroup& group = collective.group();
  const int replica = group.own().replicas[0];
  float want = 0;
  for (const CollectiveRank& rank : group.ranks) want += 1 + rank.replicas[0];
  for (int round = 0; round < rounds; ++round) {
    // Small and large packs.
    const size_t count = round % 2 == 0 ? 100 : 300000;
    const std::vector<float> values(count, 1.0f + replica);
    std::vector<float> sums(count);
    absl::Status status;
    collective.AllReduce({{replica, values}}, absl::MakeSpan(sums),
                         [&](const absl::Status& ended) { status = ended; });
    collective.Await().IgnoreError();
    if (!status.ok()) return status;
    const bool right = std::all_of(sums.begin(), sums.end(),
                                   [&](float sum) { return sum == want; });
    test.Write(right ? "sum" : "wrong sum");
  }
  return absl::OkStatus();
}

// How ranks sum. With kMachines two of them have addresses of one host; with
// kLanes all have, and pieces travel in memory.
enum class Way { kSockets, kSharedMemory, kMachines, kLanes };

// A rank's life: sums with all; when one is lost, with those that are left.
void RunRank(int rank, Way way, const Lines& test) {
  SocketEndpoint::Options options;
  options.shared_memory = way == Way::kSharedMemory;
  options.piece_lanes = way == Way::kLanes || way == Way::kSharedMemory;
  if (way == Way::kMachines) {
    options.protocol.algorithm = ReductionAlgorithm::kMachines;
  }
  // On a machine that is busy with other tests a rank may not run for seconds.
  options.protocol.silence = absl::Seconds(5);
  const std::string host =
      way == Way::kMachines && rank == 2 ? "127.0.0.2" : "127.0.0.1";
  auto endpoint = SocketEndpoint::Start(host, 0, options);
  CHECK(endpoint.ok()) << endpoint.status();
  test.Write(absl::StrCat(host, ":", (*endpoint)->port()));
  CollectiveGroup group;
  group.epoch = 1;
  group.own_rank = rank;
  const std::vector<std::string> addresses = absl::StrSplit(test.Read(), ' ');
  for (int i = 0; i < kRanks; ++i) group.ranks.push_back({addresses[i], {i}});
  absl::Status lost;
  {
    auto collective = (*endpoint)->Join(group, kJoinLimit);
    CHECK(collective.ok()) << collective.status();
    lost = SumOn(**collective, test, 1 << 30);
  }
  test.Write(absl::StrCat("lost: ", lost.message()));
  const std::optional<int> gone = LostRank(lost);
  if (!gone.has_value()) return;
  group.epoch = 2;
  group.ranks.erase(group.ranks.begin() + *gone);
  if (rank > *gone) --group.own_rank;
  auto smaller = (*endpoint)->Join(group, kJoinLimit);
  CHECK(smaller.ok()) << smaller.status();
  const absl::Status status = SumOn(**smaller, test, 10);
  test.Write(status.ok() ? "went on" : std::string(status.message()));
}

class CollectiveProcessTest : public testing::TestWithParam<Way> {
 protected:
  void Start() {
    for (int rank = 0; rank < kRanks; ++rank) {
      int ends[2];
      ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
      pids_.push_back(fork());
      ASSERT_GE(pids_.back(), 0);
      if (pids_.back() == 0) {
        close(ends[0]);
        for (const int other : fds_) close(other);
        RunRank(rank, GetParam(), Lines(ends[1]));
        _exit(0);
      }
      close(ends[1]);
      fds_.push_back(ends[0]);
    }
    std::string addresses;
    for (const int fd : fds_) {
      absl::StrAppend(&addresses, addresses.empty() ? "" : " ",
                      Lines(fd).Read());
    }
    for (const int fd : fds_) Lines(fd).Write(addresses);
  }

  void TearDown() override {
    for (size_t i = 0; i < pids_.size(); ++i) {
      kill(pids_[i], SIGKILL);
      waitpid(pids_[i], nullptr, 0);
      close(fds_[i]);
    }
    pids_.clear();
    fds_.clear();
  }

  // Strikes a rank after some of its sums; expects the others to name it, to
  // have no wrong sum and to go on without it.
  void ExpectOthersGoOn(int signal, int victim, int sums) {
    SCOPED_TRACE(absl::StrCat("rank ", victim, " after ", sums, " sums"));
    Start();
    for (int i = 0; i < sums; ++i) ASSERT_EQ(Lines(fds_[victim]).Read(), "sum");
    kill(pids_[victim], signal);
    for (int rank = 0; rank < kRanks; ++rank) {
      if (rank == victim) continue;
      std::string line;
      do {
        line = Lines(fds_[rank]).Read();
      } while (line == "sum");
      EXPECT_THAT(line, StartsWith(absl::StrCat("lost: rank ", victim, " (")));
      do {
        line = Lines(fds_[rank]).Read();
      } while (line == "sum");
      EXPECT_EQ(line, "went on");
    }
    TearDown();
  }

  std::vector<pid_t> pids_;
  std::vector<int> fds_;
};

TEST_P(CollectiveProcessTest, OthersNameAKilledRankAndGoOn) {
  std::mt19937 random(1);
  for (int i = 0; i < 9; ++i) {
    ExpectOthersGoOn(SIGKILL, i % kRanks, static_cast<int>(random() % 40));
    if (HasFailure()) return;
  }
}

TEST_P(CollectiveProcessTest, OthersNameAStoppedRankAndGoOn) {
  std::mt19937 random(2);
  for (int i = 0; i < 3; ++i) {
    ExpectOthersGoOn(SIGSTOP, i % kRanks, static_cast<int>(random() % 40));
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, CollectiveProcessTest,
                         testing::Values(Way::kSockets, Way::kSharedMemory,
                                         Way::kMachines, Way::kLanes),
                         [](const auto& info) {
                           switch (info.param) {
                             case Way::kSockets:
                               return "Sockets";
                             case Way::kSharedMemory:
                               return "SharedMemory";
                             case Way::kLanes:
                               return "Lanes";
                             case Way::kMachines:
                               break;
                           }
                           return "Machines";
                         });

}  // namespace
}  // namespace parasol
