// The stand-in's NCCL between processes: ranks that do not block.

#include <cuda_on_host.h>
#include <cuda_runtime.h>
#include <nccl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/cuda_on_host/settings.h"

namespace {

using ::cuda_on_host::Late;

constexpr int kSize = 1000;
constexpr int kLooks = 60'000;  // of 1 ms

// Looks until `condition` holds. False: it never did.
bool Await(const std::function<bool()>& condition) {
  for (int look = 0; look < kLooks; ++look) {
    if (condition()) return true;
    usleep(1000);
  }
  return false;
}

// One process's rank, with an array in which each element is 1 + rank.
class Rank {
 public:
  Rank(const ncclUniqueId& id, int ranks, int rank) {
    void* memory = nullptr;
    cudaHostAlloc(&memory, kSize * sizeof(float), 0);
    host_ = static_cast<float*>(memory);
    cudaMalloc(&memory, kSize * sizeof(float));
    array_ = static_cast<float*>(memory);
    cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
    for (int i = 0; i < kSize; ++i) host_[i] = 1 + rank;
    cudaMemcpyAsync(array_, host_, kSize * sizeof(float), cudaMemcpyDefault,
                    stream_);
    ncclConfig_t config = {.size = sizeof(ncclConfig_t),
                           .magic = kNcclConfigMagic,
                           .version = 21400,
                           .blocking = 0};
    begun_ = ncclCommInitRankConfig(&comm_, ranks, id, rank, &config);
  }

  ncclResult_t begun() const { return begun_; }
  ncclResult_t AsyncError() {
    ncclResult_t error = ncclInternalError;
    EXPECT_EQ(ncclCommGetAsyncError(comm_, &error), ncclSuccess);
    return error;
  }
  bool AwaitUnderWay() {
    return Await([this] { return AsyncError() != ncclInProgress; }) &&
           AsyncError() == ncclSuccess;
  }
  bool BeginAllReduce() {
    const ncclResult_t result = ncclAllReduce(
        array_, array_, kSize, ncclFloat32, ncclSum, comm_, stream_);
    return (result == ncclSuccess || result == ncclInProgress) &&
           AwaitUnderWay();
  }
  bool IsDone() { return cudaStreamQuery(stream_) == cudaSuccess; }
  ncclResult_t Abort() { return ncclCommAbort(comm_); }
  // Returns the value of all elements; 0 if they differ.
  float Value() {
    cudaMemcpyAsync(host_, array_, kSize * sizeof(float), cudaMemcpyDefault,
                    stream_);
    if (cudaStreamSynchronize(stream_) != cudaSuccess) return 0;
    for (int i = 0; i < kSize; ++i) {
      if (host_[i] != host_[0]) return 0;
    }
    return host_[0];
  }

 private:
  float* host_ = nullptr;
  float* array_ = nullptr;
  cudaStream_t stream_ = nullptr;
  ncclComm_t comm_ = nullptr;
  ncclResult_t begun_ = ncclInternalError;
};

class RemoteRanksTest : public ::testing::TestWithParam<Late> {
 protected:
  void TearDown() override {
    for (const Child& child : children_) {
      kill(child.process, SIGKILL);
      waitpid(child.process, nullptr, 0);
    }
  }

