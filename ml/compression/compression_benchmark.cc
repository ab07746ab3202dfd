// Float32 bytes a second, of one ps chunk, which fits the caches.
//
//   bazel run //ml/compression:compression_benchmark
#include <cstring>
#include <random>
#include <vector>

#include "absl/types/span.h"
#include "benchmark/benchmark.h"
#include "ml/compression/half.h"
#include "ml/compression/top_k.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

constexpr size_t kChunk = 65536;

std::vector<float> NormalValues() {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(kChunk);
  for (float& value : values) value = normal(random);
  return values;
}

void CountBytes(benchmark::State& state) {
  state.SetBytesProcessed(state.iterations() * kChunk * sizeof(float));
}

// At an odd address, as in a message.
void BM_Encode(benchmark::State& state, job::Encoding encoding) {
  const std::vector<float> values = NormalValues();
  std::vector<std::byte> bytes(EncodedBytes(encoding, kChunk) + 1);
  for (auto _ : state) {
    Encode(encoding, values, bytes.data() + 1);
    benchmark::ClobberMemory();
  }
  CountBytes(state);
}
BENCHMARK_CAPTURE(BM_Encode, float32, job::FLOAT32);
BENCHMARK_CAPTURE(BM_Encode, float16, job::FLOAT16);
BENCHMARK_CAPTURE(BM_Encode, bfloat16, job::BFLOAT16);

void BM_Decode(benchmark::State& state, job::Encoding encoding) {
  std::vector<float> values = NormalValues();
  std::vector<std::byte> bytes(EncodedBytes(encoding, kChunk) + 1);
  Encode(encoding, values, bytes.data() + 1);
  for (auto _ : state) {
    Decode(encoding, bytes.data() + 1, absl::MakeSpan(values));
    benchmark::ClobberMemory();
  }
  CountBytes(state);
}
BENCHMARK_CAPTURE(BM_Decode, float32, job::FLOAT32);
BENCHMARK_CAPTURE(BM_Decode, float16, job::FLOAT16);
BENCHMARK_CAPTURE(BM_Decode, bfloat16, job::BFLOAT16);

// The share in thousandths.
void BM_TopK(benchmark::State& state) {
  const std::vector<float> gradient = NormalValues();
  std::vector<float> residual(kChunk);
  TopK top_k;
  for (auto _ : state) {
    benchmark::DoNotOptimize(top_k.Select(gradient, state.range(0) / 1000.,
                                          job::FLOAT32,
                                          absl::MakeSpan(residual)));
  }
  CountBytes(state);
}
BENCHMARK(BM_TopK)->Arg(1)->Arg(10)->Arg(100)->Arg(500);

}  // namespace
}  // namespace parasol

BENCHMARK_MAIN();
