// Clusters in which a worker's cuda:0 fails, as third_party/cuda_on_host plays
// it.

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/end_to_end/cuda_jobs.h"
#include "tests/end_to_end/launched_cluster.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// The lines with which processes of worker 1 ended.
std::vector<std::string> LastWords(const LaunchedCluster& cluster) {
  std::vector<std::string> words;
  for (absl::string_view line :
       absl::StrSplit(cluster.LogOf("worker/1"), '\n')) {
    if (absl::ConsumePrefix(&line, "worker: ")) words.emplace_back(line);
  }
  return words;
}

LaunchedCluster::Options WithFault(LaunchedCluster::Options options,
                                   const std::string& fault, bool only_first) {
  options.flags.push_back(
      absl::StrCat("--worker_binary=", WorkerWithFault(fault, only_first)));
  return options;
}

struct Loss {
  std::string name;
  std::string fault;
  std::vector<std::string> overrides;
};

void PrintTo(const Loss& loss, std::ostream* out) { *out << loss.name; }

class LostDeviceTest : public testing::TestWithParam<Loss> {};

constexpr char kWithoutGraphs[] = "worker.cuda_graphs=false";
constexpr char kSynchronous[] =
    "parameter_server.synchronous.lost_worker=REASSIGN";

// 719: a kernel failed, and 700: it used an illegal address. Both end what the
// process can do with its device.
INSTANTIATE_TEST_SUITE_P(
    Faults, LostDeviceTest,
    testing::Values(
        Loss{"InALaunch", "kernel=719@500", {kWithoutGraphs}},
        Loss{"InALaunchOfAStep",
             "kernel=719@500",
             {kSynchronous, kWithoutGraphs}},
        Loss{"InAWait", "cudaEventSynchronize=700@100", {kWithoutGraphs}},
        Loss{"InAWaitForAGraph", "cudaEventSynchronize=700@100", {}},
        Loss{"InAGraph", "cudaGraphLaunch=719@20", {}}),
    [](const auto& info) { return info.param.name; });

TEST_P(LostDeviceTest, EndsTheWorkerWithOneLineAndItIsStartedAgain) {
  LaunchedCluster::Options options =
      WithFault(DigitsOn("cuda:0"), GetParam().fault, /*only_first=*/true);
  for (const std::string& value : GetParam().overrides) {
    options.overrides.push_back(value);
  }
  ASSERT_OK_AND_ASSIGN(const auto cluster, LaunchedCluster::Start(options));
  ASSERT_OK_AND_ASSIGN(const auto result, cluster->Wait());
  ExpectLearned(result, kStepsToLearn);
  const std::vector<std::string> words = LastWords(*cluster);
  ASSERT_THAT(words, SizeIs(1)) << cluster->LogOf("worker/1");
  EXPECT_THAT(
      words[0],
      AllOf(HasSubstr("cuda:0"),
            ContainsRegex("unspecified launch failure|illegal memory access")));
  EXPECT_THAT(result.progress,
              AllOf(HasSubstr("worker/1 ended with exit code 138: " + words[0]),
                    HasSubstr("starting it again (1 of 20)")));
}

TEST(FullDeviceTest, EndsTheJobWithTheBytesAndTheDevice) {
  ASSERT_OK_AND_ASSIGN(
      const auto cluster,
      LaunchedCluster::Start(WithFault(DigitsOn("cuda:0"), "cudaMalloc=2@3",
                                       /*only_first=*/false)));
  ASSERT_OK_AND_ASSIGN(const auto result, cluster->Wait());
  EXPECT_NE(result.exit_code, 0);
  const auto json = nlohmann::json::parse(result.json);
  EXPECT_EQ(json["status"], "failed");
  EXPECT_THAT(json["error"].get<std::string>(),
              AllOf(HasSubstr("worker/1"), HasSubstr("cuda:0"),
                    HasSubstr("bytes: out of memory")));
}

// A capture that fails costs speed only. The first one is the device's own.
TEST(RefusedGraphTest, TheJobGoesOnWithoutGraphs) {
  ASSERT_OK_AND_ASSIGN(
      const auto cluster,
      LaunchedCluster::Start(WithFault(DigitsOn("cuda:0"),
                                       "cudaGraphInstantiateWithFlags=2@2",
                                       /*only_first=*/false)));
  ASSERT_OK_AND_ASSIGN(const auto result, cluster->Wait());
  ExpectLearned(result, kStepsToLearn);
  EXPECT_THAT(cluster->LogOf("worker/1"),
              AllOf(HasSubstr("steps are not recorded"),
                    HasSubstr("cudaGraphInstantiate: out of memory")));
  EXPECT_THAT(LastWords(*cluster), testing::IsEmpty());
}

}  // namespace
}  // namespace parasol
