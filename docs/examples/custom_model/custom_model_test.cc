// The example as its README has it.

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "base/status_matchers.h"
#include "base/subprocess.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

constexpr absl::Duration kLimit = absl::Minutes(2);
constexpr char kExample[] = "docs/examples/custom_model";

std::string Built(const std::string& path) {
  return absl::StrCat(getenv("TEST_SRCDIR"), "/", getenv("TEST_WORKSPACE"), "/",
                      path);
}

class CustomModelTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const auto drawn = RunSubprocess(
        {.argv = {Built("deploy/local/make_digits"), "--out=" + Digits(),
                  "--train=4000", "--test=500"}},
        kLimit);
    ASSERT_OK(drawn);
    ASSERT_EQ(drawn->end.code(), 0) << drawn->standard_error;
  }

  static std::string Digits() { return testing::TempDir() + "/digits"; }

  // `program` with the example's job, and a directory for checkpoints.
  static absl::StatusOr<CompletedProcess> Run(
      const std::string& program, const std::vector<std::string>& flags) {
    const std::string checkpoints =
        testing::TempDir() +
        testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(checkpoints);
    SubprocessOptions options;
    options.argv = {Built(program),
                    absl::StrCat("--job=", Built(kExample), "/job.textproto"),
                    "--data_dir=" + Digits(), "--device=cpu",
                    "--checkpoint_dir=" + checkpoints};
    options.argv.insert(options.argv.end(), flags.begin(), flags.end());
    return RunSubprocess(options, kLimit);
  }
};

TEST_F(CustomModelTest, TrainsAlone) {
  ASSERT_OK_AND_ASSIGN(const CompletedProcess worker,
                       Run(absl::StrCat(kExample, "/worker"), {}));
  EXPECT_EQ(worker.end.code(), 0) << worker.standard_error;
  EXPECT_THAT(worker.standard_error, HasSubstr("step 600: accuracy 0.9"));
}

TEST_F(CustomModelTest, TrainsOnALocalCluster) {
  ASSERT_OK_AND_ASSIGN(
      const CompletedProcess launcher,
      Run("deploy/local/launcher",
          {absl::StrCat("--worker_binary=", Built(kExample), "/worker"),
           absl::StrCat("--evaluator_binary=", Built(kExample), "/evaluator"),
           "--workers=2"}));
  EXPECT_EQ(launcher.end.code(), 0) << launcher.standard_error;
  const std::vector<std::string> lines =
      absl::StrSplit(absl::StripSuffix(launcher.standard_output, "\n"), '\n');
  const auto result = nlohmann::json::parse(lines.back(), nullptr, false);
  EXPECT_EQ(result["status"], "succeeded") << launcher.standard_output;
  EXPECT_GT(double{result["eval"]["accuracy"]}, .9);
}

TEST_F(CustomModelTest, AWorkerWithoutTheLayersCodeSaysSo) {
  ASSERT_OK_AND_ASSIGN(const CompletedProcess worker, Run("worker/worker", {}));
  EXPECT_EQ(worker.end.code(), 1);
  EXPECT_THAT(worker.standard_error,
              AllOf(HasSubstr("model.layer[1] \"maxout\""),
                    HasSubstr("no custom layer \"maxout\"")));
}

}  // namespace
}  // namespace parasol
