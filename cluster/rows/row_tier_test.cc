// Tables with a tier beside tables without one: whatever is in memory and on
// the disk, both give the same bits.
#include "cluster/rows/row_tier.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/row_hash.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "cluster/rows/row_sample.h"
#include "cluster/rows/row_snapshot.h"
#include "cluster/rows/row_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/optimizer/testing/update_cases.h"
#include "storage/tier/testing/memory_tier_file.h"
#include "storage/tier/tier_file.h"

ABSL_FLAG(uint64_t, schedules, 250, "How many random schedules to try.");
ABSL_FLAG(uint64_t, first_seed, 1, "Seed of the first one.");

namespace parasol {
namespace {

using ::testing::HasSubstr;
using ::testing::TempDir;

constexpr size_t kWidth = 3;

struct RowOfCut {
  std::vector<float> elements;
  int64_t touched = 0;

  bool operator==(const RowOfCut&) const = default;
};

// What a checkpoint of a table has, or an increment.
struct Cut {
  int64_t updates = 0;
  std::map<uint64_t, RowOfCut> rows = {};
  std::set<uint64_t> removed = {};
  std::map<uint64_t, std::pair<uint32_t, int64_t>> counts = {};

  bool operator==(const Cut&) const = default;

  // Goes on to a later cut, of which an increment is there.
  void Apply(const Cut& increment) {
    updates = increment.updates;
    for (const uint64_t id : increment.removed) rows.erase(id);
    for (const auto& [id, row] : increment.rows) rows[id] = row;
    counts = increment.counts;
  }
};

absl::StatusOr<Cut> CutOf(RowSnapshot snapshot) {
  Cut cut = {.updates = snapshot.updates()};
  cut.removed.insert(snapshot.removed().begin(), snapshot.removed().end());
  RETURN_IF_ERROR(snapshot.Drain([&cut](const RowBatch& batch) {
    EXPECT_EQ(batch.updates, cut.updates);
    EXPECT_TRUE(std::is_sorted(batch.ids.begin(), batch.ids.end()));
    const size_t floats =
        batch.ids.empty() ? 0 : batch.rows.size() / batch.ids.size();
    for (size_t i = 0; i < batch.ids.size(); ++i) {
      const auto row = batch.rows.subspan(i * floats, floats);
      RowOfCut& to = cut.rows[batch.ids[i]];
      EXPECT_TRUE(to.elements.empty()) << "row " << batch.ids[i] << " twice";
      to.elements.assign(row.begin(), row.end());
      if (!batch.touched.empty()) to.touched = batch.touched[i];
    }
    return absl::OkStatus();
  }));
  RETURN_IF_ERROR(snapshot.VisitCounts([&cut](const CountBatch& batch) {
    for (size_t i = 0; i < batch.ids.size(); ++i) {
      cut.counts[batch.ids[i]] = {batch.counts[i],
                                  batch.touched.empty() ? 0 : batch.touched[i]};
    }
    return absl::OkStatus();
  }));
  return cut;
}

void Restore(const Cut& cut, int64_t at_most, RowTable& table) {
  RowBatch batch = {.updates = cut.updates};
  std::vector<uint64_t> ids;
  std::vector<float> rows;
  std::vector<int64_t> touched;
  const auto insert = [&] {
    batch.ids = ids;
    batch.rows = rows;
    batch.touched = touched;
    EXPECT_OK(table.Insert(batch));
    ids.clear();
    rows.clear();
    touched.clear();
  };
  for (const auto& [id, row] : cut.rows) {
    ids.push_back(id);
    rows.insert(rows.end(), row.elements.begin(), row.elements.end());
    touched.push_back(row.touched);
    if (ids.size() == 50) insert();
  }
  insert();
  for (const auto& [id, count] : cut.counts) {
    table.InsertCounts({.ids = {&id, 1},
                        .counts = {&count.first, 1},
                        .touched = {&count.second, 1}});
  }
  table.EndInsertions();
  table.CountAtMost(at_most);
}

struct TableForm {
  std::string optimizer = "adagrad { learning_rate: .5 }";
  RowBounds bounds = {};
  size_t width = kWidth;
  job::SparseTable::Values values = job::SparseTable::FLOAT32;
};

RowTable::Options OptionsOf(const TableForm& form) {
  RowTable::Options options = {.name = "clicks",
                               .width = form.width,
                               .seed = 3,
                               .bounds = form.bounds,
                               .values = form.values};
  options.initializer.mutable_random_normal();
  return options;
}

std::unique_ptr<RowTable> Plain(const TableForm& form) {
  return *RowTable::Create(OptionsOf(form),
                           *MakeOptimizer(ParseOptimizer(form.optimizer)));
}

// Returns a tier that has `rows` rows of each stripe in memory, and
// `segment_rows` rows of that form in a segment.
RowTierOptions TierOf(const TableForm& form, std::shared_ptr<TierFile> file,
                      size_t rows, size_t segment_rows) {
  const auto optimizer = *MakeOptimizer(ParseOptimizer(form.optimizer));
  const RowLayout layout(form.width, optimizer->FloatsOfRow(form.width),
                         form.bounds.times(),
                         form.values == job::SparseTable::BFLOAT16);
  const LogRecordFormat format = {.floats = layout.words,
                                  .timed = layout.timed};
  RowTierOptions tier = {.file = std::move(file),
                         .segment_bytes = segment_rows * format.record_bytes(),
                         .give_work = [](std::function<bool()>) {}};
  tier.memory_bytes = RowTier::LeastMemoryBytes(tier, layout) +
                      (rows - 1) * kRowStripes * RowRules::BytesPerRow(layout);
  return tier;
}

std::unique_ptr<RowTable> Tiered(const TableForm& form, RowTierOptions tier) {
  RowTable::Options options = OptionsOf(form);
  options.tier = std::move(tier);
  return *RowTable::Create(std::move(options),
                           *MakeOptimizer(ParseOptimizer(form.optimizer)));
}

const std::byte* BytesOf(const void* data) {
  return static_cast<const std::byte*>(data);
}

absl::StatusOr<std::vector<float>> PullOf(RowTable& table,
                                          const std::vector<uint64_t>& ids) {
  std::vector<float> values(ids.size() * table.width());
  RETURN_IF_ERROR(table.Pull(BytesOf(ids.data()), ids.size(), values.data()));
  return values;
}

struct PushCase {
  std::vector<uint64_t> ids = {};
  std::vector<float> gradients = {};
  std::vector<uint32_t> counts = {};
};

absl::StatusOr<std::vector<float>> PushTo(RowTable& table,
                                          const PushCase& push) {
  std::vector<float> values(push.ids.size() * table.width());
  RETURN_IF_ERROR(table.Push(BytesOf(push.ids.data()),
                             BytesOf(push.gradients.data()), push.ids.size(),
                             values.data(), BytesOf(push.counts.data())));
  return values;
}

// One schedule of calls to a table with a tier and to one without.
class Schedule {
 public:
  explicit Schedule(uint64_t seed, std::shared_ptr<TierFile> file = nullptr)
      : random_(seed), real_file_(std::move(file)) {
    DrawForm();
    Start();
  }

