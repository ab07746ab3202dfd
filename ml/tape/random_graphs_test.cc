// Random graphs of all kinds of operations, with their gradients and the
// gradients of these, against PyTorch: 500 whose results lie in testdata, and
// others where a Python has PyTorch (base/testing/python.h):
//
//   bazel test //ml/tape:random_graphs_test
//     --test_env=PARASOL_PYTHON=/path/to/python --test_arg=--graphs=5000

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "base/subprocess.h"
#include "base/testing/python.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/tape/elementwise.h"
#include "ml/tape/kinds.h"
#include "ml/tape/operation.h"
#include "ml/tape/tape.h"
#include "nlohmann/json.hpp"

ABSL_FLAG(int, graphs, 500, "Number of graphs that PyTorch draws.");
ABSL_FLAG(int64_t, first_seed, 2, "Seed of the first 500 of them.");

namespace parasol {
namespace {

using ::nlohmann::json;

constexpr char kFolder[] = "ml/tape/testdata/";

// Values, gradients, and gradients of gradients, in the order of a line.
constexpr const char* kResults[] = {"values", "gradients", "second_gradients"};

const TapeOperationKind* KindOf(const std::string& name) {
  for (const TapeOperationKind* const kind : TapeOperationKinds()) {
    if (kind->name == name) return kind;
  }
  return nullptr;
}

IntList ListOf(const json& attributes, const char* name) {
  if (!attributes.contains(name)) return {};
  return IntList(attributes[name].get<std::vector<int64_t>>());
}

OperationAttributes AttributesOf(const json& from) {
  OperationAttributes attributes;
  attributes.shape = TensorShape(ListOf(from, "shape"));
  attributes.axes = ListOf(from, "axes");
  attributes.begin = ListOf(from, "begin");
  attributes.axis = from.value("axis", 0);
  attributes.count = from.value("count", 0);
  attributes.low = from.value("low", 0.f);
  attributes.high = from.value("high", 0.f);
  attributes.keep_dims = from.value("keep_dims", false);
  attributes.transpose_a = from.value("transpose_a", false);
  attributes.transpose_b = from.value("transpose_b", false);
  if (from.value("dtype", "") == "int64") attributes.dtype = DType::kInt64;
  return attributes;
}

Tensor InputOf(const json& spec) {
  const TensorShape shape(ListOf(spec, "shape"));
  if (spec.value("dtype", "") == "int64") {
    return Tensor::Ints(spec["values"].get<std::vector<int64_t>>(), shape);
  }
  return Tensor::Of(spec["values"].get<std::vector<float>>(), shape);
}

Tensor Computed(const json& operation, const std::vector<Tensor>& operands) {
  const std::string kind = operation["kind"];
  // Its operands are broadcast beforehand.
  if (kind == "where") return Where(operands[0], operands[1], operands[2]);
  return Apply(*KindOf(kind), operands, AttributesOf(operation["attributes"]));
}

// Returns the targets of the graph, computed of these inputs.
std::vector<Tensor> Evaluate(const json& graph,
                             const std::vector<Tensor>& inputs) {
  std::vector<Tensor> values = inputs;
  for (const json& operation : graph["operations"]) {
    std::vector<Tensor> operands;
    for (const int64_t i : operation["in"]) operands.push_back(values[i]);
    values.push_back(Computed(operation, operands));
  }
  std::vector<Tensor> targets;
  for (const int64_t i : graph["targets"]) targets.push_back(values[i]);
  return targets;
}

std::vector<Tensor> WeightsOf(const json& weights,
                              const std::vector<Tensor>& like) {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < like.size(); ++i) {
    tensors.push_back(
        Tensor::Of(weights[i].get<std::vector<float>>(), like[i].shape()));
  }
  return tensors;
}

// Returns the tensors of each of kResults.
absl::StatusOr<std::vector<std::vector<Tensor>>> Differentiate(
    const json& graph) {
  std::vector<Tensor> inputs, sources;
  for (const json& spec : graph["inputs"]) {
    inputs.push_back(InputOf(spec));
    if (inputs.back().dtype() == DType::kFloat32) {
      sources.push_back(inputs.back());
    }
  }
  GradientTape outer, inner;
  for (const Tensor& source : sources) {
    outer.Watch(source);
    inner.Watch(source);
  }
  const std::vector<Tensor> targets = Evaluate(graph, inputs);
  for (const Tensor& target : targets) RETURN_IF_ERROR(target.status());
  constexpr auto kZero = GradientTape::Unconnected::kZero;
  ASSIGN_OR_RETURN(const std::vector<Tensor> first,
                   inner.Gradient(targets, sources,
                                  {.unconnected = kZero,
                                   .output_gradients =
                                       WeightsOf(graph["weights"], targets)}),
                   _ << "the gradient");
  ASSIGN_OR_RETURN(const std::vector<Tensor> second,
                   outer.Gradient(first, sources,
                                  {.unconnected = kZero,
                                   .output_gradients = WeightsOf(
                                       graph["second_weights"], first)}),
                   _ << "the gradient of the gradient");
  return std::vector<std::vector<Tensor>>{targets, first, second};
}

// Expects that each result is as near to PyTorch's in float64 as rounding lets
// it: PyTorch's own in float32 is `error` away.
void ExpectNear(const Tensor& result, const std::vector<double>& want,
                double error) {
  ASSERT_OK(result.status());
  ASSERT_EQ(result.values().size(), want.size());
  double largest = 1;
  for (const double x : want) largest = std::max(largest, std::abs(x));
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(result.values()[i], want[i], 1e-5 * largest + 10 * error)
        << "element " << i;
  }
}

