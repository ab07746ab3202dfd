// A language model of characters: an LSTM or a causal transformer that learns
// to foretell each next character of a text, at all places of a window at once.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "loop/loop.h"
#include "ml/builder/columns.h"
#include "ml/builder/layers.h"
#include "ml/builder/model_builder.h"
#include "ml/builder/sequence_layers.h"
#include "ml/model/function/function_graph.h"
#include "ml/tape/model/model_operation.h"
#include "ml/tape/operations.h"
#include "ml/tape/tape.h"

ABSL_FLAG(std::string, text, "",
          "File of the text, of which a tenth is kept "
          "to test the model.");
ABSL_FLAG(std::string, model, "lstm", "lstm or transformer.");
ABSL_FLAG(int, steps, 64, "Characters of a window.");
ABSL_FLAG(int, batch, 32, "Windows of an update, of all replicas.");
ABSL_FLAG(int, width, 128,
          "Width of the transformer, and of a character's row.");
ABSL_FLAG(int, units, 256, "Units of the LSTM.");
ABSL_FLAG(int, blocks, 4, "Blocks of the transformer.");
ABSL_FLAG(int, heads, 4, "Heads of its attention.");
ABSL_FLAG(int, iterations, 1000, "Number of updates.");
ABSL_FLAG(int, report, 100, "Updates from one line of the output to the next.");
ABSL_FLAG(double, learning_rate, .002, "Of Adam.");

namespace {

using namespace parasol;        // NOLINT
using namespace parasol::loop;  // NOLINT

constexpr int kTestBatches = 20;

// Characters as numbers, in the order of their bytes.
struct Text {
  std::vector<int64_t> characters;
  int64_t kinds = 0;
  int64_t trained = 0;  // number of characters that are not kept
};

absl::StatusOr<Text> ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  const auto windows = static_cast<size_t>(absl::GetFlag(FLAGS_steps)) + 1;
  if (bytes.size() < 20 * windows) {
    return absl::InvalidArgumentError(
        absl::StrCat("--text=", path, ": ", bytes.size(),
                     " bytes could be read, fewer than ", 20 * windows));
  }
  std::vector<int64_t> numbers(256, -1);
  for (const char c : bytes) numbers[static_cast<uint8_t>(c)] = 0;
  Text text;
  for (int64_t& number : numbers) {
    if (number == 0) number = text.kinds++;
  }
  for (const char c : bytes) {
    text.characters.push_back(numbers[static_cast<uint8_t>(c)]);
  }
  text.trained = static_cast<int64_t>(bytes.size()) * 9 / 10;
  return text;
}

// A number that looks random (splitmix64).
uint64_t Mixed(uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

// Windows of characters, and for each of these the next one, [count, steps].
struct Windows {
  Tensor characters;
  Tensor next;
};

// Returns `count` windows, from number `first` of an endless order on, of the
// text's part [begin, end).
Windows WindowsOf(const Text& text, int64_t begin, int64_t end, uint64_t first,
                  int64_t count) {
  const int64_t steps = absl::GetFlag(FLAGS_steps);
  std::vector<int64_t> characters, next;
  for (int64_t i = 0; i < count; ++i) {
    const auto places = static_cast<uint64_t>(end - begin - steps);
    const auto at = text.characters.begin() + begin +
                    static_cast<int64_t>(Mixed(first + i) % places);
    characters.insert(characters.end(), at, at + steps);
    next.insert(next.end(), at + 1, at + 1 + steps);
  }
  return {Tensor::Ints(characters, {count, steps}),
          Tensor::Ints(next, {count, steps})};
}

// A network of two layers at each step: a convolution whose windows are single
// steps.
Value Network(const Value& x, int64_t width) {
  const Value hidden = layers::Conv1D(
      x, {.filters = 4 * width, .kernel_size = 1, .activation = job::GELU});
  return layers::Conv1D(hidden, {.filters = width, .kernel_size = 1});
}

Value Transformer(Value x) {
  const int64_t width = absl::GetFlag(FLAGS_width);
  const int64_t heads = absl::GetFlag(FLAGS_heads);
  x = layers::PositionalEmbedding(x);
  for (int block = 0; block < absl::GetFlag(FLAGS_blocks); ++block) {
    const Value seen = layers::LayerNormalization(x);
    x = layers::Add(
        {x, layers::MultiHeadAttention({seen}, {.num_heads = heads,
                                                .key_dim = width / heads,
                                                .causal = true})});
    x = layers::Add({x, Network(layers::LayerNormalization(x), width)});
  }
  return layers::LayerNormalization(x);
}

// Gives each step of a window a number for each character that may come next.
absl::StatusOr<job::Model> ModelOf(const Text& text) {
  const std::string& kind = absl::GetFlag(FLAGS_model);
  ModelBuilder model;
  const Value characters = model.SequenceInput(
      "characters", IdentityOf("text", text.kinds), absl::GetFlag(FLAGS_steps));
  Value x = layers::Embedding(
      characters,
      {.table = model.SparseTable("rows", absl::GetFlag(FLAGS_width))});
  if (kind == "lstm") {
    x = layers::Lstm(
        {x}, {.units = absl::GetFlag(FLAGS_units), .return_sequences = true});
  } else if (kind == "transformer") {
    x = Transformer(x);
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("--model=", kind, ": choose lstm or transformer"));
  }
  layers::Conv1D(x, {.filters = text.kinds, .kernel_size = 1});
  return model.Build();
}

