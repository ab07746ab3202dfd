// What a thread decodes of each format: bytes of the file, unpacked, and
// examples a second of CPU time (of all threads: drawing the order and handing
// batches over are part of it), so that other load does not count.
//
//   bazel run -c opt //ml/input:input_benchmark

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "benchmark/benchmark.h"
#include "google/protobuf/text_format.h"
#include "ml/input/feature/model_inputs.h"
#include "ml/input/input_pipeline.h"
#include "ml/input/testing/tf_example_writer.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

constexpr int kExamples = 20000;

// As a9a: 14 of 123 features, all 1.
std::string BinaryLibsvm() {
  std::mt19937 random(1);
  std::string file;
  for (int i = 0; i < kExamples; ++i) {
    file += i % 2 == 0 ? "-1" : "+1";
    for (int f = 0; f < 14; ++f) {
      absl::StrAppend(&file, " ", 1 + f * 8 + random() % 8, ":1");
    }
    file += "\n";
  }
  return file;
}

// 30 numbers of 6 digits a line.
std::string DenseLibsvm() {
  std::mt19937 random(1);
  std::string file;
  for (int i = 0; i < kExamples; ++i) {
    absl::StrAppend(&file, i % 2);
    for (int f = 1; f <= 30; ++f) {
      absl::StrAppend(&file, " ", f, ":0.", 100000 + random() % 900000);
    }
    file += "\n";
  }
  return file;
}

// As Criteo: 13 integers, 26 categories of 8 hexadecimal digits.
std::string Criteo(int examples = kExamples) {
  std::mt19937 random(1);
  std::string file;
  for (int i = 0; i < examples; ++i) {
    absl::StrAppend(&file, i % 2);
    for (int n = 0; n < 13; ++n) absl::StrAppend(&file, "\t", random() % 1000);
    for (int c = 0; c < 26; ++c) {
      absl::StrAppend(&file, "\t", absl::Hex(random(), absl::kZeroPad8));
    }
    file += "\n";
  }
  return file;
}

// 30 numbers of 6 digits a line.
std::string Numbers() {
  std::mt19937 random(1);
  std::string file;
  for (int i = 0; i < kExamples; ++i) {
    for (int f = 0; f < 30; ++f) {
      absl::StrAppend(&file, "0.", 100000 + random() % 900000, ",");
    }
    absl::StrAppend(&file, i % 2, "\n");
  }
  return file;
}

// 13 floats and 26 categories.
std::string TfRecords(int examples = kExamples) {
  std::mt19937 random(1);
  std::string file;
  for (int i = 0; i < examples; ++i) {
    std::string features = IntegerFeature("label", {i % 2});
    for (int n = 1; n <= 13; ++n) {
      features += RealFeature(absl::StrCat("I", n),
                              {static_cast<float>(random() % 1000)});
    }
    for (int c = 1; c <= 26; ++c) {
      features += TextFeature(absl::StrCat("C", c),
                              {absl::StrCat(absl::Hex(random()))});
    }
    file += TfRecord(ExampleOf(features));
  }
  return file;
}

std::string Cifar() { return std::string(int64_t{3073} * 5000, '\5'); }

// Columns I1 … I13 and C1 … C26.
std::string CriteoModel() {
  std::string numbers;
  std::string categories;
  for (int i = 1; i <= 13; ++i) {
    absl::StrAppend(&numbers, "column { name: 'I", i,
                    "' default_value: 0 log1p: true } ");
  }
  for (int i = 1; i <= 26; ++i) {
    absl::StrAppend(&categories, "column { name: 'C", i,
                    "' hash { buckets: 100000 } } ");
  }
  return absl::StrCat("input { name: 'n' dense { ", numbers,
                      "} } input { name: 'c' ids { ", categories, "} }");
}

std::string NumbersModel() {
  std::string columns;
  for (int i = 0; i < 30; ++i) {
    absl::StrAppend(&columns, "column { name: 'x", i, "' } ");
  }
  return absl::StrCat("input { name: 'n' dense { ", columns, "} }");
}

std::string NumbersDataset() {
  std::string columns;
  for (int i = 0; i < 30; ++i) absl::StrAppend(&columns, "column: 'x", i, "' ");
  return absl::StrCat("csv { file: 'set' ", columns,
                      "column: 'y' label { column: 'y' } }");
}

