// A shard whose table has an admission and an eviction, beside a model of their
// rules: pushes are sent again, the process is lost, and its successor takes
// the newest checkpoint, whole or a chain, and the journal behind it.
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/metrics.h"
#include "base/row_hash.h"
#include "base/status_matchers.h"
#include "cluster/rows/row_tier.h"
#include "cluster/rows/widened_rows.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/compression/half_bits.h"
#include "proto/checkpoint.pb.h"
#include "proto/parameter.pb.h"
#include "ps/shard/load_shard.h"
#include "ps/shard/parameter_shard.h"
#include "ps/shard/shard_snapshot.h"
#include "ps/shard/write_shard.h"
#include "ps/testing/requests.h"
#include "storage/checkpoint_store.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kInitial = 10;
constexpr int kIds = 12;
constexpr int kWorkers = 3;

template <typename T>
std::string BytesOf(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(T));
}

// Returns one of kIds ids, which three stripes have.
uint64_t IdOf(uint64_t number) {
  return RowIdOf(number % 3 << (64 - kRowStripeBits) | (number + 1));
}

wire::LoadRequest BoundedOrder(int64_t min_count, int64_t idle_steps,
                               int64_t max_rows = 0) {
  wire::LoadRequest order;
  order.set_run_id("run");
  order.set_num_shards(1);
  order.mutable_optimizer()->mutable_sgd()->set_learning_rate(1);
  wire::TableSpec& table = *order.add_table();
  table.set_name("t");
  table.set_width(1);
  table.mutable_initializer()->mutable_constant()->set_value(kInitial);
  table.mutable_admission()->set_min_count(min_count);
  table.mutable_eviction()->set_idle_steps(idle_steps);
  table.mutable_eviction()->set_max_rows(max_rows);
  return order;
}

// What an update takes from a value. Of values in bfloat16 it is so little that
// each update rounds.
float GradientOf(bool bfloat16) { return bfloat16 ? .01f : 1; }

// The rules, as docs/tables.md says them.
class Model {
 public:
  // `max_rows`: of each stripe, less than 32.
  Model(int64_t min_count, int64_t idle_steps, int64_t max_rows, bool bfloat16)
      : min_count_(min_count),
        idle_steps_(idle_steps),
        max_rows_(max_rows),
        bfloat16_(bfloat16) {}

  void Push(const std::map<uint64_t, uint32_t>& occurrences) {
    ++updates_;
    std::erase_if(ids_, [this](const auto& id) {
      return updates_ - id.second.touched > idle_steps_;
    });
    for (const auto& [id, count] : occurrences) {
      if (!HasRow(id) && CountOf(id) + count >= min_count_) MakeRoom(id);
      Id& state = ids_[id];
      state.touched = updates_;
      state.count += count;
      if (state.count < min_count_) continue;
      state.value -= GradientOf(bfloat16_);
      if (bfloat16_) state.value = Rounded(state.value, id);
    }
  }

  float Pull(uint64_t id) const {
    const auto found = ids_.find(id);
    const bool has_row = found != ids_.end() &&
                         found->second.count >= min_count_ &&
                         updates_ + 1 - found->second.touched <= idle_steps_;
    return has_row ? found->second.value : kInitial;
  }

  // Number of rows that have gone because their stripe was full.
  int64_t evicted() const { return evicted_; }

 private:
  struct Id {
    int64_t count = 0;
    int64_t touched = 0;
    float value = kInitial;
  };

  // As the newest update rounds it, whoever makes the update.
  float Rounded(float value, uint64_t id) const {
    const uint64_t of_table = RoundingKeyOf(/*seed=*/0, "t");
    const uint64_t key = RoundingKeyOf(of_table, updates_ - 1, RowHash(id));
    return FloatFromBfloat16(Bfloat16FromFloat(value, RandomBitsOf(key, 0)));
  }
  int64_t CountOf(uint64_t id) const {
    const auto found = ids_.find(id);
    return found == ids_.end() ? 0 : found->second.count;
  }
  bool HasRow(uint64_t id) const { return CountOf(id) >= min_count_; }
  // If the stripe of `id` is full, has its row go that was touched first.
  void MakeRoom(uint64_t id) {
    std::set<std::pair<int64_t, uint64_t>> rows;
    for (const auto& [other, state] : ids_) {
      if (StripeOf(RowHash(other)) != StripeOf(RowHash(id))) continue;
      if (HasRow(other)) rows.emplace(state.touched, other);
    }
    if (max_rows_ == 0 || std::ssize(rows) < max_rows_) return;
    ids_.erase(rows.begin()->second);
    ++evicted_;
  }

