#include "ml/model/model.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/log.h"
#include "base/status_macros.h"
#include "ml/loss/loss.h"
#include "ml/model/backward_pass.h"
#include "ml/model/check_batch.h"
#include "ml/model/device_training.h"
#include "ml/model/graph_inputs.h"
#include "ml/model/pass_executor.h"
#include "ml/model/pass_recordings.h"
#include "ml/model/plan.h"
#include "ml/model/staged_inputs.h"
#include "ml/model/variable_layout.h"
#include "ml/model/variable_memory.h"

namespace parasol {
namespace {

std::vector<TableUse> TablesOf(const Graph& graph) {
  std::vector<TableUse> tables;
  for (const GraphTable& table : graph.tables) {
    tables.push_back({.name = table.name, .width = table.width});
  }
  return tables;
}

std::vector<Loss> LossesOf(const Graph& graph) {
  std::vector<Loss> losses;
  for (const OutputSpec& output : graph.outputs) {
    losses.emplace_back(output.loss);
  }
  return losses;
}

// A line in the log names the layer that keeps passes from being recorded.
bool IsRecordable(const Plan& plan, Device& device) {
  if (device.recorder() == nullptr) return false;
  const auto kept_from = std::find_if_not(
      plan.steps.begin(), plan.steps.end(),
      [](const PlanStep& step) { return step.layer->IsRecordable(); });
  if (kept_from == plan.steps.end()) return true;
  LOG(INFO) << device.name() << ": steps are not recorded, each kernel is "
            << "launched by itself: the code of layer \"" << kept_from->name
            << "\" does not override IsRecordable()";
  return false;
}

class GraphModel final : public Model, private DeviceTraining {
 public:
  GraphModel(Graph graph, VariableMemory variables, Device& device)
      : graph_(std::move(graph)),
        plan_(MakePlan(graph_, device.edge_type())),
        is_recordable_(IsRecordable(plan_, device)),
        tables_(TablesOf(graph_)),
        losses_(LossesOf(graph_)),
        device_(device),
        memory_(std::move(variables)),
        backward_(plan_,
                  device.shares_host_memory()
                      ? VariablesBehind(plan_)
                      : PiecesBehind(plan_, memory_.layout().pieces),
                  device_, layer_gradients_),
        executor_(graph_, plan_, losses_, device_),
        recordings_(device_) {}

  const std::vector<VariableSpec>& variables() const override {
    return graph_.variables;
  }
  const std::vector<TableUse>& tables() const override { return tables_; }
  absl::Span<float> HostValue(size_t index) override {
    return memory_.HostValue(index);
  }
  absl::Status Upload(size_t index) override { return memory_.Upload(index); }

  std::unique_ptr<StagedBatch> NewStagedBatch() override {
    return std::make_unique<StagedInputs>(graph_, device_);
  }

  absl::Status Stage(const Batch& batch, StagedBatch& staged) override {
    RETURN_IF_ERROR(CheckBatch(graph_, batch));
    RETURN_IF_ERROR(CheckLabels(batch));
    if (&staged == still_read_) {
      RETURN_IF_ERROR(
          device_.Order(Device::Stream::kCompute, Device::Stream::kCopyIn));
    }
    return static_cast<StagedInputs&>(staged).Load(batch, tables_on_device_);
  }

  // On the CPU a layer's gradients are delivered before the next layer down is
  // computed. A CUDA device gets all of its work first, so that it computes on
  // while gradients are delivered in the order in which they arrive.
  absl::StatusOr<BatchResult> Gradients(StagedBatch& staged, uint64_t seed,
                                        GradientSinks sinks) override {
    StagedInputs& batch = static_cast<StagedInputs&>(staged);
    RETURN_IF_ERROR(BeginTraining(batch, seed));
    if (device_.shares_host_memory()) {
      RETURN_IF_ERROR(executor_.RunForward());
      RETURN_IF_ERROR(executor_.RunBackward(backward_, memory_.gradients(),
                                            [&](const VariableRange& range) {
                                              Deliver(range, sinks);
                                              return absl::OkStatus();
                                            }));
    } else {
      RETURN_IF_ERROR(EnqueueTraining(batch, GradientsGo::kToHost));
      RETURN_IF_ERROR(DeliverAll(sinks));
    }
    RETURN_IF_ERROR(DeliverRows(sinks.rows));
    still_read_ = executor_.row_gradients().awaits_pass() ? nullptr : &staged;
    return Result(batch);
  }

