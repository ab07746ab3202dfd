#include "tool/testing/trained_job_fixture.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "cluster/checkpoint/model/testing/model_checkpoint.h"
#include "tool/testing/run_tool.h"

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

constexpr char kJobOfNamedOutputs[] = R"(
  name: "ratings"
  seed: 1
  model {
    input {
      name: "pair"
      ids {
        column { name: "user" identity { num_ids: 17 } }
        column { name: "item" identity { num_ids: 5 } }
      }
    }
    layer { name: "rows" embedding { table: "rows" } }
    layer { name: "flat" flatten {} }
    layer { name: "experts" dense { units: 12 activation: RELU } }
    layer { name: "expert_rows" reshape { shape: [3, 4] } }
    layer { name: "gate" input: "flat" dense { units: 3 activation: SOFTMAX } }
    layer { name: "mixture" input: ["gate", "expert_rows"] weighted_sum {} }
    layer { name: "rating" dense { units: 1 } }
    layer { name: "kind" input: "experts" dense { units: 3 } }
    layer { name: "sees" input: "experts" dense { units: 1 activation: SIGMOID } }
    layer { name: "likes" input: "experts" dense { units: 1 activation: SIGMOID } }
    layer { name: "both" input: ["sees", "likes"] multiply {} }
    output {
      name: "rating"
      label { column: "rating" }
      loss { mean_squared_error {} }
    }
    output {
      name: "kind"
      weight: 2
      label { column: "kind" class: ["a", "b", "c"] }
      loss { sparse_categorical_crossentropy {} }
    }
    output {
      name: "likes_it"
      layer: "both"
      label { column: "likes" positive: "yes" }
      loss { binary_crossentropy { from_logits: false } }
    }
    sparse_table { name: "rows" width: 3 }
  }
  train { csv { file: "ratings.csv" } batch_size: 8 }
  eval { csv { file: "ratings.csv" } batch_size: 7 }
  optimizer { adam { learning_rate: 0.01 } }
)";

constexpr char kJobOfPatterns[] = R"(
  name: "ratings"
  seed: 1
  model {
    input { name: "numbers" dense { column { name: "x*" mean: 5 } } }
    input { name: "ids" ids { column { name: "c?" hash { buckets: 10 } } } }
    layer { name: "bag" input: "ids" embedding_bag { table: "rows" } }
    layer { name: "all" input: ["numbers", "bag"] concatenate {} }
    layer { name: "rating" dense { units: 1 } }
    loss { mean_squared_error {} }
    sparse_table { name: "rows" width: 3 }
  }
  train { csv { file: "train.csv" label { column: "xy" } } batch_size: 8 }
  eval { csv { file: "train.csv" label { column: "xy" } } batch_size: 7 }
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

void TrainedJobFixture::WriteJobOfNamedOutputs() {
  std::ofstream(Path("job.textproto")) << kJobOfNamedOutputs;
  std::ofstream ratings(Path("ratings.csv"));
  ratings << "user,item,rating,kind,likes\n";
  for (int i = 0; i < kExamples; ++i) {
    ratings << i % 17 << "," << i % 5 << ",";
    if (i % 3 != 0) ratings << RatingOf(i);
    ratings << ","
            << "abc"[i % 5 % 3] << "," << (i % 2 == 0 ? "yes" : "no") << "\n";
  }
}

void TrainedJobFixture::WriteJobOfPatterns() {
  std::ofstream(Path("job.textproto")) << kJobOfPatterns;
  std::ofstream train(Path("train.csv"));
  train << "x2,c1,xy,x1,other,c2\n";
  for (int i = 0; i < kExamples; ++i) {
    train << i % 7 << ",a" << i % 3 << "," << RatingOf(i) << "," << i % 5
          << ",0,b" << i % 4 << "\n";
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