  void Run(int steps) {
    for (int i = 0; i < steps && !HasFailure(); ++i) Step();
    if (HasFailure()) return;
    disk_->SetCapacity(UINT64_MAX);
    Compare(*CutOf(plain_->TakeSnapshot()), tiered_->TakeSnapshot());
    EXPECT_EQ(plain_->rows(), tiered_->rows());
    EXPECT_EQ(plain_->totals().dropped_gradients.load(),
              tiered_->totals().dropped_gradients.load());
    EXPECT_EQ(plain_->totals().evicted_rows.load(),
              tiered_->totals().evicted_rows.load());
    if (real_file_ == nullptr && Draw(2) == 0) LoseARow();
  }

  int64_t disk_reads() const { return disk_reads_; }

 private:
  static bool HasFailure() { return ::testing::Test::HasFailure(); }
  uint64_t Draw(uint64_t below) { return random_() % below; }

  void DrawForm() {
    static const char* const kOptimizers[] = {
        "sgd { learning_rate: .5 }", "adagrad { learning_rate: .5 }",
        "lazy_adam { learning_rate: .5 }",
        "rowwise_adagrad { learning_rate: .5 }"};
    form_.optimizer = kOptimizers[Draw(std::size(kOptimizers))];
    form_.width = 1 + Draw(4);
    if (Draw(2) == 0) form_.values = job::SparseTable::BFLOAT16;
    if (Draw(2) == 0) form_.bounds.min_count = 2 + Draw(4);
    if (Draw(2) == 0) form_.bounds.idle_steps = 1 + Draw(30);
    if (Draw(2) == 0) form_.bounds.max_rows = kRowStripes * (1 + Draw(6));
    ids_ = 1 + Draw(1500);
  }

