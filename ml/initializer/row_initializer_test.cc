#include "ml/initializer/row_initializer.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/compression/half_bits.h"

namespace parasol {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

job::Initializer Spec(const std::string& textproto) {
  job::Initializer spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(textproto, &spec));
  return spec;
}

struct Table {
  std::string initializer = "random_uniform {}";
  uint64_t seed = 1;
  std::string name = "items";
  size_t width = 16;
};

std::vector<float> Row(uint64_t id, const Table& table) {
  const auto rows = RowInitializer::Create(Spec(table.initializer), table.seed,
                                           table.name, table.width);
  EXPECT_OK(rows);
  std::vector<float> values(table.width);
  rows->Fill(id, values.data());
  return values;
}

// Returns the first 1,000,000 values.
std::vector<float> Rows(const Table& table) {
  const auto rows = RowInitializer::Create(Spec(table.initializer), table.seed,
                                           table.name, table.width);
  EXPECT_OK(rows);
  std::vector<float> values(1000000 / table.width * table.width);
  for (size_t id = 0; id < values.size() / table.width; ++id) {
    rows->Fill(id, &values[id * table.width]);
  }
  return values;
}

double Mean(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += value;
  return sum / values.size();
}

double Stddev(const std::vector<float>& values) {
  const double mean = Mean(values);
  double sum = 0;
  for (const float value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / values.size());
}

double LargestMagnitude(const std::vector<float>& values) {
  double largest = 0;
  for (const float value : values) {
    largest = std::max<double>(largest, std::abs(value));
  }
  return largest;
}

// 10^6 draws: a mean is off by σ/1000; 5 of that are allowed.
constexpr double kTolerance = 5e-3;

TEST(RowInitializerTest, ARowDependsOnSeedTableAndIdOnly) {
  for (const std::string initializer : {"random_uniform {}", "random_normal {}",
                                        "he_normal {}", "glorot_uniform {}"}) {
    SCOPED_TRACE(initializer);
    const Table table = {.initializer = initializer};
    const std::vector<float> row = Row(7, table);
    EXPECT_EQ(Row(7, table), row);
    EXPECT_NE(Row(8, table), row);
    EXPECT_NE(Row(7 + (uint64_t{1} << 32), table), row);
    EXPECT_NE(Row(7, {.initializer = initializer, .seed = 2}), row);
    EXPECT_NE(Row(7, {.initializer = initializer, .name = "users"}), row);
  }
}

TEST(RowInitializerTest, EveryIdHasARow) {
  EXPECT_NE(Row(0, {}), Row(UINT64_MAX, {}));
}

TEST(RowInitializerTest, AnyWidthIsFilled) {
  for (const size_t width : {1, 2, 3, 4, 5, 17}) {
    SCOPED_TRACE(width);
    EXPECT_THAT(
        Row(3, {.initializer = "constant { value: 2 }", .width = width}),
        Each(2.f));
    EXPECT_THAT(Row(3, {.width = width}), Each(::testing::Ne(0.f)));
  }
}

TEST(RowInitializerTest, ValuesKeptInBfloat16AreRoundedToIt) {
  for (const std::string initializer :
       {"random_uniform {}", "random_normal {}", "constant { value: .3 }"}) {
    for (const size_t width : {1, 5, 16}) {
      const std::vector<float> exact =
          Row(7, {.initializer = initializer, .width = width});
      std::vector<float> rounded(width);
      RowInitializer::Create(Spec(initializer), 1, "items", width,
                             job::SparseTable::BFLOAT16)
          ->Fill(7, rounded.data());
      for (size_t i = 0; i < width; ++i) {
        EXPECT_EQ(rounded[i], FloatFromBfloat16(Bfloat16FromFloat(exact[i])));
      }
      EXPECT_NE(rounded, exact);
    }
  }
}

TEST(RowInitializerTest, UniformFillsItsRange) {
  const std::vector<float> values = Rows({});
  EXPECT_NEAR(Mean(values), 0, .05 * kTolerance);
  EXPECT_NEAR(Stddev(values), .05 / std::sqrt(3), .05 * kTolerance);
  EXPECT_NEAR(LargestMagnitude(values), .05, 1e-6);
}

TEST(RowInitializerTest, NormalHasItsMeanAndDeviation) {
  const std::vector<float> values =
      Rows({.initializer = "random_normal { mean: 3 stddev: 2 }"});
  EXPECT_NEAR(Mean(values), 3, 2 * kTolerance);
  EXPECT_NEAR(Stddev(values), 2, 2 * kTolerance);
}

TEST(RowInitializerTest, FansAreThoseOfOneRow) {
  const std::vector<float> glorot = Rows({.initializer = "glorot_uniform {}"});
  EXPECT_NEAR(LargestMagnitude(glorot), std::sqrt(6. / 17), 1e-5);
  const std::vector<float> he = Rows({.initializer = "he_normal {}"});
  EXPECT_NEAR(Stddev(he), std::sqrt(2.), 2 * kTolerance);
  EXPECT_LE(LargestMagnitude(he), 2 * std::sqrt(2.) / .87962566103423978);
}

TEST(RowInitializerTest, NeighboursAreNotCorrelated) {
  const std::vector<float> values =
      Rows({.initializer = "random_normal { stddev: 1 }"});
  for (const size_t distance : {1, 2, 3, 4, 16}) {
    double sum = 0;
    for (size_t i = distance; i < values.size(); ++i) {
      sum += values[i] * values[i - distance];
    }
    EXPECT_NEAR(sum / values.size(), 0, kTolerance) << distance;
  }
}

TEST(RowInitializerTest, WhatIsWrongIsNamed) {
  EXPECT_THAT(
      RowInitializer::Create(job::Initializer(), 1, "items", 4),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("initializer of items: no initializer is chosen")));
  EXPECT_THAT(RowInitializer::Create(Spec("random_normal { stddev: -1 }"), 1,
                                     "items", 4),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("random_normal.stddev: -1 is negative")));
}

}  // namespace
}  // namespace parasol
