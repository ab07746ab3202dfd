// Processes of a program as threads, with real connections: one that is lost,
// and one that starts anew, unwinds by an exception.

#include "loop/peers/group_peers.h"

#include <array>
#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/barrier.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "cluster/collective/socket_endpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "loop/peers/lone_peers.h"
#include "loop/peers/testing/small_program.h"
#include "storage/checkpoint_store.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kReplicas = 2;  // of each process

struct StartsAnew {
  Descriptor kept;
};
struct IsKilled {};

// Returns ports that nobody has.
std::vector<int> FreePorts(int count) {
  std::vector<std::unique_ptr<SocketEndpoint>> endpoints;
  std::vector<int> ports;
  for (int i = 0; i < count; ++i) {
    endpoints.push_back(*SocketEndpoint::Start("127.0.0.1", 0, {}));
    ports.push_back(endpoints.back()->port());
  }
  return ports;
}

// Calls `joined` when its process and all others are in a group.
class WatchedEndpoint : public CollectiveEndpoint {
 public:
  WatchedEndpoint(std::unique_ptr<CollectiveEndpoint> endpoint,
                  std::function<void()> joined)
      : endpoint_(std::move(endpoint)), joined_(std::move(joined)) {}

  absl::StatusOr<std::unique_ptr<Collective>> Join(
      const CollectiveGroup& group, absl::Duration limit) override {
    absl::StatusOr<std::unique_ptr<Collective>> made =
        endpoint_->Join(group, limit);
    if (made.ok()) joined_();
    return made;
  }
  void CancelJoin(int64_t epoch) override { endpoint_->CancelJoin(epoch); }

 private:
  const std::unique_ptr<CollectiveEndpoint> endpoint_;
  const std::function<void()> joined_;
};

// What a process has come to.
struct Ended {
  absl::Status result = absl::UnknownError("never ended");
  std::vector<float> values;
  std::vector<int64_t> began_at;  // of each life
};

class GroupPeersTest : public testing::Test {
 protected:
  // Called before a sum or a commit; throws to end the process's life.
  using Hook = std::function<absl::Status(int worker, int life, int64_t step)>;

