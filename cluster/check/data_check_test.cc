#include "cluster/check/data_check.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "base/status_matchers.h"
#include "cluster/job/job_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/testing/no_descriptors.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kJob[] = R"(
  name: "j"
  model {
    input { name: "a" dense { column { name: "a" } } }
    layer { name: "d" dense { units: 1 } }
    loss { mean_squared_error {} }
  }
  train { csv { file: "part*.csv" label { column: "y" } } batch_size: 1 }
  optimizer { sgd { learning_rate: 1 } }
  end { steps: 3 }
)";

// Who trains has them again when it starts again.
TEST(DataCheckTest, DataThatAreAwayForNowAreNoFaultOfAStart) {
  const std::string directory = testing::TempDir() + "/data_check";
  std::filesystem::create_directories(directory);
  std::ofstream(directory + "/part1.csv") << "a,y\n1,2\n";
  ASSERT_OK_AND_ASSIGN(const job::Job job, ParseJob(kJob, "j.textproto"));
  const auto faults = [&](int64_t sample_bytes) {
    DataCheck check(job, /*graph=*/nullptr,
                    {.data_dir = directory,
                     .max_examples = 10,
                     .sample_bytes = sample_bytes});
    const NoDescriptors none;
    check.Check("train", job.train());
    check.Finish();
    return check.found().faults;
  };
  EXPECT_THAT(faults(/*sample_bytes=*/1000), IsEmpty());
  EXPECT_THAT(
      faults(/*sample_bytes=*/0),
      ElementsAre(AllOf(HasSubstr("train"), HasSubstr("Too many open files"))));
}

TEST(DataCheckTest, FilesOfASetThatGrowsAreYetToComeButToAFolder) {
  const std::string directory = testing::TempDir() + "/data_check_followed";
  std::filesystem::create_directories(directory);
  ASSERT_OK_AND_ASSIGN(job::Job job, ParseJob(kJob, "j.textproto"));
  job.mutable_train()->set_follow(true);
  const auto faults = [&](const std::string& pattern) {
    job.mutable_train()->mutable_csv()->set_file(0, pattern);
    DataCheck check(job, /*graph=*/nullptr,
                    {.data_dir = directory, .max_examples = 10});
    check.Check("train", job.train());
    return check.found().faults;
  };
  EXPECT_THAT(faults("part*.csv"), IsEmpty());
  EXPECT_THAT(faults("kafka://broker:9092/clicks"), IsEmpty());
  EXPECT_THAT(faults("clicks/part*.csv"),
              ElementsAre(AllOf(HasSubstr("train.csv.file[0]"),
                                HasSubstr("no folder " + directory + "/clicks"),
                                HasSubstr("--data_dir=" + directory))));
}

}  // namespace
}  // namespace parasol
