// The toy of asynchronous local SGD (arXiv 2401.09135), narrower, beside the
// same schedules in numpy (testdata/make_local_steps_toy.py): the loss after
// every exchange of all workers.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/model/testing/model_fixture.h"
#include "nlohmann/json.hpp"
#include "storage/shard_entry.h"
#include "worker/store/host_variables.h"
#include "worker/store/local_steps_model.h"

namespace parasol {
namespace {

constexpr int kDimensions = 512, kClasses = 4, kClusters = 32, kHidden = 64;
constexpr int kWorkers = 4, kExamples = 2048, kBatch = 32, kSteps = 20,
              kRounds = 40;
constexpr double kSecondsPerStep[kWorkers] = {0.58, 0.75, 1.51, 3.33};

constexpr char kLayers[] =
    "input { name: 'x' dense { shape: 512 } }"
    "layer { name: 'h' dense { units: 64 activation: RELU } }"
    "layer { name: 'd' dense { units: 4 } }";

// Numbers as the script draws them: splitmix64.
class Draws {
 public:
  double Uniform() {
    state_ += 0x9E3779B97F4A7C15;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    z ^= z >> 31;
    return static_cast<double>(z >> 40) / (1 << 24);
  }
  double Normal() {
    double sum = 0;
    for (int i = 0; i < 12; ++i) sum += Uniform();
    return sum - 6;
  }

 private:
  uint64_t state_ = 42;
};

class LocalStepsToyTest : public ModelTestBase {
 protected:
  void SetUp() override {
    ModelTestBase::SetUp();
    Draws draws;
    DrawExamples(draws);
    DrawValues(draws);
  }

  void DrawExamples(Draws& draws) {
    std::vector<std::vector<double>> centers(kClusters);
    for (std::vector<double>& center : centers) {
      double squares = 0;
      for (int j = 0; j < kDimensions; ++j) {
        center.push_back(draws.Normal());
        squares += center.back() * center.back();
      }
      for (double& element : center) element /= std::sqrt(squares);
    }
    all_ = {.size = kExamples, .dense = {{.shape = {kDimensions}}}};
    for (int i = 0; i < kExamples; ++i) {
      const int cluster = i * 7 % kClusters;
      for (int j = 0; j < kDimensions; ++j) {
        all_.dense[0].values.push_back(
            static_cast<float>(centers[cluster][j] + .5 * draws.Normal()));
      }
      all_.labels.push_back(static_cast<float>(cluster % kClasses));
    }
  }

  void DrawValues(Draws& draws) {
    const auto kernel = [&draws](int inputs, int outputs) {
      const double limit = 1 / std::sqrt(inputs);
      std::vector<float> values;
      for (int i = 0; i < inputs * outputs; ++i) {
        values.push_back(
            static_cast<float>(draws.Uniform() * 2 * limit - limit));
      }
      return values;
    };
    initial_.push_back(kernel(kDimensions, kHidden));
    initial_.emplace_back(kHidden);
    initial_.push_back(kernel(kHidden, kClasses));
    initial_.emplace_back(kClasses);
  }

  static job::Job JobOf(const std::string& outer, int fragments, int overlap) {
    job::Job job;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        absl::StrCat("optimizer { sgd { momentum: .9 nesterov: true ", outer,
                     " } } train { batch_size: ", kSteps * kBatch,
                     " } parameter_server { local_steps { steps: ", kSteps,
                     " batch_size: ", kBatch, " fragments: ", fragments,
                     " overlap_steps: ", overlap,
                     " inner { adamw { learning_rate: 2e-4 weight_decay: 1e-3 "
                     "beta_1: .9 beta_2: .999 epsilon: 1e-7 } } } }"),
        &job));
    return job;
  }

  // Exchange number `round` of a worker's own examples, each fourth one.
  Batch BatchOf(int worker, int round) const {
    constexpr int kOwn = kExamples / kWorkers;
    Batch batch = {.size = kSteps * kBatch,
                   .dense = {{.shape = {kDimensions}}}};
    batch.number = round;
    for (int i = 0; i < kSteps * kBatch; ++i) {
      const int example =
          (round * kSteps * kBatch + i) % kOwn * kWorkers + worker;
      const auto first =
          all_.dense[0].values.begin() + int64_t{example} * kDimensions;
      batch.dense[0].values.insert(batch.dense[0].values.end(), first,
                                   first + kDimensions);
      batch.labels.push_back(all_.labels[example]);
    }
    return batch;
  }

  // The common values with their outer optimizer, and a model of each worker.
  struct Cluster {
    std::vector<std::unique_ptr<Model>> workers;
    std::unique_ptr<HostVariables> common;
    std::vector<float> losses;
  };
  Cluster MakeCluster(const job::Job& job) {
    Cluster cluster;
    for (int i = 0; i < kWorkers; ++i) {
      cluster.workers.push_back(*TakeLocalSteps(Make(kLayers), job));
    }
    cluster.common =
        *HostVariables::Create(cluster.workers[0]->variables(), job);
    EXPECT_OK(cluster.common->Initialize(0));
    for (size_t i = 0; i < initial_.size(); ++i) {
      EXPECT_OK(cluster.common->Write(i, kValueArray, initial_[i]));
      for (const auto& worker : cluster.workers) Set(*worker, i, initial_[i]);
    }
    return cluster;
  }

