#include "tests/end_to_end/cuda_jobs.h"

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace parasol {
namespace {

namespace fs = std::filesystem;

// Smooth activations: where a relu has its edge, a sum that is rounded in
// another way takes another step.
constexpr char kDigits[] = R"(
    name: "digits_on_cuda"
    seed: 7
    model {
      input_shape: [28, 28, 1]
      layer {
        name: "c1"
        conv2d { filters: 4 kernel_size: 4 stride: 4 activation: TANH }
      }
      layer { flatten {} }
      layer { name: "logits" dense { units: 10 } }
      loss { sparse_categorical_crossentropy {} }
    }
    train {
      idx {
        images: "train-images-idx3-ubyte.gz"
        labels: "train-labels-idx1-ubyte.gz"
      }
      batch_size: 32
    }
    eval {
      idx {
        images: "t10k-images-idx3-ubyte.gz"
        labels: "t10k-labels-idx1-ubyte.gz"
      }
      batch_size: 500
    }
    optimizer { sgd { learning_rate: 0.02 momentum: 0.9 } }
    checkpoint { every_steps: 50 }
  )";

constexpr char kTables[] = R"(
    name: "tables_on_cuda"
    seed: 7
    model {
      input { name: "features" ids {} }
      layer { name: "wide" embedding_bag { table: "weights" use_bias: true } }
      layer {
        name: "deep"
        input: "features"
        embedding_bag { table: "embeddings" }
      }
      layer { name: "hidden" input: "deep" dense { units: 8 activation: TANH } }
      layer { name: "score" dense { units: 1 } }
      layer { name: "sum" input: "wide" input: "score" add {} }
      loss { binary_crossentropy {} }
      sparse_table {
        name: "weights"
        width: 1
        initializer { zeros {} }
      }
      sparse_table { name: "embeddings" width: 4 }
    }
    train { libsvm { file: "train" } batch_size: 32 }
    eval { libsvm { file: "eval" } batch_size: 500 }
    optimizer { sgd { learning_rate: 0.2 } }
    checkpoint { every_steps: 50 }
  )";

constexpr int kIds = 100;

// Examples of six features each, in libsvm's format. An example is positive if
// most of its features are of the lower half.
void WriteExamples(const fs::path& path, int examples, int seed) {
  std::mt19937 random(seed);
  std::ofstream file(path);
  for (int i = 0; i < examples; ++i) {
    std::string features;
    int low = 0;
    for (int field = 0; field < 5; ++field) {
      const int id = 1 + static_cast<int>(random() % kIds);
      low += id <= kIds / 2 ? 1 : 0;
      absl::StrAppend(&features, " ", field * kIds + id, ":1");
    }
    file << (low >= 3 ? "+1" : "-1") << features << '\n';
  }
}

std::string TablesDirectory() {
  static const auto* const directory = new std::string([] {
    const fs::path path = fs::path(getenv("TEST_TMPDIR")) / "tables";
    fs::create_directories(path);
    WriteExamples(path / "train", /*examples=*/4000, /*seed=*/1);
    WriteExamples(path / "eval", /*examples=*/1000, /*seed=*/2);
    return path.string();
  }());
  return *directory;
}

LaunchedCluster::Options On(const std::string& device) {
  LaunchedCluster::Options options;
  options.overrides = {absl::StrCat("end.steps=", kStepsToLearn)};
  options.flags = {absl::StrCat("--device=", device)};
  return options;
}

}  // namespace

LaunchedCluster::Options DigitsOn(const std::string& device) {
  LaunchedCluster::Options options = On(device);
  options.job = kDigits;
  return options;
}

LaunchedCluster::Options TablesOn(const std::string& device) {
  LaunchedCluster::Options options = On(device);
  options.job = kTables;
  options.data_dir = TablesDirectory();
  return options;
}

std::string WorkerWithFault(const std::string& fault, bool only_first) {
  static std::atomic<int> count{0};
  const std::string path =
      (fs::path(getenv("TEST_TMPDIR")) / absl::StrCat("worker-", count++))
          .string();
  // mkdir succeeds once.
  std::ofstream(path) << "#!/bin/sh\n"
                      << "case $TF_CONFIG in *'\"index\":1}'*)\n"
                      << (only_first ? "  mkdir \"$0.met\" 2>/dev/null &&\n"
                                     : "")
                      << "  export PARASOL_CUDA_ON_HOST_FAULT=" << fault << "\n"
                      << "esac\n"
                      << "exec " << BinaryPath("worker/worker") << " \"$@\"\n";
  fs::permissions(path, fs::perms::owner_all);
  return path;
}

void ExpectLearned(const LaunchedCluster::Result& result, int steps) {
  ASSERT_EQ(result.exit_code, 0) << result.progress;
  const auto json = nlohmann::json::parse(result.json);
  EXPECT_EQ(json["status"], "succeeded");
  EXPECT_GE(json["global_step"].get<int>(), steps);
  EXPECT_GT(json["eval"]["accuracy"].get<double>(), kLearned) << result.json;
}

}  // namespace parasol
