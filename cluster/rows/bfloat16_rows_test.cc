// Tables whose values are kept in bfloat16, beside a model that rounds one
// value after the other.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "base/row_hash.h"
#include "base/status_matchers.h"
#include "base/work_helpers.h"
#include "cluster/placement/row_shard.h"
#include "cluster/rows/row_snapshot.h"
#include "cluster/rows/row_table.h"
#include "cluster/rows/widened_rows.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/compression/half_bits.h"
#include "ml/initializer/row_initializer.h"
#include "ml/optimizer/testing/update_cases.h"
#include "storage/shard_entry.h"

namespace parasol {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr uint64_t kSeed = 3;
constexpr char kName[] = "items";

job::Initializer Normal() {
  job::Initializer initializer;
  initializer.mutable_random_normal();
  return initializer;
}

struct Form {
  std::string optimizer = "sgd { learning_rate: 1 }";
  size_t width = 1;
  job::Initializer initializer = Normal();
  RowBounds bounds = {};
  job::SparseTable::Values values = job::SparseTable::BFLOAT16;
  std::shared_ptr<WorkHelpers> helpers = nullptr;
};

std::unique_ptr<const Optimizer> OptimizerOf(const Form& form) {
  return *MakeOptimizer(ParseOptimizer(form.optimizer));
}

std::unique_ptr<RowTable> TableOf(const Form& form) {
  return *RowTable::Create({.name = kName,
                            .width = form.width,
                            .initializer = form.initializer,
                            .seed = kSeed,
                            .helpers = form.helpers,
                            .bounds = form.bounds,
                            .values = form.values},
                           OptimizerOf(form));
}

float Nearest(float value) {
  return FloatFromBfloat16(Bfloat16FromFloat(value));
}

const std::byte* Bytes(const void* memory) {
  return static_cast<const std::byte*>(memory);
}

void PushTo(RowTable& table, const std::vector<uint64_t>& ids,
            const std::vector<float>& gradients) {
  EXPECT_OK(table.Push(Bytes(ids.data()), Bytes(gradients.data()), ids.size()));
}

std::vector<float> Pull(RowTable& table, const std::vector<uint64_t>& ids) {
  std::vector<float> values(ids.size() * table.width());
  EXPECT_OK(table.Pull(Bytes(ids.data()), ids.size(), values.data()));
  return values;
}

// Rows with slots, as a checkpoint has them.
using Rows = std::map<uint64_t, std::vector<float>>;

Rows RowsOf(const RowTable& table) {
  Rows rows;
  EXPECT_OK(table.TakeSnapshot().Drain([&](const RowBatch& batch) {
    const size_t floats =
        batch.ids.empty() ? 0 : batch.rows.size() / batch.ids.size();
    for (size_t i = 0; i < batch.ids.size(); ++i) {
      const auto row = batch.rows.subspan(i * floats, floats);
      rows[batch.ids[i]] = {row.begin(), row.end()};
    }
    return absl::OkStatus();
  }));
  return rows;
}

void RestoreTo(const Rows& rows, int64_t updates, RowTable& table) {
  for (const auto& [id, row] : rows) {
    EXPECT_OK(table.Insert({.updates = updates, .ids = {&id, 1}, .rows = row}));
  }
  table.EndInsertions();
  table.AdvanceTo(updates);
}

// The rules: a row's float32 elements, of which the values are rounded once
// they have been changed.
class Model {
 public:
  explicit Model(const Form& form)
      : form_(form),
        optimizer_(OptimizerOf(form)),
        initializer_(*RowInitializer::Create(form.initializer, kSeed, kName,
                                             form.width)) {}