// The model with its variables, which each replica calls for itself.
class LanguageModel {
 public:
  static absl::StatusOr<LanguageModel> Create(Strategy& strategy,
                                              const Text& text) {
    LanguageModel made;
    ASSIGN_OR_RETURN(const job::Model spec, ModelOf(text));
    ASSIGN_OR_RETURN(const Graph graph, ResolveFunction(spec, ""));
    ASSIGN_OR_RETURN(
        const Variable rows,
        Variable::Create("rows", {text.kinds, graph.tables[0].width},
                         "random_uniform {}"));
    made.variables_.push_back(rows);
    for (const VariableSpec& one : graph.variables) {
      ASSIGN_OR_RETURN(const Variable variable,
                       Variable::Create(one.name, TensorShape(one.shape),
                                        one.initializer.ShortDebugString()));
      made.variables_.push_back(variable);
    }
    for (int i = 0; i < strategy.num_local_replicas(); ++i) {
      ASSIGN_OR_RETURN(std::unique_ptr<ModelOperation> operation,
                       ModelOperation::Create("characters", graph,
                                              strategy.world().device(i)));
      made.operations_.push_back(std::move(operation));
    }
    return made;
  }

  const std::vector<Variable>& variables() const { return variables_; }

  // Returns the loss of each character, [windows, steps].
  Tensor Losses(const Windows& windows, int replica) const {
    const std::vector<Tensor> variables(variables_.begin() + 1,
                                        variables_.end());
    const Tensor ids[] = {windows.characters};
    const Tensor tables[] = {variables_[0]};
    const auto result = operations_[replica]->Call(
        {.ids = ids, .variables = variables, .tables = tables});
    return SparseCategoricalCrossentropy(windows.next, result.outputs[0]);
  }

 private:
  std::vector<Variable> variables_;
  std::vector<std::unique_ptr<ModelOperation>> operations_;
};

// The middle of the times since the last call.
class StepTimes {
 public:
  void Add(absl::Duration time) { times_.push_back(time); }
  double TakeMedianMilliseconds() {
    const auto middle = times_.begin() + times_.size() / 2;
    std::nth_element(times_.begin(), middle, times_.end());
    const double median = absl::ToDoubleMilliseconds(*middle);
    times_.clear();
    return median;
  }

 private:
  std::vector<absl::Duration> times_;
};

absl::Status Train(Strategy& strategy) {
  ASSIGN_OR_RETURN(const Text text, ReadText(absl::GetFlag(FLAGS_text)));
  ASSIGN_OR_RETURN(const LanguageModel model,
                   LanguageModel::Create(strategy, text));
  const int64_t batch = absl::GetFlag(FLAGS_batch);
  const int64_t own = batch / strategy.num_replicas_in_sync();
  const int64_t characters = batch * absl::GetFlag(FLAGS_steps);
  ASSIGN_OR_RETURN(const auto adam,
                   loop::Optimizer::Create(
                       "adam",
                       absl::StrCat("adam { learning_rate: ",
                                    absl::GetFlag(FLAGS_learning_rate), " }"),
                       model.variables()));

  const auto step = [&](ReplicaContext& replica) -> absl::StatusOr<Tensor> {
    const int64_t first =
        replica.step() * batch + replica.replica_id_in_sync_group() * own;
    const Windows windows = WindowsOf(text, 0, text.trained, first, own);
    GradientTape tape;
    const Tensor loss = ComputeAverageLoss(
        model.Losses(windows, replica.local_id()), characters);
    RETURN_IF_ERROR(adam.Minimize(loss, tape));
    return loss;
  };

  Training training(strategy, {.iterations = absl::GetFlag(FLAGS_iterations)});
  StepTimes times;
  double losses = 0;
  const int report = absl::GetFlag(FLAGS_report);
  while (training.Next()) {
    const absl::Time begin = Clock::Real().Now();
    const double loss = strategy.Reduce(kSum, strategy.Run(step)).scalar();
    times.Add(Clock::Real().Now() - begin);
    training.Report(batch, loss);
    losses += loss;
    if ((training.iteration() + 1) % report != 0) continue;
    if (strategy.is_chief()) {
      std::printf("iteration %lld: loss %.4f, %.2f ms\n",
                  static_cast<long long>(training.iteration() + 1),  // NOLINT
                  losses / report, times.TakeMedianMilliseconds());
      std::fflush(stdout);
    }
    losses = 0;
  }
  RETURN_IF_ERROR(training.status());
  double sum = 0;
  for (int i = 0; i < kTestBatches; ++i) {
    const Windows windows = WindowsOf(
        text, text.trained, static_cast<int64_t>(text.characters.size()),
        i * batch, batch);
    sum += ReduceMean(model.Losses(windows, 0)).scalar();
  }
  if (strategy.is_chief()) {
    std::printf("loss of the rest of the text: %.4f\n", sum / kTestBatches);
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  Program program(argc, argv, "A language model of a text's characters.");
  return program.Run(Train);
}
