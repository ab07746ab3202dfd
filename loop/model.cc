#include "loop/model.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "cluster/job/defaults.h"
#include "cluster/job/job_file.h"
#include "cluster/job/syntax/first_parse_error.h"
#include "loop/core/blank_tensor.h"
#include "loop/core/model_state.h"
#include "loop/strategy.h"
#include "ml/initializer/initializer.h"
#include "ml/initializer/row_initializer.h"
#include "ml/model/function/function_graph.h"
#include "proto/job.pb.h"

namespace parasol::loop {
namespace {

// A model with its defaults, and as a graph whose names begin with the model's.
struct ResolvedModel {
  std::string name;
  job::Model spec;
  Graph graph;
  uint64_t seed = 0;
  const std::map<std::string, int64_t>& table_rows;

  // Returns a name of the graph as a job has it, on which its values depend.
  absl::string_view NameInJob(absl::string_view full) const {
    return full.substr(name.size() + 1);
  }
};

// Takes a text for a whole job if it has a model, and for one's layers
// otherwise.
absl::StatusOr<job::Model> ParseModelText(absl::string_view name,
                                          absl::string_view text) {
  constexpr absl::string_view kOpening = "model {";
  job::Job job;
  std::optional<ParseFault> fault = ParseJobText(std::string(text), job);
  if (fault.has_value() || !job.has_model()) {
    job.Clear();
    std::optional<ParseFault> of_layers =
        ParseJobText(absl::StrCat(kOpening, text, "\n}"), job);
    if (of_layers.has_value() && of_layers->line == 0) {
      of_layers->column -= static_cast<int>(kOpening.size());
    }
    const bool is_job = absl::StrContains(text, "model {");
    if (!of_layers.has_value() || !is_job) fault = std::move(of_layers);
  }
  if (!fault.has_value()) return job.model();
  return absl::InvalidArgumentError(
      absl::StrCat("model \"", name, "\": line ", fault->line + 1, ", column ",
                   fault->column + 1, " of its text: ", fault->message));
}

absl::StatusOr<Tensor> InitialValue(const ResolvedModel& model,
                                    const VariableSpec& spec) {
  const TensorShape shape(absl::MakeConstSpan(spec.shape));
  float* elements = nullptr;
  const Tensor value = BlankTensor(shape, &elements);
  RETURN_IF_ERROR(value.status()) << spec.name;
  RETURN_IF_ERROR(Initialize(
      spec.initializer, model.seed, model.NameInJob(spec.name), spec.shape,
      /*first=*/0, absl::MakeSpan(elements, shape.size())))
      << spec.name;
  return value;
}

// Rows of a program's tables are variables: all are in memory from the start.
absl::Status CheckTables(const job::Model& model) {
  for (const job::SparseTable& table : model.sparse_table()) {
    const absl::string_view field =
        table.has_admission()                         ? "admission"
        : table.has_eviction()                        ? "eviction"
        : table.has_tier()                            ? "tier"
        : table.values() != job::SparseTable::FLOAT32 ? "values"
                                                      : "";
    if (field.empty()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "table \"", table.name(), "\" has ", field,
        ", but a program's tables have all their rows in memory as float32; "
        "leave it out, or train with a job"));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> RowsOf(const ResolvedModel& model,
                               const GraphTable& table) {
  const std::string name(model.NameInJob(table.name));
  const auto rows = model.table_rows.find(name);
  if (rows != model.table_rows.end() && rows->second > 0) return rows->second;
  return absl::InvalidArgumentError(
      absl::StrCat("table \"", name,
                   "\" has no number of rows, which a program's tables "
                   "have from the start: give ModelOptions.table_rows = {{\"",
                   name, "\", 1000}}, and ids below it"));
}

absl::StatusOr<Tensor> InitialRows(const ResolvedModel& model,
                                   const GraphTable& table, int64_t rows) {
  const absl::string_view name = model.NameInJob(table.name);
  const auto& tables = model.spec.sparse_table();
  const auto spec = std::find_if(
      tables.begin(), tables.end(),
      [&](const job::SparseTable& one) { return one.name() == name; });
  ASSIGN_OR_RETURN(const RowInitializer initializer,
                   RowInitializer::Create(spec->initializer(), model.seed, name,
                                          table.width),
                   _ << "table \"" << name << "\"");
  float* elements = nullptr;
  const Tensor value = BlankTensor({rows, table.width}, &elements);
  RETURN_IF_ERROR(value.status()) << "table \"" << name << "\"";
  for (int64_t id = 0; id < rows; ++id) {
    initializer.Fill(id, elements + id * table.width);
  }
  return value;
}

absl::StatusOr<std::vector<Variable>> MakeVariables(
    const ResolvedModel& model) {
  std::vector<Variable> variables;
  for (const VariableSpec& spec : model.graph.variables) {
    ASSIGN_OR_RETURN(const Tensor value, InitialValue(model, spec));
    ASSIGN_OR_RETURN(const Variable made, Variable::Create(spec, value));
    variables.push_back(made);
  }
  for (const GraphTable& table : model.graph.tables) {
    ASSIGN_OR_RETURN(const int64_t rows, RowsOf(model, table));
    ASSIGN_OR_RETURN(const Tensor value, InitialRows(model, table, rows));
    ASSIGN_OR_RETURN(
        const Variable made,
        Variable::Create({.name = table.name, .trained = !table.frozen},
                         value));
    variables.push_back(made);
  }
  return variables;
}

absl::Status CheckTableNames(const ResolvedModel& model) {
  for (const auto& [name, rows] : model.table_rows) {
    const auto& tables = model.spec.sparse_table();
    const auto is_there = [&name = name](const job::SparseTable& table) {
      return table.name() == name;
    };
    if (std::any_of(tables.begin(), tables.end(), is_there)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("ModelOptions.table_rows names the table \"", name,
                     "\", which the model does not have"));
  }
  return absl::OkStatus();
}

// What a worker that runs another program is told by, a line for each layer.
void Describe(const ResolvedModel& model, Registry& registry) {
  const std::string kind = absl::StrCat("model ", model.name);
  registry.AddPart(absl::StrCat(kind, " with the seed ", model.seed));
  const auto add = [&](const google::protobuf::Message& part,
                       absl::string_view name) {
    registry.AddPart(absl::StrCat(kind, " with ", name, " { ",
                                  part.ShortDebugString(), " }"));
  };
  for (const auto& input : model.spec.input()) add(input, "input");
  for (const auto& layer : model.spec.layer()) add(layer, "layer");
  for (const auto& output : model.spec.output()) add(output, "output");
}

absl::StatusOr<ResolvedModel> Resolve(absl::string_view name, job::Model spec,
                                      const ModelOptions& options) {
  if (name.empty()) return absl::InvalidArgumentError("a model without a name");
  job::Job job;
  *job.mutable_model() = std::move(spec);
  FillDefaults(job);
  RETURN_IF_ERROR(CheckTables(job.model())) << "model \"" << name << "\"";
  ASSIGN_OR_RETURN(Graph graph, ResolveFunction(job.model(), name),
                   _ << "model \"" << name << "\"");
  return ResolvedModel{.name = std::string(name),
                       .spec = std::move(*job.mutable_model()),
                       .graph = std::move(graph),
                       .seed = options.seed.value_or(GetStrategy().seed()),
                       .table_rows = options.table_rows};
}

}  // namespace

Tensor ModelOutputs::operator[](absl::string_view name) const {
  const std::vector<OutputSpec>& outputs = model_->graph().outputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].name == name) return tensors_[i];
  }
  return Tensor::Error(absl::NotFoundError(absl::StrCat(
      "model \"", model_->name(), "\" has no output \"", name, "\"; it has ",
      absl::StrJoin(outputs, ", ",
                    [](std::string* out, const OutputSpec& output) {
                      absl::StrAppend(out, "\"", output.name, "\"");
                    }))));
}

