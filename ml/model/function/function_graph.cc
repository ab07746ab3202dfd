#include "ml/model/function/function_graph.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/faults.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "ml/model/graph_checks.h"
#include "ml/model/graph_faults.h"

namespace parasol {
namespace {

constexpr size_t kMaxShownBytes = 64;

void NameAll(absl::string_view prefix, Graph& graph) {
  const auto name = [prefix](std::string& old) {
    old = absl::StrCat(prefix, "/", old);
  };
  for (GraphNode& node : graph.nodes) name(node.name);
  for (VariableSpec& variable : graph.variables) name(variable.name);
  for (GraphTable& table : graph.tables) name(table.name);
}

}  // namespace

absl::StatusOr<Graph> ResolveFunction(const job::Model& spec,
                                      absl::string_view prefix) {
  if (!prefix.empty()) {
    RETURN_IF_ERROR(CheckGraphName(prefix))
        << "the model's name \"" << ShownText(prefix, kMaxShownBytes) << "\"";
  }
  Faults faults;
  CheckedGraph checked =
      CheckGraph(spec, /*faulty=*/{}, faults, GraphUse::kFunction);
  RETURN_IF_ERROR(faults.first());
  if (!prefix.empty()) NameAll(prefix, *checked.graph);
  return *std::move(checked.graph);
}

}  // namespace parasol