  const int64_t min_count_;
  const int64_t idle_steps_;
  const int64_t max_rows_;
  const bool bfloat16_;
  int64_t updates_ = 0;
  int64_t evicted_ = 0;
  std::map<uint64_t, Id> ids_;
};

class Schedule {
 public:
  explicit Schedule(uint64_t seed)
      : random_(seed),
        min_count_(1 + random_() % 5),
        idle_steps_(2 + random_() % 12),
        stripe_rows_(random_() % 3),
        has_tier_(random_() % 2 == 0),
        bfloat16_(random_() % 2 == 0),
        model_(min_count_, idle_steps_, stripe_rows_, bfloat16_),
        directory_(absl::StrCat(testing::TempDir(), "/bounds-", seed)),
        store_(*CheckpointStore::OpenForWriting(directory_)) {}
  ~Schedule() { std::filesystem::remove_all(directory_); }

  void Run() {
    Load();
    for (int step = 0; step < 60; ++step) {
      PushSome();
      if (random_() % 4 == 0) SendAgain();
      if (random_() % 6 == 0) Save();
      if (random_() % 10 == 0) Load();
      std::vector<float> expected;
      for (uint64_t id = 0; id < kIds; ++id)
        expected.push_back(model_.Pull(IdOf(id)));
      ASSERT_EQ(PullAll(), expected) << "step " << step;
    }
  }

  int64_t evicted() const { return model_.evicted(); }

 private:
  struct Sent {
    uint64_t worker = 0;
    uint64_t sequence = 0;
    std::map<uint64_t, uint32_t> occurrences;
  };

  // Loses the process, if there is one.
  void Load() {
    shard_.reset();
    wire::LoadRequest order =
        BoundedOrder(min_count_, idle_steps_,
                     stripe_rows_ * static_cast<int64_t>(kRowStripes));
    // One row of each stripe is in memory, or two.
    if (has_tier_) {
      order.mutable_table(0)->mutable_tier()->set_memory_bytes(
          RowTier::kSegmentsInMemory * RowTierOptions().segment_bytes +
          kRowStripes * 100 * (1 + random_() % 2));
    }
    order.mutable_table(0)->set_bfloat16(bfloat16_);
    order.set_journal(wire::LoadRequest::WRITTEN);
    if (!committed_.file().empty()) {
      order.set_checkpoint(store_.PathOf(committed_.global_step()));
    }
    auto loaded = LoadShard(order, {.journal_directory = directory_});
    ASSERT_OK(loaded);
    shard_ = *std::move(loaded);
    since_ = 0;
  }

  absl::StatusOr<OperationResult> Send(const Sent& sent) {
    std::vector<uint64_t> ids;
    std::vector<uint32_t> counts;
    for (const auto& [id, count] : sent.occurrences) {
      ids.push_back(id);
      counts.push_back(count);
    }
    wire::RowPush push;
    push.set_sequence(sent.sequence);
    push.set_rows(ids.size());
    push.set_with_counts(true);
    PendingResult result;
    const std::string id_bytes = BytesOf(ids),
                      gradients = Floats(ids.size(), GradientOf(bfloat16_)),
                      count_bytes = BytesOf(counts);
    shard_->Execute(
        sent.worker, OperationOf(push),
        {{ViewOf(id_bytes), ViewOf(gradients), ViewOf(count_bytes)}},
        result.Done());
    return result.Get();
  }

  void PushSome() {
    Sent sent;
    sent.worker = 1 + random_() % kWorkers;
    sent.sequence = ++sequences_[sent.worker];
    for (int i = random_() % 6; i > 0; --i) {
      const uint64_t id = IdOf(random_() % kIds * (random_() % 2));
      sent.occurrences[id] += 1 + random_() % 2;
    }
    ASSERT_OK(Send(sent));
    model_.Push(sent.occurrences);
    sent_.push_back(std::move(sent));
  }

