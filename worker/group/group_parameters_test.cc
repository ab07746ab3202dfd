// Workers that train with each other as threads: the real parameters over
// groups in memory, and a chief that names groups by hand.

#include "worker/group/group_parameters.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "cluster/collective/testing/memory_network.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/group/testing/assignments.h"
#include "worker/group/testing/cut_endpoint.h"
#include "worker/group/testing/group_fixture.h"

namespace parasol {
namespace {

using group_testing::Assignments;
using group_testing::Contents;
using group_testing::ContentsOf;
using group_testing::CutEndpoint;
using group_testing::Initialize;
using group_testing::kSizes;
using group_testing::kWidth;
using group_testing::MakeState;
using ::testing::ElementsAre;

constexpr int kReplicas = 3;
constexpr int64_t kSteps = 5;

GroupParameters::Options OptionsOf(int worker) {
  GroupParameters::Options options;
  options.task.set_role("worker");
  options.task.set_index(worker);
  options.task.set_incarnation(100 + worker);
  options.replicas = kReplicas;
  options.bytes_per_pack = 8;  // v2 and v1 + v0 in packs of their own
  options.report_delay = absl::Milliseconds(1);
  return options;
}

// One worker with a thread that trains as SyncTrainingLoop does.
class Worker {
 public:
  Worker(int index, Assignments& assignments, MemoryNetwork& network,
         int cut_at = 0)
      : index_(index),
        assignments_(assignments),
        endpoint_(network.MakeEndpoint(absl::StrCat("h:", index)), cut_at),
        state_(MakeState()) {
    parameters_ = std::make_unique<GroupParameters>(
        OptionsOf(index), *state_, endpoint_, Clock::Real(), metrics_);
  }
  ~Worker() { Stop(); }

  void Start() {
    thread_ = std::thread([this] { Train(); });
  }
  void AwaitEnd() {
    if (thread_.joinable()) thread_.join();
  }
  // Ends the worker after its step.
  void Stop() {
    if (parameters_ == nullptr) return;
    parameters_->Stop();
    AwaitEnd();
    parameters_.reset();
  }

  GroupState& state() { return *state_; }
  int begun() const { return endpoint_.begun(); }
  CutEndpoint::Hooks& hooks() { return endpoint_.hooks(); }
  GroupParameters& parameters() { return *parameters_; }

  void Claim() { parameters_->Hear(assignments_.Claim(parameters_->broken())); }
  // Pushes one pack of a replica's gradients to step 0.
  void PushPart(int replica) {
    std::vector<std::vector<float>> values;
    for (const int64_t size : kSizes) values.emplace_back(size, 1.0f);
    const Gradients gradients =
        Compute(0, replica, values, std::vector<float>(kWidth));
    TrainingParameters::PushRequest push;
    push.gradients = {{2, gradients.variables[2]}};
    push.sync = {.step = 0, .replica = replica};
    parameters_->Push(std::move(push));
  }

 private:
  struct Gradients {
    std::vector<std::vector<float>> variables;
    std::vector<uint64_t> ids;
    std::vector<float> rows;
  };
  using PendingPtr = std::unique_ptr<TrainingParameters::Pending>;

  void Train() {
    while (state_->version().step < kSteps && TrainStep().ok()) {
    }
  }