  RowTierOptions DrawTier() {
    disk_ = std::make_shared<MemoryTierFile>();
    RowTierOptions tier =
        TierOf(form_, real_file_ == nullptr ? disk_ : real_file_, 1 + Draw(3),
               1 + Draw(20));
    tier.give_work = [this](std::function<bool()> work) {
      work_ = std::move(work);
    };
    tier.on_failure = [this](const absl::Status&) { ++failures_; };
    return tier;
  }

  void Start() {
    snapshot_.reset();
    chain_.reset();
    plain_ = Plain(form_);
    if (tiered_ != nullptr) {
      disk_reads_ += tiered_->totals().disk_reads.load();
    }
    tiered_ = Tiered(form_, DrawTier());
  }

  std::vector<uint64_t> DrawIds() {
    std::vector<uint64_t> ids(Draw(4) == 0 ? Draw(300) : Draw(20));
    // Few ids often.
    for (uint64_t& id : ids) id = Draw(1 + Draw(ids_));
    return ids;
  }

  void Step() {
    switch (Draw(24)) {
      case 0:
        return TakeSnapshot();
      case 1:
        if (snapshot_.has_value()) {
          Compare(of_snapshot_, *std::move(snapshot_));
          snapshot_.reset();
        }
        return;
      case 2:
      case 3:
        return TakeMarkedSnapshot();
      case 4:
        if (Draw(10) == 0) Reload();
        return;
      case 5:
        return TakeSample();
      case 6:
        if (Draw(4) == 0) ChangeRules();
        return;
      case 7:
        // Full, or nearly so.
        disk_->SetCapacity(Draw(3) == 0 ? Draw(20) * 4096 : UINT64_MAX);
        return;
      case 8:
      case 9:
      case 10:
      case 11:
        for (uint64_t i = Draw(8); i > 0; --i) work_();
        return;
      case 12:
      case 13:
      case 14:
      case 15:
        return Pull();
      default:
        return Push();
    }
  }

  // Returns true if the call was refused for a full disk. It has changed
  // nothing then.
  static bool IsRefused(const absl::Status& status) {
    if (status.ok()) return false;
    EXPECT_THAT(status,
                StatusIs(absl::StatusCode::kResourceExhausted,
                         HasSubstr("rows can't be written to the disk")));
    return true;
  }

  void Pull() {
    const std::vector<uint64_t> ids = DrawIds();
    const auto values = PullOf(*tiered_, ids);
    if (IsRefused(values.status())) return;
    EXPECT_EQ(*values, *PullOf(*plain_, ids));
  }

