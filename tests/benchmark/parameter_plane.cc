#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/process.h"
#include "cluster/rpc/keep_memory.h"
#include "tests/benchmark/measurement.h"
#include "tests/benchmark/memory_contender.h"
#include "tests/benchmark/parasol_contender.h"
#include "tests/benchmark/plain_contender.h"
#include "tests/benchmark/report.h"
#include "tests/benchmark/tcp_contender.h"

ABSL_FLAG(std::string, json, "", "Write the measurements to this file too.");
ABSL_FLAG(std::string, only, "", "Measure this contender alone.");
ABSL_FLAG(int, repetitions, 7, "Of each measurement; the median counts.");
ABSL_FLAG(absl::Duration, repetition_time, absl::Milliseconds(200),
          "How long one repetition takes.");
ABSL_FLAG(int, streams, 2, "Parasol's streams to the ps.");
ABSL_FLAG(uint64_t, message_bytes, 1 << 20, "Parasol's bytes per message.");
ABSL_FLAG(std::string, serve, "",
          "Be the server of this contender (the benchmark starts it itself).");

namespace parasol {
namespace {

absl::Status Serve(const std::string& contender) {
  if (contender == "tcp") ServeTcp();
  if (contender == "plain") ServePlain();
  if (contender == "parasol") ServeParasol();
  return absl::InvalidArgumentError(
      absl::StrCat("no contender \"", contender, "\" has a server"));
}

std::vector<std::unique_ptr<Contender>> MakeContenders() {
  std::vector<std::unique_ptr<Contender>> contenders;
  contenders.push_back(MakeMemoryContender());
  contenders.push_back(MakeTcpContender());
  contenders.push_back(MakePlainContender());
  ParameterClient::Options options;
  options.worker_incarnation = 1;
  options.streams_per_shard = absl::GetFlag(FLAGS_streams);
  options.message_bytes = absl::GetFlag(FLAGS_message_bytes);
  contenders.push_back(MakeParasolContender(options));
  const std::string only = absl::GetFlag(FLAGS_only);
  if (!only.empty()) {
    std::erase_if(contenders, [&](const std::unique_ptr<Contender>& contender) {
      return contender->name() != only;
    });
  }
  return contenders;
}

absl::Status Run() {
  KeepFreedMemory();
  const auto contenders = MakeContenders();
  if (contenders.empty()) return absl::InvalidArgumentError("--only: nobody");
  const MeasurementPlan plan = {
      .repetitions = absl::GetFlag(FLAGS_repetitions),
      .repetition_time = absl::GetFlag(FLAGS_repetition_time)};
  Report report;
  for (const ExchangeKind kind :
       {ExchangeKind::kPush, ExchangeKind::kPull, ExchangeKind::kPushPull}) {
    for (size_t variable = 0; variable < kVariableBytes.size(); ++variable) {
      for (Measurement& m : Measure(contenders, kind, variable, plan)) {
        report.measurements.push_back(std::move(m));
      }
    }
  }
  for (const auto& contender : contenders) {
    if (const size_t rss = contender->server_rss_bytes(); rss > 0) {
      report.server_rss_bytes[contender->name()] = rss;
    }
  }
  std::fputs(ToTable(report).c_str(), stdout);
  const std::string path = absl::GetFlag(FLAGS_json);
  if (path.empty()) return absl::OkStatus();
  std::ofstream file(path);
  file << ToJson(report);
  file.close();
  if (!file) return absl::InternalError(absl::StrCat("can't write ", path));
  return absl::OkStatus();
}

}  // namespace
}  // namespace parasol

int main(int argc, char** argv) {
  parasol::ParseCommandLine(
      argc, argv,
      "Measures pushes and pulls of one tensor: Parasol's client and ps, plain "
      "gRPC with protobuf, and the floors: raw TCP and memcpy.");
  const std::string serve = absl::GetFlag(FLAGS_serve);
  return parasol::ExitWith(serve.empty() ? parasol::Run()
                                         : parasol::Serve(serve));
}
