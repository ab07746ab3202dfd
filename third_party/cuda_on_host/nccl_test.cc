// The stand-in's NCCL. BUILD says that there are four devices.

#include <cuda_on_host.h>
#include <cuda_runtime.h>
#include <nccl.h>

#include <functional>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/cuda_on_host/settings.h"

namespace {

using ::cuda_on_host::Late;
using ::testing::ElementsAre;

constexpr int kRanks = 4;
constexpr int kSize = 8;

// A communicator of all devices; on each a stream and two arrays, of which the
// first has the values 10 · rank + i.
class NcclTest : public ::testing::TestWithParam<Late> {
 protected:
  void SetUp() override {
    cuda_on_host::SetSchedule({.seed = 1, .late = GetParam()});
    void* memory = nullptr;
    ASSERT_EQ(cudaHostAlloc(&memory, kSize * sizeof(float), 0), 0);
    host_ = static_cast<float*>(memory);
    for (int rank = 0; rank < kRanks; ++rank) {
      cudaSetDevice(rank);
      ASSERT_EQ(
          cudaStreamCreateWithFlags(&stream_[rank], cudaStreamNonBlocking), 0);
      for (float** array : {&from_[rank], &to_[rank]}) {
        ASSERT_EQ(cudaMalloc(&memory, kSize * sizeof(float)), 0);
        *array = static_cast<float*>(memory);
      }
      for (int i = 0; i < kSize; ++i) host_[i] = 10 * rank + i;
      Copy(rank, host_, from_[rank]);
    }
    ASSERT_EQ(ncclCommInitAll(comm_, kRanks, nullptr), ncclSuccess);
  }
  void TearDown() override {
    for (int rank = 0; rank < kRanks; ++rank) {
      if (comm_[rank] != nullptr) ncclCommDestroy(comm_[rank]);
      cudaStreamDestroy(stream_[rank]);
      cudaFree(from_[rank]);
      cudaFree(to_[rank]);
    }
    cudaFreeHost(host_);
    cuda_on_host::SetSchedule({});
    cuda_on_host::SetFaults("");
  }

  void Copy(int rank, const float* from, float* to) {
    ASSERT_EQ(cudaMemcpyAsync(to, from, kSize * sizeof(float),
                              cudaMemcpyDefault, stream_[rank]),
              cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream_[rank]), cudaSuccess);
  }
  std::vector<float> Get(int rank, const float* array, int size) {
    Copy(rank, array, host_);
    return std::vector<float>(host_, host_ + size);
  }
  std::vector<float> Received(int rank, int size) {
    return Get(rank, to_[rank], size);
  }

  // Calls call(rank) for each rank in one group.
  ncclResult_t InGroup(const std::function<ncclResult_t(int)>& call) {
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    for (int rank = 0; rank < kRanks; ++rank) call(rank);
    return ncclGroupEnd();
  }

  ncclResult_t AllReduce(int rank, ncclRedOp_t op = ncclSum,
                         size_t size = kSize) {
    return ncclAllReduce(from_[rank], to_[rank], size, ncclFloat32, op,
                         comm_[rank], stream_[rank]);
  }

  ncclComm_t comm_[kRanks] = {};
  cudaStream_t stream_[kRanks] = {};
  float* from_[kRanks] = {};
  float* to_[kRanks] = {};
  float* host_ = nullptr;
};

TEST_P(NcclTest, AllReduceGivesEachRankTheSameResult) {
  ASSERT_EQ(InGroup([this](int rank) { return AllReduce(rank); }), 0);
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_THAT(Received(rank, 3), ElementsAre(60, 64, 68)) << rank;
  }
  ASSERT_EQ(InGroup([this](int rank) { return AllReduce(rank, ncclMax); }), 0);
  EXPECT_THAT(Received(1, 3), ElementsAre(30, 31, 32));
  ASSERT_EQ(InGroup([this](int rank) { return AllReduce(rank, ncclAvg); }), 0);
  EXPECT_THAT(Received(2, 3), ElementsAre(15, 16, 17));
}

TEST_P(NcclTest, OperationsMayBeInPlace) {
  ASSERT_EQ(InGroup([this](int rank) {
              return ncclAllReduce(from_[rank], from_[rank], kSize, ncclFloat32,
                                   ncclSum, comm_[rank], stream_[rank]);
            }),
            0);
  EXPECT_THAT(Get(3, from_[3], 2), ElementsAre(60, 64));
  EXPECT_EQ(ncclAllReduce(from_[0], from_[0] + 1, 4, ncclFloat32, ncclSum,
                          comm_[0], stream_[0]),
            ncclInvalidArgument);
}

