#include "deploy/tool/testing/trained_job_fixture.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "deploy/tool/testing/model_checkpoint.h"
#include "deploy/tool/testing/run_tool.h"

namespace parasol {
namespace {

constexpr char kJob[] = R"(
  name: "ratings"
  seed: 1
  model {
    input {
      name: "pair"
      ids {
        column { name: "user" hash {} }
        column { name: "item" vocabulary { value: ["0", "1", "2", "3"] } }
      }
    }
    layer { name: "rows" embedding_bag { table: "rows" use_bias: true } }
    layer { name: "hidden" dense { units: 5 activation: RELU } }
    layer { name: "rating" dense { units: 1 } }
    loss { mean_squared_error {} }
    sparse_table { name: "rows" width: 3 optimizer { ftrl { learning_rate: 0.1 } } }
  }
  train { ratings { file: "ratings.dat" } batch_size: 8 }
  eval { ratings { file: "ratings.dat" } batch_size: 7 }
  optimizer { adam { learning_rate: 0.01 } }
)";

}  // namespace

TrainedJobFixture::TrainedJobFixture() : directory_(EmptyTestDirectory()) {
  std::ofstream(Path("job.textproto")) << kJob;
  std::ofstream ratings(Path("ratings.dat"));
  for (int i = 0; i < kExamples; ++i) {
    ratings << i % 17 << "::" << i % 5 << "::" << RatingOf(i) << "::0\n";
  }
}

std::string TrainedJobFixture::Path(const std::string& name) const {
  return (std::filesystem::path(directory_) / name).string();
}

void TrainedJobFixture::Train(const std::string& checkpoints, int steps) {
  const CompletedProcess run =
      RunBinary("worker/worker",
                {"--job=" + Path("job.textproto"), "--data_dir=" + Path(""),
                 "--checkpoint_dir=" + Path(checkpoints),
                 absl::StrCat("--set=end.steps=", steps)});
  ASSERT_EQ(run.end.code(), 0) << run.standard_error;
}

}  // namespace parasol
