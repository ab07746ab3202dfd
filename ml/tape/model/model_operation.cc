#include "ml/tape/model/model_operation.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "ml/model/input_views.h"
#include "ml/tape/custom_operation.h"
#include "ml/tape/elementwise.h"
#include "ml/tape/reduce.h"
#include "ml/tape/tensor_body.h"
#include "ml/tape/tensor_shape.h"

namespace parasol {
namespace {

constexpr size_t kMaxIds = std::numeric_limits<int32_t>::max();

TensorShape WithExamples(int64_t examples, absl::Span<const int64_t> shape) {
  std::vector<int64_t> sizes = {examples};
  sizes.insert(sizes.end(), shape.begin(), shape.end());
  return TensorShape(absl::MakeConstSpan(sizes));
}

absl::StatusOr<NewTensor> NewFloats(const TensorShape& shape) {
  return TensorAccess::New({.dtype = DType::kFloat32, .shape = shape});
}

absl::Status CheckCount(absl::string_view what, size_t count, size_t want) {
  if (count == want) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(count, " ", what, ", the model has ", want));
}

// `shape` is what the tensor must have behind its axis of examples, or rows.
absl::Status CheckTensor(absl::string_view kind, absl::string_view name,
                         const Tensor& tensor, DType dtype, bool has_leading,
                         absl::Span<const int64_t> shape) {
  RETURN_IF_ERROR(tensor.status());
  if (tensor.dtype() != dtype) {
    return absl::InvalidArgumentError(absl::StrCat(kind, " \"", name, "\" is ",
                                                   NameOf(tensor.dtype()),
                                                   ", not ", NameOf(dtype)));
  }
  absl::Span<const int64_t> sizes = tensor.shape().sizes().values();
  if (!has_leading && sizes == shape) return absl::OkStatus();
  if (has_leading && !sizes.empty() && sizes.subspan(1) == shape) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      kind, " \"", name, "\" is ", tensor.shape().ToString(), ", not ",
      ShapeText(shape), has_leading ? " behind an axis of examples" : ""));
}

}  // namespace

// A call with all that its gradient reads. Tensors' copies keep their memory.
struct ModelOperation::OpenCall {
  // The ids of an input as the function takes them.
  struct Ids {
    std::vector<int32_t> offsets;
    std::vector<uint64_t> ids;
  };

  explicit OpenCall(const Arguments& arguments)
      : inputs(arguments.inputs.begin(), arguments.inputs.end()),
        variables(arguments.variables.begin(), arguments.variables.end()),
        tables(arguments.tables.begin(), arguments.tables.end()) {
    for (const Tensor& input : inputs) views.push_back(input.values());
    for (const Tensor& variable : variables) {
      values.push_back(variable.values());
    }
    for (const Tensor& tensor : arguments.ids) {
      Ids& one = ids.emplace_back();
      const int64_t examples = tensor.shape()[0];
      const int64_t each = tensor.shape()[1];
      for (int64_t i = 0; i <= examples; ++i) {
        one.offsets.push_back(static_cast<int32_t>(i * each));
      }
      one.ids.assign(tensor.ints().begin(), tensor.ints().end());
    }
    for (const Ids& one : ids) {
      id_views.push_back({.offsets = one.offsets, .ids = one.ids});
    }
  }

