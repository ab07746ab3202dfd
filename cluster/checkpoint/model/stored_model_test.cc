// Models whose checkpoints lie in a store, as increments: what is known is not
// brought again.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "cluster/checkpoint/model/checkpoint_job.h"
#include "cluster/checkpoint/model/checkpoint_model.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "storage/checkpoint_name.h"
#include "storage/checkpoint_store.h"
#include "storage/remote/testing/memory_files.h"
#include "storage/shard_writer.h"

namespace parasol {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kRun[] = "s3://b/run";
constexpr uint64_t kRows = 10;
constexpr char kJob[] = R"(
  name: "users"
  seed: 1
  model {
    input { name: "user" ids { column { name: "user" hash {} } } }
    layer { name: "rows" embedding_bag { table: "rows" } }
    layer { name: "out" dense { units: 1 use_bias: false } }
    loss { mean_squared_error {} }
    sparse_table {
      name: "rows" width: 2 optimizer { sgd { learning_rate: 0.1 } }
    }
  }
  train { ratings { file: "x" } batch_size: 1 }
  optimizer { sgd { learning_rate: 0.1 } }
  checkpoint { full_every: 4 }
  end { steps: 9 }
)";

class StoredModelTest : public testing::Test {
 protected:
  StoredModelTest() {
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        kJob, newest_.mutable_job()));
    newest_.set_run_id("run");
    durable::CheckpointVariable& variable = *newest_.add_variable();
    variable.set_name("out/kernel");
    variable.mutable_shape()->Add(2);
    variable.mutable_shape()->Add(1);
    durable::CheckpointTable& table = *newest_.add_table();
    table.set_name("rows");
    table.set_width(2);
    files_.OnRequest([this](const MemoryFiles::Request& request) {
      if (request.what == "read" && absl::EndsWith(request.path, ".sst")) {
        brought_.push_back(request.path);
      }
      return MemoryFiles::Fate::kDone;
    });
  }

  // Writes the checkpoint of `step`, in which some rows, or all of a whole one,
  // have the step for their values.
  absl::Status Write(int64_t step, bool is_whole) {
    CheckpointStore store(kRun);
    ASSIGN_OR_RETURN(const std::string working, store.Begin(step));
    const std::string name = CheckpointStore::NameInWorking(working, "0.sst");
    ASSIGN_OR_RETURN(
        const auto writer,
        ShardWriter::Create(CheckpointStore::PathInWorking(working, name)));
    writer->SetWriter({.shard = 0, .num_shards = 1});
    durable::CheckpointManifest manifest = newest_;
    manifest.set_global_step(step);
    if (is_whole) {
      manifest.clear_file();
    } else {
      for (durable::CheckpointFile& file : *manifest.mutable_file()) {
        if (absl::StrContains(file.name(), "/")) continue;
        file.set_name(absl::StrCat(CheckpointName(newest_.global_step()), "/",
                                   file.name()));
      }
      const durable::CheckpointFile& last = *manifest.file().rbegin();
      writer->SetBase({last.bytes(), last.crc32c()});
    }
    RETURN_IF_ERROR(writer->AddElements("out/kernel", 0, 0, step,
                                        {static_cast<float>(step), 1}));
    std::vector<uint64_t> ids;
    for (uint64_t id = 0; id < (is_whole ? kRows : 1); ++id) ids.push_back(id);
    RETURN_IF_ERROR(writer->AddRows(
        "rows", {.updates = step,
                 .ids = ids,
                 .rows = std::vector<float>(2 * ids.size(),
                                            static_cast<float>(step))}));
    const int number = manifest.file_size();
    ASSIGN_OR_RETURN(*manifest.add_file(), writer->Finish());
    manifest.mutable_file(number)->set_increment(number);
    RETURN_IF_ERROR(store.Commit(working, manifest));
    newest_ = manifest;
    return store.Prune(1, step);
  }

  static std::string NewestPath() {
    return CheckpointStore(kRun).PathOf(
        CheckpointStore(kRun).ListSteps()->back());
  }
  static std::unique_ptr<CheckpointModel> Empty() {
    const auto loaded = JobOfCheckpoint(NewestPath(), {});
    EXPECT_OK(loaded);
    auto model =
        CheckpointModel::Create(loaded->job, loaded->graph, {.device = "cpu"});
    EXPECT_OK(model);
    return *std::move(model);
  }
  // The first values of rows 0 and 1.
  static std::vector<float> RowsOf(CheckpointModel& model) {
    const std::vector<uint64_t> ids = {0, 1};
    std::vector<float> values(4);
    const StagedBatch::Rows rows = {
        .table = 0, .ids = ids, .values = absl::MakeSpan(values)};
    EXPECT_OK(model.ReadRows({&rows, 1}));
    return {values[0], values[2]};
  }

  MemoryFiles files_;
  std::vector<std::string> brought_;
  durable::CheckpointManifest newest_;
};

TEST_F(StoredModelTest, AFollowerBringsWhatIsNew) {
  ASSERT_OK(Write(1, /*is_whole=*/true));
  auto served = Empty();
  ASSERT_OK(served->Load(NewestPath()));
  EXPECT_THAT(brought_, SizeIs(1));
  for (int64_t step = 2; step <= 4; ++step) {
    brought_.clear();
    ASSERT_OK(Write(step, /*is_whole=*/false));
    auto next = Empty();
    ASSERT_OK(next->LoadBehind(served.get(), NewestPath()));
    EXPECT_TRUE(next->shares_rows());
    EXPECT_THAT(brought_, ElementsAre(HasSubstr(CheckpointName(step))));
    EXPECT_THAT(RowsOf(*next), ElementsAre(static_cast<float>(step), 1));
    served = std::move(next);
  }
  // One that begins a chain has all.
  brought_.clear();
  ASSERT_OK(Write(5, /*is_whole=*/true));
  auto next = Empty();
  ASSERT_OK(next->LoadBehind(served.get(), NewestPath()));
  EXPECT_FALSE(next->shares_rows());
  EXPECT_THAT(brought_, SizeIs(1));
  EXPECT_THAT(RowsOf(*next), Each(5));
}

TEST_F(StoredModelTest, WhoeverEvaluatesEachBringsEachFileOnce) {
  ASSERT_OK(Write(1, /*is_whole=*/true));
  const auto model = Empty();
  ASSERT_OK(model->Load(NewestPath()));
  for (int64_t step = 2; step <= 4; ++step) {
    ASSERT_OK(Write(step, /*is_whole=*/false));
    ASSERT_OK(model->Load(NewestPath()));
    EXPECT_THAT(RowsOf(*model), ElementsAre(static_cast<float>(step), 1));
  }
  EXPECT_THAT(brought_, SizeIs(4));
}

}  // namespace
}  // namespace parasol
