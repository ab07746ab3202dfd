#include "worker/group/group_membership.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kOwn = 7;
const absl::Time kStart = absl::FromUnixSeconds(1000);

// Returns an answer that names the members, by their incarnations; worker/i has
// replica i.
wire::ClaimStepsResponse Group(int64_t version,
                               const std::vector<uint64_t>& members) {
  wire::ClaimStepsResponse answer;
  answer.set_assignment_version(version);
  for (size_t i = 0; i < members.size(); ++i) {
    wire::GroupMember& member = *answer.add_member();
    member.mutable_task()->set_role("worker");
    member.mutable_task()->set_index(static_cast<int>(i));
    member.mutable_task()->set_incarnation(members[i]);
    member.add_replica(static_cast<int>(i));
  }
  return answer;
}

GroupMembership NewGroupMembership() {
  return GroupMembership(kOwn, absl::Seconds(2));
}

TEST(GroupMembershipTest, ANewerGroupEndsTheOneBeforeEvenWithoutThisWorker) {
  GroupMembership membership = NewGroupMembership();
  EXPECT_TRUE(membership.Hear(Group(3, {kOwn, 8})));
  EXPECT_EQ(membership.group().version, 3);
  EXPECT_FALSE(membership.IsOver(3));
  EXPECT_TRUE(membership.Hear(Group(4, {8})));
  EXPECT_EQ(membership.group().version, 3);
  EXPECT_TRUE(membership.IsOver(3));
}

TEST(GroupMembershipTest, AnOlderGroupIsNoNews) {
  GroupMembership membership = NewGroupMembership();
  membership.Hear(Group(3, {kOwn}));
  EXPECT_FALSE(membership.Hear(Group(2, {kOwn, 8})));
  EXPECT_EQ(membership.heard(), 3);
  EXPECT_EQ(membership.group().names.size(), 1u);
  EXPECT_TRUE(membership.Hear(Group(3, {kOwn})));
}

TEST(GroupMembershipTest, AWorkerThatStopsFinishesAStepForAWhileOnly) {
  GroupMembership membership = NewGroupMembership();
  membership.Hear(Group(3, {kOwn, 8}));
  membership.SetMakesSteps(true);
  EXPECT_FALSE(membership.GivesUp(kStart, /*stays=*/false));
  membership.Stop(kStart);
  membership.Stop(kStart + absl::Seconds(1));  // the first time counts
  EXPECT_TRUE(membership.IsOver(3));
  EXPECT_FALSE(membership.GivesUp(kStart + absl::Seconds(1.9), false));
  EXPECT_TRUE(membership.GivesUp(kStart + absl::Seconds(2), false));
}

TEST(GroupMembershipTest, AWorkerThatStopsFinishesNoStepBehindItsCheckpoint) {
  GroupMembership membership = NewGroupMembership();
  membership.Hear(Group(3, {kOwn, 8}));
  membership.SetMakesSteps(true);
  EXPECT_FALSE(membership.GivesUp(kStart, /*stays=*/true));
  membership.Stop(kStart);
  EXPECT_TRUE(membership.GivesUp(kStart, /*stays=*/true));
}

TEST(GroupMembershipTest, AWorkerThatStopsWaitsForNoJoin) {
  GroupMembership membership = NewGroupMembership();
  membership.Hear(Group(3, {kOwn, 8}));
  membership.Stop(kStart);
  EXPECT_TRUE(membership.GivesUp(kStart, /*stays=*/false));
}

TEST(GroupMembershipTest, AgreementIsRememberedWhenTheGroupEnds) {
  GroupMembership membership = NewGroupMembership();
  membership.SetMakesSteps(false);
  EXPECT_FALSE(membership.has_agreed());
  membership.SetMakesSteps(true);
  membership.SetMakesSteps(false);
  EXPECT_TRUE(membership.has_agreed());
}

TEST(GroupMembershipTest, AnEndIsReportedUntilTheChiefNamesAnotherGroup) {
  GroupMembership membership = NewGroupMembership();
  membership.Hear(Group(3, {kOwn}));
  EXPECT_EQ(membership.broken(), 0);
  membership.Report(3);
  EXPECT_EQ(membership.broken(), 3);
  membership.Hear(Group(4, {kOwn}));
  EXPECT_EQ(membership.broken(), 0);
}

TEST(GroupMembershipTest, ManyInvalidEndsOfOneStepArePermanent) {
  const absl::Status invalid = absl::InvalidArgumentError("other lengths");
  GroupMembership membership = NewGroupMembership();
  for (int i = 1; i < GroupMembership::kInvalidEnds; ++i) {
    EXPECT_FALSE(membership.NoteEnd(invalid, /*step=*/5)) << i;
  }
  // Whoever hears of the next group first says nothing of this one.
  EXPECT_FALSE(membership.NoteEnd(absl::CancelledError("superseded"), 5));
  EXPECT_TRUE(membership.NoteEnd(invalid, 5));
}

TEST(GroupMembershipTest, AStepOrAnotherErrorBetweenInvalidEndsIsAMend) {
  const absl::Status invalid = absl::InvalidArgumentError("other lengths");
  GroupMembership membership = NewGroupMembership();
  for (int i = 0; i < 3 * GroupMembership::kInvalidEnds; ++i) {
    EXPECT_FALSE(membership.NoteEnd(invalid, /*step=*/i)) << i;
  }
  for (int i = 0; i < 3 * GroupMembership::kInvalidEnds; ++i) {
    const bool is_invalid = i % GroupMembership::kInvalidEnds != 0;
    EXPECT_FALSE(membership.NoteEnd(
        is_invalid ? invalid : absl::UnavailableError("lost"), /*step=*/0))
        << i;
  }
}

TEST(GroupMembershipTest, NamesWhomAStepWaitsFor) {
  GroupMembership membership = NewGroupMembership();
  EXPECT_THAT(membership.Awaited(),
              ElementsAre("the chief, for an assignment"));
  membership.Hear(Group(3, {kOwn, 8}));
  EXPECT_THAT(membership.Awaited(), ElementsAre("worker/1"));
  membership.NoteEnd(absl::UnavailableError("worker/1 is gone"), /*step=*/2);
  EXPECT_THAT(membership.Awaited(),
              ElementsAre("worker/1 (the last group of workers ended: "
                          "worker/1 is gone)"));
  membership.Hear(Group(4, {kOwn}));
  EXPECT_THAT(membership.Awaited(),
              ElementsAre(HasSubstr("the chief, for another group (")));
  membership.NoteStep();
  EXPECT_THAT(membership.Awaited(), ElementsAre(HasSubstr("this worker")));
}

}  // namespace
}  // namespace parasol