Model::Model(std::shared_ptr<ModelState> state, std::vector<Variable> variables)
    : state_(std::move(state)),
      variables_(
          std::make_shared<const std::vector<Variable>>(std::move(variables))) {
}

absl::StatusOr<Model> Model::Create(absl::string_view name,
                                    absl::string_view text,
                                    const ModelOptions& options) {
  ASSIGN_OR_RETURN(const job::Model spec, ParseModelText(name, text));
  return Create(name, spec, options);
}

absl::StatusOr<Model> Model::FromJobFile(absl::string_view name,
                                         const std::string& path,
                                         const ModelOptions& options) {
  ASSIGN_OR_RETURN(const std::string text, ReadJobFile(path));
  ASSIGN_OR_RETURN(const job::Job job, ParseJob(text, path));
  return Create(name, job.model(), options);
}

absl::StatusOr<Model> Model::Create(absl::string_view name,
                                    const job::Model& spec,
                                    const ModelOptions& options) {
  ASSIGN_OR_RETURN(const ResolvedModel model, Resolve(name, spec, options));
  RETURN_IF_ERROR(CheckTableNames(model)) << "model \"" << name << "\"";
  ASSIGN_OR_RETURN(std::vector<Variable> variables, MakeVariables(model),
                   _ << "model \"" << name << "\"");
  ModelState::Parts parts = {
      .name = model.name, .graph = model.graph, .seed = GetStrategy().seed()};
  for (size_t i = 0; i < variables.size(); ++i) {
    (i < model.graph.variables.size() ? parts.variables : parts.tables)
        .push_back(variables[i].state());
  }
  ASSIGN_OR_RETURN(std::shared_ptr<ModelState> state,
                   ModelState::Create(std::move(parts), GetStrategy().world()));
  Describe(model, GetStrategy().registry());
  return Model(std::move(state), std::move(variables));
}

const std::string& Model::name() const { return state_->name(); }

std::vector<Variable> Model::trainable_variables() const {
  std::vector<Variable> trainable;
  for (const Variable& variable : *variables_) {
    if (variable.trainable()) trainable.push_back(variable);
  }
  return trainable;
}

Tensor Model::Call(absl::Span<const Tensor> inputs,
                   const CallOptions& options) const {
  if (state_->graph().output_values.size() == 1) {
    return std::move(
        state_->Call(inputs, options.training, options.seed).front());
  }
  return Tensor::Error(absl::InvalidArgumentError(absl::StrCat(
      "model \"", name(), "\" has ", state_->graph().output_values.size(),
      " outputs: call it by CallAll()")));
}

ModelOutputs Model::CallAll(absl::Span<const Tensor> inputs,
                            const CallOptions& options) const {
  return ModelOutputs(state_,
                      state_->Call(inputs, options.training, options.seed));
}

Tensor Model::RegularizationLoss() const {
  return state_->RegularizationLoss();
}

}  // namespace parasol::loop
