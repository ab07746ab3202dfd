#include "ml/model/function/model_function.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "ml/loss/loss.h"
#include "ml/model/check_batch.h"
#include "ml/model/function/planned_backward.h"
#include "ml/model/function/variable_copies.h"
#include "ml/model/pass_executor.h"
#include "ml/model/plan.h"
#include "ml/model/staged_inputs.h"

namespace parasol {
namespace {

// Calls of one function that may be open at once. Each has the activations of
// a batch, so a program that keeps more of them has a mistake.
constexpr size_t kMaxOpenCalls = 1024;

// Values that have no number get one from here on.
constexpr uint64_t kFirstOwnVersion = uint64_t{1} << 63;

// What is checked is named in errors only: a string of it would be allocated.
absl::Status CheckSize(absl::string_view kind, absl::string_view name,
                       size_t size, int64_t want) {
  if (static_cast<int64_t>(size) == want) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(kind, " \"", name, "\": ", size, " elements, not ", want));
}

absl::Status CheckCount(absl::string_view what, size_t count, size_t want) {
  if (count == want) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(count, " ", what, ", the model has ", want));
}

// Returns the graph without what is left of losses.
Graph WithoutLosses(Graph graph) {
  graph.outputs.clear();
  return graph;
}

class GraphFunction final : public ModelFunction {
 public:
  // `copies`: of the graph's variables; null if the device shares the host's
  // memory.
  GraphFunction(Graph graph, Device& device,
                std::unique_ptr<VariableCopies> copies)
      : ModelFunction(std::move(graph)),
        passes_graph_(WithoutLosses(this->graph())),
        device_(device),
        copies_(std::move(copies)),
        plan_(MakePlan(passes_graph_, NoGradients(passes_graph_),
                       device.edge_type())),
        backwards_(passes_graph_, device, copies_.get()) {}

  absl::Status Backward(
      const Call& call,
      absl::Span<const absl::Span<const float>> output_gradients,
      const Gradients& gradients) override {
    Slot& slot = *slots_[SlotOf(call)];
    RETURN_IF_ERROR(CheckOutputGradients(slot, output_gradients));
    RETURN_IF_ERROR(CheckGradients(slot, gradients));
    Want(output_gradients, gradients);
    return Settled(RunBackward(slot, output_gradients, gradients));
  }

  absl::Status ReadChanges(
      const Call& call, absl::Span<const absl::Span<float>> changes) override {
    Slot& slot = *slots_[SlotOf(call)];
    if (!slot.training) {
      return absl::FailedPreconditionError(
          "the call is one without training, which changes no variable");
    }
    RETURN_IF_ERROR(CheckCount("arrays of changes", changes.size(),
                               graph().variables.size()));
    for (size_t i = 0; i < changes.size(); ++i) {
      const VariableSpec& variable = graph().variables[i];
      RETURN_IF_ERROR(CheckSize("variable", variable.name, changes[i].size(),
                                IsChangedByCalls(i) ? variable.elements() : 0));
    }
    return Settled(RunChanges(slot, changes));
  }

 private:
  struct Slot {
    Slot(const Graph& graph, const Plan& plan, const std::vector<Loss>& losses,
         Device& device)
        : inputs(graph, device), executor(graph, plan, losses, device) {}

    StagedInputs inputs;
    PassExecutor executor;
    VariableCopies::Lent lent;
    std::vector<const float*> variables;  // where the device reads them
    bool training = false;
  };

  absl::StatusOr<size_t> Open() override {
    if (free_slots_.empty()) {
      if (slots_.size() >= kMaxOpenCalls) {
        return absl::ResourceExhaustedError(absl::StrCat(
            "more than ", kMaxOpenCalls,
            " calls of one model are open: destroy calls, or tapes that "
            "recorded them, when their gradients are there"));
      }
      slots_.push_back(
          std::make_unique<Slot>(passes_graph_, plan_, no_losses_, device_));
      // Close() allocates nothing.
      free_slots_.reserve(slots_.size());
      return slots_.size() - 1;
    }
    const size_t slot = free_slots_.back();
    free_slots_.pop_back();
    return slot;
  }

  void Close(size_t slot) override { free_slots_.push_back(slot); }

  absl::Status Run(size_t index, const InputViews& inputs,
                   absl::Span<const absl::Span<const float>> variables,
                   const Mode& mode, RowSource rows) override {
    Slot& slot = *slots_[index];
    RETURN_IF_ERROR(CheckInputs(passes_graph_, inputs));
    RETURN_IF_ERROR(SetVariables(slot, variables, mode.versions));
    return Settled(RunForward(slot, inputs, mode, rows));
  }

