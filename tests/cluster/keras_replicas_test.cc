// Synchronous jobs end with the weights of Keras's `fit` of the same digits,
// whatever the number of replicas: see testdata/make_keras_replicas.py, and for
// weights computed from Keras's rules in float64 make_optimizer_references.py.
// make_keras_fits.py has those with class weights, accumulated gradients,
// moving averages, a warm-up and AdamW.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "cluster/job/defaults.h"
#include "cluster/job/job_file.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "storage/checkpoint_reader.h"
#include "tests/cluster/cluster_runs.h"
#include "tests/cluster/test_cluster.h"

namespace parasol {
namespace {

using nlohmann::json;

constexpr char kTestData[] = "tests/cluster/testdata";

job::Job JobOf(const json& golden, int replicas) {
  absl::StatusOr<job::Job> job = ParseJob(R"(
      name: "keras"
      model {
        input_shape: 28 input_shape: 28
        layer { flatten {} }
        layer {
          name: "logits"
          dense {
            units: 10
            kernel_initializer { zeros {} }
            bias_initializer { zeros {} }
          }
        }
        loss { sparse_categorical_crossentropy {} }
      }
      train {
        idx {
          images: "digits-images-idx3-ubyte.gz"
          labels: "digits-labels-idx1-ubyte.gz"
        }
        shuffle_buffer: 0
      }
  )",
                                          "keras.textproto");
  EXPECT_OK(job);
  job->mutable_train()->set_batch_size(golden["global_batch"].get<int>() /
                                       replicas);
  job->mutable_end()->set_epochs(golden["epochs"]);
  const std::string optimizer = golden.value("optimizer", "");
  if (golden.contains("job")) {
    EXPECT_TRUE(google::protobuf::TextFormat::MergeFromString(
        golden["job"].get<std::string>(), &*job));
  } else if (golden.contains("kernel_l2")) {
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        optimizer, job->mutable_optimizer()));
    job->mutable_model()->mutable_layer(1)->mutable_dense()->set_kernel_l2(
        golden["kernel_l2"]);
  } else if (optimizer == "adam") {
    job->mutable_optimizer()->mutable_adam()->set_learning_rate(
        golden["learning_rate"]);
  } else {
    job->mutable_optimizer()->mutable_sgd()->set_learning_rate(
        golden["learning_rate"]);
  }
  MakeSynchronous({.aggregate = replicas, .total = replicas}, *job);
  FillDefaults(*job);
  return *std::move(job);
}

// Returns the largest difference between `want` and every `stride`th value.
double LargestDifference(const std::vector<float>& values, const json& want,
                         size_t stride) {
  EXPECT_EQ((values.size() + stride - 1) / stride, want.size());
  double largest = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    largest =
        std::max(largest, std::abs(values[i * stride] - want[i].get<double>()));
  }
  return largest;
}

// Keras's own runs with more replicas differ from its run with one by 3e-8.
// Adam divides by the root of small second moments, which enlarges roundings:
// Keras's run is up to 4.8e-7 off the same run in float64.
double ToleranceOf(const json& golden) {
  const std::string optimizer =
      golden.value("optimizer", golden["name"].get<std::string>());
  return optimizer.starts_with("adam") ? 5e-7 : 1e-7;
}

// Returns the moving averages of a variable's values: its last slot.
std::vector<float> AveragesOf(const CheckpointReader& checkpoint,
                              const std::string& name) {
  for (const auto& variable : checkpoint.manifest().variable()) {
    if (variable.name() != name) continue;
    int64_t elements = 1;
    for (const int64_t size : variable.shape()) elements *= size;
    std::vector<float> averages(elements);
    EXPECT_OK(checkpoint.ReadElements(name, variable.slot_size(), 0,
                                      absl::MakeSpan(averages)));
    return averages;
  }
  ADD_FAILURE() << "no variable " << name;
  return {};
}

class KerasReplicasTest : public ClusterRunsTest {
 protected:
  // Runs each case of the file with 1, 2 and 4 replicas over 2 ps. Returns the
  // number of cases.
  int RunCases(const std::string& file) {
    std::ifstream lines(absl::StrCat(kTestData, "/", file));
    int cases = 0;
    for (std::string line; std::getline(lines, line); ++cases) {
      const json golden = json::parse(line);
      for (const int replicas : {1, 2, 4}) {
        const std::string run =
            absl::StrCat(golden["name"].get<std::string>(), "_", replicas);
        SCOPED_TRACE(run);
        RunCase(golden, replicas, run);
        if (HasFatalFailure()) return cases;
      }
    }
    return cases;
  }

 private:
  void RunCase(const json& golden, int replicas, const std::string& run) {
    TestCluster cluster(JobOf(golden, replicas), /*num_ps=*/2,
                        /*num_workers=*/2, Directory(run));
    cluster.SetDataDirectory(kTestData);
    ASSERT_OK(cluster.StartChief());
    for (const int i : {0, 1}) {
      ASSERT_OK(cluster.StartPs(i));
      ASSERT_OK(cluster.StartWorker(i));
    }
    ASSERT_OK(cluster.WaitForChief());
    const auto checkpoint = Newest(run);
    EXPECT_EQ(checkpoint->manifest().global_step(), golden["steps"]);
    auto variables = ReadVariables(*checkpoint);
    const double tolerance = ToleranceOf(golden);
    EXPECT_LT(LargestDifference(variables["logits/kernel"], golden["kernel"],
                                golden.value("stride", size_t{1})),
              tolerance);
    EXPECT_LT(LargestDifference(variables["logits/bias"], golden["bias"],
                                /*stride=*/1),
              tolerance);
    if (!golden.contains("kernel_average")) return;
    EXPECT_LT(LargestDifference(AveragesOf(*checkpoint, "logits/kernel"),
                                golden["kernel_average"], golden["stride"]),
              tolerance);
    EXPECT_LT(LargestDifference(AveragesOf(*checkpoint, "logits/bias"),
                                golden["bias_average"], /*stride=*/1),
              tolerance);
  }
};

TEST_F(KerasReplicasTest, OneTwoOrFourReplicasEndWithTheWeightsOfKeras) {
  EXPECT_EQ(RunCases("keras_replicas.jsonl"), 2);
}

TEST_F(KerasReplicasTest, EachOptimizerAndL2EndWithTheWeightsOfTheirRules) {
  EXPECT_EQ(RunCases("optimizer_references.jsonl"), 8);
}

TEST_F(KerasReplicasTest, WeightsAndAveragesOfTunedJobsAreThoseOfKeras) {
  EXPECT_EQ(RunCases("keras_fits.jsonl"), 5);
}

}  // namespace
}  // namespace parasol
