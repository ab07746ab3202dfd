// Workers that have variables beside a ps's table, as threads: the real
// parameters over groups in memory, and a table that goes by the ps's rules.

#include <algorithm>
#include <atomic>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "cluster/collective/testing/memory_network.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/group/group_parameters.h"
#include "worker/group/testing/assignments.h"
#include "worker/group/testing/cut_endpoint.h"
#include "worker/group/testing/group_fixture.h"
#include "worker/group/testing/step_tables.h"

namespace parasol {
namespace {

using group_testing::Assignments;
using group_testing::CutEndpoint;
using group_testing::Initialize;
using group_testing::kSizes;
using group_testing::kWidth;
using group_testing::StepTables;

constexpr int kReplicas = 3;
constexpr int64_t kSteps = 4;

// The values of all variables.
using Values = std::vector<std::vector<float>>;

Values ValuesOf(GroupState& state) {
  Values values;
  EXPECT_OK(state.Read([&](ParameterStore& parameters) {
    for (size_t i = 0; i < parameters.num_variables(); ++i) {
      const absl::Span<const float> read = *parameters.variables().Read(i, 0);
      values.emplace_back(read.begin(), read.end());
    }
    return absl::OkStatus();
  }));
  return values;
}

// One worker with a thread that trains as SyncTrainingLoop does.
class Worker {
 public:
  Worker(int index, Assignments& assignments, MemoryNetwork& network,
         StepTables& tables, int cut_at, const job::Job& job)
      : index_(index),
        assignments_(assignments),
        endpoint_(network.MakeEndpoint(absl::StrCat("h:", index)), cut_at),
        tables_(tables),
        state_(group_testing::MakeVariables(), job, Clock::Real(),
               TableStore::kPs) {
    GroupParameters::Options options;
    options.task.set_role("worker");
    options.task.set_index(index);
    options.task.set_incarnation(100 + index);
    options.replicas = kReplicas;
    options.bytes_per_pack = 8;
    options.report_delay = absl::Milliseconds(1);
    options.tables = tables.MakeClient();
    options.tables_in_step = true;
    parameters_ = std::make_unique<GroupParameters>(
        std::move(options), state_, endpoint_, Clock::Real(), metrics_);
  }
  ~Worker() {
    parameters_->Stop();
    AwaitEnd();
    parameters_.reset();
  }

  void Start() {
    thread_ = std::thread([this] {
      while (state_.version().step < kSteps && TrainStep().ok()) {
      }
    });
  }
  void AwaitEnd() {
    if (thread_.joinable()) thread_.join();
  }
  // Makes the gradient of v2 infinite in a step. Before Start().
  void OverflowAt(int64_t step) { overflows_at_ = step; }
  // Tells the worker to stop as soon as it finds that its group has ended,
  // which may be in the destructor of its parameters. Before Start().
  void StopWhenItsGroupEnds() {
    endpoint_.hooks().await_ended = [p = parameters_.get()] { p->Stop(); };
  }
  void Claim() { parameters_->Hear(assignments_.Claim(parameters_->broken())); }
  GroupState& state() { return state_; }
  GroupParameters& parameters() { return *parameters_; }
  // Number of pushes whose rows were dropped. After AwaitEnd().
  int stale_pushes() const { return stale_pushes_; }
  int begun() const { return endpoint_.begun(); }

 private:
  using PendingPtr = std::unique_ptr<TrainingParameters::Pending>;
  struct Gradients {
    Values variables;
    std::vector<uint64_t> ids;
    std::vector<float> rows;
  };

  absl::Status Await(TrainingParameters::Pending& pending) {
    while (!pending.WaitFor(absl::Milliseconds(1))) Claim();
    return pending.Wait();
  }

