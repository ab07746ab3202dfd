#include "ml/optimizer/device/table_update.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "gtest/gtest.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/kernel/pass_argument.h"
#include "ml/optimizer/clip.h"
#include "ml/optimizer/optimizer.h"
#include "ml/optimizer/testing/update_cases.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

const std::vector<std::string>& Limits() {
  static const auto* const all = new std::vector<std::string>{
      "", "clipvalue: .3", "clipnorm: 1", "global_clipnorm: 2",
      "clipvalue: .3 clipnorm: 1 global_clipnorm: .7"};
  return *all;
}

// Rows of a table on the host, as RowTable would change them.
class PlainRows {
 public:
  PlainRows(const job::Optimizer& spec, size_t rows, size_t width)
      : spec_(spec), optimizer_(*MakeOptimizer(spec)), width_(width) {
    const std::vector<float> values = DrawValues(rows * width, 7);
    for (size_t i = 0; i < rows; ++i) {
      std::vector<float>& row = rows_.emplace_back(
          values.begin() + i * width, values.begin() + (i + 1) * width);
      row.resize(optimizer_->FloatsOfRow(width));
      optimizer_->FillSlots(width, row.data());
    }
  }

  void Update(int64_t iterations, const std::vector<int32_t>& numbers,
              std::vector<float> gradients) {
    Clip(absl::MakeSpan(gradients));
    std::vector<float*> touched, others;
    std::vector<bool> is_touched(rows_.size());
    for (const int32_t number : numbers) {
      touched.push_back(rows_[number].data());
      is_touched[number] = true;
    }
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (!is_touched[i]) others.push_back(rows_[i].data());
    }
    optimizer_->ApplyRows(
        iterations,
        {.count = touched.size(),
         .width = width_,
         .gradients = reinterpret_cast<const std::byte*>(gradients.data()),
         .rows = touched.data()});
    optimizer_->ApplyOtherRows(
        iterations,
        {.count = others.size(), .width = width_, .rows = others.data()});
  }

  const Optimizer& optimizer() const { return *optimizer_; }
  const std::vector<std::vector<float>>& rows() const { return rows_; }

 private:
  void Clip(absl::Span<float> gradient) {
    if (spec_.has_clipvalue()) ClipByValue(spec_.clipvalue(), gradient);
    if (spec_.has_clipnorm()) ClipByNorm(spec_.clipnorm(), gradient);
    if (!spec_.has_global_clipnorm()) return;
    const std::array<absl::Span<float>, 1> all = {gradient};
    ClipByGlobalNorm(spec_.global_clipnorm(), all);
  }

  const job::Optimizer spec_;
  const std::unique_ptr<const Optimizer> optimizer_;
  const size_t width_;
  std::vector<std::vector<float>> rows_;
};

class TableUpdateTest : public DeviceTest {
 protected:
  static constexpr int kShift = 2;  // 4 rows a block

  // A table in the device's memory and in the host's.
  class Pair {
   public:
    Pair(TableUpdateTest& test, const std::string& spec, size_t rows,
         size_t width)
        : test_(test),
          width_(width),
          plain_(ParseOptimizer(spec), rows, width) {
      floats_ = plain_.rows().front().size();
      const size_t per_block = size_t{1} << kShift;
      for (size_t first = 0; first < rows; first += per_block) {
        std::vector<float> block;
        for (size_t i = first; i < first + per_block; ++i) {
          const auto& row = plain_.rows()[std::min(i, rows - 1)];
          block.insert(block.end(), row.begin(), row.end());
        }
        block.resize(block.size() + per_block);  // marks
        blocks_.push_back(test.Put(block));
      }
      table_of_blocks_ = test.Put(blocks_);
    }

    // Returns what an update gets; both are updated by it.
    TableUpdate::Table Prepare(int64_t iterations,
                               const std::vector<int32_t>& numbers,
                               const std::vector<float>& gradients) {
      plain_.Update(iterations, numbers, gradients);
      const TableRows rows = {
          .values = nullptr,
          .gradients = test_.Put(gradients),
          .elements = static_cast<int64_t>(gradients.size()),
          .width = static_cast<int32_t>(width_),
          .numbers = numbers.empty() ? nullptr : test_.Put(numbers),
          .blocks = {.blocks = table_of_blocks_,
                     .shift = kShift,
                     .floats = static_cast<int32_t>(floats_)}};
      return {.rows = test_.Put(std::vector<TableRows>{rows}),
              .elements = rows.elements,
              .num_rows = static_cast<int64_t>(plain_.rows().size())};
    }

    void ExpectSameBits() {
      for (size_t i = 0; i < plain_.rows().size(); ++i) {
        const float* const row =
            blocks_[i >> kShift] + (i & ((1 << kShift) - 1)) * floats_;
        const std::vector<float> got = test_.Get(row, floats_);
        for (size_t j = 0; j < floats_; ++j) {
          const float want = plain_.rows()[i][j];
          ASSERT_TRUE(std::bit_cast<uint32_t>(got[j]) ==
                          std::bit_cast<uint32_t>(want) ||
                      (std::isnan(got[j]) && std::isnan(want)))
              << "row " << i << ", element " << j << ": " << got[j]
              << " is not " << want;
        }
      }
    }
    const Optimizer& optimizer() const { return plain_.optimizer(); }

   private:
    TableUpdateTest& test_;
    const size_t width_;
    PlainRows plain_;
    size_t floats_ = 0;
    std::vector<float*> blocks_;
    float** table_of_blocks_ = nullptr;
  };

