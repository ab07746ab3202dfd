#include "coordinator/membership.h"

#include <functional>
#include <string>
#include <vector>

#include "base/status_matchers.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kLease = absl::Seconds(10);
// The epoch of a process that has been given none.
constexpr int64_t kNew = 0;

absl::Time At(int seconds) { return absl::FromUnixSeconds(1000 + seconds); }

wire::Task Task(const std::string& role, int index, uint64_t incarnation) {
  wire::Task task;
  task.set_role(role);
  task.set_index(index);
  task.set_incarnation(incarnation);
  return task;
}

Membership TwoPsAndAWorker() {
  return Membership(
      {.places = {{"ps", 0}, {"ps", 1}, {"worker", 3}}, .lease = kLease},
      At(0));
}

// As above, of the chief `chief_epoch`, which knows of ps/0 what others have
// recorded.
Membership OfChief(int64_t chief_epoch, int64_t newest_of_ps0 = 0) {
  return Membership({.places = {{"ps", 0}, {"ps", 1}, {"worker", 3}},
                     .lease = kLease,
                     .chief_epoch = chief_epoch,
                     .newest_epochs = {{{"ps", 0}, newest_of_ps0}}},
                    At(0));
}

int64_t EpochOf(Membership& membership, uint64_t incarnation,
                int64_t epoch = kNew) {
  const auto registration =
      membership.Register(Task("ps", 0, incarnation), {.epoch = epoch}, At(0));
  EXPECT_OK(registration);
  return registration.ok() ? registration->epoch : -1;
}

TEST(Membership, AnswersARenewalByWhatHappenedBefore) {
  using Code = absl::StatusCode;
  struct Case {
    std::string name;
    std::function<void(Membership&)> before;
    wire::Task task;
    int at_seconds;
    Code want;
  };
  auto registered = [](Membership& m) {
    ASSERT_OK(m.Register(Task("ps", 1, 7), {}, At(0)));
  };
  auto replaced = [&registered](Membership& m) {
    registered(m);
    ASSERT_OK(m.Register(Task("ps", 1, 8), {}, At(1)));
    ASSERT_OK(m.Renew(Task("ps", 1, 8), At(1)));
  };
  auto taken = [&registered](Membership& m) {
    registered(m);
    ASSERT_OK(m.Register(Task("ps", 1, 8), {}, At(1)));
  };
  auto expired = [&registered](Membership& m) {
    registered(m);
    m.Expire(At(10));
  };
  auto left = [&registered](Membership& m) {
    registered(m);
    ASSERT_OK(m.Leave(Task("ps", 1, 7), At(1)));
  };
  auto nothing = [](Membership&) {};
  const Case cases[] = {
      {"never registered", nothing, Task("ps", 1, 7), 1, Code::kNotFound},
      {"registered", registered, Task("ps", 1, 7), 1, Code::kOk},
      {"other incarnation", registered, Task("ps", 1, 9), 1, Code::kNotFound},
      {"replaced", replaced, Task("ps", 1, 7), 1, Code::kFailedPrecondition},
      {"put off", taken, Task("ps", 1, 7), 1, Code::kUnavailable},
      {"the replacing one", replaced, Task("ps", 1, 8), 1, Code::kOk},
      {"expired", expired, Task("ps", 1, 7), 11, Code::kNotFound},
      {"left", left, Task("ps", 1, 7), 2, Code::kNotFound},
      {"index with a gap", nothing, Task("worker", 0, 7), 1,
       Code::kInvalidArgument},
      {"no such role", nothing, Task("chief", 0, 7), 1, Code::kInvalidArgument},
      {"no incarnation", nothing, Task("ps", 1, 0), 1, Code::kInvalidArgument},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    Membership membership = TwoPsAndAWorker();
    c.before(membership);
    EXPECT_THAT(membership.Renew(c.task, At(c.at_seconds)), StatusIs(c.want));
  }
}