  absl::Status TrainStep() {
    std::vector<std::vector<float>> values;
    std::vector<float> row(kWidth);
    const std::vector<uint64_t> ids = {7};
    TrainingParameters::PullRequest pull;
    for (size_t i = 0; i < std::size(kSizes); ++i) {
      values.emplace_back(kSizes[i]);
    }
    for (size_t i = 0; i < values.size(); ++i) {
      pull.targets.push_back({i, absl::MakeSpan(values[i])});
    }
    pull.rows = {{0, ids, absl::MakeSpan(row)}};
    PendingPtr pulled = parameters_->Pull(std::move(pull));
    while (!pulled->WaitFor(absl::Milliseconds(1))) Claim();
    RETURN_IF_ERROR(pulled->Wait());
    const int64_t step = pulled->outcome().max_updates;
    if (step >= kSteps) return absl::OkStatus();
    std::map<int, Gradients> computed;
    std::vector<PendingPtr> pushes;
    const auto compute = [&] {
      for (const int replica : assignments_.ReplicasOf(index_)) {
        if (computed.contains(replica)) continue;
        computed[replica] = Compute(step, replica, values, row);
        Push(step, replica, computed[replica], pushes);
      }
    };
    compute();
    for (size_t i = 0; i < pushes.size(); ++i) {
      while (!pushes[i]->WaitFor(absl::Milliseconds(1))) {
        Claim();
        compute();
      }
      RETURN_IF_ERROR(pushes[i]->Wait());
    }
    // A worker without replicas waits for the others.
    while (pushes.empty() && state_->version().step == step) {
      RETURN_IF_ERROR(state_->steps().ended());
      Claim();
      compute();
    }
    return absl::OkStatus();
  }

  static Gradients Compute(int64_t step, int replica,
                           const std::vector<std::vector<float>>& values,
                           const std::vector<float>& row) {
    Gradients gradients;
    const float factor = 0.1f * (replica + 1) + 0.01f * step;
    for (const std::vector<float>& value : values) {
      std::vector<float>& gradient = gradients.variables.emplace_back();
      for (size_t i = 0; i < value.size(); ++i) {
        gradient.push_back(factor * value[i] + 0.001f * i);
      }
    }
    gradients.ids = {7, uint64_t(replica)};
    for (size_t i = 0; i < 2 * kWidth; ++i) {
      gradients.rows.push_back(factor * row[i % kWidth] + 0.003f * (i + 1));
    }
    return gradients;
  }

  // In two parts, as the backward pass gives them.
  void Push(int64_t step, int replica, const Gradients& gradients,
            std::vector<PendingPtr>& pushes) {
    TrainingParameters::PushRequest last, first;
    last.gradients = {{2, gradients.variables[2]}};
    first.gradients = {{1, gradients.variables[1]},
                       {0, gradients.variables[0]}};
    first.rows = {{0, gradients.ids, gradients.rows}};
    for (TrainingParameters::PushRequest* push : {&last, &first}) {
      push->sync = {.step = step, .replica = replica};
      pushes.push_back(parameters_->Push(std::move(*push)));
    }
  }

  const int index_;
  Assignments& assignments_;
  MetricsRegistry metrics_;
  CutEndpoint endpoint_;
  std::unique_ptr<GroupState> state_;
  std::unique_ptr<GroupParameters> parameters_;
  std::thread thread_;
};

class GroupParametersTest : public testing::Test {
 protected:
  Worker& Add(int index, int cut_at = 0) {
    workers_[index] =
        std::make_unique<Worker>(index, assignments_, network_, cut_at);
    return *workers_[index];
  }

  // Returns what one worker alone ends with.
  Contents Want() {
    Assignments assignments;
    MemoryNetwork network;
    assignments.Assign({{0, {0, 1, 2}}});
    Worker alone(0, assignments, network);
    Initialize(alone.state());
    alone.Start();
    alone.AwaitEnd();
    return ContentsOf(alone.state());
  }

