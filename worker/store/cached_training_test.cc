// Jobs of a worker without a cluster whose table does not fit on the device.

#include <bit>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/status_matchers.h"
#include "cluster/job/defaults.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/model/graph.h"
#include "proto/job.pb.h"
#include "storage/checkpoint_reader.h"
#include "storage/checkpoint_store.h"
#include "worker/lone_training.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;

using ::testing::ContainsRegex;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr int kIds = 60;

constexpr char kJob[] = R"(
  name: "cached"
  model {
    input { name: "i" ids { column { name: "a" identity { num_ids: 1000 } }
                            column { name: "b" identity { num_ids: 1000 } } } }
    sparse_table { name: "rows" width: 3 }
    layer { embedding { table: "rows" } input: "i" }
    layer { flatten {} }
    layer { dense { units: 1 } }
    loss { mean_squared_error {} }
  }
  optimizer { lazy_adam {} }
  train { csv { file: "data.csv" label { column: "y" } } batch_size: 4 }
  eval { csv { file: "data.csv" label { column: "y" } } batch_size: 16 }
  evaluation { every_steps: 10 }
  checkpoint { every_steps: 10 max_to_keep: 100 }
  end { steps: 40 }
  tensorboard_histograms: true
)";

class CachedTrainingTest : public DeviceTest {
 protected:
  CachedTrainingTest()
      : root_(absl::StrCat(testing::TempDir(), "/cached_training")) {
    fs::remove_all(root_);
    fs::create_directories(root_);
    std::ofstream data(root_ + "/data.csv");
    data << "a,b,y\n";
    for (int i = 0; i < kIds; ++i) {
      data << i << "," << i * i % kIds << "," << i % 3 << "\n";
    }
  }

  // Trains with a limit of `rows` rows; 0: none. Returns the metrics' text.
  std::string Train(const std::string& run, int64_t rows) {
    job::Job job;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kJob, &job));
    job.mutable_checkpoint()->set_directory(DirectoryOf(run));
    if (rows > 0) {
      job.mutable_worker()->set_max_device_table_bytes(rows * 3 * 3 *
                                                       sizeof(float));
    }
    FillDefaults(job);
    SimulatedClock clock;
    MetricsRegistry metrics;
    LoneTraining training({.trainer = {.job = job,
                                       .graph = *ResolveGraph(job.model()),
                                       .replicas = {.devices = {GetParam()}},
                                       .data_dir = root_}},
                          clock, metrics);
    EXPECT_OK(training.Run());
    return metrics.Text();
  }

  std::string DirectoryOf(const std::string& run) const {
    return absl::StrCat(root_, "/", run);
  }

  // Returns the rows of a checkpoint by their ids, values and slots.
  std::map<uint64_t, std::vector<uint32_t>> RowsOf(const std::string& run,
                                                   int64_t step) const {
    const CheckpointStore store(DirectoryOf(run));
    const auto checkpoint = CheckpointReader::Open(store.PathOf(step));
    EXPECT_OK(checkpoint);
    std::map<uint64_t, std::vector<uint32_t>> rows;
    EXPECT_OK((*checkpoint)->ReadRows("rows", [&](const RowBatch& batch) {
      const size_t floats = batch.rows.size() / batch.ids.size();
      for (size_t i = 0; i < batch.rows.size(); ++i) {
        rows[batch.ids[i / floats]].push_back(
            std::bit_cast<uint32_t>(batch.rows[i]));
      }
      return absl::OkStatus();
    }));
    return rows;
  }

 private:
  const std::string root_;
};

INSTANTIATE_TEST_SUITE_P(Devices, CachedTrainingTest, testing::Values("cuda:0"),
                         DeviceName);

// Evaluations, histograms and checkpoints come in between.
TEST_P(CachedTrainingTest, ACheckpointHasTheBitsOfATableThatFits) {
  const std::string without = Train("fits", 0);
  EXPECT_THAT(without, HasSubstr("parasol_worker_cached_rows_total 0\n"));
  testing::internal::CaptureStderr();
  const std::string with = Train("cached", 40);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              ContainsRegex("examples/s, [0-9.]+ % of the rows of cached"));
  EXPECT_THAT(with, Not(HasSubstr("parasol_worker_cache_misses_total 0\n")));
  const auto want = RowsOf("fits", 40);
  EXPECT_THAT(want, SizeIs(Ge(kIds)));
  EXPECT_EQ(RowsOf("cached", 40), want);
  // From the middle, with more rows than have seats.
  for (const int step : {30, 40}) {
    fs::remove_all(CheckpointStore(DirectoryOf("cached")).PathOf(step));
  }
  Train("cached", 40);
  EXPECT_EQ(RowsOf("cached", 40), want);
}

}  // namespace
}  // namespace parasol