  void Push(const std::vector<uint64_t>& ids,
            const std::vector<float>& gradients) {
    std::map<uint64_t, std::vector<float>> sums;
    for (size_t i = 0; i < ids.size(); ++i) {
      std::vector<float>& sum =
          sums.try_emplace(ids[i], std::vector<float>(form_.width))
              .first->second;
      for (size_t c = 0; c < form_.width; ++c) {
        sum[c] += gradients[i * form_.width + c];
      }
      if (form_.bounds.counts() && !rows_.contains(ids[i])) ++counts_[ids[i]];
    }
    for (const auto& [id, sum] : sums) {
      if (!form_.bounds.counts() || counts_[id] >= form_.bounds.min_count) {
        RowOf(id);
      }
    }
    for (auto& [id, row] : rows_) {
      float* const address = row.data();
      RowUpdate update = {.count = 1, .width = form_.width, .rows = &address};
      if (const auto sum = sums.find(id); sum != sums.end()) {
        update.gradients = Bytes(sum->second.data());
        optimizer_->ApplyRows(updates_, update);
      } else {
        optimizer_->ApplyOtherRows(updates_, update);
      }
      const uint64_t key =
          RoundingKeyOf(RoundingKeyOf(kSeed, kName), updates_, RowHash(id));
      for (size_t c = 0; c < form_.width; ++c) {
        row[c] =
            FloatFromBfloat16(Bfloat16FromFloat(row[c], RandomBitsOf(key, c)));
      }
    }
    ++updates_;
  }

  std::vector<float> Pull(uint64_t id) {
    if (form_.bounds.counts() && !rows_.contains(id)) return New(id);
    const std::vector<float>& row = RowOf(id);
    return {row.begin(), row.begin() + form_.width};
  }

  const Rows& rows() const { return rows_; }

 private:
  std::vector<float> New(uint64_t id) const {
    std::vector<float> values(form_.width);
    initializer_.Fill(id, values.data());
    std::transform(values.begin(), values.end(), values.begin(), Nearest);
    return values;
  }
  std::vector<float>& RowOf(uint64_t id) {
    std::vector<float>& row = rows_[id];
    if (row.empty()) {
      row = New(id);
      row.resize(optimizer_->FloatsOfRow(form_.width));
      optimizer_->FillSlots(form_.width, row.data());
    }
    return row;
  }

  const Form form_;
  const std::unique_ptr<const Optimizer> optimizer_;
  const RowInitializer initializer_;
  int64_t updates_ = 0;
  Rows rows_;
  std::map<uint64_t, int64_t> counts_;
};

// The shards of one table.
class Shards {
 public:
  Shards(const Form& form, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) tables_.push_back(TableOf(form));
  }

  RowTable& of(uint64_t id) { return *tables_[ShardOf(id)]; }

  void Push(const std::vector<uint64_t>& ids,
            const std::vector<float>& gradients) {
    const size_t width = tables_[0]->width();
    for (uint32_t shard = 0; shard < tables_.size(); ++shard) {
      std::vector<uint64_t> its_ids;
      std::vector<float> its_gradients;
      for (size_t i = 0; i < ids.size(); ++i) {
        if (ShardOf(ids[i]) != shard) continue;
        its_ids.push_back(ids[i]);
        its_gradients.insert(its_gradients.end(), gradients.begin() + i * width,
                             gradients.begin() + (i + 1) * width);
      }
      PushTo(*tables_[shard], its_ids, its_gradients);
    }
  }

  Rows rows() const {
    Rows rows;
    for (const auto& table : tables_) rows.merge(RowsOf(*table));
    return rows;
  }

  // Takes what others have.
  void Restore(const Shards& from) {
    for (const auto& [id, row] : from.rows()) {
      RestoreTo({{id, row}}, from.tables_[0]->updates(), of(id));
    }
    for (const auto& table : from.tables_) {
      EXPECT_OK(table->TakeSnapshot().VisitCounts([&](const CountBatch& batch) {
        for (size_t i = 0; i < batch.ids.size(); ++i) {
          of(batch.ids[i])
              .InsertCounts({.ids = batch.ids.subspan(i, 1),
                             .counts = batch.counts.subspan(i, 1)});
        }
        return absl::OkStatus();
      }));
    }
    for (const auto& table : tables_) {
      table->AdvanceTo(from.tables_[0]->updates());
    }
  }

 private:
  uint32_t ShardOf(uint64_t id) const { return ShardOfRow(id, tables_.size()); }

  std::vector<std::unique_ptr<RowTable>> tables_;
};

