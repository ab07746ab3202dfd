// Tasks of a cluster record what they do, and show it, when somebody asks.
// All roles are in one process.

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/client/chief_client.h"
#include "cluster/rpc/proto_duration.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_runs.h"
#include "tests/cluster/test_cluster.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

constexpr int64_t kWithoutEnd = 100'000'000;
// So many that the workers claim some.
constexpr int kSteps = 100;

// A worker's clock that is an hour ahead of the chief's.
class ClockThatIsAhead : public Clock {
 public:
  absl::Time Now() override { return Clock::Real().Now() + absl::Hours(1); }
  bool AwaitWithTimeout(absl::Mutex& mu, const absl::Condition& condition,
                        absl::Duration timeout) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    return Clock::Real().AwaitWithTimeout(mu, condition, timeout);
  }
};

class InspectionTest : public ClusterRunsTest {
 protected:
  void TearDown() override { cluster_->StopChief().IgnoreError(); }

  void Train(job::Job job, int num_ps, int num_workers) {
    cluster_ = std::make_unique<TestCluster>(std::move(job), num_ps,
                                             num_workers, Directory("run"));
    cluster_->SetWorkerClock(1, clock_that_is_ahead_);
    ASSERT_OK(cluster_->Start());
    ASSERT_OK(cluster_->AwaitStep(20));
    chief_ =
        ChiefClient::Create(cluster_->Address("chief", 0), absl::Seconds(10));
  }

  // Asks until nothing is missing.
  wire::InspectResponse Ask(const wire::InspectRequest& request) {
    wire::InspectResponse response;
    const absl::Time end = Clock::Real().Now() + absl::Minutes(1);
    do {
      const auto answer = chief_->Inspect(request);
      EXPECT_OK(answer);
      if (!answer.ok()) return response;
      response = *answer;
      Clock::Real().Pause(absl::Milliseconds(50));
    } while (response.missing_task_size() > 0 && Clock::Real().Now() < end);
    EXPECT_THAT(response.missing_task(), IsEmpty());
    return response;
  }
  static wire::InspectRequest Question(wire::Inspection::Kind kind,
                                       uint64_t number) {
    wire::InspectRequest request;
    wire::Inspection& asked = *request.mutable_inspection();
    asked.set_kind(kind);
    asked.set_number(number);
    asked.set_steps(kSteps);
    *asked.mutable_limit() = ToProto(absl::Seconds(20));
    return request;
  }

  // All that all tasks show, fetched task by task.
  std::map<std::string, wire::InspectionPart> AskTaskByTask(
      wire::InspectRequest request) {
    const wire::InspectResponse names = Ask(request);
    request.mutable_inspection()->set_kind(wire::Inspection::KIND_UNSPECIFIED);
    std::map<std::string, wire::InspectionPart> parts;
    for (const wire::InspectedTask& task : names.task()) {
      request.set_task(task.task());
      parts[task.task()] = Ask(request).task(0).part(0);
    }
    return parts;
  }
  std::map<std::string, wire::InspectionPart> Trace() {
    return AskTaskByTask(Question(wire::Inspection::TRACE, 5));
  }

  static std::multiset<std::string> NamesOf(const wire::InspectionPart& part) {
    std::multiset<std::string> names;
    for (const wire::TraceSpan& span : part.span()) names.insert(span.name());
    return names;
  }

  ClockThatIsAhead clock_that_is_ahead_;
  std::unique_ptr<TestCluster> cluster_;
  std::unique_ptr<ChiefClient> chief_;
};

