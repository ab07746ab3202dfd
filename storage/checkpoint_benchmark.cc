// bazel run //storage:checkpoint_benchmark
//
// One shard of 128 Mi floats (512 MiB) in chunks of 65,536, as a ps writes it,
// and one of 8 Mi rows of 16 float32 (576 MiB) in batches of 256; set TMPDIR to
// choose the disk. Real time counts: writing waits for it.
#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/log.h"
#include "benchmark/benchmark.h"
#include "storage/checkpoint_manifest.h"
#include "storage/checkpoint_reader.h"
#include "storage/durable_file.h"
#include "storage/shard_entry.h"
#include "storage/shard_writer.h"

namespace parasol {
namespace {

constexpr int64_t kChunk = 65536;
constexpr int64_t kElements = 2048 * kChunk;

std::string Directory() {
  return std::filesystem::temp_directory_path() / "checkpoint_benchmark";
}

void WriteCheckpoint() {
  std::filesystem::create_directories(Directory());
  auto writer = ShardWriter::Create(Directory() + "/0.sst");
  CHECK(writer.ok()) << writer.status();
  const std::vector<float> values(kChunk, 0.1f);
  for (int64_t first = 0; first < kElements; first += kChunk) {
    CHECK((*writer)
              ->AddElements("embedding", kValueArray, first, 1, values)
              .ok());
  }
  durable::CheckpointManifest manifest;
  manifest.set_format_version(kFormatVersion);
  *manifest.add_file() = *(*writer)->Finish();
  CHECK(WriteFileDurably(Directory() + "/MANIFEST", EncodeManifest(manifest))
            .ok());
}

void BM_Write(benchmark::State& state) {
  for (auto _ : state) WriteCheckpoint();
  state.SetBytesProcessed(state.iterations() * kElements * sizeof(float));
}
BENCHMARK(BM_Write)->Iterations(2)->UseRealTime()->Unit(
    benchmark::kMillisecond);

void BM_OpenReadAndVerify(benchmark::State& state) {
  std::vector<float> values(kElements);
  const auto restore = [&values] {
    const auto reader = CheckpointReader::Open(Directory());
    CHECK(reader.ok()) << reader.status();
    CHECK(
        (*reader)
            ->ReadElements("embedding", kValueArray, 0, absl::MakeSpan(values))
            .ok());
    CHECK((*reader)->Verify().ok());
  };
  // The first reading of pages that were just written measures the kernel.
  restore();
  for (auto _ : state) restore();
  state.SetBytesProcessed(state.iterations() * kElements * sizeof(float));
}
BENCHMARK(BM_OpenReadAndVerify)->UseRealTime()->Unit(benchmark::kMillisecond);

void BM_ReadElements(benchmark::State& state) {
  const auto reader = CheckpointReader::Open(Directory());
  CHECK(reader.ok()) << reader.status();
  std::vector<float> values(kElements);
  for (auto _ : state) {
    CHECK(
        (*reader)
            ->ReadElements("embedding", kValueArray, 0, absl::MakeSpan(values))
            .ok());
  }
  state.SetBytesProcessed(state.iterations() * kElements * sizeof(float));
}
BENCHMARK(BM_ReadElements)->UseRealTime()->Unit(benchmark::kMillisecond);

constexpr uint64_t kRowsPerBatch = 256;
constexpr uint64_t kBatches = 32768;
constexpr size_t kWidth = 16;

std::string RowsDirectory() { return Directory() + "_rows"; }

void WriteRowsCheckpoint() {
  std::filesystem::create_directories(RowsDirectory());
  auto writer = ShardWriter::Create(RowsDirectory() + "/0.sst");
  CHECK(writer.ok()) << writer.status();
  std::vector<uint64_t> ids(kRowsPerBatch);
  const std::vector<float> rows(kRowsPerBatch * kWidth, .1f);
  for (uint64_t batch = 0; batch < kBatches; ++batch) {
    std::iota(ids.begin(), ids.end(), batch * kRowsPerBatch);
    CHECK((*writer)->AddRows("items", {.ids = ids, .rows = rows}).ok());
  }
  durable::CheckpointManifest manifest;
  manifest.set_format_version(kFormatVersion);
  manifest.add_table()->set_name("items");
  manifest.mutable_table(0)->set_width(kWidth);
  *manifest.add_file() = *(*writer)->Finish();
  CHECK(
      WriteFileDurably(RowsDirectory() + "/MANIFEST", EncodeManifest(manifest))
          .ok());
}

void CountRows(benchmark::State& state) {
  state.counters["rows"] =
      benchmark::Counter(state.iterations() * kBatches * kRowsPerBatch,
                         benchmark::Counter::kIsRate);
}

void BM_WriteRows(benchmark::State& state) {
  for (auto _ : state) WriteRowsCheckpoint();
  CountRows(state);
}
BENCHMARK(BM_WriteRows)
    ->Iterations(2)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

void BM_ReadRows(benchmark::State& state) {
  const auto reader = CheckpointReader::Open(RowsDirectory());
  CHECK(reader.ok()) << reader.status();
  for (auto _ : state) {
    float sum = 0;
    CHECK((*reader)
              ->ReadRows("items",
                         [&sum](const RowBatch& batch) {
                           for (const float value : batch.rows) sum += value;
                           return absl::OkStatus();
                         })
              .ok());
    benchmark::DoNotOptimize(sum);
  }
  CountRows(state);
}
BENCHMARK(BM_ReadRows)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace parasol

BENCHMARK_MAIN();
