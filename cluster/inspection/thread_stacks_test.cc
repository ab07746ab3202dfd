#include "cluster/inspection/thread_stacks.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {

// Functions that a stack names. They end when they are told to.
struct Stand {
  absl::Notification is_there;
  absl::Notification may_go;
  int thread = 0;
  std::atomic<bool> may_stop = false;
};

__attribute__((noinline)) void StandsInTheTest(Stand& stand) {
  stand.thread = gettid();
  stand.is_there.Notify();
  stand.may_go.WaitForNotification();
  // No tail call.
  asm volatile("");
}

__attribute__((noinline)) void SpinsInTheTest(Stand& stand) {
  stand.thread = gettid();
  stand.is_there.Notify();
  while (!stand.may_stop) asm volatile("");
}

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr absl::Duration kLimit = absl::Seconds(10);

// ThreadSanitizer holds signals back until a thread makes a call that blocks.
class ThreadStacksTest : public testing::Test {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "signals are held back";
#endif
  }
};

TEST_F(ThreadStacksTest, NamesTheFunctionsOfEachThread) {
  Stand waiting;
  Stand spinning;
  std::jthread waits([&] { StandsInTheTest(waiting); });
  std::jthread spins([&] { SpinsInTheTest(spinning); });
  waiting.is_there.WaitForNotification();
  spinning.is_there.WaitForNotification();
  const std::string first = StacksOfThreads(waiting.thread, kLimit);
  const std::string running = StacksOfThreads(0, kLimit);
  waiting.may_go.Notify();
  spinning.may_stop = true;
  EXPECT_THAT(first,
              AllOf(StartsWith(absl::StrCat("thread ", waiting.thread)),
                    HasSubstr("StandsInTheTest"), HasSubstr("SpinsInTheTest"),
                    Not(HasSubstr("does not answer"))));
  // Those that run come before those that wait.
  EXPECT_LT(running.find("SpinsInTheTest"), running.find("StandsInTheTest"));
}

TEST_F(ThreadStacksTest, ThreadsWithOneStackAreShownTogether) {
  constexpr int kThreads = 3;
  Stand stands[kThreads];
  std::vector<std::jthread> threads;
  for (Stand& stand : stands) {
    threads.emplace_back([&stand] { StandsInTheTest(stand); });
  }
  for (Stand& stand : stands) stand.is_there.WaitForNotification();
  // Each may still be on its way into the wait.
  std::string text;
  size_t shown = 0;
  for (int i = 0; i < 1000 && shown != 1; ++i) {
    text = StacksOfThreads(0, kLimit);
    const std::vector<std::string> parts =
        absl::StrSplit(text, "StandsInTheTest");
    shown = parts.size() - 1;
  }
  EXPECT_EQ(shown, 1) << text;
  for (Stand& stand : stands) stand.may_go.Notify();
  for (const Stand& stand : stands) {
    EXPECT_THAT(text, HasSubstr(absl::StrCat("thread ", stand.thread)));
  }
}

TEST_F(ThreadStacksTest, AThreadThatBlocksSignalsIsNamed) {
  Stand deaf;
  Stand heard;
  std::jthread blocks([&] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    StandsInTheTest(deaf);
    // A signal that came late takes nobody else's turn.
    pthread_sigmask(SIG_UNBLOCK, &all, nullptr);
  });
  std::jthread waits([&] { StandsInTheTest(heard); });
  deaf.is_there.WaitForNotification();
  heard.is_there.WaitForNotification();
  const std::string text =
      StacksOfThreads(deaf.thread, absl::Milliseconds(200));
  EXPECT_THAT(text, AllOf(StartsWith(absl::StrCat("thread ", deaf.thread)),
                          HasSubstr("(it does not answer)"),
                          HasSubstr("StandsInTheTest")));
  deaf.may_go.Notify();
  blocks.join();
  EXPECT_THAT(StacksOfThreads(0, kLimit), HasSubstr("StandsInTheTest"));
  heard.may_go.Notify();
}

}  // namespace
}  // namespace parasol
