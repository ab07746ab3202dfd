// What every implementation of Collective promises.

#include "cluster/collective/collective.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/barrier.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "base/log.h"
#include "base/status_matchers.h"
#include "cluster/collective/socket_endpoint.h"
#include "cluster/collective/testing/collective_fixture.h"
#include "cluster/collective/testing/memory_network.h"
#include "cluster/trust/testing/certificate_directory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::AnyOf;
using ::testing::Each;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// An implementation, by name, with what its endpoints need.
struct Implementation {
  std::string name;
  std::function<CollectiveFixture::MakeEndpoint()> make;
};

CollectiveFixture::MakeEndpoint InMemory() {
  auto network = std::make_shared<MemoryNetwork>();
  auto count = std::make_shared<int>(0);
  return [network, count](std::string* address) {
    *address = absl::StrCat("memory:", ++*count);
    return network->MakeEndpoint(*address);
  };
}

// Endpoints whose sums travel on connections, by `algorithm`, in small chunks.
// So many neighbours have an address of one host.
CollectiveFixture::MakeEndpoint OverSockets(
    std::optional<ReductionAlgorithm> algorithm, bool shared_memory = false,
    int ranks_of_a_host = 1000, bool piece_lanes = false,
    bool is_encrypted = false) {
  SocketEndpoint::Options options;
  if (is_encrypted) {
    const CertificateDirectory directory("ranks", "authority");
    directory.Issue("mnist/worker/0");
    options.certificates = directory.files();
  }
  options.shared_memory = shared_memory;
  options.piece_lanes = piece_lanes;
  options.protocol.algorithm = algorithm;
  // A busy machine is no lost rank.
  options.protocol.silence = absl::Seconds(60);
  if (algorithm.has_value()) options.protocol.chunk_bytes = 4096;
  // With several pieces of a ring's bytes, and some that are too small.
  if (piece_lanes) options.protocol.chunk_bytes = 100'000;
  auto count = std::make_shared<int>(0);
  return [options, count, ranks_of_a_host](std::string* address) {
    const std::string host =
        absl::StrCat("127.0.0.", 1 + (*count)++ / ranks_of_a_host);
    auto endpoint = SocketEndpoint::Start(host, 0, options);
    CHECK(endpoint.ok()) << endpoint.status();
    *address = absl::StrCat(host, ":", (*endpoint)->port());
    return *std::move(endpoint);
  };
}

class CollectiveTest : public testing::TestWithParam<Implementation> {
 protected:
  CollectiveFixture Fixture(size_t ranks) {
    return CollectiveFixture(GetParam().make(), ranks);
  }
};

// A rank's contributions to a pack, and the memory for its sum.
struct Pack {
  Pack(const Layout& layout, int rank, int number, size_t count)
      : sum(count, -1) {
    for (const int replica : layout[rank]) {
      values.push_back(ContributionOf(replica, number, count));
    }
    for (size_t i = 0; i < values.size(); ++i) {
      contributions.push_back({layout[rank][i], values[i]});
    }
  }

  std::vector<std::vector<float>> values;
  std::vector<Contribution> contributions;
  std::vector<float> sum;
};

void ExpectOk(const absl::Status& status) { EXPECT_OK(status); }

const size_t kCounts[] = {0, 1, 2, 7, 255, 256, 257, 4095, 4097, 20001};

TEST_P(CollectiveTest, AllReduceIsTheSerialSumBitForBit) {
  CollectiveFixture fixture = Fixture(8);
  for (const Layout& layout : TestLayouts(8)) {
    std::vector<std::vector<float>> want;
    for (const size_t count : kCounts) {
      want.push_back(SerialSum(layout, static_cast<int>(want.size()), count));
    }
    fixture.Run(layout, [&](Collective& collective, int rank) {
      std::vector<std::unique_ptr<Pack>> packs;
      for (const size_t count : kCounts) {
        packs.push_back(
            std::make_unique<Pack>(layout, rank, packs.size(), count));
        Pack& pack = *packs.back();
        collective.AllReduce(pack.contributions, absl::MakeSpan(pack.sum),
                             ExpectOk);
      }
      EXPECT_OK(collective.Await());
      for (size_t i = 0; i < packs.size(); ++i) {
        EXPECT_TRUE(HasBits(packs[i]->sum, want[i]))
            << layout.size() << " ranks, " << kCounts[i] << " elements";
      }
    });
  }
}

