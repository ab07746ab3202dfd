// Worker processes that are mirrored on several CUDA devices, as a CPU plays
// them (third_party/cuda_on_host), in the hands of a user.

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_matchers.h"
#include "base/subprocess.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "storage/checkpoint_store.h"
#include "tests/end_to_end/cuda_jobs.h"
#include "tests/end_to_end/launched_cluster.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;

using ::testing::HasSubstr;

constexpr absl::Duration kLimit = absl::Minutes(3);
constexpr char kDevices[] = "device: \"cuda:0\" device: \"cuda:1\"";

class CudaMirroredWorkerTest : public testing::Test {
 protected:
  CudaMirroredWorkerTest()
      : root_(fs::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(root_);
    fs::create_directories(root_);
    std::ofstream(root_ / "job.textproto") << DigitsOn("").job;
  }

  SubprocessOptions Worker(const std::string& strategy, const std::string& run,
                           int steps = 100) const {
    return {.argv = {BinaryPath("worker/worker"),
                     absl::StrCat("--job=", (root_ / "job.textproto").string()),
                     absl::StrCat("--data_dir=", DigitsDirectory()),
                     absl::StrCat("--checkpoint_dir=", (root_ / run).string()),
                     absl::StrCat("--set=strategy.", strategy),
                     absl::StrCat("--set=end.steps=", steps)},
            .standard_error = OutputTo::File(LogOf(run))};
  }

  std::string LogOf(const std::string& run) const {
    return (root_ / run).string() + ".log";
  }
  std::string ReadLog(const std::string& run) const {
    std::ostringstream text;
    text << std::ifstream(LogOf(run)).rdbuf();
    return text.str();
  }

  void ExpectExit(const SubprocessOptions& worker, const std::string& run,
                  int code) const {
    ASSERT_OK_AND_ASSIGN(const auto process, Subprocess::Start(worker));
    ASSERT_OK_AND_ASSIGN(const ProcessEnd end, process->Wait(kLimit));
    EXPECT_EQ(end.code(), code) << ReadLog(run);
  }

  // Returns the loss and the metrics of the evaluation at the end.
  nlohmann::json ResultOf(const std::string& run) const {
    std::ifstream lines(root_ / run / "evaluations.jsonl");
    nlohmann::json result = nlohmann::json::parse(lines, nullptr, false);
    for (const char* field :
         {"run_id", "time", "seconds", "examples_per_second", "created",
          "chief_epoch"}) {
      result.erase(field);
    }
    return result;
  }

  const fs::path root_;
};

TEST_F(CudaMirroredWorkerTest, EndsAsWithVariablesInHostMemory) {
  ExpectExit(Worker(absl::StrCat("mirrored={", kDevices, "}"), "devices"),
             "devices", 0);
  ExpectExit(Worker(absl::StrCat("central_storage={", kDevices, "}"), "host"),
             "host", 0);
  ExpectExit(
      Worker(absl::StrCat("mirrored={", kDevices, " cross_device_ops: NCCL}"),
             "nccl"),
      "nccl", 0);
  const nlohmann::json want = ResultOf("host");
  EXPECT_GT(want.value("accuracy", 0.0), .3) << want;
  for (const char* run : {"devices", "nccl"}) {
    const nlohmann::json got = ResultOf(run);
    EXPECT_EQ(got.value("loss", 0.0), want.value("loss", 1.0)) << got;
    EXPECT_EQ(got.value("accuracy", 0.0), want.value("accuracy", 1.0)) << got;
  }
  EXPECT_THAT(ReadLog("devices"),
              HasSubstr("each device has the variables, and gradients are "
                        "summed by all devices"));
}

TEST_F(CudaMirroredWorkerTest, AKilledWorkerGoesOnFromItsCheckpoint) {
  const std::string strategy = absl::StrCat("mirrored={", kDevices, "}");
  ExpectExit(Worker(strategy, "whole"), "whole", 0);
  ASSERT_OK_AND_ASSIGN(auto killed,
                       Subprocess::Start(Worker(strategy, "killed")));
  ASSERT_OK(WaitUntil("a checkpoint of step 50", [&] {
    const auto steps = CheckpointStore((root_ / "killed").string()).ListSteps();
    return steps.ok() && !steps->empty() && steps->back() >= 50;
  }));
  killed->Kill();
  ASSERT_OK(killed->Wait(kLimit).status());
  ExpectExit(Worker(strategy, "killed"), "killed", 0);
  EXPECT_EQ(ResultOf("killed").value("loss", 0.0),
            ResultOf("whole").value("loss", 1.0));
}

TEST_F(CudaMirroredWorkerTest, NcclThatIsNotThereIsOneLineAndExitCodeTwo) {
  const std::string with_nccl =
      absl::StrCat("mirrored={", kDevices, " cross_device_ops: NCCL}");
  SubprocessOptions worker = Worker(with_nccl, "none");
  worker.environment["PARASOL_CUDA_ON_HOST_FAULT"] = "libnccl.so.2=1";
  ExpectExit(worker, "none", 2);
  EXPECT_THAT(ReadLog("none"),
              testing::ContainsRegex(
                  "\nworker: [^\n]*/job.textproto: "
                  "strategy.mirrored.cross_device_ops: NCCL cannot be opened: "
                  "libnccl.so.2: not on this machine; install NCCL 2, or "
                  "choose HIERARCHICAL_COPY\n"));
  ExpectExit(
      Worker("mirrored={device: \"cpu:0\" cross_device_ops: NCCL}", "cpu"),
      "cpu", 2);
  EXPECT_THAT(ReadLog("cpu"), HasSubstr("and cpu:0 is none; choose"));
}

TEST_F(CudaMirroredWorkerTest, ALostDeviceEndsTheWorkerWithOneLine) {
  SubprocessOptions worker =
      Worker(absl::StrCat("mirrored={", kDevices, "}"), "lost");
  worker.environment["PARASOL_CUDA_ON_HOST_FAULT"] =
      "cudaMemcpyPeerAsync=719@50";
  ExpectExit(worker, "lost", 138);
  EXPECT_THAT(ReadLog("lost"),
              testing::ContainsRegex("\nworker: .*sum of gradients: copy from "
                                     "cuda:.*: unspecified launch failure"));
}

}  // namespace
}  // namespace parasol