  void Push() {
    PushCase push = {.ids = DrawIds()};
    for (size_t i = 0; i < push.ids.size(); ++i) {
      push.counts.push_back(1 + Draw(3));
      for (size_t c = 0; c < form_.width; ++c) {
        // Each update rounds values that are kept in bfloat16.
        push.gradients.push_back(.2501f * static_cast<float>(Draw(9)) - 1);
      }
    }
    const auto values = PushTo(*tiered_, push);
    if (IsRefused(values.status())) return;
    EXPECT_EQ(*values, *PushTo(*plain_, push));
  }

  void Compare(const Cut& want, RowSnapshot snapshot) {
    ASSERT_OK_AND_ASSIGN(const Cut cut, CutOf(std::move(snapshot)));
    EXPECT_EQ(cut.updates, want.updates);
    EXPECT_TRUE(cut.rows == want.rows);
    EXPECT_TRUE(cut.counts == want.counts);
  }

  void TakeSnapshot() {
    of_snapshot_ = *CutOf(plain_->TakeSnapshot());
    snapshot_.emplace(tiered_->TakeSnapshot());
  }

  // A checkpoint, or one that fails: the next one is compared to the one before
  // it.
  void TakeMarkedSnapshot() {
    const SnapshotTurn turn = {.number = ++snapshots_,
                               .since = Draw(5) == 0 ? 0 : written_};
    EXPECT_EQ(plain_->Marks(turn.since, /*frees_expired=*/true),
              tiered_->Marks(turn.since, /*frees_expired=*/true));
    const bool has_all = !plain_->Marks(turn.since);
    const Cut whole = *CutOf(plain_->TakeSnapshot());
    const Cut of_plain = *CutOf(plain_->TakeSnapshot(turn));
    ASSERT_OK_AND_ASSIGN(const Cut cut, CutOf(tiered_->TakeSnapshot(turn)));
    if (Draw(3) == 0) return;  // it fails
    written_ = turn.number;
    if (has_all) {
      chain_ = cut;
      chain_->removed.clear();
    } else {
      ASSERT_TRUE(chain_.has_value());
      chain_->Apply(cut);
      EXPECT_TRUE(std::includes(of_plain.removed.begin(),
                                of_plain.removed.end(), cut.removed.begin(),
                                cut.removed.end()));
      // Rows that only have got another number have not changed.
      for (const auto& [id, row] : cut.rows) {
        EXPECT_TRUE(of_plain.rows.contains(id)) << "row " << id;
      }
    }
    EXPECT_TRUE(chain_->rows == whole.rows);
    EXPECT_TRUE(chain_->counts == whole.counts);
  }

  // Both tables go on from what one of them has had, with another memory.
  void Reload() {
    disk_->SetCapacity(UINT64_MAX);
    ASSERT_OK_AND_ASSIGN(
        const Cut cut,
        CutOf(Draw(2) == 0 ? plain_->TakeSnapshot() : tiered_->TakeSnapshot()));
    const int64_t at_most = Draw(2) == 0 ? INT64_MAX : Draw(cut.updates + 1);
    written_ = 0;
    Start();
    Restore(cut, at_most, *plain_);
    Restore(cut, at_most, *tiered_);
  }

  void TakeSample() {
    RowSample of_plain(form_.width);
    RowSample of_tiered(form_.width);
    plain_->AddTo(of_plain);
    tiered_->AddTo(of_tiered);
    // Rows that have gone may still be in memory.
    if (form_.bounds.times()) return;
    EXPECT_EQ(of_plain.Ids(), of_tiered.Ids());
  }

  void ChangeRules() {
    RowBounds& bounds = form_.bounds;
    if (bounds.min_count > 0) bounds.min_count = 2 + Draw(4);
    if (bounds.idle_steps > 0) bounds.idle_steps = 1 + Draw(30);
    if (bounds.max_rows > 0) bounds.max_rows = kRowStripes * (1 + Draw(6));
    EXPECT_OK(plain_->TakeRulesOf(*Plain(form_)));
    EXPECT_OK(tiered_->TakeRulesOf(*Tiered(
        form_,
        TierOf(form_, std::make_shared<MemoryTierFile>(), 1 + Draw(3), 8))));
  }

