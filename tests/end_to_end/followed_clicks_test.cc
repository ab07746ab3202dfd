// Online training by real processes: files come while tasks are killed, and
// the job is told to stop and started again.

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_format.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/end_to_end/followed_job.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;

class FollowedClicksTest : public FollowedJobTest {
 protected:
  FollowedClicksTest() { fs::create_directories(root_ / "clicks"); }

  void Start() {
    StartWith(R"(csv { file: "clicks/*.csv" label { column: "label" } })");
  }
  void AddFiles(int count, int batches) {
    for (; count > 0; --count) {
      const std::string name = absl::StrFormat("%06d.csv", files_++);
      {
        std::ofstream out(root_ / name);
        out << "number,label\n";
        for (int i = 0; i < kBatch * batches; ++i) {
          out << records_++ << "," << kCountedLabel << "\n";
        }
      }
      fs::rename(root_ / name, root_ / "clicks" / name);
    }
  }

  int files_ = 0;
};

TEST_F(FollowedClicksTest, AChiefThatIsKilledCostsNoRecord) {
  Start();
  AddFiles(4, 100);
  ASSERT_OK(cluster_->AwaitStep(150));
  Kill("chief/0");
  AddFiles(4, 50);
  AwaitAll();
  Stop();
  EXPECT_EQ(Counts(), Once());
}

TEST_F(FollowedClicksTest, AWorkerThatIsKilledLeavesNoRecordOut) {
  Start();
  AddFiles(4, 200);
  ASSERT_OK(cluster_->AwaitStep(150));
  Kill("worker/1");
  AddFiles(2, 50);
  AwaitAll();
  Stop();
  ExpectOnceOrTwice();
}

TEST_F(FollowedClicksTest, AJobThatIsStoppedGoesOnWithTheNextRecord) {
  Start();
  AddFiles(6, 100);
  ASSERT_OK(cluster_->AwaitStep(150));
  Stop();
  AddFiles(1, 30);
  Start();
  AddFiles(1, 30);
  AwaitAll();
  Stop();
  EXPECT_EQ(Counts(), Once());
}

}  // namespace
}  // namespace parasol
