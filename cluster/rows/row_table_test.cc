#include "cluster/rows/row_table.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/rows/row_memory.h"
#include "cluster/rows/row_snapshot.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/initializer/row_initializer.h"
#include "ml/optimizer/optimizer.h"
#include "ml/optimizer/testing/update_cases.h"
#include "storage/shard_entry.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// One row: its values and slots.
using Row = std::vector<float>;
using Rows = std::map<uint64_t, Row>;

struct Settings {
  std::string optimizer = "sgd { learning_rate: 1 }";
  size_t width = 2;
  std::string initializer = "random_uniform {}";
  size_t memory_limit_bytes = SIZE_MAX;
};

std::unique_ptr<const Optimizer> OptimizerOf(const std::string& textproto) {
  return *MakeOptimizer(ParseOptimizer(textproto));
}

RowTable::Options OptionsOf(const Settings& settings) {
  RowTable::Options options = {
      .name = "items",
      .width = settings.width,
      .seed = 3,
      .memory = std::make_shared<RowMemory>(settings.memory_limit_bytes)};
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      settings.initializer, &options.initializer));
  return options;
}

std::unique_ptr<RowTable> MakeTable(const Settings& settings) {
  auto table =
      RowTable::Create(OptionsOf(settings), OptimizerOf(settings.optimizer));
  EXPECT_OK(table);
  return *std::move(table);
}

const std::byte* Bytes(const void* memory) {
  return static_cast<const std::byte*>(memory);
}

absl::Status Push(RowTable& table, const std::vector<uint64_t>& ids,
                  const std::vector<float>& gradients) {
  EXPECT_EQ(gradients.size(), ids.size() * table.width());
  return table.Push(Bytes(ids.data()), Bytes(gradients.data()), ids.size());
}

std::vector<float> MustPull(RowTable& table, const std::vector<uint64_t>& ids) {
  std::vector<float> values(ids.size() * table.width());
  EXPECT_OK(table.Pull(Bytes(ids.data()), ids.size(), values.data()));
  return values;
}

Rows Drain(RowSnapshot snapshot) {
  Rows rows;
  const int64_t updates = snapshot.updates();
  EXPECT_OK(snapshot.Drain([&](const RowBatch& batch) {
    EXPECT_EQ(batch.updates, updates);
    const size_t floats =
        batch.ids.empty() ? 0 : batch.rows.size() / batch.ids.size();
    for (size_t i = 0; i < batch.ids.size(); ++i) {
      if (i > 0) {
        EXPECT_LT(batch.ids[i - 1], batch.ids[i]);
      }
      const auto row = batch.rows.subspan(i * floats, floats);
      EXPECT_TRUE(
          rows.emplace(batch.ids[i], Row(row.begin(), row.end())).second);
    }
    return absl::OkStatus();
  }));
  return rows;
}

// What a table should do, one row at a time.
class Oracle {
 public:
  explicit Oracle(const Settings& settings)
      : optimizer_(OptimizerOf(settings.optimizer)),
        width_(settings.width),
        initializer_(*RowInitializer::Create(OptionsOf(settings).initializer,
                                             OptionsOf(settings).seed, "items",
                                             settings.width)) {}

  std::vector<float> Pull(const std::vector<uint64_t>& ids) {
    std::vector<float> values;
    for (const uint64_t id : ids) {
      const Row& row = Find(id);
      values.insert(values.end(), row.begin(), row.begin() + width_);
    }
    return values;
  }

  void Push(const std::vector<uint64_t>& ids,
            const std::vector<float>& gradients) {
    std::map<uint64_t, Row> sums;
    for (size_t i = 0; i < ids.size(); ++i) {
      Row& sum = sums.try_emplace(ids[i], Row(width_)).first->second;
      for (size_t c = 0; c < width_; ++c) sum[c] += gradients[i * width_ + c];
      Find(ids[i]);
    }
    for (auto& [id, row] : rows_) {
      float* const place = row.data();
      const auto sum = sums.find(id);
      if (sum == sums.end()) {
        optimizer_->ApplyOtherRows(
            updates_, {.count = 1, .width = width_, .rows = &place});
      } else {
        optimizer_->ApplyRows(updates_, {.count = 1,
                                         .width = width_,
                                         .gradients = Bytes(sum->second.data()),
                                         .rows = &place});
      }
    }
    ++updates_;
  }