  // A row that can't be read, or is damaged, is an error for good, and never a
  // wrong value.
  void LoseARow() {
    while (work_()) {
    }
    std::vector<uint64_t> ids(ids_);
    for (uint64_t id = 0; id < ids_; ++id) ids[id] = id;
    if (Draw(2) == 0) {
      disk_->Damage();
    } else {
      disk_->FailReadAfter(Draw(3));
    }
    const int64_t reads = tiered_->totals().disk_reads.load();
    const bool by_pull = Draw(2) == 0;
    const absl::Status status = by_pull
                                    ? PullOf(*tiered_, ids).status()
                                    : CutOf(tiered_->TakeSnapshot()).status();
    if (status.ok()) {
      // Too few rows were on the disk.
      if (by_pull) {
        EXPECT_LE(tiered_->totals().disk_reads.load() - reads, 2);
      }
      return;
    }
    const auto is_lost =
        StatusIs(absl::StatusCode::kUnavailable, HasSubstr("is lost"));
    EXPECT_THAT(status, is_lost);
    EXPECT_EQ(failures_, 1);
    EXPECT_THAT(PullOf(*tiered_, ids).status(), is_lost);
    EXPECT_THAT(PushTo(*tiered_, {}).status(), is_lost);
    EXPECT_THAT(CutOf(tiered_->TakeSnapshot()).status(), is_lost);
  }

  std::mt19937_64 random_;
  const std::shared_ptr<TierFile> real_file_;
  TableForm form_;
  uint64_t ids_ = 0;
  std::shared_ptr<MemoryTierFile> disk_;
  std::unique_ptr<RowTable> plain_;
  std::unique_ptr<RowTable> tiered_;
  std::function<bool()> work_;
  int failures_ = 0;
  int64_t disk_reads_ = 0;
  // A snapshot that is read later.
  std::optional<RowSnapshot> snapshot_;
  Cut of_snapshot_;
  // The newest checkpoint with its increments, and its number.
  std::optional<Cut> chain_;
  uint64_t written_ = 0;
  uint64_t snapshots_ = 0;
};

TEST(RowTierTest, AnyScheduleGivesTheBitsOfATableInMemory) {
  int64_t reads = 0;
  const uint64_t first = absl::GetFlag(FLAGS_first_seed);
  for (uint64_t i = 0; i < absl::GetFlag(FLAGS_schedules); ++i) {
    SCOPED_TRACE(absl::StrCat("seed ", first + i));
    Schedule schedule(first + i);
    schedule.Run(/*steps=*/150);
    ASSERT_FALSE(HasFailure());
    reads += schedule.disk_reads();
  }
  EXPECT_GT(reads, 0);
}

TEST(RowTierTest, SoDoesOneWithAFileOnTheDisk) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    ASSERT_OK_AND_ASSIGN(std::unique_ptr<TierFile> file,
                         OpenTierFile(TempDir()));
    Schedule(seed, std::move(file)).Run(/*steps=*/150);
    ASSERT_FALSE(HasFailure());
  }
}

constexpr int kThreads = 4;
constexpr int kRowsOfPull = 60;

