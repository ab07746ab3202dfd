// Chains of a whole file and increments, of shards as they are: restored by any
// number of shards, and cut while workers push.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/placement/row_shard.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/shard/load_shard.h"
#include "ps/shard/parameter_shard.h"
#include "ps/shard/shard_snapshot.h"
#include "ps/shard/write_shard.h"
#include "ps/testing/parameter_server_fixture.h"
#include "ps/testing/requests.h"
#include "ps/testing/table_order.h"
#include "storage/checkpoint_store.h"

namespace parasol {
namespace {

using namespace parameter_server_testing;  // NOLINT

constexpr uint64_t kIds = 300;

// One of `n` shards of "w" and "t".
wire::LoadRequest ShardOrder(uint32_t shard, uint32_t n, int64_t elements) {
  wire::LoadRequest order = TableOrder();
  const int64_t first = elements * shard / n, end = elements * (shard + 1) / n;
  *order.mutable_part(0) = MakePart(0, "w", elements, first, end - first);
  order.mutable_part(0)->mutable_initializer()->mutable_random_uniform();
  order.set_shard(shard);
  order.set_num_shards(n);
  return order;
}

// The elements and rows of all shards, with slots and updates.
struct Everything {
  std::map<std::pair<int, int64_t>, float> elements;  // by array and index
  std::map<uint64_t, std::vector<float>> rows;