  absl::StatusOr<int64_t> PullValues(Values& values) {
    TrainingParameters::PullRequest pull;
    for (const int64_t size : kSizes) values.emplace_back(size);
    for (size_t i = 0; i < values.size(); ++i) {
      pull.targets.push_back({i, absl::MakeSpan(values[i])});
    }
    const PendingPtr pulled = parameters_->Pull(std::move(pull));
    RETURN_IF_ERROR(Await(*pulled));
    return pulled->outcome().max_updates;
  }

  absl::Status TrainStep() {
    Values values;
    ASSIGN_OR_RETURN(const int64_t step, PullValues(values));
    EXPECT_GE(tables_.step(), step);
    if (step >= kSteps) return absl::OkStatus();
    std::map<int, Gradients> computed;
    std::vector<PendingPtr> pushes;
    const auto compute = [&]() -> absl::Status {
      for (const int replica : assignments_.ReplicasOf(index_)) {
        if (computed.contains(replica)) continue;
        ASSIGN_OR_RETURN(computed[replica], Compute(step, replica, values));
        Push(step, replica, computed[replica], pushes);
      }
      return absl::OkStatus();
    };
    RETURN_IF_ERROR(compute());
    for (size_t i = 0; i < pushes.size(); ++i) {
      while (!pushes[i]->WaitFor(absl::Milliseconds(1))) {
        Claim();
        RETURN_IF_ERROR(compute());
      }
      RETURN_IF_ERROR(pushes[i]->Wait());
      if (pushes[i]->outcome().stale) ++stale_pushes_;
    }
    while (pushes.empty() && state_.version().step == step) {
      RETURN_IF_ERROR(state_.steps().ended());
      Claim();
      RETURN_IF_ERROR(compute());
    }
    return absl::OkStatus();
  }

  // Gradients that depend on the step's values and rows.
  absl::StatusOr<Gradients> Compute(int64_t step, int replica,
                                    const Values& values) {
    Gradients gradients;
    gradients.ids = {7, uint64_t(replica)};
    std::vector<float> rows(2 * kWidth);
    TrainingParameters::PullRequest pull;
    pull.rows = {{0, gradients.ids, absl::MakeSpan(rows)}};
    pull.min_updates = step;
    const PendingPtr pulled = parameters_->Pull(std::move(pull));
    RETURN_IF_ERROR(Await(*pulled));
    const float factor = 0.1f * (replica + 1) + 0.01f * step;
    for (const std::vector<float>& value : values) {
      std::vector<float>& gradient = gradients.variables.emplace_back();
      for (size_t i = 0; i < value.size(); ++i) {
        gradient.push_back(factor * value[i] + rows[i % rows.size()]);
      }
    }
    if (step == overflows_at_) {
      gradients.variables[2][3] = std::numeric_limits<float>::infinity();
    }
    for (const float row : rows) {
      gradients.rows.push_back(factor * row + 0.1f * values[0][0]);
    }
    return gradients;
  }

  void Push(int64_t step, int replica, const Gradients& gradients,
            std::vector<PendingPtr>& pushes) {
    TrainingParameters::PushRequest last, first;
    last.gradients = {{2, gradients.variables[2]}};
    last.rows = {{0, gradients.ids, gradients.rows}};
    first.gradients = {{1, gradients.variables[1]},
                       {0, gradients.variables[0]}};
    for (TrainingParameters::PushRequest* push : {&last, &first}) {
      push->sync = {.step = step, .replica = replica};
      pushes.push_back(parameters_->Push(std::move(*push)));
    }
  }

