#include "base/parallel_calls.h"

#include <set>
#include <thread>
#include <vector>

#include "absl/synchronization/barrier.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

TEST(ParallelCalls, EachNumberIsCalledOnItsOwnThreadAtTheSameTime) {
  constexpr size_t kCount = 4;
  std::vector<std::thread::id> first(kCount);
  ParallelCalls calls(kCount, [&first](size_t number) {
    first[number] = std::this_thread::get_id();
  });
  first[0] = std::this_thread::get_id();
  for (int run = 0; run < 100; ++run) {
    auto* const barrier = new absl::Barrier(kCount);
    std::vector<std::thread::id> ids(kCount);
    ASSERT_OK(calls.Run([&](size_t number) {
      if (barrier->Block()) delete barrier;
      ids[number] = std::this_thread::get_id();
      return absl::OkStatus();
    }));
    EXPECT_EQ(ids, first);
  }
  EXPECT_EQ(std::set(first.begin(), first.end()).size(), kCount);
}

TEST(ParallelCalls, TheCauseOfOthersErrorsIsReturned) {
  ParallelCalls calls(3);
  EXPECT_THAT(calls.Run([](size_t number) {
    return number == 1 ? absl::OutOfRangeError("infinite")
                       : absl::CancelledError("stopped");
  }),
              StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(calls.Run([](size_t number) {
    return number == 2 ? absl::CancelledError("stopped") : absl::OkStatus();
  }),
              StatusIs(absl::StatusCode::kCancelled));
  EXPECT_OK(calls.Run([](size_t) { return absl::OkStatus(); }));
}

TEST(ParallelCalls, OneIsTheCallersOwn) {
  ParallelCalls calls(1);
  const std::thread::id own = std::this_thread::get_id();
  EXPECT_THAT(calls.Run([own](size_t number) {
    EXPECT_EQ(number, 0u);
    EXPECT_EQ(std::this_thread::get_id(), own);
    return absl::UnavailableError("gone");
  }),
              StatusIs(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace parasol