  MemoryNetwork network_;
  Assignments assignments_;
  std::map<int, std::unique_ptr<Worker>> workers_;
};

TEST_F(GroupParametersTest, AnyNumberOfWorkersEndsWithTheSameBits) {
  const Contents want = Want();
  // More workers than replicas, and replicas that are no neighbours.
  const std::vector<std::map<int, std::vector<int>>> assignments = {
      {{0, {0}}, {1, {1, 2}}},
      {{0, {1}}, {1, {0, 2}}},
      {{0, {0}}, {1, {1}}, {2, {2}}},
      {{0, {}}, {1, {1}}, {2, {0}}, {3, {2}}}};
  for (const auto& shares : assignments) {
    assignments_.Assign(shares);
    for (const auto& [index, replicas] : shares) Add(index);
    Initialize(workers_[0]->state());
    for (const auto& [index, worker] : workers_) worker->Start();
    for (const auto& [index, worker] : workers_) worker->AwaitEnd();
    for (const auto& [index, worker] : workers_) {
      EXPECT_EQ(worker->state().version().step, kSteps);
      EXPECT_EQ(ContentsOf(worker->state()), want);
    }
    workers_.clear();
  }
}

TEST_F(GroupParametersTest, AConnectionThatBreaksAnywhereChangesNoBit) {
  const Contents want = Want();
  for (const int cut_worker : {0, 1}) {
    bool was_cut = true;
    for (int cut_at = 1; was_cut; ++cut_at) {
      SCOPED_TRACE(absl::StrCat("worker ", cut_worker, ", ", cut_at));
      assignments_.Assign({{0, {0, 2}}, {1, {1}}});
      Add(0, cut_worker == 0 ? cut_at : 0);
      Add(1, cut_worker == 1 ? cut_at : 0);
      Initialize(workers_[0]->state());
      for (const auto& [index, worker] : workers_) worker->Start();
      for (const auto& [index, worker] : workers_) worker->AwaitEnd();
      was_cut = workers_[cut_worker]->begun() >= cut_at;
      for (const auto& [index, worker] : workers_) {
        EXPECT_EQ(ContentsOf(worker->state()), want);
      }
      workers_.clear();
    }
  }
}

TEST_F(GroupParametersTest, AWorkerLostAnywhereChangesNoBit) {
  const Contents want = Want();
  bool was_lost = true;
  for (int lost_at = 1; was_lost; ++lost_at) {
    SCOPED_TRACE(lost_at);
    assignments_.Assign({{0, {0}}, {1, {1}}, {2, {2}}});
    for (const int index : {0, 1}) Add(index);
    Worker& lost = Add(2, lost_at);
    Initialize(workers_[1]->state());
    for (const auto& [index, worker] : workers_) worker->Start();
    // The chief hears of it, and gives its replica to another.
    while (lost.begun() < lost_at &&
           !lost.state().steps().Await(kSteps, absl::Milliseconds(1))) {
    }
    was_lost = lost.begun() >= lost_at;
    assignments_.Assign({{0, {0}}, {1, {1, 2}}});
    // A worker that has made all steps goes on to ask the chief: the other
    // one may need its variables.
    for (const int index : {0, 1}) {
      while (!workers_[index]->state().steps().Await(kSteps,
                                                     absl::Milliseconds(1))) {
        workers_[1 - index]->Claim();
      }
    }
    for (const int index : {0, 1}) workers_[index]->AwaitEnd();
    for (const int index : {0, 1}) {
      EXPECT_EQ(ContentsOf(workers_[index]->state()), want);
    }
    workers_.clear();
  }
}

TEST_F(GroupParametersTest, AWorkerThatComesTakesPartInTheNextSteps) {
  const Contents want = Want();
  for (int64_t joins_at = 0; joins_at < kSteps; ++joins_at) {
    SCOPED_TRACE(joins_at);
    assignments_.Assign({{0, {0, 1, 2}}});
    Initialize(Add(0).state());
    workers_[0]->Start();
    EXPECT_OK(*workers_[0]->state().steps().Await(joins_at, absl::Minutes(1)));
    assignments_.Assign({{0, {0, 2}}, {1, {1}}});
    Add(1).Start();
    // A worker that has made all steps goes on to ask the chief.
    while (!workers_[1]->state().steps().Await(kSteps, absl::Milliseconds(1))) {
      workers_[0]->Claim();
    }
    for (const auto& [index, worker] : workers_) worker->AwaitEnd();
    EXPECT_EQ(ContentsOf(workers_[0]->state()), want);
    // It may have come too late for a step, but not for the variables.
    EXPECT_EQ(ContentsOf(workers_[1]->state()), want);
    workers_.clear();
  }
}

TEST_F(GroupParametersTest, AWorkerThatIsToldToStopLeavesBehindWholeSteps) {
  const Contents want = Want();
  for (int64_t stops_at = 0; stops_at < kSteps; ++stops_at) {
    assignments_.Assign({{0, {0, 2}}, {1, {1}}});
    Initialize(Add(0).state());
    Add(1);
    for (const auto& [index, worker] : workers_) worker->Start();
    EXPECT_OK(*workers_[1]->state().steps().Await(stops_at, absl::Minutes(1)));
    workers_[1]->Stop();
    assignments_.Assign({{0, {0, 1, 2}}});
    workers_[0]->AwaitEnd();
    EXPECT_EQ(ContentsOf(workers_[0]->state()), want);
    workers_.clear();
  }
}

TEST_F(GroupParametersTest, WithoutAGroupAPullWaitsAndNamesTheChief) {
  Worker& worker = Add(0);
  EXPECT_THAT(worker.parameters().Unanswered().peers,
              ElementsAre("the chief, for an assignment"));
  std::vector<float> value(kSizes[1]);
  TrainingParameters::PullRequest pull;
  pull.targets = {{1, absl::MakeSpan(value)}};
  const auto pending = worker.parameters().Pull(std::move(pull));
  EXPECT_FALSE(pending->WaitFor(absl::ZeroDuration()));
  worker.parameters().Stop();
  EXPECT_THAT(pending->Wait(), StatusIs(absl::StatusCode::kCancelled));
}

// A pack is in flight when the thread hears of the next group, and whoever ends
// the old one is slow to tell it.
TEST_F(GroupParametersTest, AnErrorThatIsToldLateDoesNotReachTheNextGroup) {
  const Contents want = Want();
  assignments_.Assign({{0, {0}}, {1, {1, 2}}});
  Worker& worker = Add(0);
  Initialize(worker.state());
  absl::Notification begun;
  absl::Mutex mu;
  bool goes_on = false;
  int joins = 0;
  const std::thread::id hearing = std::this_thread::get_id();
  worker.hooks().sum = [&] {
    if (!begun.HasBeenNotified()) begun.Notify();
  };
  worker.hooks().join = [&](const CollectiveGroup&) {
    absl::MutexLock lock(&mu);
    goes_on |= ++joins == 2;
    return absl::OkStatus();
  };
  worker.hooks().await_ended = [&] {
    absl::MutexLock lock(&mu);
    goes_on = true;
  };
  worker.hooks().sum_error = [&] {
    if (std::this_thread::get_id() != hearing) return;
    absl::MutexLock lock(&mu);
    mu.Await(absl::Condition(&goes_on));
  };
  worker.Claim();
  Add(1).Claim();
  worker.PushPart(0);
  begun.WaitForNotification();
  assignments_.Assign({{0, {0, 1, 2}}});
  worker.Claim();
  worker.Start();
  const bool has_ended =
      worker.state().steps().Await(kSteps, absl::Seconds(20)).has_value();
  EXPECT_TRUE(has_ended) << "the next group makes no step";
  if (has_ended) {
    EXPECT_EQ(ContentsOf(worker.state()), want);
  }
  workers_.clear();
}

TEST_F(GroupParametersTest, ARefusedJoinIsTriedAgainAlsoWithoutVariables) {
  const Contents want = Want();
  assignments_.Assign({{0, {0, 2}}, {1, {1}}});
  Initialize(Add(0).state());
  const absl::Time start = Clock::Real().Now();
  int joins = 0;
  Add(1).hooks().join = [&](const CollectiveGroup&) {
    ++joins;
    return joins <= 3 ? absl::FailedPreconditionError("refuses this rank")
                      : absl::OkStatus();
  };
  for (const auto& [index, worker] : workers_) worker->Start();
  for (const auto& [index, worker] : workers_) worker->AwaitEnd();
  EXPECT_EQ(ContentsOf(workers_[0]->state()), want);
  EXPECT_EQ(ContentsOf(workers_[1]->state()), want);
  // The time of the copy counts as no step's.
  EXPECT_GE(workers_[1]->parameters().Unanswered().last_loading, start);
  workers_.clear();
  EXPECT_GT(joins, 3);
}

TEST_F(GroupParametersTest, AGroupThatIsInvalidAgainAndAgainEndsTheWorker) {
  assignments_.Assign({{0, {0, 1, 2}}});
  Worker& worker = Add(0);
  Initialize(worker.state());
  const std::string why = "rank 1 has begun another operation";
  int joins = 0;
  worker.hooks().join = [&](const CollectiveGroup&) {
    ++joins;
    return absl::InvalidArgumentError(why);
  };
  worker.Start();
  worker.AwaitEnd();
  EXPECT_THAT(worker.state().steps().ended(),
              StatusIs(absl::StatusCode::kInvalidArgument, why));
  // Who waits too long says it as well.
  EXPECT_THAT(worker.parameters().Unanswered().peers,
              ElementsAre(testing::HasSubstr(why)));
  workers_.clear();
  EXPECT_GE(joins, 5);
}

TEST_F(GroupParametersTest, AGroupThatIsInvalidNowAndThenIsMadeAgain) {
  assignments_.Assign({{0, {0, 1, 2}}});
  Worker& worker = Add(0);
  Initialize(worker.state());
  std::atomic<int> joins = 0;
  worker.hooks().join = [&](const CollectiveGroup&) {
    return ++joins % 5 == 0 ? absl::UnavailableError("lost")
                            : absl::InvalidArgumentError("another operation");
  };
  worker.Start();
  while (joins < 12) std::this_thread::yield();
  EXPECT_OK(worker.state().steps().ended());
  workers_.clear();
}

// Returns worker 1's place in its group with worker 0.
CollectiveGroup GroupOf(const wire::ClaimStepsResponse& answer) {
  CollectiveGroup group;
  group.epoch = answer.assignment_version();
  group.ranks = {{"h:1", {1}}, {"h:0", {0, 2}}};
  group.own_rank = 0;
  return group;
}

// The peer has not come, or it has and takes no part in anything.
TEST_F(GroupParametersTest, StopEndsAJoinAndAnAgreementOnVariablesAtOnce) {
  for (const bool peer_joins : {false, true}) {
    SCOPED_TRACE(peer_joins);
    assignments_.Assign({{0, {0, 2}}, {1, {1}}});
    const wire::ClaimStepsResponse answer = assignments_.Claim(0);
    GroupParameters::Options options = OptionsOf(0);
    options.join_limit = absl::Hours(1);
    options.finish_limit = absl::Hours(1);
    CutEndpoint endpoint(network_.MakeEndpoint("h:0"), /*cut_at=*/0);
    absl::Notification joins;
    endpoint.hooks().join = [&](const CollectiveGroup&) {
      joins.Notify();
      return absl::OkStatus();
    };
    const auto peer = network_.MakeEndpoint("h:1");
    const std::unique_ptr<GroupState> state = MakeState();
    MetricsRegistry metrics;
    GroupParameters parameters(options, *state, endpoint, Clock::Real(),
                               metrics);
    parameters.Hear(answer);
    joins.WaitForNotification();
    std::unique_ptr<Collective> joined;
    if (peer_joins) {
      auto collective = peer->Join(GroupOf(answer), absl::Minutes(1));
      ASSERT_OK(collective);
      joined = *std::move(collective);
      while (endpoint.begun() == 0) std::this_thread::yield();
    }
    std::vector<float> value(kSizes[1]);
    TrainingParameters::PullRequest pull;
    pull.targets = {{1, absl::MakeSpan(value)}};
    const auto pending = parameters.Pull(std::move(pull));
    parameters.Stop();
    EXPECT_THAT(pending->Wait(), StatusIs(absl::StatusCode::kCancelled));
  }
}

}  // namespace
}  // namespace parasol
