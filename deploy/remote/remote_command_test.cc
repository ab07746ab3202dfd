#include "deploy/remote/remote_command.h"

#include <sys/stat.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_matchers.h"
#include "base/subprocess.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::StartsWith;

// Returns what a shell makes of the words: one line for each.
std::string WordsSeenByShell(const std::string& line) {
  absl::StatusOr<CompletedProcess> run = RunSubprocess(
      {.argv = {"/bin/sh", "-c", absl::StrCat("printf '%s|' ", line)}},
      absl::Seconds(20));
  EXPECT_OK(run);
  return run.value_or(CompletedProcess()).standard_output;
}

TEST(RemoteCommandTest, AShellReadsAQuotedWordAsItWas) {
  const std::string words[] = {"",
                               "plain-1.2/x:y=z",
                               "two words",
                               "it's",
                               "'",
                               "\"$HOME\" `ls`",
                               "a\\b\\",
                               "line\nline",
                               "*?[a]~;&|<>(){}!#",
                               "--flag=\t",
                               "\xc3\xa9"};
  for (const std::string& word : words) {
    EXPECT_EQ(WordsSeenByShell(ShellQuoted(word)), word + "|");
  }
}

TEST(RemoteCommandTest, PlainWordsStayReadable) {
  EXPECT_EQ(ShellQuoted("--data_dir=/data/mnist"), "--data_dir=/data/mnist");
}

// A directory with a program "ssh" that prints its arguments, one in a line.
std::string DirectoryWithPrintingSsh() {
  const std::string directory = testing::TempDir() + "/it's here";
  mkdir(directory.c_str(), 0755);
  const std::string path = directory + "/ssh";
  std::ofstream(path) << "#!/bin/sh\nprintf '%s\\n' \"$@\"\n";
  chmod(path.c_str(), 0755);
  return directory;
}

TEST(RemoteCommandTest, TheUsersWordsComeBeforeTheOptionsAndTheHost) {
  const RemoteCommand command = {.ssh = "ssh -p 2222 -i 'my key'",
                                 .host = "[fe80::1%eth0]",
                                 .guard = "/opt/my parasol/remote_task",
                                 .tf_config = R"({"cluster": {}})",
                                 .argv = {"/opt/worker", "--set=a='b c'"}};
  SubprocessOptions options = {.argv = SshArgv(command)};
  options.environment = {{"PATH", DirectoryWithPrintingSsh() + ":/usr/bin"}};
  ASSERT_OK_AND_ASSIGN(const CompletedProcess run,
                       RunSubprocess(options, absl::Seconds(20)));
  EXPECT_THAT(run.standard_output, StartsWith("-p\n2222\n-i\nmy key\n-T\n-o\n"
                                              "BatchMode=yes\n"));
  EXPECT_THAT(
      run.standard_output,
      EndsWith("\nfe80::1%eth0\n"
               R"(exec '/opt/my parasol/remote_task' )"
               R"(--takes_token --tf_config='{"cluster": {}}' -- /opt/worker )"
               R"('--set=a='\''b c'\''')"
               "\n"));
}

}  // namespace
}  // namespace parasol
