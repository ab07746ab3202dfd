#include "tests/cluster/followed_runs.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/job/defaults.h"
#include "cluster/job/job_file.h"
#include "gmock/gmock.h"

namespace parasol {

std::string CountingJob(absl::string_view train, int batch,
                        int checkpoint_every) {
  return absl::StrCat(R"(
      name: "clicks"
      seed: 3
      model {
        input {
          name: "ids"
          ids { column { name: "number" identity { num_ids: 1000000 } } }
        }
        sparse_table { name: "seen" width: 1 initializer { zeros {} } }
        layer { input: "ids" embedding_bag { table: "seen" } }
        loss { mean_absolute_error {} }
      }
      train { )",
                      train, " follow: true batch_size: ", batch,
                      " }\noptimizer { sgd { learning_rate: ", batch,
                      " } }\ncheckpoint { every_steps: ", checkpoint_every,
                      " }\nend { never {} }\n");
}

std::map<int, int> CountsOf(const CheckpointReader& checkpoint,
                            int64_t records) {
  std::map<int, int> counts;
  int64_t rows = 0;
  EXPECT_OK(checkpoint.ReadRows("seen", [&](const RowBatch& batch) {
    for (size_t i = 0; i < batch.ids.size(); ++i) {
      ++rows;
      EXPECT_LT(batch.ids[i], static_cast<uint64_t>(records));
      ++counts[static_cast<int>(batch.rows[i])];
    }
    return absl::OkStatus();
  }));
  if (rows < records) counts[0] = static_cast<int>(records - rows);
  return counts;
}

job::Job FollowedRunsTest::CountingJobOf(absl::string_view train) {
  absl::StatusOr<job::Job> job = ParseJob(
      CountingJob(train, kBatch, /*checkpoint_every=*/20), "clicks.textproto");
  EXPECT_OK(job);
  FillDefaults(*job);
  return *std::move(job);
}

void FollowedRunsTest::StartAll(int workers) {
  ASSERT_OK(cluster_->StartChief());
  for (int ps = 0; ps < 2; ++ps) ASSERT_OK(cluster_->StartPs(ps));
  for (int i = 0; i < workers; ++i) ASSERT_OK(cluster_->StartWorker(i));
}

void FollowedRunsTest::StopAll(int workers) {
  EXPECT_THAT(cluster_->StopChief(), StatusIs(absl::StatusCode::kCancelled));
  for (int i = 0; i < workers; ++i) cluster_->StopWorker(i).IgnoreError();
  for (int ps = 0; ps < 2; ++ps) cluster_->StopPs(ps).IgnoreError();
}

void FollowedRunsTest::AwaitAll() {
  const int64_t steps = records_ / kBatch;
  EXPECT_OK(cluster_->AwaitStatus(
      absl::StrCat("step ", steps), [&](const wire::JobStatus& status) {
        return status.global_step() >= steps && status.followed().has_waited();
      }));
}

std::map<int, int> FollowedRunsTest::Counts(const std::string& run) const {
  return CountsOf(*Newest(run), records_);
}

}  // namespace parasol