TEST(Membership, LeaseLastsFromTheLastRenewal) {
  Membership membership = TwoPsAndAWorker();
  ASSERT_OK(membership.Register(Task("ps", 0, 7), {}, At(0)));
  ASSERT_OK(membership.Renew(Task("ps", 0, 7), At(5)));
  EXPECT_TRUE(membership.Expire(At(14)).empty());
  const auto lost = membership.Expire(At(15));
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost[0].id.ToString(), "ps/0");
  EXPECT_EQ(lost[0].incarnation, 7u);
  EXPECT_TRUE(membership.Expire(At(16)).empty());
}

TEST(Membership, ALostIncarnationMayComeBack) {
  Membership membership = TwoPsAndAWorker();
  ASSERT_OK(membership.Register(Task("ps", 0, 7), {}, At(0)));
  membership.Expire(At(20));
  ASSERT_OK_AND_ASSIGN(auto registration,
                       membership.Register(Task("ps", 0, 7), {}, At(21)));
  EXPECT_EQ(registration.replaced, std::nullopt);
}

TEST(Membership, ALostIncarnationThatWasReplacedMayNotComeBack) {
  Membership membership = TwoPsAndAWorker();
  ASSERT_OK(membership.Register(Task("ps", 0, 7), {}, At(0)));
  membership.Expire(At(20));
  ASSERT_OK_AND_ASSIGN(auto registration,
                       membership.Register(Task("ps", 0, 8), {}, At(21)));
  EXPECT_EQ(registration.replaced, 7u);
  EXPECT_THAT(
      membership.Register(Task("ps", 0, 7), {}, At(22)),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("ps/0")));
}

TEST(Membership, ARegistrationThatIsSentAgainChangesNothing) {
  Membership membership = TwoPsAndAWorker();
  ASSERT_OK_AND_ASSIGN(auto once,
                       membership.Register(Task("ps", 0, 7), {}, At(0)));
  ASSERT_OK_AND_ASSIGN(auto again,
                       membership.Register(Task("ps", 0, 7), {}, At(1)));
  EXPECT_EQ(again.replaced, std::nullopt);
  EXPECT_EQ(again.epoch, once.epoch);
}

TEST(Membership, RemembersBoundedlyManyReplacedIncarnations) {
  Membership membership = TwoPsAndAWorker();
  for (uint64_t incarnation = 1; incarnation <= 1000; ++incarnation) {
    ASSERT_OK(membership.Register(Task("ps", 0, incarnation), {}, At(0)));
  }
  EXPECT_EQ(membership.members().at({"ps", 0}).replaced.size(),
            Membership::kMaxReplaced);
}

// One that is heard after another process has its place. A restart is not one:
// nothing is heard of the process before it.
TEST(Membership, TwoProcessesOfOneTaskAreBothNamed) {
  Membership membership = TwoPsAndAWorker();
  const auto doubled = [&membership] {
    return membership.members().at({"worker", 3}).doubled;
  };
  const auto at = [](const std::string& host) {
    return Membership::Arrival{.process = host + ", process 9"};
  };
  ASSERT_OK(membership.Register(Task("worker", 3, 7), at("a"), At(0)));
  ASSERT_OK(membership.Register(Task("worker", 3, 8), at("b"), At(1)));
  ASSERT_OK(membership.Renew(Task("worker", 3, 8), At(2)));
  EXPECT_EQ(doubled(), "");
  EXPECT_THAT(membership.Renew(Task("worker", 3, 7), At(3)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("another process (b, process 9) has reg")));
  EXPECT_EQ(doubled(),
            "two processes run as it: the one (b, process 9) that came last "
            "has its place, the one (a, process 9) before is told to end");
  EXPECT_OK(membership.Renew(Task("worker", 3, 8), At(4)));
  EXPECT_NE(doubled(), "");
  ASSERT_OK(membership.Register(Task("worker", 3, 9), at("b"), At(5)));
  EXPECT_EQ(doubled(), "") << "killed, and started again";
  ASSERT_OK(membership.Renew(Task("worker", 3, 9), At(6)));
  EXPECT_EQ(doubled(), "");
}

