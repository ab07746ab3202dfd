#include "worker/local_parameters.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/status_macros.h"
#include "ml/initializer/initializer.h"

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
    const std::vector<VariableSpec>& variables, const job::Optimizer& optimizer,
    uint64_t seed) {
  std::unique_ptr<LocalParameters> parameters(new LocalParameters);
  ASSIGN_OR_RETURN(parameters->optimizer_, MakeOptimizer(optimizer));
  for (const VariableSpec& spec : variables) {
    Variable variable;
    variable.spec = spec;
    variable.value.resize(spec.elements());
    RETURN_IF_ERROR(Initialize(spec.initializer, seed, spec.name, spec.shape,
                               /*first=*/0, absl::MakeSpan(variable.value)))
        << spec.name;
    const size_t slots = parameters->optimizer_->slot_names().size();
    for (size_t i = 0; i < slots; ++i) {
      variable.slots.emplace_back(variable.value.size(),
                                  parameters->optimizer_->InitialSlotValue(i));
    }
    parameters->variables_.push_back(std::move(variable));
  }
  return parameters;
}

std::unique_ptr<ParameterClient::Pending> LocalParameters::Pull(
    PullRequest request) {
  for (const Target& target : request.targets) {
    const std::vector<float>& value = variables_[target.variable].value;
    CHECK_EQ(target.values.size(), value.size());
    std::copy(value.begin(), value.end(), target.values.begin());
  }
  return std::make_unique<Done>();
}

std::unique_ptr<ParameterClient::Pending> LocalParameters::Push(
    PushRequest request) {
  for (const Gradient& gradient : request.gradients) {
    Variable& variable = variables_[gradient.variable];
    CHECK_EQ(gradient.values.size(), variable.value.size());
    std::vector<float*> slots;
    for (std::vector<float>& slot : variable.slots) {
      slots.push_back(slot.data());
    }
    UpdateSpan update;
    update.count = variable.value.size();
    update.gradient =
        reinterpret_cast<const std::byte*>(gradient.values.data());
    update.value = variable.value.data();
    update.new_value = variable.value.data();
    update.slots = slots;
    optimizer_->Apply(variable.updates++, update);
  }
  return std::make_unique<Done>();
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
  return absl::OkStatus();
}

std::vector<durable::CheckpointVariable> LocalParameters::Describe() const {
  std::vector<durable::CheckpointVariable> described;
  for (const Variable& variable : variables_) {
    durable::CheckpointVariable& entry = described.emplace_back();
    entry.set_name(variable.spec.name);
    for (const int64_t dimension : variable.spec.shape) {
      entry.add_shape(dimension);
    }
    for (const std::string& slot : optimizer_->slot_names()) {
      entry.add_slot(slot);
    }
  }
  return described;
}

}  // namespace parasol