  const int index_;
  Assignments& assignments_;
  MetricsRegistry metrics_;
  CutEndpoint endpoint_;
  StepTables& tables_;
  GroupState state_;
  std::unique_ptr<GroupParameters> parameters_;
  int stale_pushes_ = 0;
  int64_t overflows_at_ = -1;
  std::thread thread_;
};

class PushedRowsTest : public testing::Test {
 protected:
  Worker& Add(int index, int cut_at = 0) {
    workers_[index] = std::make_unique<Worker>(index, assignments_, network_,
                                               *tables_, cut_at, job_);
    return *workers_[index];
  }
  void Begin(const std::map<int, std::vector<int>>& shares) {
    workers_.clear();
    tables_ = std::make_unique<StepTables>(kReplicas, kWidth);
    assignments_.Assign(shares);
  }
  void StartAll() {
    for (const auto& [index, worker] : workers_) worker->Start();
  }
  // Waits until these have made all steps. One that has goes on to ask the
  // chief: others may need its variables.
  void AwaitEnd(const std::vector<int>& indices) {
    for (const int index : indices) {
      GroupState& state = workers_[index]->state();
      while (!state.steps().Await(kSteps, absl::Milliseconds(1))) {
        for (const int other : indices) workers_[other]->Claim();
      }
    }
    for (const int index : indices) workers_[index]->AwaitEnd();
  }
  void AwaitAll() {
    std::vector<int> all;
    for (const auto& [index, worker] : workers_) all.push_back(index);
    AwaitEnd(all);
  }
  // Finds out what one worker alone ends with.
  void SetUp() override {
    Begin({{0, {0, 1, 2}}});
    Initialize(Add(0).state());
    StartAll();
    workers_[0]->AwaitEnd();
    values_ = ValuesOf(workers_[0]->state());
    rows_ = tables_->rows();
    ASSERT_EQ(tables_->step(), kSteps);
    ASSERT_EQ(rows_.size(), 4);
  }
  void ExpectUndisturbed(Worker& worker) {
    EXPECT_EQ(ValuesOf(worker.state()), values_);
    EXPECT_EQ(tables_->rows(), rows_);
    EXPECT_EQ(tables_->step(), kSteps);
    EXPECT_EQ(tables_->late_pulls(), 0);
    EXPECT_EQ(worker.stale_pushes(), 0);
  }

