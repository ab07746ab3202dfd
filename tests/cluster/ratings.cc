#include "tests/cluster/ratings.h"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <utility>

#include "absl/status/statusor.h"
#include "base/status_matchers.h"
#include "cluster/job/defaults.h"
#include "cluster/job/job_file.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;

constexpr int kUsers = 40;
constexpr int kItems = 60;

void WriteRatings(const fs::path& path, int examples, uint32_t seed) {
  std::mt19937 random(seed);
  std::mt19937 random_lists(seed + 1);
  std::ofstream out(path);
  out << "user,item,mood,likes,seen\n";
  for (int i = 0; i < examples; ++i) {
    const int user = random() % kUsers, item = random() % kItems;
    const double mood = (random() % 1000) / 1000.;
    // What no sum of one number per user and item says.
    const bool likes = (user + item) % 2 == 0;
    out << user << "," << item << "," << mood << "," << (likes ? 1 : 0) << ",";
    const int seen = random_lists() % 7;
    for (int j = 0; j < seen; ++j) {
      out << (j == 0 ? "" : "|") << random_lists() % kItems;
    }
    out << "\n";
  }
}

}  // namespace

std::string RatingsDirectory() {
  static const auto* const directory = new std::string([] {
    const fs::path path = fs::path(getenv("TEST_TMPDIR")) / "ratings";
    fs::create_directories(path);
    WriteRatings(path / "train.csv", 4000, 1);
    WriteRatings(path / "eval.csv", 500, 2);
    return path.string();
  }());
  return *directory;
}

job::Job RatingsJob(int64_t steps) {
  absl::StatusOr<job::Job> job = ParseJob(R"(
      name: "ratings"
      seed: 3
      model {
        input { name: "mood" dense { column { name: "mood" } } }
        input {
          name: "ids"
          ids {
            column { name: "user" identity { num_ids: 40 } }
            column { name: "item" identity { num_ids: 60 } }
          }
        }
        sparse_table {
          name: "wide"
          width: 1
          initializer { zeros {} }
          optimizer { ftrl { learning_rate: 0.1 } }
        }
        sparse_table {
          name: "deep"
          width: 8
          initializer { random_normal { stddev: 0.3 } }
        }
        layer {
          name: "wide_part"
          input: "ids"
          embedding_bag { table: "wide" use_bias: true }
        }
        layer { name: "rows" input: "ids" embedding { table: "deep" } }
        layer { name: "flat" flatten {} }
        layer { name: "both" input: "flat" input: "mood" concatenate {} }
        layer { name: "hidden" dense { units: 16 activation: RELU } }
        layer { name: "logit" dense { units: 1 } }
        layer { name: "sum" input: "wide_part" input: "logit" add {} }
        loss { binary_crossentropy {} }
      }
      train {
        csv { file: "train.csv" label { column: "likes" } }
        batch_size: 32
      }
      eval {
        csv { file: "eval.csv" label { column: "likes" } }
        batch_size: 100
      }
      optimizer { adam { learning_rate: 0.01 } }
      checkpoint { every_steps: 100 }
  )",
                                          "ratings.textproto");
  EXPECT_OK(job);
  job->mutable_end()->set_steps(steps);
  FillDefaults(*job);
  return *std::move(job);
}

}  // namespace parasol
