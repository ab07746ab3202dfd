// Random messages, valid in form, at the real coordinator: in every phase and
// mode the job stays right, whatever a task says, and comes to its end once
// only right processes speak.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/status_matchers.h"
#include "coordinator/coordinator.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

constexpr int kSchedules = 340;
constexpr int kMessages = 300;
constexpr int64_t kEnd = 50;

enum class Mode { kAsynchronous, kBoundedStaleness, kSynchronous };

class Attack {
 public:
  Attack(Mode mode, bool is_resumed, uint32_t seed)
      : mode_(mode),
        is_resumed_(is_resumed),
        random_(seed),
        has_other_data_(UpTo(4) == 0),
        has_failures_(UpTo(8) == 0),
        is_stopped_(UpTo(8) == 0),
        chief_(OptionsOf(), now_) {}

  void Run() {
    for (int message = 0; message < kMessages; ++message) {
      now_ += absl::Milliseconds(UpTo(1000));
      Send();
      Check();
      if (testing::Test::HasFailure()) return;
    }
    // The job has the data that the first worker reports.
    if (!has_other_data_) EndRight();
  }

 private:
  // A process that does what it is told, after the others are gone.
  struct RightProcess {
    wire::Task task;
    bool is_registered = false;
    int64_t epoch = 0;
    int64_t granted = 0;
    int64_t version = 0;
    int64_t clock_lead = 0;
  };
  // Lets a new process take each place, and checks that the chief ends within
  // the limits of its options.
  void EndRight() {
    std::vector<RightProcess> processes;
    for (const auto& [role, index] :
         {std::pair("ps", 0), std::pair("worker", 0), std::pair("worker", 1),
          std::pair("evaluator", 0)}) {
      RightProcess& process = processes.emplace_back();
      process.task.set_role(role);
      process.task.set_index(index);
      process.task.set_incarnation(1000 + processes.size());
    }
    const absl::Time limit = now_ + absl::Minutes(30);
    while (!chief_.Outcome(now_) && now_ < limit) {
      now_ += absl::Milliseconds(500);
      chief_.Tick(now_);
      for (RightProcess& process : processes) Speak(process);
      while (const auto order = chief_.NextOrder(now_)) {
        CarryOut(*order, absl::OkStatus());
      }
      Check();
      if (testing::Test::HasFailure()) return;
    }
    const auto outcome = chief_.Outcome(now_);
    ASSERT_TRUE(outcome.has_value())
        << "stuck: " << chief_.Status(now_).ShortDebugString();
    if (!has_failures_ && !is_stopped_) {
      EXPECT_OK(*outcome);
    }
  }
  void Speak(RightProcess& process) {
    if (!process.is_registered) return RegisterRight(process);
    if (process.task.role() == "worker") return ClaimRight(process);
    wire::HeartbeatRequest request;
    *request.mutable_task() = process.task;
    if (process.task.role() == "ps") request.set_run_id("run-a");
    const auto response = chief_.Heartbeat(request, now_);
    process.is_registered = response.ok();
    if (response.ok() && response->phase() >= wire::COMPLETE) Leave(process);
  }
  void RegisterRight(RightProcess& process) {
    wire::RegisterRequest request;
    *request.mutable_task() = process.task;
    request.set_place_epoch(process.epoch);
    request.set_join_unix_micros(absl::ToUnixMicros(now_));
    if (process.granted > 0) {
      request.set_completed_steps(process.granted);
      request.set_clock_lead(process.clock_lead);
    }
    const auto response = chief_.Register(request, now_);
    if (!response.ok()) {
      // The process waits for processes that were there before.
      EXPECT_EQ(response.status().code(), absl::StatusCode::kUnavailable)
          << response.status();
      return;
    }
    process.is_registered = true;
    process.epoch = response->place_epoch();
  }
  void ClaimRight(RightProcess& process) {
    wire::ClaimStepsRequest request;
    *request.mutable_task() = process.task;
    request.set_completed_steps(process.granted);
    request.set_started_steps(process.granted);
    request.set_granted_steps(process.granted);
    request.set_pushed_steps(process.granted);
    request.set_want(4);
    request.set_assignment_version(process.version);
    request.set_train_examples(kEnd);
    request.add_shard_examples(kEnd);
    const auto response = chief_.ClaimSteps(request, now_);
    process.is_registered = response.ok();
    if (!response.ok()) return;
    process.version = response->assignment_version();
    process.granted = response->granted_steps();
    process.clock_lead = response->clock_lead();
    most_granted_[process.task.incarnation()] = std::max(
        most_granted_[process.task.incarnation()], response->granted_steps());
    if (mode_ == Mode::kSynchronous && response->phase() == wire::TRAINING) {
      process.granted = std::min(response->global_step() + 1,
                                 std::max<int64_t>(1, response->end_step()));
    }
    if (response->phase() >= wire::COMPLETE) Leave(process);
  }
  void Leave(RightProcess& process) {
    wire::LeaveRequest request;
    *request.mutable_task() = process.task;
    request.set_completed_steps(process.granted);
    chief_.Leave(request, now_).IgnoreError();
  }

