#include "coordinator/steps/replica_assignment.h"

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ReplicaAssignment, TheFirstWorkerComputesAll) {
  ReplicaAssignment assignment(3, 0);
  assignment.Join(7);
  EXPECT_THAT(assignment.ReplicasOf(7), ElementsAre(0, 1, 2));
}

TEST(ReplicaAssignment, OneThatJoinsGetsItsFairShare) {
  ReplicaAssignment assignment(4, 0);
  assignment.Join(7);
  assignment.Join(8);
  EXPECT_THAT(assignment.ReplicasOf(7), ElementsAre(0, 1));
  EXPECT_THAT(assignment.ReplicasOf(8), ElementsAre(2, 3));
  assignment.Join(9);
  EXPECT_EQ(assignment.ReplicasOf(9).size(), 1u);
}

TEST(ReplicaAssignment, OneMoreThanThereAreReplicasTakesNone) {
  ReplicaAssignment assignment(1, 0);
  assignment.Join(7);
  const int64_t before = assignment.version();
  assignment.Join(8);
  EXPECT_THAT(assignment.ReplicasOf(7), ElementsAre(0));
  EXPECT_THAT(assignment.ReplicasOf(8), IsEmpty());
  // It is a member of the workers' group none the less.
  const int64_t after = assignment.version();
  EXPECT_GT(after, before);
  assignment.Lose(8);
  EXPECT_GT(assignment.version(), after);
}

TEST(ReplicaAssignment, ALostWorkersShareGoesToWhoeverHasFewest) {
  ReplicaAssignment assignment(4, 0);
  for (uint64_t worker : {7, 8, 9}) assignment.Join(worker);
  const std::vector<int> kept = assignment.ReplicasOf(8);
  const int64_t before = assignment.version();
  assignment.Lose(7);
  EXPECT_GT(assignment.version(), before);
  EXPECT_EQ(assignment.ReplicasOf(8).size(), 2u);
  EXPECT_EQ(assignment.ReplicasOf(9).size(), 2u);
  for (int replica : kept) {
    EXPECT_THAT(assignment.ReplicasOf(8), testing::Contains(replica));
  }
}

TEST(ReplicaAssignment, WhoeverComesAfterTheLastOneWentGetsAll) {
  ReplicaAssignment assignment(2, 0);
  assignment.Join(7);
  assignment.Lose(7);
  assignment.Join(8);
  EXPECT_THAT(assignment.ReplicasOf(8), ElementsAre(0, 1));
}

TEST(ReplicaAssignment, JoiningOrLeavingTwiceChangesNothing) {
  ReplicaAssignment assignment(2, 0);
  assignment.Join(7);
  assignment.Join(8);
  const int64_t before = assignment.version();
  assignment.Join(8);
  assignment.Lose(9);
  EXPECT_EQ(assignment.version(), before);
}

// The places of workers 7, 8 and 9 are 0, 1 and 2.
TEST(ReplicaAssignment, WorkersHaveTheNeighboursOfTheirPlacesInWhateverOrder) {
  std::vector<uint64_t> workers = {7, 8, 9};
  do {
    ReplicaAssignment assignment(6, 0, /*per_place=*/2);
    for (const uint64_t worker : workers) {
      assignment.Join(worker, static_cast<int>(worker) - 7);
    }
    EXPECT_THAT(assignment.ReplicasOf(7), ElementsAre(0, 1));
    EXPECT_THAT(assignment.ReplicasOf(8), ElementsAre(2, 3));
    EXPECT_THAT(assignment.ReplicasOf(9), ElementsAre(4, 5));
  } while (std::next_permutation(workers.begin(), workers.end()));
}

