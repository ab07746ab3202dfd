#include "worker/store/parameter_store.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/checkpoint/resume.h"
#include "cluster/rows/row_checkpoint.h"
#include "ml/optimizer/assigned/optimizer_of.h"
#include "ml/optimizer/optimizer.h"
#include "storage/shard_entry.h"

namespace parasol {
namespace {

template <typename T>
const std::byte* BytesOf(absl::Span<const T> values) {
  return reinterpret_cast<const std::byte*>(values.data());
}

// The elements of `all`, in ascending order of what `name_of` returns for them.
template <typename T, typename NameOf>
std::vector<const T*> ByName(const std::vector<T>& all, NameOf name_of) {
  std::vector<const T*> by_name;
  for (const T& one : all) by_name.push_back(&one);
  std::sort(by_name.begin(), by_name.end(),
            [&](const T* a, const T* b) { return name_of(*a) < name_of(*b); });
  return by_name;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ParameterStore>> ParameterStore::Create(
    const std::vector<VariableSpec>& variables, const job::Job& job) {
  ASSIGN_OR_RETURN(std::unique_ptr<HostVariables> on_host,
                   HostVariables::Create(variables, job));
  ASSIGN_OR_RETURN(std::unique_ptr<ParameterStore> parameters,
                   Create(*on_host, job));
  parameters->host_variables_ = std::move(on_host);
  return parameters;
}

absl::StatusOr<std::unique_ptr<ParameterStore>>
ParameterStore::CreateWithoutTables(const std::vector<VariableSpec>& variables,
                                    const job::Job& job) {
  ASSIGN_OR_RETURN(std::unique_ptr<HostVariables> on_host,
                   HostVariables::Create(variables, job));
  ASSIGN_OR_RETURN(std::unique_ptr<ParameterStore> parameters,
                   CreateVariables(*on_host, job));
  parameters->host_variables_ = std::move(on_host);
  return parameters;
}

absl::StatusOr<std::unique_ptr<ParameterStore>> ParameterStore::CreateVariables(
    StoredVariables& variables, const job::Job& job) {
  std::unique_ptr<ParameterStore> parameters(
      new ParameterStore(variables, job));
  ASSIGN_OR_RETURN(parameters->contents_, ContentsOf(variables.specs(), job));
  RETURN_IF_ERROR(variables.Initialize(job.seed()));
  return parameters;
}

absl::StatusOr<std::unique_ptr<ParameterStore>> ParameterStore::Create(
    StoredVariables& variables, const job::Job& job, TablesElsewhere* tables) {
  ASSIGN_OR_RETURN(std::unique_ptr<ParameterStore> parameters,
                   CreateVariables(variables, job));
  for (const job::SparseTable& table : job.model().sparse_table()) {
    RETURN_IF_ERROR(parameters->AddTable(table)) << "table " << table.name();
  }
  if (tables == nullptr) return parameters;
  parameters->elsewhere_ = tables;
  std::vector<RowTable*> on_host;
  for (const auto& table : parameters->tables_) on_host.push_back(table.get());
  RETURN_IF_ERROR(tables->Start(std::move(on_host)));
  return parameters;
}

std::unique_ptr<ParameterStore> StoreLike(const ParameterStore& other) {
  CHECK_EQ(other.num_tables(), 0u);
  auto on_host = HostVariables::CreateLike(other.variables_);
  std::unique_ptr<ParameterStore> parameters(
      new ParameterStore(*on_host, other.job_));
  parameters->contents_ = other.contents_;
  parameters->host_variables_ = std::move(on_host);
  return parameters;
}

std::unique_ptr<ParameterStore> StoreOf(StoredVariables& variables,
                                        const job::Job& job) {
  std::unique_ptr<ParameterStore> parameters(
      new ParameterStore(variables, job));
  for (size_t i = 0; i < variables.specs().size(); ++i) {
    const VariableSpec& spec = variables.specs()[i];
    const std::vector<std::string>& slots = variables.optimizer(i).slot_names();
    durable::CheckpointVariable& entry =
        parameters->contents_.variables.emplace_back();
    entry.set_name(spec.name);
    entry.mutable_shape()->Assign(spec.shape.begin(), spec.shape.end());
    entry.mutable_slot()->Assign(slots.begin(), slots.end());
  }
  return parameters;
}

absl::Status ParameterStore::AddTable(const job::SparseTable& spec) {
  ASSIGN_OR_RETURN(std::unique_ptr<const Optimizer> optimizer,
                   MakeOptimizer(RowOptimizerOf(spec, job_)));
  RowTable::Options options;
  options.name = spec.name();
  options.width = spec.width();
  options.initializer = spec.initializer();
  options.seed = job_.seed();
  options.bounds = BoundsOf(spec);
  if (spec.has_tier()) {
    return absl::InvalidArgumentError(
        "tier: tables of workers are in memory; leave it out, or train with "
        "ps");
  }
  if (spec.values() != job::SparseTable::FLOAT32) {
    return absl::InvalidArgumentError(
        "values: tables of workers have float32; leave it out, or train with "
        "ps");
  }
  ASSIGN_OR_RETURN(std::unique_ptr<RowTable> table,
                   RowTable::Create(std::move(options), std::move(optimizer)));
  tables_.push_back(std::move(table));
  return absl::OkStatus();
}

std::unique_ptr<TrainingParameters::Pending> ParameterStore::Pull(
    PullRequest request) {
  absl::Status status;
  for (const Target& target : request.targets) {
    status.Update(PullVariable(target));
  }
  for (const RowTarget& rows : request.rows) status.Update(PullRows(rows));
  return std::make_unique<DonePending>(std::move(status));
}

absl::Status ParameterStore::PullRows(const RowTarget& rows) {
  RowTable& table = *tables_[rows.table];
  CHECK_EQ(rows.values.size(), rows.ids.size() * table.width());
  if (IsElsewhere(rows.table)) {
    return elsewhere_->Pull(rows.table, rows.ids, rows.values);
  }
  return table.Pull(BytesOf(rows.ids), rows.ids.size(), rows.values.data());
}

absl::StatusOr<std::vector<float>> ParameterStore::SampleRows(size_t table) {
  RowSample sample(tables_[table]->width());
  if (IsElsewhere(table)) {
    elsewhere_->AddTo(table, sample);
  } else {
    tables_[table]->AddTo(sample);
  }
  const std::vector<uint64_t> ids = sample.Ids();
  std::vector<float> values(ids.size() * tables_[table]->width());
  RETURN_IF_ERROR(PullRows({table, ids, absl::MakeSpan(values)}));
  return values;
}

absl::Status ParameterStore::PullVariable(const Target& target) {
  ASSIGN_OR_RETURN(const absl::Span<const float> value,
                   variables_.Read(target.variable, kValueArray));
  CHECK_EQ(target.values.size(), value.size());
  std::copy(value.begin(), value.end(), target.values.begin());
  return absl::OkStatus();
}

std::unique_ptr<TrainingParameters::Pending> ParameterStore::Push(
    PushRequest request) {
  for (const Gradient& gradient : request.gradients) {
    ApplyBlock(gradient.variable, /*first=*/0, gradient.values);
    CountUpdate(gradient.variable);
  }
  absl::Status status;
  for (const RowGradient& rows : request.rows) {
    status.Update(ApplyRows(rows.table, rows.ids, rows.values, rows.counts));
  }
  return std::make_unique<DonePending>(std::move(status));
}

void ParameterStore::ApplyBlock(size_t variable, size_t first,
                                absl::Span<const float> gradient) {
  CHECK(host_variables_ != nullptr) << "variables are updated elsewhere";
  host_variables_->Apply(variable, first, gradient);
}

void ParameterStore::CountUpdate(size_t variable) {
  host_variables_->CountUpdate(variable);
}

absl::Status ParameterStore::ApplyRows(size_t table,
                                       absl::Span<const uint64_t> ids,
                                       absl::Span<const float> gradients,
                                       absl::Span<const uint32_t> counts) {
  CHECK_EQ(gradients.size(), ids.size() * tables_[table]->width());
  CHECK(!IsElsewhere(table)) << "the table is updated elsewhere";
  return tables_[table]->Push(BytesOf(ids), BytesOf(gradients), ids.size(),
                              /*out=*/nullptr,
                              counts.empty() ? nullptr : BytesOf(counts));
}

absl::Status ParameterStore::Save(ShardWriter& writer) const {
  const std::vector<VariableSpec>& specs = variables_.specs();
  const auto by_name =
      ByName(specs, [](const VariableSpec& spec) { return spec.name; });
  for (const VariableSpec* spec : by_name) {
    const size_t variable = spec - specs.data();
    for (int array = 0; array < variables_.num_arrays(variable); ++array) {
      ASSIGN_OR_RETURN(const absl::Span<const float> elements,
                       variables_.Read(variable, array));
      RETURN_IF_ERROR(writer.AddElements(spec->name, array, /*first=*/0,
                                         variables_.updates()[variable],
                                         elements));
    }
  }
  const auto tables =
      ByName(tables_, [](const auto& table) { return table->name(); });
  for (const auto* table : tables) {
    RETURN_IF_ERROR(SaveTable(table - tables_.data(), writer));
  }
  // Behind the rows of all tables; one that is elsewhere has none.
  for (const auto* table : tables) {
    const int number = static_cast<int>(table - tables_.data());
    if (!BoundsOf(job_.model().sparse_table(number)).counts()) continue;
    const RowSnapshot snapshot = (*table)->TakeSnapshot();
    RETURN_IF_ERROR(snapshot.VisitCounts([&](const CountBatch& counts) {
      return writer.AddCounts((*table)->name(), counts);
    }));
  }
  return absl::OkStatus();
}

absl::StatusOr<StoreSnapshot> ParameterStore::TakeSnapshot() const {
  CHECK(elsewhere_ == nullptr) << "tables elsewhere have no snapshots";
  StoreSnapshot snapshot;
  const std::vector<VariableSpec>& specs = variables_.specs();
  const auto by_name =
      ByName(specs, [](const VariableSpec& spec) { return spec.name; });
  for (const VariableSpec* spec : by_name) {
    const size_t variable = spec - specs.data();
    for (int array = 0; array < variables_.num_arrays(variable); ++array) {
      ASSIGN_OR_RETURN(const absl::Span<const float> elements,
                       variables_.Read(variable, array));
      snapshot.arrays_.push_back({spec->name,
                                  array,
                                  variables_.updates()[variable],
                                  {elements.begin(), elements.end()}});
    }
  }
  const auto tables =
      ByName(tables_, [](const auto& table) { return table->name(); });
  for (const auto* table : tables) {
    snapshot.tables_.push_back((*table)->TakeSnapshot());
  }
  return snapshot;
}

absl::Status StoreSnapshot::Write(ShardWriter& writer) && {
  for (const Array& array : arrays_) {
    RETURN_IF_ERROR(writer.AddElements(array.variable, array.array,
                                       /*first=*/0, array.updates,
                                       array.elements));
  }
  return WriteTables(absl::MakeSpan(tables_), writer);
}

absl::Status ParameterStore::SaveTable(size_t table,
                                       ShardWriter& writer) const {
  if (!IsElsewhere(table)) {
    return tables_[table]->TakeSnapshot().Drain([&](const RowBatch& rows) {
      return writer.AddRows(tables_[table]->name(), rows);
    });
  }
  return elsewhere_->Visit(table, [&](const RowBatch& rows) {
    return writer.AddRows(tables_[table]->name(), rows);
  });
}

absl::Status ParameterStore::Restore(const CheckpointReader& checkpoint) {
  RETURN_IF_ERROR(CheckResumable(checkpoint.manifest(), job_, contents_));
  const std::vector<VariableSpec>& specs = variables_.specs();
  for (size_t i = 0; i < specs.size(); ++i) {
    std::vector<float> elements(specs[i].elements());
    for (int array = 0; array < variables_.num_arrays(i); ++array) {
      ASSIGN_OR_RETURN(
          const int64_t updates,
          checkpoint.ReadElements(specs[i].name, array, /*first=*/0,
                                  absl::MakeSpan(elements)));
      if (array == kValueArray) variables_.SetUpdates(i, updates);
      RETURN_IF_ERROR(variables_.Write(i, array, elements));
    }
  }
  for (size_t i = 0; i < tables_.size(); ++i) {
    RETURN_IF_ERROR(RestoreTable(i, checkpoint));
  }
  return checkpoint.Verify();
}

// A table that is elsewhere may go to the host on the way.
absl::Status ParameterStore::RestoreTable(size_t table,
                                          const CheckpointReader& checkpoint) {
  if (!IsElsewhere(table)) {
    return ReadRows(checkpoint, /*shard=*/0, /*num_shards=*/1, *tables_[table]);
  }
  return ReadRows(checkpoint, /*shard=*/0, /*num_shards=*/1, *tables_[table],
                  [&](const RowBatch& rows) {
                    return IsElsewhere(table) ? elsewhere_->Insert(table, rows)
                                              : tables_[table]->Insert(rows);
                  });
}

}  // namespace parasol