  absl::Status ReadRows(size_t table, absl::Span<const uint64_t> wanted,
                        absl::Span<float> rows) const {
    const absl::Span<const float> all = tables[table].values();
    const auto count = static_cast<uint64_t>(tables[table].shape()[0]);
    const size_t width = rows.size() / wanted.size();
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i] >= count) {
        return absl::InvalidArgumentError(
            absl::StrCat("id ", static_cast<int64_t>(wanted[i]),
                         " is none of its ", count, " rows"));
      }
      std::copy_n(&all[wanted[i] * width], width, &rows[i * width]);
    }
    return absl::OkStatus();
  }

  // Number of what the gradient is taken by: inputs, tables, variables that are
  // trained.
  std::vector<Tensor> Sources() const {
    std::vector<Tensor> sources = inputs;
    sources.insert(sources.end(), tables.begin(), tables.end());
    const Graph& graph = function->graph();
    for (size_t i = 0; i < variables.size(); ++i) {
      if (graph.variables[i].trained) sources.push_back(variables[i]);
    }
    return sources;
  }

  absl::StatusOr<std::vector<Tensor>> Gradient(
      const CustomGradientCall& asked) const;
  // Returns the gradients by what is wanted of Sources(), without examples.
  std::vector<Tensor> ZerosOf(absl::Span<const bool> wanted) const {
    const std::vector<Tensor> sources = Sources();
    std::vector<Tensor> zeros;
    for (size_t i = 0; i < sources.size(); ++i) {
      zeros.push_back(wanted[i] ? Zeros(sources[i].shape()) : Tensor());
    }
    return zeros;
  }

  std::vector<Tensor> inputs, variables, tables;
  std::vector<Ids> ids;
  std::vector<absl::Span<const float>> views;   // inputs
  std::vector<absl::Span<const float>> values;  // variables
  std::vector<IdsView> id_views;
  std::shared_ptr<ModelFunction> function;
  // None: there are no examples. Destroyed before the function.
  std::optional<ModelFunction::Call> call;
};

absl::StatusOr<std::vector<Tensor>> ModelOperation::OpenCall::Gradient(
    const CustomGradientCall& asked) const {
  if (!call.has_value()) return ZerosOf(asked.wanted);
  const Graph& graph = function->graph();
  std::vector<Tensor> gradients;
  std::vector<absl::Span<float>> by_inputs, by_tables;
  std::vector<absl::Span<float>> by_variables(variables.size());
  // What is not wanted gets a scalar that nobody reads, and no array.
  const auto add =
      [&](const Tensor& source) -> absl::StatusOr<absl::Span<float>> {
    if (!asked.wanted[gradients.size()]) {
      gradients.emplace_back();
      return absl::Span<float>();
    }
    ASSIGN_OR_RETURN(const NewTensor made, NewFloats(source.shape()));
    gradients.push_back(made.tensor);
    return made.floats();
  };
  for (const Tensor& input : inputs) {
    ASSIGN_OR_RETURN(by_inputs.emplace_back(), add(input));
  }
  bool wants_rows = false;
  for (const Tensor& table : tables) {
    ASSIGN_OR_RETURN(by_tables.emplace_back(), add(table));
    wants_rows |= !by_tables.back().empty();
  }
  std::vector<size_t> source_of(variables.size());
  for (size_t i = 0; i < variables.size(); ++i) {
    if (!graph.variables[i].trained) continue;
    source_of[i] = gradients.size();
    ASSIGN_OR_RETURN(by_variables[i], add(variables[i]));
  }
  const auto written = [&](size_t variable) {
    asked.written(source_of[variable], gradients[source_of[variable]]);
  };
  std::vector<absl::Span<const float>> by_outputs;
  for (const Tensor& d_output : asked.d_outputs) {
    by_outputs.push_back(d_output.values());
  }
  const auto add_rows = [&](size_t table, absl::Span<const uint64_t> rows,
                            absl::Span<const float> values) {
    const absl::Span<float> to = by_tables[table];
    std::fill(to.begin(), to.end(), 0.f);
    if (to.empty() || rows.empty()) return;
    const size_t width = values.size() / rows.size();
    for (size_t i = 0; i < rows.size(); ++i) {
      std::copy_n(&values[i * width], width, &to[rows[i] * width]);
    }
  };
  ModelFunction::Gradients wanted = {
      .variables = by_variables, .inputs = by_inputs, .written = written};
  if (wants_rows) wanted.rows.emplace(add_rows);
  RETURN_IF_ERROR(function->Backward(*call, by_outputs, wanted));
  // Nothing is delivered of a table whose rows are frozen.
  for (size_t table = 0; table < tables.size(); ++table) {
    if (!graph.tables[table].frozen) continue;
    std::fill(by_tables[table].begin(), by_tables[table].end(), 0.f);
  }
  return gradients;
}