  int UpTo(int n) { return static_cast<int>(random_() % n); }
  template <typename T>
  T OneOf(std::vector<T> values) {
    return values[UpTo(static_cast<int>(values.size()))];
  }
  // Returns a total that may be right, late, absurd, or anything.
  int64_t Total() {
    return OneOf<int64_t>({0, 1, 2, UpTo(5), UpTo(60), kEnd, kEnd + 1, 1000000,
                           -1, INT64_MAX, INT64_MIN, int64_t{1} << 40});
  }

  // Returns the number of examples, or what a worker with other data says.
  int64_t SetSize() {
    return has_other_data_ && UpTo(20) == 0 ? Total() : kEnd;
  }

  Coordinator::Options OptionsOf() {
    Coordinator::Options options;
    job::Job& job = options.job;
    if (UpTo(2) == 0) {
      job.mutable_end()->set_steps(kEnd);
    } else {
      job.mutable_end()->set_epochs(1);
      job.mutable_train()->set_batch_size(1);
    }
    job.mutable_checkpoint()->set_every_steps(10);
    job::ParameterServerStrategy& strategy = *job.mutable_parameter_server();
    if (mode_ == Mode::kBoundedStaleness) {
      strategy.mutable_bounded_staleness()->set_bound(UpTo(3));
    }
    if (mode_ == Mode::kSynchronous) {
      strategy.mutable_synchronous()->set_total_replicas(2);
      strategy.mutable_synchronous()->set_replicas_to_aggregate(2);
    }
    options.run_id = "run-a";
    options.shards = {{0, "p0:1", {}}};
    options.tasks = {{{"ps", 0}, "p0:1"},
                     {{"worker", 0}, "w0:1"},
                     {{"worker", 1}, "w1:1"},
                     {{"evaluator", 0}, ""}};
    if (is_resumed_) {
      options.resumed.emplace();
      options.resumed->set_global_step(20);
      options.resumed->set_run_id("run-a");
      durable::WorkerProgress* progress =
          options.resumed->add_worker_progress();
      progress->set_incarnation(3);
      progress->set_completed_steps(10);
    }
    return options;
  }

  wire::Task Task() {
    wire::Task task;
    task.set_role(OneOf<std::string>(
        {"worker", "worker", "worker", "ps", "evaluator", "", "chief"}));
    task.set_index(UpTo(20) == 0 ? OneOf<int>({-1, 7, INT32_MAX}) : UpTo(2));
    // An incarnation belongs to one place, most of the time.
    if (UpTo(40) == 0) task.set_chief_epoch(Total());
    task.set_incarnation(UpTo(30) == 0 ? UpTo(9)
                                       : uint64_t{10} * task.index() + UpTo(4) +
                                             (task.role() == "ps" ? 100 : 0));
    return task;
  }