  // Waits for the work of a function that fails: it reads and writes memory
  // that the next one uses.
  absl::Status Settled(absl::Status status) {
    if (!status.ok()) device_.Synchronize().IgnoreError();
    return status;
  }

  absl::Status RunForward(Slot& slot, const InputViews& inputs,
                          const Mode& mode, RowSource rows) {
    RETURN_IF_ERROR(slot.inputs.Load(inputs));
    for (const StagedBatch::Rows& one : slot.inputs.rows()) {
      if (one.ids.empty()) continue;
      RETURN_IF_ERROR(rows(one.table, one.ids, one.values))
          << "table \"" << graph().tables[one.table].name << "\"";
    }
    slot.training = mode.training;
    if (copies_ != nullptr) {
      RETURN_IF_ERROR(copies_->Send(slot.lent));
    }
    RETURN_IF_ERROR(
        slot.executor.Begin(slot.inputs, {.training = mode.training,
                                          .row_gradients = true,
                                          .seed = mode.seed,
                                          .variables = slot.variables}));
    RETURN_IF_ERROR(slot.executor.RunForward());
    RETURN_IF_ERROR(slot.executor.memory().FetchOutputs());
    return slot.executor.memory().Await();
  }

  // Sends the call's values again, if a later call had others.
  absl::Status UseVariables(const Slot& slot) {
    if (copies_ == nullptr) return absl::OkStatus();
    RETURN_IF_ERROR(copies_->Send(slot.lent));
    return device_.Order(Device::Stream::kCopyIn, Device::Stream::kCompute);
  }

  absl::Status RunBackward(
      Slot& slot, absl::Span<const absl::Span<const float>> output_gradients,
      const Gradients& gradients) {
    RETURN_IF_ERROR(UseVariables(slot));
    RETURN_IF_ERROR(backwards_.For(wanted_).Run(
        slot.inputs.examples(), output_gradients, gradients, slot.executor));
    return gradients.rows ? DeliverRows(slot, *gradients.rows)
                          : absl::OkStatus();
  }

  absl::Status RunChanges(Slot& slot,
                          absl::Span<const absl::Span<float>> changes) {
    if (copies_ != nullptr) {
      RETURN_IF_ERROR(UseVariables(slot));
      ASSIGN_OR_RETURN(const absl::Span<float* const> on_device,
                       copies_->Changes());
      RETURN_IF_ERROR(slot.executor.RunUntrainedChanges(on_device));
      return copies_->FetchChanges(changes);
    }
    changes_.clear();
    for (const absl::Span<float> change : changes) {
      changes_.push_back(change.empty() ? nullptr : change.data());
    }
    return slot.executor.RunUntrainedChanges(changes_);
  }

  int64_t ExamplesOf(size_t slot) const override {
    return slots_[slot]->inputs.examples();
  }

  absl::Span<const float> OutputOf(size_t index, size_t output) const override {
    Slot& slot = *slots_[index];
    return absl::MakeConstSpan(
        slot.executor.memory().OutputOnHost(output),
        slot.inputs.examples() * plan_.outputs[output].elements);
  }