  absl::StatusOr<EvaluatedBatch> Evaluate(StagedBatch& staged) override {
    StagedInputs& batch = static_cast<StagedInputs&>(staged);
    RETURN_IF_ERROR(memory_.FinishUploads());
    RETURN_IF_ERROR(executor_.Begin(batch, {.variables = memory_.values()}));
    RETURN_IF_ERROR(executor_.RunForward());
    RETURN_IF_ERROR(executor_.memory().FetchOutputs());
    EvaluatedBatch evaluated;
    ASSIGN_OR_RETURN(evaluated.result, Result(batch));
    ASSIGN_OR_RETURN(evaluated.outputs, executor_.memory().AwaitOutputs());
    return evaluated;
  }

  DeviceTraining* device_training() override {
    return device_.shares_host_memory() ? nullptr : this;
  }

 private:
  enum class GradientsGo { kToHost, kNowhere };

  absl::Status CheckLabels(const Batch& batch) const {
    if (!graph_.has_named_outputs()) {
      return losses_.front().CheckLabels(batch.size, batch.labels);
    }
    for (size_t i = 0; i < losses_.size(); ++i) {
      RETURN_IF_ERROR(
          losses_[i].CheckLabels(batch.size, batch.targets[i].labels))
          << "output \"" << graph_.outputs[i].name << "\"";
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<Variable>> Variables() override {
    return memory_.OnDevice();
  }
  absl::Span<float> AllGradients() override {
    return memory_.GradientsOnDevice();
  }

  absl::StatusOr<std::vector<Piece>> WriteInPieces(
      const std::vector<VariableRange>& pieces) override {
    const std::vector<int64_t>& offsets = memory_.layout().offsets;
    std::vector<Piece> written;
    for (const VariableRange& piece : pieces) {
      ASSIGN_OR_RETURN(piece_events_.emplace_back(), device_.NewEvent());
      const size_t last = piece.end - 1;
      const int64_t end = offsets[last] + graph_.variables[last].elements();
      written.push_back(
          {.first = static_cast<size_t>(offsets[piece.begin]),
           .elements = static_cast<size_t>(end - offsets[piece.begin]),
           .written = piece_events_.back().get()});
    }
    pieces_ = pieces;
    backward_.WriteInPieces(pieces);
    return written;
  }

  void UseTables(DeviceRows& tables) override { tables_on_device_ = &tables; }

  absl::StatusOr<BatchResult> Train(StagedBatch& staged, uint64_t seed,
                                    Sinks sinks) override {
    StagedInputs& batch = static_cast<StagedInputs&>(staged);
    still_read_ = nullptr;
    RETURN_IF_ERROR(BeginTraining(batch, seed));
    RETURN_IF_ERROR(EnqueueTraining(batch, GradientsGo::kNowhere));
    RETURN_IF_ERROR(sinks.update(RowsOnDevice(batch)));
    RETURN_IF_ERROR(DeliverRows(sinks.rows));
    return Result(batch);
  }

  absl::Status BeginTraining(StagedInputs& batch, uint64_t seed) {
    RETURN_IF_ERROR(memory_.NextGradients());
    RETURN_IF_ERROR(memory_.FinishUploads());
    return executor_.Begin(batch, {.training = true,
                                   .row_gradients = true,
                                   .seed = seed,
                                   .variables = memory_.values(),
                                   .of_losses = &backward_});
  }

  absl::Span<const Rows> RowsOnDevice(const StagedInputs& batch) {
    rows_.clear();
    for (size_t table = 0; table < tables_.size(); ++table) {
      if (!batch.is_on_device(table)) continue;
      rows_.push_back({.table = table,
                       .rows = executor_.rows(table),
                       .elements = batch.RowsOf(table).elements});
    }
    return rows_;
  }

  absl::Status EnqueueTraining(const StagedInputs& batch, GradientsGo where) {
    const bool fetches = where == GradientsGo::kToHost;
    const auto enqueue = [this, fetches]() -> absl::Status {
      RETURN_IF_ERROR(executor_.RunForward());
      return executor_.RunBackward(
          backward_, memory_.gradients(),
          [this, fetches](const VariableRange& piece) {
            return fetches ? memory_.FetchGradients(piece) : MarkWritten(piece);
          });
    };
    if (is_recordable_) {
      RETURN_IF_ERROR(recordings_.Run(KeyOf(batch, fetches), enqueue));
    } else {
      RETURN_IF_ERROR(enqueue());
    }
    // Not part of a recording, since the number of rows differs from pass to
    // pass.
    return executor_.row_gradients().Fetch();
  }

  absl::Status MarkWritten(const VariableRange& piece) {
    const auto found = std::find(pieces_.begin(), pieces_.end(), piece);
    if (found == pieces_.end()) return absl::OkStatus();
    return device_.Record(Device::Stream::kCompute,
                          *piece_events_[found - pieces_.begin()]);
  }

  const PassKey& KeyOf(const StagedInputs& batch, bool fetches) {
    key_.examples = batch.examples();
    key_.gradient_side =
        fetches ? memory_.gradient_side() : PassKey::kNoHostGradients;
    key_.arrays.clear();
    batch.ListArrays(key_.arrays);
    return key_;
  }

  // The last layer's first.
  void Deliver(const VariableRange& range, const GradientSinks& sinks) {
    for (size_t end = range.end; end > range.begin;) {
      const size_t begin = memory_.layout().layer_begin[end - 1];
      for (size_t i = begin; i < end; ++i) {
        if (graph_.variables[i].frozen) continue;
        sinks.variable(i, memory_.HostGradient(i));
      }
      end = begin;
    }
  }

  absl::Status DeliverAll(const GradientSinks& sinks) {
    for (const std::vector<VariableRange>& pieces : backward_.written()) {
      for (const VariableRange& piece : pieces) {
        RETURN_IF_ERROR(memory_.AwaitGradients(piece));
        Deliver(piece, sinks);
      }
    }
    return absl::OkStatus();
  }

  absl::Status DeliverRows(
      absl::FunctionRef<void(size_t, absl::Span<const uint64_t>,
                             absl::Span<const float>)>
          sink) {
    RETURN_IF_ERROR(executor_.row_gradients().Await());
    for (size_t table = 0; table < tables_.size(); ++table) {
      if (!executor_.row_gradients().goes_to_host(table)) continue;
      if (graph_.tables[table].frozen) {
        sink(table, {}, {});
        continue;
      }
      const RowGradientMemory::Fetched rows =
          executor_.row_gradients().OnHost(table);
      sink(table, rows.ids, rows.gradients);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<BatchResult> Result(const StagedInputs& batch) {
    BatchResult result = {.examples = batch.examples()};
    const PassMemory& memory = executor_.memory();
    RETURN_IF_ERROR(executor_.memory().Await());
    result.loss_sum = memory.TermSum() * static_cast<double>(result.examples);
    if (!graph_.has_named_outputs()) {
      result.loss_sum = memory.AddLosses(0, result.loss_sum);
      return result;
    }
    for (size_t i = 0; i < losses_.size(); ++i) {
      const double weight = graph_.outputs[i].weight;
      const double sum = memory.AddLosses(i, 0);
      if (weight > 0) result.loss_sum += sum;
      result.output_loss_sums.push_back(weight > 0 ? sum / weight : sum);
    }
    return result;
  }

  const Graph graph_;
  const Plan plan_;
  const bool is_recordable_;
  const std::vector<TableUse> tables_;
  const std::vector<Loss> losses_;  // one per output
  Device& device_;
  VariableMemory memory_;
  Array<float> layer_gradients_;  // between layers
  BackwardPass backward_;
  PassExecutor executor_;
  PassRecordings recordings_;
  // The batch of the last pass, if Gradients() has returned before its last
  // kernels had run, which read it; null otherwise. Earlier passes have run.
  // Callers of Train() wait themselves.
  const StagedBatch* still_read_ = nullptr;
  // The pieces of WriteInPieces(), and the event of each.
  std::vector<VariableRange> pieces_;
  std::vector<std::unique_ptr<Device::Event>> piece_events_;
  DeviceRows* tables_on_device_ = nullptr;  // null: none is
  std::vector<Rows> rows_;  // of the present pass, on the device
  PassKey key_;  // key of the present pass; kept here lest each step allocates
};

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> Model::Create(Graph graph,
                                                     Device& device) {
  for (const OutputSpec& output : graph.outputs) {
    if (output.loss.loss.kind_case() != job::Loss::KIND_NOT_SET) continue;
    return absl::InvalidArgumentError(
        "the graph has no loss: it is one for ModelFunction");
  }
  int position = 0;
  for (const GraphNode& node : graph.nodes) {
    if (IsSequenceMask(graph, node)) continue;
    RETURN_IF_ERROR(node.layer->CheckCode())
        << "model.layer[" << position << "] \"" << node.name << "\"";
    ++position;
  }
  ASSIGN_OR_RETURN(VariableMemory variables,
                   VariableMemory::Create(graph, device));
  return std::make_unique<GraphModel>(std::move(graph), std::move(variables),
                                      device);
}

}  // namespace parasol
