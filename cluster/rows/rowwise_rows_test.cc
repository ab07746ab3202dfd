// Tables whose optimizer has one slot element for each row, beside a scalar
// model of its formula and of the tables' rules.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "cluster/placement/row_shard.h"
#include "cluster/rows/row_snapshot.h"
#include "cluster/rows/row_table.h"
#include "gtest/gtest.h"
#include "ml/optimizer/testing/update_cases.h"
#include "storage/shard_entry.h"

namespace parasol {
namespace {

constexpr float kInitial = .5f;

struct Pushed {
  uint64_t id = 0;
  std::vector<float> gradient;
};

// One id after the other, in float64.
class Model {
 public:
  struct Row {
    std::vector<double> values;
    double accumulator = .1;
    int64_t count = 0;
    int64_t touched = 0;
  };

  Model(const RowBounds& bounds, size_t width)
      : bounds_(bounds), width_(width) {}

  void Push(const std::vector<Pushed>& push) {
    ++updates_;
    std::erase_if(rows_, [&](const auto& row) { return IsIdle(row.second); });
    std::map<uint64_t, std::vector<float>> sums;
    for (const Pushed& one : push) {
      std::vector<float>& sum =
          sums.try_emplace(one.id, std::vector<float>(width_)).first->second;
      for (size_t i = 0; i < width_; ++i) sum[i] += one.gradient[i];
      ++RowOf(one.id).count;
    }
    for (const auto& [id, sum] : sums) Apply(sum, RowOf(id));
  }

  std::vector<double> Pull(uint64_t id) const {
    const auto row = rows_.find(id);
    if (row == rows_.end() || !HasRow(row->second)) {
      return std::vector<double>(width_, kInitial);
    }
    return row->second.values;
  }

  // The rows that a checkpoint has.
  std::map<uint64_t, Row> Rows() const {
    std::map<uint64_t, Row> rows = rows_;
    std::erase_if(rows, [&](const auto& row) { return !HasRow(row.second); });
    return rows;
  }

 private:
  bool IsIdle(const Row& row) const {
    return bounds_.idle_steps > 0 &&
           updates_ - row.touched > bounds_.idle_steps;
  }
  // As the next update sees it, for pulls look a step ahead.
  bool HasRow(const Row& row) const {
    const bool is_idle = bounds_.idle_steps > 0 &&
                         updates_ + 1 - row.touched > bounds_.idle_steps;
    return row.count >= bounds_.min_count && !is_idle;
  }
  Row& RowOf(uint64_t id) {
    Row& row = rows_[id];
    row.values.resize(width_, kInitial);
    row.touched = updates_;
    return row;
  }
  void Apply(const std::vector<float>& gradient, Row& row) const {
    if (row.count < bounds_.min_count) return;
    double squares = 0;
    for (const double g : gradient) squares += g * g;
    row.accumulator += squares / static_cast<double>(width_);
    const double step = .25 / (std::sqrt(row.accumulator) + .01);
    for (size_t i = 0; i < width_; ++i) row.values[i] -= step * gradient[i];
  }

  const RowBounds bounds_;
  const size_t width_;
  int64_t updates_ = 0;
  std::map<uint64_t, Row> rows_;
};

const std::byte* Bytes(const void* memory) {
  return static_cast<const std::byte*>(memory);
}

void ExpectNear(absl::Span<const float> got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_NEAR(got[i], want[i], 1e-5 * (1 + std::abs(want[i]))) << i;
  }
}

class Shards {
 public:
  Shards(const RowBounds& bounds, size_t width, uint32_t count)
      : width_(width) {
    for (uint32_t i = 0; i < count; ++i) {
      RowTable::Options options = {
          .name = "items", .width = width, .bounds = bounds};
      options.initializer.mutable_constant()->set_value(kInitial);
      shards_.push_back(*RowTable::Create(
          options, *MakeOptimizer(ParseOptimizer(
                       "rowwise_adagrad { learning_rate: .25 epsilon: .01 "
                       "initial_accumulator_value: .1 }"))));
    }
  }

  void Push(const std::vector<Pushed>& push) {
    for (uint32_t shard = 0; shard < shards_.size(); ++shard) {
      std::vector<uint64_t> ids;
      std::vector<float> gradients;
      for (const Pushed& one : push) {
        if (ShardOfRow(one.id, shards_.size()) != shard) continue;
        ids.push_back(one.id);
        gradients.insert(gradients.end(), one.gradient.begin(),
                         one.gradient.end());
      }
      EXPECT_OK(shards_[shard]->Push(Bytes(ids.data()), Bytes(gradients.data()),
                                     ids.size()));
    }
  }

