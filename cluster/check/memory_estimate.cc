#include "cluster/check/memory_estimate.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cluster/job/strategy.h"
#include "cluster/placement/placement.h"
#include "ml/model/memory/arena.h"
#include "ml/model/plan.h"
#include "ml/optimizer/assigned/optimizer_of.h"
#include "ml/optimizer/optimizer.h"

namespace parasol {
namespace {

constexpr int64_t kFloat = sizeof(float);
// Of a row beside its elements: its id, its counts, its place in the index.
constexpr int64_t kRowBytes = 32;

absl::StatusOr<int64_t> SlotsOf(const job::Optimizer& optimizer) {
  ASSIGN_OR_RETURN(const std::unique_ptr<const Optimizer> made,
                   MakeOptimizer(optimizer));
  return static_cast<int64_t>(made->slot_names().size());
}

// Bytes of all rows with their slots.
absl::StatusOr<int64_t> RowBytes(const job::Job& job,
                                 const std::vector<int64_t>& rows) {
  int64_t bytes = 0;
  for (int i = 0; i < job.model().sparse_table_size(); ++i) {
    const job::SparseTable& table = job.model().sparse_table(i);
    ASSIGN_OR_RETURN(const std::unique_ptr<const Optimizer> optimizer,
                     MakeOptimizer(RowOptimizerOf(table, job)));
    const auto floats =
        static_cast<int64_t>(optimizer->FloatsOfRow(table.width()));
    const int64_t saved =
        table.values() == job::SparseTable::BFLOAT16 ? table.width() / 2 : 0;
    const int64_t number = static_cast<size_t>(i) < rows.size() ? rows[i] : 0;
    bytes += number * ((floats - saved) * kFloat + kRowBytes);
  }
  return bytes;
}

// Bytes of a forward and a backward pass over one batch.
int64_t PassBytes(const Graph& graph, int64_t batch) {
  const Plan plan = MakePlan(graph);
  int64_t elements = 0;
  for (const PlanStep& step : plan.steps) elements += step.outputs * batch;
  std::vector<ArenaBlock> blocks;
  for (const GradientBuffer& buffer : plan.buffers) {
    blocks.push_back({.size = AlignedElements(batch * buffer.elements),
                      .first = buffer.first_op,
                      .last = buffer.last_op});
  }
  return (elements + LayOut(blocks).size) * kFloat;
}

int64_t VariableBytes(const Graph& graph) {
  int64_t elements = 0;
  for (const VariableSpec& variable : graph.variables) {
    int64_t product = 1;
    for (const int64_t axis : variable.shape) product *= axis;
    elements += product;
  }
  return elements * kFloat;
}

// The number of examples of a pass in training.
int64_t BatchOf(const job::Job& job) {
  const job::LocalSteps& local = job.parameter_server().local_steps();
  if (local.has_batch_size()) return local.batch_size();
  const job::Dataset& dataset = job.train();
  return dataset.has_global_batch_size() ? dataset.global_batch_size()
                                         : dataset.batch_size();
}

// What a replica has for its local steps: the values that it began with and its
// own, with slots, two differences, and the examples of the exchanges that are
// decoded; with fragments the values that come and have come, and, while they
// come, those that the difference was of.
absl::StatusOr<int64_t> LocalStepsBytes(const job::Job& job, const Graph& graph,
                                        int64_t variables) {
  if (!job.parameter_server().has_local_steps()) return 0;
  const job::LocalSteps& local = job.parameter_server().local_steps();
  ASSIGN_OR_RETURN(const int64_t slots, SlotsOf(local.inner()));
  int64_t elements = 1;  // a label
  for (const GraphInput& input : graph.inputs) {
    elements += input.what.kind == LayerInput::Kind::kDense
                    ? ElementsOf(input.what.shape)
                    : input.what.ids_per_example;
  }
  constexpr int64_t kDecoded = 4;
  const int64_t streamed =
      StreamsFragments(job) ? 2 + (local.overlap_steps() > 0 ? 1 : 0) : 0;
  return (4 + slots + streamed) * variables +
         kDecoded * local.steps() * BatchOf(job) * elements * kFloat;
}

// What each ps holds, of whose variables' optimizer each element has `slots`.
absl::StatusOr<std::vector<RoleMemory>> MemoryOfPs(const job::Job& job,
                                                   const Graph& graph,
                                                   int64_t slots, int64_t rows,
                                                   int num_ps) {
  ASSIGN_OR_RETURN(Placement placement,
                   Place(graph.variables, job.parameter_server(), num_ps));
  AssignOptimizers(job, placement);
  std::vector<RoleMemory> roles;
  for (size_t i = 0; i < placement.shards.size(); ++i) {
    int64_t bytes = 0;
    for (const wire::PartSpec& part : placement.shards[i]) {
      int64_t of_part = slots;
      if (part.has_optimizer()) {
        ASSIGN_OR_RETURN(of_part, SlotsOf(part.optimizer()));
      }
      bytes += part.elements() * kFloat * (1 + of_part);
    }
    roles.push_back({.role = absl::StrCat("ps/", i),
                     .bytes = bytes + rows / num_ps,
                     .parts = rows > 0 ? "variables, slots, seen rows"
                                       : "variables, slots"});
  }
  return roles;
}

}  // namespace

absl::StatusOr<std::vector<RoleMemory>> EstimateMemory(
    const job::Job& job, const Graph& graph, const MemoryOptions& options) {
  ASSIGN_OR_RETURN(const int64_t slots, SlotsOf(job.optimizer()));
  ASSIGN_OR_RETURN(const int64_t rows, RowBytes(job, options.rows));
  std::vector<RoleMemory> roles;
  if (options.ps != 0) {
    ASSIGN_OR_RETURN(roles, MemoryOfPs(job, graph, slots, rows, options.ps));
  }
  const int64_t variables = VariableBytes(graph);
  // Two arrays of values and two of gradients: one is read while the next
  // comes or the last leaves.
  const int64_t device = 4 * variables + PassBytes(graph, BatchOf(job));
  ASSIGN_OR_RETURN(const int64_t of_steps,
                   LocalStepsBytes(job, graph, variables));
  const int64_t worker =
      ReplicasOfWorker(job) * (device + of_steps) + options.data_bytes;
  roles.push_back({.role = "a worker",
                   .bytes = worker,
                   .parts = "values, gradients, a batch's pass, data"});
  roles.push_back({.role = "a worker without a cluster",
                   .bytes = worker + variables * slots + rows,
                   .parts = "the same, slots, seen rows"});
  return roles;
}

}  // namespace parasol