  void Send() {
    switch (UpTo(10)) {
      case 0:
      case 1:
        return Register();
      case 2:
        return Heartbeat();
      case 3:
        return CarryOut();
      case 4:
        chief_.Tick(now_);
        return;
      case 5:
        if (is_stopped_ && UpTo(20) == 0) chief_.RequestStop(now_);
        return LeaveOrFail();
      default:
        return Claim();
    }
  }
  void Register() {
    wire::RegisterRequest request;
    *request.mutable_task() = Task();
    request.set_run_id(
        OneOf<std::string>({"", "run-a", "run-b", std::string(5000, 'r')}));
    request.set_completed_steps(UpTo(2) == 0 ? 0 : Total());
    request.set_metrics_address(
        OneOf<std::string>({"", "a:1", std::string(5000, 'm')}));
    request.set_layout(OneOf<uint64_t>({0, 0, 7, UINT64_MAX}));
    if (UpTo(2) == 0) {
      request.set_place_epoch(
          OneOf<int64_t>({(int64_t{1} << 32) + UpTo(5),
                          (int64_t{2} << 32) - 1 - UpTo(2), Total()}));
    }
    if (UpTo(3) == 0) request.set_clock_lead(Total());
    if (UpTo(2) == 0) {
      request.set_join_unix_micros(OneOf<int64_t>(
          {absl::ToUnixMicros(now_) - UpTo(100000000),
           absl::ToUnixMicros(now_) + UpTo(100000000), Total()}));
    }
    chief_.Register(request, now_).IgnoreError();
  }
  void Heartbeat() {
    wire::HeartbeatRequest request;
    *request.mutable_task() = Task();
    request.set_loss(OneOf<double>({1, -1, NAN, INFINITY}));
    request.set_examples_per_second(OneOf<double>({1, -1, NAN, INFINITY}));
    request.set_run_id(OneOf<std::string>({"", "run-a", "run-b"}));
    request.set_layout(OneOf<uint64_t>({0, 0, 7}));
    request.set_leaving(UpTo(10) == 0);
    chief_.Heartbeat(request, now_).IgnoreError();
  }
  void LeaveOrFail() {
    if (has_failures_ && UpTo(40) == 0) {
      wire::ReportFailureRequest request;
      *request.mutable_task() = Task();
      request.set_message(std::string(UpTo(5000), '\n'));
      chief_.ReportFailure(request, now_).IgnoreError();
      return;
    }
    wire::LeaveRequest request;
    *request.mutable_task() = Task();
    request.set_completed_steps(Total());
    if (UpTo(4) == 0) chief_.Leave(request, now_).IgnoreError();
  }
  void Claim() {
    wire::ClaimStepsRequest request;
    *request.mutable_task() = Task();
    const uint64_t id = request.task().incarnation();
    request.set_completed_steps(UpTo(2) == 0 ? granted_[id] : Total());
    request.set_started_steps(UpTo(2) == 0 ? request.completed_steps()
                                           : Total());
    request.set_granted_steps(Total());
    request.set_want(Total());
    request.set_assignment_version(UpTo(4) == 0 ? Total() : versions_[id]);
    request.set_pushed_steps(Total());
    request.set_train_examples(SetSize());
    request.add_shard_examples(SetSize());
    const auto response = chief_.ClaimSteps(request, now_);
    if (!response.ok()) return;
    versions_[id] = response->assignment_version();
    granted_[id] = response->granted_steps();
    most_granted_[id] = std::max(most_granted_[id], response->granted_steps());
  }
  void CarryOut() {
    const auto order = chief_.NextOrder(now_);
    if (!order) return;
    CarryOut(*order,
             UpTo(4) == 0 ? absl::UnavailableError("gone") : absl::OkStatus());
  }
  void CarryOut(const Order& order, const absl::Status& result) {
    if (const auto* load = std::get_if<LoadOrder>(&order)) {
      for (const auto& target : load->targets) {
        chief_.Done(LoadResult{target, result}, now_);
      }
      return;
    }
    const auto& checkpoint = std::get<CheckpointOrder>(order);
    EXPECT_GE(checkpoint.manifest.global_step(), 0);
    chief_.Done(CheckpointResult{checkpoint, result}, now_);
  }

  void Check() {
    const wire::JobStatus status = chief_.Status(now_);
    const int64_t first = is_resumed_ ? 20 : 0;
    EXPECT_GE(status.global_step(), first);
    // Without an end nothing counts that this chief has not granted.
    EXPECT_LE(status.global_step(), std::max(first, status.end_step()));
    if (!is_resumed_ && status.phase() < wire::TRAINING) {
      EXPECT_EQ(status.global_step(), 0) << "before there are variables";
    }
    if (phase_ >= wire::COMPLETE) {
      EXPECT_EQ(status.phase(), phase_);
    }
    phase_ = status.phase();
    if (phase_ == wire::COMPLETE) {
      EXPECT_GE(status.global_step(), status.end_step());
    }
    EXPECT_LE(status.ByteSizeLong(), size_t{1} << 14);
    for (const wire::TaskStatus& task : status.task()) {
      EXPECT_EQ(task.task().incarnation(), 0u) << "is the process's secret";
    }
    EXPECT_TRUE(status.examples_per_second() >= 0);
    if (mode_ == Mode::kSynchronous || is_resumed_) return;
    int64_t granted = 0;
    for (const auto& [id, steps] : most_granted_) granted += steps;
    EXPECT_LE(status.global_step(), granted) << "more than was granted";
  }

  const Mode mode_;
  const bool is_resumed_;
  std::mt19937 random_;
  // Kinds of messages that are sent.
  const bool has_other_data_, has_failures_, is_stopped_;
  absl::Time now_ = absl::FromUnixSeconds(1000000);
  Coordinator chief_;
  wire::JobPhase phase_ = wire::WAITING_FOR_PS;
  std::map<uint64_t, int64_t> versions_;
  std::map<uint64_t, int64_t> granted_;
  std::map<uint64_t, int64_t> most_granted_;
};

class CoordinatorMessagesTest : public testing::TestWithParam<Mode> {};

TEST_P(CoordinatorMessagesTest, LeaveTheJobRight) {
  for (const bool is_resumed : {false, true}) {
    for (uint32_t seed = 0; seed < kSchedules / 2; ++seed) {
      SCOPED_TRACE(testing::Message()
                   << "resumed " << is_resumed << ", seed " << seed);
      Attack(GetParam(), is_resumed, seed).Run();
      if (HasFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, CoordinatorMessagesTest,
                         testing::Values(Mode::kAsynchronous,
                                         Mode::kBoundedStaleness,
                                         Mode::kSynchronous));

}  // namespace
}  // namespace parasol
