// Ranks of NCCL, as third_party/cuda_on_host plays it, each with a device and a
// thread of its own. Only with --config=cuda_host.

#include "ml/device/device_peer.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/cuda_on_host/settings.h"

namespace parasol {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr int64_t kElements = 1000;

absl::Status GoOn() { return absl::OkStatus(); }

// Lets a wait go on for some looks.
class Patience {
 public:
  explicit Patience(int looks) : left_(looks) {}
  absl::Status operator()() const {
    return left_-- > 0 ? absl::OkStatus()
                       : absl::UnavailableError("rank 1 was lost");
  }

 private:
  mutable int left_;
};

class CudaPeerTest : public testing::Test {
 protected:
  CudaPeerTest() {
    for (int rank = 0; rank < 3; ++rank) {
      devices_.push_back(*Device::Open(absl::StrCat("cuda:", rank)));
      arrays_.push_back(*devices_[rank]->NewArray<float>(kElements));
      host_.push_back(*devices_[rank]->NewHostArray<float>(kElements));
      std::fill_n(host_[rank].data(), kElements, 1.0f + rank);
      EXPECT_OK(devices_[rank]->Copy(
          Device::Stream::kCompute,
          absl::MakeConstSpan(host_[rank].data(), kElements),
          arrays_[rank].data()));
      EXPECT_OK(devices_[rank]->Synchronize());
    }
  }
  ~CudaPeerTest() override { cuda_on_host::SetFaults(""); }

  absl::Status AllReduce(DevicePeer& peer, int rank,
                         DevicePeer::MayGoOn may_go_on = GoOn) {
    return peer.AllReduce(arrays_[rank].data(), kElements, host_[rank].data(),
                          may_go_on);
  }
  // Calls run(rank) of all ranks, each on its thread.
  static void InThreads(int ranks, const std::function<void(int)>& run) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&run, rank] { run(rank); });
    }
    for (std::thread& thread : threads) thread.join();
  }

  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<Array<float>> arrays_;
  std::vector<Array<float>> host_;
};

TEST_F(CudaPeerTest, EachHasTheSumsOnTheHost) {
  ASSERT_OK_AND_ASSIGN(const std::string meeting, DevicePeer::NewMeeting());
  std::vector<std::unique_ptr<DevicePeer>> peers(3);
  InThreads(3, [&](int rank) {
    ASSERT_OK_AND_ASSIGN(
        peers[rank], DevicePeer::Join(*devices_[rank], meeting, 3, rank, GoOn));
    ASSERT_OK(AllReduce(*peers[rank], rank));
    EXPECT_THAT(host_[rank].span(), Each(6));
    ASSERT_OK(AllReduce(*peers[rank], rank));
    EXPECT_THAT(host_[rank].span(), Each(18));
  });
}

TEST_F(CudaPeerTest, AWaitForARankThatDoesNotComeEndsAsTheCallerSays) {
  ASSERT_OK_AND_ASSIGN(const std::string meeting, DevicePeer::NewMeeting());
  EXPECT_THAT(
      DevicePeer::Join(*devices_[0], meeting, 2, 0, Patience(20)),
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("rank 1 was lost")));
}

TEST_F(CudaPeerTest, ASumThatARankDoesNotJoinEndsAsTheCallerSays) {
  ASSERT_OK_AND_ASSIGN(const std::string meeting, DevicePeer::NewMeeting());
  std::vector<std::unique_ptr<DevicePeer>> peers(2);
  InThreads(2, [&](int rank) {
    ASSERT_OK_AND_ASSIGN(
        peers[rank], DevicePeer::Join(*devices_[rank], meeting, 2, rank, GoOn));
  });
  EXPECT_THAT(
      AllReduce(*peers[0], 0, Patience(50)),
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("rank 1 was lost")));
  // The rank is of no use; the device is.
  EXPECT_THAT(AllReduce(*peers[0], 0),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("has left")));
  EXPECT_OK(devices_[0]->Copy(Device::Stream::kCompute,
                              absl::MakeConstSpan(host_[0].data(), kElements),
                              arrays_[0].data()));
  EXPECT_OK(devices_[0]->Synchronize());
}

TEST_F(CudaPeerTest, FaultsAreNamed) {
  const std::unique_ptr<Device> cpu = *Device::Open("cpu");
  EXPECT_THAT(DevicePeer::Check(*cpu),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("cpu (1 thread) is none")));
  EXPECT_THAT(DevicePeer::Join(*devices_[0], "short", 2, 0, GoOn),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("has 5 bytes, NCCL's have 128")));
  cuda_on_host::SetFaults("libnccl.so.2=1");
  EXPECT_THAT(DevicePeer::Check(*devices_[0]),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("libnccl.so.2: not on this machine")));
  cuda_on_host::SetFaults("ncclCommInitRankConfig=5");
  ASSERT_OK_AND_ASSIGN(const std::string meeting, DevicePeer::NewMeeting());
  EXPECT_THAT(DevicePeer::Join(*devices_[0], meeting, 1, 0, GoOn),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("ncclCommInitRankConfig on cuda:0 (CUDA on "
                                 "the host): invalid usage")));
}

}  // namespace
}  // namespace parasol