  const Rows& rows() const { return rows_; }

 private:
  Row& Find(uint64_t id) {
    const auto [row, is_new] = rows_.try_emplace(id);
    if (is_new) {
      row->second.resize(optimizer_->FloatsOfRow(width_));
      initializer_.Fill(id, row->second.data());
      optimizer_->FillSlots(width_, row->second.data());
    }
    return row->second;
  }

  const std::unique_ptr<const Optimizer> optimizer_;
  const size_t width_;
  const RowInitializer initializer_;
  int64_t updates_ = 0;
  Rows rows_;
};

constexpr const char* kOptimizers[] = {"sgd { learning_rate: .5 }",
                                       "adagrad {}",
                                       "adam {}",
                                       "adamw {}",
                                       "adam { amsgrad: true }",
                                       "rmsprop {}",
                                       "rmsprop { momentum: .9 }",
                                       "nadam {}",
                                       "lion { weight_decay: .1 }",
                                       "ftrl {}",
                                       "rowwise_adagrad {}"};

TEST(RowTableTest, ARowBeginsTheSameHoweverItIsTouched) {
  const Settings settings = {.optimizer = "adagrad {}", .width = 5};
  const std::vector<uint64_t> ids = {7, 0, UINT64_MAX};
  const auto pulled = MakeTable(settings);
  const auto pushed = MakeTable(settings);
  EXPECT_OK(Push(*pushed, {0, UINT64_MAX, 7}, std::vector<float>(15)));

  EXPECT_EQ(MustPull(*pulled, ids), MustPull(*pushed, ids));
  EXPECT_EQ(Drain(pulled->TakeSnapshot()), Drain(pushed->TakeSnapshot()));
  EXPECT_EQ(pulled->rows(), 3u);
  EXPECT_EQ(pulled->updates(), 0);
  EXPECT_EQ(pushed->updates(), 1);
}

TEST(RowTableTest, DuplicatesOfARequestAreOneUpdate) {
  const auto table = MakeTable({.optimizer = "adagrad { epsilon: 1e-30 "
                                             "initial_accumulator_value: 0 "
                                             "learning_rate: 1 }",
                                .width = 1,
                                .initializer = "zeros {}"});
  EXPECT_OK(Push(*table, {5, 6, 5, 5}, {1, 1, 1, 1}));
  // One update: 3 / sqrt(3²). Three would give 1 + 1/√2 + 1/√3.
  EXPECT_THAT(MustPull(*table, {5, 6, 5}), ElementsAre(-1, -1, -1));
}

TEST(RowTableTest, ARequestWithoutIdsCountsAsAnUpdate) {
  const auto table = MakeTable({});
  EXPECT_OK(table->Push(nullptr, nullptr, 0));
  EXPECT_OK(table->Pull(nullptr, 0, nullptr));
  EXPECT_EQ(table->updates(), 1);
  EXPECT_EQ(table->rows(), 0u);
}

TEST(RowTableTest, ArgumentsMayLieAnywhere) {
  const auto table = MakeTable({.width = 1, .initializer = "zeros {}"});
  std::vector<std::byte> bytes(32);
  const uint64_t ids[] = {1, UINT64_MAX};
  const float gradients[] = {2, 3};
  std::memcpy(bytes.data() + 3, ids, sizeof(ids));
  std::memcpy(bytes.data() + 21, gradients, sizeof(gradients));
  EXPECT_OK(table->Push(bytes.data() + 3, bytes.data() + 21, 2));
  EXPECT_THAT(MustPull(*table, {1, UINT64_MAX}), ElementsAre(-2, -3));
}

