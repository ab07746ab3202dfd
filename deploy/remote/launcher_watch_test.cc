#include "deploy/remote/launcher_watch.h"

#include "absl/time/time.h"
#include "deploy/remote/guard_protocol.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using Verdict = LauncherWatch::Verdict;

constexpr absl::Time kStart = absl::UnixEpoch();

TEST(LauncherWatchTest, BeatsKeepTheTaskAlive) {
  LauncherWatch watch(kStart);
  absl::Time now = kStart;
  for (int i = 0; i < 100; ++i) {
    now += kSilenceLimit - absl::Nanoseconds(1);
    EXPECT_EQ(watch.VerdictAt(now), Verdict::kRun);
    watch.Received(kBeat, now);
  }
}

TEST(LauncherWatchTest, SilenceKillsTheTask) {
  LauncherWatch watch(kStart);
  EXPECT_EQ(watch.VerdictAt(kStart + kSilenceLimit), Verdict::kKill);
}

TEST(LauncherWatchTest, AnEndOfFileKillsTheTaskAtOnce) {
  LauncherWatch watch(kStart);
  watch.Received("", kStart);
  EXPECT_EQ(watch.VerdictAt(kStart), Verdict::kKill);
}

TEST(LauncherWatchTest, ARequestToEndStandsUntilTheLauncherIsGone) {
  LauncherWatch watch(kStart);
  watch.Received("..T.", kStart);
  watch.Received(kBeat, kStart + absl::Seconds(50));
  EXPECT_EQ(watch.VerdictAt(kStart + absl::Seconds(100)), Verdict::kTerminate);
  watch.Received("", kStart + absl::Seconds(100));
  EXPECT_EQ(watch.VerdictAt(kStart + absl::Seconds(100)), Verdict::kKill);
}

TEST(LauncherWatchTest, SilenceHasRoomForLostBeats) {
  EXPECT_GE(kSilenceLimit, 10 * kBeatPeriod);
}

}  // namespace
}  // namespace parasol
