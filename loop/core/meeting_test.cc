#include "loop/core/meeting.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/parallel_calls.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol::loop {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr int kReplicas = 3;

class MeetingTest : public ::testing::Test {
 protected:
  // Runs `step` as a step of each replica and returns their results.
  std::vector<absl::Status> RunStep(
      const std::function<absl::Status(int replica)>& step) {
    std::vector<absl::Status> results(kReplicas);
    meeting_.Begin();
    calls_
        .Run([&](size_t replica) {
          results[replica] = step(static_cast<int>(replica));
          meeting_.End(static_cast<int>(replica), results[replica]);
          return absl::OkStatus();
        })
        .IgnoreError();
    return results;
  }

  // Adds one number of each replica.
  absl::Status Add(int replica, const std::string& what, int number, int& sum) {
    const auto add = [&](absl::Span<const void* const> all) {
      int total = 0;
      for (const void* one : all) {
        total += *static_cast<const int*>(one);
      }
      sum_ = total;
      return absl::OkStatus();
    };
    const absl::Status status = meeting_.Join(replica, what, &number, add);
    sum = sum_;
    return status;
  }

  Meeting meeting_{{"replica 0", "replica 1", "replica 2"}};
  ParallelCalls calls_{kReplicas};
  int sum_ = 0;
};

TEST_F(MeetingTest, TheLastOneActsOnWhatAllHaveBrought) {
  std::vector<int> sums(kReplicas);
  for (int round = 0; round < 1000; ++round) {
    const auto results = RunStep([&](int replica) {
      absl::Status status = Add(replica, "a", replica + round, sums[replica]);
      if (!status.ok()) return status;
      EXPECT_EQ(sums[replica], 3 + 3 * round);
      return Add(replica, "b", 10 * replica, sums[replica]);
    });
    EXPECT_THAT(results, Each(IsOk()));
    EXPECT_THAT(sums, Each(30));
  }
}

TEST_F(MeetingTest, ReplicasThatDoOtherThingsAllFail) {
  int sum = 0;
  const auto results = RunStep([&](int replica) {
    return Add(replica, replica == 1 ? "the sum b" : "the sum a", 1, sum);
  });
  EXPECT_THAT(results, Each(StatusIs(
                           absl::StatusCode::kInvalidArgument,
                           AllOf(HasSubstr("the sum a"), HasSubstr("the sum b"),
                                 HasSubstr("replica 1 ")))));
}

TEST_F(MeetingTest, OneThatEndsItsStepEarlyIsNamed) {
  int sum = 0;
  const auto results = RunStep([&](int replica) {
    return replica == 2 ? absl::OkStatus() : Add(replica, "the sum", 1, sum);
  });
  EXPECT_THAT(results[2], IsOk());
  for (int replica : {0, 1}) {
    EXPECT_THAT(
        results[replica],
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr("replica 2 has ended its step without the sum")));
  }
}

TEST_F(MeetingTest, AnErrorOfOneEndsTheWaitsOfAll) {
  int sum = 0;
  for (int round = 0; round < 100; ++round) {
    const auto results = RunStep([&](int replica) {
      return replica == 0 ? absl::OutOfRangeError("NaN")
                          : Add(replica, "the sum", 1, sum);
    });
    EXPECT_THAT(results, Each(StatusIs(absl::StatusCode::kOutOfRange, "NaN")));
    EXPECT_THAT(meeting_.failure(), StatusIs(absl::StatusCode::kOutOfRange));
  }
  // The next step is not concerned.
  EXPECT_THAT(RunStep([&](int replica) { return Add(replica, "a", 1, sum); }),
              Each(IsOk()));
}

TEST_F(MeetingTest, AnErrorOfTheActIsEverybodys) {
  const auto results = RunStep([&](int replica) {
    return meeting_.Join(replica, "the sum", nullptr,
                         [](absl::Span<const void* const>) {
                           return absl::UnavailableError("worker/1 was lost");
                         });
  });
  EXPECT_THAT(results, Each(StatusIs(absl::StatusCode::kUnavailable,
                                     HasSubstr("worker/1"))));
}

}  // namespace
}  // namespace parasol::loop