TEST(ReplicaAssignment, OneThatComesBackGetsItsOwnFromWhoeverHasThem) {
  ReplicaAssignment assignment(6, 0, /*per_place=*/2);
  for (const int place : {0, 1, 2}) assignment.Join(7 + place, place);
  assignment.Lose(8);
  EXPECT_THAT(assignment.ReplicasOf(7), ElementsAre(0, 1, 2));
  EXPECT_THAT(assignment.ReplicasOf(9), ElementsAre(3, 4, 5));
  assignment.Lose(7);
  EXPECT_EQ(assignment.ReplicasOf(9).size(), 6u);
  // Its own, and a part of those that are nobody's.
  assignment.Join(17, 0);
  EXPECT_THAT(assignment.ReplicasOf(17), ElementsAre(0, 1, 3));
  EXPECT_THAT(assignment.ReplicasOf(9), ElementsAre(2, 4, 5));
  assignment.Join(18, 1);
  EXPECT_THAT(assignment.ReplicasOf(17), ElementsAre(0, 1));
  EXPECT_THAT(assignment.ReplicasOf(18), ElementsAre(2, 3));
  EXPECT_THAT(assignment.ReplicasOf(9), ElementsAre(4, 5));
}

// Processes of one place come and go, also a newer one before the older one is
// lost.
TEST(ReplicaAssignment, WhoeverIsThereHasItsOwnUnderRandomChanges) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const int places = 1 + random() % 4;
    const int per_place = 1 + random() % 3;
    ReplicaAssignment assignment(places * per_place, 0, per_place);
    std::map<int, uint64_t> there;  // key: place
    for (uint64_t next = 1; next < 40; ++next) {
      const int place = random() % places;
      const auto old = there.find(place);
      const bool stays = random() % 2 == 0;
      if (stays) assignment.Join(next, place);
      if (old != there.end()) assignment.Lose(old->second);
      there.erase(place);
      if (stays) there[place] = next;
      size_t all = 0, most = 0, fewest = places * per_place;
      for (const auto& [at, worker] : there) {
        const std::vector<int> now = assignment.ReplicasOf(worker);
        for (int i = 0; i < per_place; ++i) {
          EXPECT_THAT(now, testing::Contains(at * per_place + i));
        }
        all += now.size();
        most = std::max(most, now.size());
        fewest = std::min(fewest, now.size());
      }
      if (there.empty()) continue;
      EXPECT_EQ(all, static_cast<size_t>(places * per_place));
      if (there.size() == static_cast<size_t>(places)) {
        EXPECT_EQ(most, fewest);
      }
    }
  }
}

TEST(ReplicaAssignment, UnderRandomChangesEveryReplicaHasOneOwner) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const int total = 1 + random() % 9;
    ReplicaAssignment assignment(total, 0);
    std::vector<uint64_t> workers;
    for (uint64_t next = 1; next < 40; ++next) {
      std::map<uint64_t, std::vector<int>> before;
      for (uint64_t w : workers) before[w] = assignment.ReplicasOf(w);
      const bool leaves = !workers.empty() && random() % 2 == 0;
      if (leaves) {
        const size_t i = random() % workers.size();
        assignment.Lose(workers[i]);
        workers.erase(workers.begin() + i);
      } else {
        workers.push_back(next);
        assignment.Join(next);
      }
      if (workers.empty()) continue;
      std::vector<int> all;
      for (uint64_t w : workers) {
        const std::vector<int> now = assignment.ReplicasOf(w);
        all.insert(all.end(), now.begin(), now.end());
        // A loss takes nothing from those that stay.
        if (leaves) {
          EXPECT_TRUE(std::includes(now.begin(), now.end(), before[w].begin(),
                                    before[w].end()));
        }
        // One may go without only where there are not enough.
        if (static_cast<int>(workers.size()) <= total) {
          EXPECT_FALSE(now.empty());
        }
      }
      std::sort(all.begin(), all.end());
      ASSERT_EQ(static_cast<int>(all.size()), total);
      for (int i = 0; i < total; ++i) EXPECT_EQ(all[i], i);
    }
  }
}

}  // namespace
}  // namespace parasol
