#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "base/status_matchers.h"
#include "cluster/trust/process_secret.h"
#include "coordinator/coordinator.h"
#include "coordinator/shards/standby_board.h"
#include "coordinator/testing/coordinator_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

// Decisions of a chief about ps that act for lost ones.
namespace parasol::coordinator_testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kNumber = 77;
constexpr uint64_t kActing = 31;
constexpr char kAddress[] = "p0:700";

class CoordinatorActingTest : public CoordinatorTest {
 protected:
  CoordinatorActingTest() {
    options_.job.mutable_parameter_server()->set_durability(
        job::ParameterServerStrategy::REPLICATE);
  }

  wire::HeartbeatRequest Beat(const wire::Task& task) {
    wire::HeartbeatRequest request;
    *request.mutable_task() = task;
    request.set_run_id(kRun);
    request.set_layout(kLayout);
    return request;
  }
  // A report of a shard's standby; what it changes is recorded.
  wire::HeartbeatResponse Report(const wire::Task& task, uint64_t number,
                                 const std::string& standby_on) {
    wire::HeartbeatRequest request = Beat(task);
    wire::StandbyPlace& place = *request.mutable_standby()->mutable_place();
    place.set_number(number);
    place.set_task(standby_on);
    auto response = chief().Heartbeat(request, now_);
    EXPECT_OK(response);
    StandbyBoard& board = chief().standbys();
    if (const auto kept = board.ToRecord()) board.Recorded(*kept);
    return *response;
  }
  std::optional<LoadOrder> NextLoad() {
    const std::optional<Order> order = chief().NextOrder(now_);
    if (!order || !std::holds_alternative<LoadOrder>(*order)) {
      return std::nullopt;
    }
    return std::get<LoadOrder>(*order);
  }
  void Load() {
    const std::optional<LoadOrder> order = NextLoad();
    ASSERT_TRUE(order);
    for (const LoadOrder::Target& target : order->targets) {
      chief().Done(LoadResult{target, absl::OkStatus()}, now_);
    }
  }

  // A job that trains, in which ps/0 has the standby of ps/1's shard.
  void Train() {
    Resume(10);
    ASSERT_OK(Register(ps0_));
    ASSERT_OK(Register(ps1_));
    Load();
    Report(ps1_, 0, "");
    Report(ps1_, kNumber, "ps/0");
    ASSERT_OK(Heartbeat(ps0_));
  }

  // Carries out what is to be loaded; returns the order behind that.
  std::optional<Order> NextButLoads() {
    for (int i = 0; i < 9; ++i) {
      std::optional<Order> order = chief().NextOrder(now_);
      if (!order || !std::holds_alternative<LoadOrder>(*order)) return order;
      for (const auto& target : std::get<LoadOrder>(*order).targets) {
        chief().Done(LoadResult{target, absl::OkStatus()}, now_);
      }
    }
    ADD_FAILURE() << "there is always something to load";
    return std::nullopt;
  }
  CheckpointOrder NextCheckpointButLoads() {
    const std::optional<Order> order = NextButLoads();
    if (order) return std::get<CheckpointOrder>(*order);
    ADD_FAILURE() << "no checkpoint is ordered";
    return {};
  }
  void MakeSteps() {
    ASSERT_OK(Register(worker0_));
    now_ += absl::Seconds(3);
    ASSERT_OK(Heartbeat(ps0_));
    ASSERT_OK(Heartbeat(ps1_));
    Tick();
    TrainTo(20);
  }