TEST_P(NcclTest, ReduceScatterAndAllGatherAreAllReduce) {
  constexpr int kShare = kSize / kRanks;
  ASSERT_EQ(InGroup([this](int rank) {
              return ncclReduceScatter(from_[rank], to_[rank], kShare,
                                       ncclFloat32, ncclSum, comm_[rank],
                                       stream_[rank]);
            }),
            0);
  EXPECT_THAT(Received(1, kShare), ElementsAre(68, 72));
  ASSERT_EQ(InGroup([this](int rank) {
              return ncclAllGather(to_[rank], from_[rank], kShare, ncclFloat32,
                                   comm_[rank], stream_[rank]);
            }),
            0);
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_THAT(Get(rank, from_[rank], kSize),
                ElementsAre(60, 64, 68, 72, 76, 80, 84, 88));
  }
}

TEST_P(NcclTest, BroadcastBringsTheRootsValues) {
  ASSERT_EQ(InGroup([this](int rank) {
              return ncclBroadcast(rank == 2 ? from_[rank] : nullptr, to_[rank],
                                   kSize, ncclFloat32, /*root=*/2, comm_[rank],
                                   stream_[rank]);
            }),
            0);
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_THAT(Received(rank, 2), ElementsAre(20, 21));
  }
}

TEST_P(NcclTest, MessagesGoRoundInAGroup) {
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (int rank = 0; rank < kRanks; ++rank) {
    ncclSend(from_[rank], kSize, ncclFloat32, (rank + 1) % kRanks, comm_[rank],
             stream_[rank]);
    ncclRecv(to_[rank], kSize, ncclFloat32, (rank + kRanks - 1) % kRanks,
             comm_[rank], stream_[rank]);
  }
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  EXPECT_THAT(Received(0, 2), ElementsAre(30, 31));
  EXPECT_THAT(Received(1, 2), ElementsAre(0, 1));
}

TEST_P(NcclTest, FactorsComeBeforeTheSum) {
  ncclRedOp_t ops[kRanks];
  for (int rank = 0; rank < kRanks; ++rank) {
    float factor = 0.25f;
    ASSERT_EQ(ncclRedOpCreatePreMulSum(&ops[rank], &factor, ncclFloat32,
                                       ncclScalarHostImmediate, comm_[rank]),
              ncclSuccess);
  }
  ASSERT_EQ(InGroup([&](int rank) { return AllReduce(rank, ops[rank]); }), 0);
  EXPECT_THAT(Received(0, 3), ElementsAre(15, 16, 17));
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(ncclRedOpDestroy(ops[rank], comm_[rank]), ncclSuccess);
  }
  EXPECT_EQ(AllReduce(0, ops[0]), ncclInvalidArgument);
}