  // Calls run(id) in a process of its own, which stays: a rank that leaves ends
  // what others have not seen. The id comes when Meet() has made it: a process
  // with threads can't be copied.
  void StartProcess(const std::function<bool(const ncclUniqueId& id)>& run) {
    int id_ends[2], result_ends[2];
    ASSERT_EQ(pipe(id_ends), 0);
    ASSERT_EQ(pipe(result_ends), 0);
    const pid_t process = fork();
    ASSERT_GE(process, 0);
    if (process == 0) {
      cuda_on_host::SetSchedule({.seed = 2, .late = GetParam()});
      ncclUniqueId id;
      const bool has_id = read(id_ends[0], &id, sizeof(id)) == sizeof(id);
      const bool result = has_id && run(id);
      (void)!write(result_ends[1], &result, sizeof(result));
      while (true) pause();
    }
    close(id_ends[0]);
    close(result_ends[1]);
    children_.push_back({process, id_ends[1], result_ends[0]});
  }
  ncclUniqueId Meet() {
    cuda_on_host::SetSchedule({.seed = 1, .late = GetParam()});
    ncclUniqueId id;
    EXPECT_EQ(ncclGetUniqueId(&id), ncclSuccess);
    for (const Child& child : children_) {
      EXPECT_EQ(write(child.id, &id, sizeof(id)), ssize_t{sizeof(id)});
      close(child.id);
    }
    return id;
  }
  // Returns what run() has in the child; false if it was killed before.
  bool ResultOf(size_t child) {
    bool result = false;
    return read(children_[child].result, &result, sizeof(result)) ==
               sizeof(result) &&
           result;
  }

 private:
  struct Child {
    pid_t process;
    int id, result;  // ends of pipes
  };
  std::vector<Child> children_;
};

INSTANTIATE_TEST_SUITE_P(Schedules, RemoteRanksTest,
                         ::testing::Values(Late::kNothing, Late::kCompute,
                                           Late::kRandom));

TEST_P(RemoteRanksTest, EachHasTheSumOfAllProcesses) {
  constexpr int kRanks = 3;
  constexpr int kSteps = 5;
  const auto run = [](const ncclUniqueId& id, int number) {
    Rank rank(id, kRanks, number);
    if (rank.begun() != ncclInProgress || !rank.AwaitUnderWay()) return false;
    float want = 6;  // 1 + 2 + 3
    for (int step = 0; step < kSteps; ++step, want *= kRanks) {
      if (!rank.BeginAllReduce()) return false;
      if (!Await([&] { return rank.IsDone(); })) return false;
      if (rank.Value() != want) return false;
    }
    return true;
  };
  StartProcess([run](const ncclUniqueId& id) { return run(id, 1); });
  StartProcess([run](const ncclUniqueId& id) { return run(id, 2); });
  EXPECT_TRUE(run(Meet(), 0));
  EXPECT_TRUE(ResultOf(0));
  EXPECT_TRUE(ResultOf(1));
}

TEST_P(RemoteRanksTest, ARankThatIsKilledIsWaitedForUntilTheOthersAbort) {
  StartProcess([](const ncclUniqueId& id) {
    Rank rank(id, 2, 1);
    if (!rank.AwaitUnderWay()) return false;
    raise(SIGKILL);
    return false;
  });
  const ncclUniqueId id = Meet();
  Rank rank(id, 2, 0);
  ASSERT_TRUE(rank.AwaitUnderWay());
  EXPECT_FALSE(ResultOf(0));
  // It may or may not have been told before it begins.
  const bool has_begun = rank.BeginAllReduce();
  for (int look = 0; has_begun && look < 200; ++look) {
    EXPECT_FALSE(rank.IsDone());
    usleep(1000);
  }
  EXPECT_EQ(rank.Abort(), ncclSuccess);
  EXPECT_TRUE(rank.IsDone() || Await([&] { return rank.IsDone(); }));
}

TEST_P(RemoteRanksTest, ARankIsInProgressUntilAllHaveCome) {
  const ncclUniqueId id = Meet();
  Rank rank(id, 2, 0);
  EXPECT_EQ(rank.begun(), ncclInProgress);
  for (int look = 0; look < 50; ++look) {
    EXPECT_EQ(rank.AsyncError(), ncclInProgress);
    usleep(1000);
  }
  EXPECT_FALSE(rank.BeginAllReduce());
  Rank other(id, 2, 1);
  EXPECT_TRUE(rank.AwaitUnderWay());
  EXPECT_TRUE(other.AwaitUnderWay());
  EXPECT_EQ(rank.Abort(), ncclSuccess);
  EXPECT_EQ(other.Abort(), ncclSuccess);
}

}  // namespace