void ExpectAsPyTorch(const json& graph) {
  const auto results = Differentiate(graph);
  ASSERT_OK(results.status());
  for (size_t kind = 0; kind < std::size(kResults); ++kind) {
    const json& want = graph[kResults[kind]];
    ASSERT_EQ((*results)[kind].size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      SCOPED_TRACE(absl::StrCat(kResults[kind], " ", i));
      ExpectNear((*results)[kind][i], want[i].get<std::vector<double>>(),
                 graph["errors"][kind][i]);
    }
  }
}

// Compares the graphs in `lines` until one differs. Returns their number.
int CompareLines(std::istream& lines, std::set<std::string>* kinds) {
  int number = 0;
  for (std::string line; std::getline(lines, line); ++number) {
    SCOPED_TRACE(line);
    const json graph = json::parse(line);
    for (const json& operation : graph["operations"]) {
      kinds->insert(operation["kind"]);
    }
    ExpectAsPyTorch(graph);
    if (testing::Test::HasFailure()) break;
  }
  return number;
}

TEST(RandomGraphsTest, ValuesAndGradientsArePyTorchs) {
  std::ifstream lines(absl::StrCat(kFolder, "graphs.jsonl"));
  std::set<std::string> kinds;
  EXPECT_EQ(CompareLines(lines, &kinds), 500);
  for (const TapeOperationKind* const kind : TapeOperationKinds()) {
    // Draws are nobody else's.
    if (kind->name.substr(0, 7) == "random_") continue;
    EXPECT_TRUE(kinds.contains(std::string(kind->name))) << kind->name;
  }
}

TEST(RandomGraphsTest, ValuesAndGradientsArePyTorchsWhereItIs) {
  if (const std::string why = PythonLacks("torch"); !why.empty()) {
    GTEST_SKIP() << why;
  }
  std::ifstream file(absl::StrCat(kFolder, "make_graphs.py"));
  std::stringstream program;
  program << file.rdbuf();
  constexpr int kGraphsOfRun = 500;
  const int64_t seed = absl::GetFlag(FLAGS_first_seed);
  for (int made = 0; made < absl::GetFlag(FLAGS_graphs); made += kGraphsOfRun) {
    const std::string own = absl::StrCat(seed + made / kGraphsOfRun);
    SCOPED_TRACE(absl::StrCat("seed ", own));
    const CompletedProcess run =
        RunPython(program.str(), {absl::StrCat(kGraphsOfRun), own});
    ASSERT_EQ(run.end.code(), 0) << run.standard_error;
    std::istringstream lines(run.standard_output);
    std::set<std::string> kinds;
    ASSERT_EQ(CompareLines(lines, &kinds), kGraphsOfRun);
  }
}

}  // namespace
}  // namespace parasol

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  absl::ParseCommandLine(argc, argv);
  return RUN_ALL_TESTS();
}
