#include "storage/owner_watch.h"

#include <optional>
#include <string>

#include "gtest/gtest.h"

namespace parasol {
namespace {

using Verdict = OwnerWatch::Verdict;

constexpr absl::Duration kLease = absl::Seconds(15);
constexpr char kHere[] = "node-a/kernel-1";

class OwnerWatchTest : public testing::Test {
 protected:
  static OwnerSight Sight(const std::string& stamp, OwnerLock lock,
                          const std::string& host = "node-b/kernel-2",
                          bool released = false) {
    OwnerSight sight;
    sight.stamp = stamp;
    sight.lock = lock;
    sight.owner.emplace();
    sight.owner->set_host(host);
    sight.owner->set_released(released);
    return sight;
  }
  Verdict LookAfter(absl::Duration pause, const OwnerSight& sight) {
    now_ += pause;
    return watch_.Look(sight, now_);
  }

  OwnerWatch watch_ = OwnerWatch(kHere, kLease);
  absl::Time now_ = absl::UnixEpoch();
};

TEST_F(OwnerWatchTest, ADirectoryWithoutAnOwnerIsTakenAtOnce) {
  EXPECT_EQ(watch_.Look({}, now_), Verdict::kTake);
  EXPECT_EQ(watch_.Look({.lock = OwnerLock::kUnsupported}, now_),
            Verdict::kTake);
}

TEST_F(OwnerWatchTest, AReleasedDirectoryIsTakenAtOnceFromAnyMachine) {
  for (const OwnerLock lock : {OwnerLock::kHeld, OwnerLock::kUnsupported}) {
    EXPECT_EQ(watch_.Look(Sight("1", lock, "node-b/kernel-2", true), now_),
              Verdict::kTake);
  }
}

TEST_F(OwnerWatchTest, AnOwnerOfThisMachineThatDiedIsReplacedAtOnce) {
  // In another container, too: the kernel is the same.
  for (const char* host : {kHere, "pod-7/kernel-1"}) {
    EXPECT_EQ(watch_.Look(Sight("1", OwnerLock::kHeld, host), now_),
              Verdict::kTake);
  }
}

TEST_F(OwnerWatchTest, AnOwnerThatRenewsItsLeaseIsNotReplaced) {
  for (const char* host : {kHere, "node-b/kernel-2"}) {
    OwnerWatch watch(kHere, kLease);
    EXPECT_EQ(watch.Look(Sight("1", OwnerLock::kBusy, host), now_),
              Verdict::kWait);
    now_ += kLease / 5;
    EXPECT_EQ(watch.Look(Sight("2", OwnerLock::kBusy, host), now_),
              Verdict::kRefuse);
  }
}

TEST_F(OwnerWatchTest, AnOwnerElsewhereIsReplacedAfterALeaseInSilence) {
  for (const OwnerLock lock :
       {OwnerLock::kHeld, OwnerLock::kBusy, OwnerLock::kUnsupported}) {
    OwnerWatch watch(kHere, kLease);
    EXPECT_EQ(watch.Look(Sight("1", lock), now_), Verdict::kWait);
    EXPECT_EQ(watch.end(), now_ + kLease);
    now_ += kLease - absl::Milliseconds(1);
    EXPECT_EQ(watch.Look(Sight("1", lock), now_), Verdict::kWait);
    now_ += absl::Milliseconds(1);
    EXPECT_EQ(watch.Look(Sight("1", lock), now_), Verdict::kTake);
  }
}

TEST_F(OwnerWatchTest, AStoppedOwnerOfThisMachineIsReplacedAfterALease) {
  const OwnerSight stopped = Sight("1", OwnerLock::kBusy, kHere);
  EXPECT_EQ(LookAfter({}, stopped), Verdict::kWait);
  EXPECT_EQ(LookAfter(kLease, stopped), Verdict::kTake);
}

TEST_F(OwnerWatchTest, ADamagedFileIsAnOwnerThatIsWatched) {
  OwnerSight damaged = Sight("1", OwnerLock::kHeld);
  damaged.owner.reset();
  EXPECT_EQ(LookAfter({}, damaged), Verdict::kWait);
  EXPECT_EQ(LookAfter(kLease, damaged), Verdict::kTake);
}

TEST_F(OwnerWatchTest, AnOwnerThatEndsWhileItIsWatchedIsAwaited) {
  EXPECT_EQ(LookAfter({}, Sight("1", OwnerLock::kBusy, kHere)), Verdict::kWait);
  EXPECT_EQ(LookAfter(absl::Seconds(1),
                      Sight("2", OwnerLock::kBusy, kHere, /*released=*/true)),
            Verdict::kWait);
  EXPECT_EQ(LookAfter(absl::Seconds(1),
                      Sight("2", OwnerLock::kHeld, kHere, /*released=*/true)),
            Verdict::kTake);
}

TEST_F(OwnerWatchTest, AMachineThatDoesNotKnowItsKernelWatches) {
  OwnerWatch watch("node-a/", kLease);
  EXPECT_EQ(watch.Look(Sight("1", OwnerLock::kHeld, "node-a/"), now_),
            Verdict::kWait);
}

TEST(ThisMachineTest, HasAHostAndAKernel) {
  durable::DirectoryOwner owner;
  owner.set_host(ThisMachine());
  EXPECT_EQ(ThisMachine(), ThisMachine());
  EXPECT_LT(HostOf(owner).size() + 10, owner.host().size());
}

// In a store one that withdraws leaves the owner's file, which is another name.
TEST_F(OwnerWatchTest, OtherNamesBeginTheWaitAnew) {
  OwnerSight dead = Sight("1", OwnerLock::kUnsupported);
  dead.names = "7-a ";
  OwnerSight claim = Sight("2", OwnerLock::kUnsupported);
  claim.names = "8-b-claim ";
  EXPECT_EQ(LookAfter(absl::ZeroDuration(), dead), Verdict::kWait);
  EXPECT_EQ(LookAfter(kLease / 2, claim), Verdict::kWait);
  EXPECT_EQ(LookAfter(kLease / 2, dead), Verdict::kWait);
  EXPECT_EQ(LookAfter(kLease / 2, dead), Verdict::kWait);
  EXPECT_EQ(LookAfter(kLease / 2, dead), Verdict::kTake);
  dead.stamp = "3";
  EXPECT_EQ(LookAfter(absl::ZeroDuration(), dead), Verdict::kRefuse);
}

TEST_F(OwnerWatchTest, AWaitForOneAfterTheOtherEnds) {
  OwnerSight sight = Sight("1", OwnerLock::kUnsupported);
  for (int i = 0; i < 1000; ++i) {
    sight.names = std::to_string(i);
    if (LookAfter(kLease / 2, sight) == Verdict::kRefuse) return;
  }
  ADD_FAILURE() << "it waits for ever";
}

}  // namespace
}  // namespace parasol