TEST(Membership, ATaskThatStoodStillAndReturnsIsNamedWithItsSuccessor) {
  Membership membership = TwoPsAndAWorker();
  ASSERT_OK(membership.Register(Task("ps", 0, 7), {}, At(0)));
  membership.Expire(At(20));
  ASSERT_OK(membership.Register(Task("ps", 0, 8), {}, At(21)));
  EXPECT_THAT(membership.Renew(Task("ps", 0, 7), At(22)),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(membership.members().at({"ps", 0}).doubled,
            "two processes run as it: the one that came last has its place, "
            "the one before is told to end");
}

// A ps that stood still while another one acted for it, and the one that acted:
// each is told to end, and neither was started twice.
TEST(Membership, WhoeverActsForALostProcessIsNoSecondOne) {
  Membership membership = TwoPsAndAWorker();
  const auto doubled = [&membership] {
    return membership.members().at({"ps", 0}).doubled;
  };
  ASSERT_OK(membership.Register(Task("ps", 0, 7), {}, At(0)));
  membership.Expire(At(20));
  ASSERT_OK(membership.Register(Task("ps", 0, 8), {.acts = true}, At(21)));
  EXPECT_THAT(membership.Renew(Task("ps", 0, 7), At(22)),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(doubled(), "");
  ASSERT_OK(membership.Renew(Task("ps", 0, 8), At(22)));
  ASSERT_OK(membership.Register(Task("ps", 0, 9), {}, At(23)));
  ASSERT_OK(membership.Renew(Task("ps", 0, 9), At(24)));
  for (const uint64_t former : {7, 8}) {
    EXPECT_THAT(membership.Renew(Task("ps", 0, former), At(25)),
                StatusIs(absl::StatusCode::kFailedPrecondition));
    EXPECT_EQ(doubled(), "") << former;
  }
  ASSERT_OK(membership.Register(Task("ps", 0, 10), {}, At(26)));
  ASSERT_OK(membership.Renew(Task("ps", 0, 10), At(27)));
  EXPECT_THAT(membership.Renew(Task("ps", 0, 9), At(28)),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_NE(doubled(), "") << "none of both acted";
}

// It was still alive when the one that acts came, and is put off first.
TEST(Membership, ALiveProcessWhosePlaceOneThatActsTakesIsNoSecondOne) {
  Membership membership = TwoPsAndAWorker();
  ASSERT_OK(membership.Register(Task("ps", 0, 7), {}, At(0)));
  ASSERT_OK(membership.Register(Task("ps", 0, 8), {.acts = true}, At(1)));
  ASSERT_OK(membership.Renew(Task("ps", 0, 8), At(2)));
  EXPECT_THAT(membership.Renew(Task("ps", 0, 7), At(3)),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(membership.members().at({"ps", 0}).doubled, "");
}

TEST(Membership, AbsentNamesThoseOfTheRoleThatAreNotAlive) {
  Membership membership = TwoPsAndAWorker();
  ASSERT_OK(membership.Register(Task("ps", 0, 7), {}, At(0)));
  ASSERT_EQ(membership.Absent("ps").size(), 1u);
  EXPECT_EQ(membership.Absent("ps")[0].ToString(), "ps/1");
  EXPECT_EQ(membership.CountAlive("ps"), 1);
  EXPECT_EQ(membership.Staying().size(), 1);
}

TEST(Membership, WhoseLeaseRanOutStaysUntilItLeavesOrIsReplaced) {
  Membership membership = TwoPsAndAWorker();
  ASSERT_OK(membership.Register(Task("ps", 0, 7), {}, At(0)));
  ASSERT_OK(membership.Register(Task("ps", 1, 8), {}, At(0)));
  membership.Expire(At(10));
  EXPECT_EQ(membership.Staying().size(), 2);
  ASSERT_OK(membership.Register(Task("ps", 0, 7), {}, At(11)));
  ASSERT_OK(membership.Leave(Task("ps", 0, 7), At(12)));
  EXPECT_EQ(membership.Staying().size(), 1);
  ASSERT_OK(membership.Register(Task("ps", 1, 9), {}, At(12)));
  ASSERT_OK(membership.Leave(Task("ps", 1, 9), At(13)));
  EXPECT_EQ(membership.Staying().size(), 0);
}

TEST(Membership, WhoseLeaseRanOutMayLeaveWithoutAnother) {
  Membership membership = TwoPsAndAWorker();
  ASSERT_OK(membership.Register(Task("ps", 0, 7), {}, At(0)));
  ASSERT_OK(membership.Register(Task("ps", 1, 8), {}, At(0)));
  EXPECT_THAT(membership.Leave(Task("ps", 1, 8), At(1)), IsOkAndHolds(true));
  membership.Expire(At(10));
  EXPECT_THAT(membership.Leave(Task("ps", 0, 7), At(12)), IsOkAndHolds(false));
  EXPECT_THAT(membership.Staying(), testing::IsEmpty());
  EXPECT_EQ(membership.CountAlive("ps"), 0);
  EXPECT_THAT(membership.Leave(Task("ps", 0, 7), At(13)),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST(Membership, EachProcessAtAPlaceHasALargerEpochOverAllChiefs) {
  Membership first = OfChief(1);
  const int64_t a = EpochOf(first, 7);
  EXPECT_EQ(EpochOf(first, 7), a) << "sent again";
  EXPECT_EQ(EpochOf(first, 7, a), a);
  const int64_t b = EpochOf(first, 8);
  EXPECT_GT(b, a);
  Membership second = OfChief(2);
  EXPECT_GT(EpochOf(second, 9), b);
}

TEST(Membership, TheOlderProcessLosesInWhateverOrderTheyCome) {
  Membership first = OfChief(1);
  const int64_t old = EpochOf(first, 7);
  const int64_t young = EpochOf(first, 8);
  {
    SCOPED_TRACE("the older one comes first");
    Membership second = OfChief(2);
    EXPECT_EQ(EpochOf(second, 7, old), old);
    ASSERT_OK_AND_ASSIGN(
        const auto registration,
        second.Register(Task("ps", 0, 8), {.epoch = young}, At(1)));
    EXPECT_EQ(registration.replaced, 7u);
    ASSERT_OK(second.Renew(Task("ps", 0, 8), At(1)));
    EXPECT_THAT(second.Register(Task("ps", 0, 7), {.epoch = old}, At(2)),
                StatusIs(absl::StatusCode::kFailedPrecondition));
  }
  {
    SCOPED_TRACE("the younger one comes first");
    Membership second = OfChief(2);
    EXPECT_EQ(EpochOf(second, 8, young), young);
    EXPECT_THAT(
        second.Register(Task("ps", 0, 7), {.epoch = old}, At(1)),
        StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("ps/0")));
    EXPECT_OK(second.Renew(Task("ps", 0, 8), At(2)));
  }
  {
    SCOPED_TRACE("the younger one is new to every chief");
    Membership second = OfChief(2);
    EpochOf(second, 9);
    EXPECT_THAT(second.Register(Task("ps", 0, 8), {.epoch = young}, At(1)),
                StatusIs(absl::StatusCode::kFailedPrecondition));
  }
}

TEST(Membership, ARecordedEpochRefusesThoseBeforeIt) {
  Membership first = OfChief(1);
  const int64_t old = EpochOf(first, 7);
  const int64_t young = EpochOf(first, 8);
  Membership second = OfChief(2, /*newest_of_ps0=*/young);
  EXPECT_THAT(second.Register(Task("ps", 0, 7), {.epoch = old}, At(1)),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(EpochOf(second, 8, young), young);
}

TEST(Membership, OfTwoProcessesWithOneEpochTheFirstStays) {
  Membership membership = OfChief(1);
  const int64_t epoch = EpochOf(membership, 7);
  EXPECT_THAT(membership.Register(Task("ps", 0, 8), {.epoch = epoch}, At(1)),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

// The registration of a killed process comes after its successor's.
TEST(Membership, ADeadProcessWhoseRegistrationComesLateGivesThePlaceBack) {
  Membership membership = OfChief(1);
  const int64_t living = EpochOf(membership, 8);
  ASSERT_OK(membership.Renew(Task("ps", 0, 8), At(1)));
  ASSERT_OK(membership.Register(Task("ps", 0, 7), {}, At(2)));
  EXPECT_FALSE(membership.IsSettled({"ps", 0}));
  EXPECT_THAT(membership.Renew(Task("ps", 0, 8), At(3)),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("ps/0")));
  ASSERT_EQ(membership.Expire(At(12)).size(), 1u);
  EXPECT_TRUE(membership.IsSettled({"ps", 0}));
  EXPECT_THAT(membership.Renew(Task("ps", 0, 8), At(13)),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_GT(EpochOf(membership, 8, living), living + 1) << "above the other's";
  EXPECT_THAT(membership.Register(Task("ps", 0, 7), {}, At(14)),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(Membership, ANewcomerThatIsHeardAgainHoldsThePlace) {
  Membership membership = OfChief(1);
  const int64_t old = EpochOf(membership, 7);
  ASSERT_OK(membership.Register(Task("ps", 0, 8), {}, At(2)));
  ASSERT_OK(membership.Renew(Task("ps", 0, 8), At(3)));
  EXPECT_TRUE(membership.IsSettled({"ps", 0}));
  EXPECT_THAT(membership.Register(Task("ps", 0, 7), {.epoch = old}, At(4)),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  membership.Expire(At(20));
  EXPECT_THAT(membership.Register(Task("ps", 0, 7), {.epoch = old}, At(21)),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

// The place's process stood still before it could register: its successor is
// there by now.
TEST(Membership, AProcessThatBeganEarlierWaitsUntilTheOneAtThePlaceIsGone) {
  Membership membership = OfChief(1);
  const Membership::Arrival earlier = {.joined_at = At(0)};
  ASSERT_OK(membership.Register(Task("ps", 0, 8), {.joined_at = At(5)}, At(6)));
  EXPECT_THAT(membership.Register(Task("ps", 0, 7), earlier, At(7)),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("ps/0")));
  EXPECT_TRUE(membership.IsSettled({"ps", 0}));
  ASSERT_EQ(membership.Expire(At(16)).size(), 1u);
  // Others are heard all the time.
  for (int second = 10; second < 35; second += 5) {
    ASSERT_OK(membership.Register(Task("ps", 1, 9), {}, At(second)));
  }
  EXPECT_THAT(membership.Register(Task("ps", 0, 7), earlier, At(35)),
              StatusIs(absl::StatusCode::kUnavailable));
  ASSERT_OK(membership.Register(Task("ps", 0, 7), earlier, At(36)));
  EXPECT_THAT(membership.Renew(Task("ps", 0, 8), At(37)),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

// The clock was set back between two processes of one machine, or forward
// before the first one.
TEST(Membership, ProcessesOfOneMachineAreNotToldApartByItsClock) {
  for (const int set_to : {-86400, 5}) {
    Membership membership = OfChief(1);
    const Membership::Arrival first = {.joined_at = {At(5), "boot", 5000000}};
    const Membership::Arrival second = {
        .joined_at = {At(set_to), "boot", 6000000}};
    ASSERT_OK(membership.Register(Task("ps", 0, 7), first, At(5)));
    EXPECT_OK(membership.Register(Task("ps", 0, 8), second, At(6))) << set_to;
    ASSERT_OK(membership.Renew(Task("ps", 0, 8), At(7)));
    EXPECT_THAT(membership.Register(Task("ps", 0, 7), first, At(7)),
                StatusIs(absl::StatusCode::kFailedPrecondition));
  }
}

TEST(Membership, AnEarlierProcessOfOneMachineWaitsWhateverItsClockSays) {
  Membership membership = OfChief(1);
  ASSERT_OK(membership.Register(
      Task("ps", 0, 8), {.joined_at = {At(0), "boot", 6000000}}, At(6)));
  EXPECT_THAT(
      membership.Register(Task("ps", 0, 7),
                          {.joined_at = {At(6), "boot", 5000000}}, At(7)),
      StatusIs(absl::StatusCode::kUnavailable));
}

// Each kernel counts from its own start.
TEST(Membership, ProcessesOfTwoMachinesAreToldApartByTheirClocks) {
  for (const std::string other : {"other", ""}) {
    Membership membership = OfChief(1);
    ASSERT_OK(membership.Register(
        Task("ps", 0, 8), {.joined_at = {At(5), "boot", 9000000}}, At(6)));
    EXPECT_THAT(
        membership.Register(Task("ps", 0, 7),
                            {.joined_at = {At(4), other, 9900000}}, At(7)),
        StatusIs(absl::StatusCode::kUnavailable));
    EXPECT_OK(membership.Register(Task("ps", 0, 9),
                                  {.joined_at = {At(7), other, 10}}, At(7)));
  }
}

// The chief was cut off from all: the one at the place may be well.
TEST(Membership, AProcessThatBeganEarlierWaitsAnewAfterASilenceOfAll) {
  Membership membership = OfChief(1);
  const Membership::Arrival earlier = {.joined_at = At(0)};
  ASSERT_OK(membership.Register(Task("ps", 0, 8), {.joined_at = At(5)}, At(6)));
  ASSERT_EQ(membership.Expire(At(16)).size(), 1u);
  EXPECT_THAT(membership.Register(Task("ps", 0, 7), earlier, At(60)),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_OK(
      membership.Register(Task("ps", 0, 8), {.joined_at = At(5)}, At(61)));
}

TEST(Membership, AProcessThatBeganEarlierNeedNotWaitForOneThatHasLeft) {
  Membership membership = OfChief(1);
  ASSERT_OK(membership.Register(Task("ps", 0, 8), {.joined_at = At(5)}, At(6)));
  ASSERT_OK(membership.Leave(Task("ps", 0, 8), At(7)));
  EXPECT_OK(membership.Register(Task("ps", 0, 7), {.joined_at = At(0)}, At(8)));
}

// It is cut off after its first message, and the process before it is dead.
TEST(Membership, ANewcomerThatFallsSilentKeepsThePlaceOfASilentOne) {
  Membership membership = OfChief(1);
  EpochOf(membership, 7);
  const int64_t epoch = EpochOf(membership, 8);
  ASSERT_EQ(membership.Expire(At(10)).size(), 1u);
  EXPECT_OK(membership.Register(Task("ps", 0, 8), {.epoch = epoch}, At(20)));
}

TEST(Membership, ANewcomerThatFallsSilentKeepsThePlaceOfAnEarlierOne) {
  Membership membership = OfChief(1);
  ASSERT_OK_AND_ASSIGN(
      const auto first,
      membership.Register(Task("ps", 0, 7), {.joined_at = At(0)}, At(0)));
  ASSERT_OK_AND_ASSIGN(
      const auto second,
      membership.Register(Task("ps", 0, 8), {.joined_at = At(1)}, At(1)));
  EXPECT_THAT(membership.Renew(Task("ps", 0, 7), At(2)),
              StatusIs(absl::StatusCode::kUnavailable));
  ASSERT_EQ(membership.Expire(At(11)).size(), 1u);
  EXPECT_THAT(
      membership.Register(Task("ps", 0, 7), {.epoch = first.epoch}, At(12)),
      StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_OK(
      membership.Register(Task("ps", 0, 8), {.epoch = second.epoch}, At(13)));
}

// Its clock, or a stranger's message, is wrong.
TEST(Membership, ATimeOfJoiningInTheFutureCountsForNothing) {
  Membership membership = OfChief(1);
  const int64_t epoch = EpochOf(membership, 8);
  ASSERT_OK(membership.Register(Task("ps", 0, 7),
                                {.joined_at = absl::InfiniteFuture()}, At(1)));
  EXPECT_THAT(membership.Renew(Task("ps", 0, 8), At(2)),
              StatusIs(absl::StatusCode::kUnavailable));
  ASSERT_EQ(membership.Expire(At(11)).size(), 1u);
  EXPECT_OK(membership.Register(Task("ps", 0, 8), {.epoch = epoch}, At(12)));
}

// Three processes of one place, the oldest of which was there first.
TEST(Membership, TheNewestOfThreeKeepsThePlaceThoughItFallsSilent) {
  Membership membership = OfChief(1);
  ASSERT_OK_AND_ASSIGN(
      const auto oldest,
      membership.Register(Task("ps", 0, 7), {.joined_at = At(-9)}, At(0)));
  ASSERT_OK(membership.Register(Task("ps", 0, 8), {}, At(1)));
  ASSERT_OK_AND_ASSIGN(
      const auto newest,
      membership.Register(Task("ps", 0, 9), {.joined_at = At(2)}, At(2)));
  EXPECT_THAT(membership.Renew(Task("ps", 0, 7), At(3)),
              StatusIs(absl::StatusCode::kUnavailable));
  ASSERT_EQ(membership.Expire(At(12)).size(), 1u);
  EXPECT_THAT(
      membership.Register(Task("ps", 0, 7), {.epoch = oldest.epoch}, At(13)),
      StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_OK(
      membership.Register(Task("ps", 0, 9), {.epoch = newest.epoch}, At(13)));
}

// The earlier process was never heard by a chief. With the second chief it is
// heard first.
TEST(Membership, AProcessOfTheChiefBeforeComesBehindOneThatBeganEarlier) {
  Membership first = OfChief(1);
  ASSERT_OK_AND_ASSIGN(
      const auto known,
      first.Register(Task("ps", 0, 8), {.joined_at = At(5)}, At(6)));
  Membership second = OfChief(2);
  ASSERT_OK(second.Register(Task("ps", 0, 7), {.joined_at = At(0)}, At(10)));
  EXPECT_OK(second.Register(
      Task("ps", 0, 8), {.epoch = known.epoch, .joined_at = At(5)}, At(11)));
  ASSERT_OK(second.Renew(Task("ps", 0, 8), At(12)));
  EXPECT_THAT(second.Renew(Task("ps", 0, 7), At(12)),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(Membership, AnOldChiefSendsTasksOfANewerOneAway) {
  Membership second = OfChief(2);
  const int64_t epoch = EpochOf(second, 7);
  Membership first = OfChief(1);
  EXPECT_THAT(first.Register(Task("ps", 0, 7), {.epoch = epoch}, At(0)),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("chief 2")));
  EXPECT_THAT(first.Register(Task("ps", 0, 7), {.epoch = -1}, At(0)),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(Membership, AnEpochThatNoChiefGivesIsRefused) {
  constexpr int64_t kLargest = (int64_t{1} << 32) + (int64_t{1} << 31);
  Membership first = OfChief(1);
  for (const int64_t absurd : {kLargest + 1, (int64_t{2} << 32) - 1}) {
    EXPECT_THAT(first.Register(Task("ps", 0, 7), {.epoch = absurd}, At(0)),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
  // Those after the largest that is taken are given more, and may come again.
  ASSERT_OK(first.Register(Task("ps", 0, 7), {.epoch = kLargest}, At(0)));
  ASSERT_OK_AND_ASSIGN(const Membership::Registration next,
                       first.Register(Task("ps", 0, 8), {}, At(1)));
  EXPECT_GT(next.epoch, kLargest);
  EXPECT_OK(first.Register(Task("ps", 0, 8), {.epoch = next.epoch}, At(2)));
}

}  // namespace
}  // namespace parasol
