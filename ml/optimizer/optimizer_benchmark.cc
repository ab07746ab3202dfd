// How near each optimizer comes to what the memory can do.
//
//   bazel run //ml/optimizer:optimizer_benchmark
//
// BM_Dense: an update in place of 64 MiB of values. `of_triad` is its share of
// a triad's bandwidth, the median over pairs of runs. The triad (STREAM's
// kernel: one multiplication and one addition) reads and writes as many streams
// of the same length.
//
// BM_Rows: updates of 10,000 random rows of 16 values in a table of 2^20 rows.
// `of_touch` is the same beside an addition to one element of each cache line.
//
// BM_ClipByNorm: the norm of a gradient that is short enough to stay.
#include <time.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/log.h"
#include "base/multiversion.h"
#include "benchmark/benchmark.h"
#include "google/protobuf/text_format.h"
#include "ml/optimizer/clip.h"
#include "ml/optimizer/optimizer.h"
#include "ml/optimizer/testing/plain_table.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

constexpr size_t kElements = 16 << 20;
constexpr size_t kWidth = 16;
constexpr size_t kRows = 1 << 20;
constexpr size_t kRowsAtOnce = 10000;

// Returns the CPU time of this thread, without other processes'.
double CpuSeconds() {
  timespec now;
  CHECK_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now), 0);
  return now.tv_sec + now.tv_nsec * 1e-9;
}

template <typename F>
double SecondsOf(F f) {
  const double start = CpuSeconds();
  f();
  benchmark::ClobberMemory();
  return CpuSeconds() - start;
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::unique_ptr<const Optimizer> Make(const std::string& textproto) {
  job::Optimizer spec;
  CHECK(google::protobuf::TextFormat::ParseFromString(textproto, &spec));
  auto optimizer = MakeOptimizer(spec);
  CHECK(optimizer.ok()) << optimizer.status();
  return *std::move(optimizer);
}

PARASOL_MULTIVERSION
void Triad1(size_t n, const float* g, float* a) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (size_t i = 0; i < n; ++i) a[i] = a[i] + .5f * g[i];
}

PARASOL_MULTIVERSION
void Triad2(size_t n, const float* g, float* a, float* b) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (size_t i = 0; i < n; ++i) {
    const float x = .5f * g[i];
    const float new_a = a[i] + x, new_b = b[i] + x;
    a[i] = new_a;
    b[i] = new_b;
  }
}

PARASOL_MULTIVERSION
void Triad3(size_t n, const float* g, float* a, float* b, float* c) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (size_t i = 0; i < n; ++i) {
    const float x = .5f * g[i];
    const float new_a = a[i] + x, new_b = b[i] + x, new_c = c[i] + x;
    a[i] = new_a;
    b[i] = new_b;
    c[i] = new_c;
  }
}

PARASOL_MULTIVERSION
void Triad4(size_t n, const float* g, float* a, float* b, float* c, float* d) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (size_t i = 0; i < n; ++i) {
    const float x = .5f * g[i];
    const float new_a = a[i] + x, new_b = b[i] + x;
    const float new_c = c[i] + x, new_d = d[i] + x;
    a[i] = new_a;
    b[i] = new_b;
    c[i] = new_c;
    d[i] = new_d;
  }
}

void Triad(const std::vector<float>& gradient, TestTable& table) {
  const size_t n = gradient.size();
  const float* g = gradient.data();
  float* w = table.value.data();
  std::vector<float*> s = table.SlotsAt(0);
  switch (s.size()) {
    case 0:
      return Triad1(n, g, w);
    case 1:
      return Triad2(n, g, w, s[0]);
    case 2:
      return Triad3(n, g, w, s[0], s[1]);
    case 3:
      return Triad4(n, g, w, s[0], s[1], s[2]);
    default:
      LOG(FATAL) << "no triad for " << s.size() << " slots";
  }
}

void BM_Dense(benchmark::State& state, const std::string& textproto) {
  const auto optimizer = Make(textproto);
  TestTable table(*optimizer, std::vector<float>(kElements, 1));
  const std::vector<float> gradient(kElements, .001f);
  std::vector<double> ratios;
  int64_t iterations = 0;
  double triad = 0, apply = 0;
  for (auto _ : state) {
    triad = SecondsOf([&] { Triad(gradient, table); });
    apply = SecondsOf([&] { table.Apply(*optimizer, iterations++, gradient); });
    ratios.push_back(triad / apply);
    state.SetIterationTime(apply);
  }
  const size_t arrays = 1 + 2 * (1 + table.slots.size());
  state.SetBytesProcessed(state.iterations() * kElements * sizeof(float) *
                          arrays);
  state.counters["of_triad"] = Median(ratios);
}

