#include "worker/local_parameters.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/status_macros.h"
#include "ml/initializer/initializer.h"
#include "ml/optimizer/plain_subtraction.h"

namespace parasol {
namespace {

class Done : public ParameterClient::Pending {
 public:
  absl::Status Wait() override { return absl::OkStatus(); }
  bool WaitFor(absl::Duration) override { return true; }
  Outcome outcome() const override { return {}; }
};

}  // namespace

absl::StatusOr<std::unique_ptr<LocalParameters>> LocalParameters::Create(
    const std::vector<VariableSpec>& variables, const job::Job& job) {
  std::unique_ptr<LocalParameters> parameters(new LocalParameters);
  ASSIGN_OR_RETURN(parameters->of_trained_, MakeOptimizer(job.optimizer()));
  ASSIGN_OR_RETURN(parameters->of_others_, MakeOptimizer(PlainSubtraction()));
  for (const VariableSpec& spec : variables) {
    RETURN_IF_ERROR(parameters->AddVariable(spec, job.seed())) << spec.name;
  }
  for (const job::SparseTable& table : job.model().sparse_table()) {
    ASSIGN_OR_RETURN(std::unique_ptr<LocalRows> rows,
                     LocalRows::Create(table, job.optimizer(), job.seed()));
    parameters->tables_.push_back(std::move(rows));
  }
  return parameters;
}

absl::Status LocalParameters::AddVariable(const VariableSpec& spec,
                                          uint64_t seed) {
  Variable variable;
  variable.spec = spec;
  variable.value.resize(spec.elements());
  RETURN_IF_ERROR(Initialize(spec.initializer, seed, spec.name, spec.shape,
                             /*first=*/0, absl::MakeSpan(variable.value)));
  const Optimizer& optimizer = OptimizerOf(spec);
  for (size_t i = 0; i < optimizer.slot_names().size(); ++i) {
    variable.slots.emplace_back(variable.value.size(),
                                optimizer.InitialSlotValue(i));
  }
  variables_.push_back(std::move(variable));
  return absl::OkStatus();
}

std::unique_ptr<ParameterClient::Pending> LocalParameters::Pull(
    PullRequest request) {
  for (const Target& target : request.targets) {
    const std::vector<float>& value = variables_[target.variable].value;
    CHECK_EQ(target.values.size(), value.size());
    std::copy(value.begin(), value.end(), target.values.begin());
  }
  for (const RowTarget& rows : request.rows) {
    tables_[rows.table]->Pull(rows.ids, rows.values);
  }
  return std::make_unique<Done>();
}

std::unique_ptr<ParameterClient::Pending> LocalParameters::Push(
    PushRequest request) {
  for (const Gradient& gradient : request.gradients) Apply(gradient);
  for (const RowGradient& rows : request.rows) {
    tables_[rows.table]->Push(rows.ids, rows.values);
  }
  return std::make_unique<Done>();
}

void LocalParameters::Apply(const Gradient& gradient) {
  Variable& variable = variables_[gradient.variable];
  CHECK_EQ(gradient.values.size(), variable.value.size());
  std::vector<float*> slots;
  for (std::vector<float>& slot : variable.slots) slots.push_back(slot.data());
  UpdateSpan update;
  update.count = variable.value.size();
  update.gradient = reinterpret_cast<const std::byte*>(gradient.values.data());
  update.value = variable.value.data();
  update.new_value = variable.value.data();
  update.slots = slots;
  OptimizerOf(variable.spec).Apply(variable.updates++, update);
}

absl::Status LocalParameters::Update(const wire::GetPlacementResponse&) {
  return absl::FailedPreconditionError("a lone worker has no shards");
}

absl::Status LocalParameters::Save(ShardWriter& writer) const {
  std::vector<const Variable*> by_name;
  for (const Variable& variable : variables_) by_name.push_back(&variable);
  std::sort(by_name.begin(), by_name.end(),
            [](const Variable* a, const Variable* b) {
              return a->spec.name < b->spec.name;
            });
  for (const Variable* variable : by_name) {
    RETURN_IF_ERROR(writer.AddElements(variable->spec.name, kValueArray,
                                       /*first=*/0, variable->updates,
                                       variable->value));
    for (size_t i = 0; i < variable->slots.size(); ++i) {
      RETURN_IF_ERROR(writer.AddElements(variable->spec.name, 1 + i,
                                         /*first=*/0, variable->updates,
                                         variable->slots[i]));
    }
  }
  std::vector<const LocalRows*> tables;
  for (const auto& table : tables_) tables.push_back(table.get());
  std::sort(tables.begin(), tables.end(),
            [](const LocalRows* a, const LocalRows* b) {
              return a->name() < b->name();
            });
  for (const LocalRows* table : tables) RETURN_IF_ERROR(table->Save(writer));
  return absl::OkStatus();
}

absl::Status LocalParameters::Restore(const CheckpointReader& checkpoint) {
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
  for (const auto& table : tables_) RETURN_IF_ERROR(table->Restore(checkpoint));
  return absl::OkStatus();
}

void LocalParameters::Describe(durable::CheckpointManifest& manifest) const {
  for (const Variable& variable : variables_) {
    durable::CheckpointVariable& entry = *manifest.add_variable();
    entry.set_name(variable.spec.name);
    for (const int64_t dimension : variable.spec.shape) {
      entry.add_shape(dimension);
    }
    for (const std::string& slot : OptimizerOf(variable.spec).slot_names()) {
      entry.add_slot(slot);
    }
  }
  for (const auto& table : tables_) *manifest.add_table() = table->Describe();
}

}  // namespace parasol
