// Tests the tool in surroundings that lack something: it says so in one line
// that names the thing, and exits with 2.

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_matchers.h"
#include "base/subprocess.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tool/testing/trained_job_fixture.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

class ToolEnvironmentTest : public TrainedJobFixture {
 protected:
  // Runs the tool where the shell's `limits` hold.
  CompletedProcess Run(const std::vector<std::string>& arguments,
                       const std::map<std::string, std::string>& environment,
                       const std::string& limits = "") {
    SubprocessOptions options;
    options.argv = {"/bin/sh", "-c", limits + "exec \"$@\"", "sh",
                    absl::StrCat(getenv("TEST_SRCDIR"), "/",
                                 getenv("TEST_WORKSPACE"), "/tool/parasol")};
    options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
    options.environment = environment;
    absl::StatusOr<CompletedProcess> run =
        RunSubprocess(std::move(options), absl::Seconds(120));
    EXPECT_OK(run);
    return run.value_or(CompletedProcess());
  }

  // Returns the arguments that import an export of the trained job to `to`.
  std::vector<std::string> ImportTo(const std::string& to) const {
    return {"import", Path("m.safetensors"), "--checkpoint_dir=" + to};
  }

  void TrainAndExport() {
    Train("ckpt", 2);
    const CompletedProcess run =
        Run({"export", Path("ckpt"), "--format=safetensors",
             "--output=" + Path("m.safetensors")},
            {});
    ASSERT_EQ(run.end.code(), 0) << run.standard_error;
  }

  // Returns the arguments of `parasol serve`, with tables in files.
  std::vector<std::string> ServeFromFiles() const {
    return {"serve", Path("ckpt"), "--port=0", "--table_memory=0"};
  }
};

// Expects exit code 2 and one line, which has `words`.
void ExpectOneLine(const CompletedProcess& run, const std::string& words) {
  EXPECT_EQ(run.end.code(), 2) << run.standard_error;
  EXPECT_THAT(run.standard_error, HasSubstr(words));
  EXPECT_EQ(
      std::count(run.standard_error.begin(), run.standard_error.end(), '\n'), 1)
      << run.standard_error;
}

TEST_F(ToolEnvironmentTest, TemporaryDirectoriesThatCannotBeUsedAreNamed) {
  TrainAndExport();
  std::ofstream(Path("file")) << "no directory";
  for (const std::string& temporary :
       {std::string("/nonexistent"), Path("file"), std::string("/proc/self")}) {
    SCOPED_TRACE(temporary);
    ExpectOneLine(Run(ServeFromFiles(), {{"TMPDIR", temporary}}),
                  absl::StrCat("TMPDIR=", temporary, ": can't make a file"));
  }
  // An import needs none.
  const CompletedProcess imported =
      Run(ImportTo(Path("again")), {{"TMPDIR", "/nonexistent"}});
  EXPECT_EQ(imported.end.code(), 0) << imported.standard_error;
}

TEST_F(ToolEnvironmentTest, ResultsThatCannotBeWrittenAreNamed) {
  TrainAndExport();
  std::ofstream(Path("file")) << "no directory";
  for (const std::string& folder : {Path("file"), std::string("/proc/none")}) {
    SCOPED_TRACE(folder);
    const std::string output = "--output=" + folder + "/result";
    ExpectOneLine(Run(ImportTo(folder + "/again"), {}),
                  absl::StrCat("can't make ", folder, "/again: "));
    ExpectOneLine(Run({"predict", Path("ckpt"), "--data_dir=" + Path(""),
                       output + ".csv"},
                      {}),
                  absl::StrCat("can't make ", folder, ": "));
    for (const char* format : {"safetensors", "npz", "tensorflow", "csv"}) {
      SCOPED_TRACE(format);
      ExpectOneLine(Run({"export", Path("ckpt"), output,
                         absl::StrCat("--format=", format)},
                        {}),
                    absl::StrCat("can't make ", folder));
    }
  }
}

// A limit of processes does not hold for root: each thread here takes 1 GiB of
// 6 GiB of addresses.
TEST_F(ToolEnvironmentTest, ThreadsThatCannotBeStartedAreNamed) {
#if defined(PARASOL_SANITIZER)
  GTEST_SKIP() << "it reserves more addresses";
#endif
  for (const std::vector<std::string>& arguments :
       {ImportTo(Path("again")), ServeFromFiles()}) {
    SCOPED_TRACE(arguments[0]);
    ExpectOneLine(Run(arguments, {}, "ulimit -s 1048576; ulimit -v 6291456; "),
                  "parasol: no thread can be started: ");
  }
}

}  // namespace
}  // namespace parasol
