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
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/cuda_on_host/counts.h"
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
      sums_.push_back(*devices_[rank]->NewArray<float>(kElements));
      host_.push_back(*devices_[rank]->NewHostArray<float>(kElements));
      std::fill_n(host_[rank].data(), kElements, 1.0f + rank);
      EXPECT_OK(devices_[rank]->Copy(
          Device::Stream::kCompute,
          absl::MakeConstSpan(host_[rank].data(), kElements),
          arrays_[rank].data()));
      EXPECT_OK(devices_[rank]->Synchronize());
    }
  }
  ~CudaPeerTest() override {
    cuda_on_host::SetFaults("");
    cuda_on_host::SetSchedule(schedule_);
  }

  // Adds the arrays in their places, as NCCL lets a rank do that has one term.
  absl::Status AllReduce(DevicePeer& peer, int rank,
                         DevicePeer::MayGoOn may_go_on = GoOn) {
    const float* const term = arrays_[rank].data();
    RETURN_IF_ERROR(peer.Begin({.terms = {&term, 1},
                                .elements = kElements,
                                .sum = arrays_[rank].data(),
                                .on_host = host_[rank].data()},
                               may_go_on));
    return peer.Await(may_go_on);
  }
  // Connects the first `ranks` devices.
  std::vector<std::unique_ptr<DevicePeer>> Meet(int ranks) {
    const std::string meeting = *DevicePeer::NewMeeting();
    std::vector<std::unique_ptr<DevicePeer>> peers(ranks);
    InThreads(ranks, [&](int rank) {
      peers[rank] =
          *DevicePeer::Join(*devices_[rank], meeting, ranks, rank, GoOn);
    });
    return peers;
  }
  // Begins the sum of elements [first, last) of the arrays, behind `written`
  // (null: nothing).
  absl::Status Begin(DevicePeer& peer, int rank, int64_t first, int64_t last,
                     Device::Event* written = nullptr) {
    const float* const term = arrays_[rank].data() + first;
    return peer.Begin(
        {.terms = {&term, 1},
         .written = {&written, written == nullptr ? size_t{0} : 1},
         .elements = last - first,
         .sum = sums_[rank].data() + first,
         .on_host = host_[rank].data() + first},
        GoOn);
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
  std::vector<Array<float>> sums_;
  std::vector<Array<float>> host_;
  const cuda_on_host::Schedule schedule_ = cuda_on_host::TheSchedule();
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

TEST_F(CudaPeerTest, PacksMayHaveDifferentSizes) {
  const auto peers = Meet(3);
  InThreads(3, [&](int rank) {
    const int64_t bounds[] = {0, 1, 701, kElements};
    for (int pack = 2; pack >= 0; --pack) {
      ASSERT_OK(Begin(*peers[rank], rank, bounds[pack], bounds[pack + 1]));
    }
    ASSERT_OK(peers[rank]->Await(GoOn));
    EXPECT_THAT(host_[rank].span(), Each(6));
  });
}

// More terms than a kernel adds at once. The second rank has none.
TEST_F(CudaPeerTest, ARankBringsTheSumOfItsTermsInTheirOrder) {
  std::vector<Array<float>> arrays;
  std::vector<const float*> terms;
  float want = 0;
  for (int i = 0; i < 20; ++i) {
    const float value = i % 3 == 0 ? 1e8f : i % 3 == 1 ? 1.f / 3 + i : -1e8f;
    want += value;
    arrays.push_back(*devices_[0]->NewArray<float>(1));
    terms.push_back(arrays.back().data());
    *host_[0].data() = value;
    ASSERT_OK(devices_[0]->Copy(Device::Stream::kCompute,
                                absl::MakeConstSpan(host_[0].data(), 1),
                                arrays.back().data()));
    ASSERT_OK(devices_[0]->Synchronize());
  }
  const auto peers = Meet(2);
  InThreads(2, [&](int rank) {
    DevicePeer::Pack pack = {.elements = 1,
                             .sum = sums_[rank].data(),
                             .on_host = host_[rank].data()};
    if (rank == 0) pack.terms = terms;
    ASSERT_OK(peers[rank]->Begin(pack, GoOn));
    ASSERT_OK(peers[rank]->Await(GoOn));
    EXPECT_EQ(*host_[rank].data(), want);
  });
}

// Two halves are written one after the other, and each is a pack.
TEST_F(CudaPeerTest, APackWaitsForWhatWritesItAndForNothingElse) {
  constexpr int64_t kHalf = kElements / 2;
  const auto peers = Meet(2);
  cuda_on_host::SetSchedule({.seed = 3, .late = cuda_on_host::Late::kRandom});
  int left_early = 0;
  for (int round = 1; round <= 30; ++round) {
    cuda_on_host::NoteWork();
    InThreads(2, [&](int rank) {
      Device& device = *devices_[rank];
      std::fill_n(host_[rank].data(), kElements, round);
      std::unique_ptr<Device::Event> written[2];
      for (int64_t i = 0; i < 2; ++i) {
        written[i] = *device.NewEvent();
        ASSERT_OK(device.Copy(
            Device::Stream::kCompute,
            absl::MakeConstSpan(host_[rank].data() + i * kHalf, kHalf),
            arrays_[rank].data() + i * kHalf));
        ASSERT_OK(device.Record(Device::Stream::kCompute, *written[i]));
      }
      for (int64_t i = 0; i < 2; ++i) {
        ASSERT_OK(Begin(*peers[rank], rank, i * kHalf, (i + 1) * kHalf,
                        written[i].get()));
      }
      ASSERT_OK(peers[rank]->Await(GoOn));
      EXPECT_THAT(host_[rank].span(), Each(2 * round)) << round;
      ASSERT_OK(device.Synchronize());
    });
    const std::string work = cuda_on_host::WorkOf(0);
    if (work.find('s') < work.rfind('i')) ++left_early;
  }
  EXPECT_GT(left_early, 0) << "no pack has left before the last was written";
}

TEST_F(CudaPeerTest, ARankThatLeavesBetweenTwoPacksEndsTheWaitAsTheCallerSays) {
  auto peers = Meet(2);
  InThreads(2, [&](int rank) { ASSERT_OK(Begin(*peers[rank], rank, 0, 10)); });
  ASSERT_OK(Begin(*peers[0], 0, 10, kElements));
  peers[1] = nullptr;
  EXPECT_THAT(peers[0]->Await(Patience(50)),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(peers[0]->Await(GoOn),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("has left")));
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