TEST_P(CollectiveTest, ALargePackIsTheSerialSum) {
  CollectiveFixture fixture = Fixture(4);
  constexpr size_t kCount = 700001;
  for (const Layout& layout :
       {Layout{{0}, {1}}, Layout{{1}, {0}}, Layout{{0, 3}, {1, 2}},
        Layout{{0}, {1}, {2}, {3}}, Layout{{0, 1}, {2, 3}, {}, {4}}}) {
    fixture.Run(layout, [&](Collective& collective, int rank) {
      Pack pack(layout, rank, 0, kCount);
      collective.AllReduce(pack.contributions, absl::MakeSpan(pack.sum),
                           ExpectOk);
      EXPECT_OK(collective.Await());
      EXPECT_TRUE(HasBits(pack.sum, SerialSum(layout, 0, kCount)));
    });
  }
}

TEST_P(CollectiveTest, TheSumMayTakeTheMemoryOfAContribution) {
  CollectiveFixture fixture = Fixture(3);
  const Layout layout = {{0, 3}, {1, 4}, {2, 5}};
  for (const size_t count : {1, 1000, 300007}) {
    for (const size_t in_place : {0, 1}) {
      fixture.Run(layout, [&](Collective& collective, int rank) {
        Pack pack(layout, rank, 0, count);
        const absl::Span<float> sum = absl::MakeSpan(pack.values[in_place]);
        collective.AllReduce(pack.contributions, sum, ExpectOk);
        EXPECT_OK(collective.Await());
        EXPECT_TRUE(HasBits(sum, SerialSum(layout, 0, count)));
      });
    }
  }
}

TEST_P(CollectiveTest, ContributionsInAllocatedMemoryAreSummedToo) {
  CollectiveFixture fixture = Fixture(3);
  const Layout layout = {{2}, {0, 3}, {1}};
  for (const size_t count : {5, 70001}) {
    fixture.Run(layout, [&](Collective& collective, int rank) {
      std::vector<std::shared_ptr<float[]>> memory;
      std::vector<Contribution> contributions;
      for (const int replica : layout[rank]) {
        // Odd ranks bring ordinary memory beside the others' allocated one.
        memory.push_back(collective.AllocateContribution(count));
        const std::vector<float> values = ContributionOf(replica, 0, count);
        std::copy(values.begin(), values.end(), memory.back().get());
        contributions.push_back({replica, {memory.back().get(), count}});
      }
      std::vector<float> sum(count);
      collective.AllReduce(contributions, absl::MakeSpan(sum), ExpectOk);
      EXPECT_OK(collective.Await());
      EXPECT_TRUE(HasBits(sum, SerialSum(layout, 0, count)));
    });
  }
}

TEST_P(CollectiveTest, ReduceScatterGivesEachRankItsSlice) {
  CollectiveFixture fixture = Fixture(5);
  for (const Layout& layout : TestLayouts(5)) {
    fixture.Run(layout, [&](Collective& collective, int rank) {
      for (const size_t count : {0, 3, 1000, 30011}) {
        Pack pack(layout, rank, 0, count);
        const ElementRange range = SliceOf(count, layout.size(), rank);
        std::vector<float> slice(range.count, -1);
        collective.ReduceScatter(pack.contributions, count,
                                 absl::MakeSpan(slice), ExpectOk);
        EXPECT_OK(collective.Await());
        const std::vector<float> sum = SerialSum(layout, 0, count);
        EXPECT_TRUE(HasBits(
            slice, absl::MakeSpan(sum).subspan(range.first, range.count)));
      }
    });
  }
}

