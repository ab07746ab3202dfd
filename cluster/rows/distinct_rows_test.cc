#include "cluster/rows/distinct_rows.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

#include "base/row_hash.h"
#include "cluster/rows/striped_ids.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

const std::byte* Bytes(const void* memory) {
  return static_cast<const std::byte*>(memory);
}

// Returns all sums.
std::vector<float> Sums(DistinctRows& distinct, const std::byte* gradients,
                        size_t width) {
  std::vector<float> sums;
  for (const std::byte* sum : distinct.Sum(gradients, width)) {
    sums.resize(sums.size() + width);
    std::memcpy(sums.data() + sums.size() - width, sum, width * sizeof(float));
  }
  return sums;
}

TEST(StripedIdsTest, EveryPositionIsInTheStripeOfItsHash) {
  std::vector<uint64_t> ids(1000);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = i % 300;
  StripedIds striped;
  striped.Assign(Bytes(ids.data()), ids.size());

  size_t count = 0;
  for (size_t s = 0; s < kRowStripes; ++s) {
    const StripedIds::Run run = striped.run(s);
    count += run.size();
    for (size_t i = 0; i < run.size(); ++i) {
      EXPECT_EQ(run.hashes[i], RowHash(ids[run.positions[i]]));
      EXPECT_EQ(StripeOf(run.hashes[i]), s);
      if (i > 0) {
        EXPECT_GT(run.positions[i], run.positions[i - 1]);
      }
    }
  }
  EXPECT_EQ(count, ids.size());
}

TEST(StripedIdsTest, IdsThatComeSortedStayWhereTheyAre) {
  std::vector<uint64_t> ids(1000);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = i * i;
  std::stable_sort(ids.begin(), ids.end(), [](uint64_t a, uint64_t b) {
    return StripeOf(RowHash(a)) < StripeOf(RowHash(b));
  });
  StripedIds striped;
  // What is kept from a request before changes nothing.
  for (const size_t count : {ids.size(), ids.size() / 2, ids.size()}) {
    striped.Assign(Bytes(ids.data()), count);
    uint32_t next = 0;
    for (size_t s = 0; s < kRowStripes; ++s) {
      const StripedIds::Run run = striped.run(s);
      for (size_t i = 0; i < run.size(); ++i, ++next) {
        EXPECT_EQ(run.positions[i], next);
        EXPECT_EQ(run.hashes[i], RowHash(ids[next]));
        EXPECT_EQ(StripeOf(run.hashes[i]), s);
      }
    }
    EXPECT_EQ(next, count);
  }
}

TEST(DistinctRowsTest, WithoutDuplicatesTheyAreTheRun) {
  const std::vector<uint64_t> hashes = {5, 64, 128, 7};
  const std::vector<uint32_t> positions = {3, 1, 0, 2};
  const std::vector<float> gradients = {1, 2, 3, 4};
  DistinctRows distinct;
  distinct.Assign({hashes, positions});
  EXPECT_THAT(distinct.rows().hashes, ElementsAreArray(hashes));
  EXPECT_THAT(Sums(distinct, Bytes(gradients.data()), 1),
              ElementsAre(4, 2, 1, 3));
}

TEST(DistinctRowsTest, GradientsOfIdsThatComeOnceAreNotCopied) {
  const std::vector<uint64_t> hashes = {5, 64, 5, 7};
  const std::vector<uint32_t> positions = {6, 9, 7, 8};
  const std::vector<float> gradients(20);
  DistinctRows distinct;
  distinct.Assign({hashes, positions});
  const auto sums = distinct.Sum(Bytes(gradients.data()), 2);
  ASSERT_EQ(sums.size(), 3u);
  EXPECT_EQ(sums[1], Bytes(gradients.data() + 18));
  EXPECT_EQ(sums[2], Bytes(gradients.data() + 16));
}

// Gradients may lie right before or behind the sums.
TEST(DistinctRowsTest, ManyRepeatedIdsEachHaveASum) {
  std::vector<uint64_t> hashes;
  std::vector<uint32_t> positions;
  std::vector<float> gradients;
  for (uint32_t i = 0; i < 900; ++i) {
    hashes.push_back(i * i % 300);
    positions.push_back(i);
    gradients.push_back(i);
  }
  std::map<uint64_t, float> want;
  for (size_t i = 0; i < hashes.size(); ++i) want[hashes[i]] += gradients[i];
  DistinctRows distinct;
  for (int time = 0; time < 2; ++time) {
    distinct.Assign({hashes, positions});
    const std::vector<float> sums = Sums(distinct, Bytes(gradients.data()), 1);
    ASSERT_EQ(sums.size(), want.size());
    for (size_t i = 0; i < sums.size(); ++i) {
      EXPECT_EQ(sums[i], want[distinct.rows().hashes[i]]);
    }
  }
}

TEST(DistinctRowsTest, DuplicatesAreAddedUpInOrder) {
  const std::vector<uint64_t> hashes = {5, 64, 5, 7, 64, 5};
  const std::vector<uint32_t> positions = {0, 1, 2, 3, 4, 5};
  // (1 + 2^-24) + 2^-24 is 1 in float32; 2^-24 + 2^-24 + 1 is not.
  const std::vector<float> gradients = {1, 2, 0x1p-24, 4, 5, 0x1p-24};
  DistinctRows distinct;
  distinct.Assign({hashes, positions});
  EXPECT_THAT(distinct.rows().hashes, ElementsAre(5, 64, 7));
  EXPECT_THAT(distinct.rows().positions, ElementsAre(0, 1, 3));
  EXPECT_THAT(Sums(distinct, Bytes(gradients.data()), 1), ElementsAre(1, 7, 4));
}

TEST(DistinctRowsTest, GradientsMayLieAnywhere) {
  std::vector<std::byte> bytes(1 + 4 * sizeof(float));
  const float gradients[] = {1, 2, 3, 4};
  std::memcpy(bytes.data() + 1, gradients, sizeof(gradients));
  const std::vector<uint64_t> hashes = {9, 9};
  const std::vector<uint32_t> positions = {0, 1};
  DistinctRows distinct;
  distinct.Assign({hashes, positions});
  EXPECT_THAT(Sums(distinct, bytes.data() + 1, 2), ElementsAre(4, 6));
}

TEST(DistinctRowsTest, OneIdManyTimesIsOneRow) {
  const std::vector<uint64_t> hashes(5000, 11);
  std::vector<uint32_t> positions(hashes.size());
  for (size_t i = 0; i < positions.size(); ++i) positions[i] = i;
  const std::vector<float> gradients(hashes.size(), 1);
  DistinctRows distinct;
  distinct.Assign({hashes, positions});
  EXPECT_THAT(distinct.rows().hashes, ElementsAre(11));
  EXPECT_THAT(Sums(distinct, Bytes(gradients.data()), 1), ElementsAre(5000));
}

}  // namespace
}  // namespace parasol
