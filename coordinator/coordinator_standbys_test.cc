#include <cstdint>
#include <optional>
#include <variant>

#include "absl/time/time.h"
#include "base/status_matchers.h"
#include "cluster/trust/process_secret.h"
#include "cluster/trust/standby_ticket.h"
#include "coordinator/coordinator.h"
#include "coordinator/shards/standby_board.h"
#include "coordinator/testing/coordinator_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

// Decisions of a chief about shards that have standbys.
namespace parasol::coordinator_testing {
namespace {

constexpr uint64_t kNumber = 77;

class CoordinatorStandbysTest : public CoordinatorTest {
 protected:
  CoordinatorStandbysTest() {
    options_.job.mutable_parameter_server()->set_durability(
        job::ParameterServerStrategy::REPLICATE);
  }

  // Reports of ps/<index>'s shard; returns the answer, and records.
  wire::HeartbeatResponse Report(int index, uint64_t incarnation,
                                 uint64_t number, bool has_standby) {
    wire::HeartbeatRequest request;
    *request.mutable_task() = Task("ps", index, incarnation);
    request.set_run_id(kRun);
    request.set_layout(kLayout);
    wire::StandbyPlace& place = *request.mutable_standby()->mutable_place();
    place.set_number(number);
    if (has_standby) place.set_task("ps/1");
    auto response = chief().Heartbeat(request, now_);
    EXPECT_OK(response);
    StandbyBoard& board = chief().standbys();
    if (const auto kept = board.ToRecord()) board.Recorded(*kept);
    if (const auto kept = board.AnswerTo(index, request.standby())) {
      response->set_kept_standby(*kept);
    }
    return *response;
  }

  // Registers both ps, and has them loaded.
  void LoadBoth() {
    ASSERT_OK(Register(Task("ps", 0, 10)));
    ASSERT_OK(Register(Task("ps", 1, 11)));
    const LoadOrder order = NextLoadOrder();
    ASSERT_EQ(order.targets.size(), 2u);
    for (const LoadOrder::Target& target : order.targets) {
      EXPECT_EQ(target.standby->number(), StandbyBoard::kSaved);
      chief().Done(LoadResult{target, absl::OkStatus()}, now_);
    }
  }
  LoadOrder NextLoadOrder() {
    const std::optional<Order> order = chief().NextOrder(now_);
    if (!order || !std::holds_alternative<LoadOrder>(*order)) return {};
    return std::get<LoadOrder>(*order);
  }
};

TEST_F(CoordinatorStandbysTest, NamesTheNextPsAndShowsThatItIsMeant) {
  LoadBoth();
  const wire::HeartbeatResponse answer = Report(0, 10, 0, false);
  EXPECT_EQ(answer.standby_host().task(), "ps/1");
  EXPECT_EQ(answer.standby_host().address(), "p1:1");
  EXPECT_EQ(answer.standby_host().ps_incarnation(), PublicNumber(11));
  EXPECT_EQ(answer.standby_host().number(), StandbyTicket(0, 2, 11));
  EXPECT_EQ(Report(1, 11, 0, false).standby_host().task(), "ps/0");
  // The shard is alone now, and is told so.
  EXPECT_TRUE(answer.has_kept_standby());
  EXPECT_EQ(answer.kept_standby(), 0u);
}

TEST_F(CoordinatorStandbysTest, ASuccessorIsRestoredFromTheStandbyThatIsKept) {
  LoadBoth();
  Report(0, 10, 0, false);
  EXPECT_EQ(Report(0, 10, kNumber, true).kept_standby(), kNumber);
  ASSERT_OK(Register(Task("ps", 0, 110)));
  // It has no shard yet, and drops nothing.
  EXPECT_FALSE(Report(0, 110, kNumber, false).has_kept_standby());
  const LoadOrder order = NextLoadOrder();
  ASSERT_EQ(order.targets.size(), 1u);
  EXPECT_EQ(order.targets[0].standby->number(), kNumber);
  EXPECT_EQ(order.targets[0].standby->task(), "ps/1");
  EXPECT_EQ(order.targets[0].standby->ps_incarnation(), PublicNumber(11));
  chief().Done(LoadResult{order.targets[0], absl::OkStatus()}, now_);
  EXPECT_TRUE(Report(0, 110, kNumber, false).has_kept_standby());
  EXPECT_EQ(chief().standbys().KeptFor(0), StandbyBoard::kAlone);
}

TEST_F(CoordinatorStandbysTest, ASuccessorWaitsForThePsThatHasTheStandby) {
  LoadBoth();
  Report(0, 10, 0, false);
  Report(0, 10, kNumber, true);
  ASSERT_OK(Leave(Task("ps", 1, 11)));
  ASSERT_OK(Register(Task("ps", 0, 110)));
  Report(0, 110, kNumber, false);
  EXPECT_TRUE(NextLoadOrder().targets.empty());
  // Whichever process comes there says whether it has it.
  ASSERT_OK(Register(Task("ps", 1, 111)));
  const LoadOrder order = NextLoadOrder();
  ASSERT_EQ(order.targets.size(), 2u);
  EXPECT_EQ(order.targets[0].standby->number(), kNumber);
  EXPECT_EQ(order.targets[0].standby->ps_incarnation(), PublicNumber(111));
}

TEST_F(CoordinatorStandbysTest, AJobThatDoesNotReplicateNamesNoStandby) {
  options_.job.mutable_parameter_server()->clear_durability();
  ASSERT_OK(Register(Task("ps", 0, 10)));
  ASSERT_OK(Register(Task("ps", 1, 11)));
  const LoadOrder order = NextLoadOrder();
  ASSERT_EQ(order.targets.size(), 2u);
  EXPECT_FALSE(order.targets[0].standby.has_value());
}

}  // namespace
}  // namespace parasol::coordinator_testing
