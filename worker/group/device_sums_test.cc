// Workers that train with each other as threads, whose gradients NCCL adds
// between devices that third_party/cuda_on_host plays: the real parameters over
// groups in memory, and a chief that names groups by hand. Only with
// --config=cuda_host.

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status_matchers.h"
#include "cluster/collective/testing/memory_network.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/cuda_on_host/counts.h"
#include "third_party/cuda_on_host/settings.h"
#include "worker/group/testing/device_worker.h"

namespace parasol {
namespace {

using group_testing::Assignments;
using group_testing::DeviceWorker;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr int64_t kSteps = 6;

// Longest time that a test waits for what must come.
constexpr absl::Duration kLimit = absl::Seconds(10);

bool Await(const std::function<bool()>& condition) {
  const absl::Time start = Clock::Real().Now();
  while (!condition()) {
    if (Clock::Real().Now() - start > kLimit) return false;
    Clock::Real().Pause(absl::Milliseconds(1));
  }
  return true;
}

// Returns the number of packs that the rank on a device has brought to sums.
int64_t PacksOf(int device) {
  const std::string work = cuda_on_host::WorkOf(device);
  return std::count(work.begin(), work.end(), 's');
}

using Arrays = std::vector<std::vector<float>>;

// Returns values, slots, rows, and numbers of updates.
Arrays ArraysOf(GroupState& state) {
  Arrays arrays;
  EXPECT_OK(state.Read([&](ParameterStore& parameters) {
    StoredVariables& variables = parameters.variables();
    for (size_t i = 0; i < parameters.num_variables(); ++i) {
      for (int array = 0; array < variables.num_arrays(i); ++array) {
        const absl::Span<const float> read = *variables.Read(i, array);
        arrays.emplace_back(read.begin(), read.end());
      }
    }
    const absl::Span<const int64_t> updates = variables.updates();
    arrays.emplace_back(updates.begin(), updates.end());
    return absl::OkStatus();
  }));
  if (state.num_tables() == 0) return arrays;
  const group_testing::Contents contents = group_testing::ContentsOf(state);
  arrays.push_back(contents.rows);
  arrays.push_back({contents.updates.begin(), contents.updates.end()});
  return arrays;
}

class CudaDeviceSumsTest : public testing::Test {
 protected:
  ~CudaDeviceSumsTest() override {
    workers_.clear();
    cuda_on_host::SetFaults("");
    cuda_on_host::SetSchedule(schedule_);
  }

  DeviceWorker& Add(int index) {
    std::vector<std::string> devices;
    for (int i = 0; i < devices_; ++i) {
      devices.push_back(absl::StrCat("cuda:", index * devices_ + i));
    }
    workers_[index] =
        std::make_unique<DeviceWorker>(index, replicas_, kSteps, devices, job_,
                                       assignments_, network_, has_variables_);
    return *workers_[index];
  }
  void AddAll(const std::map<int, std::vector<int>>& shares) {
    assignments_.Assign(shares);
    for (const auto& [index, replicas] : shares) Add(index);
    group_testing::Initialize(workers_[0]->state());
  }
  void TrainAll() {
    for (auto& [index, worker] : workers_) worker->Start();
    for (auto& [index, worker] : workers_) worker->AwaitEnd();
  }

  // Trains with these shares while CUDA or NCCL has the fault, which is to end
  // a group.
  void TrainThrough(const std::string& fault,
                    const std::map<int, std::vector<int>>& shares) {
    AddAll(shares);
    const int64_t first = assignments_.version();
    cuda_on_host::SetFaults(fault);
    TrainAll();
    cuda_on_host::SetFaults("");
    EXPECT_GT(assignments_.version(), first) << "the fault ended no group";
  }

  // Returns what one worker alone ends with.
  Arrays Alone(const std::vector<std::string>& devices) const {
    Assignments assignments;
    MemoryNetwork network;
    std::vector<int> all;
    for (int replica = 0; replica < replicas_; ++replica) {
      all.push_back(replica);
    }
    assignments.Assign({{0, all}});
    DeviceWorker alone(0, replicas_, kSteps, devices, job_, assignments,
                       network);
    group_testing::Initialize(alone.state());
    alone.Start();
    alone.AwaitEnd();
    EXPECT_EQ(alone.state().version().step, kSteps);
    return ArraysOf(alone.state());
  }

  void ExpectAllNear(const Arrays& want) {
    for (auto& [index, worker] : workers_) {
      EXPECT_EQ(worker->state().version().step, kSteps) << index;
      const Arrays got = ArraysOf(worker->state());
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_THAT(got[i], Pointwise(FloatNear(1e-5), want[i])) << index;
      }
    }
  }