  job::Job job_ = group_testing::MakeJob();
  MemoryNetwork network_;
  Assignments assignments_;
  std::unique_ptr<StepTables> tables_;
  std::map<int, std::unique_ptr<Worker>> workers_;
  Values values_;
  StepTables::Rows rows_;
};

TEST_F(PushedRowsTest, AnyNumberOfWorkersEndsWithTheSameBits) {
  const std::vector<std::map<int, std::vector<int>>> assignments = {
      {{0, {0}}, {1, {1, 2}}},
      {{0, {1}}, {1, {0, 2}}},
      {{0, {}}, {1, {1}}, {2, {0}}, {3, {2}}}};
  for (const auto& shares : assignments) {
    Begin(shares);
    for (const auto& [index, replicas] : shares) Add(index);
    Initialize(workers_[0]->state());
    StartAll();
    AwaitAll();
    for (const auto& [index, worker] : workers_) ExpectUndisturbed(*worker);
  }
}

// The rows from before a step are gone when a gradient of the next one comes.
TEST_F(PushedRowsTest, NoGradientLeavesBeforeAllHaveMadeTheStepBefore) {
  Begin({{0, {0}}, {1, {1}}, {2, {2}}});
  for (const int index : {0, 1, 2}) Add(index);
  tables_->OnGradient([&](int64_t step) {
    for (const auto& [index, worker] : workers_) {
      EXPECT_GE(worker->state().version().step, step) << "worker " << index;
    }
  });
  Initialize(workers_[0]->state());
  // This one makes its steps when the others have made theirs.
  GroupState& slow = workers_[2]->state();
  std::atomic<bool> has_ended = false;
  std::thread holds([&] {
    while (!has_ended) {
      slow.steps().Hold().IgnoreError();
      const int64_t step = slow.version().step;
      workers_[0]->state().steps().Await(step + 1, absl::Milliseconds(20));
      slow.TakeSnapshot(std::nullopt, [] { return false; })
          .status()
          .IgnoreError();
    }
  });
  StartAll();
  AwaitAll();
  has_ended = true;
  holds.join();
  for (const auto& [index, worker] : workers_) ExpectUndisturbed(*worker);
}

TEST_F(PushedRowsTest, AConnectionThatBreaksAnywhereChangesNoBit) {
  for (const int cut_worker : {0, 1}) {
    bool was_cut = true;
    for (int cut_at = 1; was_cut; ++cut_at) {
      SCOPED_TRACE(absl::StrCat("worker ", cut_worker, ", ", cut_at));
      Begin({{0, {0, 2}}, {1, {1}}});
      Add(0, cut_worker == 0 ? cut_at : 0);
      Add(1, cut_worker == 1 ? cut_at : 0);
      Initialize(workers_[0]->state());
      StartAll();
      AwaitAll();
      was_cut = workers_[cut_worker]->begun() >= cut_at;
      for (const auto& [index, worker] : workers_) ExpectUndisturbed(*worker);
    }
  }
}

// What a lost worker has sent to the ps must not be more than what the others
// can make again.
TEST_F(PushedRowsTest, AWorkerLostAnywhereChangesNoBit) {
  bool was_lost = true;
  for (int lost_at = 1; was_lost; ++lost_at) {
    SCOPED_TRACE(lost_at);
    Begin({{0, {0}}, {1, {1}}, {2, {2}}});
    for (const int index : {0, 1}) Add(index);
    Worker& lost = Add(2, lost_at);
    Initialize(workers_[1]->state());
    StartAll();
    while (lost.begun() < lost_at &&
           !lost.state().steps().Await(kSteps, absl::Milliseconds(1))) {
    }
    was_lost = lost.begun() >= lost_at;
    assignments_.Assign({{0, {0}}, {1, {1, 2}}});
    AwaitEnd({0, 1});
    for (const int index : {0, 1}) ExpectUndisturbed(*workers_[index]);
  }
}

TEST_F(PushedRowsTest, AWorkerThatIsToldToStopFinishesItsStep) {
  for (int64_t stops_at = 0; stops_at < kSteps; ++stops_at) {
    SCOPED_TRACE(stops_at);
    Begin({{0, {0, 2}}, {1, {1}}});
    Initialize(Add(0).state());
    Add(1);
    StartAll();
    EXPECT_OK(*workers_[1]->state().steps().Await(stops_at, absl::Minutes(1)));
    workers_.erase(1);
    assignments_.Assign({{0, {0, 1, 2}}});
    workers_[0]->AwaitEnd();
    ExpectUndisturbed(*workers_[0]);
  }
}

// A checkpoint has the tables and the variables of one step: the last one that
// the ps has made.
TEST_F(PushedRowsTest, AWorkerThatStopsAsItsGroupEndsIsNotBehindTheTables) {
  bool was_cut = true;
  for (int cut_at = 1; was_cut; ++cut_at) {
    SCOPED_TRACE(cut_at);
    Begin({{0, {0, 2}}, {1, {1}}});
    Worker& stopped = Add(0, cut_at);
    stopped.StopWhenItsGroupEnds();
    Add(1);
    for (auto& [index, worker] : workers_) Initialize(worker->state());
    StartAll();
    stopped.AwaitEnd();
    was_cut = stopped.begun() >= cut_at;
    EXPECT_EQ(stopped.state().version().step, tables_->step());
    if (tables_->step() == kSteps) {
      EXPECT_EQ(ValuesOf(stopped.state()), values_);
    }
    assignments_.Assign({{1, {0, 1, 2}}});
    AwaitEnd({1});
    EXPECT_EQ(ValuesOf(workers_[1]->state()), values_);
  }
}

// All workers that had the variables are gone, and the ps is further than the
// checkpoint.
TEST_F(PushedRowsTest, LoadedVariablesGoOnAtTheStepOfTheCluster) {
  Begin({{0, {0, 1, 2}}});
  Initialize(Add(0).state());
  StartAll();
  workers_[0]->AwaitEnd();
  const StepTables::Rows rows = tables_->rows();
  workers_.clear();

  assignments_.Assign({{0, {0, 1}}, {1, {2}}});
  for (const int index : {0, 1}) Add(index);
  workers_[0]->state().SetGoesOnAt(kSteps);
  Initialize(workers_[0]->state());
  StartAll();
  for (const int index : {0, 1}) {
    GroupState& state = workers_[index]->state();
    while (!state.steps().Await(kSteps, absl::Milliseconds(1))) {
      workers_[index]->Claim();
    }
    EXPECT_EQ(state.version().step, kSteps);
    EXPECT_EQ(ValuesOf(state), Values({{1, 1, 1}, {1}, {1, 1, 1, 1, 1}}));
    ASSERT_OK(state.Read([](ParameterStore& parameters) {
      EXPECT_EQ(parameters.variables().updates()[0], kSteps);
      return absl::OkStatus();
    }));
  }
  EXPECT_EQ(tables_->rows(), rows);
}

// Nobody knows that the tables are further: the chief was lost, too.
TEST_F(PushedRowsTest, PushesSayThatTheirRowsWereDropped) {
  Begin({{0, {0, 1, 2}}});
  for (const bool is_behind : {false, true}) {
    SCOPED_TRACE(is_behind);
    workers_.clear();
    Initialize(Add(0).state());
    StartAll();
    workers_[0]->AwaitEnd();
    // Two pushes of each replica; the tables know the last step's gradients.
    EXPECT_EQ(workers_[0]->stale_pushes(),
              is_behind ? 2 * kReplicas * (kSteps - 1) : 0);
  }
}

TEST_F(PushedRowsTest, AWaitForRowsIsForPsAlone) {
  Begin({{0, {0, 1, 2}}});
  GroupParameters& parameters = Add(0).parameters();
  const std::vector<uint64_t> ids = {7};
  std::vector<float> rows(kWidth);
  TrainingParameters::PullRequest pull;
  pull.rows = {{0, ids, absl::MakeSpan(rows)}};
  pull.min_updates = 1;
  auto pulled = parameters.Pull(std::move(pull));
  EXPECT_FALSE(pulled->WaitFor(absl::ZeroDuration()));
  EXPECT_THAT(parameters.Unanswered().peers, testing::ElementsAre("ps/0"));
  pulled = nullptr;
  EXPECT_THAT(parameters.Unanswered().peers,
              testing::ElementsAre("the chief, for an assignment", "ps/0"));
}

TEST_F(PushedRowsTest, AGradientThatIsNotFiniteEndsAllWorkersAlike) {
  Begin({{0, {0, 2}}, {1, {1}}});
  for (const int index : {0, 1}) Add(index);
  workers_[1]->OverflowAt(2);
  Initialize(workers_[0]->state());
  StartAll();
  for (const int index : {0, 1}) {
    GroupState& state = workers_[index]->state();
    std::optional<absl::Status> end;
    while (!(end = state.steps().Await(kSteps, absl::Milliseconds(1)))) {
      workers_[index]->Claim();
    }
    EXPECT_THAT(*end, StatusIs(absl::StatusCode::kOutOfRange,
                               testing::HasSubstr("\"v2\" in step 2 is not "
                                                  "finite at element 3:")));
    EXPECT_EQ(state.version().step, 2);
  }
}

TEST_F(PushedRowsTest, AJobThatContinuesTakesWhatIsNotFinite) {
  job_.mutable_worker()->set_non_finite_loss(job::WorkerSettings::CONTINUE);
  Begin({{0, {0, 1, 2}}});
  Add(0).OverflowAt(2);
  Initialize(workers_[0]->state());
  StartAll();
  workers_[0]->AwaitEnd();
  EXPECT_EQ(workers_[0]->state().version().step, kSteps);
}

}  // namespace
}  // namespace parasol
