// Rows a second that a sparse table pulls and pushes, with ids at random over
// all its rows, beside what the memory can do and beside a std::unordered_map
// with the same arithmetic:
//
//   bazel run //cluster/rows:row_table_benchmark
//
// BM_Grow/… pushes the ids of 12 million rows, ascending, each once, and
// reports the longest single request in milliseconds.
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/log.h"
#include "base/row_hash.h"
#include "benchmark/benchmark.h"
#include "cluster/rows/row_snapshot.h"
#include "cluster/rows/row_table.h"
#include "google/protobuf/text_format.h"
#include "ml/optimizer/optimizer.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

constexpr size_t kIdsPerRequest = 10000;
constexpr size_t kRequests = 64;  // different ones, repeated

const std::byte* Bytes(const void* memory) {
  return static_cast<const std::byte*>(memory);
}

using Values = job::SparseTable::Values;
constexpr Values kFloat32 = job::SparseTable::FLOAT32;
constexpr Values kBfloat16 = job::SparseTable::BFLOAT16;

std::unique_ptr<RowTable> MakeTable(const std::string& optimizer, size_t width,
                                    Values kept = kFloat32) {
  job::Optimizer spec;
  CHECK(google::protobuf::TextFormat::ParseFromString(optimizer, &spec));
  RowTable::Options options = {
      .name = "items", .width = width, .seed = 1, .values = kept};
  options.initializer.mutable_random_uniform();
  auto table = RowTable::Create(std::move(options), *MakeOptimizer(spec));
  CHECK(table.ok()) << table.status();
  return *std::move(table);
}

// Ids are spread over all 64 bits, as hashed features are.
uint64_t IdOf(uint64_t row) { return row * 0x9e3779b97f4a7c15; }

void Fill(RowTable& table, size_t rows) {
  std::vector<uint64_t> ids(kIdsPerRequest);
  std::vector<float> values(ids.size() * table.width());
  for (size_t first = 0; first < rows; first += ids.size()) {
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = IdOf(first + i);
    CHECK(table.Pull(Bytes(ids.data()), ids.size(), values.data()).ok());
  }
}

// The table is the same for all benchmarks of one kind.
RowTable& FilledTable(const std::string& optimizer, size_t width, size_t rows,
                      Values values = kFloat32) {
  static std::string kept_key;
  static std::unique_ptr<RowTable> kept;
  const std::string key = optimizer + std::to_string(width) + "/" +
                          std::to_string(rows) + "/" + std::to_string(values);
  if (kept_key != key) {
    kept.reset();
    kept = MakeTable(optimizer, width, values);
    Fill(*kept, rows);
    kept_key = key;
  }
  return *kept;
}

std::vector<uint64_t> RandomIds(size_t rows, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint64_t> ids(kRequests * kIdsPerRequest);
  for (uint64_t& id : ids) id = IdOf(random() % rows);
  return ids;
}

// Returns such ids, each request's in the order of their stripes, as workers
// send them.
std::vector<uint64_t> SortedIds(size_t rows, uint64_t seed) {
  std::vector<uint64_t> ids = RandomIds(rows, seed);
  for (auto request = ids.begin(); request != ids.end();
       request += kIdsPerRequest) {
    std::stable_sort(request, request + kIdsPerRequest,
                     [](uint64_t a, uint64_t b) {
                       return StripeOf(RowHash(a)) < StripeOf(RowHash(b));
                     });
  }
  return ids;
}

double BytesPerRow(const RowTable& table) {
  return static_cast<double>(table.memory_bytes()) /
         static_cast<double>(table.rows());
}

void CountRows(benchmark::State& state) {
  state.counters["rows"] = benchmark::Counter(
      state.iterations() * kIdsPerRequest, benchmark::Counter::kIsRate);
}

using MakeIds = std::vector<uint64_t> (*)(size_t rows, uint64_t seed);

void BM_Push(benchmark::State& state, const std::string& optimizer,
             MakeIds make_ids, Values kept) {
  RowTable& table =
      FilledTable(optimizer, state.range(0), state.range(1), kept);
  const std::vector<uint64_t> ids = make_ids(state.range(1), 1);
  const std::vector<float> gradients(kIdsPerRequest * table.width(), .001f);
  size_t request = 0;
  for (auto _ : state) {
    const uint64_t* first = &ids[request++ % kRequests * kIdsPerRequest];
    CHECK(
        table.Push(Bytes(first), Bytes(gradients.data()), kIdsPerRequest).ok());
  }
  CountRows(state);
  state.counters["bytes_per_row"] = BytesPerRow(table);
}