TEST_P(CollectiveTest, AllGatherBringsBytesOfDifferentLengths) {
  CollectiveFixture fixture = Fixture(6);
  for (size_t ranks = 1; ranks <= 6; ++ranks) {
    std::vector<std::string> want;
    for (size_t rank = 0; rank < ranks; ++rank) {
      want.push_back(std::string(rank * rank * 30000, 'a' + rank));
    }
    fixture.Run(Layout(ranks), [&](Collective& collective, int rank) {
      std::vector<std::string> gathered;
      collective.AllGather(want[rank], &gathered, ExpectOk);
      EXPECT_OK(collective.Await());
      EXPECT_THAT(gathered, ElementsAreArray(want));
    });
  }
}

// Broadcasts from rank 2, and expects the bytes where they belong.
void ExpectBroadcast(Collective& collective, int rank, size_t size,
                     const std::vector<int>& receivers) {
  const bool receives =
      receivers.empty() ||
      std::count(receivers.begin(), receivers.end(), rank) > 0;
  std::string bytes(rank == 2 || receives ? size : 0, rank == 2 ? 'x' : '-');
  collective.Broadcast(
      2, receivers,
      absl::MakeSpan(reinterpret_cast<std::byte*>(bytes.data()), bytes.size()),
      ExpectOk);
  EXPECT_OK(collective.Await());
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 'x'), bytes.size());
}

TEST_P(CollectiveTest, BroadcastReachesAllOrTheReceiversAlone) {
  CollectiveFixture fixture = Fixture(4);
  fixture.Run(Layout(4), [&](Collective& collective, int rank) {
    for (const size_t size : {0, 1, 5000, 900001}) {
      ExpectBroadcast(collective, rank, size, {});
      ExpectBroadcast(collective, rank, size, {3});
      ExpectBroadcast(collective, rank, size, {0, 1});
    }
  });
}

TEST_P(CollectiveTest, OperationsOfAllKindsAreInFlightTogether) {
  CollectiveFixture fixture = Fixture(3);
  const Layout layout = {{0}, {1}, {2}};
  fixture.Run(layout, [&](Collective& collective, int rank) {
    constexpr int kRounds = 40;
    std::vector<std::unique_ptr<Pack>> packs;
    std::vector<std::vector<std::string>> gathered(kRounds);
    for (int i = 0; i < kRounds; ++i) {
      packs.push_back(
          std::make_unique<Pack>(layout, rank, i, i % 3 == 0 ? 100000 : 50));
      collective.AllReduce(packs[i]->contributions,
                           absl::MakeSpan(packs[i]->sum), ExpectOk);
      collective.AllGather(absl::StrCat(rank, "/", i), &gathered[i], ExpectOk);
    }
    EXPECT_OK(collective.Await());
    for (int i = 0; i < kRounds; ++i) {
      EXPECT_TRUE(
          HasBits(packs[i]->sum, SerialSum(layout, i, packs[i]->sum.size())));
      EXPECT_EQ(gathered[i][2], absl::StrCat("2/", i));
    }
  });
}

TEST_P(CollectiveTest, OperationsCompleteWithoutAnybodyWhoAwaits) {
  CollectiveFixture fixture = Fixture(2);
  const Layout layout = {{0}, {1}};
  fixture.Run(layout, [&](Collective& collective, int rank) {
    for (const size_t count : {10, 500000}) {
      Pack pack(layout, rank, 0, count);
      absl::Notification done;
      collective.AllReduce(pack.contributions, absl::MakeSpan(pack.sum),
                           [&](const absl::Status& status) {
                             EXPECT_OK(status);
                             done.Notify();
                           });
      done.WaitForNotification();
      EXPECT_TRUE(HasBits(pack.sum, SerialSum(layout, 0, count)));
    }
  });
}

TEST_P(CollectiveTest, ACallbackMayBeginTheNextOperation) {
  CollectiveFixture fixture = Fixture(3);
  fixture.Run(Layout(3), [&](Collective& collective, int rank) {
    std::vector<std::string> first, second;
    absl::Notification done;
    collective.AllGather("a", &first, [&](const absl::Status& status) {
      EXPECT_OK(status);
      collective.AllGather("b", &second, [&](const absl::Status& then) {
        EXPECT_OK(then);
        done.Notify();
      });
    });
    done.WaitForNotification();
    EXPECT_THAT(second, Each("b"));
  });
}

