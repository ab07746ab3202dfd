#include "deploy/local/stop_signals.h"

#include <signal.h>
#include <unistd.h>

#include <thread>

#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ExitedWithCode;

void SendAndAwait(const StopSignals& signals, int signal) {
  const int before = signals.count();
  kill(getpid(), signal);
  while (signals.count() == before) std::this_thread::yield();
}

TEST(StopSignalsTest, TwoAreCountedByAProcessThatExpectsThem) {
  StopSignals signals;
  EXPECT_EQ(signals.first(), 0);
  EXPECT_EQ(signals.count(), 0);
  signals.ExpectSecond();
  SendAndAwait(signals, SIGINT);
  SendAndAwait(signals, SIGTERM);
  EXPECT_EQ(signals.first(), SIGINT);
  EXPECT_EQ(signals.count(), 2);
}

void EndBySignals(int first, int others, bool expects) {
  StopSignals signals;
  if (expects) signals.ExpectSecond();
  SendAndAwait(signals, first);
  for (int i = 0; i < others; ++i) SendAndAwait(signals, SIGTERM);
}

TEST(StopSignalsDeathTest, TheLastOneEndsTheProcessWithTheCodeOfTheFirst) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(EndBySignals(SIGINT, 1, /*expects=*/false), ExitedWithCode(130),
              "");
  EXPECT_EXIT(EndBySignals(SIGINT, 2, /*expects=*/true), ExitedWithCode(130),
              "");
  EXPECT_EXIT(EndBySignals(SIGTERM, 2, /*expects=*/true), ExitedWithCode(143),
              "");
}

}  // namespace
}  // namespace parasol