  GroupPeersTest()
      : directory_(absl::StrCat(
            testing::TempDir(), "/group_peers_",
            testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::remove_all(directory_);
  }

  GroupPeers::Options OptionsOf(int worker, int life = 0) {
    GroupPeers::Options options;
    options.join_limit = join_limit_;
    options.peer_timeout = peer_timeout_;
    options.rank = worker;
    for (const int port : ports_) {
      options.addresses.push_back(absl::StrCat("127.0.0.1:", port));
    }
    options.replicas = kReplicas;
    options.settings.checkpoint_directory = has_directory_ ? directory_ : "";
    options.settings.checkpoint.set_every_steps(4);
    using Endpoint = absl::StatusOr<std::unique_ptr<CollectiveEndpoint>>;
    options.listen = [this, worker, life]() -> Endpoint {
      before_meeting_(worker, life);
      SocketEndpoint::Options sockets;
      sockets.shared_memory = false;
      ASSIGN_OR_RETURN(
          std::unique_ptr<CollectiveEndpoint> endpoint,
          SocketEndpoint::Start("127.0.0.1", ports_[worker], sockets));
      return std::make_unique<WatchedEndpoint>(
          std::move(endpoint), [this, worker, life] { joined_(worker, life); });
    };
    options.restart = [](Descriptor kept) -> absl::Status {
      throw StartsAnew{std::move(kept)};
    };
    return options;
  }

  SmallProgram::Options ProgramOf(int worker, int life) {
    SmallProgram::Options program = {
        .first_replica = worker * kReplicas,
        .replicas = kReplicas,
        .all_replicas = kReplicas * static_cast<int>(ports_.size()),
        .iterations = iterations_};
    program.before_sum = [=, this](int64_t step) {
      return before_sum_(worker, life, step);
    };
    program.before_commit = [=, this](int64_t step) {
      return before_commit_(worker, life, step);
    };
    if (worker == odd_one_) program.elements = 4;
    program.parts = {"model g with layer { dense { units: 3 } }"};
    if (worker == odd_model_) program.parts.front() = "model g with nothing";
    return program;
  }

  // Lives until the program ends, over and over, or is lost for good.
  void Live(int worker, Ended& ended) {
    Descriptor kept;
    for (int life = 0; life < lives_of_[worker]; ++life) {
      GroupPeers::Options options = OptionsOf(worker, life);
      options.kept = std::move(kept);
      kept = Descriptor();
      GroupPeers peers(std::move(options), Clock::Real());
      peers_[worker] = &peers;
      SmallProgram program(ProgramOf(worker, life));
      try {
        ended.result = program.Run(peers);
        ended.began_at.push_back(program.began_at());
        ended.values = program.Values();
        return;
      } catch (StartsAnew& again) {
        ended.began_at.push_back(program.began_at());
        kept = std::move(again.kept);
      } catch (const IsKilled&) {
        ended.began_at.push_back(program.began_at());
      }
    }
  }

  std::vector<Ended> RunAll(int workers) {
    ports_ = FreePorts(workers);
    return RunAgain(workers);
  }

  // Runs the first processes of those that there are.
  std::vector<Ended> RunAgain(int workers, int first = 0) {
    std::vector<Ended> ended(workers);
    std::vector<std::jthread> threads;
    for (int worker = first; worker < workers; ++worker) {
      threads.emplace_back([&, worker] { Live(worker, ended[worker]); });
    }
    threads.clear();
    return ended;
  }

  // Returns the values of one process that has all replicas.
  std::vector<float> Undisturbed(int workers) const {
    SmallProgram program({.replicas = kReplicas * workers,
                          .all_replicas = kReplicas * workers,
                          .iterations = iterations_});
    LonePeers peers(kReplicas * workers);
    EXPECT_OK(program.Run(peers));
    return program.Values();
  }

  void ExpectUndisturbed(const std::vector<Ended>& ended) const {
    const std::vector<float> values =
        Undisturbed(static_cast<int>(ended.size()));
    for (const Ended& one : ended) {
      EXPECT_OK(one.result);
      EXPECT_EQ(one.values, values);
    }
  }

  const std::string directory_;
  std::vector<int> ports_;
  bool has_directory_ = true;
  int64_t iterations_ = 10;
  absl::Duration join_limit_ = absl::Seconds(3);
  absl::Duration peer_timeout_ = absl::Minutes(5);
  int odd_one_ = -1;    // the worker that has another variable
  int odd_model_ = -1;  // the worker that has another model
  // How often each worker comes to life at most.
  std::vector<int> lives_of_ = {100, 100, 100};
  Hook before_sum_ = [](int, int, int64_t) { return absl::OkStatus(); };
  Hook before_commit_ = [](int, int, int64_t) { return absl::OkStatus(); };
  // Called before a process makes an endpoint, and when all have joined.
  std::function<void(int worker, int life)> before_meeting_ = [](int, int) {};
  std::function<void(int worker, int life)> joined_ = [](int, int) {};
  std::array<std::atomic<GroupPeers*>, 3> peers_ = {};
};

TEST_F(GroupPeersTest, ProcessesHaveTheBitsOfOneThatHasAllReplicas) {
  ExpectUndisturbed(RunAll(3));
  EXPECT_THAT(*CheckpointStore(directory_).ListSteps(),
              ElementsAre(0, 4, 8, 10));
}

TEST_F(GroupPeersTest, OneProcessIsAGroup) { ExpectUndisturbed(RunAll(1)); }

TEST_F(GroupPeersTest, WithoutADirectoryAllBeginAtTheBeginning) {
  has_directory_ = false;
  ExpectUndisturbed(RunAll(2));
  EXPECT_FALSE(fs::exists(directory_));
}

TEST_F(GroupPeersTest, TheOthersGoOnFromTheIterationInWhichOneIsLost) {
  before_commit_ = [](int worker, int life, int64_t step) -> absl::Status {
    if (worker == 1 && life == 0 && step == 6) throw IsKilled();
    return absl::OkStatus();
  };
  const std::vector<Ended> ended = RunAll(3);
  ExpectUndisturbed(ended);
  // Not from a checkpoint, of which the last one is at 4.
  for (const Ended& one : ended) EXPECT_EQ(one.began_at.back(), 6);
}

TEST_F(GroupPeersTest, Worker0IsLostLikeAnyOther) {
  before_sum_ = [](int worker, int life, int64_t step) -> absl::Status {
    if (worker == 0 && life == 0 && step == 7) throw IsKilled();
    return absl::OkStatus();
  };
  const std::vector<Ended> ended = RunAll(2);
  ExpectUndisturbed(ended);
  for (const Ended& one : ended) EXPECT_EQ(one.began_at.back(), 7);
}

TEST_F(GroupPeersTest, WhenAllAreLostTheCheckpointIsLeft) {
  absl::Barrier* const all = new absl::Barrier(2);
  before_commit_ = [all](int, int life, int64_t step) -> absl::Status {
    if (life != 0 || step != 6) return absl::OkStatus();
    if (all->Block()) delete all;
    throw IsKilled();
  };
  const std::vector<Ended> ended = RunAll(2);
  ExpectUndisturbed(ended);
  for (const Ended& one : ended) EXPECT_THAT(one.began_at, ElementsAre(0, 4));
}

TEST_F(GroupPeersTest, OneAfterTheOtherIsLost) {
  iterations_ = 12;
  std::vector<std::atomic<bool>> was_lost(3);
  before_sum_ = [&](int worker, int, int64_t step) -> absl::Status {
    if (step == 3 * (worker + 1) && !was_lost[worker].exchange(true)) {
      throw IsKilled();
    }
    return absl::OkStatus();
  };
  ExpectUndisturbed(RunAll(3));
}

TEST_F(GroupPeersTest, AnErrorOfOneEndsAllAndNamesIt) {
  before_sum_ = [](int worker, int, int64_t step) {
    return worker == 1 && step == 3
               ? absl::FailedPreconditionError("my step has failed")
               : absl::OkStatus();
  };
  const std::vector<Ended> ended = RunAll(2);
  EXPECT_THAT(ended[1].result, StatusIs(absl::StatusCode::kFailedPrecondition,
                                        HasSubstr("my step has failed")));
  EXPECT_THAT(ended[0].result,
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("worker/1: my step has failed")));
}

