#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/process.h"
#include "base/status_macros.h"
#include "cluster/rpc/keep_memory.h"
#include "proto/parameter.pb.h"
#include "tests/benchmark/contents.h"
#include "tests/benchmark/machine.h"
#include "tests/benchmark/parasol_contender.h"
#include "tests/benchmark/plain_contender.h"
#include "tests/benchmark/report.h"
#include "tests/benchmark/tcp_contender.h"
#include "tests/benchmark/worker_process.h"
#include "tests/benchmark/workloads.h"

ABSL_FLAG(std::string, json, "", "Write the measurements to this file too.");
ABSL_FLAG(std::vector<std::string>, workload, {},
          "Some of push, pull, push+pull, small, steps, adam, workers, "
          "encodings, sparse, growth, journal; all by default.");
ABSL_FLAG(std::string, only, "",
          "Measure these contenders alone; a semicolon between two names.");
ABSL_FLAG(int, repetitions, 5, "Of each measurement; the median counts.");
ABSL_FLAG(absl::Duration, repetition_time, absl::Milliseconds(150),
          "How long one repetition takes.");
ABSL_FLAG(int, streams, 2, "Parasol's streams to the ps.");
ABSL_FLAG(uint64_t, message_bytes, 1 << 20, "Parasol's bytes per message.");
ABSL_FLAG(std::vector<std::string>, variable_bytes,
          std::vector<std::string>({"65536", "1048576", "16777216"}),
          "Sizes of the variables of push, pull and push+pull.");
ABSL_FLAG(uint64_t, rows, 2000000, "Of a sparse table.");
ABSL_FLAG(uint64_t, growth_rows, 10000000, "That a sparse table grows to.");
ABSL_FLAG(uint64_t, adam_elements, 16 << 20, "That Adam updates.");
ABSL_FLAG(std::string, serve, "",
          "Be the server of this contender (the benchmark starts it itself).");
ABSL_FLAG(std::string, work, "",
          "Be a worker of this contender (the benchmark starts it itself).");

namespace parasol {
namespace {

absl::Status Serve(const std::string& kind) {
  const Contents contents = ContentsFromFlags();
  if (kind == "tcp") ServeTcp(contents, RowStore::kOpenAddressing);
  if (kind == "tcp_unordered_map") ServeTcp(contents, RowStore::kUnorderedMap);
  if (kind == "plain") ServePlain(contents);
  if (kind == "parasol") ServeParasol(contents, /*trust=*/nullptr);
  if (kind == "parasol_tls") {
    ServeParasol(contents, TrustOfBenchmark(PeerRole::kPs));
  }
  if (kind == "parasol_checkpoints") ServeCheckpoints(contents);
  if (kind == "parasol_standby") ServeStandby();
  if (kind == "parasol_replicated") {
    ServeReplicated(contents, wire::LoadRequest::NONE);
  }
  if (kind == "parasol_replicated_journal") {
    ServeReplicated(contents, wire::LoadRequest::WRITTEN);
  }
  if (kind == "parasol_journal") {
    ServeParasol(contents, nullptr, wire::LoadRequest::WRITTEN);
  }
  if (kind == "parasol_journal_on_disk") {
    ServeParasol(contents, nullptr, wire::LoadRequest::ON_DISK);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no contender \"", kind, "\" has a server"));
}

ParameterClient::Options ClientOptions() {
  ParameterClient::Options options;
  options.worker_incarnation = getpid();
  options.streams_per_shard = absl::GetFlag(FLAGS_streams);
  options.message_bytes = absl::GetFlag(FLAGS_message_bytes);
  // Others are on other machines: what is measured is the way there.
  options.shared_memory = false;
  return options;
}

absl::StatusOr<std::vector<size_t>> VariableBytesFromFlags() {
  std::vector<size_t> sizes;
  for (const std::string& text : absl::GetFlag(FLAGS_variable_bytes)) {
    size_t bytes = 0;
    const bool is_size = absl::SimpleAtoi(text, &bytes) &&
                         bytes >= sizeof(float) && bytes % sizeof(float) == 0 &&
                         bytes <= kMaxVariableBytes;
    if (!is_size) {
      return absl::InvalidArgumentError(
          absl::StrCat("--variable_bytes: ", text,
                       " is not a multiple of 4 up to ", kMaxVariableBytes));
    }
    sizes.push_back(bytes);
  }
  return sizes;
}

absl::StatusOr<Settings> SettingsFromFlags() {
  ASSIGN_OR_RETURN(std::vector<size_t> variable_bytes,
                   VariableBytesFromFlags());
  return Settings{
      .plan = {.repetitions = absl::GetFlag(FLAGS_repetitions),
               .repetition_time = absl::GetFlag(FLAGS_repetition_time)},
      .only = absl::StrSplit(absl::GetFlag(FLAGS_only), ';', absl::SkipEmpty()),
      .variable_bytes = std::move(variable_bytes),
      .client = ClientOptions(),
      .rows = absl::GetFlag(FLAGS_rows),
      .growth_rows = absl::GetFlag(FLAGS_growth_rows),
      .adam_elements = absl::GetFlag(FLAGS_adam_elements)};
}

absl::Status WriteJson(const std::string& path,
                       const std::vector<EntrantComparison>& comparisons) {
  std::ofstream file(path);
  file << ToJson(Machine::This(), comparisons);
  file.close();
  if (file) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("can't write ", path));
}

absl::Status Run() {
  const std::vector<std::string> chosen = absl::GetFlag(FLAGS_workload);
  ASSIGN_OR_RETURN(const Settings settings, SettingsFromFlags());
  std::vector<EntrantComparison> comparisons;
  std::fputs(TableHeader(Machine::This()).c_str(), stdout);
  for (const Workload& workload : AllWorkloads()) {
    if (!chosen.empty() &&
        std::count(chosen.begin(), chosen.end(), workload.name) == 0) {
      continue;
    }
    workload.run(settings, [&](EntrantComparison comparison) {
      std::fputs(ToTable(comparison).c_str(), stdout);
      std::fflush(stdout);
      comparisons.push_back(std::move(comparison));
    });
  }
  if (comparisons.empty()) {
    return absl::InvalidArgumentError("--workload names none");
  }
  const bool has_measured =
      std::any_of(comparisons.begin(), comparisons.end(),
                  [](const EntrantComparison& comparison) {
                    return !comparison.measurements.empty();
                  });
  if (!has_measured) {
    return absl::InvalidArgumentError(
        absl::StrCat("--only=", absl::GetFlag(FLAGS_only),
                     ": the workloads have no such contender"));
  }
  const std::string path = absl::GetFlag(FLAGS_json);
  return path.empty() ? absl::OkStatus() : WriteJson(path, comparisons);
}

absl::Status RunAsOrdered() {
  if (const std::string kind = absl::GetFlag(FLAGS_serve); !kind.empty()) {
    return Serve(kind);
  }
  KeepFreedMemory();
  const std::string kind = absl::GetFlag(FLAGS_work);
  if (kind.empty()) return Run();
  Work(WorkOrderFromFlags(kind), ClientOptions());
  return absl::OkStatus();
}

}  // namespace
}  // namespace parasol

int main(int argc, char** argv) {
  parasol::ParseCommandLine(
      argc, argv,
      "Measures the parameter plane: Parasol's client and ps, plain gRPC with "
      "protobuf, and the floors: raw TCP and memcpy.");
  return parasol::ExitWith(parasol::RunAsOrdered());
}
