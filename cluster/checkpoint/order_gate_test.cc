#include "cluster/checkpoint/order_gate.h"

#include <functional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kIncarnation = 0x77;
constexpr char kDirectory[] = "/checkpoints";
constexpr char kWorking[] = "/checkpoints/.tmp-ckpt-000000000010-0123abcd";

wire::OrderHeader Order(uint64_t incarnation, int64_t chief_epoch) {
  wire::OrderHeader order;
  order.set_incarnation(incarnation);
  order.set_chief_epoch(chief_epoch);
  return order;
}

// A clock on which something happens while it is awaited.
class AnswerClock : public SimulatedClock {
 public:
  explicit AnswerClock(std::function<void()> happens)
      : happens_(std::move(happens)) {}

  bool AwaitWithTimeout(absl::Mutex& mu, const absl::Condition& condition,
                        absl::Duration) override {
    mu.Unlock();
    happens_();
    mu.Lock();
    return condition.Eval();
  }

 private:
  const std::function<void()> happens_;
};

TEST(OrderGate, AnOrderForAnotherProcessIsRefused) {
  OrderGate gate("ps/1", kIncarnation);
  EXPECT_OK(gate.Accept(Order(kIncarnation, 1)));
  EXPECT_THAT(gate.Accept(Order(0x78, 1)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("process 0000000000000078"),
                             HasSubstr("ps/1 is another one"),
                             Not(HasSubstr("0000000000000077")))))
      << "who asks does not hear what to say";
  EXPECT_THAT(gate.Accept(wire::OrderHeader()),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(OrderGate, AChiefThatWasReplacedIsRefused) {
  OrderGate gate("ps/1", kIncarnation);
  EXPECT_OK(gate.Accept(Order(kIncarnation, 2)));
  EXPECT_OK(gate.Accept(Order(kIncarnation, 3)));
  EXPECT_THAT(gate.Accept(Order(kIncarnation, 2)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("chief 2"), HasSubstr("chief 3"))));
  EXPECT_OK(gate.Accept(Order(kIncarnation, 3)));
}

TEST(OrderGate, AChiefIsReplacedOnceThePsHasRegisteredWithTheNext) {
  OrderGate gate("ps/1", kIncarnation);
  gate.Registered(4, kDirectory);
  gate.Registered(3, "/elsewhere");
  EXPECT_THAT(gate.Accept(Order(kIncarnation, 3)),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_OK(gate.CheckSnapshotFile(kWorking, "shard.sst"));
}

TEST(OrderGate, AwaitsTheDirectoryOfTheChiefThatOrders) {
  OrderGate gate("ps/1", kIncarnation);
  gate.Registered(3, "/of/the/chief/before");
  EXPECT_OK(gate.Accept(Order(kIncarnation, 4)));
  AnswerClock clock([&gate] { gate.Registered(4, kDirectory); });
  EXPECT_THAT(
      gate.AwaitDirectory(Order(kIncarnation, 4), clock, absl::Seconds(2)),
      IsOkAndHolds(kDirectory));
}

TEST(OrderGate, ADirectoryThatTheChiefDoesNotTellIsNotAwaitedForEver) {
  SimulatedClock clock;
  OrderGate gate("ps/1", kIncarnation);
  EXPECT_THAT(
      gate.AwaitDirectory(Order(kIncarnation, 4), clock, absl::ZeroDuration()),
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("chief 4")));
}

// The call may have been on its way while the chief took it for lost.
TEST(OrderGate, AnOrderThatComesLateIsRefused) {
  OrderGate gate("ps/1", kIncarnation);
  wire::OrderHeader first = Order(kIncarnation, 2);
  first.set_number(1);
  wire::OrderHeader second = Order(kIncarnation, 2);
  second.set_number(2);
  EXPECT_OK(gate.Accept(second));
  EXPECT_THAT(gate.Accept(first),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("order 1"), HasSubstr("order 2"))));
  EXPECT_OK(gate.Accept(second));
  // Orders of other kinds have no number.
  EXPECT_OK(gate.Accept(Order(kIncarnation, 2)));
  // The next chief counts from 1.
  first.set_chief_epoch(3);
  EXPECT_OK(gate.Accept(first));
}