void RunSchedule(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto& optimizers = RowOptimizersWithBitsOfTheCpu();
  Form form = {.optimizer = optimizers[seed % optimizers.size()]};
  constexpr size_t kWidths[] = {1, 2, 3, 8, 15, 16, 33, 5000};
  form.width = kWidths[random() % std::size(kWidths)];
  if (random() % 2 == 0) form.bounds.min_count = 2 + random() % 3;
  Model model(form);
  auto shards = std::make_unique<Shards>(form, 1 + random() % 3);
  constexpr uint64_t kIds = 30;
  for (int step = 0; step < 20; ++step) {
    // Few ids often, so that some come twice in a push.
    std::vector<uint64_t> ids(random() % 10);
    for (uint64_t& id : ids) id = random() % (1 + random() % kIds);
    const std::vector<float> gradients =
        DrawValues(ids.size() * form.width, random());
    model.Push(ids, gradients);
    shards->Push(ids, gradients);
    for (int i = 0; i < 3; ++i) {
      const uint64_t id = random() % kIds;
      ASSERT_EQ(Pull(shards->of(id), {id}), model.Pull(id)) << "row " << id;
    }
    // A checkpoint, of which others go on.
    if (random() % 8 != 0) continue;
    auto others = std::make_unique<Shards>(form, 1 + random() % 4);
    others->Restore(*shards);
    shards = std::move(others);
  }
  EXPECT_TRUE(shards->rows() == model.rows());
}

TEST(Bfloat16RowsTest, AreAsAModelSaysThatRoundsValueByValue) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(seed);
    RunSchedule(seed);
    if (HasFailure()) return;
  }
}

// Of what each thread has, too.
TEST(Bfloat16RowsTest, HelpersAndPushPullsGiveTheSameBits) {
  constexpr size_t kRows = 4096;
  for (const std::string optimizer : {"adagrad {}", "adam {}"}) {
    SCOPED_TRACE(optimizer);
    Form form = {.optimizer = optimizer, .width = 32};
    const auto alone = TableOf(form);
    form.helpers = std::make_shared<WorkHelpers>(3);
    const auto shared = TableOf(form);
    std::mt19937_64 random(7);
    for (int step = 0; step < 3; ++step) {
      std::vector<uint64_t> ids(kRows);
      for (uint64_t& id : ids) id = random() % (2 * kRows);
      const std::vector<float> gradients =
          DrawValues(kRows * form.width, random());
      PushTo(*alone, ids, gradients);
      std::vector<float> values(gradients.size());
      ASSERT_OK(shared->Push(Bytes(ids.data()), Bytes(gradients.data()),
                             ids.size(), values.data()));
      ASSERT_TRUE(values == Pull(*alone, ids));
      ASSERT_TRUE(values == Pull(*shared, ids));
    }
  }
}

// A row that is not there is read as it would begin, by whoever reads it.
TEST(Bfloat16RowsTest, ANewRowHasTheValuesOfOneThatIsNotThere) {
  Form form = {.width = 5};
  const auto made = Pull(*TableOf(form), {7});
  form.bounds.min_count = 2;
  const auto bounded = TableOf(form);
  EXPECT_EQ(Pull(*bounded, {7}), made);
  EXPECT_EQ(bounded->rows(), 0u);
  std::vector<float> initial(form.width);
  RowInitializer::Create(Normal(), kSeed, kName, form.width, form.values)
      ->Fill(7, initial.data());
  EXPECT_EQ(initial, made);
}

// Pushes that take `step` of the distance from .9 away, 2,000 times.
double TrainTo(float step, job::SparseTable::Values values) {
  Form form = {.width = 8, .values = values};
  form.initializer.mutable_constant()->set_value(1);
  const auto table = TableOf(form);
  std::vector<uint64_t> ids(100);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = i * i;
  std::vector<float> now = Pull(*table, ids);
  for (int push = 0; push < 2000; ++push) {
    std::vector<float> gradients = now;
    for (float& gradient : gradients) gradient = step * (gradient - .9f);
    PushTo(*table, ids, gradients);
    now = Pull(*table, ids);
  }
  double sum = 0;
  for (const float value : now) sum += value;
  return sum / static_cast<double>(now.size());
}