  static wire::RegisterRequest ActingEntry(uint64_t order = kNumber) {
    wire::RegisterRequest request;
    *request.mutable_task() = Acting();
    request.set_acting_address(kAddress);
    request.set_acting_order(order);
    return request;
  }
  static wire::Task Acting() {
    wire::Task task = Task("ps", 1, kActing);
    task.set_host_index(0);
    return task;
  }
  // Lets ps/0 say that its primary's stream has ended; nobody listens there.
  wire::HeartbeatResponse FindGone() {
    wire::HeartbeatRequest request = Beat(ps0_);
    wire::LostPrimary& lost = *request.add_lost_primary();
    lost.set_shard(1);
    lost.set_number(kNumber);
    EXPECT_OK(chief().Heartbeat(request, now_));
    for (const auto& suspect : chief().Suspects(request)) {
      EXPECT_EQ(suspect.address, "p1:1");
      EXPECT_TRUE(chief().NoteGone(suspect, now_));
    }
    return chief().Heartbeat(request, now_).value();
  }
  // What ps/0 says of its primary, very often, among other things.
  wire::HeartbeatRequest Flood() {
    wire::HeartbeatRequest request = Beat(ps0_);
    for (int i = 0; i < 250000; ++i) {
      wire::LostPrimary& lost = *request.add_lost_primary();
      lost.set_shard(i % 5 - 1);
      lost.set_number(i % 3 == 0 ? kNumber + 1 : kNumber);
    }
    return request;
  }
  void Act() {
    EXPECT_EQ(FindGone().act_for_size(), 1);
    ASSERT_OK(chief().Register(ActingEntry(), now_));
    Load();
    Report(Acting(), kNumber, "");
  }
};

TEST_F(CoordinatorActingTest, TheHostActsForAPsThatIsKnownToBeGone) {
  Train();
  const wire::HeartbeatResponse answer = FindGone();
  ASSERT_EQ(answer.act_for_size(), 1);
  EXPECT_EQ(answer.act_for(0).ps_index(), 1);
  EXPECT_EQ(answer.act_for(0).number(), kNumber);
  ASSERT_OK(chief().Register(ActingEntry(), now_));
  const std::optional<LoadOrder> order = NextLoad();
  ASSERT_TRUE(order);
  ASSERT_EQ(order->targets.size(), 1u);
  EXPECT_EQ(order->targets[0].address, kAddress);
  EXPECT_EQ(order->targets[0].host, 0);
  EXPECT_EQ(order->targets[0].standby->number(), kNumber);
  // Recorded before it is loaded: a later chief waits for it.
  EXPECT_THAT(order->acting_hosts, ElementsAre(testing::Pair(1, 0)));
  EXPECT_GT(order->ps_epochs.at(1), order->ps_epochs.at(0));
}

TEST_F(CoordinatorActingTest, APsThatIsNamedVeryOftenIsSuspectedOnce) {
  Train();
  const wire::HeartbeatRequest flood = Flood();
  ASSERT_OK(chief().Heartbeat(flood, now_));
  const std::vector<Coordinator::Suspect> suspects = chief().Suspects(flood);
  ASSERT_EQ(suspects.size(), 1u);
  EXPECT_EQ(suspects[0].ps_index, 1);
  EXPECT_EQ(suspects[0].incarnation, ps1_.incarnation());
}

TEST_F(CoordinatorActingTest, NobodyIsSuspectedOnceTheJobHasStopped) {
  Train();
  Stop();
  EXPECT_FALSE(HasOrder()) << "nothing is to be kept";
  EXPECT_THAT(chief().Suspects(Flood()), IsEmpty());
}

TEST_F(CoordinatorActingTest, ANewProcessIsNotTheOneThatIsGone) {
  Train();
  const auto suspects = chief().Suspects(Flood());
  ASSERT_EQ(suspects.size(), 1u);
  ASSERT_OK(Register(Task("ps", 1, 111)));
  EXPECT_FALSE(chief().NoteGone(suspects[0], now_));
  EXPECT_THAT(Heartbeat(ps0_)->act_for(), IsEmpty());
}

TEST_F(CoordinatorActingTest, WorkersAreToldWhereItServes) {
  Train();
  Act();
  RegisterWorkers();
  const auto placement = Placement();
  ASSERT_OK(placement);
  EXPECT_EQ(placement->shard(0).address(), "p0:1");
  EXPECT_FALSE(placement->shard(0).has_host_index());
  EXPECT_EQ(placement->shard(1).address(), kAddress);
  EXPECT_EQ(placement->shard(1).host_index(), 0);
  EXPECT_EQ(placement->shard(1).ps_index(), 1);
  EXPECT_EQ(placement->shard(1).incarnation(), PublicNumber(kActing));
}

