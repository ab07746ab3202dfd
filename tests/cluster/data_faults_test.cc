// What a worker meets when it opens its data and what may pass again: it ends
// with a code that has it started again, and the job waits for it.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status_matchers.h"
#include "cluster/job/defaults.h"
#include "cluster/job/job_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/format/custom_source.h"
#include "tests/cluster/cluster_runs.h"
#include "tests/cluster/test_cluster.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

std::atomic<bool> is_away = false;

// Examples x = 0, 1, … with label 2x.
class Doubles : public ExampleSource {
 public:
  const std::vector<std::string>& columns() const override { return columns_; }
  std::string label() const override { return "y"; }
  const std::vector<int64_t>& file_starts() const override { return starts_; }
  std::unique_ptr<Reader> NewReader() const override {
    return std::make_unique<DoublesReader>();
  }

 private:
  class DoublesReader : public Reader {
   public:
    absl::Status Read(int64_t example, ColumnValues& row) override {
      row[0].push_back(FieldValue::Real(static_cast<double>(example)));
      row[1].push_back(FieldValue::Real(2. * static_cast<double>(example)));
      return absl::OkStatus();
    }
  };

  const std::vector<std::string> columns_ = {"x", "y"};
  const std::vector<int64_t> starts_ = {0, 40};
};

const ExampleSourceRegistration kDoubles(
    "doubles",
    [](const job::CustomDataset&, const SourceOptions&)
        -> absl::StatusOr<std::unique_ptr<const ExampleSource>> {
      if (is_away) return absl::UnavailableError("doubles: the disk is away");
      return std::make_unique<Doubles>();
    });

using DataFaultsTest = ClusterRunsTest;

TEST_F(DataFaultsTest, AWorkerWhoseDataAreAwayIsStartedAgain) {
  ASSERT_OK_AND_ASSIGN(job::Job job, ParseJob(R"(
      name: "doubles"
      model {
        input { name: "x" dense { column { name: "x" } } }
        layer { name: "d" dense { units: 1 } }
        loss { mean_squared_error {} }
      }
      train { custom { type: "doubles" } batch_size: 8 }
      optimizer { sgd { learning_rate: 0.0001 } }
      end { steps: 20 }
  )",
                                              "doubles.textproto"));
  FillDefaults(job);
  TestCluster cluster(job, /*num_ps=*/1, /*num_workers=*/1,
                      Directory("doubles").string());
  ASSERT_OK(cluster.StartChief());
  ASSERT_OK(cluster.StartPs(0));
  is_away = true;
  ASSERT_OK(cluster.StartWorker(0));
  EXPECT_THAT(cluster.WaitForWorker(0),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("doubles: the disk is away")));
  ASSERT_OK_AND_ASSIGN(const wire::JobStatus status, cluster.Status());
  EXPECT_NE(status.phase(), wire::FAILED) << status.failure();
  is_away = false;
  EXPECT_THAT(cluster.StopWorker(0),
              StatusIs(absl::StatusCode::kUnavailable));  // its result
  ASSERT_OK(cluster.StartWorker(0));
  EXPECT_OK(cluster.WaitForChief());
}

}  // namespace
}  // namespace parasol