void Decode(benchmark::State& state, const std::string& bytes,
            const std::string& dataset, const std::string& model,
            const SetMemory& memory = {}) {
  const std::filesystem::path directory =
      std::filesystem::temp_directory_path() /
      absl::StrCat("input_benchmark_", getpid());
  std::filesystem::create_directories(directory);
  std::ofstream(directory / "set", std::ios::binary) << bytes;
  job::Dataset spec;
  CHECK(google::protobuf::TextFormat::ParseFromString(
      absl::StrCat("batch_size: 512 decode_threads: 1 shuffle_buffer: 10000 "
                   "prefetch_batches: 4 ",
                   dataset),
      &spec));
  job::Model inputs;
  CHECK(google::protobuf::TextFormat::ParseFromString(model, &inputs));
  auto pipeline = InputPipeline::Open(
      spec, *ModelInputsOf(inputs, {.is_probability = true}),
      {.data_dir = directory.string(), .repeat = true, .memory = memory});
  CHECK(pipeline.ok()) << pipeline.status();
  std::filesystem::remove_all(directory);
  int64_t examples = 0;
  for (auto _ : state) {
    const auto batch = (*pipeline)->Next();
    CHECK(batch.ok()) << batch.status();
    examples += (*batch)->size;
  }
  state.SetItemsProcessed(examples);
  state.SetBytesProcessed(examples * bytes.size() /
                          (*pipeline)->total_examples());
}

void BM_LibsvmBinary(benchmark::State& state) {
  Decode(state, BinaryLibsvm(), "libsvm { file: 'set' }",
         "input { name: 'i' ids {} }");
}
void BM_LibsvmNumbers(benchmark::State& state) {
  Decode(state, DenseLibsvm(), "libsvm { file: 'set' }",
         "input { name: 'x' dense { shape: 30 } }");
}
void BM_CsvNumbers(benchmark::State& state) {
  Decode(state, Numbers(), NumbersDataset(), NumbersModel());
}
void BM_Criteo(benchmark::State& state) {
  Decode(state, Criteo(), "criteo { file: 'set' }", CriteoModel());
}
void BM_TfRecord(benchmark::State& state) {
  Decode(state, TfRecords(), "tfrecord { file: 'set' label: 'label' }",
         CriteoModel());
}
void BM_Cifar(benchmark::State& state) {
  Decode(state, Cifar(), "cifar { file: 'set' }",
         "input { name: 'x' dense { shape: [32, 32, 3] } }");
}
void BM_CifarAugmented(benchmark::State& state) {
  Decode(state, Cifar(),
         "cifar { file: 'set' } image { random_crop_padding: 4 random_flip: "
         "true mean: [0.5, 0.5, 0.5] stddev: [0.25, 0.25, 0.25] }",
         "input { name: 'x' dense { shape: [32, 32, 3] } }");
}

// Sets that are larger than the memory for them, beside the same ones in
// memory. The disk is the system's page cache.
constexpr int kManyExamples = 300000;
constexpr SetMemory OnDisk(size_t cache_bytes) {
  return {.whole = 0, .cache_bytes = cache_bytes};
}

const std::string& ManyCriteo() {
  static const auto* const bytes = new std::string(Criteo(kManyExamples));
  return *bytes;
}
const std::string& ManyTfRecords() {
  static const auto* const bytes = new std::string(TfRecords(kManyExamples));
  return *bytes;
}

void BM_LargeCriteo(benchmark::State& state) {
  Decode(state, ManyCriteo(), "criteo { file: 'set' }", CriteoModel());
}
void BM_LargeCriteoOnDisk(benchmark::State& state) {
  Decode(state, ManyCriteo(), "criteo { file: 'set' }", CriteoModel(),
         OnDisk(32 << 20));
}
void BM_LargeTfRecord(benchmark::State& state) {
  Decode(state, ManyTfRecords(), "tfrecord { file: 'set' label: 'label' }",
         CriteoModel());
}
void BM_LargeTfRecordOnDisk(benchmark::State& state) {
  Decode(state, ManyTfRecords(), "tfrecord { file: 'set' label: 'label' }",
         CriteoModel(), OnDisk(128 << 20));
}

BENCHMARK(BM_LibsvmBinary)->MeasureProcessCPUTime();
BENCHMARK(BM_LibsvmNumbers)->MeasureProcessCPUTime();
BENCHMARK(BM_CsvNumbers)->MeasureProcessCPUTime();
BENCHMARK(BM_Criteo)->MeasureProcessCPUTime();
BENCHMARK(BM_TfRecord)->MeasureProcessCPUTime();
BENCHMARK(BM_Cifar)->MeasureProcessCPUTime();
BENCHMARK(BM_CifarAugmented)->MeasureProcessCPUTime();
BENCHMARK(BM_LargeCriteo)->MeasureProcessCPUTime()->MinTime(4);
BENCHMARK(BM_LargeCriteoOnDisk)->MeasureProcessCPUTime()->MinTime(4);
BENCHMARK(BM_LargeTfRecord)->MeasureProcessCPUTime()->MinTime(4);
BENCHMARK(BM_LargeTfRecordOnDisk)->MeasureProcessCPUTime()->MinTime(4);

}  // namespace
}  // namespace parasol

BENCHMARK_MAIN();