TEST_F(CoordinatorActingTest, NobodyActsWhileTheLeaseLives) {
  Train();
  EXPECT_THAT(Heartbeat(ps0_)->act_for(), IsEmpty());
  EXPECT_THAT(chief().Register(ActingEntry(), now_),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("ps/0 is not to act for ps/1 any more")));
  const absl::Time end = now_ + options_.lease;
  for (; now_ < end; now_ += absl::Seconds(1)) {
    chief().Tick(now_);
    EXPECT_THAT(chief().Heartbeat(Beat(ps0_), now_)->act_for(), IsEmpty());
  }
  chief().Tick(now_);
  EXPECT_EQ(chief().Heartbeat(Beat(ps0_), now_)->act_for_size(), 1);
}

TEST_F(CoordinatorActingTest, OneThatIsBackBeforeKeepsItsPlace) {
  Train();
  ASSERT_EQ(FindGone().act_for_size(), 1);
  // It only could not be reached. Without its standby it acknowledges what
  // nobody else has.
  ASSERT_OK(Register(ps1_, kRun));
  EXPECT_THAT(chief().Register(ActingEntry(), now_),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(Heartbeat(ps0_)->act_for(), IsEmpty());
}

TEST_F(CoordinatorActingTest, AnotherStandbyThanTheOneThatIsKeptDoesNotAct) {
  Train();
  ASSERT_EQ(FindGone().act_for_size(), 1);
  EXPECT_THAT(chief().Register(ActingEntry(kNumber + 1), now_),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(CoordinatorActingTest, AShardThatWasAloneIsNotActedFor) {
  Train();
  Report(ps1_, kNumber, "");
  EXPECT_THAT(FindGone().act_for(), IsEmpty());
}

TEST_F(CoordinatorActingTest, TheProcessBeforeHasToStartAgain) {
  Train();
  Act();
  EXPECT_THAT(Heartbeat(ps1_), StatusIs(absl::StatusCode::kAlreadyExists,
                                        HasSubstr("start it again")));
}

TEST_F(CoordinatorActingTest, WhoActsHasNoStandbyInItsOwnProcess) {
  Train();
  Act();
  EXPECT_FALSE(Report(Acting(), kNumber, "").has_standby_host());
  EXPECT_EQ(chief().standbys().KeptFor(1), StandbyBoard::kAlone);
  // Nor has its host's shard one there.
  EXPECT_FALSE(Report(ps0_, 0, "").has_standby_host());
}

TEST_F(CoordinatorActingTest, AComerWaitsForTheCheckpointToGoOnWith) {
  Train();
  Act();
  RegisterWorkers();
  const wire::Task comer = Task("ps", 1, 111);
  EXPECT_THAT(Register(comer), StatusIs(absl::StatusCode::kUnavailable,
                                        HasSubstr("ps/0 acts for ps/1")));
  wire::HeartbeatRequest beat = Beat(Acting());
  EXPECT_FALSE(chief().Heartbeat(beat, now_)->may_leave());
  now_ += kLeaveDelay;
  const std::optional<Order> order = chief().NextOrder(now_);
  ASSERT_TRUE(order);
  const auto checkpoint = std::get<CheckpointOrder>(*order);
  EXPECT_TRUE(checkpoint.stay);
  EXPECT_FALSE(chief().Heartbeat(beat, now_)->may_leave());
  chief().Done(CheckpointResult{checkpoint, absl::OkStatus()}, now_);
  EXPECT_TRUE(chief().Heartbeat(beat, now_)->may_leave());
  EXPECT_THAT(Register(comer), StatusIs(absl::StatusCode::kUnavailable));
  ASSERT_OK(Leave(Acting()));
  ASSERT_OK(Register(comer));
  const std::optional<LoadOrder> load = NextLoad();
  ASSERT_TRUE(load);
  EXPECT_EQ(load->targets[0].address, "p1:1");
  EXPECT_EQ(load->targets[0].host, std::nullopt);
  EXPECT_EQ(load->targets[0].standby->number(), StandbyBoard::kSaved);
  EXPECT_THAT(load->acting_hosts, IsEmpty());
}

TEST_F(CoordinatorActingTest, AComerThatIsGoneAgainEndsTheHandOver) {
  Train();
  Act();
  RegisterWorkers();
  EXPECT_FALSE(Register(Task("ps", 1, 111)).ok());
  ASSERT_OK(chief().Heartbeat(Beat(Acting()), now_));
  now_ += ActingBoard::kComerPatience;
  chief().Tick(now_);
  EXPECT_FALSE(chief().Heartbeat(Beat(Acting()), now_)->may_leave());
  EXPECT_FALSE(HasOrder());
}

// Its connections were cut, say, while the host's machine was lost.
TEST_F(CoordinatorActingTest, OneThatWasActedForStartsAgainThoughNobodyActs) {
  Train();
  Act();
  ASSERT_OK(Register(Task("ps", 0, 110)));
  EXPECT_THAT(Heartbeat(ps1_), StatusIs(absl::StatusCode::kAlreadyExists,
                                        HasSubstr("start it again")));
  EXPECT_OK(Register(Task("ps", 1, 111)));
}

TEST_F(CoordinatorActingTest, ALaterChiefWaitsForWhoActs) {
  options_.standbys = {{0, StandbyBoard::kAlone}, {1, StandbyBoard::kAlone}};
  options_.ps_epochs = {{0, 5}, {1, 6}};
  options_.acting_hosts = {{1, 0}};
  options_.chief_epoch = 2;
  const wire::Task comer = Task("ps", 1, 111);
  EXPECT_THAT(Register(comer), StatusIs(absl::StatusCode::kUnavailable));
  wire::RegisterRequest entry = ActingEntry();
  entry.set_place_epoch(6);
  ASSERT_OK(chief().Register(entry, now_));
  EXPECT_THAT(Register(comer), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(CoordinatorActingTest, ALaterChiefDoesNotWaitForOneWhoseHostIsAnother) {
  options_.ps_epochs = {{0, 5}, {1, 6}};
  options_.acting_hosts = {{1, 0}};
  options_.chief_epoch = 2;
  EXPECT_FALSE(Register(Task("ps", 1, 111)).ok());
  ASSERT_OK(Register(Task("ps", 0, 110)));
  EXPECT_OK(Register(Task("ps", 1, 111)));
}

TEST_F(CoordinatorActingTest, ALaterChiefWaitsForTwoLeasesAtMost) {
  options_.ps_epochs = {{0, 5}, {1, 6}};
  options_.acting_hosts = {{1, 0}};
  options_.chief_epoch = 2;
  EXPECT_FALSE(Register(Task("ps", 1, 111)).ok());
  now_ += 2 * options_.lease;
  EXPECT_OK(Register(Task("ps", 1, 111)));
}

// Three ps, of which ps/0 acts for ps/2 and has its own standby on ps/1.
class RefusedHostTest : public CoordinatorActingTest {
 protected:
  RefusedHostTest() {
    options_.shards.push_back({2, "p2:1", {}});
    options_.tasks[{"ps", 2}] = "p2:1";
  }

  static wire::Task Acting() {
    wire::Task task = Task("ps", 2, kActing);
    task.set_host_index(0);
    return task;
  }
  // Lets `host` say that the stream of its primary, ps/`index`, has ended;
  // nobody listens there.
  void FindGone(const wire::Task& host, int index) {
    wire::HeartbeatRequest request = Beat(host);
    wire::LostPrimary& lost = *request.add_lost_primary();
    lost.set_shard(index);
    lost.set_number(kNumber + index);
    ASSERT_OK(chief().Heartbeat(request, now_));
    const auto suspects = chief().Suspects(request);
    ASSERT_EQ(suspects.size(), 1u);
    ASSERT_TRUE(chief().NoteGone(suspects[0], now_));
  }
  void ActForPs2() {
    Resume(10);
    const wire::Task ps2 = Task("ps", 2, 12);
    for (const wire::Task& ps : {ps0_, ps1_, ps2}) ASSERT_OK(Register(ps));
    Load();
    for (const wire::Task& ps : {ps0_, ps1_, ps2}) Report(ps, 0, "");
    Report(ps0_, kNumber, "ps/1");
    Report(ps2, kNumber + 2, "ps/0");
    FindGone(ps0_, 2);
    ASSERT_EQ(Heartbeat(ps0_)->act_for_size(), 1);
    wire::RegisterRequest entry = ActingEntry(kNumber + 2);
    *entry.mutable_task() = Acting();
    ASSERT_OK(chief().Register(entry, now_));
    Load();
    Report(Acting(), kNumber + 2, "");
    ASSERT_EQ(chief().standbys().KeptFor(2), StandbyBoard::kAlone);
  }
};

// A proxy that refuses a connection to ps/0 is no death of what acts there, and
// has the only copy of ps/2's shard.
TEST_F(RefusedHostTest, OneThatActsThereKeepsItsPlace) {
  ActForPs2();
  FindGone(ps1_, 0);
  EXPECT_OK(chief().Heartbeat(Beat(Acting()), now_));
  EXPECT_FALSE(NextLoad().has_value());
  // Nor has ps/0 a successor, which would end with what acts.
  EXPECT_THAT(chief().Heartbeat(Beat(ps1_), now_)->act_for(), IsEmpty());
  ASSERT_OK(Register(ps0_, kRun));
  EXPECT_OK(chief().Heartbeat(Beat(Acting()), now_));
  EXPECT_THAT(Register(Task("ps", 2, 112)),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(RefusedHostTest, OneThatIsGoneIsActedForWhenTheLastLeaseIsOver) {
  ActForPs2();
  FindGone(ps1_, 0);
  const absl::Duration longest = (1 + Membership::kPrecedence) * options_.lease;
  const absl::Time end = now_ + longest;
  while (chief().Heartbeat(Beat(ps1_), now_)->act_for_size() == 0) {
    ASSERT_LE(now_, end);
    now_ += absl::Seconds(1);
    chief().Tick(now_);
  }
  EXPECT_GT(now_, end - absl::Seconds(2));
}

TEST_F(CoordinatorActingTest, StatusNamesWhoActs) {
  Train();
  Act();
  const wire::JobStatus status = chief().Status(now_);
  for (const wire::TaskStatus& task : status.task()) {
    const bool is_acted_for =
        task.task().role() == "ps" && task.task().index() == 1;
    EXPECT_EQ(task.acted_by(), is_acted_for ? "ps/0" : "");
    EXPECT_EQ(task.address() == kAddress, is_acted_for);
  }
}

// A machine falls silent, and the job is told to end: the standby has what the
// last checkpoint is to have.
TEST_F(CoordinatorActingTest, AChiefThatIsToldToEndWaitsForWhoActs) {
  Train();
  NextButLoads();
  MakeSteps();
  NextButLoads();
  Stop();
  CheckpointDone(NextCheckpointButLoads(),
                 absl::UnavailableError("ps/1 is silent"));
  // Not tried again at once, and not given up.
  EXPECT_FALSE(NextButLoads());
  EXPECT_FALSE(outcome());
  ASSERT_EQ(FindGone().act_for_size(), 1);
  EXPECT_FALSE(NextButLoads());
  EXPECT_FALSE(outcome());
  ASSERT_OK(chief().Register(ActingEntry(), now_));
  // What is loaded for it is not cancelled, though the chief is to end.
  EXPECT_TRUE(chief().Tick(now_).awaits_standby);
  now_ += absl::Seconds(3);
  const CheckpointOrder second = NextCheckpointButLoads();
  EXPECT_GT(second.manifest.global_step(), 10);
  CheckpointDone(second, absl::OkStatus());
  EXPECT_FALSE(NextButLoads());
  EXPECT_TRUE(outcome());
}

TEST_F(CoordinatorActingTest, AChiefThatIsToldToEndDoesNotWaitForEver) {
  Train();
  NextButLoads();
  MakeSteps();
  NextButLoads();
  Stop();
  FindGone();
  EXPECT_FALSE(NextButLoads());
  EXPECT_FALSE(outcome());
  EXPECT_TRUE(chief().Tick(now_).awaits_standby);
  now_ += kStandbyLimit;
  EXPECT_FALSE(chief().Tick(now_).awaits_standby);
  EXPECT_FALSE(NextButLoads());
  EXPECT_TRUE(outcome());
}

TEST_F(CoordinatorActingTest, WithoutStepsAChiefThatIsToldToEndWaitsForNobody) {
  Train();
  Stop();
  FindGone();
  EXPECT_FALSE(HasOrder());
  EXPECT_TRUE(outcome());
}

}  // namespace
}  // namespace parasol::coordinator_testing