TEST_F(InspectionTest, ATraceHasWhatAllTasksDidAtOneTime) {
  Train(QuadrantsJob(kWithoutEnd), 2, 2);
  const auto parts = Trace();
  int64_t first[2];
  int64_t last[2];
  for (int i = 0; i < 2; ++i) {
    const wire::InspectionPart& worker = parts.at(absl::StrCat("worker/", i));
    const auto names = NamesOf(worker);
    // And the one in which the trace began.
    EXPECT_EQ(names.count("step"), kSteps + 1) << i;
    EXPECT_THAT(names, IsSupersetOf({"input", "pull", "compute", "push"}));
    EXPECT_EQ(worker.dropped(), 0);
    first[i] = INT64_MAX;
    last[i] = 0;
    std::set<std::string> tracks;
    for (const wire::TraceSpan& span : worker.span()) {
      tracks.insert(span.track());
      const int64_t begin = span.begin_micros() + worker.clock_offset_micros();
      first[i] = std::min(first[i], begin);
      last[i] = std::max(last[i], begin + span.duration_micros());
    }
    EXPECT_THAT(tracks, IsSupersetOf({"training", "to ps/0, stream 0"}));
    EXPECT_THAT(NamesOf(parts.at(absl::StrCat("ps/", i))), Contains("push"));
  }
  // Worker 1's clock is an hour ahead of the chief's.
  EXPECT_LT(absl::AbsDuration(
                absl::Microseconds(parts.at("worker/1").clock_offset_micros()) +
                absl::Hours(1)),
            absl::Minutes(1));
  EXPECT_LT(std::abs(first[0] - first[1]), 5'000'000);
  EXPECT_LT(std::abs(last[0] - last[1]), 20'000'000);
  EXPECT_THAT(NamesOf(parts.at("chief/0")), Contains("claim"));
}

TEST_F(InspectionTest, WorkersInStepWithoutPsAreTraced) {
  Train(QuadrantsJob(kWithoutEnd), 0, 2);
  const auto parts = Trace();
  for (const char* worker : {"worker/0", "worker/1"}) {
    const auto names = NamesOf(parts.at(worker));
    EXPECT_EQ(names.count("step"), kSteps + 1);
    EXPECT_THAT(names, IsSupersetOf({"input", "compute", "push"}));
  }
}

TEST_F(InspectionTest, ATaskShowsTheStacksOfItsThreads) {
  Train(QuadrantsJob(kWithoutEnd), 1, 1);
  wire::InspectRequest request = Question(wire::Inspection::STACKS, 6);
  request.set_task("worker/0");
  const wire::InspectResponse one = Ask(request);
  ASSERT_EQ(one.task_size(), 1);
  EXPECT_EQ(one.task(0).task(), "worker/0");
  // The thread that trains is the first, and has a name.
  const std::string& stacks = one.task(0).part(0).stacks();
  EXPECT_THAT(stacks.substr(0, stacks.find("\nthread")),
              AllOf(HasSubstr("thread "), HasSubstr("parasol::")));
  const auto all = AskTaskByTask(Question(wire::Inspection::STACKS, 7));
  EXPECT_EQ(all.size(), 4);  // and the evaluator
  for (const auto& [task, part] : all) {
    EXPECT_THAT(part.stacks(), HasSubstr("    ")) << task;
  }
}

TEST_F(InspectionTest, WhoAsksManyTimesIsRefusedAndTheJobGoesOn) {
  Train(QuadrantsJob(kWithoutEnd), 1, 1);
  wire::InspectRequest longest = Question(wire::Inspection::TRACE, 5);
  longest.mutable_inspection()->set_steps(100'000);
  ASSERT_OK(chief_->Inspect(longest));
  for (int i = 0; i < 1000; ++i) {
    EXPECT_THAT(
        chief_->Inspect(Question(wire::Inspection::TRACE, 100 + i)).status(),
        StatusIs(absl::StatusCode::kResourceExhausted));
  }
  wire::InspectRequest large = Question(wire::Inspection::STACKS, 9);
  large.set_task(std::string(1 << 20, 'x'));
  EXPECT_THAT(chief_->Inspect(large).status(),
              StatusIs(absl::StatusCode::kResourceExhausted));
  const auto status = cluster_->Status();
  ASSERT_OK(status);
  EXPECT_OK(cluster_->AwaitStep(status->global_step() + 20));
}

}  // namespace
}  // namespace parasol
