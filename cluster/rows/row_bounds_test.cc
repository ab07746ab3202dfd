// Tables with an admission and an eviction, beside a model of their rules.
#include "cluster/rows/row_bounds.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/row_hash.h"
#include "base/status_matchers.h"
#include "cluster/placement/row_shard.h"
#include "cluster/rows/row_snapshot.h"
#include "cluster/rows/row_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/optimizer/testing/update_cases.h"
#include "storage/shard_entry.h"

namespace parasol {
namespace {

constexpr float kInitial = 100;

// The ids of a push, each once, and how often they occur.
using Occurrences = std::vector<std::pair<uint64_t, uint32_t>>;

// A model of the rules: one id after the other, in maps. A push takes 1 from
// the values of its rows.
class Model {
 public:
  struct Id {
    bool has_row = false;
    int64_t count = 0;
    int64_t touched = 0;
    float value = kInitial;

    bool operator==(const Id&) const = default;
  };

  using Ids = std::map<uint64_t, Id>;

  Model(const RowBounds& bounds, uint32_t shards)
      : bounds_(bounds), shards_(shards) {}

  void Push(const Occurrences& push) {
    ++updates_;
    for (auto& [place, ids] : ids_) ForgetIdle(updates_, ids);
    for (const auto& [id, occurrences] : push) {
      Ids& ids = IdsWith(id);
      Id& state = ids[id];
      state.touched = updates_;
      if (state.has_row) continue;
      state.count += occurrences;
      if (state.count < bounds_.min_count) continue;
      Evict(ids, MostWith(id) - 1, MostWith(id) / 16);
      state.has_row = true;
    }
    for (const auto& [id, occurrences] : push) {
      const auto found = IdsWith(id).find(id);
      if (found == IdsWith(id).end() || !found->second.has_row) continue;
      --found->second.value;
    }
  }

  float Pull(uint64_t id) {
    const auto found = IdsWith(id).find(id);
    const bool is_there = found != IdsWith(id).end() && found->second.has_row &&
                          !IsIdle(found->second, updates_ + 1);
    return is_there ? found->second.value : kInitial;
  }

  // What a checkpoint has.
  Ids Cut() const {
    Ids cut;
    for (auto [place, ids] : ids_) {
      ForgetIdle(updates_, ids);
      cut.merge(ids);
    }
    return cut;
  }

  // Goes on with what a checkpoint of `updates` updates has, on `shards`
  // shards.
  void Restore(const Ids& cut, int64_t updates, uint32_t shards) {
    ids_.clear();
    updates_ = updates;
    shards_ = shards;
    for (const auto& [id, state] : cut) IdsWith(id)[id] = state;
    for (const auto& [id, state] : cut) Evict(IdsWith(id), MostWith(id), 1);
  }

 private:
  bool IsIdle(const Id& id, int64_t update) const {
    return bounds_.idle_steps > 0 && update - id.touched > bounds_.idle_steps;
  }
  void ForgetIdle(int64_t update, Ids& ids) const {
    std::erase_if(ids,
                  [&](const auto& id) { return IsIdle(id.second, update); });
  }
  // Returns the ids of the shard and stripe in which `id` is.
  Ids& IdsWith(uint64_t id) {
    return ids_[{ShardOfRow(id, shards_), StripeOf(RowHash(id))}];
  }
  // Returns the most rows there.
  int64_t MostWith(uint64_t id) const {
    if (bounds_.max_rows == 0) return INT64_MAX;
    const int64_t rows = (bounds_.max_rows + shards_ - 1) / shards_;
    return rows / 128 +
           (static_cast<int64_t>(StripeOf(RowHash(id))) < rows % 128);
  }
  // If there are more than `most` rows, has the rows that were touched first
  // go, at least `share`.
  static void Evict(Ids& ids, int64_t most, int64_t share) {
    std::set<std::pair<int64_t, uint64_t>> rows;
    for (const auto& [id, state] : ids) {
      if (state.has_row) rows.emplace(state.touched, id);
    }
    if (std::ssize(rows) <= most) return;
    int64_t gone =
        std::max(std::ssize(rows) - most, std::max<int64_t>(share, 1));
    for (; gone > 0; --gone) {
      ids.erase(rows.begin()->second);
      rows.erase(rows.begin());
    }
  }

  const RowBounds bounds_;
  uint32_t shards_;
  int64_t updates_ = 0;
  std::map<std::pair<uint32_t, size_t>, Ids> ids_;  // by shard and stripe
};

// What a checkpoint has of one shard.
struct SavedShard {
  int64_t updates = 0;
  std::vector<uint64_t> ids;
  std::vector<float> rows;
  std::vector<int64_t> touched;
  std::vector<uint64_t> counted;
  std::vector<uint32_t> counts;
  std::vector<int64_t> counts_touched;
};

// The shards of a table.
class Tables {
 public:
  Tables(const RowBounds& bounds, uint32_t shards) : bounds_(bounds) {
    job::Admission admission;
    job::Eviction eviction;
    admission.set_min_count(bounds.min_count);
    eviction.set_idle_steps(bounds.idle_steps);
    eviction.set_max_rows(bounds.max_rows);
    for (uint32_t shard = 0; shard < shards; ++shard) {
      RowTable::Options options = {.name = "items", .width = 1};
      options.bounds = BoundsOf(admission, eviction, shards);
      options.initializer.mutable_constant()->set_value(kInitial);
      tables_.push_back(*RowTable::Create(
          options, *MakeOptimizer(ParseOptimizer("sgd { learning_rate: 1 }"))));
    }
  }

