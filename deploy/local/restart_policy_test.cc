#include "deploy/local/restart_policy.h"

#include <signal.h>

#include <string>

#include "gtest/gtest.h"

namespace parasol {
namespace {

using Verdict = RestartPolicy::Verdict;

constexpr ProcessEnd kKilled = {.exit_code = 0, .signal = SIGKILL};
const absl::Time kStart = absl::FromUnixSeconds(1000);

TEST(RestartPolicyTest, SignalsAndCodesFrom128AreRestarted) {
  struct Case {
    ProcessEnd end;
    Verdict want;
  };
  const Case cases[] = {
      {{.exit_code = 0}, Verdict::kDone},
      {{.exit_code = 1}, Verdict::kFailed},
      {{.exit_code = 127}, Verdict::kFailed},
      {{.exit_code = 128}, Verdict::kRestart},
      {{.exit_code = 138}, Verdict::kRestart},
      {{.exit_code = 143}, Verdict::kRestart},
      {kKilled, Verdict::kRestart},
      {{.exit_code = 0, .signal = SIGSEGV}, Verdict::kRestart},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(RestartPolicy({}).Ended(c.end, kStart).verdict, c.want)
        << Describe(c.end);
  }
}

TEST(RestartPolicyTest, DelayDoublesUpToItsLimitWhileTheTaskDiesYoung) {
  RestartPolicy policy(
      {.first_delay = absl::Seconds(1), .max_delay = absl::Seconds(4)});
  const int want_seconds[] = {1, 2, 4, 4};
  absl::Time now = kStart;
  for (const int seconds : want_seconds) {
    policy.Started(now);
    now += absl::Seconds(1);
    EXPECT_EQ(policy.Ended(kKilled, now).delay, absl::Seconds(seconds));
  }
}

TEST(RestartPolicyTest, DelayIsShortAgainAfterAStableRun) {
  RestartPolicy policy(
      {.first_delay = absl::Seconds(1), .stable_after = absl::Seconds(10)});
  policy.Started(kStart);
  policy.Ended(kKilled, kStart);
  policy.Started(kStart);
  EXPECT_EQ(policy.Ended(kKilled, kStart + absl::Seconds(10)).delay,
            absl::Seconds(1));
}

TEST(RestartPolicyTest, RestartsAreLimitedWithinTheWindowOnly) {
  RestartPolicy policy({.max_restarts = 2, .window = absl::Minutes(1)});
  EXPECT_EQ(policy.Ended(kKilled, kStart).restart, 1);
  EXPECT_EQ(policy.Ended(kKilled, kStart + absl::Seconds(30)).restart, 2);
  EXPECT_EQ(policy.Ended(kKilled, kStart + absl::Seconds(59)).verdict,
            Verdict::kTooManyRestarts);
  EXPECT_EQ(policy.Ended(kKilled, kStart + absl::Seconds(60)).verdict,
            Verdict::kRestart);
}

}  // namespace
}  // namespace parasol
