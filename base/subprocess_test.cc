#include "base/subprocess.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kLimit = absl::Seconds(20);

SubprocessOptions Shell(const std::string& script) {
  return {.argv = {"/bin/sh", "-c", script}};
}

TEST(SubprocessTest, RunReturnsOutputsAndExitCode) {
  ASSERT_OK_AND_ASSIGN(
      const CompletedProcess completed,
      RunSubprocess(Shell("echo out; echo err >&2; exit 3"), kLimit));
  EXPECT_EQ(completed.end, (ProcessEnd{.exit_code = 3}));
  EXPECT_EQ(completed.standard_output, "out\n");
  EXPECT_EQ(completed.standard_error, "err\n");
}

TEST(SubprocessTest, OutputLargerThanAPipeIsRead) {
  ASSERT_OK_AND_ASSIGN(
      const CompletedProcess completed,
      RunSubprocess(Shell("head -c 1000000 /dev/zero"), kLimit));
  EXPECT_EQ(completed.standard_output.size(), 1000000u);
}

TEST(SubprocessTest, EnvironmentIsAddedToOurs) {
  setenv("PARASOL_KEPT", "kept", 1);
  setenv("PARASOL_REPLACED", "old", 1);
  SubprocessOptions options = Shell("echo $PARASOL_KEPT $PARASOL_REPLACED");
  options.environment = {{"PARASOL_REPLACED", "new=1"}};
  ASSERT_OK_AND_ASSIGN(const CompletedProcess completed,
                       RunSubprocess(options, kLimit));
  EXPECT_EQ(completed.standard_output, "kept new=1\n");
}

TEST(SubprocessTest, FileIsAppendedTo) {
  const std::string path = testing::TempDir() + "/subprocess_output";
  for (const char* word : {"first", "second"}) {
    SubprocessOptions options =
        Shell(absl::StrCat("echo ", word, "; echo ", word, " >&2"));
    options.standard_output = options.standard_error = OutputTo::File(path);
    ASSERT_OK_AND_ASSIGN(const auto child, Subprocess::Start(options));
    ASSERT_OK(child->Wait(kLimit));
  }
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}),
            "first\nfirst\nsecond\nsecond\n");
}

TEST(SubprocessTest, EndBySignalIsTold) {
  ASSERT_OK_AND_ASSIGN(const auto child, Subprocess::Start(Shell("sleep 60")));
  EXPECT_EQ(child->Poll(), std::nullopt);
  child->Terminate();
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end, child->Wait(kLimit));
  EXPECT_EQ(end, (ProcessEnd{.signal = SIGTERM}));
  EXPECT_EQ(end.code(), 143);
  EXPECT_EQ(Describe(end), "signal 15 (Terminated)");
  EXPECT_EQ(Describe({.exit_code = 2}), "exit code 2");
}

TEST(SubprocessTest, InputIsWrittenUntilTheChildEnds) {
  SubprocessOptions options = Shell("read word; exit $word");
  options.input_socket = true;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Subprocess> child,
                       Subprocess::Start(options));
  EXPECT_TRUE(child->WriteInput("7\n"));
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end, child->Wait(kLimit));
  EXPECT_EQ(end.code(), 7);
  EXPECT_FALSE(child->WriteInput("8\n"));
}

TEST(SubprocessTest, WriterIsNotHeldUpByAChildThatReadsNothing) {
  SubprocessOptions options = Shell("exec sleep 60");
  options.input_socket = true;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Subprocess> child,
                       Subprocess::Start(options));
  const std::string block(65536, 'x');
  int written = 0;
  while (child->WriteInput(block) && written < 1000) ++written;
  EXPECT_LT(written, 1000);
}

TEST(SubprocessTest, ADescendantReadsTheEndOfTheInputWhenTheObjectEnds) {
  const std::string path = testing::TempDir() + "/subprocess_end_of_input";
  const std::string descendant =
      absl::StrCat("(trap '' TERM; cat; echo end > ", path, ") <&3 & ");
  SubprocessOptions options =
      Shell(absl::StrCat("exec 3<&0; ", descendant, "echo $!; wait"));
  options.input_socket = true;
  options.standard_output = OutputTo::Pipe();
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Subprocess> child,
                         Subprocess::Start(options));
    char digit = 0;
    ASSERT_EQ(read(child->output_pipe(), &digit, 1), 1);
  }
  // The descendant outlives the child.
  ASSERT_OK(RunSubprocess(
      Shell(absl::StrCat("until [ -s ", path, " ]; do :; done")), kLimit));
}

TEST(SubprocessTest, WaitEndsAtItsLimit) {
  ASSERT_OK_AND_ASSIGN(const auto child, Subprocess::Start(Shell("sleep 60")));
  EXPECT_THAT(child->Wait(absl::Milliseconds(1)),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_THAT(RunSubprocess(Shell("sleep 60"), absl::Milliseconds(1)),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST(SubprocessTest, MissingBinaryAndDirectoryAreNamed) {
  EXPECT_THAT(
      Subprocess::Start({.argv = {"/no/such/binary"}}),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("/no/such/binary")));
  SubprocessOptions options = Shell("true");
  options.standard_error = OutputTo::File("/no/such/directory/log");
  EXPECT_THAT(Subprocess::Start(options),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("/no/such/directory/log")));
}

TEST(SubprocessTest, SignalsBlockedHereAreNotBlockedThere) {
  sigset_t term, previous;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &term, &previous);
  ASSERT_OK_AND_ASSIGN(const auto child, Subprocess::Start(Shell("sleep 60")));
  child->Terminate();
  EXPECT_THAT(child->Wait(kLimit), IsOkAndHolds(ProcessEnd{.signal = SIGTERM}));
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
}

TEST(SubprocessTest, OwnProcessGroupIsLedByTheChild) {
  // Fields 1 and 5 of /proc/<pid>/stat: pid and process group.
  SubprocessOptions options =
      Shell("read a b c d e rest < /proc/$$/stat; [ $a = $e ]");
  ASSERT_OK_AND_ASSIGN(CompletedProcess completed,
                       RunSubprocess(options, kLimit));
  EXPECT_EQ(completed.end.code(), 1);
  options.own_process_group = true;
  ASSERT_OK_AND_ASSIGN(completed, RunSubprocess(options, kLimit));
  EXPECT_EQ(completed.end.code(), 0);
}

TEST(SubprocessTest, ChildDiesWithTheThreadThatStartedIt) {
  std::unique_ptr<Subprocess> child;
  std::thread starter([&child] {
    absl::StatusOr<std::unique_ptr<Subprocess>> started =
        Subprocess::Start(Shell("sleep 60"));
    ASSERT_OK(started);
    child = *std::move(started);
  });
  starter.join();
  EXPECT_THAT(child->Wait(kLimit), IsOkAndHolds(ProcessEnd{.signal = SIGKILL}));
}

TEST(SubprocessTest, ChildDiesWithItsObject) {
  pid_t pid = 0;
  {
    ASSERT_OK_AND_ASSIGN(const auto child,
                         Subprocess::Start(Shell("sleep 60")));
    pid = child->pid();
  }
  EXPECT_EQ(kill(pid, 0), -1);
}

}  // namespace
}  // namespace parasol
