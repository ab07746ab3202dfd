#ifndef PARASOL_ML_MODEL_GRAPH_OUTPUTS_H_
#define PARASOL_ML_MODEL_GRAPH_OUTPUTS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/faults.h"
#include "ml/loss/loss_spec.h"
#include "ml/model/graph.h"
#include "proto/job.pb.h"

namespace parasol {

// Returns the name of the layer whose output this is.
const std::string& LayerNameOf(const job::Output& output);

// Resolves the named outputs of `spec`, whose layers `graph` has, as far as
// they are known: `values` has the numbers of their values by name, and
// `unknown` the names of those at fault. Sets graph.output_values. Adds all
// faults, "model.output…"; returns nullopt if there is one, or an output is of
// an unknown layer.
std::optional<std::vector<OutputSpec>> ResolveNamedOutputs(
    const job::Model& spec,
    const absl::flat_hash_map<std::string, size_t>& values,
    const absl::flat_hash_set<std::string>& unknown, Graph& graph,
    Faults& faults);

// Does so for the graph of a function: only names and layers are looked at.
std::optional<std::vector<OutputSpec>> ResolveFunctionOutputs(
    const job::Model& spec,
    const absl::flat_hash_map<std::string, size_t>& values,
    const absl::flat_hash_set<std::string>& unknown, Graph& graph,
    Faults& faults);

// Resolves the outputs of a function: of `spec.output` only names and layers
// are looked at, and without it the last layer's output is the only one.
std::optional<std::vector<OutputSpec>> ResolveFunctionOutputs(
    const job::Model& spec,
    const absl::flat_hash_map<std::string, size_t>& values,
    const absl::flat_hash_set<std::string>& unknown, Graph& graph,
    Faults& faults);

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_GRAPH_OUTPUTS_H_