  void Add(ShardSnapshot snapshot) {
    for (const ShardSnapshot::Chunk& chunk : snapshot.chunks) {
      AddArray(0, chunk.first_element, chunk.contents.value.span());
      for (size_t s = 0; s < chunk.contents.slots.size(); ++s) {
        AddArray(1 + s, chunk.first_element, chunk.contents.slots[s].span());
      }
    }
    EXPECT_OK(snapshot.tables[0].Drain([this](const RowBatch& batch) {
      for (size_t i = 0; i < batch.ids.size(); ++i) {
        const size_t floats = batch.rows.size() / batch.ids.size();
        const auto row = batch.rows.subspan(i * floats, floats);
        EXPECT_TRUE(
            rows.try_emplace(batch.ids[i], row.begin(), row.end()).second);
      }
      return absl::OkStatus();
    }));
  }
  // Some of them: enough to tell files and chunks apart.
  void AddArray(int array, int64_t first, absl::Span<const float> values) {
    for (int64_t i = (first + 96) / 97 * 97;
         i < first + static_cast<int64_t>(values.size()); i += 97) {
      elements[{array, i}] = values[i - first];
    }
  }
};

void PushSome(ParameterShard& shard, uint32_t number, uint32_t n,
              int64_t elements, uint64_t sequence, uint64_t step) {
  // One of the chunks, and every seventh row of the shard's.
  const int64_t count = elements * (number + 1) / n - elements * number / n;
  const int64_t chunks = (count + kChunk - 1) / kChunk;
  const int64_t first = static_cast<int64_t>(step) % chunks * kChunk;
  const int64_t size = std::min(kChunk, count - first);
  PendingResult dense, sparse;
  const std::string gradient = Floats(size, .5f + step);
  shard.Execute(kWorker,
                OperationOf(MakePush(sequence, {MakeRange(0, first, size)})),
                {{ViewOf(gradient)}}, dense.Done());
  ASSERT_OK(dense.Get());
  std::vector<uint64_t> ids;
  for (uint64_t id = 0; id < kIds; ++id) {
    if (ShardOfRow(id, n) == number && (step == 0 || id % 7 == step)) {
      ids.push_back(id);
    }
  }
  wire::RowPush push;
  push.set_sequence(sequence + 1);
  push.set_rows(ids.size());
  const std::string id_bytes = IdBytes(ids),
                    rows = Floats(ids.size() * kWidth, 1.f + step);
  shard.Execute(kWorker, OperationOf(push), {{ViewOf(id_bytes), ViewOf(rows)}},
                sparse.Done());
  ASSERT_OK(sparse.Get());
}

// Shards write a whole file and two increments each; any number of shards
// restores them, with slots.
TEST(IncrementReshardingTest, AnyNumberOfShardsRestoresChainsOfAny) {
  constexpr int64_t kAll = 9 * kChunk + 100;
  for (uint32_t n = 1; n <= 8; ++n) {
    const std::string directory =
        absl::StrCat(testing::TempDir(), "/increments_of_", n);
    std::filesystem::remove_all(directory);
    CheckpointStore store = *CheckpointStore::OpenForWriting(directory);
    const std::string working = *store.Begin(1);
    durable::CheckpointManifest manifest = ManifestOf(ShardOrder(0, n, kAll));
    manifest.set_global_step(1);
    Everything written;
    for (uint32_t i = 0; i < n; ++i) {
      const auto shard = LoadShard(ShardOrder(i, n, kAll), {});
      ASSERT_OK(shard);
      std::vector<int64_t> updates;
      for (uint64_t step = 0; step < 3; ++step) {
        PushSome(**shard, i, n, kAll, 2 * step + 1, step);
        ShardSnapshot snapshot =
            (*shard)->TakeSnapshot(false, {.number = step + 1, .since = step});
        const std::vector<int64_t> now = UpdatesOf(snapshot);
        if (step > 0) {
          const durable::CheckpointFile& last = *manifest.file().rbegin();
          snapshot.base = {last.bytes(), last.crc32c()};
          DropUnchanged(updates, snapshot);
          EXPECT_EQ(snapshot.chunks.size(), 1u);
          EXPECT_LT(snapshot.tables[0].rows(), kIds / n / 3);
        }
        updates = now;
        auto file = WriteShard(std::move(snapshot), i, n,
                               absl::StrCat(working, "/", i, ".", step));
        ASSERT_OK(file);
        file->set_increment(step);
        *manifest.add_file() = *file;
      }
      written.Add((*shard)->TakeSnapshot());
    }
    ASSERT_OK(store.Commit(working, manifest));
    for (uint32_t m = 1; m <= 8; ++m) {
      Everything restored;
      for (uint32_t i = 0; i < m; ++i) {
        const auto shard =
            LoadShard(From(ShardOrder(i, m, kAll), store.PathOf(1)), {});
        ASSERT_OK(shard) << n << " to " << m;
        ShardSnapshot snapshot = (*shard)->TakeSnapshot();
        EXPECT_EQ(snapshot.dedup.size(), n == m ? 1u : 0u);
        restored.Add(std::move(snapshot));
      }
      EXPECT_EQ(restored.elements, written.elements) << n << " to " << m;
      EXPECT_EQ(restored.rows, written.rows) << n << " to " << m;
      EXPECT_EQ(restored.rows.size(), kIds);
    }
  }
}

// The value and the accumulator that a row of one element has after each number
// of pushes of 1.
std::map<float, float> ValuesByAccumulator(const wire::LoadRequest& order,
                                           int most) {
  const auto shard = *LoadShard(order, {});
  std::map<float, float> values;
  const std::string ids = IdBytes({1}), gradient = Floats(1, 1);
  for (int i = 0; i <= most; ++i) {
    if (i > 0) {
      wire::RowPush push;
      push.set_sequence(i);
      push.set_rows(1);
      PendingResult done;
      shard->Execute(kWorker, OperationOf(push),
                     {{ViewOf(ids), ViewOf(gradient)}}, done.Done());
      EXPECT_OK(done.Get());
    }
    EXPECT_OK(shard->TakeSnapshot().tables[0].Drain([&](const RowBatch& batch) {
      if (!batch.ids.empty()) values[batch.rows[1]] = batch.rows[0];
      return absl::OkStatus();
    }));
  }
  return values;
}

// Workers make and push rows while increments are cut: in each chain every row
// has the value that belongs to its slot, and all rows together have had the
// pushes that the table and the windows count.
TEST(IncrementConsistencyTest, ValuesSlotsAndWindowsOfACutBelongTogether) {
  wire::LoadRequest order = TableOrder();
  order.mutable_table(0)->set_width(1);
  order.mutable_table(0)->mutable_initializer()->mutable_zeros();
  constexpr int kMost = 200;
  const std::map<float, float> values = ValuesByAccumulator(order, kMost);
  const float initial = values.begin()->first - 1;
  const auto shard = *LoadShard(order, {});
  std::atomic<bool> is_over = false;
  std::vector<std::thread> workers;
  for (uint64_t worker = 1; worker <= 3; ++worker) {
    workers.emplace_back([&, worker] {
      std::mt19937_64 random(worker);
      const std::string gradient = Floats(1, 1);
      // Ever more rows, none of which gets more than kMost pushes.
      for (uint64_t i = 1; !is_over && i < 400'000; ++i) {
        const std::string ids = IdBytes({random() % (50 + i / 10)});
        wire::RowPush push;
        push.set_sequence(i);
        push.set_rows(1);
        PendingResult done;
        shard->Execute(worker, OperationOf(push),
                       {{ViewOf(ids), ViewOf(gradient)}}, done.Done());
        EXPECT_OK(done.Get());
      }
    });
  }
  std::map<uint64_t, std::pair<float, float>> rows;
  for (uint64_t number = 1; number <= 40; ++number) {
    ShardSnapshot snapshot =
        shard->TakeSnapshot(false, {.number = number, .since = number - 1});
    const int64_t updates = snapshot.tables[0].updates();
    EXPECT_EQ(updates, snapshot.progress);
    ASSERT_OK(snapshot.tables[0].Drain([&](const RowBatch& batch) {
      for (size_t i = 0; i < batch.ids.size(); ++i) {
        rows[batch.ids[i]] = {batch.rows[2 * i], batch.rows[2 * i + 1]};
      }
      return absl::OkStatus();
    }));
    int64_t pushes = 0;
    for (const auto& [id, row] : rows) {
      const auto expected = values.find(row.second);
      if (expected == values.end()) continue;  // more than kMost
      EXPECT_EQ(row.first, expected->second) << id;
    }
    for (const auto& [id, row] : rows) {
      pushes += static_cast<int64_t>(row.second - initial + .5f);
    }
    EXPECT_EQ(pushes, updates) << number;
  }
  is_over = true;
  for (std::thread& worker : workers) worker.join();
}

}  // namespace
}  // namespace parasol
