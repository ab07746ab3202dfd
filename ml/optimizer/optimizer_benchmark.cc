// Bytes of gradient, values and slots that an update reads and writes a second,
// beside memcpy, which is what the memory can do.
//
//   bazel run //ml/optimizer:optimizer_benchmark
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "benchmark/benchmark.h"
#include "google/protobuf/text_format.h"
#include "ml/optimizer/optimizer.h"
#include "ml/optimizer/test_table.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

// A ps chunk, which fits the caches, and a variable that does not.
constexpr int64_t kChunk = 65536;
constexpr int64_t kLarge = 16 << 20;

void BM_Memcpy(benchmark::State& state) {
  const size_t bytes = state.range(0) * sizeof(float);
  std::vector<char> from(bytes, 1);
  std::vector<char> to(bytes, 2);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), bytes);
    benchmark::DoNotOptimize(to.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * bytes * 2);
}
BENCHMARK(BM_Memcpy)->Arg(kChunk)->Arg(kLarge);

// In place, with a gradient that is not aligned.
void BM_Apply(benchmark::State& state, const std::string& textproto) {
  job::Optimizer spec;
  CHECK(google::protobuf::TextFormat::ParseFromString(textproto, &spec));
  const auto optimizer = MakeOptimizer(spec);
  CHECK(optimizer.ok()) << optimizer.status();
  const size_t count = state.range(0);
  TestTable table(**optimizer, std::vector<float>(count, 1));
  const std::vector<float> gradient(count, .001f);
  std::vector<std::byte> bytes(count * sizeof(float) + 1);
  std::memcpy(bytes.data() + 1, gradient.data(), count * sizeof(float));
  const std::vector<float*> slots = table.SlotsAt(0);
  int64_t iterations = 0;
  for (auto _ : state) {
    (*optimizer)
        ->Apply(iterations++, {.count = count,
                               .gradient = bytes.data() + 1,
                               .value = table.value.data(),
                               .new_value = table.value.data(),
                               .slots = slots});
    benchmark::ClobberMemory();
  }
  const size_t arrays = 1 + 2 * (1 + slots.size());
  state.SetBytesProcessed(state.iterations() * count * sizeof(float) * arrays);
}
BENCHMARK_CAPTURE(BM_Apply, sgd, "sgd {}")->Arg(kChunk)->Arg(kLarge);
BENCHMARK_CAPTURE(BM_Apply, momentum, "sgd { momentum: .9 }")
    ->Arg(kChunk)
    ->Arg(kLarge);
BENCHMARK_CAPTURE(BM_Apply, adagrad, "adagrad {}")->Arg(kChunk)->Arg(kLarge);
BENCHMARK_CAPTURE(BM_Apply, adam, "adam {}")->Arg(kChunk)->Arg(kLarge);
BENCHMARK_CAPTURE(BM_Apply, amsgrad, "adam { amsgrad: true }")
    ->Arg(kChunk)
    ->Arg(kLarge);

}  // namespace
}  // namespace parasol

BENCHMARK_MAIN();