// The ranks are threads, which wait for each other only on their streams.
TEST_P(NcclTest, RanksMayBeThreads) {
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([this, id, rank] {
      cudaSetDevice(rank);
      ncclComm_t comm = nullptr;
      ASSERT_EQ(ncclCommInitRank(&comm, kRanks, id, rank), ncclSuccess);
      int found = -1;
      EXPECT_EQ(ncclCommUserRank(comm, &found), ncclSuccess);
      EXPECT_EQ(found, rank);
      for (int step = 0; step < 20; ++step) {
        ASSERT_EQ(ncclAllReduce(from_[rank], to_[rank], kSize, ncclFloat32,
                                ncclSum, comm, stream_[rank]),
                  ncclSuccess);
        ASSERT_EQ(cudaStreamSynchronize(stream_[rank]), cudaSuccess);
      }
      EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_THAT(Received(rank, 3), ElementsAre(60, 64, 68));
  }
}

TEST_P(NcclTest, WorkOnAStreamWaitsForTheOperation) {
  ASSERT_EQ(InGroup([this](int rank) { return AllReduce(rank); }), 0);
  ASSERT_EQ(InGroup([this](int rank) {
              return ncclAllReduce(to_[rank], from_[rank], kSize, ncclFloat32,
                                   ncclSum, comm_[rank], stream_[rank]);
            }),
            0);
  EXPECT_THAT(Get(0, from_[0], 2), ElementsAre(240, 256));
}

TEST_P(NcclTest, ARankThatAbortsGoesOnAndTheOthersAreTold) {
  ASSERT_EQ(AllReduce(0), ncclSuccess);
  EXPECT_EQ(cudaStreamQuery(stream_[0]), cudaErrorNotReady);
  ncclResult_t error = ncclInternalError;
  ASSERT_EQ(ncclCommGetAsyncError(comm_[1], &error), ncclSuccess);
  EXPECT_EQ(error, ncclSuccess);
  ASSERT_EQ(ncclCommAbort(comm_[0]), ncclSuccess);
  comm_[0] = nullptr;
  EXPECT_EQ(cudaStreamSynchronize(stream_[0]), cudaSuccess);
  ASSERT_EQ(ncclCommGetAsyncError(comm_[1], &error), ncclSuccess);
  EXPECT_EQ(error, ncclRemoteError);
}

TEST_P(NcclTest, WrongArgumentsAreRefused) {
  EXPECT_EQ(AllReduce(0, ncclNumOps), ncclInvalidArgument);
  EXPECT_EQ(AllReduce(0, ncclSum, kSize + 1), ncclInvalidArgument);
  EXPECT_EQ(ncclAllReduce(from_[1], to_[0], kSize, ncclFloat32, ncclSum,
                          comm_[0], stream_[0]),
            ncclInvalidArgument)
      << "memory of another device";
  EXPECT_EQ(ncclAllReduce(from_[0], to_[0], kSize, ncclFloat32, ncclSum,
                          comm_[0], stream_[1]),
            ncclUnhandledCudaError);
  EXPECT_EQ(ncclBroadcast(from_[0], to_[0], kSize, ncclFloat32, kRanks,
                          comm_[0], stream_[0]),
            ncclInvalidArgument);
  EXPECT_EQ(
      ncclSend(from_[0], kSize, ncclFloat32, kRanks, comm_[0], stream_[0]),
      ncclInvalidArgument);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  const int twice[] = {1, 1};
  ncclComm_t comms[2];
  EXPECT_EQ(ncclCommInitAll(comms, 2, twice), ncclInvalidUsage);
  // One call that fails fails its group, which does nothing.
  EXPECT_EQ(InGroup([this](int rank) {
              return AllReduce(rank, rank == 3 ? ncclNumOps : ncclSum);
            }),
            ncclInvalidArgument);
  EXPECT_EQ(cudaStreamSynchronize(stream_[0]), cudaSuccess);
}

TEST_P(NcclTest, FaultsComeWhereTheyAreWanted) {
  cuda_on_host::SetFaults("ncclAllReduce=2@2");
  EXPECT_EQ(InGroup([this](int rank) { return AllReduce(rank); }),
            ncclSystemError);
  cuda_on_host::SetFaults("");
  EXPECT_EQ(InGroup([this](int rank) { return AllReduce(rank); }), ncclSuccess);
}

INSTANTIATE_TEST_SUITE_P(Schedules, NcclTest,
                         ::testing::Values(Late::kNothing, Late::kCompute,
                                           Late::kRandom));

using NcclDeathTest = NcclTest;

TEST_P(NcclDeathTest, OneThreadNeedsAGroupForSeveralRanks) {
  EXPECT_DEATH(
      {
        AllReduce(0);
        AllReduce(1);
      },
      "without ncclGroupStart");
}

TEST_P(NcclDeathTest, RanksMustMeetInOneOperation) {
  EXPECT_DEATH(InGroup([this](int rank) {
                 return AllReduce(rank, ncclSum, rank == 2 ? 3 : 4);
               }),
               "meet in different operations");
}

TEST_P(NcclDeathTest, SumsOfFreedMemoryAreFound) {
  // After a fork ThreadSanitizer allows no new threads.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        std::thread first([this] { AllReduce(0); });
        first.join();
        cudaFree(from_[0]);
        std::vector<std::thread> others;
        for (int rank = 1; rank < kRanks; ++rank) {
          others.emplace_back([this, rank] { AllReduce(rank); });
        }
        for (std::thread& other : others) other.join();
      },
      "names memory that was freed");
}

INSTANTIATE_TEST_SUITE_P(Schedules, NcclDeathTest,
                         ::testing::Values(Late::kNothing));

TEST(NcclLibraryTest, IsOpenedAsTheOthersAre) {
  void* const library =
      cuda_on_host::dlopen("libnccl.so.2", cuda_on_host::RTLD_NOW);
  ASSERT_NE(library, nullptr);
  const auto version = reinterpret_cast<decltype(&ncclGetVersion)>(
      cuda_on_host::dlsym(library, "ncclGetVersion"));
  ASSERT_NE(version, nullptr);
  int found = 0;
  EXPECT_EQ(version(&found), ncclSuccess);
  EXPECT_EQ(found, NCCL_VERSION_CODE);
}

}  // namespace
