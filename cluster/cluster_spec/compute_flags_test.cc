#include "cluster/cluster_spec/compute_flags.h"

#include <fstream>
#include <string>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ComputeFlagsTest, DefaultsAndADirectoryPass) {
  EXPECT_OK(CheckComputeFlags({}));
  EXPECT_OK(CheckComputeFlags(
      {.data_dir = testing::TempDir(), .device = "cpu", .threads = 2}));
}

TEST(ComputeFlagsTest, AWrongValueIsNamedWithItsFlag) {
  const std::string file = testing::TempDir() + "/compute_flags_file";
  std::ofstream(file) << "x";
  struct Case {
    ComputeFlags flags;
    std::string want;
  };
  const Case cases[] = {
      {{.device = "tpu"}, "--device=tpu: "},
      {{.device = "cuda:999"}, "--device=cuda:999: "},
      {{.threads = 0}, "--threads=0: "},
      {{.data_dir = "/no/such/data"}, "--data_dir=/no/such/data: "},
      {{.data_dir = file}, "--data_dir=" + file + ": is a file"},
  };
  for (const Case& c : cases) {
    EXPECT_THAT(
        CheckComputeFlags(c.flags),
        StatusIs(absl::StatusCode::kInvalidArgument, StartsWith(c.want)));
  }
}

TEST(ComputeFlagsTest, TheMessageSaysWhatToUse) {
  EXPECT_THAT(CheckComputeFlags({.device = "tpu"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("use auto, cpu, cpu:N or cuda:N")));
  EXPECT_THAT(CheckComputeFlags({.threads = -1}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("from 1 to 1024")));
}

}  // namespace
}  // namespace parasol