// Neighbours of 1 are 1/256 below and 1/128 above.
TEST(Bfloat16RowsTest, SmallStepsAddUpWhereNearestValuesStayWhereTheyAre) {
  constexpr float kStep = .01f;
  EXPECT_EQ(Nearest(1 - kStep * (1 - .9f)), 1);
  EXPECT_NEAR(TrainTo(kStep, job::SparseTable::FLOAT32), .9, 1e-4);
  EXPECT_NEAR(TrainTo(kStep, job::SparseTable::BFLOAT16), .9, 1e-3);
}

// No step changes what the next one is: were the random bits the row's alone,
// or the result's, each value would stay for good, or go on at each step.
TEST(Bfloat16RowsTest, EachUpdateOfARowHasRandomBitsOfItsOwn) {
  constexpr int kPushes = 2000;
  Form form = {.width = 16};
  form.initializer.mutable_constant()->set_value(1);
  const auto table = TableOf(form);
  const std::vector<uint64_t> ids = {5, 6, 7, 8};
  // A sixteenth of the distance to the next value, up and down in turn: each
  // value is a walk of its own.
  for (int push = 0; push < kPushes; ++push) {
    const float step = (push % 2 == 0 ? 1 : -1) / 2048.f;
    PushTo(*table, ids, std::vector<float>(ids.size() * form.width, step));
  }
  const std::vector<float> values = Pull(*table, ids);
  std::map<float, int> found;
  double sum = 0;
  for (const float value : values) {
    ++found[value];
    sum += value;
  }
  EXPECT_GT(found.size(), 8u);
  // Nor have rows the same ones.
  const absl::Span<const float> all = values;
  EXPECT_NE(all.subspan(0, form.width), all.subspan(form.width, form.width));
  // 64 walks of 2,000 steps with a deviation of about .0014 each.
  EXPECT_NEAR(sum / static_cast<double>(values.size()), 1, .04);
}

TEST(Bfloat16RowsTest, WhatIsNoNumberStaysAndTheLargestOnesStayFinite) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kLargest = 0x1.fep127f;
  Form form = {.width = 5};
  form.initializer.mutable_zeros();
  const auto table = TableOf(form);
  const std::vector<float> gradients = {-kInfinity, kInfinity, kNan, -3.39e38f,
                                        3.39e38f};
  for (uint64_t id = 0; id < 100; ++id) PushTo(*table, {id}, gradients);
  for (uint64_t id = 0; id < 100; ++id) {
    const std::vector<float> values = Pull(*table, {id});
    EXPECT_THAT(values,
                ElementsAre(kInfinity, -kInfinity, testing::IsNan(),
                            testing::Le(kLargest), testing::Ge(-kLargest)));
    EXPECT_GT(values[3], 3e38f);
    EXPECT_LT(values[4], -3e38f);
  }
  const float largest = std::numeric_limits<float>::max();
  const auto at_the_end = TableOf(form);
  for (uint64_t id = 0; id < 100; ++id) {
    PushTo(*at_the_end, {id}, {-largest, largest, -largest, largest, 0});
  }
  for (uint64_t id = 0; id < 100; ++id) {
    EXPECT_THAT(Pull(*at_the_end, {id}),
                ElementsAre(kLargest, -kLargest, kLargest, -kLargest, 0));
  }
}

TEST(Bfloat16RowsTest, ACheckpointOfFloat32IsRoundedToNearestOnce) {
  const Form form = {.optimizer = "adagrad {}", .width = 3};
  const Rows saved = {{7, {1 + 0x1p-8f, 1 + 0x1p-9f, -.3f, .1f, .2f, .3f}}};
  const auto table = TableOf(form);
  RestoreTo(saved, 5, *table);
  // Slots are as they were.
  const Rows rounded = {{7, {1, 1, Nearest(-.3f), .1f, .2f, .3f}}};
  EXPECT_EQ(RowsOf(*table), rounded);
  // What has been rounded is read exactly, by either form of table.
  for (const auto values :
       {job::SparseTable::BFLOAT16, job::SparseTable::FLOAT32}) {
    Form other = form;
    other.values = values;
    const auto next = TableOf(other);
    RestoreTo(rounded, 5, *next);
    EXPECT_EQ(RowsOf(*next), rounded);
    EXPECT_EQ(Pull(*next, {7}), Pull(*table, {7}));
  }
}