TEST(OrderGate, AnOrderThatIsLookedAtChangesNothing) {
  OrderGate gate("ps/1", kIncarnation);
  wire::OrderHeader order = Order(kIncarnation, 5);
  order.set_number(9);
  EXPECT_OK(gate.Check(order));
  wire::OrderHeader older = Order(kIncarnation, 1);
  older.set_number(1);
  EXPECT_OK(gate.Accept(older));
}

// An order that is refused must not make its chief the newest.
TEST(OrderGate, ARefusedOrderChangesNothing) {
  OrderGate gate("ps/1", kIncarnation);
  EXPECT_THAT(gate.Accept(Order(0x78, 7)),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  for (const int64_t absurd : {int64_t{-1}, INT64_MIN, int64_t{1} << 31,
                               int64_t{1} << 62, INT64_MAX}) {
    EXPECT_THAT(gate.Accept(Order(kIncarnation, absurd)),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(absl::StrCat("chief ", absurd))));
    wire::OrderHeader numbered = Order(kIncarnation, 1);
    numbered.set_number(absurd < 0 ? absurd
                                   : (absurd >> 1) + (int64_t{1} << 33));
    EXPECT_THAT(gate.Accept(numbered),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("has the number ")));
  }
  wire::OrderHeader first = Order(kIncarnation, 1);
  first.set_number(1);
  EXPECT_OK(gate.Accept(first));
}

TEST(OrderGate, SnapshotsGoOnlyWhereACheckpointIsBeingWritten) {
  OrderGate gate("ps/1", kIncarnation);
  EXPECT_THAT(gate.CheckSnapshotFile(kWorking, "shard.sst"),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  gate.Registered(1, kDirectory);
  EXPECT_OK(gate.CheckSnapshotFile(kWorking, "shard.sst"));
  const std::string working = kWorking;
  for (const std::string& directory :
       {std::string(), std::string("/"), std::string("/etc"),
        std::string(kDirectory), std::string("/checkpoints/ckpt-000000000010"),
        std::string("/checkpoints/.tmp-ckpt-"), working + "/below",
        working + "/..", working + "/",
        std::string("/checkpoints/.tmp-ckpt-0/../../etc"),
        std::string("/checkpoints.tmp-ckpt-000000000010-0"),
        "/elsewhere" + working}) {
    EXPECT_THAT(gate.CheckSnapshotFile(directory, "shard.sst"),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << directory;
  }
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string("a/b"),
        std::string("/etc/passwd"), std::string(".MANIFEST"),
        std::string("a\0b", 3)}) {
    EXPECT_THAT(gate.CheckSnapshotFile(working, name),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << name;
  }
}

// There the file lies beside files of complete checkpoints from the beginning.
TEST(OrderGate, InAStoreASnapshotReplacesNoFileOfACheckpoint) {
  OrderGate gate("ps/1", kIncarnation);
  gate.Registered(1, "s3://b/run?region=r");
  const std::string working =
      "s3://b/run/.tmp-ckpt-000000000010-0123abcd?region=r";
  EXPECT_OK(gate.CheckSnapshotFile(working, "shard-0123abcd.sst"));
  for (const std::string& name :
       {std::string("shard.sst"), std::string("shard-0123abce.sst"),
        std::string("MANIFEST"), std::string("shard-0123abcd.sst/../MANIFEST"),
        std::string()}) {
    EXPECT_THAT(gate.CheckSnapshotFile(working, name),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << name;
  }
  for (const std::string directory :
       {"s3://b/run/.tmp-ckpt-000000000010-0123abcd",
        "s3://b/run/.tmp-ckpt-000000000010-0123abcd?region=s",
        "s3://b/run/ckpt-000000000010?region=r",
        "s3://b/run/../.tmp-ckpt-000000000010-0123abcd?region=r",
        "s3://c/run/.tmp-ckpt-000000000010-0123abcd?region=r",
        "/run/.tmp-ckpt-000000000010-0123abcd"}) {
    EXPECT_THAT(gate.CheckSnapshotFile(directory, "shard-0123abcd.sst"),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << directory;
  }
}

}  // namespace
}  // namespace parasol