// Several workers push to one table.
void BM_PushTogether(benchmark::State& state, const std::string& optimizer) {
  static RowTable* table;
  if (state.thread_index() == 0) {
    table = &FilledTable(optimizer, state.range(0), state.range(1));
  }
  const std::vector<uint64_t> ids =
      RandomIds(state.range(1), state.thread_index());
  const std::vector<float> gradients(kIdsPerRequest * state.range(0), .001f);
  size_t request = 0;
  for (auto _ : state) {
    const uint64_t* first = &ids[request++ % kRequests * kIdsPerRequest];
    CHECK(table->Push(Bytes(first), Bytes(gradients.data()), kIdsPerRequest)
              .ok());
  }
  CountRows(state);
}

void BM_Pull(benchmark::State& state, const std::string& optimizer,
             MakeIds make_ids, Values kept) {
  RowTable& table =
      FilledTable(optimizer, state.range(0), state.range(1), kept);
  const std::vector<uint64_t> ids = make_ids(state.range(1), 2);
  std::vector<float> values(kIdsPerRequest * table.width());
  size_t request = 0;
  for (auto _ : state) {
    const uint64_t* first = &ids[request++ % kRequests * kIdsPerRequest];
    CHECK(table.Pull(Bytes(first), kIdsPerRequest, values.data()).ok());
  }
  CountRows(state);
}

// values -= .01 * gradient, one row after the other.
void BM_UnorderedMapPush(benchmark::State& state) {
  const size_t width = state.range(0);
  const size_t rows = state.range(1);
  std::unordered_map<uint64_t, std::vector<float>> map;
  for (size_t row = 0; row < rows; ++row) {
    map.emplace(IdOf(row), std::vector<float>(width, .1f));
  }
  const std::vector<uint64_t> ids = RandomIds(rows, 1);
  const std::vector<float> gradients(kIdsPerRequest * width, .001f);
  size_t request = 0;
  for (auto _ : state) {
    const uint64_t* first = &ids[request++ % kRequests * kIdsPerRequest];
    for (size_t i = 0; i < kIdsPerRequest; ++i) {
      float* const values = map.find(first[i])->second.data();
      for (size_t c = 0; c < width; ++c) {
        values[c] -= .01f * gradients[i * width + c];
      }
    }
  }
  CountRows(state);
}

// The floor: as many rows, in order, of two arrays too large for any cache.
void BM_Triad(benchmark::State& state) {
  const size_t width = state.range(0);
  const size_t rows = state.range(1);
  std::vector<float> values(rows * width, .1f);
  std::vector<float> gradients(rows * width, .1f);
  for (auto _ : state) {
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] -= .01f * gradients[i];
    }
    benchmark::ClobberMemory();
  }
  state.counters["rows"] = benchmark::Counter(state.iterations() * rows,
                                              benchmark::Counter::kIsRate);
}

void BM_Memcpy(benchmark::State& state) {
  const size_t bytes = state.range(0) * state.range(1) * sizeof(float);
  std::vector<char> from(bytes, 1);
  std::vector<char> to(bytes, 2);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), bytes);
    benchmark::ClobberMemory();
  }
  state.counters["rows"] = benchmark::Counter(
      state.iterations() * state.range(1), benchmark::Counter::kIsRate);
}

double Milliseconds(clockid_t clock) {
  timespec now;
  CHECK_EQ(clock_gettime(clock, &now), 0);
  return now.tv_sec * 1e3 + now.tv_nsec * 1e-6;
}

// How long each request took.
struct Latencies {
  std::vector<double> milliseconds;

  void Report(benchmark::State& state, const std::string& name) {
    std::sort(milliseconds.begin(), milliseconds.end());
    state.counters[name + "_longest_ms"] = milliseconds.back();
    state.counters[name + "_p999_ms"] =
        milliseconds[milliseconds.size() * 999 / 1000];
    state.counters[name + "_median_ms"] = milliseconds[milliseconds.size() / 2];
  }
};

void BM_Grow(benchmark::State& state, const std::string& optimizer) {
  constexpr size_t kRows = 12000000;
  std::vector<uint64_t> ids(kIdsPerRequest);
  const std::vector<float> gradients(kIdsPerRequest * state.range(0), .001f);
  Latencies wall, cpu;
  for (auto _ : state) {
    const std::unique_ptr<RowTable> table =
        MakeTable(optimizer, state.range(0));
    for (size_t first = 0; first < kRows; first += ids.size()) {
      for (size_t i = 0; i < ids.size(); ++i) ids[i] = IdOf(first + i);
      const double wall_begin = Milliseconds(CLOCK_MONOTONIC);
      const double cpu_begin = Milliseconds(CLOCK_THREAD_CPUTIME_ID);
      CHECK(table->Push(Bytes(ids.data()), Bytes(gradients.data()), ids.size())
                .ok());
      cpu.milliseconds.push_back(Milliseconds(CLOCK_THREAD_CPUTIME_ID) -
                                 cpu_begin);
      wall.milliseconds.push_back(Milliseconds(CLOCK_MONOTONIC) - wall_begin);
    }
    state.counters["bytes_per_row"] = BytesPerRow(*table);
  }
  state.counters["rows"] = benchmark::Counter(state.iterations() * kRows,
                                              benchmark::Counter::kIsRate);
  wall.Report(state, "wall");
  cpu.Report(state, "cpu");
}

