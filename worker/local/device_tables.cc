#include "worker/local/device_tables.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/status_macros.h"
#include "ml/optimizer/assigned/optimizer_of.h"

namespace parasol {

absl::StatusOr<std::unique_ptr<DeviceTables>> DeviceTables::Create(
    const job::Job& job, Device& device, size_t reserve_bytes) {
  std::unique_ptr<DeviceTables> tables(
      new DeviceTables(job, device, reserve_bytes));
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
  // Rows may be on their way to the memory that is given back.
  RETURN_IF_ERROR(device_.Synchronize());
  on_host_ = std::move(on_host);
  reserve_ = Array<std::byte>();
  may_reserve_ = true;
  for (size_t i = 0; i < tables_.size(); ++i) {
    const job::SparseTable& spec = job_.model().sparse_table(i);
    tables_[i] = nullptr;
    const DeviceTable::Options options = {
        .name = spec.name(),
        .width = static_cast<size_t>(spec.width()),
        .initializer = spec.initializer(),
        .seed = job_.seed()};
    ASSIGN_OR_RETURN(tables_[i],
                     DeviceTable::Create(
                         options, *groups_[group_of_[i]].optimizer, device_));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> DeviceTables::Find(size_t table,
                                        absl::Span<const uint64_t> ids,
                                        absl::Span<int32_t> numbers) {
  if (!Has(table)) return false;
  const absl::Status found = tables_[table]->Find(ids, numbers);
  if (absl::IsResourceExhausted(found)) {
    RETURN_IF_ERROR(MoveToHost(table, found));
    return false;
  }
  RETURN_IF_ERROR(found);
  RETURN_IF_ERROR(KeepReserve());
  return true;
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
  return absl::OkStatus();
}

bool DeviceTables::FreeReserve() {
  if (reserve_.size() == 0) return false;
  reserve_ = Array<std::byte>();
  may_reserve_ = false;
  return true;
}

RowBlocks DeviceTables::blocks(size_t table) const {
  return tables_[table]->blocks();
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
  const size_t width = on_host_[table]->width();
  for (size_t i = 0; i < ids.size() && Has(table); ++i) {
    int32_t number = 0;
    ASSIGN_OR_RETURN(const bool is_there, Find(table, ids.subspan(i, 1),
                                               absl::MakeSpan(&number, 1)));
    if (!is_there) break;
    RETURN_IF_ERROR(
        tables_[table]->Read(number, values.subspan(i * width, width)));
  }
  if (Has(table)) return absl::OkStatus();
  return on_host_[table]->Pull(reinterpret_cast<const std::byte*>(ids.data()),
                               ids.size(), values.data());
}

absl::Status DeviceTables::Insert(size_t table, const RowBatch& batch) {
  if (Has(table)) {
    const absl::Status inserted = tables_[table]->Insert(batch);
    if (inserted.ok()) return KeepReserve();
    if (!absl::IsResourceExhausted(inserted)) return inserted;
    RETURN_IF_ERROR(MoveToHost(table, inserted));
  }
  return on_host_[table]->Insert(batch);
}

absl::Status DeviceTables::Visit(size_t table, RowVisit visit) {
  CHECK(Has(table));
  return tables_[table]->Visit(visit);
}

void DeviceTables::AddTo(size_t table, RowSample& sample) const {
  CHECK(Has(table));
  for (const uint64_t id : tables_[table]->ids()) sample.Add(id);
}

absl::StatusOr<bool> DeviceTables::MoveLargestToHost(const absl::Status& why) {
  size_t largest = 0;
  size_t bytes = 0;
  for (size_t i = 0; i < tables_.size(); ++i) {
    if (!Has(i) || tables_[i]->allocated_bytes() <= bytes) continue;
    largest = i;
    bytes = tables_[i]->allocated_bytes();
  }
  if (bytes == 0) return false;
  RETURN_IF_ERROR(MoveToHost(largest, why));
  return true;
}

absl::Status DeviceTables::MoveToHost(size_t table, const absl::Status& why) {
  // Visit() waits for nothing if the table has no rows, but the list of its
  // blocks may be on its way.
  RETURN_IF_ERROR(device_.Synchronize());
  RowTable& on_host = *on_host_[table];
  RETURN_IF_ERROR(tables_[table]->Visit([&on_host](const RowBatch& batch) {
    return on_host.Insert(batch);
  })) << "table "
      << on_host.name() << ", from the device to host memory";
  LOG(WARNING) << "table " << on_host.name() << ": its rows don't fit in the "
               << "memory of " << device_.name() << " and are in host memory "
               << "from now on, which is slower: " << why.message();
  tables_[table] = nullptr;
  return absl::OkStatus();
}

}  // namespace parasol