TEST_P(CollectiveTest, AbortEndsPendingAndLaterOperationsEverywhere) {
  CollectiveFixture fixture = Fixture(3);
  const Layout layout = {{0}, {1}, {2}};
  fixture.Run(layout, [&](Collective& collective, int rank) {
    Pack pack(layout, rank, 0, 100000);
    const auto expect_aborted = [](const absl::Status& status) {
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss,
                                   HasSubstr("the loss is NaN")));
    };
    // All have joined when all have begun something.
    std::vector<std::string> there;
    collective.AllGather("a", &there, [](const absl::Status&) {});
    collective.Await().IgnoreError();
    if (rank == 1) {
      collective.Abort(absl::DataLossError("the loss is NaN"));
    } else {
      collective.AllReduce(pack.contributions, absl::MakeSpan(pack.sum),
                           expect_aborted);
    }
    expect_aborted(rank == 1 ? collective.status() : collective.Await());
    std::vector<std::string> gathered;
    collective.AllGather("a", &gathered, expect_aborted);
    expect_aborted(collective.Await());
  });
}

TEST_P(CollectiveTest, ARankThatLeavesIsNamedToThoseWhoNeedIt) {
  CollectiveFixture fixture = Fixture(3);
  const Layout layout = {{0}, {1}, {2}};
  // A rank that goes on and finds out ends the operations of the others.
  auto* const gathering = new absl::Barrier(3);
  fixture.Run(layout, [&](Collective& collective, int rank) {
    std::vector<std::string> gathered;
    collective.AllGather("a", &gathered, ExpectOk);
    EXPECT_OK(collective.Await());
    EXPECT_THAT(gathered, Each("a"));
    if (gathering->Block()) delete gathering;
    if (rank == 1) return;
    Pack pack(layout, rank, 0, 1000);
    collective.AllReduce(pack.contributions, absl::MakeSpan(pack.sum),
                         [](const absl::Status&) {});
    const absl::Status status = collective.Await();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                                 HasSubstr("rank 1 (")));
    EXPECT_EQ(LostRank(status), 1);
  });
}

TEST_P(CollectiveTest, TheRanksThatAreAwaitedAreKnown) {
  CollectiveFixture fixture = Fixture(3);
  const Layout layout = {{0}, {1}, {2}};
  absl::Notification seen;
  fixture.Run(layout, [&](Collective& collective, int rank) {
    Pack pack(layout, rank, 0, 100);
    EXPECT_THAT(collective.Awaited(), IsEmpty());
    if (rank == 2) seen.WaitForNotification();
    collective.AllReduce(pack.contributions, absl::MakeSpan(pack.sum),
                         ExpectOk);
    // Rank 1 may be late, too.
    while (rank == 0 && collective.Awaited() != std::vector<int>{2}) {
      std::this_thread::yield();
    }
    if (rank == 0) seen.Notify();
    EXPECT_OK(collective.Await());
    EXPECT_THAT(collective.Awaited(), IsEmpty());
  });
}

TEST_P(CollectiveTest, DifferentOperationsEndTheGroup) {
  CollectiveFixture fixture = Fixture(2);
  const Layout layout = {{0}, {1}};
  fixture.Run(layout, [&](Collective& collective, int rank) {
    Pack pack(layout, rank, 0, rank == 0 ? 1000 : 1001);
    collective.AllReduce(pack.contributions, absl::MakeSpan(pack.sum),
                         [](const absl::Status&) {});
    EXPECT_THAT(collective.Await(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("1000"), HasSubstr("1001"))));
  });
}

