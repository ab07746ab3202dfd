#include "ps/shard/shard_snapshot.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

constexpr absl::Duration kCancelPoll = absl::Milliseconds(100);
constexpr absl::Duration kLogInterval = absl::Seconds(10);

absl::Status InFrontOf(const std::string& name, const absl::Status& status) {
  RETURN_IF_ERROR(status) << name;
  return absl::OkStatus();
}

}  // namespace

ShardSnapshot NamedSnapshot(const PartLayout& layout,
                            std::vector<ChunkContents> contents,
                            std::vector<RowSnapshot> tables) {
  ShardSnapshot snapshot;
  snapshot.tables = std::move(tables);
  snapshot.chunks.reserve(contents.size());
  for (const size_t chunk : layout.ChunksInCheckpointOrder()) {
    const PartLayout::Chunk& place = layout.chunks()[chunk];
    snapshot.chunks.push_back(
        {.variable = layout.parts()[place.part].variable(),
         .first_element = place.first_element,
         .contents = std::move(contents[chunk]),
         .is_frozen = layout.parts()[place.part].frozen()});
  }
  std::sort(snapshot.tables.begin(), snapshot.tables.end(),
            [](const RowSnapshot& a, const RowSnapshot& b) {
              return a.name() < b.name();
            });
  return snapshot;
}

std::vector<int64_t> UpdatesOf(const ShardSnapshot& snapshot) {
  std::vector<int64_t> updates;
  updates.reserve(snapshot.chunks.size());
  for (const ShardSnapshot::Chunk& chunk : snapshot.chunks) {
    updates.push_back(chunk.contents.updates);
  }
  return updates;
}

void DropUnchanged(const std::vector<int64_t>& updates,
                   ShardSnapshot& snapshot) {
  CHECK_EQ(updates.size(), snapshot.chunks.size());
  std::vector<ShardSnapshot::Chunk> changed;
  for (size_t i = 0; i < updates.size(); ++i) {
    ShardSnapshot::Chunk& chunk = snapshot.chunks[i];
    if (chunk.is_frozen || chunk.contents.updates == updates[i]) continue;
    changed.push_back(std::move(chunk));
  }
  snapshot.chunks = std::move(changed);
}

StepSnapshot::StepSnapshot(DenseParts& dense, SparseTables tables,
                           int64_t updates, const SnapshotTurn& turn)
    : dense_(dense),
      tables_(tables),
      updates_(updates),
      taken_(std::make_shared<Taken>()),
      all_(std::make_shared<Latch>(
          dense.chunks().size() + tables.size() + 1,
          [taken = taken_](const Latch::Outcome& outcome) {
            absl::MutexLock lock(&taken->mu);
            taken->done = outcome.status;
          })) {
  taken_->chunks.resize(dense.chunks().size());
  taken_->tables.resize(tables.size());
  Released released;
  for (size_t i = 0; i < dense.chunks().size(); ++i) {
    dense.chunks()[i]->SnapshotAt(
        updates, std::shared_ptr<ChunkContents>(taken_, &taken_->chunks[i]),
        LatchFor(ChunkName(i)), released);
  }
  for (size_t i = 0; i < tables.size(); ++i) {
    tables[i]->SnapshotAt(
        updates, turn,
        std::shared_ptr<std::optional<RowSnapshot>>(taken_, &taken_->tables[i]),
        LatchFor(absl::StrCat("table \"", tables[i]->name(), "\"")), released);
  }
  all_->CountDown();
}

StepSnapshot::~StepSnapshot() {
  if (IsDone()) return;
  for (size_t i = 0; i < dense_.chunks().size(); ++i) {
    dense_.chunks()[i]->CancelSnapshot(&taken_->chunks[i]);
  }
  for (size_t i = 0; i < tables_.size(); ++i) {
    tables_[i]->CancelSnapshot(&taken_->tables[i]);
  }
}

bool StepSnapshot::IsDone() const {
  absl::MutexLock lock(&taken_->mu);
  return taken_->done.has_value();
}

absl::StatusOr<ShardSnapshot> StepSnapshot::Wait(
    Clock& clock, const std::function<bool()>& is_cancelled) {
  const absl::Time start = clock.Now();
  {
    absl::MutexLock lock(&taken_->mu);
    const auto is_done = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(taken_->mu) {
      return taken_->done.has_value();
    };
    while (!clock.AwaitWithTimeout(taken_->mu, absl::Condition(&is_done),
                                   kCancelPoll)) {
      if (is_cancelled()) {
        return absl::CancelledError(
            absl::StrCat("the snapshot at ", updates_,
                         " updates was cancelled: ", Awaited()));
      }
      if (clock.Now() - start >= kLogInterval) {
        LOG_EVERY(INFO, kLogInterval) << "waiting for a snapshot at "
                                      << updates_ << " updates: " << Awaited();
      }
    }
    RETURN_IF_ERROR(*taken_->done);
  }
  std::vector<RowSnapshot> tables;
  for (std::optional<RowSnapshot>& table : taken_->tables) {
    tables.push_back(*std::move(table));
  }
  ShardSnapshot snapshot = NamedSnapshot(
      dense_.layout(), std::move(taken_->chunks), std::move(tables));
  snapshot.journal = journal_;
  return snapshot;
}

std::shared_ptr<Latch> StepSnapshot::LatchFor(std::string name) const {
  return std::make_shared<Latch>(
      1, [all = all_, name = std::move(name)](const Latch::Outcome& outcome) {
        all->Fail(InFrontOf(name, outcome.status));
        all->CountDown();
      });
}

std::string StepSnapshot::ChunkName(size_t chunk) const {
  const PartLayout::Chunk& place = dense_.layout().chunks()[chunk];
  return absl::StrCat("\"", dense_.layout().parts()[place.part].variable(),
                      "\" at element ", place.first_element);
}

std::string StepSnapshot::Awaited() const {
  const auto has_had = [](const std::string& name, int64_t updates) {
    return absl::StrCat(name, " has had ", updates);
  };
  for (size_t i = 0; i < dense_.chunks().size(); ++i) {
    if (dense_.chunks()[i]->is_frozen()) continue;
    const int64_t had = dense_.chunks()[i]->updates();
    if (had < updates_) return has_had(ChunkName(i), had);
  }
  for (const std::unique_ptr<SparseTable>& table : tables_) {
    const int64_t had = table->updates().min;
    if (had < updates_) {
      return has_had(absl::StrCat("table \"", table->name(), "\""), had);
    }
  }
  return "all have had them by now";
}

}  // namespace parasol