// A snapshot of the table, and the first push after it, which copies the blocks
// that it touches: nearly one for each of its ids.
void BM_PushAfterCut(benchmark::State& state, const std::string& optimizer) {
  RowTable& table = FilledTable(optimizer, state.range(0), state.range(1));
  const std::vector<uint64_t> ids = RandomIds(state.range(1), 3);
  const std::vector<float> gradients(kIdsPerRequest * table.width(), .001f);
  Latencies snapshot_time, push_time;
  size_t request = 0;
  for (auto _ : state) {
    const uint64_t* first = &ids[request++ % kRequests * kIdsPerRequest];
    const double begin = Milliseconds(CLOCK_MONOTONIC);
    const RowSnapshot snapshot = table.TakeSnapshot();
    const double middle = Milliseconds(CLOCK_MONOTONIC);
    CHECK(
        table.Push(Bytes(first), Bytes(gradients.data()), kIdsPerRequest).ok());
    push_time.milliseconds.push_back(Milliseconds(CLOCK_MONOTONIC) - middle);
    snapshot_time.milliseconds.push_back(middle - begin);
  }
  snapshot_time.Report(state, "snapshot");
  push_time.Report(state, "push");
}

void Sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->Args({16, 1 << 20})->Args({16, 4 << 20})->Args({64, 1 << 20});
}

// With one slot element for each element, and for each row, and with values of
// 4 and of 2 bytes.
void Widths(benchmark::internal::Benchmark* benchmark) {
  for (const int64_t width : {8, 16, 32, 64}) benchmark->Args({width, 1 << 20});
}

constexpr char kSgd[] = "sgd {}";
constexpr char kAdagrad[] = "adagrad {}";
constexpr char kRowwiseAdagrad[] = "rowwise_adagrad {}";
BENCHMARK(BM_Memcpy)->Apply(Sizes);
BENCHMARK(BM_Triad)->Apply(Sizes);
BENCHMARK(BM_UnorderedMapPush)->Apply(Sizes);
BENCHMARK_CAPTURE(BM_Push, sgd, kSgd, RandomIds, kFloat32)->Apply(Sizes);
BENCHMARK_CAPTURE(BM_Push, sgd_sorted, kSgd, SortedIds, kFloat32)->Apply(Sizes);
BENCHMARK_CAPTURE(BM_Pull, sgd, kSgd, RandomIds, kFloat32)->Apply(Sizes);
BENCHMARK_CAPTURE(BM_Pull, sgd_sorted, kSgd, SortedIds, kFloat32)->Apply(Sizes);
BENCHMARK_CAPTURE(BM_PushTogether, sgd, kSgd)
    ->Args({16, 1 << 20})
    ->ThreadRange(1, 4)
    ->UseRealTime();
BENCHMARK_CAPTURE(BM_Push, adagrad, kAdagrad, RandomIds, kFloat32)
    ->Apply(Sizes);
BENCHMARK_CAPTURE(BM_Push, adagrad_sorted, kAdagrad, SortedIds, kFloat32)
    ->Apply(Sizes);
BENCHMARK_CAPTURE(BM_Push, slots_of_elements, kAdagrad, SortedIds, kFloat32)
    ->Apply(Widths);
BENCHMARK_CAPTURE(BM_Push, slots_of_elements_bfloat16, kAdagrad, SortedIds,
                  kBfloat16)
    ->Apply(Widths);
BENCHMARK_CAPTURE(BM_Push, slots_of_rows, kRowwiseAdagrad, SortedIds, kFloat32)
    ->Apply(Widths);
BENCHMARK_CAPTURE(BM_Push, slots_of_rows_bfloat16, kRowwiseAdagrad, SortedIds,
                  kBfloat16)
    ->Apply(Widths);
BENCHMARK_CAPTURE(BM_Pull, slots_of_elements, kAdagrad, SortedIds, kFloat32)
    ->Apply(Widths);
BENCHMARK_CAPTURE(BM_Pull, slots_of_elements_bfloat16, kAdagrad, SortedIds,
                  kBfloat16)
    ->Apply(Widths);
BENCHMARK_CAPTURE(BM_Pull, slots_of_rows, kRowwiseAdagrad, SortedIds, kFloat32)
    ->Apply(Widths);
BENCHMARK_CAPTURE(BM_Pull, slots_of_rows_bfloat16, kRowwiseAdagrad, SortedIds,
                  kBfloat16)
    ->Apply(Widths);
BENCHMARK_CAPTURE(BM_PushAfterCut, sgd, kSgd)
    ->Args({16, 4 << 20})
    ->Iterations(20);
BENCHMARK_CAPTURE(BM_Grow, sgd, kSgd)
    ->Arg(16)
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Grow, adagrad, kAdagrad)
    ->Arg(16)
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace parasol

BENCHMARK_MAIN();