  // Fails the test unless all workers have the bits of `want`.
  void ExpectAllAre(const Arrays& want) {
    for (auto& [index, worker] : workers_) {
      EXPECT_EQ(worker->state().version().step, kSteps) << index;
      EXPECT_EQ(ArraysOf(worker->state()), want) << index;
    }
  }

  const cuda_on_host::Schedule schedule_ = cuda_on_host::TheSchedule();
  int replicas_ = 3;
  int devices_ = 1;             // of each worker
  bool has_variables_ = false;  // each worker's device
  job::Job job_ = DeviceWorker::JobWithoutTable();
  MemoryNetwork network_;
  Assignments assignments_;
  std::map<int, std::unique_ptr<DeviceWorker>> workers_;
};

TEST_F(CudaDeviceSumsTest, AWorkerAloneHasTheBitsOfTheHost) {
  EXPECT_EQ(Alone({"cuda:0"}), Alone({}));
}

TEST_F(CudaDeviceSumsTest, AnyNumberOfWorkersEndsNearTheSumsOfTheHost) {
  const Arrays want = Alone({});
  const std::vector<std::map<int, std::vector<int>>> assignments = {
      {{0, {0}}, {1, {1, 2}}},
      {{0, {1}}, {1, {0, 2}}},
      {{0, {0}}, {1, {1}}, {2, {2}}},
      {{0, {}}, {1, {1}}, {2, {0}}, {3, {2}}}};
  for (const auto& shares : assignments) {
    AddAll(shares);
    TrainAll();
    ExpectAllNear(want);
    workers_.clear();
  }
}

// Replicas change the device in each step, and some devices have none.
TEST_F(CudaDeviceSumsTest, SeveralDevicesInEachWorkerEndNearTheSumsOfTheHost) {
  const Arrays want = Alone({});
  devices_ = 2;
  const std::vector<std::map<int, std::vector<int>>> assignments = {
      {{0, {0, 1, 2}}}, {{0, {0, 1}}, {1, {2}}}, {{0, {}}, {1, {0, 1, 2}}}};
  for (const auto& shares : assignments) {
    AddAll(shares);
    TrainAll();
    ExpectAllNear(want);
    workers_.clear();
  }
}

TEST_F(CudaDeviceSumsTest, OthersGoOnWithTheReplicasOfSeveralDevices) {
  const Arrays want = Alone({});
  devices_ = 2;
  AddAll({{0, {0}}, {1, {1, 2}}});
  workers_[1]->EndBefore(3);
  for (auto& [index, worker] : workers_) worker->Start();
  workers_[1]->Stop();
  workers_.erase(1);
  assignments_.Assign({{0, {0, 1, 2}}});
  for (auto& [index, worker] : workers_) worker->AwaitEnd();
  ExpectAllNear(want);
}

// One rank of a worker fails, and ends the calls of its others.
TEST_F(CudaDeviceSumsTest, AFailureOfOneOfItsDevicesEndsTheGroupOfAll) {
  const Arrays want = Alone({});
  devices_ = 2;
  for (const std::string fault :
       {"ncclAllReduce=2@7", "ncclCommInitRankConfig=5@3"}) {
    SCOPED_TRACE(fault);
    TrainThrough(fault, {{0, {0, 1}}, {1, {2}}});
    ExpectAllNear(want);
    workers_.clear();
  }
}

// The others have all that they need but its gradients when it goes.
TEST_F(CudaDeviceSumsTest, OthersGoOnWithTheReplicasOfOneThatHasLeft) {
  const Arrays want = Alone({});
  AddAll({{0, {0}}, {1, {1}}, {2, {2}}});
  workers_[1]->EndBefore(3);
  for (auto& [index, worker] : workers_) worker->Start();
  workers_[1]->Stop();
  workers_.erase(1);
  assignments_.Assign({{0, {0, 1}}, {2, {2}}});
  for (auto& [index, worker] : workers_) worker->AwaitEnd();
  ExpectAllNear(want);
}

// A rank whose NCCL fails ends the sum of the others, who wait for it in NCCL
// and are told nothing there.
TEST_F(CudaDeviceSumsTest, AFailureOfNcclEndsTheGroupAndTheNextOneGoesOn) {
  const Arrays want = Alone({});
  for (const std::string fault :
       {"ncclAllReduce=2@5", "ncclCommInitRankConfig=5@2",
        "ncclGetUniqueId=2@1", "ncclCommGetAsyncError=3@20"}) {
    SCOPED_TRACE(fault);
    TrainThrough(fault, {{0, {0}}, {1, {1}}, {2, {2}}});
    ExpectAllNear(want);
    workers_.clear();
  }
}

// A pass ends with its push, which waits here until the packs have left. Late
// work would be done only when somebody waits for it.
TEST_F(CudaDeviceSumsTest, PacksLeaveBeforeThePassHasEnded) {
  constexpr int64_t kPacks = 2;
  cuda_on_host::SetSchedule({});
  replicas_ = 2;
  const Arrays want = Alone({});
  AddAll({{0, {0}}, {1, {1}}});
  cuda_on_host::NoteWork();
  for (auto& [index, worker] : workers_) {
    worker->BeforePushes([index = index](int64_t step) {
      EXPECT_TRUE(Await([&] { return PacksOf(index) >= kPacks * (step + 1); }))
          << "worker " << index << ", step " << step;
    });
  }
  TrainAll();
  EXPECT_EQ(PacksOf(0), kPacks * kSteps);
  ExpectAllAre(want);
}

// With several replicas on a device packs leave with the last pass.
TEST_F(CudaDeviceSumsTest, PacksOfSeveralReplicasLeaveWithTheLastPass) {
  constexpr int64_t kPacks = 2;
  cuda_on_host::SetSchedule({});
  const Arrays want = Alone({});
  AddAll({{0, {0, 1}}, {1, {2}}});
  cuda_on_host::NoteWork();
  std::map<int64_t, int> passes;
  workers_[0]->BeforePushes([&](int64_t step) {
    if (++passes[step] == 1) {
      EXPECT_EQ(PacksOf(0), kPacks * step) << "a replica is missing";
    } else {
      EXPECT_TRUE(Await([&] { return PacksOf(0) >= kPacks * (step + 1); }));
    }
  });
  TrainAll();
  EXPECT_EQ(passes.size(), kSteps);
  ExpectAllNear(want);
}

// Worker 1 ends where `prepare` has it call the function that it is given, and
// worker 0 goes on with both replicas.
class EndingWorkerTest : public CudaDeviceSumsTest {
 protected:
  using End = std::function<void(int64_t step)>;