  std::vector<float> Pull(uint64_t id) const {
    std::vector<float> values(width_);
    EXPECT_OK(shards_[ShardOfRow(id, shards_.size())]->Pull(Bytes(&id), 1,
                                                            values.data()));
    return values;
  }

  // Takes the rows and counts of other shards.
  void Restore(const Shards& from) {
    for (const auto& table : from.shards_) {
      ASSERT_OK(table->TakeSnapshot().Drain([&](const RowBatch& batch) {
        const size_t floats =
            batch.ids.empty() ? 0 : batch.rows.size() / batch.ids.size();
        for (size_t i = 0; i < batch.ids.size(); ++i) {
          const absl::Status status =
              shards_[ShardOfRow(batch.ids[i], shards_.size())]->Insert(
                  {.updates = batch.updates,
                   .ids = batch.ids.subspan(i, 1),
                   .rows = batch.rows.subspan(i * floats, floats),
                   .touched = batch.touched.empty()
                                  ? batch.touched
                                  : batch.touched.subspan(i, 1)});
          if (!status.ok()) return status;
        }
        return absl::OkStatus();
      }));
      ASSERT_OK(table->TakeSnapshot().VisitCounts([&](const CountBatch& batch) {
        for (size_t i = 0; i < batch.ids.size(); ++i) {
          shards_[ShardOfRow(batch.ids[i], shards_.size())]->InsertCounts(
              {.ids = batch.ids.subspan(i, 1),
               .counts = batch.counts.subspan(i, 1),
               .touched = batch.touched.empty() ? batch.touched
                                                : batch.touched.subspan(i, 1)});
        }
        return absl::OkStatus();
      }));
    }
    for (const auto& table : shards_) {
      table->AdvanceTo(from.shards_[0]->updates());
      table->EndInsertions();
    }
  }

  // Rows as a checkpoint has them: the values, and one accumulator.
  std::map<uint64_t, std::vector<float>> Rows() const {
    std::map<uint64_t, std::vector<float>> rows;
    for (const auto& table : shards_) {
      EXPECT_OK(table->TakeSnapshot().Drain([&](const RowBatch& batch) {
        EXPECT_EQ(batch.rows.size(), batch.ids.size() * (width_ + 1));
        for (size_t i = 0; i < batch.ids.size(); ++i) {
          const auto row = batch.rows.subspan(i * (width_ + 1), width_ + 1);
          rows[batch.ids[i]] = {row.begin(), row.end()};
        }
        return absl::OkStatus();
      }));
    }
    return rows;
  }

 private:
  const size_t width_;
  std::vector<std::unique_ptr<RowTable>> shards_;
};

void RunSchedule(uint64_t seed) {
  std::mt19937_64 random(seed);
  constexpr size_t kWidths[] = {1, 2, 3, 8, 16, 17, 40};
  const size_t width = kWidths[random() % std::size(kWidths)];
  RowBounds bounds;
  if (random() % 2 == 0) bounds.min_count = 2 + random() % 3;
  if (random() % 2 == 0) bounds.idle_steps = 1 + random() % 8;
  Model model(bounds, width);
  auto shards = std::make_unique<Shards>(bounds, width, 1 + random() % 3);
  constexpr uint64_t kIds = 40;
  for (int step = 0; step < 40; ++step) {
    // Few ids often, so that some come twice in a push.
    std::vector<Pushed> push(random() % 12);
    for (Pushed& one : push) {
      one.id = random() % (1 + random() % kIds);
      one.gradient = DrawValues(width, random() % 1000);
    }
    model.Push(push);
    shards->Push(push);
    if (random() % 8 == 0) {
      auto others = std::make_unique<Shards>(bounds, width, 1 + random() % 4);
      others->Restore(*shards);
      shards = std::move(others);
    }
    // A pull would make the row of a table without bounds.
    for (uint64_t id = 0; bounds.any() && id < kIds; ++id) {
      ExpectNear(shards->Pull(id), model.Pull(id));
    }
    if (testing::Test::HasFatalFailure()) return;
  }
  // A checkpoint has rows that the next update finds gone.
  if (bounds.idle_steps > 0) return;
  const auto rows = shards->Rows();
  const auto want = model.Rows();
  ASSERT_EQ(rows.size(), want.size());
  for (const auto& [id, row] : want) {
    std::vector<double> elements = row.values;
    elements.push_back(row.accumulator);
    ExpectNear(rows.at(id), elements);
  }
}

TEST(RowwiseRowsTest, AreAsAScalarModelSays) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(seed);
    RunSchedule(seed);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace parasol