  void SendAgain() {
    const auto result = Send(sent_[random_() % sent_.size()]);
    ASSERT_OK(result);
    EXPECT_TRUE(result->duplicate);
  }

  // Writes a checkpoint: an increment, if the shard knows what has changed.
  // Some checkpoints fail after their cut.
  void Save() {
    const int64_t step = ++step_;
    if (random_() % 4 == 0) {
      shard_->TakeSnapshot(
          /*stays=*/false,
          {.number = static_cast<uint64_t>(step), .since = since_});
      return;
    }
    const std::string working = *store_.Begin(step);
    ShardSnapshot snapshot = shard_->TakeSnapshot(
        /*stays=*/false,
        {.number = static_cast<uint64_t>(step), .since = since_});
    durable::CheckpointManifest manifest;
    manifest.set_run_id("run");
    manifest.set_global_step(step);
    durable::CheckpointTable& table = *manifest.add_table();
    table.set_name("t");
    table.set_width(1);
    if (since_ != 0) {
      *manifest.mutable_file() = committed_.file();
      const auto& base = *committed_.file().rbegin();
      snapshot.base = {.bytes = base.bytes(), .crc32c = base.crc32c()};
      for (const durable::CheckpointFile& file : committed_.file()) {
        std::filesystem::create_hard_link(
            absl::StrCat(store_.PathOf(committed_.global_step()), "/",
                         file.name()),
            absl::StrCat(working, "/", file.name()));
      }
    }
    const auto file = WriteShard(std::move(snapshot), 0, 1,
                                 absl::StrCat(working, "/", step, ".sst"));
    ASSERT_OK(file);
    *manifest.add_file() = *file;
    manifest.mutable_file()->rbegin()->set_increment(manifest.file_size() - 1);
    ASSERT_OK(store_.Commit(working, manifest));
    committed_ = manifest;
    since_ = step;
  }

  std::vector<float> PullAll() {
    std::vector<uint64_t> ids;
    for (uint64_t id = 0; id < kIds; ++id) ids.push_back(IdOf(id));
    wire::RowPull pull;
    pull.set_rows(kIds);
    PendingResult result;
    const std::string bytes = BytesOf(ids);
    shard_->Execute(/*worker_incarnation=*/99, OperationOf(pull),
                    {{ViewOf(bytes)}}, result.Done());
    EXPECT_OK(result.Get());
    return FloatsOf(result.Get()->payloads);
  }

  std::mt19937_64 random_;
  const int64_t min_count_;
  const int64_t idle_steps_;
  const int64_t stripe_rows_;  // most rows of each stripe; 0: any number
  const bool has_tier_;
  const bool bfloat16_;
  Model model_;
  const std::string directory_;
  CheckpointStore store_;
  std::unique_ptr<ParameterShard> shard_;
  durable::CheckpointManifest committed_;
  uint64_t since_ = 0;  // the newest snapshot to which one may be compared
  int64_t step_ = 0;
  std::map<uint64_t, uint64_t> sequences_;
  std::vector<Sent> sent_;
};

TEST(TableBoundsTest, AShardDoesWhatTheModelDoesWhateverIsLost) {
  int64_t evicted = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Schedule schedule(seed);
    schedule.Run();
    if (HasFailure()) return;
    evicted += schedule.evicted();
  }
  EXPECT_GT(evicted, 100);
}

// Pushes one row, as a replica of a synchronous step.
void PushInStep(ParameterShard& shard, int64_t step, int replica,
                const std::vector<uint64_t>& ids,
                const std::vector<uint32_t>& counts) {
  wire::RowPush push;
  push.set_rows(ids.size());
  push.set_with_counts(true);
  push.mutable_sync()->set_step(step);
  push.mutable_sync()->set_replica(replica);
  PendingResult result;
  const std::string id_bytes = BytesOf(ids), gradients = Floats(ids.size(), 1),
                    count_bytes = BytesOf(counts);
  shard.Execute(/*worker_incarnation=*/1 + replica, OperationOf(push),
                {{ViewOf(id_bytes), ViewOf(gradients), ViewOf(count_bytes)}},
                result.Done());
  if (!result.is_done()) return;
  EXPECT_OK(result.Get());
}

