#include "worker/local_parameters.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/checkpoint/resume.h"
#include "cluster/rows/row_checkpoint.h"
#include "ml/initializer/initializer.h"
#include "ml/optimizer/plain_subtraction.h"

namespace parasol {
namespace {

class Done : public ParameterClient::Pending {
 public:
  explicit Done(absl::Status status) : status_(std::move(status)) {}

  absl::Status Wait() override { return status_; }
  bool WaitFor(absl::Duration) override { return true; }
  Outcome outcome() const override { return {}; }

 private:
  const absl::Status status_;
};

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

absl::StatusOr<std::unique_ptr<LocalParameters>> LocalParameters::Create(
    const std::vector<VariableSpec>& variables, const job::Job& job) {
  std::unique_ptr<LocalParameters> parameters(new LocalParameters(job));
  ASSIGN_OR_RETURN(parameters->contents_, ContentsOf(variables, job));
  ASSIGN_OR_RETURN(parameters->of_trained_, MakeOptimizer(job.optimizer()));
  ASSIGN_OR_RETURN(parameters->of_others_, MakeOptimizer(PlainSubtraction()));
  for (const VariableSpec& spec : variables) {
    RETURN_IF_ERROR(parameters->AddVariable(spec)) << spec.name;
  }
  for (const job::SparseTable& table : job.model().sparse_table()) {
    RETURN_IF_ERROR(parameters->AddTable(table)) << "table " << table.name();
  }
  return parameters;
}

absl::Status LocalParameters::AddVariable(const VariableSpec& spec) {
  Variable variable;
  variable.spec = spec;
  variable.value.resize(spec.elements());
  RETURN_IF_ERROR(Initialize(spec.initializer, job_.seed(), spec.name,
                             spec.shape, /*first=*/0,
                             absl::MakeSpan(variable.value)));
  const Optimizer& optimizer = OptimizerOf(spec);
  for (size_t i = 0; i < optimizer.slot_names().size(); ++i) {
    variable.slots.emplace_back(variable.value.size(),
                                optimizer.InitialSlotValue(i));
  }
  variables_.push_back(std::move(variable));
  return absl::OkStatus();
}

absl::Status LocalParameters::AddTable(const job::SparseTable& spec) {
  ASSIGN_OR_RETURN(std::unique_ptr<const Optimizer> optimizer,
                   MakeOptimizer(spec.has_optimizer() ? spec.optimizer()
                                                      : job_.optimizer()));
  RowTable::Options options;
  options.name = spec.name();
  options.width = spec.width();
  options.initializer = spec.initializer();
  options.seed = job_.seed();
  ASSIGN_OR_RETURN(std::unique_ptr<RowTable> table,
                   RowTable::Create(std::move(options), std::move(optimizer)));
  tables_.push_back(std::move(table));
  return absl::OkStatus();
}

std::unique_ptr<ParameterClient::Pending> LocalParameters::Pull(
    PullRequest request) {
  for (const Target& target : request.targets) {
    const std::vector<float>& value = variables_[target.variable].value;
    CHECK_EQ(target.values.size(), value.size());
    std::copy(value.begin(), value.end(), target.values.begin());
  }
  absl::Status status;
  for (const RowTarget& rows : request.rows) {
    RowTable& table = *tables_[rows.table];
    CHECK_EQ(rows.values.size(), rows.ids.size() * table.width());
    status.Update(
        table.Pull(BytesOf(rows.ids), rows.ids.size(), rows.values.data()));
  }
  return std::make_unique<Done>(std::move(status));
}

std::unique_ptr<ParameterClient::Pending> LocalParameters::Push(
    PushRequest request) {
  for (const Gradient& gradient : request.gradients) {
    CHECK_EQ(gradient.values.size(),
             variables_[gradient.variable].value.size());
    ApplyBlock(gradient.variable, /*first=*/0, gradient.values);
    CountUpdate(gradient.variable);
  }
  absl::Status status;
  for (const RowGradient& rows : request.rows) {
    status.Update(ApplyRows(rows.table, rows.ids, rows.values));
  }
  return std::make_unique<Done>(std::move(status));
}

void LocalParameters::ApplyBlock(size_t variable, size_t first,
                                 absl::Span<const float> gradient) {
  Variable& all = variables_[variable];
  CHECK_LE(first + gradient.size(), all.value.size());
  std::vector<float*> slots;
  for (std::vector<float>& slot : all.slots) {
    slots.push_back(slot.data() + first);
  }
  UpdateSpan update;
  update.count = gradient.size();
  update.gradient = reinterpret_cast<const std::byte*>(gradient.data());
  update.value = all.value.data() + first;
  update.new_value = all.value.data() + first;
  update.slots = slots;
  OptimizerOf(all.spec).Apply(all.updates, update);
}

absl::Status LocalParameters::ApplyRows(size_t table,
                                        absl::Span<const uint64_t> ids,
                                        absl::Span<const float> gradients) {
  CHECK_EQ(gradients.size(), ids.size() * tables_[table]->width());
  return tables_[table]->Push(BytesOf(ids), BytesOf(gradients), ids.size());
}

absl::Status LocalParameters::Update(const wire::GetPlacementResponse&) {
  return absl::FailedPreconditionError("a lone worker has no shards");
}

absl::Status LocalParameters::Save(ShardWriter& writer) const {
  const auto variables = ByName(
      variables_, [](const Variable& variable) { return variable.spec.name; });
  for (const Variable* variable : variables) {
    RETURN_IF_ERROR(writer.AddElements(variable->spec.name, kValueArray,
                                       /*first=*/0, variable->updates,
                                       variable->value));
    for (size_t i = 0; i < variable->slots.size(); ++i) {
      RETURN_IF_ERROR(writer.AddElements(variable->spec.name, 1 + i,
                                         /*first=*/0, variable->updates,
                                         variable->slots[i]));
    }
  }
  const auto tables =
      ByName(tables_, [](const auto& table) { return table->name(); });
  for (const auto* table : tables) {
    RETURN_IF_ERROR(WriteRows((*table)->TakeSnapshot(), writer));
  }
  return absl::OkStatus();
}

absl::Status LocalParameters::Restore(const CheckpointReader& checkpoint) {
  RETURN_IF_ERROR(CheckResumable(checkpoint.manifest(), job_, contents_));
  for (Variable& variable : variables_) {
    ASSIGN_OR_RETURN(
        variable.updates,
        checkpoint.ReadElements(variable.spec.name, kValueArray,
                                /*first=*/0, absl::MakeSpan(variable.value)));
    for (size_t i = 0; i < variable.slots.size(); ++i) {
      RETURN_IF_ERROR(checkpoint
                          .ReadElements(variable.spec.name, 1 + i, /*first=*/0,
                                        absl::MakeSpan(variable.slots[i]))
                          .status());
    }
  }
  for (const auto& table : tables_) {
    RETURN_IF_ERROR(
        ReadRows(checkpoint, /*shard=*/0, /*num_shards=*/1, *table));
  }
  return checkpoint.Verify();
}

}  // namespace parasol