TEST_F(GroupPeersTest, AnotherProgramOnOneIsRefusedByAll) {
  odd_one_ = 1;
  for (const Ended& one : RunAll(2)) {
    EXPECT_THAT(one.result,
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("worker/1 runs another program"),
                               HasSubstr("often of shape [4]"),
                               HasSubstr("often of shape [3]"))));
  }
}

TEST_F(GroupPeersTest, AnotherModelOfTheSameVariablesIsRefusedByAll) {
  odd_model_ = 0;
  for (const Ended& one : RunAll(2)) {
    EXPECT_THAT(one.result,
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("worker/1 runs another program"),
                               HasSubstr("model g with nothing"),
                               HasSubstr("dense { units: 3 }"))));
  }
}

TEST_F(GroupPeersTest, OneThatMakesAnotherCallEndsAll) {
  before_sum_ = [this](int worker, int, int64_t step) {
    if (worker != 1 || step != 2) return absl::OkStatus();
    return peers_[1].load()->AllGather("my values", "x").status();
  };
  for (const Ended& one : RunAll(2)) {
    EXPECT_THAT(one.result, StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST_F(GroupPeersTest, AllStopAtTheSameIterationWithACheckpoint) {
  before_commit_ = [this](int worker, int, int64_t step) {
    if (worker == 1 && step == 5) peers_[1].load()->Stop();
    return absl::OkStatus();
  };
  for (const Ended& one : RunAll(2)) {
    EXPECT_THAT(one.result, StatusIs(absl::StatusCode::kCancelled,
                                     HasSubstr("stopped at step 6")));
  }
  EXPECT_THAT(*CheckpointStore(directory_).ListSteps(), ElementsAre(0, 4, 6));
}

// A process that is lost when the others have ended comes back alone.
TEST_F(GroupPeersTest, OneThatComesBackAfterTheEndHasNothingToDo) {
  ExpectUndisturbed(RunAll(2));
  join_limit_ = absl::Milliseconds(50);
  for (const int alone : {0, 1}) {
    const Ended ended = RunAgain(alone + 1, alone).back();
    EXPECT_OK(ended.result);
    EXPECT_EQ(ended.values, Undisturbed(2));
  }
}

TEST_F(GroupPeersTest, OneThatHasMoreToDoWaitsForTheOthers) {
  ExpectUndisturbed(RunAll(2));
  iterations_ = 11;
  join_limit_ = absl::Milliseconds(20);
  peer_timeout_ = absl::Milliseconds(200);
  EXPECT_THAT(RunAgain(1).front().result,
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  peer_timeout_ = absl::Minutes(5);
  join_limit_ = absl::Seconds(3);
  ExpectUndisturbed(RunAgain(2));
}

// What is between a stop and another life is not forgotten.
TEST_F(GroupPeersTest, OneThatIsToldToStopWhenAnotherIsLostStops) {
  lives_of_ = {2, 1};
  before_commit_ = [this](int worker, int, int64_t step) -> absl::Status {
    if (step != 6) return absl::OkStatus();
    if (worker == 1) throw IsKilled();
    peers_[0].load()->Stop();
    return absl::OkStatus();
  };
  EXPECT_THAT(RunAll(2).front().result,
              StatusIs(absl::StatusCode::kCancelled,
                       HasSubstr("stopped at step 6 when another process")));
  EXPECT_THAT(*CheckpointStore(directory_).ListSteps(), ElementsAre(0, 4, 6));
}

TEST_F(GroupPeersTest, OneThatIsToldToStopWhileItWaitsHasACheckpoint) {
  lives_of_ = {2, 1};
  before_commit_ = [](int worker, int life, int64_t step) -> absl::Status {
    if (worker == 1 && life == 0 && step == 6) throw IsKilled();
    return absl::OkStatus();
  };
  // The values of step 6 are in the memory of its second life alone.
  before_meeting_ = [this](int worker, int life) {
    if (life == 1) peers_[worker].load()->Stop();
  };
  join_limit_ = absl::Milliseconds(200);
  EXPECT_THAT(RunAll(2).front().result, StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(*CheckpointStore(directory_).ListSteps(), ElementsAre(0, 4, 6));
  // A stop is no end.
  lives_of_ = {1, 1};
  before_meeting_ = [](int, int) {};
  before_commit_ = [](int, int, int64_t) { return absl::OkStatus(); };
  join_limit_ = absl::Seconds(3);
  const std::vector<Ended> ended = RunAgain(2);
  ExpectUndisturbed(ended);
  for (const Ended& one : ended) EXPECT_THAT(one.began_at, ElementsAre(6));
}

TEST_F(GroupPeersTest, OneThatWaitsInVainLeavesACheckpoint) {
  lives_of_ = {2, 1};
  join_limit_ = absl::Milliseconds(500);
  peer_timeout_ = absl::Milliseconds(500);
  before_commit_ = [](int worker, int, int64_t step) -> absl::Status {
    if (worker == 1 && step == 6) throw IsKilled();
    return absl::OkStatus();
  };
  EXPECT_THAT(RunAll(2).front().result,
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_THAT(*CheckpointStore(directory_).ListSteps(), ElementsAre(0, 4, 6));
}

TEST_F(GroupPeersTest, AStopOfOneWhileAllMeetStopsAll) {
  for (const int stopped : {0, 1}) {
    for (const int when_joined : {0, 1}) {
      joined_ = [&](int worker, int) {
        if (worker == when_joined) peers_[stopped].load()->Stop();
      };
      for (const Ended& one : RunAll(2)) {
        EXPECT_THAT(one.result, StatusIs(absl::StatusCode::kCancelled));
        EXPECT_THAT(one.began_at, ElementsAre(-1));
      }
    }
  }
}

TEST_F(GroupPeersTest, ManySumsMayBePending) {
  constexpr size_t kSums = 3000;
  std::vector<std::vector<float>> sums(2, std::vector<float>(kSums));
  before_sum_ = [&](int worker, int, int64_t step) -> absl::Status {
    if (step != 0) return absl::OkStatus();
    const std::vector<float> one(1, 1.0f);
    for (size_t i = 0; i < kSums; ++i) {
      peers_[worker].load()->BeginAllReduce(
          "many", {{worker * kReplicas, one}, {worker * kReplicas + 1, one}},
          absl::MakeSpan(&sums[worker][i], 1));
    }
    return peers_[worker].load()->Await();
  };
  ExpectUndisturbed(RunAll(2));
  for (const std::vector<float>& of_worker : sums) {
    EXPECT_THAT(of_worker, Each(4.0f));
  }
}

TEST_F(GroupPeersTest, ACallBeforeTheBeginningIsAnError) {
  ports_ = FreePorts(1);
  GroupPeers peers(OptionsOf(0), Clock::Real());
  EXPECT_THAT(peers.AllGather("early", "x"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("early: the processes have not met")));
}

TEST_F(GroupPeersTest, OneThatIsMissingIsNamed) {
  ports_ = FreePorts(2);
  GroupPeers::Options options = OptionsOf(0);
  options.join_limit = absl::Milliseconds(20);
  options.peer_timeout = absl::Milliseconds(50);
  GroupPeers peers(std::move(options), Clock::Real());
  SmallProgram program(ProgramOf(0, 0));
  EXPECT_THAT(program.Run(peers),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       HasSubstr(absl::StrCat(":", ports_[1]))));
}

}  // namespace
}  // namespace parasol