TEST_P(CollectiveTest, AnEndpointJoinsOnlyLargerEpochs) {
  CollectiveFixture fixture = Fixture(1);
  const Layout layout = {{0}};
  const auto join = [&](int64_t epoch) {
    return fixture.endpoint(0)
        .Join(fixture.GroupOf(layout, epoch, 0), absl::Seconds(60))
        .status();
  };
  EXPECT_OK(join(5));
  EXPECT_OK(join(7));
  EXPECT_THAT(join(7),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("7")));
  EXPECT_THAT(join(6), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_P(CollectiveTest, MissingRanksAreNamedWhenTheJoinEnds) {
  CollectiveFixture fixture = Fixture(3);
  const absl::Status status =
      fixture.endpoint(0)
          .Join(fixture.GroupOf(Layout(3), 1, 0), absl::Milliseconds(50))
          .status();
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("rank 1 ("), HasSubstr("rank 2 ("))));
}

// Whoever cancels a join may be faster than who begins it.
TEST_P(CollectiveTest, AJoinThatWasCancelledBeforeItBeganEndsAtOnce) {
  CollectiveFixture fixture = Fixture(2);
  fixture.endpoint(0).CancelJoin(/*epoch=*/2);
  for (const int64_t epoch : {1, 2}) {
    EXPECT_THAT(fixture.endpoint(0)
                    .Join(fixture.GroupOf(Layout(2), epoch, 0),
                          absl::InfiniteDuration())
                    .status(),
                StatusIs(absl::StatusCode::kCancelled));
  }
  EXPECT_THAT(fixture.endpoint(0)
                  .Join(fixture.GroupOf(Layout(2), /*epoch=*/3, 0),
                        absl::Milliseconds(1))
                  .status(),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST_P(CollectiveTest, ANewerGroupOfTheEndpointEndsTheOlder) {
  CollectiveFixture fixture = Fixture(1);
  const Layout layout = {{0}};
  const auto older = fixture.endpoint(0).Join(fixture.GroupOf(layout, 1, 0),
                                              absl::Seconds(60));
  ASSERT_OK(older);
  const auto newer = fixture.endpoint(0).Join(fixture.GroupOf(layout, 2, 0),
                                              absl::Seconds(60));
  ASSERT_OK(newer);
  EXPECT_THAT((*older)->status(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_OK((*newer)->status());
}

INSTANTIATE_TEST_SUITE_P(
    Implementations, CollectiveTest,
    testing::Values(
        Implementation{"InMemory", InMemory},
        Implementation{"Sockets", [] { return OverSockets(std::nullopt); }},
        Implementation{"Encrypted",
                       [] {
                         return OverSockets(std::nullopt,
                                            /*shared_memory=*/false,
                                            /*ranks_of_a_host=*/1000,
                                            /*piece_lanes=*/false,
                                            /*is_encrypted=*/true);
                       }},
        Implementation{"SharedMemory",
                       [] { return OverSockets(std::nullopt, true); }},
        Implementation{"SharedMemoryWithLanes",
                       [] {
                         return OverSockets(std::nullopt,
                                            /*shared_memory=*/true,
                                            /*ranks_of_a_host=*/1000,
                                            /*piece_lanes=*/true);
                       }},
        Implementation{
            "OneRound",
            [] { return OverSockets(ReductionAlgorithm::kOneRound); }},
        Implementation{
            "OwnerSlices",
            [] { return OverSockets(ReductionAlgorithm::kOwnerSlices); }},
        Implementation{"Chain",
                       [] { return OverSockets(ReductionAlgorithm::kChain); }},
        Implementation{"Lanes",
                       [] {
                         return OverSockets(std::nullopt,
                                            /*shared_memory=*/false,
                                            /*ranks_of_a_host=*/1000,
                                            /*piece_lanes=*/true);
                       }},
        Implementation{"MachinesWithLanes",
                       [] {
                         return OverSockets(ReductionAlgorithm::kMachines,
                                            /*shared_memory=*/false,
                                            /*ranks_of_a_host=*/2,
                                            /*piece_lanes=*/true);
                       }},
        Implementation{"Machines",
                       [] {
                         return OverSockets(ReductionAlgorithm::kMachines,
                                            /*shared_memory=*/false,
                                            /*ranks_of_a_host=*/2);
                       }}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace parasol