  std::unique_ptr<TableUpdate> NewUpdate(const Pair& pair,
                                         const std::string& spec) {
    auto update =
        TableUpdate::Create(device(), pair.optimizer(), ParseOptimizer(spec));
    EXPECT_OK(update);
    return *std::move(update);
  }
};

TEST_P(TableUpdateTest, EachOptimizerAndLimitGivesTheBitsOfTheHost) {
  const std::vector<std::vector<int32_t>> touched = {
      {3, 0, 8}, {8, 1, 10, 2}, {}, {5}};
  for (const std::string& optimizer : RowOptimizersWithBitsOfTheCpu()) {
    for (const std::string& limits : Limits()) {
      const std::string spec = absl::StrCat(optimizer, " ", limits);
      SCOPED_TRACE(spec);
      Pair wide(*this, spec, /*rows=*/11, /*width=*/5);
      Pair narrow(*this, spec, /*rows=*/6, /*width=*/1);
      const auto update = NewUpdate(wide, spec);
      for (size_t step = 0; step < touched.size(); ++step) {
        const std::vector<int32_t> of_narrow(1, step);
        ASSERT_OK(update->Apply(
            step, {wide.Prepare(step, touched[step],
                                DrawValues(touched[step].size() * 5, step)),
                   narrow.Prepare(step, of_narrow, DrawValues(1, 50 + step))}));
      }
      wide.ExpectSameBits();
      narrow.ExpectSameBits();
      if (HasFailure()) return;
    }
  }
}

// Around the ends of a sum's chunks, and more chunks than a sum has lanes.
TEST_P(TableUpdateTest, LargeGradientsHaveTheBitsOfTheHost) {
  for (const size_t elements : {4095, 4096, 4097, 1'100'000}) {
    const size_t width = elements > 10'000 ? 1000 : 1;
    std::vector<int32_t> numbers(elements / width);
    for (size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = numbers.size() - 1 - i;
    }
    for (const std::string& limits : Limits()) {
      const std::string spec = "adam {} " + limits;
      SCOPED_TRACE(absl::StrCat(elements, " elements, ", limits));
      Pair pair(*this, spec, numbers.size(), width);
      ASSERT_OK(
          NewUpdate(pair, spec)
              ->Apply(0, {pair.Prepare(0, numbers, DrawValues(elements, 3))}));
      pair.ExpectSameBits();
      if (HasFailure()) return;
    }
  }
}

// Rows of fewer and of more elements than a rule of rows has lanes, of more
// rows than a block has, and an even and an odd number of rows of a warp.
TEST_P(TableUpdateTest, RowsOfEveryWidthHaveTheBitsOfTheHost) {
  for (const size_t width : {1, 2, 3, 8, 15, 16, 17, 31, 32, 33, 64, 257}) {
    for (const size_t rows : {1, 2, 7, 33}) {
      for (const std::string& limits : Limits()) {
        const std::string spec = "rowwise_adagrad {} " + limits;
        SCOPED_TRACE(absl::StrCat(rows, " rows of ", width, ", ", limits));
        std::vector<int32_t> numbers(rows);
        for (size_t i = 0; i < rows; ++i) numbers[i] = rows - 1 - i;
        Pair pair(*this, spec, rows + 1, width);
        const auto update = NewUpdate(pair, spec);
        for (int step = 0; step < 2; ++step) {
          ASSERT_OK(update->Apply(
              step, {pair.Prepare(step, numbers,
                                  DrawValues(rows * width, 3 + step))}));
        }
        pair.ExpectSameBits();
        if (HasFailure()) return;
      }
    }
  }
}

TEST_P(TableUpdateTest, MoreTablesThanALaunchTakesAreAllUpdated) {
  const std::string spec = "adam {} clipnorm: .1";
  std::vector<std::unique_ptr<Pair>> pairs;
  std::vector<TableUpdate::Table> tables;
  for (int i = 0; i < 101; ++i) {
    pairs.push_back(std::make_unique<Pair>(*this, spec, /*rows=*/2, 2));
    tables.push_back(pairs.back()->Prepare(0, {i % 2}, DrawValues(2, i)));
  }
  ASSERT_OK(NewUpdate(*pairs.front(), spec)->Apply(0, tables));
  for (const auto& pair : pairs) pair->ExpectSameBits();
}

TEST_P(TableUpdateTest, GradientsThatAreNotFiniteHaveTheBitsOfTheHost) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::vector<float>> steps = {
      {std::numeric_limits<float>::max(), -1}, {kInf, 1}, {-kInf, kNan}};
  for (const std::string optimizer : {"adagrad {} ", "rowwise_adagrad {} "}) {
    for (const std::string& limits : Limits()) {
      const std::string spec = optimizer + limits;
      SCOPED_TRACE(spec);
      Pair pair(*this, spec, /*rows=*/3, 2);
      const auto update = NewUpdate(pair, spec);
      for (size_t step = 0; step < steps.size(); ++step) {
        ASSERT_OK(update->Apply(step, {pair.Prepare(step, {1}, steps[step])}));
        pair.ExpectSameBits();
      }
    }
  }
}

// Updates have one mark again after 2^31 - 1 others, but none has the mark of a
// row that was not touched at all.
TEST(MarkOfUpdateTest, IsNeverThatOfANewRow) {
  for (const int64_t iterations :
       {int64_t{0}, int64_t{INT32_MAX} - 1, int64_t{INT32_MAX},
        int64_t{INT32_MAX} + 1, int64_t{1} << 40}) {
    EXPECT_GT(MarkOfUpdate(iterations), 0);
    EXPECT_NE(MarkOfUpdate(iterations), MarkOfUpdate(iterations + 1));
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, TableUpdateTest, DevicesUnderTest(),
                         DeviceName);

}  // namespace
}  // namespace parasol