std::vector<float> PullFrom(ParameterShard& shard, int64_t min_updates,
                            const std::vector<uint64_t>& ids) {
  wire::RowPull pull;
  pull.set_rows(ids.size());
  pull.set_min_updates(min_updates);
  PendingResult result;
  const std::string bytes = BytesOf(ids);
  shard.Execute(/*worker_incarnation=*/99, OperationOf(pull), {{ViewOf(bytes)}},
                result.Done());
  EXPECT_OK(result.Get());
  return FloatsOf(result.Get()->payloads);
}

TEST(TableBoundsTest, AStepAddsTheCountsOfItsReplicas) {
  wire::LoadRequest order = BoundedOrder(/*min_count=*/4, /*idle_steps=*/2);
  order.mutable_sync()->set_replicas_to_aggregate(2);
  order.mutable_sync()->set_total_replicas(2);
  const auto shard = *LoadShard(order, {});
  PushInStep(*shard, 0, 1, {5, 6}, {3, 2});
  PushInStep(*shard, 0, 0, {5, 6}, {1, 1});
  // 5 has its row with this step, 6 does not.
  EXPECT_THAT(PullFrom(*shard, 1, {5, 6}), ElementsAre(9, 10));
  // Nor does a gradient that is sent again count again.
  PushInStep(*shard, 0, 0, {5, 6}, {1, 1});
  for (int64_t step = 1; step <= 2; ++step) {
    EXPECT_THAT(PullFrom(*shard, step, {5, 6}), ElementsAre(9, 10));
    PushInStep(*shard, step, 0, {}, {});
    PushInStep(*shard, step, 1, {}, {});
  }
  // The row has gone, but who computes the step before finds it.
  EXPECT_THAT(PullFrom(*shard, 2, {5, 6}), ElementsAre(9, 10));
  EXPECT_THAT(PullFrom(*shard, 3, {5, 6}), ElementsAre(10, 10));
}

TEST(TableBoundsTest, CountsThatAreNoneAreRefused) {
  const auto shard = *LoadShard(BoundedOrder(2, 5), {});
  wire::RowPush push;
  push.set_sequence(1);
  push.set_rows(2);
  push.set_with_counts(true);
  const std::string ids = BytesOf(std::vector<uint64_t>{1, 2}),
                    gradients = Floats(2, 1),
                    none = BytesOf(std::vector<uint32_t>{1, 0}),
                    few = BytesOf(std::vector<uint32_t>{1});
  const auto push_with = [&](const std::string& counts) {
    PendingResult result;
    shard->Execute(7, OperationOf(push),
                   {{ViewOf(ids), ViewOf(gradients), ViewOf(counts)}},
                   result.Done());
    return result.Get().status();
  };
  EXPECT_THAT(push_with(none),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("table \"t\": number 1 of 2 ids occurs 0")));
  EXPECT_THAT(push_with(few),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("table \"t\": 4 bytes for 2 counts")));
}

TEST(TableBoundsTest, RowsThatPullsMakeAreShown) {
  wire::LoadRequest order = BoundedOrder(0, 0);
  order.mutable_table(0)->clear_admission();
  order.mutable_table(0)->clear_eviction();
  for (const bool is_synchronous : {false, true}) {
    if (is_synchronous) {
      order.mutable_sync()->set_replicas_to_aggregate(1);
      order.mutable_sync()->set_total_replicas(1);
    }
    MetricsRegistry registry;
    const auto shard = *LoadShard(order, {.metrics = &registry});
    EXPECT_THAT(registry.Text(),
                HasSubstr("parasol_ps_table_rows{table=\"t\"} 0\n"));
    EXPECT_THAT(PullFrom(*shard, 0, {5, 6, 7}), ElementsAre(10, 10, 10));
    EXPECT_THAT(registry.Text(),
                HasSubstr("parasol_ps_table_rows{table=\"t\"} 3\n"));
  }
}

}  // namespace
}  // namespace parasol
