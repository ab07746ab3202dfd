// Pushes to a ps that writes one checkpoint after the other, beside a ps that
// writes none; and how fast one writes to which nobody pushes.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/work_helpers.h"
#include "cluster/rpc/keep_memory.h"
#include "proto/parameter.pb.h"
#include "ps/shard/parameter_server.h"
#include "ps/shard/ps_metrics.h"
#include "storage/checkpoint_store.h"
#include "tests/benchmark/contents.h"
#include "tests/benchmark/parasol_contender.h"
#include "tests/benchmark/workloads.h"

namespace parasol {
namespace {

// A fresh folder for the checkpoints of this process.
std::string FreshDirectory() {
  const std::string directory =
      absl::StrCat(std::filesystem::temp_directory_path().string(),
                   "/parasol_benchmark/checkpoints.", getpid());
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  return directory;
}

// A ps that writes what it has to a file of a checkpoint.
class CheckpointWriter {
 public:
  explicit CheckpointWriter(const Contents& contents)
      : directory_(FreshDirectory()) {
    const wire::LoadRequest load = LoadOf(contents);
    const auto loaded = server_.Load(load);
    CHECK(loaded.ok()) << loaded.status();
    const auto working = CheckpointStore(directory_).Begin(/*step=*/1);
    CHECK(working.ok()) << working.status();
    server_.Registered(/*chief_epoch=*/0, directory_);
    request_.set_run_id(load.run_id());
    request_.set_directory(*working);
    request_.set_file_name("shard");
  }
  ~CheckpointWriter() { std::filesystem::remove_all(directory_); }

  // Writes a file, and removes it.
  void Write() {
    const auto written = server_.Snapshot(request_);
    CHECK(written.ok()) << written.status();
    std::filesystem::remove(
        absl::StrCat(request_.directory(), "/", request_.file_name()));
  }

  ParameterServer& server() { return server_; }
  PsMetrics& metrics() { return metrics_; }

 private:
  const std::string directory_;
  MetricsRegistry registry_;
  PsMetrics metrics_{registry_};
  ParameterServer server_{{.task = "ps/0",
                           .helpers = std::make_shared<WorkHelpers>(
                               WorkHelpers::ThreadsForServer())},
                          Clock::Real(),
                          metrics_};
  wire::SnapshotRequest request_;
};

class CheckpointLane : public WorkQueue {
 public:
  explicit CheckpointLane(const Contents& contents)
      : bytes_(contents.variables * contents.variable_bytes()),
        writer_(contents) {}

  void Start() override { writer_.Write(); }
  void Finish() override {}
  double amount() const override { return bytes_; }

 private:
  const size_t bytes_;
  CheckpointWriter writer_;
};

// The floor: the same bytes, in calls of 1 MiB, then fdatasync().
class FileLane : public WorkQueue {
 public:
  explicit FileLane(size_t bytes)
      : directory_(FreshDirectory()), values_(bytes) {}
  ~FileLane() override { std::filesystem::remove_all(directory_); }

  void Start() override {
    const std::string path = directory_ + "/file";
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600);
    CHECK(file >= 0) << path << ": " << strerror(errno);
    for (size_t at = 0; at < values_.size();) {
      const size_t most = std::min<size_t>(values_.size() - at, 1 << 20);
      const ssize_t written = write(file, &values_[at], most);
      CHECK(written > 0) << path << ": " << strerror(errno);
      at += written;
    }
    CHECK(fdatasync(file) == 0) << path << ": " << strerror(errno);
    close(file);
    std::filesystem::remove(path);
  }
  void Finish() override {}
  double amount() const override { return values_.size(); }

 private:
  const std::string directory_;
  const std::vector<char> values_;
};

std::vector<Measurement> CompareWriters(const Settings& settings) {
  const Contents contents = {.variables = 16, .elements = 4 << 20};
  const size_t bytes = contents.variables * contents.variable_bytes();
  Lineup lineup(settings);
  const auto add =
      [&](const std::string& name, FigureTarget target,
          const std::function<std::unique_ptr<WorkQueue>()>& make) {
        lineup.Add(name, [&] {
          Entrant entrant = {.contender = {.name = name}, .target = target};
          entrant.lanes.push_back(make());
          return entrant;
        });
      };
  add("write, fdatasync", {},
      [&] { return std::make_unique<FileLane>(bytes); });
  add("Parasol", FigureTarget::All({{.9, "write, fdatasync"}}),
      [&] { return std::make_unique<CheckpointLane>(contents); });
  return lineup.Measure();
}

std::vector<Measurement> CompareCheckpoints(const Settings& settings,
                                            const Contents& contents,
                                            size_t bytes,
                                            const MakeLane& make_lane) {
  Lineup lineup(settings);
  lineup.Add("Parasol", [&] {
    return Enter(MakeParasolContender("Parasol", contents, settings.client),
                 bytes, make_lane);
  });
  const std::string name = "Parasol, beside checkpoints";
  lineup.Add(name, [&] {
    return Enter(MakeCheckpointContender(name, contents, settings.client),
                 bytes, make_lane, FigureTarget::All({{.8, "Parasol"}}));
  });
  return lineup.Measure();
}

}  // namespace

Contender MakeCheckpointContender(const std::string& name,
                                  const Contents& contents,
                                  const ParameterClient::Options& options) {
  Contender contender = {.name = name,
                         .server = std::make_unique<ServerProcess>(
                             "parasol_checkpoints", contents)};
  contender.sessions =
      ConnectParasol(contender.server->port(), contents, options);
  return contender;
}

void ServeCheckpoints(const Contents& contents) {
  KeepFreedMemory();
  CheckpointWriter writer(contents);
  std::thread([&writer] {
    for (;;) writer.Write();
  }).detach();
  ServeLoaded(writer.server(), writer.metrics(), /*trust=*/nullptr);
}

void RunCheckpoint(const Settings& settings, const TakeComparison& take) {
  TakePushes("checkpoint", settings, CompareCheckpoints, take);
  take({.workload = "checkpoint, idle",
        .unit = {"GB/s", 1e-9},
        .measurements = CompareWriters(settings)});
}

}  // namespace parasol