  static Values DifferencesOf(Model& worker, const Batch& batch, size_t pass) {
    const std::unique_ptr<StagedBatch> staged = worker.NewStagedBatch();
    EXPECT_OK(worker.Stage(batch, *staged));
    staged->pass = pass;
    Values differences(worker.variables().size());
    const auto take = [&](size_t i, absl::Span<const float> difference) {
      differences[i].assign(difference.begin(), difference.end());
    };
    EXPECT_OK(worker.Gradients(*staged, /*seed=*/1,
                               {.variable = take, .rows = IgnoreRows}));
    return differences;
  }

  static void Apply(Cluster& cluster, size_t i,
                    absl::Span<const float> difference) {
    cluster.common->Apply(i, /*first=*/0, difference);
    cluster.common->CountUpdate(i);
  }

  void AddLoss(Cluster& cluster) {
    const std::unique_ptr<Model> model = Make(kLayers);
    for (size_t i = 0; i < initial_.size(); ++i) {
      Set(*model, i, *cluster.common->Read(i, kValueArray));
    }
    ASSERT_OK_AND_ASSIGN(const Evaluated evaluated, Evaluate(*model, all_));
    cluster.losses.push_back(
        static_cast<float>(evaluated.loss_sum / kExamples));
  }

  // In step, in one or several fragments.
  std::vector<float> InStep(int fragments, int overlap) {
    Cluster cluster =
        MakeCluster(JobOf("learning_rate: .7", fragments, overlap));
    for (int round = 0; round < kRounds; ++round) {
      for (int pass = 0; pass < fragments; ++pass) {
        std::vector<Values> differences;
        for (int i = 0; i < kWorkers; ++i) {
          differences.push_back(
              DifferencesOf(*cluster.workers[i], BatchOf(i, round), pass));
        }
        for (size_t i = 0; i < initial_.size(); ++i) {
          std::vector<float> mean = differences[0][i];
          if (mean.empty()) continue;
          for (size_t j = 0; j < mean.size(); ++j) {
            for (int w = 1; w < kWorkers; ++w) mean[j] += differences[w][i][j];
            mean[j] /= kWorkers;
          }
          Apply(cluster, i, mean);
          for (const auto& worker : cluster.workers) {
            Set(*worker, i, *cluster.common->Read(i, kValueArray));
          }
        }
      }
      AddLoss(cluster);
    }
    return std::move(cluster.losses);
  }

  // Each difference is an update when its worker, with its own speed, has made
  // its steps.
  std::vector<float> OneByOne(const std::string& outer) {
    Cluster cluster = MakeCluster(JobOf(outer, 1, 0));
    using Turn = std::pair<double, int>;
    std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns;
    for (int i = 0; i < kWorkers; ++i) {
      turns.emplace(kSteps * kSecondsPerStep[i], i);
    }
    std::vector<int> rounds(kWorkers);
    for (int update = 1; update <= kWorkers * kRounds; ++update) {
      const auto [now, worker] = turns.top();
      turns.pop();
      Model& model = *cluster.workers[worker];
      const Values differences =
          DifferencesOf(model, BatchOf(worker, rounds[worker]++), 0);
      for (size_t i = 0; i < initial_.size(); ++i) {
        Apply(cluster, i, differences[i]);
        Set(model, i, *cluster.common->Read(i, kValueArray));
      }
      turns.emplace(now + kSteps * kSecondsPerStep[worker], worker);
      if (update % kWorkers == 0) AddLoss(cluster);
    }
    return std::move(cluster.losses);
  }

  Batch all_;
  Values initial_;
};

// Sums of other orders: the curves part slowly.
TEST_P(LocalStepsToyTest, HasTheCurvesOfNumpy) {
  std::map<std::string, std::vector<float>> want;
  std::ifstream file("worker/store/testdata/local_steps_toy.jsonl");
  for (std::string line; std::getline(file, line);) {
    const nlohmann::json curve = nlohmann::json::parse(line);
    want[curve["method"]] = curve["loss"].get<std::vector<float>>();
  }
  const std::map<std::string, std::function<std::vector<float>()>> methods = {
      {"synchronous", [&] { return InStep(1, 0); }},
      {"asynchronous", [&] { return OneByOne("learning_rate: .07"); }},
      {"delayed", [&] { return OneByOne("learning_rate: .7 delay: 4"); }},
      {"fragments", [&] { return InStep(2, 0); }},
      {"overlap", [&] { return InStep(2, 5); }}};
  std::map<std::string, std::vector<float>> got;
  for (const auto& [method, run] : methods) {
    SCOPED_TRACE(method);
    got[method] = run();
    ASSERT_EQ(got[method].size(), want[method].size());
    for (size_t i = 0; i < got[method].size(); ++i) {
      EXPECT_NEAR(got[method][i], want[method][i], 2e-3) << "exchange " << i;
    }
  }
  // The order of the methods.
  EXPECT_LT(got["synchronous"].back(), got["delayed"].back());
  EXPECT_LT(got["delayed"].back(), got["asynchronous"].back());
  EXPECT_NEAR(got["fragments"].back(), got["synchronous"].back(), .03);
  EXPECT_NEAR(got["overlap"].back(), got["synchronous"].back(), .03);
  // What other systems do with steps beside an exchange: half of the local
  // values, half of the new ones.
  EXPECT_LT(got["overlap"].back(), want["blended"].back());
}

// Kernels of CUDA that run on the CPU would take too long.
INSTANTIATE_TEST_SUITE_P(Devices, LocalStepsToyTest, ::testing::Values("cpu"));

}  // namespace
}  // namespace parasol