// Updates rows without computing anything, to measure the cost of memory.
PARASOL_MULTIVERSION
void Touch(const std::vector<float*>& rows, size_t floats) {
  constexpr size_t kAhead = 16;
  constexpr size_t kFloatsPerLine = 16;
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t j = 0; i + kAhead < rows.size() && j < floats;
         j += kFloatsPerLine) {
      __builtin_prefetch(rows[i + kAhead] + j, /*rw=*/1);
    }
    for (size_t j = 0; j < floats; j += kFloatsPerLine) rows[i][j] += 1;
  }
}

void BM_Rows(benchmark::State& state, const std::string& textproto) {
  const auto optimizer = Make(textproto);
  const size_t stride = kWidth * (1 + optimizer->slot_names().size());
  // Rows begin with a cache line, as an allocator's do.
  std::vector<float> memory(kRows * stride + 16, 1);
  float* const first =
      memory.data() + 16 - reinterpret_cast<uintptr_t>(memory.data()) / 4 % 16;
  std::vector<float*> all(kRows);
  for (size_t i = 0; i < kRows; ++i) all[i] = first + i * stride;
  std::shuffle(all.begin(), all.end(), std::mt19937(1));
  const std::vector<float> gradients(kRowsAtOnce * kWidth, .001f);
  std::vector<double> ratios;
  size_t next = 0;
  const auto batch = [&] {
    if (next + kRowsAtOnce > kRows) next = 0;
    const auto begin = all.begin() + next;
    next += kRowsAtOnce;
    return std::vector<float*>(begin, begin + kRowsAtOnce);
  };
  for (auto _ : state) {
    const std::vector<float*> touched = batch();
    const double touch = SecondsOf([&] { Touch(touched, stride); });
    const std::vector<float*> rows = batch();
    const double apply = SecondsOf([&] {
      optimizer->ApplyRows(
          1, {.count = rows.size(),
              .width = kWidth,
              .gradients = reinterpret_cast<const std::byte*>(gradients.data()),
              .rows = rows.data()});
    });
    ratios.push_back(touch / apply);
    state.SetIterationTime(apply);
  }
  state.SetItemsProcessed(state.iterations() * kRowsAtOnce);
  state.counters["of_touch"] = Median(ratios);
}

void BM_ClipByNorm(benchmark::State& state) {
  std::vector<float> gradient(state.range(0), 1e-3f);
  for (auto _ : state) {
    ClipByNorm(1e3, absl::MakeSpan(gradient));
    benchmark::DoNotOptimize(gradient.data());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

#define EACH_OPTIMIZER(benchmark, ...)                               \
  BENCHMARK_CAPTURE(benchmark, sgd, "sgd {}") __VA_ARGS__;           \
  BENCHMARK_CAPTURE(benchmark, momentum, "sgd { momentum: .9 }")     \
  __VA_ARGS__;                                                       \
  BENCHMARK_CAPTURE(benchmark, adagrad, "adagrad {}") __VA_ARGS__;   \
  BENCHMARK_CAPTURE(benchmark, adam, "adam {}") __VA_ARGS__;         \
  BENCHMARK_CAPTURE(benchmark, amsgrad, "adam { amsgrad: true }")    \
  __VA_ARGS__;                                                       \
  BENCHMARK_CAPTURE(benchmark, rmsprop, "rmsprop {}") __VA_ARGS__;   \
  BENCHMARK_CAPTURE(benchmark, rmsprop_centered_momentum,            \
                    "rmsprop { centered: true momentum: .9 }")       \
  __VA_ARGS__;                                                       \
  BENCHMARK_CAPTURE(benchmark, adadelta, "adadelta {}") __VA_ARGS__; \
  BENCHMARK_CAPTURE(benchmark, adamax, "adamax {}") __VA_ARGS__;     \
  BENCHMARK_CAPTURE(benchmark, nadam, "nadam {}") __VA_ARGS__;       \
  BENCHMARK_CAPTURE(benchmark, adamw, "adamw {}") __VA_ARGS__;       \
  BENCHMARK_CAPTURE(benchmark, lion, "lion {}") __VA_ARGS__;         \
  BENCHMARK_CAPTURE(benchmark, ftrl, "ftrl {}") __VA_ARGS__;         \
  BENCHMARK_CAPTURE(benchmark, ftrl_any_power,                       \
                    "ftrl { learning_rate_power: -.7 }")             \
  __VA_ARGS__

EACH_OPTIMIZER(
    BM_Dense, ->UseManualTime()->MinTime(.5)->Unit(benchmark::kMillisecond));
EACH_OPTIMIZER(
    BM_Rows, ->UseManualTime()->MinTime(.2)->Unit(benchmark::kMicrosecond));
BENCHMARK(BM_ClipByNorm)->Arg(16)->Arg(4096)->Arg(1 << 20);

}  // namespace
}  // namespace parasol

BENCHMARK_MAIN();