  uint32_t shards() const { return tables_.size(); }
  RowTable& shard(uint32_t shard) { return *tables_[shard]; }

  // Pushes 1 to each row. An id that occurs several times may be listed twice.
  void Push(const Occurrences& push, bool lists_twice) {
    for (uint32_t shard = 0; shard < shards(); ++shard) {
      std::vector<uint64_t> ids;
      std::vector<uint32_t> counts;
      std::vector<float> gradients;
      for (auto [id, count] : push) {
        if (ShardOfRow(id, shards()) != shard) continue;
        const bool is_twice = lists_twice && count > 1;
        ids.push_back(id);
        counts.push_back(is_twice ? count - 1 : count);
        gradients.push_back(is_twice ? .25f : 1);
        if (!is_twice) continue;
        ids.push_back(id);
        counts.push_back(1);
        gradients.push_back(.75f);
      }
      EXPECT_OK(tables_[shard]->Push(Bytes(ids.data()), Bytes(gradients.data()),
                                     ids.size(), /*out=*/nullptr,
                                     Bytes(counts.data())));
    }
  }

  float Pull(uint64_t id) const {
    float value = 0;
    EXPECT_OK(tables_[ShardOfRow(id, shards())]->Pull(Bytes(&id), 1, &value));
    return value;
  }

  std::vector<SavedShard> Save() const {
    std::vector<SavedShard> saved;
    for (const auto& table : tables_) {
      SavedShard& shard = saved.emplace_back();
      RowSnapshot snapshot = table->TakeSnapshot();
      shard.updates = snapshot.updates();
      EXPECT_OK(snapshot.VisitCounts([&](const CountBatch& batch) {
        Append(batch.ids, shard.counted);
        Append(batch.counts, shard.counts);
        Append(batch.touched, shard.counts_touched);
        return absl::OkStatus();
      }));
      EXPECT_EQ(snapshot.counted_ids(), shard.counted.size());
      EXPECT_OK(snapshot.Drain([&](const RowBatch& batch) {
        Append(batch.ids, shard.ids);
        Append(batch.rows, shard.rows);
        Append(batch.touched, shard.touched);
        return absl::OkStatus();
      }));
    }
    return saved;
  }

  // Takes what belongs to each shard, in an order of the seed's.
  void Restore(const std::vector<SavedShard>& saved, std::mt19937_64& random) {
    for (uint32_t shard = 0; shard < shards(); ++shard) {
      for (const SavedShard& from : saved) {
        std::vector<size_t> order(from.ids.size());
        for (size_t i = 0; i < order.size(); ++i) order[i] = i;
        std::shuffle(order.begin(), order.end(), random);
        for (const size_t i : order) {
          if (ShardOfRow(from.ids[i], shards()) != shard) continue;
          EXPECT_OK(tables_[shard]->Insert(
              {.updates = from.updates,
               .ids = absl::MakeConstSpan(&from.ids[i], 1),
               .rows = absl::MakeConstSpan(&from.rows[i], 1),
               .touched = absl::MakeConstSpan(from.touched)
                              .subspan(std::min(i, from.touched.size()), 1)}));
        }
        EXPECT_OK(tables_[shard]->Insert({.updates = from.updates}));
      }
      for (const SavedShard& from : saved) {
        for (size_t i = 0; i < from.counted.size(); ++i) {
          if (ShardOfRow(from.counted[i], shards()) != shard) continue;
          tables_[shard]->InsertCounts(
              {.ids = absl::MakeConstSpan(&from.counted[i], 1),
               .counts = absl::MakeConstSpan(&from.counts[i], 1),
               .touched =
                   absl::MakeConstSpan(from.counts_touched)
                       .subspan(std::min(i, from.counts_touched.size()), 1)});
        }
      }
      // The first push does so otherwise; only then do rows above the bounds
      // go.
      if (random() % 2 == 0 || bounds_.max_rows > 0) {
        tables_[shard]->EndInsertions();
      }
    }
  }

  // Returns everything as the model has it; what it does not keep is 0 there.
  static std::map<uint64_t, Model::Id> AsModel(
      const std::vector<SavedShard>& saved) {
    std::map<uint64_t, Model::Id> ids;
    for (const SavedShard& shard : saved) {
      for (size_t i = 0; i < shard.ids.size(); ++i) {
        Model::Id id = {.has_row = true, .value = shard.rows[i]};
        if (!shard.touched.empty()) id.touched = shard.touched[i];
        EXPECT_TRUE(ids.emplace(shard.ids[i], id).second) << shard.ids[i];
      }
      for (size_t i = 0; i < shard.counted.size(); ++i) {
        Model::Id id = {.count = shard.counts[i]};
        if (!shard.counts_touched.empty()) id.touched = shard.counts_touched[i];
        EXPECT_TRUE(ids.emplace(shard.counted[i], id).second);
      }
    }
    return ids;
  }

