#include "worker/store/table/device_tables.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "ml/optimizer/assigned/optimizer_of.h"

namespace parasol {

namespace {

// Fewest blocks for which a limit has room: more meet it more exactly.
constexpr size_t kBlocksOfLimit = 256;

// A table that is to make room gives back its blocks divided by this.
constexpr size_t kShareGivenBack = 8;

constexpr size_t kMostHelpers = 3;

size_t LimitOf(const job::WorkerSettings& worker) {
  if (!worker.has_max_device_table_bytes()) return SIZE_MAX;
  return static_cast<size_t>(worker.max_device_table_bytes());
}

}  // namespace

DeviceTables::DeviceTables(const job::Job& job, Device& device,
                           const Options& options)
    : job_(job),
      device_(device),
      reserve_bytes_(options.reserve_bytes),
      worth_options_(options.worth),
      memory_(LimitOf(job.worker())),
      tables_(job.model().sparse_table_size()),
      swap_(device, options.swap_bytes),
      helpers_(options.helpers) {}

size_t DeviceTables::HelpersByCores() {
  return std::min(kMostHelpers, WorkHelpers::ThreadsForServer() / 2);
}

absl::StatusOr<std::unique_ptr<DeviceTables>> DeviceTables::Create(
    const job::Job& job, Device& device, const Options& options) {
  std::unique_ptr<DeviceTables> tables(new DeviceTables(job, device, options));
  ASSIGN_OR_RETURN(Group of_job, tables->MakeGroup(job.optimizer()));
  tables->groups_.push_back(std::move(of_job));
  for (const job::SparseTable& spec : job.model().sparse_table()) {
    if (!spec.has_optimizer() && spec.trainable() &&
        spec.learning_rate_multiplier() == 1) {
      tables->group_of_.push_back(0);
      continue;
    }
    ASSIGN_OR_RETURN(Group own, tables->MakeGroup(RowOptimizerOf(spec, job)));
    if (!spec.trainable()) own.update = nullptr;
    tables->group_of_.push_back(tables->groups_.size());
    tables->groups_.push_back(std::move(own));
  }
  return tables;
}

absl::StatusOr<DeviceTables::Group> DeviceTables::MakeGroup(
    const job::Optimizer& spec) {
  Group group;
  ASSIGN_OR_RETURN(group.optimizer, MakeOptimizer(spec));
  ASSIGN_OR_RETURN(group.update,
                   TableUpdate::Create(device_, *group.optimizer, spec));
  return group;
}

absl::Status DeviceTables::Start(std::vector<RowTable*> on_host) {
  CHECK_EQ(on_host.size(), tables_.size());
  // Rows may be on their way to and from the memory that is given back.
  RETURN_IF_ERROR(device_.Synchronize());
  RETURN_IF_ERROR(swap_.Finish());
  on_host_ = std::move(on_host);
  reserve_ = Array<std::byte>();
  may_reserve_ = true;
  worth_.assign(tables_.size(), CacheWorth(worth_options_));
  for (size_t i = 0; i < tables_.size(); ++i) {
    const job::SparseTable& spec = job_.model().sparse_table(i);
    tables_[i] = nullptr;
    const DeviceTable::Options options = {
        .name = spec.name(),
        .width = static_cast<size_t>(spec.width()),
        .initializer = spec.initializer(),
        .seed = job_.seed(),
        .block_bytes = memory_.limit_bytes() / kBlocksOfLimit};
    ASSIGN_OR_RETURN(tables_[i], DeviceTable::Create(
                                     options, *groups_[group_of_[i]].optimizer,
                                     memory_, device_));
  }
  return absl::OkStatus();
}

// Tables that are looked up with the same ids, as in wide and deep models,
// usually have the same numbers for them.
void DeviceTables::Probe(absl::Span<const uint64_t> hashes, size_t first,
                         absl::Span<const RowProbe> tables) const {
  for (size_t i = 0; i < tables.size(); ++i) {
    if (!Has(tables[i].table)) continue;
    const RowNumbers& numbers = tables_[tables[i].table]->numbers();
    const auto before = tables.first(i);
    const auto twin =
        std::find_if(before.begin(), before.end(), [&](const RowProbe& other) {
          return Has(other.table) &&
                 numbers.AreThoseOf(tables_[other.table]->numbers());
        });
    if (twin == before.end()) {
      numbers.Probe(hashes, tables[i].probed + first);
    } else {
      std::copy_n(twin->probed + first, hashes.size(),
                  tables[i].probed + first);
    }
  }
}

void DeviceTables::CompareNumbers(absl::Span<const RowLookup> lookups) {
  for (size_t i = 1; i < lookups.size(); ++i) {
    if (!Has(lookups[i].table)) continue;
    const auto before = lookups.first(i);
    const auto twin =
        std::find_if(before.begin(), before.end(), [&](const RowLookup& other) {
          return Has(other.table) &&
                 other.hashes.data() == lookups[i].hashes.data();
        });
    if (twin == before.end()) continue;
    tables_[lookups[i].table]->CompareNumbers(*tables_[twin->table]);
  }
}

// Rows that have been given seats go there whatever happens to other tables.
absl::Status DeviceTables::Find(absl::Span<RowLookup> lookups) {
  RETURN_IF_ERROR(LeaveCaches());
  misses_.assign(tables_.size(), 0);
  do {
    has_shrunk_ = false;
    absl::Status found;
    for (size_t i = 0; i < lookups.size() && found.ok(); ++i) {
      found = Find(lookups[i]);
    }
    found.Update(swap_.Send());
    RETURN_IF_ERROR(found);
    // Rows that were found may have lost their seats.
  } while (has_shrunk_);
  CompareNumbers(lookups);
  CountUse(lookups);
  return absl::OkStatus();
}

absl::Status DeviceTables::Find(RowLookup& lookup) {
  const size_t table = lookup.table;
  lookup.is_on_device = false;
  while (Has(table)) {
    const size_t added = swap_.added();
    const absl::StatusOr<absl::Span<const int32_t>> found =
        tables_[table]->Find(lookup.hashes, lookup.probed, swap_);
    if (absl::IsResourceExhausted(found.status())) {
      RETURN_IF_ERROR(GiveWay(table, lookup.hashes.size(), found.status()));
      continue;
    }
    RETURN_IF_ERROR(found.status()) << "table " << on_host_[table]->name();
    lookup.is_on_device = true;
    lookup.numbers = *found;
    lookup.blocks = tables_[table]->blocks();
    misses_[table] += swap_.added() - added;
    return KeepReserve();
  }
  return absl::OkStatus();
}

// A batch is counted once, however often its rows were found.
void DeviceTables::CountUse(absl::Span<const RowLookup> lookups) {
  for (const RowLookup& lookup : lookups) {
    if (!IsCached(lookup.table)) continue;
    const auto rows = static_cast<int64_t>(lookup.hashes.size());
    const int64_t misses = misses_[lookup.table];
    cache_use_.rows += rows;
    cache_use_.misses += misses;
    worth_[lookup.table].Add(rows, std::min(rows, misses));
  }
}

absl::Status DeviceTables::LeaveCaches() {
  for (size_t i = 0; i < worth_.size(); ++i) {
    const std::optional<double> share = worth_[i].LowShare();
    if (!IsCached(i) || !share.has_value()) continue;
    LOG(INFO) << "table " << on_host_[i]->name() << ": of the rows of its last "
              << worth_[i].batches() << " batches "
              << absl::StrFormat("%.0f %%", 100 * *share)
              << " were in the memory of " << device_.name()
              << ", which is worth it from "
              << absl::StrFormat("%.0f %%", 100 * worth_options_.least_share)
              << " on: all of its " << tables_[i]->rows()
              << " rows are in host memory from now on";
    RETURN_IF_ERROR(MoveToHost(i));
  }
  return absl::OkStatus();
}

absl::Status DeviceTables::GiveWay(size_t table, size_t rows,
                                   const absl::Status& why) {
  ASSIGN_OR_RETURN(const bool has_more, TakeFromOthers(table, rows, why));
  if (has_more) return absl::OkStatus();
  ASSIGN_OR_RETURN(const bool is_cached, TryCache(table, rows, why));
  return is_cached ? absl::OkStatus() : GiveUp(table, why);
}

absl::StatusOr<bool> DeviceTables::TakeFromOthers(size_t table, size_t rows,
                                                  const absl::Status& why) {
  const DeviceTable& small = *tables_[table];
  size_t others_bytes = 0;
  for (const size_t other : BySize()) {
    if (other == table || !MayCache(other)) continue;
    others_bytes += tables_[other]->allocated_bytes();
  }
  const size_t missing = (rows - std::min(rows, small.capacity())) *
                         small.floats() * sizeof(float);
  const bool lacks_batch = missing > 0 && missing <= others_bytes;
  for (const size_t other : BySize()) {
    if (other == table) continue;
    const bool has_far_more =
        tables_[other]->allocated_bytes() > 2 * small.allocated_bytes();
    if (!has_far_more && !lacks_batch) continue;
    ASSIGN_OR_RETURN(const bool has_shrunk, Shrink(other, why));
    if (has_shrunk) return true;
  }
  return false;
}

absl::StatusOr<bool> DeviceTables::TryCache(size_t table, size_t rows,
                                            const absl::Status& why) {
  DeviceTable& full = *tables_[table];
  if (!MayCache(table) || full.is_cached() ||
      full.capacity() < std::max<size_t>(rows, 1)) {
    return false;
  }
  const absl::Status reserved = swap_.Reserve(full.floats());
  if (absl::IsResourceExhausted(reserved)) return false;
  RETURN_IF_ERROR(reserved);
  full.UseCache();
  LogCache(table, why);
  return true;
}

// What is on its way to seats, for another table of a batch perhaps, goes there
// before seats are given up.
absl::StatusOr<bool> DeviceTables::Shrink(size_t table,
                                          const absl::Status& why) {
  if (!MayCache(table)) return false;
  DeviceTable& large = *tables_[table];
  RETURN_IF_ERROR(swap_.Send());
  RETURN_IF_ERROR(swap_.Finish());
  ASSIGN_OR_RETURN(
      const bool has_shrunk,
      large.GiveBack(1 + large.allocated_bytes() / kShareGivenBack));
  if (!has_shrunk) return false;
  has_shrunk_ = true;
  const absl::Status reserved = swap_.Reserve(large.floats());
  if (absl::IsResourceExhausted(reserved)) {
    RETURN_IF_ERROR(GiveUp(table, reserved));
    return true;
  }
  RETURN_IF_ERROR(reserved);
  LogCache(table, why);
  return true;
}

void DeviceTables::LogCache(size_t table, const absl::Status& why) const {
  LOG(INFO) << "table " << on_host_[table]->name() << ": its "
            << tables_[table]->rows() << " rows, and more to come, are in host "
            << "memory from now on, and the " << tables_[table]->capacity()
            << " that were used last in the memory of " << device_.name()
            << ": " << why.message();
}

bool DeviceTables::MayCache(size_t table) const {
  return groups_[group_of_[table]].optimizer->other_rows() ==
         Optimizer::OtherRows::kUntouched;
}

std::vector<size_t> DeviceTables::BySize() const {
  std::vector<size_t> tables;
  for (size_t i = 0; i < tables_.size(); ++i) {
    if (Has(i) && tables_[i]->allocated_bytes() > 0) tables.push_back(i);
  }
  std::stable_sort(tables.begin(), tables.end(), [this](size_t a, size_t b) {
    return tables_[a]->allocated_bytes() > tables_[b]->allocated_bytes();
  });
  return tables;
}

absl::Status DeviceTables::KeepReserve() {
  if (reserve_.size() > 0 || !may_reserve_) return absl::OkStatus();
  size_t bytes = 0;
  for (const auto& table : tables_) {
    if (table != nullptr) bytes += table->allocated_bytes();
  }
  if (bytes < reserve_bytes_) return absl::OkStatus();
  absl::StatusOr<Array<std::byte>> reserve =
      device_.NewArray<std::byte>(reserve_bytes_);
  if (absl::IsResourceExhausted(reserve.status())) {
    may_reserve_ = false;
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(reserve.status());
  reserve_ = *std::move(reserve);
  // There may be no room for it when it is needed.
  for (size_t i = 0; i < tables_.size(); ++i) {
    if (!Has(i) || !MayCache(i)) continue;
    const absl::Status reserved = swap_.Reserve(tables_[i]->floats());
    if (absl::IsResourceExhausted(reserved)) break;
    RETURN_IF_ERROR(reserved);
  }
  return absl::OkStatus();
}

bool DeviceTables::FreeReserve() {
  if (reserve_.size() == 0) return false;
  reserve_ = Array<std::byte>();
  may_reserve_ = false;
  return true;
}

absl::Status DeviceTables::Update(absl::Span<const DeviceTraining::Rows> rows) {
  for (size_t i = 0; i < groups_.size(); ++i) {
    if (groups_[i].update == nullptr) continue;
    RETURN_IF_ERROR(Update(groups_[i], i, rows)) << "update of tables";
  }
  for (const DeviceTraining::Rows& one : rows) {
    tables_[one.table]->CountUpdate();
  }
  return absl::OkStatus();
}

// Tables that have had as many updates, usually all, are updated together.
absl::Status DeviceTables::Update(Group& group, size_t index,
                                  absl::Span<const DeviceTraining::Rows> rows) {
  for (size_t first = 0; first < rows.size(); ++first) {
    const int64_t iterations = tables_[rows[first].table]->updates();
    const auto is_like_first = [&](const DeviceTraining::Rows& one) {
      return group_of_[one.table] == index &&
             tables_[one.table]->updates() == iterations;
    };
    if (!is_like_first(rows[first])) continue;
    // Those before it have been updated with others.
    const auto before = rows.subspan(0, first);
    if (std::any_of(before.begin(), before.end(), is_like_first)) continue;
    updated_.clear();
    for (const DeviceTraining::Rows& one : rows.subspan(first)) {
      if (!is_like_first(one)) continue;
      updated_.push_back({.rows = one.rows,
                          .elements = one.elements,
                          .num_rows = tables_[one.table]->rows()});
    }
    RETURN_IF_ERROR(group.update->Apply(iterations, updated_));
  }
  return absl::OkStatus();
}

absl::Status DeviceTables::Pull(size_t table, absl::Span<const uint64_t> ids,
                                absl::Span<float> values) {
  RETURN_IF_ERROR(swap_.Finish());
  const size_t width = on_host_[table]->width();
  for (size_t i = 0; i < ids.size() && Has(table);) {
    const absl::Status read =
        tables_[table]->Read(ids[i], values.subspan(i * width, width));
    if (absl::IsResourceExhausted(read)) {
      RETURN_IF_ERROR(GiveWay(table, /*rows=*/1, read));
      continue;
    }
    RETURN_IF_ERROR(read);
    ++i;
  }
  if (Has(table)) return KeepReserve();
  return on_host_[table]->Pull(reinterpret_cast<const std::byte*>(ids.data()),
                               ids.size(), values.data());
}

absl::Status DeviceTables::Insert(size_t table, const RowBatch& batch) {
  while (Has(table)) {
    const absl::Status inserted = tables_[table]->Insert(batch);
    if (inserted.ok()) return KeepReserve();
    if (!absl::IsResourceExhausted(inserted)) return inserted;
    RETURN_IF_ERROR(GiveWay(table, /*rows=*/1, inserted));
  }
  return on_host_[table]->Insert(batch);
}

absl::Status DeviceTables::Visit(size_t table, RowVisit visit) {
  CHECK(Has(table));
  RETURN_IF_ERROR(swap_.Finish());
  return tables_[table]->Visit(visit);
}

void DeviceTables::AddTo(size_t table, RowSample& sample) const {
  CHECK(Has(table));
  for (const uint64_t id : tables_[table]->numbers().ids()) sample.Add(id);
}

absl::StatusOr<bool> DeviceTables::MakeRoom(const absl::Status& why) {
  const std::vector<size_t> tables = BySize();
  if (tables.empty()) return false;
  ASSIGN_OR_RETURN(const bool has_shrunk, Shrink(tables.front(), why));
  if (!has_shrunk) {
    RETURN_IF_ERROR(GiveUp(tables.front(), why));
  }
  return true;
}

absl::Status DeviceTables::GiveUp(size_t table, const absl::Status& why) {
  RETURN_IF_ERROR(MoveToHost(table));
  LOG(WARNING) << "table " << on_host_[table]->name() << ": its rows don't fit "
               << "in the memory of " << device_.name() << " and are in host "
               << "memory from now on, which is slower: " << why.message();
  return absl::OkStatus();
}

absl::Status DeviceTables::MoveToHost(size_t table) {
  // What is to be visited waits for nothing if the table has no rows, but the
  // list of its blocks may be on its way.
  RETURN_IF_ERROR(device_.Synchronize());
  RETURN_IF_ERROR(swap_.Finish());
  RowTable& on_host = *on_host_[table];
  RETURN_IF_ERROR(tables_[table]->Drain([&on_host](const RowBatch& batch) {
    return on_host.Insert(batch);
  })) << "table "
      << on_host.name() << ", from the device to host memory";
  tables_[table] = nullptr;
  return absl::OkStatus();
}

}  // namespace parasol
