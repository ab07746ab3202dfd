#include "base/process.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "base/version.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::ExitedWithCode;

std::vector<std::string> Parse(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "process_test");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  return ParseCommandLine(argv.size(), argv.data(), "Tests a process.");
}

TEST(ExitCodeTest, SaysWhetherToStartAgain) {
  struct Case {
    absl::Status status;
    ExitCode want;
  };
  const Case cases[] = {
      {absl::OkStatus(), ExitCode::kDone},
      {absl::InvalidArgumentError(""), ExitCode::kBadConfiguration},
      {absl::NotFoundError(""), ExitCode::kBadConfiguration},
      {absl::PermissionDeniedError(""), ExitCode::kBadConfiguration},
      {absl::UnavailableError(""), ExitCode::kRetryable},
      {absl::DeadlineExceededError(""), ExitCode::kRetryable},
      {absl::CancelledError(""), ExitCode::kTerminated},
      {absl::FailedPreconditionError(""), ExitCode::kPermanentFailure},
      {absl::InternalError(""), ExitCode::kPermanentFailure},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(ExitCodeFor(c.status), c.want) << c.status;
  }
}

TEST(ExitWithTest, PrintsTheMessageAsOneLine) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(ExitWith(absl::InvalidArgumentError("job x:\nno model")), 2);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "process_test: job x: no model\n");
}

// Runs in a process of its own: the format is the whole process's.
TEST(ExitWithDeathTest, InJsonTheReasonIsALineOfTheLog) {
  const auto fail = [] {
    Parse({"--log_format=json"});
    NameTaskInLog("ps/1");
    exit(ExitWith(absl::InvalidArgumentError("job \"x\":\nno model")));
  };
  EXPECT_EXIT(fail(), ExitedWithCode(2),
              "\"severity\":\"ERROR\",\"task\":\"ps/1\",.*"
              "\"message\":\"job \\\\\"x\\\\\": no model\","
              "\"binary\":\"process_test\",\"exit_code\":2}");
}

TEST(ParseCommandLineDeathTest, ABadFlagIsALineOfJsonWhereverItsFormatIs) {
  const std::vector<std::string> all[] = {{"--log_format=json", "--jbo=x"},
                                          {"--jbo=x", "--log_format=json"},
                                          {"--jbo=x", "--log_format", "json"}};
  for (const std::vector<std::string>& arguments : all) {
    EXPECT_EXIT(Parse(arguments), ExitedWithCode(2),
                "\"message\":\"unknown flag --jbo; try --help\"");
  }
}

TEST(ParseCommandLineTest, ReturnsTheArgumentsThatAreNoFlags) {
  EXPECT_THAT(Parse({"a", "--log_format=text", "b"}), ElementsAre("a", "b"));
}

TEST(ParseCommandLineDeathTest, UnknownFlagExitsWithTwo) {
  EXPECT_EXIT(Parse({"--jbo=x"}), ExitedWithCode(2),
              "^process_test: unknown flag --jbo; try --help\n$");
}

TEST(ParseCommandLineDeathTest, AnArgumentOfAProgramWithoutAnyExitsWithTwo) {
  std::string name = "process_test";
  std::string flag = "--log_format=text";
  std::string argument = "end.epochs=1";
  char* argv[] = {name.data(), flag.data(), argument.data()};
  ParseFlagsAlone(2, argv, "Tests a process.");
  EXPECT_EXIT(ParseFlagsAlone(3, argv, "Tests a process."), ExitedWithCode(2),
              "^process_test: unexpected argument end.epochs=1; try --help\n$");
}

TEST(ParseCommandLineDeathTest, BadLogFormatExitsWithTwo) {
  EXPECT_EXIT(Parse({"--log_format=xml"}), ExitedWithCode(2),
              "^process_test: --log_format=xml: it is text or json; "
              "try --help\n$");
}