TEST(Bfloat16RowsTest, ATableDoesNotGoOnWithValuesOfTheOtherForm) {
  Form form = {.width = 2};
  const auto table = TableOf(form);
  form.values = job::SparseTable::FLOAT32;
  const auto other = TableOf(form);
  const auto is_refused =
      StatusIs(absl::StatusCode::kInvalidArgument,
               "table items would have values of another form");
  EXPECT_THAT(table->TakeRulesOf(*other), is_refused);
  EXPECT_THAT(other->TakeRulesOf(*table), is_refused);
  EXPECT_OK(table->TakeRulesOf(*TableOf({.width = 2})));
}

TEST(Bfloat16RowsTest, ATableGoesOnWithTheSeedThatItIsGiven) {
  const Form form = {.width = 16};
  const auto with_seed = [&form](uint64_t seed) {
    return *RowTable::Create({.name = kName,
                              .width = form.width,
                              .initializer = form.initializer,
                              .seed = seed,
                              .values = form.values},
                             OptimizerOf(form));
  };
  const auto first = with_seed(1);
  const auto second = with_seed(2);
  RestoreTo({{7, std::vector<float>(form.width, 1)}}, 0, *first);
  RestoreTo({{7, std::vector<float>(form.width, 1)}}, 0, *second);
  ASSERT_OK(first->TakeRulesOf(*with_seed(2)));
  const std::vector<float> gradients(form.width, 1e-3f);
  PushTo(*first, {7}, gradients);
  PushTo(*second, {7}, gradients);
  EXPECT_EQ(Pull(*first, {7}), Pull(*second, {7}));
}

TEST(Bfloat16RowsTest, ValuesTakeHalfOfTheMemory) {
  const auto bytes = [](const std::string& optimizer, size_t width,
                        bool bfloat16) {
    const Form form = {.optimizer = optimizer, .width = width};
    return RowLayout(width, OptimizerOf(form)->FloatsOfRow(width),
                     /*timed=*/false, bfloat16)
        .row_bytes;
  };
  EXPECT_EQ(bytes("sgd {}", 16, false), 64u);
  EXPECT_EQ(bytes("sgd {}", 16, true), 32u);
  EXPECT_EQ(bytes("rowwise_adagrad {}", 16, false), 68u);
  EXPECT_EQ(bytes("rowwise_adagrad {}", 16, true), 36u);
  EXPECT_EQ(bytes("adagrad {}", 16, true), 96u);
  // Two values of an odd number have a word.
  EXPECT_EQ(bytes("sgd {}", 3, true), 8u);
  EXPECT_EQ(bytes("sgd {}", 1, true), 4u);
}

// What counts in --memory_limit_bytes is what is taken.
TEST(Bfloat16RowsTest, MemoryIsCountedAsItIsTaken) {
  std::vector<uint64_t> ids(500000);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = i;
  const auto bytes_of_row = [&ids](job::SparseTable::Values values) {
    const auto memory = std::make_shared<RowMemory>();
    const auto table =
        *RowTable::Create({.name = kName,
                           .width = 16,
                           .initializer = Normal(),
                           .memory = memory,
                           .values = values},
                          OptimizerOf({.optimizer = "rowwise_adagrad {}"}));
    Pull(*table, ids);
    // Blocks are filled to their ends, but for the last one of each stripe.
    EXPECT_NEAR(memory->taken_bytes(), table->memory_bytes(),
                .3 * table->memory_bytes());
    return static_cast<double>(memory->taken_bytes()) / ids.size();
  };
  EXPECT_NEAR(bytes_of_row(job::SparseTable::FLOAT32) -
                  bytes_of_row(job::SparseTable::BFLOAT16),
              32, 3);
}

}  // namespace
}  // namespace parasol