  static const std::byte* Bytes(const void* memory) {
    return static_cast<const std::byte*>(memory);
  }

 private:
  template <typename T>
  static void Append(absl::Span<const T> from, std::vector<T>& to) {
    to.insert(to.end(), from.begin(), from.end());
  }

  const RowBounds bounds_;
  std::vector<std::unique_ptr<RowTable>> tables_;
};

// What a table does not keep, it can't save.
std::map<uint64_t, Model::Id> Kept(std::map<uint64_t, Model::Id> ids,
                                   const RowBounds& bounds) {
  for (auto& [id, state] : ids) {
    if (state.has_row) state.count = 0;
    const bool is_timed =
        state.has_row ? bounds.times() : bounds.idle_steps > 0;
    if (!is_timed) state.touched = 0;
  }
  if (bounds.counts()) return ids;
  std::erase_if(ids, [](const auto& id) { return !id.second.has_row; });
  return ids;
}

Occurrences DrawPush(std::mt19937_64& random, size_t ids) {
  std::map<uint64_t, uint32_t> drawn;
  const size_t places = random() % 60;
  for (size_t i = 0; i < places; ++i) {
    // Few ids occur often, as they do in data.
    const double share = static_cast<double>(random() % 1000) / 1000;
    drawn[static_cast<uint64_t>(share * share * share * ids) * 0x9e3779b9 -
          3]++;
  }
  Occurrences push(drawn.begin(), drawn.end());
  std::shuffle(push.begin(), push.end(), random);
  return push;
}

RowBounds DrawBounds(std::mt19937_64& random) {
  RowBounds bounds;
  if (random() % 3 > 0) bounds.min_count = 2 + random() % 5;
  if (random() % 8 == 0) bounds.min_count = 130 + random() % 20;
  if (random() % 2 == 0) bounds.idle_steps = 1 + random() % 12;
  if (random() % 2 == 0) bounds.max_rows = 1024 + random() % 1000;
  // In a table without bounds pulls make rows, too.
  if (!bounds.any()) bounds.min_count = 2;
  return bounds;
}

// A schedule of pushes, pulls that must change nothing, and restarts: from a
// checkpoint and the pushes behind it, on any number of shards.
void RunSchedule(uint64_t seed) {
  std::mt19937_64 random(seed);
  const RowBounds bounds = DrawBounds(random);
  const size_t ids = bounds.max_rows > 0 ? 6000 : 300;
  const uint32_t shards = 1 + random() % 4;
  auto tables = std::make_unique<Tables>(bounds, shards);
  Model model(bounds, shards);
  std::vector<SavedShard> saved = tables->Save();
  std::map<uint64_t, Model::Id> saved_model = model.Cut();
  std::vector<std::pair<Occurrences, bool>> journal;
  const int steps = 20 + random() % 60;
  for (int step = 0; step < steps; ++step) {
    Occurrences push = DrawPush(random, ids);
    if (bounds.max_rows > 0 && random() % 4 == 0) {
      for (int i = 0; i < 10; ++i) {
        const Occurrences more = DrawPush(random, ids);
        push.insert(push.end(), more.begin(), more.end());
      }
      std::map<uint64_t, uint32_t> distinct(push.begin(), push.end());
      push.assign(distinct.begin(), distinct.end());
    }
    journal.emplace_back(push, random() % 2 == 0);
    tables->Push(push, journal.back().second);
    model.Push(push);
    for (int i = 0; i < 20; ++i) {
      const auto share = static_cast<double>(random() % 1000) / 1000;
      const uint64_t id =
          static_cast<uint64_t>(share * share * ids) * 0x9e3779b9 - 3;
      ASSERT_EQ(tables->Pull(id), model.Pull(id))
          << "seed " << seed << ", step " << step << ", id " << id;
    }
    if (random() % 8 == 0) {
      saved = tables->Save();
      saved_model = Tables::AsModel(saved);
      ASSERT_EQ(saved_model, Kept(model.Cut(), bounds))
          << "seed " << seed << ", step " << step;
      journal.clear();
    }
    if (random() % 16 == 0) {
      const uint32_t shards_now = 1 + random() % 4;
      tables = std::make_unique<Tables>(bounds, shards_now);
      tables->Restore(saved, random);
      model.Restore(saved_model, saved[0].updates, shards_now);
      for (const auto& [again, lists_twice] : journal) {
        tables->Push(again, lists_twice);
        model.Push(again);
      }
    }
  }
  ASSERT_EQ(Tables::AsModel(tables->Save()), Kept(model.Cut(), bounds))
      << "seed " << seed;
}

constexpr uint64_t kSchedules = 400;

TEST(RowBoundsTest, ATableDoesWhatTheModelDoes) {
  for (uint64_t seed = 1; seed <= kSchedules; ++seed) {
    RunSchedule(seed);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace parasol
