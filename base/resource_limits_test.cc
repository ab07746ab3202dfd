#include "base/resource_limits.h"

#include <errno.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <system_error>
#include <thread>

#include "absl/status/status.h"
#include "base/descriptor.h"
#include "base/process.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

TEST(ResourceLimitsTest, TheSoftLimitOfDescriptorsIsRaised) {
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 64;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  EXPECT_EQ(DescriptorLimit(), 64);
  const int64_t raised = RaiseDescriptorLimit();
  EXPECT_EQ(raised, std::min<int64_t>(before.rlim_max, kMostDescriptors));
  EXPECT_EQ(DescriptorLimit(), raised);
  setrlimit(RLIMIT_NOFILE, &before);
}

TEST(ResourceLimitsTest, ALackOfDescriptorsIsNamedWithTheLimit) {
  EXPECT_OK(CheckDescriptorsAreLeft(1));
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const absl::Status status = CheckDescriptorsAreLeft(1);
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("ulimit -n, which is 0")));
}

TEST(ResourceLimitsTest, ThreadsThatMayBeStartedAreNoError) {
  EXPECT_OK(CheckThreadsAllowed(24));
}

TEST(ResourceLimitsTest, AThreadThatIsRefusedIsNamedWithTheLimit) {
  int started = 0;
  const auto start = [&](pthread_t* thread, void* (*run)(void*), void* arg) {
    if (started == 3) return EAGAIN;
    ++started;
    return pthread_create(thread, nullptr, run, arg);
  };
  const absl::Status status = CheckThreadsAllowed(8, start);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("raise the limit of processes and "
                                         "threads (ulimit -u")));
  EXPECT_THAT(status.message(), HasSubstr("3 of 8 could be started"));
}

[[noreturn]] void RefuseThread() {
  throw std::system_error(
      std::make_error_code(std::errc::resource_unavailable_try_again));
}

TEST(ResourceLimitsDeathTest, AThreadThatCannotBeStartedEndsWithALine) {
  const auto start = [] {
    NameThreadLimitAtEnd();
    // Nobody handles what leaves a thread.
    std::thread(&RefuseThread).join();
  };
  EXPECT_EXIT(
      start(),
      testing::ExitedWithCode(static_cast<int>(ExitCode::kBadConfiguration)),
      "no thread can be started: .*ulimit -u");
}

}  // namespace
}  // namespace parasol