  absl::Status SetVariables(Slot& slot,
                            absl::Span<const absl::Span<const float>> variables,
                            absl::Span<const uint64_t> versions) {
    RETURN_IF_ERROR(CheckCount("values of variables", variables.size(),
                               graph().variables.size()));
    slot.variables.clear();
    for (size_t i = 0; i < variables.size(); ++i) {
      const VariableSpec& variable = graph().variables[i];
      RETURN_IF_ERROR(CheckSize("variable", variable.name, variables[i].size(),
                                variable.elements()));
      slot.variables.push_back(copies_ == nullptr ? variables[i].data()
                                                  : copies_->values()[i]);
    }
    slot.lent.values.assign(variables.begin(), variables.end());
    if (versions.empty()) {
      slot.lent.versions.assign(variables.size(), next_version_++);
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(CheckCount("numbers of variables' values", versions.size(),
                               variables.size()));
    slot.lent.versions.assign(versions.begin(), versions.end());
    return absl::OkStatus();
  }

  absl::Status CheckOutputGradients(
      const Slot& slot,
      absl::Span<const absl::Span<const float>> output_gradients) const {
    RETURN_IF_ERROR(CheckCount("gradients by outputs", output_gradients.size(),
                               plan_.outputs.size()));
    for (size_t i = 0; i < output_gradients.size(); ++i) {
      const auto size = static_cast<int64_t>(output_gradients[i].size());
      const int64_t want = slot.inputs.examples() * plan_.outputs[i].elements;
      if (size == 0 || size == want) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "the gradient by output ", i, ": ", size, " elements, not ", want));
    }
    return absl::OkStatus();
  }

  absl::Status CheckGradients(const Slot& slot,
                              const Gradients& gradients) const {
    if (!gradients.variables.empty()) {
      RETURN_IF_ERROR(CheckCount("gradients by variables",
                                 gradients.variables.size(),
                                 graph().variables.size()));
    }
    for (size_t i = 0; i < gradients.variables.size(); ++i) {
      if (gradients.variables[i].empty()) continue;
      const VariableSpec& variable = graph().variables[i];
      if (!variable.trained) {
        return absl::InvalidArgumentError(
            absl::StrCat("variable \"", variable.name,
                         "\" is not trained and has no gradient"));
      }
      RETURN_IF_ERROR(CheckSize("variable", variable.name,
                                gradients.variables[i].size(),
                                variable.elements()));
    }
    if (gradients.inputs.empty()) return absl::OkStatus();
    RETURN_IF_ERROR(CheckCount("gradients by inputs", gradients.inputs.size(),
                               plan_.input_gradients.size()));
    for (const GraphInput& input : graph().inputs) {
      if (input.what.kind != LayerInput::Kind::kDense) continue;
      const absl::Span<float> array = gradients.inputs[input.index];
      if (array.empty()) continue;
      RETURN_IF_ERROR(
          CheckSize("input", input.name, array.size(),
                    slot.inputs.examples() * ElementsOf(input.what.shape)));
    }
    return absl::OkStatus();
  }

  void Want(absl::Span<const absl::Span<const float>> output_gradients,
            const Gradients& gradients) {
    wanted_.outputs.clear();
    for (const absl::Span<const float> one : output_gradients) {
      wanted_.outputs.push_back(!one.empty());
    }
    wanted_.variables.assign(graph().variables.size(), false);
    for (size_t i = 0; i < gradients.variables.size(); ++i) {
      wanted_.variables[i] = !gradients.variables[i].empty();
    }
    wanted_.inputs.assign(plan_.input_gradients.size(), false);
    for (size_t i = 0; i < gradients.inputs.size(); ++i) {
      wanted_.inputs[i] = !gradients.inputs[i].empty();
    }
    wanted_.tables.clear();
    for (const GraphTable& table : graph().tables) {
      wanted_.tables.push_back(gradients.rows && !table.frozen);
    }
  }

  absl::Status DeliverRows(Slot& slot, RowSink sink) {
    RETURN_IF_ERROR(slot.executor.row_gradients().Await());
    for (size_t table = 0; table < graph().tables.size(); ++table) {
      if (graph().tables[table].frozen) continue;
      const RowGradientMemory::Fetched rows =
          slot.executor.row_gradients().OnHost(table);
      sink(table, rows.ids, rows.gradients);
    }
    return absl::OkStatus();
  }

  const Graph passes_graph_;
  Device& device_;
  const std::unique_ptr<VariableCopies> copies_;
  uint64_t next_version_ = kFirstOwnVersion;
  const std::vector<Loss> no_losses_;
  const Plan plan_;  // of the forward passes; its backward pass is empty
  PlannedBackwards backwards_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<size_t> free_slots_;  // the last one closed is at the end

  // Memory of single calls, kept lest each allocates.
  PlannedGradients wanted_;
  std::vector<float*> changes_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ModelFunction>> ModelFunction::Create(
    Graph graph, Device& device) {
  for (const GraphNode& node : graph.nodes) {
    RETURN_IF_ERROR(node.layer->CheckCode()) << "layer \"" << node.name << "\"";
  }
  std::unique_ptr<VariableCopies> copies;
  if (!device.shares_host_memory()) {
    ASSIGN_OR_RETURN(copies, VariableCopies::Create(graph, device));
  }
  return std::make_unique<GraphFunction>(std::move(graph), device,
                                         std::move(copies));
}

absl::StatusOr<ModelFunction::Call> ModelFunction::Forward(
    const InputViews& inputs,
    absl::Span<const absl::Span<const float>> variables, const Mode& mode,
    RowSource rows) {
  ASSIGN_OR_RETURN(const size_t slot, Open());
  Call call(*this, slot);
  RETURN_IF_ERROR(Run(slot, inputs, variables, mode, rows));
  return call;
}

absl::Status ModelFunction::NoRows(size_t, absl::Span<const uint64_t>,
                                   absl::Span<float>) {
  return absl::InvalidArgumentError("its rows are not given");
}

}  // namespace parasol
