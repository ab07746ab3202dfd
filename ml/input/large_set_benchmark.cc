// An epoch of a drawn click log, in Criteo's format, that is larger than the
// memory it may take: the time to open it, examples a second, and the process's
// memory. The file stays in DIR, for the next run; hard links to it there,
// click_log.2 and so on, are more of the log.
//
//   bazel run -c opt //ml/input:large_set_benchmark -- DIR GIBIBYTES [SHUFFLE]
//
// With a fourth argument, csv or parquet, the files are those that
// compare_parquet.py has written. DIR may be the URI of a log in an object
// store (tests/benchmark/object_data).

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <random>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "google/protobuf/text_format.h"
#include "ml/input/input_pipeline.h"
#include "ml/input/object/object_uri.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

std::string Line(std::mt19937_64& random) {
  std::string line = absl::StrCat(random() % 2);
  for (int n = 0; n < 13; ++n) absl::StrAppend(&line, "\t", random() % 1000);
  for (int c = 0; c < 26; ++c) {
    absl::StrAppend(&line, "\t",
                    absl::Hex(random() % 100'000'000, absl::kZeroPad8));
  }
  return line + "\n";
}

void Generate(const std::string& path, uint64_t bytes) {
  if (std::filesystem::exists(path) &&
      std::filesystem::file_size(path) >= bytes) {
    return;
  }
  // Drawing takes longer than writing: drawn lines come again.
  std::mt19937_64 random(1);
  std::string lines;
  while (lines.size() < size_t{64} << 20) lines += Line(random);
  std::ofstream file(path, std::ios::binary);
  for (uint64_t written = 0; written < bytes; written += lines.size()) {
    file << lines;
  }
}

std::string MemoryLine(const char* name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (absl::StartsWith(line, name)) return line;
  }
  return "";
}

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

// The files in `directory`, as a data set.
std::string FilesOf(const std::string& format) {
  if (format == "criteo") return "criteo { file: 'click_log*' }";
  return absl::StrCat(format, " { file: 'clicks_?.", format,
                      "' label { column: 'label' } }");
}

int Run(const std::string& directory, double gibibytes, int64_t shuffle,
        const std::string& format) {
  if (format == "criteo" && !IsUri(directory)) {
    Generate(directory + "/click_log",
             static_cast<uint64_t>(gibibytes * (uint64_t{1} << 30)));
  }
  job::Dataset dataset;
  CHECK(google::protobuf::TextFormat::ParseFromString(
      absl::StrCat("batch_size: 512 decode_threads: 2 prefetch_batches: 4 "
                   "shuffle_buffer: ",
                   shuffle, " ", FilesOf(format)),
      &dataset));
  std::string columns;
  for (int c = 1; c <= 26; ++c) {
    absl::StrAppend(&columns, "column { name: 'C", c, "' hash {} } ");
  }
  job::Model model;
  CHECK(google::protobuf::TextFormat::ParseFromString(
      absl::StrCat("input { name: 'c' ids { ", columns, "} }"), &model));
  auto start = std::chrono::steady_clock::now();
  const auto pipeline = InputPipeline::Open(
      dataset, *ModelInputsOf(model, {.is_probability = true}),
      {.data_dir = directory});
  CHECK(pipeline.ok()) << pipeline.status();
  std::cout << (*pipeline)->total_examples() << " examples, opened in "
            << SecondsSince(start) << " s; " << MemoryLine("VmHWM:")
            << std::endl;
  start = std::chrono::steady_clock::now();
  const std::clock_t cpu_start = std::clock();
  int64_t examples = 0;
  while (true) {
    const auto batch = (*pipeline)->Next();
    CHECK(batch.ok()) << batch.status();
    if (*batch == nullptr) break;
    examples += (*batch)->size;
  }
  CHECK_EQ(examples, (*pipeline)->total_examples());
  const double seconds = SecondsSince(start);
  std::cout << "an epoch in " << seconds << " s, " << examples / seconds
            << " examples/s, "
            << 1e6 * static_cast<double>(std::clock() - cpu_start) /
                   CLOCKS_PER_SEC / static_cast<double>(examples)
            << " us of processors each; " << MemoryLine("VmHWM:") << ", "
            << MemoryLine("VmRSS:") << std::endl;
  return 0;
}

}  // namespace
}  // namespace parasol

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "large_set_benchmark DIR GIBIBYTES [SHUFFLE [FORMAT]]"
              << std::endl;
    return 2;
  }
  return parasol::Run(argv[1], std::atof(argv[2]),
                      argc > 3 ? std::atoll(argv[3]) : 10000,
                      argc > 4 ? argv[4] : "criteo");
}