// Random requests with few and many ids, some twice, while the table grows and
// snapshots are open.
TEST(RowTableTest, DoesWhatAMapDoes) {
  for (const std::string optimizer : kOptimizers) {
    SCOPED_TRACE(optimizer);
    const Settings settings = {.optimizer = optimizer, .width = 3};
    const auto table = MakeTable(settings);
    Oracle oracle(settings);
    std::mt19937_64 random(1);
    std::optional<std::pair<RowSnapshot, Rows>> held;
    for (int step = 0; step < 60; ++step) {
      std::vector<uint64_t> ids(random() % 400);
      for (uint64_t& id : ids) id = random() % (10 + 100 * step) - 5;
      std::vector<float> gradients(3 * ids.size());
      for (float& gradient : gradients) gradient = random() % 1000 * 1e-3f;
      if (random() % 3 == 0) {
        EXPECT_EQ(MustPull(*table, ids), oracle.Pull(ids));
      } else {
        oracle.Push(ids, gradients);
        EXPECT_OK(Push(*table, ids, gradients));
      }
      if (held.has_value() && random() % 4 == 0) {
        ASSERT_EQ(Drain(std::move(held->first)), held->second);
        held.reset();
      }
      if (!held.has_value()) held.emplace(table->TakeSnapshot(), oracle.rows());
    }
    EXPECT_EQ(Drain(table->TakeSnapshot()), oracle.rows());
    EXPECT_GT(table->rows(), 2000u);
  }
}

TEST(RowTableTest, GrowsToManyRows) {
  const Settings settings = {.width = 1};
  const auto table = MakeTable(settings);
  Oracle oracle(settings);
  constexpr size_t kRows = 200000;
  std::vector<uint64_t> ids(kRows);
  for (size_t i = 0; i < kRows; ++i) ids[i] = i << 20;
  const std::vector<float> values = MustPull(*table, ids);
  EXPECT_EQ(table->rows(), kRows);
  EXPECT_EQ(values, oracle.Pull(ids));
  EXPECT_EQ(MustPull(*table, ids), values);
  EXPECT_EQ(table->rows(), kRows);
}

TEST(RowTableTest, ASnapshotStaysAsItWas) {
  const auto table = MakeTable({.optimizer = "adagrad {}", .width = 16});
  std::vector<uint64_t> ids(3000);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = i;
  EXPECT_OK(Push(*table, ids, std::vector<float>(16 * ids.size(), 1)));
  RowSnapshot snapshot = table->TakeSnapshot();
  RowSnapshot same = table->TakeSnapshot();

  for (uint64_t& id : ids) id += 1500;
  EXPECT_OK(Push(*table, ids, std::vector<float>(16 * ids.size(), 1)));
  EXPECT_EQ(snapshot.rows(), 3000u);
  EXPECT_EQ(snapshot.updates(), 1);
  const Rows rows = Drain(std::move(snapshot));
  EXPECT_EQ(rows.size(), 3000u);
  EXPECT_EQ(rows.begin()->first, 0u);
  EXPECT_EQ(rows.rbegin()->first, 2999u);
  EXPECT_EQ(rows, Drain(std::move(same)));
  EXPECT_EQ(Drain(table->TakeSnapshot()).size(), 4500u);
}

TEST(RowTableTest, ASnapshotOutlivesItsTable) {
  auto table = MakeTable({.width = 1, .initializer = "constant { value: 2 }"});
  MustPull(*table, {1, 2});
  RowSnapshot snapshot = table->TakeSnapshot();
  table.reset();
  EXPECT_EQ(Drain(std::move(snapshot)), (Rows{{1, {2}}, {2, {2}}}));
}

TEST(RowTableTest, WhatASnapshotCopiedIsUsedAgain) {
  const auto table = MakeTable({.width = 16});
  std::vector<uint64_t> ids(100000);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = i;
  const std::vector<float> gradients(16 * ids.size(), 1);
  EXPECT_OK(Push(*table, ids, gradients));
  size_t bytes_after_the_first = 0;
  for (int snapshots = 0; snapshots < 5; ++snapshots) {
    const RowSnapshot snapshot = table->TakeSnapshot();
    EXPECT_OK(Push(*table, ids, gradients));
    if (snapshots == 0) bytes_after_the_first = table->memory_bytes();
  }
  EXPECT_EQ(table->memory_bytes(), bytes_after_the_first);
}