  void TrainThroughAnEnd(const std::function<void(const End&)>& prepare) {
    replicas_ = 2;
    const Arrays want = Alone({});
    for (int round = 0; round < 6; ++round) {
      SCOPED_TRACE(round);
      AddAll({{0, {0}}, {1, {1}}});
      const int64_t first = assignments_.version();
      prepare([this, first](int64_t step) {
        workers_[1]->EndBefore(step);
        workers_[1]->parameters().Stop();
        EXPECT_TRUE(Await([&] { return assignments_.version() > first; }));
      });
      for (auto& [index, worker] : workers_) worker->Start();
      workers_[1]->AwaitEnd();
      workers_.erase(1);
      assignments_.Assign({{0, {0, 1}}});
      workers_[0]->AwaitEnd();
      ExpectAllAre(want);
      workers_.clear();
    }
  }
};

// Its packs are under way when it ends, and the other one waits for no
// operation of the group: it is told. NCCL tells it as well, by chance.
TEST_F(EndingWorkerTest, BetweenPassAndPushItTellsTheOthers) {
  TrainThroughAnEnd([this](const End& end) {
    workers_[1]->BeforePushes([end](int64_t step) {
      if (step >= 3) end(step);
    });
  });
}

// The other one's packs are under way.
TEST_F(EndingWorkerTest, BeforeItsPassItTellsTheOthers) {
  std::atomic<int64_t> begun = -1;
  TrainThroughAnEnd([this, &begun](const End& end) {
    begun = -1;
    workers_[0]->BeforePushes([&begun](int64_t step) { begun = step; });
    workers_[1]->BeforePasses([&begun, end](int64_t step) {
      if (step < 3) return;
      EXPECT_TRUE(Await([&] { return begun >= step; }));
      end(step);
    });
  });
}

// Calls of three ranks with two packs each: a rank fails at its first pack, or
// between two.
TEST_F(CudaDeviceSumsTest, AFailureAtAnyPackEndsTheGroupAndTheNextOneGoesOn) {
  const Arrays want = Alone({});
  for (int call = 7; call <= 12; ++call) {
    SCOPED_TRACE(call);
    TrainThrough(absl::StrCat("ncclAllReduce=2@", call),
                 {{0, {0}}, {1, {1}}, {2, {2}}});
    ExpectAllNear(want);
    workers_.clear();
  }
}

// The device makes the updates, too.
class CudaDeviceUpdatesTest : public CudaDeviceSumsTest {
 protected:
  CudaDeviceUpdatesTest() { has_variables_ = true; }
};

TEST_F(CudaDeviceUpdatesTest, AWorkerAloneHasTheBitsOfTheHost) {
  const Arrays want = Alone({});
  AddAll({{0, {0, 1, 2}}});
  TrainAll();
  ExpectAllAre(want);
}

TEST_F(CudaDeviceUpdatesTest, TwoWorkersHaveTheBitsOfTheHostAlsoAfterAFailure) {
  replicas_ = 2;
  const Arrays want = Alone({});
  AddAll({{0, {0}}, {1, {1}}});
  TrainAll();
  ExpectAllAre(want);
  workers_.clear();
  for (int call = 5; call <= 8; ++call) {
    SCOPED_TRACE(call);
    TrainThrough(absl::StrCat("ncclAllReduce=2@", call), {{0, {0}}, {1, {1}}});
    ExpectAllAre(want);
    workers_.clear();
  }
}

TEST_F(CudaDeviceUpdatesTest, AnyNumberOfWorkersEndsNearTheSumsOfTheHost) {
  const Arrays want = Alone({});
  const std::vector<std::map<int, std::vector<int>>> assignments = {
      {{0, {0}}, {1, {1, 2}}},
      {{0, {0}}, {1, {1}}, {2, {2}}},
      {{0, {}}, {1, {1}}, {2, {0}}, {3, {2}}}};
  for (const auto& shares : assignments) {
    AddAll(shares);
    TrainAll();
    ExpectAllNear(want);
    workers_.clear();
  }
}

// The one that comes takes the variables from the other one's device to its
// own.
TEST_F(CudaDeviceUpdatesTest, AWorkerMayLeaveAndAnotherOneComeLater) {
  replicas_ = 2;
  const Arrays want = Alone({});
  AddAll({{0, {0}}, {1, {1}}});
  workers_[1]->EndBefore(2);
  for (auto& [index, worker] : workers_) worker->Start();
  workers_[1]->Stop();
  workers_.erase(1);
  workers_[0]->EndBefore(4);
  assignments_.Assign({{0, {0, 1}}});
  workers_[0]->AwaitEnd();
  EXPECT_EQ(workers_[0]->state().version().step, 4);
  assignments_.Assign({{0, {0}}, {1, {1}}});
  workers_[0]->EndBefore(kSteps);
  Add(1);
  TrainAll();
  ExpectAllAre(want);
}

TEST_F(CudaDeviceUpdatesTest,
       AGradientThatIsNotFiniteIsNamedAndChangesNothing) {
  AddAll({{0, {0}}, {1, {1}}, {2, {2}}});
  workers_[0]->NansAt(3);
  TrainAll();
  for (auto& [index, worker] : workers_) {
    EXPECT_THAT(worker->state().steps().ended(),
                StatusIs(absl::StatusCode::kOutOfRange,
                         HasSubstr("in step 3 is not finite at element 0")))
        << index;
    EXPECT_EQ(worker->state().version().step, 3);
  }
}

// With two replicas NCCL adds in the order of the host.
class CudaDeviceSumsWithTableTest : public CudaDeviceSumsTest {
 protected:
  CudaDeviceSumsWithTableTest() {
    replicas_ = 2;
    job_ = group_testing::MakeJob();
  }
};

TEST_F(CudaDeviceSumsWithTableTest, TwoWorkersHaveTheBitsOfTheHost) {
  const Arrays want = Alone({});
  AddAll({{0, {0}}, {1, {1}}});
  TrainAll();
  ExpectAllAre(want);
}

// A step of which some ranks have the rows and none the sums is made once.
TEST_F(CudaDeviceSumsWithTableTest, AFailureOfNcclChangesNoBits) {
  const Arrays want = Alone({});
  for (const std::string fault :
       {"ncclAllReduce=2@1", "ncclAllReduce=2@5", "ncclCommInitRankConfig=5@2",
        "ncclCommGetAsyncError=3@20"}) {
    SCOPED_TRACE(fault);
    TrainThrough(fault, {{0, {0}}, {1, {1}}});
    ExpectAllAre(want);
    workers_.clear();
  }
}

// The one that is left adds both replicas, in ascending order.
TEST_F(CudaDeviceSumsWithTableTest, AWorkerThatLeavesChangesNoBits) {
  const Arrays want = Alone({});
  AddAll({{0, {0}}, {1, {1}}});
  workers_[1]->EndBefore(3);
  for (auto& [index, worker] : workers_) worker->Start();
  workers_[1]->Stop();
  workers_.erase(1);
  assignments_.Assign({{0, {0, 1}}});
  for (auto& [index, worker] : workers_) worker->AwaitEnd();
  ExpectAllAre(want);
}

TEST_F(CudaDeviceSumsWithTableTest, SeveralDevicesInEachWorkerEndNearTheHost) {
  replicas_ = 3;
  devices_ = 2;
  const Arrays want = Alone({});
  const std::vector<std::map<int, std::vector<int>>> assignments = {
      {{0, {0, 1, 2}}}, {{0, {0, 1}}, {1, {2}}}, {{0, {}}, {1, {0, 1, 2}}}};
  for (const auto& shares : assignments) {
    AddAll(shares);
    TrainAll();
    ExpectAllNear(want);
    workers_.clear();
  }
}

}  // namespace
}  // namespace parasol