TEST(ParseCommandLineDeathTest, HelpAndVersionExitWithZero) {
  EXPECT_EXIT(Parse({"--help"}), ExitedWithCode(0), "");
  EXPECT_EXIT(Parse({"--version"}), ExitedWithCode(0), "");
}

// A test is not stamped, so that a commit makes none run again.
TEST(ParseCommandLineTest, TheVersionIsTheReleaseAndTheCommit) {
  EXPECT_EQ(VersionString(),
            std::string("parasol ") + kVersion + " (commit unknown)");
}

TEST(ParseCommandLineDeathTest, AFileThatGrowsTooLargeIsAFailedWrite) {
  const auto write_too_much = [] {
    Parse({});
    const rlimit none = {0, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &none);
    FILE* const file = std::tmpfile();
    const ssize_t written = write(fileno(file), "x", 1);
    _exit(written < 0 && errno == EFBIG ? 42 : 1);
  };
  EXPECT_EXIT(write_too_much(), ExitedWithCode(42), "");
}

TEST(TerminationSignalTest, CallbacksRunInOrderAlsoWhenAddedLate) {
  TerminationSignal termination;
  std::string order;
  absl::Notification first_done, second_done;
  EXPECT_EQ(termination.signal(), 0);
  termination.OnSignal([&] { order += "1"; });
  termination.OnSignal([&] {
    order += "2";
    first_done.Notify();
  });
  kill(getpid(), SIGTERM);
  first_done.WaitForNotification();
  EXPECT_EQ(termination.signal(), SIGTERM);
  termination.OnSignal([&] {
    order += "3";
    second_done.Notify();
  });
  second_done.WaitForNotification();
  EXPECT_EQ(order, "123");
}

TEST(TerminationSignalTest, WithoutASignalNoCallbackRuns) {
  bool ran = false;
  {
    TerminationSignal termination;
    termination.OnSignal([&] { ran = true; });
  }
  EXPECT_FALSE(ran);
}

TEST(TerminationSignalTest, DisarmedNoCallbackRuns) {
  bool ran = false;
  TerminationSignal termination;
  termination.OnSignal([&] { ran = true; });
  termination.Disarm();
  termination.Disarm();
  kill(getpid(), SIGTERM);
  while (termination.signal() == 0) std::this_thread::yield();
  EXPECT_FALSE(ran);
}

// The drain waits for a notification that nobody gives.
void TerminateTwice() {
  TerminationSignal termination;
  absl::Notification draining, never;
  termination.OnSignal([&] {
    draining.Notify();
    never.WaitForNotification();
  });
  kill(getpid(), SIGINT);
  draining.WaitForNotification();
  kill(getpid(), SIGINT);
  never.WaitForNotification();
}

TEST(TerminationSignalDeathTest, SecondSignalEndsTheProcessDuringADrain) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(TerminateTwice(), ExitedWithCode(143), "");
}

void SendAndAwait(const TerminationSignal& signals, int signal) {
  const int before = signals.count();
  kill(getpid(), signal);
  while (signals.count() == before) std::this_thread::yield();
}

TEST(TerminationSignalDeathTest, TwoAreCountedByAProcessThatExpectsThem) {
  TerminationSignal signals(TerminationSignal::EndCode::kOfFirst);
  EXPECT_EQ(signals.signal(), 0);
  EXPECT_EQ(signals.count(), 0);
  signals.ExpectSecond();
  SendAndAwait(signals, SIGINT);
  SendAndAwait(signals, SIGTERM);
  EXPECT_EQ(signals.signal(), SIGINT);
  EXPECT_EQ(signals.count(), 2);
}

void EndBySignals(int first, int others, bool expects) {
  TerminationSignal signals(TerminationSignal::EndCode::kOfFirst);
  if (expects) signals.ExpectSecond();
  SendAndAwait(signals, first);
  for (int i = 0; i < others; ++i) SendAndAwait(signals, SIGTERM);
}

TEST(TerminationSignalDeathTest,
     TheLastOneEndsTheProcessWithTheCodeOfTheFirst) {
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