TEST(RowTableTest, ASnapshotWithoutRowsStillTellsItsUpdates) {
  const auto table = MakeTable({});
  table->AdvanceTo(5);
  int batches = 0;
  EXPECT_OK(table->TakeSnapshot().Drain([&](const RowBatch& batch) {
    ++batches;
    EXPECT_EQ(batch.updates, 5);
    EXPECT_TRUE(batch.ids.empty());
    return absl::OkStatus();
  }));
  EXPECT_EQ(batches, 1);
}

TEST(RowTableTest, DrainingStopsAtAnError) {
  const auto table = MakeTable({});
  MustPull(*table, {1, 2, 3, 4, 5, 6, 7, 8});
  int batches = 0;
  EXPECT_THAT(table->TakeSnapshot().Drain([&](const RowBatch&) {
    ++batches;
    return absl::UnavailableError("disk");
  }),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(batches, 1);
}

TEST(RowTableTest, ARestoredTableGoesOnWithTheSameBits) {
  for (const std::string optimizer : kOptimizers) {
    SCOPED_TRACE(optimizer);
    const Settings settings = {.optimizer = optimizer, .width = 7};
    const auto table = MakeTable(settings);
    const auto restored = MakeTable(settings);
    std::vector<uint64_t> ids(2000);
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = i * i;
    const std::vector<float> gradients(7 * ids.size(), .5f);
    EXPECT_OK(Push(*table, ids, gradients));
    EXPECT_OK(table->TakeSnapshot().Drain(
        [&](const RowBatch& batch) { return restored->Insert(batch); }));
    EXPECT_EQ(restored->updates(), 1);
    EXPECT_EQ(restored->rows(), table->rows());

    ids.push_back(3);  // made after the restore
    const std::vector<float> more(7 * ids.size(), -.25f);
    EXPECT_OK(Push(*table, ids, more));
    EXPECT_OK(Push(*restored, ids, more));
    EXPECT_EQ(Drain(restored->TakeSnapshot()), Drain(table->TakeSnapshot()));
  }
}

TEST(RowTableTest, InsertRefusesWhatDoesNotFit) {
  const auto table = MakeTable({.width = 2});
  const std::vector<uint64_t> ids = {1, 2};
  const std::vector<float> rows = {1, 2, 3, 4};
  EXPECT_THAT(table->Insert({.ids = ids, .rows = {1, 2, 3}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("float32 can't be in an array of 3")));
  EXPECT_OK(table->Insert({.updates = 9, .ids = ids, .rows = rows}));
  EXPECT_EQ(table->updates(), 9);
  EXPECT_THAT(table->Insert({.ids = {2}, .rows = {1, 2}}),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       HasSubstr("table items: row 2")));
}

TEST(RowTableTest, UpdatesOnlyAdvance) {
  const auto table = MakeTable({});
  table->AdvanceTo(7);
  table->AdvanceTo(3);
  EXPECT_EQ(table->updates(), 7);
}

TEST(RowTableTest, OverTheMemoryLimitRowsThatAreThereStillWork) {
  const auto table = MakeTable(
      {.width = 16, .initializer = "zeros {}", .memory_limit_bytes = 4 << 20});
  std::vector<uint64_t> ids(1000);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = i;
  MustPull(*table, ids);
  uint64_t next = ids.size();
  absl::Status full;
  while (full.ok() && next < 100000) {
    for (uint64_t& id : ids) id = next++;
    full = Push(*table, ids, std::vector<float>(16 * ids.size(), 1));
  }
  EXPECT_THAT(full, StatusIs(absl::StatusCode::kResourceExhausted,
                             HasSubstr("table items: 1000 more rows")));
  const size_t rows = table->rows();
  EXPECT_EQ(rows, next - ids.size());
  EXPECT_EQ(table->updates(), static_cast<int64_t>(rows / 1000) - 1);
  EXPECT_LT(table->memory_bytes(), size_t{5} << 20);

  for (uint64_t& id : ids) id %= rows;
  EXPECT_OK(Push(*table, ids, std::vector<float>(16 * ids.size(), 1)));
  EXPECT_EQ(table->rows(), rows);
}

TEST(RowTableTest, ASnapshotThatIsWrittenWhileRowsChangeMakesNoTableFull) {
  const auto table = MakeTable({.width = 16, .memory_limit_bytes = 10 << 20});
  std::vector<uint64_t> ids(60000);
  std::iota(ids.begin(), ids.end(), 0);
  const std::vector<float> gradients(16 * ids.size(), 1);
  ASSERT_OK(Push(*table, ids, gradients));
  {
    const RowSnapshot snapshot = table->TakeSnapshot();
    ASSERT_OK(Push(*table, ids, gradients));
  }
  EXPECT_GT(table->memory_bytes(), size_t{10} << 20);
  EXPECT_OK(Push(*table, {1000000}, std::vector<float>(16, 1)));
}

TEST(RowTableTest, TablesOfOneShardHaveTheirLimitTogether) {
  RowTable::Options options =
      OptionsOf({.width = 16, .memory_limit_bytes = 8 << 20});
  const auto first = *RowTable::Create(options, OptimizerOf("sgd {}"));
  const auto second = *RowTable::Create(options, OptimizerOf("sgd {}"));
  std::vector<uint64_t> ids(50000);
  std::iota(ids.begin(), ids.end(), 0);
  MustPull(*first, ids);
  EXPECT_THAT(Push(*second, ids, std::vector<float>(16 * ids.size())),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(second->rows(), 0u);
}

TEST(RowTableTest, OptionsOutOfRangeAreNamed) {
  EXPECT_THAT(RowTable::Create(OptionsOf({.width = 0}), OptimizerOf("sgd {}")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("table items: its width is 0")));
  EXPECT_THAT(
      RowTable::Create(OptionsOf({.initializer = ""}), OptimizerOf("sgd {}")),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("initializer of items: no initializer is chosen")));
}

// Each push adds 1 to all values of its rows: whole numbers tell whether an
// update was lost or half seen.
TEST(RowTableTest, ConcurrentRequestsLoseNothing) {
  constexpr size_t kWidth = 16;
  constexpr uint64_t kIds = 5000;
  constexpr int kWorkers = 3;
  constexpr int kPushes = 30;
  const auto table = MakeTable({.optimizer = "sgd { learning_rate: 1 }",
                                .width = kWidth,
                                .initializer = "zeros {}"});
  const auto check_whole = [](const float* row) {
    for (size_t c = 1; c < kWidth; ++c) {
      if (row[c] != row[0]) return false;
    }
    return true;
  };
  std::atomic<bool> done = false;
  std::vector<std::thread> workers;
  for (int w = 0; w < kWorkers; ++w) {
    workers.emplace_back([&, w] {
      std::mt19937_64 random(w);
      std::vector<uint64_t> ids(500);
      const std::vector<float> gradients(kWidth * ids.size(), -1);
      for (int push = 0; push < kPushes; ++push) {
        for (uint64_t& id : ids) id = random() % kIds;
        EXPECT_OK(Push(*table, ids, gradients));
        const std::vector<float> values = MustPull(*table, ids);
        for (size_t i = 0; i < ids.size(); ++i) {
          EXPECT_TRUE(check_whole(&values[i * kWidth]));
        }
      }
    });
  }
  // Every push is in a snapshot wholly or not at all.
  std::thread snapshots([&] {
    while (!done.load()) {
      RowSnapshot snapshot = table->TakeSnapshot();
      const double updates = snapshot.updates();
      double sum = 0;
      for (const auto& [id, row] : Drain(std::move(snapshot))) {
        EXPECT_TRUE(check_whole(row.data()));
        sum += row[0];
      }
      EXPECT_EQ(sum, updates * 500);
    }
  });
  for (std::thread& worker : workers) worker.join();
  done.store(true);
  snapshots.join();
  EXPECT_EQ(table->updates(), kWorkers * kPushes);
  double sum = 0;
  for (const auto& [id, row] : Drain(table->TakeSnapshot())) sum += row[0];
  EXPECT_EQ(sum, kWorkers * kPushes * 500);
}

}  // namespace
}  // namespace parasol