ModelOperation::ModelOperation(std::string name,
                               std::unique_ptr<ModelFunction> function)
    : name_(std::move(name)), function_(std::move(function)) {}

absl::StatusOr<std::unique_ptr<ModelOperation>> ModelOperation::Create(
    absl::string_view name, Graph graph, Device& device) {
  std::string shown = absl::StrCat("model \"", name, "\"");
  if (!device.shares_host_memory()) {
    absl::StrAppend(&shown, " on ", device.name());
  }
  ASSIGN_OR_RETURN(std::unique_ptr<ModelFunction> function,
                   ModelFunction::Create(std::move(graph), device), _ << shown);
  return std::unique_ptr<ModelOperation>(
      new ModelOperation(std::move(shown), std::move(function)));
}

absl::Status ModelOperation::Check(const Arguments& arguments) const {
  const Graph& graph = function_->graph();
  const auto id_inputs = static_cast<size_t>(std::count_if(
      graph.inputs.begin(), graph.inputs.end(), [](const GraphInput& input) {
        return input.what.kind == LayerInput::Kind::kIds;
      }));
  RETURN_IF_ERROR(CheckCount("dense inputs", arguments.inputs.size(),
                             graph.inputs.size() - id_inputs));
  RETURN_IF_ERROR(CheckCount("id inputs", arguments.ids.size(), id_inputs));
  RETURN_IF_ERROR(CheckCount("variables", arguments.variables.size(),
                             graph.variables.size()));
  RETURN_IF_ERROR(
      CheckCount("tables", arguments.tables.size(), graph.tables.size()));
  std::optional<int64_t> examples;
  for (const GraphInput& input : graph.inputs) {
    const bool is_dense = input.what.kind == LayerInput::Kind::kDense;
    const Tensor& tensor =
        is_dense ? arguments.inputs[input.index] : arguments.ids[input.index];
    if (is_dense) {
      RETURN_IF_ERROR(CheckTensor("input", input.name, tensor, DType::kFloat32,
                                  /*has_leading=*/true, input.what.shape));
    } else if (tensor.status().ok() && tensor.rank() == 2 &&
               static_cast<size_t>(tensor.size()) <= kMaxIds) {
      RETURN_IF_ERROR(CheckTensor("input", input.name, tensor, DType::kInt64,
                                  /*has_leading=*/true, {tensor.shape()[1]}));
    } else {
      RETURN_IF_ERROR(tensor.status());
      return absl::InvalidArgumentError(
          absl::StrCat("input \"", input.name, "\" is ",
                       tensor.shape().ToString(), ", not [examples, ids]"));
    }
    if (examples.value_or(tensor.shape()[0]) != tensor.shape()[0]) {
      return absl::InvalidArgumentError(
          absl::StrCat("input \"", input.name, "\" has ", tensor.shape()[0],
                       " examples, an input before it ", *examples));
    }
    examples = tensor.shape()[0];
  }
  for (size_t i = 0; i < graph.variables.size(); ++i) {
    const VariableSpec& variable = graph.variables[i];
    RETURN_IF_ERROR(CheckTensor("variable", variable.name,
                                arguments.variables[i], DType::kFloat32,
                                /*has_leading=*/false, variable.shape));
  }
  for (size_t i = 0; i < graph.tables.size(); ++i) {
    RETURN_IF_ERROR(CheckTensor("table", graph.tables[i].name,
                                arguments.tables[i], DType::kFloat32,
                                /*has_leading=*/true, {graph.tables[i].width}));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ModelOperation::Change>> ModelOperation::ReadChanges(
    const ModelFunction::Call& call) const {
  const Graph& graph = function_->graph();
  std::vector<Change> changes;
  std::vector<absl::Span<float>> arrays(graph.variables.size());
  for (size_t i = 0; i < graph.variables.size(); ++i) {
    if (!function_->IsChangedByCalls(i)) continue;
    const TensorShape shape(absl::MakeConstSpan(graph.variables[i].shape));
    ASSIGN_OR_RETURN(const NewTensor made, NewFloats(shape));
    arrays[i] = made.floats();
    changes.push_back({.variable = i, .change = made.tensor});
  }
  if (changes.empty()) return changes;
  RETURN_IF_ERROR(function_->ReadChanges(call, arrays));
  return changes;
}

void ModelOperation::Record(std::shared_ptr<OpenCall> call,
                            absl::Span<const Tensor> outputs) const {
  const std::vector<Tensor> sources = call->Sources();
  auto operation = std::make_shared<CustomOperation>();
  operation->name = name_;
  operation->gradient = [call =
                             std::move(call)](const CustomGradientCall& asked) {
    return call->Gradient(asked);
  };
  RecordCustom(sources, outputs, std::move(operation));
}

absl::StatusOr<ModelOperation::Result> ModelOperation::TryCall(
    const Arguments& arguments) {
  RETURN_IF_ERROR(Check(arguments));
  auto open = std::make_shared<OpenCall>(arguments);
  open->function = function_;
  const int64_t examples = !arguments.inputs.empty()
                               ? arguments.inputs[0].shape()[0]
                               : arguments.ids[0].shape()[0];
  if (examples == 0) return CallWithoutExamples(std::move(open));
  versions_.clear();
  for (const Tensor& variable : arguments.variables) {
    versions_.push_back(TensorAccess::Body(variable).elements_id);
  }
  ASSIGN_OR_RETURN(
      ModelFunction::Call call,
      function_->Forward(
          {.size = examples, .dense = open->views, .ids = open->id_views},
          open->values,
          {.training = arguments.training,
           .seed = arguments.seed,
           .versions = versions_},
          [&open](size_t table, absl::Span<const uint64_t> ids,
                  absl::Span<float> rows) {
            return open->ReadRows(table, ids, rows);
          }));
  Result result;
  // Copies, which may outlive the call and may end on another thread.
  for (size_t i = 0; i < function_->num_outputs(); ++i) {
    ASSIGN_OR_RETURN(
        const NewTensor made,
        NewFloats(WithExamples(examples, function_->output_shape(i))));
    const absl::Span<const float> output = call.output(i);
    std::copy(output.begin(), output.end(), made.floats().begin());
    result.outputs.push_back(made.tensor);
  }
  if (arguments.training) {
    ASSIGN_OR_RETURN(result.changes, ReadChanges(call));
  }
  if (!IsRecorded(open->Sources())) return result;
  open->call = std::move(call);
  Record(std::move(open), result.outputs);
  return result;
}

absl::StatusOr<ModelOperation::Result> ModelOperation::CallWithoutExamples(
    std::shared_ptr<OpenCall> call) {
  Result result;
  for (size_t i = 0; i < function_->num_outputs(); ++i) {
    result.outputs.push_back(
        Zeros(WithExamples(0, function_->output_shape(i))));
  }
  Record(std::move(call), result.outputs);
  return result;
}

Tensor ModelOperation::RegularizationLoss(
    absl::Span<const Tensor> variables) const {
  const Graph& graph = function_->graph();
  const absl::Status counted =
      CheckCount("variables", variables.size(), graph.variables.size());
  if (!counted.ok()) return Failed(counted);
  Tensor sum = 0.f;
  for (size_t i = 0; i < variables.size(); ++i) {
    const auto l2 = static_cast<float>(graph.variable_l2[i]);
    if (l2 != 0) sum = sum + l2 * ReduceSum(Square(variables[i]));
  }
  return sum;
}

Tensor ModelOperation::Failed(const absl::Status& status) const {
  return Tensor::Error(
      absl::Status(status.code(), absl::StrCat(name_, ": ", status.message())));
}

ModelOperation::Result ModelOperation::Call(const Arguments& arguments) {
  absl::StatusOr<Result> result = TryCall(arguments);
  if (result.ok()) return *std::move(result);
  return {.outputs = std::vector<Tensor>(function_->num_outputs(),
                                         Failed(result.status()))};
}

}  // namespace parasol
