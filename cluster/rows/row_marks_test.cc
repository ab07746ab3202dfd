#include "cluster/rows/row_marks.h"

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "base/row_hash.h"
#include "base/status_matchers.h"
#include "cluster/rows/row_snapshot.h"
#include "cluster/rows/row_table.h"
#include "gtest/gtest.h"
#include "ml/optimizer/optimizer.h"
#include "ml/optimizer/testing/update_cases.h"

namespace parasol {
namespace {

using Rows = std::map<uint64_t, std::vector<float>>;

std::unique_ptr<RowTable> MakeMarkedTable(
    const std::string& optimizer = "adagrad { learning_rate: 1 }",
    size_t width = 2) {
  RowTable::Options options = {.name = "items", .width = width, .seed = 3};
  options.initializer.mutable_random_normal();
  return *RowTable::Create(options, *MakeOptimizer(ParseOptimizer(optimizer)));
}

void PushTo(RowTable& table, const std::vector<uint64_t>& ids) {
  const std::vector<float> gradients(ids.size() * table.width(), .1f);
  EXPECT_OK(table.Push(reinterpret_cast<const std::byte*>(ids.data()),
                       reinterpret_cast<const std::byte*>(gradients.data()),
                       ids.size()));
}

void PullFrom(RowTable& table, const std::vector<uint64_t>& ids) {
  std::vector<float> values(ids.size() * table.width());
  EXPECT_OK(table.Pull(reinterpret_cast<const std::byte*>(ids.data()),
                       ids.size(), values.data()));
}

// Puts the snapshot's rows in the place of older ones.
void PutInto(Rows& rows, RowSnapshot snapshot) {
  EXPECT_OK(snapshot.Drain([&rows](const RowBatch& batch) {
    for (size_t i = 0; i < batch.ids.size(); ++i) {
      if (i > 0) {
        EXPECT_LT(batch.ids[i - 1], batch.ids[i]);
      }
      const size_t floats = batch.rows.size() / batch.ids.size();
      const auto row = batch.rows.subspan(i * floats, floats);
      rows[batch.ids[i]].assign(row.begin(), row.end());
    }
    return absl::OkStatus();
  }));
}

std::set<uint64_t> IdsOf(RowSnapshot snapshot) {
  Rows rows;
  PutInto(rows, std::move(snapshot));
  std::set<uint64_t> ids;
  for (const auto& [id, row] : rows) ids.insert(id);
  return ids;
}

std::vector<uint64_t> IdsTo(uint64_t end) {
  std::vector<uint64_t> ids(end);
  for (uint64_t id = 0; id < end; ++id) ids[id] = id;
  return ids;
}

TEST(RowMarksTest, ASnapshotHasWhatWasPushedOrMadeSinceAnother) {
  const auto table = MakeMarkedTable();
  PushTo(*table, IdsTo(1000));
  EXPECT_EQ(IdsOf(table->TakeSnapshot({.number = 1})).size(), 1000u);
  PushTo(*table, {5, 7, 2000});
  PullFrom(*table, {8, 3000});
  const RowSnapshot snapshot = table->TakeSnapshot({.number = 2, .since = 1});
  EXPECT_EQ(snapshot.rows(), 4u);
  EXPECT_EQ(IdsOf(snapshot), (std::set<uint64_t>{5, 7, 2000, 3000}));
  EXPECT_EQ(IdsOf(table->TakeSnapshot({.number = 3, .since = 2})),
            (std::set<uint64_t>{}));
}

TEST(RowMarksTest, OfASnapshotThatFailedNothingIsLost) {
  const auto table = MakeMarkedTable();
  PushTo(*table, IdsTo(1000));
  table->TakeSnapshot({.number = 1});
  for (uint64_t number = 2; number < 6; ++number) {
    PushTo(*table, {number});
    // The one before is of no checkpoint.
    std::set<uint64_t> ids;
    for (uint64_t id = 2; id <= number; ++id) ids.insert(id);
    EXPECT_EQ(IdsOf(table->TakeSnapshot({.number = number, .since = 1})), ids);
  }
  PushTo(*table, {100});
  EXPECT_EQ(IdsOf(table->TakeSnapshot({.number = 6, .since = 5})),
            (std::set<uint64_t>{100}));
}

TEST(RowMarksTest, WithoutKnowledgeOfTheOtherSnapshotAllRowsAreThere) {
  const auto table = MakeMarkedTable();
  PushTo(*table, IdsTo(10));
  EXPECT_FALSE(table->Marks(0));
  EXPECT_FALSE(table->Marks(1));
  EXPECT_EQ(IdsOf(table->TakeSnapshot({.number = 2, .since = 1})).size(), 10u);
  EXPECT_TRUE(table->Marks(2));
  table->TakeSnapshot({.number = 3, .since = 2});
  EXPECT_TRUE(table->Marks(2));
  table->TakeSnapshot({.number = 4, .since = 3});
  EXPECT_FALSE(table->Marks(2));
  EXPECT_EQ(IdsOf(table->TakeSnapshot({.number = 5, .since = 2})).size(), 10u);
  // A snapshot for another purpose leaves the marks as they are.
  PushTo(*table, {3});
  table->TakeSnapshot();
  EXPECT_EQ(IdsOf(table->TakeSnapshot({.number = 6, .since = 5})),
            (std::set<uint64_t>{3}));
}

TEST(RowMarksTest, AnOptimizerThatMovesAllRowsMarksThem) {
  const auto table = MakeMarkedTable("adam {}");
  PushTo(*table, IdsTo(1000));
  table->TakeSnapshot({.number = 1});
  PushTo(*table, {5});
  EXPECT_EQ(table->TakeSnapshot({.number = 2, .since = 1}).rows(), 1000u);
}

TEST(RowMarksTest, BlocksWithoutChangesAreNotShared) {
  const auto table = MakeMarkedTable();
  PushTo(*table, IdsTo(100'000));
  IdsOf(table->TakeSnapshot({.number = 1}));
  PushTo(*table, {5});
  const size_t bytes = table->memory_bytes();
  const RowSnapshot snapshot = table->TakeSnapshot({.number = 2, .since = 1});
  PushTo(*table, IdsTo(100'000));
  // One block was copied.
  EXPECT_LE(table->memory_bytes(), bytes + (64 << 10));
  EXPECT_EQ(snapshot.rows(), 1u);
}

// Random pushes and pulls, and snapshots of which some fail: what a reader puts
// together of those that did not is the table.
TEST(RowMarksTest, ChainsOfSnapshotsAreTheTable) {
  // Blocks of many rows, of few, and of one.
  for (const size_t width : {1, 40, 3000}) {
    const auto table = MakeMarkedTable("adagrad { learning_rate: 1 }", width);
    std::mt19937_64 random(width);
    Rows saved;
    uint64_t since = 0;
    for (uint64_t number = 1; number < 60; ++number) {
      std::set<uint64_t> ids;
      for (uint64_t i = random() % 20; i > 0; --i) ids.insert(random() % 500);
      const std::vector<uint64_t> touched(ids.begin(), ids.end());
      random() % 3 == 0 ? PullFrom(*table, touched) : PushTo(*table, touched);
      Rows rows = saved;
      PutInto(rows, table->TakeSnapshot({.number = number, .since = since}));
      Rows expected;
      PutInto(expected, table->TakeSnapshot());
      EXPECT_EQ(rows, expected) << number << " since " << since;
      if (random() % 3 == 0) continue;  // the checkpoint failed
      saved = std::move(rows);
      since = number;
    }
  }
}

// Ids of the first stripe, which has one bound on its marks.
std::vector<uint64_t> IdsOfAStripe(uint64_t end) {
  std::vector<uint64_t> ids(end);
  for (uint64_t i = 0; i < end; ++i) ids[i] = RowIdOf(i + 1);
  return ids;
}

// A row goes when two pushes have not touched it.
std::unique_ptr<RowTable> MakeForgetfulTable() {
  RowTable::Options options = {.name = "items", .width = 1, .seed = 3};
  options.initializer.mutable_random_normal();
  options.bounds.idle_steps = 1;
  return *RowTable::Create(options, *MakeOptimizer(ParseOptimizer("sgd {}")));
}

std::set<uint64_t> RemovedIn(const RowSnapshot& snapshot) {
  return {snapshot.removed().begin(), snapshot.removed().end()};
}

TEST(RowMarksTest, OfASnapshotThatFailedNoRemovedIdIsLost) {
  const auto table = MakeForgetfulTable();
  PushTo(*table, {1, 2, 3});
  table->TakeSnapshot({.number = 1});
  PushTo(*table, {3});
  PushTo(*table, {3});
  const RowSnapshot failed = table->TakeSnapshot({.number = 2, .since = 1});
  EXPECT_EQ(RemovedIn(failed), (std::set<uint64_t>{1, 2}));
  PushTo(*table, {1});
  PushTo(*table, {1});
  const RowSnapshot next = table->TakeSnapshot({.number = 3, .since = 1});
  EXPECT_EQ(RemovedIn(next), (std::set<uint64_t>{1, 2, 3}));
  EXPECT_EQ(IdsOf(next), (std::set<uint64_t>{1}));
  // Of one that did not fail nothing is said again.
  PushTo(*table, {1});
  EXPECT_EQ(RemovedIn(table->TakeSnapshot({.number = 4, .since = 3})),
            (std::set<uint64_t>{}));
}

TEST(RowMarksTest, WhenTooManyRowsHaveGoneTheNextSnapshotIsWhole) {
  const auto table = MakeForgetfulTable();
  const std::vector<uint64_t> ids = IdsOfAStripe(9000);
  PushTo(*table, ids);
  table->TakeSnapshot({.number = 1});
  // Each push frees 1,024 of those that have gone.
  for (int i = 0; i < 7; ++i) PushTo(*table, {7});
  EXPECT_TRUE(table->Marks(1));
  for (int i = 0; i < 3; ++i) PushTo(*table, {7});
  EXPECT_FALSE(table->Marks(1));
  const RowSnapshot whole = table->TakeSnapshot({.number = 2});
  EXPECT_TRUE(whole.is_complete());
  EXPECT_EQ(IdsOf(whole), (std::set<uint64_t>{7}));
  // From there on changes are kept again.
  EXPECT_TRUE(table->Marks(2));
  PushTo(*table, {8});
  const RowSnapshot next = table->TakeSnapshot({.number = 3, .since = 2});
  EXPECT_TRUE(next.is_complete());
  EXPECT_EQ(IdsOf(next), (std::set<uint64_t>{8}));
}

TEST(RowMarksTest, ASnapshotThatLosesTheMarksItselfIsNotComplete) {
  const auto table = MakeForgetfulTable();
  PushTo(*table, IdsOfAStripe(9000));
  table->TakeSnapshot({.number = 1});
  PushTo(*table, {7});
  PushTo(*table, {7});
  ASSERT_TRUE(table->Marks(1));
  // It frees all rows that have gone.
  EXPECT_FALSE(table->TakeSnapshot({.number = 2, .since = 1}).is_complete());
  EXPECT_FALSE(table->Marks(1));
  EXPECT_FALSE(table->Marks(2));
  // Another one to which it would be compared knows no more.
  EXPECT_FALSE(table->TakeSnapshot({.number = 3, .since = 2}).is_complete());
  EXPECT_TRUE(table->TakeSnapshot().is_complete());
  EXPECT_TRUE(table->TakeSnapshot({.number = 4}).is_complete());
  EXPECT_TRUE(table->Marks(4));
}

TEST(RowMarksTest, RowsThatHaveGoneAreCountedBeforeASnapshot) {
  const auto table = MakeForgetfulTable();
  PushTo(*table, IdsOfAStripe(9000));
  table->TakeSnapshot({.number = 1});
  PushTo(*table, {7});
  PushTo(*table, {7});
  ASSERT_TRUE(table->Marks(1));
  EXPECT_FALSE(table->Marks(1, /*frees_expired=*/true));
  EXPECT_EQ(table->rows(), 1u);
  const RowSnapshot whole = table->TakeSnapshot({.number = 2});
  EXPECT_TRUE(whole.is_complete());
  EXPECT_EQ(IdsOf(whole), (std::set<uint64_t>{7}));
  // Of few rows it is said that they have gone.
  PushTo(*table, {7, 8, 9});
  for (int i = 0; i < 2; ++i) PushTo(*table, {7});
  EXPECT_TRUE(table->Marks(2, /*frees_expired=*/true));
  const RowSnapshot next = table->TakeSnapshot({.number = 3, .since = 2});
  EXPECT_TRUE(next.is_complete());
  EXPECT_EQ(IdsOf(next), (std::set<uint64_t>{7}));
  EXPECT_EQ(RemovedIn(next), (std::set<uint64_t>{8, 9}));
}

TEST(RowMarksTest, AsManyRowsMayGoAsThereAreAndSomeMore) {
  RowMarks marks;
  marks.Restart();
  constexpr size_t kRows = 10;
  for (uint64_t id = 0; id < kRows + RowMarks::kFreeRemoved; ++id) {
    ASSERT_FALSE(marks.is_lost()) << id;
    marks.MarkRemoved(id, kRows);
    // What was returned counts as well: the next snapshot may need it.
    if (id % 1000 == 7) marks.TakeSinceOlder();
  }
  EXPECT_FALSE(marks.is_lost());
  marks.MarkRemoved(1, kRows);
  EXPECT_TRUE(marks.is_lost());
  EXPECT_FALSE(marks.is_on());
  EXPECT_TRUE(marks.removed().empty());
  marks.Restart();
  EXPECT_TRUE(marks.is_on());
  EXPECT_FALSE(marks.is_lost());
}

TEST(RowMarksTest, CountsAgreeWithBits) {
  std::mt19937_64 random(1);
  RowSet rows(4);
  for (uint64_t& word : rows) word = random() & random();
  for (uint32_t first = 0; first < 300; first += 7) {
    for (uint32_t count = 0; count < 300; count += 11) {
      uint32_t expected = 0;
      for (uint32_t i = 0; i < count; ++i)
        expected += Contains(rows, first + i);
      EXPECT_EQ(CountIn(rows, first, count), expected) << first << " " << count;
    }
  }
}

}  // namespace
}  // namespace parasol
