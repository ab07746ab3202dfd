// Programs whose CUDA device fails, as third_party/cuda_on_host plays it, as
// processes under every strategy: all end, and soon, each with one line that
// names the model and the device; with ps the others go on.

#include <string>

#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "loop/testing/faulty_program.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// To be started again: base/process.h.
constexpr int kRetryable = 138;

// On cuda:0, or on both devices, where `task` meets with `fault`.
Way OnCuda(Way way, const std::string& task, const std::string& fault) {
  if (way.name == "mirrored") {
    way.flags = {"--devices=cuda:0,cuda:1"};
  } else {
    way.flags.push_back("--devices=cuda:0");
  }
  way.task = task;
  way.environment["PARASOL_CUDA_ON_HOST_FAULT"] = fault;
  return way;
}

constexpr char kModel[] = "model \"network\" on cuda:";

// 719: a kernel failed, and 700: it used an illegal address. Both end what the
// process can do with its devices.
TEST(CudaFaultsTest, ADeviceThatIsLost) {
  for (const std::string fault :
       {"kernel=719@40", "cudaEventSynchronize=700@30"}) {
    SCOPED_TRACE(fault);
    for (const Way& way : {Default(), Mirrored()}) {
      SCOPED_TRACE(way.name);
      const auto ends = RunWith("", OnCuda(way, "", fault));
      EXPECT_EQ(ends.at("").code, kRetryable);
      EXPECT_THAT(ends.at("").lines, ElementsAre(HasSubstr(kModel)));
    }
  }
}

TEST(CudaFaultsTest, ADeviceThatIsFull) {
  // When the model is made, and in its first step.
  for (const std::string fault : {"cudaMalloc=2@2", "cudaMalloc=2@6"}) {
    SCOPED_TRACE(fault);
    const auto ends = RunWith("", OnCuda(Default(), "", fault));
    EXPECT_EQ(ends.at("").code, 1);
    EXPECT_THAT(ends.at("").lines,
                ElementsAre(AllOf(HasSubstr(kModel), HasSubstr("bytes"))));
  }
}

TEST(CudaFaultsTest, AnotherProcessHearsOfIt) {
  auto ends = RunWith("", OnCuda(TwoWorkers(), "worker/1", "kernel=719@40"));
  for (const auto& [task, ended] : ends) EXPECT_EQ(ended.code, kRetryable);
  EXPECT_THAT(ends["worker/1"].lines, ElementsAre(HasSubstr(kModel)));
  EXPECT_THAT(ends["worker/0"].lines,
              ElementsAre(AllOf(HasSubstr("worker/1: "), HasSubstr(kModel))));
}

// The lost one comes back and takes iterations again.
TEST(CudaFaultsTest, AWorkerOfPsThatLostItsDeviceComesBack) {
  Way way = OnCuda(OnPs(), "worker/1", "kernel=719@40");
  way.is_started_again = true;
  auto ends = RunWith("", way, {"--iterations=200"});
  const Ended lost = ends["first"];
  EXPECT_EQ(lost.code, kRetryable);
  EXPECT_THAT(lost.lines, ElementsAre(HasSubstr(kModel)));
  ends.erase("first");
  for (const auto& [task, ended] : ends) {
    EXPECT_EQ(ended.code, 0) << task << absl::StrJoin(ended.lines, "\n");
  }
}

}  // namespace
}  // namespace parasol