// A push adds to one row what it takes from another: a snapshot has both.
void RequestsLoseNothing(size_t rows_of_segment, int64_t& in_memory) {
  constexpr uint64_t kIds = 3000;
  constexpr int kPushes = 400;
  const TableForm form = {.optimizer = "sgd { learning_rate: 1 }", .width = 1};
  ASSERT_OK_AND_ASSIGN(std::shared_ptr<TierFile> file, OpenTierFile(TempDir()));
  RowTable::Options options = OptionsOf(form);
  options.initializer.mutable_zeros();
  options.tier = TierOf(form, std::move(file), /*rows=*/4, rows_of_segment);
  options.tier.give_work = nullptr;
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<RowTable> table,
      RowTable::Create(std::move(options),
                       *MakeOptimizer(ParseOptimizer(form.optimizer))));
  std::vector<std::atomic<int64_t>> sums(kIds);
  std::atomic<int> at_work = kThreads;
  const auto work = [&](int thread) {
    std::mt19937_64 random(thread);
    for (int i = 0; i < kPushes; ++i) {
      PushCase push;
      for (int pair = 0; pair < 20; ++pair) {
        const auto amount = static_cast<float>(random() % 100);
        for (const float sign : {1.f, -1.f}) {
          const uint64_t id = random() % kIds;
          push.ids.push_back(id);
          push.counts.push_back(1);
          push.gradients.push_back(sign * amount);
          sums[id] -= static_cast<int64_t>(sign * amount);
        }
      }
      EXPECT_OK(PushTo(*table, push).status());
      // Most of these are on the disk.
      std::vector<uint64_t> others(kRowsOfPull);
      for (uint64_t& id : others) id = random() % kIds;
      for (int pull = 0; pull < 4; ++pull) {
        EXPECT_OK(PullOf(*table, others).status());
        for (uint64_t& id : others) id = (id + 1) % kIds;
      }
    }
    --at_work;
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(work, i);
  while (at_work > 0) {
    ASSERT_OK_AND_ASSIGN(const Cut cut, CutOf(table->TakeSnapshot()));
    float sum = 0;
    for (const auto& [id, row] : cut.rows) sum += row.elements[0];
    EXPECT_EQ(sum, 0);
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_OK_AND_ASSIGN(const Cut cut, CutOf(table->TakeSnapshot()));
  EXPECT_EQ(cut.rows.size(), table->rows());
  for (const auto& [id, row] : cut.rows) {
    EXPECT_EQ(row.elements[0], static_cast<float>(sums[id])) << "row " << id;
  }
  const RowTotals& totals = table->totals();
  EXPECT_GT(totals.disk_reads.load(), 0);
  in_memory = totals.rows.load() - totals.rows_on_disk.load();
}

TEST(RowTierTest, RequestsOnManyThreadsLoseNothing) {
  int64_t in_memory = 0;
  RequestsLoseNothing(/*rows_of_segment=*/64, in_memory);
  // The last request of a thread may have found the disk at work.
  EXPECT_LE(in_memory,
            static_cast<int64_t>(4 * kRowStripes + kThreads * kRowsOfPull));
}

// Places are used again as soon as they can be; such a disk is slow.
TEST(RowTierTest, RequestsOnManyThreadsLoseNothingInSmallSegments) {
  int64_t in_memory = 0;
  RequestsLoseNothing(/*rows_of_segment=*/1, in_memory);
}

TEST(RowTierTest, ATierThatATableCanNotHaveIsRefused) {
  const TableForm form;
  const auto create = [](TableForm form, const RowTierOptions& tier) {
    RowTable::Options options = OptionsOf(form);
    options.tier = tier;
    return RowTable::Create(std::move(options),
                            *MakeOptimizer(ParseOptimizer(form.optimizer)))
        .status();
  };
  const RowTierOptions tier =
      TierOf(form, std::make_shared<MemoryTierFile>(), 2, 8);
  EXPECT_OK(create(form, tier));
  EXPECT_THAT(create({.optimizer = "adam {}"}, tier),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("each push changes all rows")));
  RowTierOptions small = tier;
  small.memory_bytes = 100;
  EXPECT_THAT(create(form, small), StatusIs(absl::StatusCode::kInvalidArgument,
                                            HasSubstr("or more")));
}

}  // namespace
}  // namespace parasol

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  absl::ParseCommandLine(argc, argv);
  return RUN_ALL_TESTS();
}
