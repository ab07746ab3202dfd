// A training step's computation in one process, beside PyTorch:
//   bazel run -c opt //tests/benchmark/compute:compute_plane --
//   --python=/path/to/python
#include <omp.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "base/status_macros.h"
#include "ml/device/device.h"
#include "oneapi/dnnl/dnnl.h"
#include "tests/benchmark/compute/compute_workload.h"
#include "tests/benchmark/compute/python_peer.h"
#include "tests/benchmark/compute/training_step.h"

ABSL_FLAG(std::vector<std::string>, model, {},
          "Some of mlp, lenet, resnet56, resnet50, wide_deep; by default "
          "all but resnet50.");
ABSL_FLAG(std::string, device, "cpu", "Where both compute: cpu, cuda:N.");
ABSL_FLAG(std::string, peer_device, "",
          "Where PyTorch computes; empty: on --device.");
ABSL_FLAG(std::string, peer_variants, "",
          "Which of PyTorch's forms are tried: some of eager, compiled, graph; "
          "empty: all. Compiling takes a minute for ResNet-50.");
ABSL_FLAG(int, threads, 1, "Of the CPU, of both.");
ABSL_FLAG(std::string, precision, "float32",
          "On a CUDA device: float32, tf32, bfloat16, which is autocast in "
          "PyTorch.");
ABSL_FLAG(bool, cuda_graphs, false,
          "Parasol's on a CUDA device: steps are recorded and replayed, where "
          "the model allows.");
ABSL_FLAG(std::string, updates, "host",
          "Where values are updated: host (as for a ps) or device.");
ABSL_FLAG(std::string, python, "",
          "A Python interpreter that has PyTorch; none: Parasol alone.");
ABSL_FLAG(std::string, script, "tests/benchmark/compute/compute_plane_peer.py",
          "What it runs.");
ABSL_FLAG(int, rounds, 5, "Parasol and PyTorch in turn; the median counts.");
ABSL_FLAG(absl::Duration, round_time, absl::Milliseconds(500),
          "How long each of them takes in a round.");
ABSL_FLAG(bool, cpu_time, false,
          "Measure processor time: for a machine that does other things too.");

namespace parasol {
namespace {

// Must reach this share of PyTorch's examples per second.
constexpr double kTarget = .9;
constexpr int kMinSteps = 3;

// Only differences mean something.
absl::Duration Now() {
  if (!absl::GetFlag(FLAGS_cpu_time)) {
    return Clock::Real().Now() - absl::UnixEpoch();
  }
  timespec used = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return absl::DurationFromTimespec(used);
}

absl::Duration Median(std::vector<absl::Duration> durations) {
  const auto middle = durations.begin() + durations.size() / 2;
  std::nth_element(durations.begin(), middle, durations.end());
  return *middle;
}

absl::Duration MedianOf(absl::FunctionRef<void()> step, absl::Duration time) {
  std::vector<absl::Duration> steps;
  absl::Duration now = Now();
  const absl::Duration end = now + time;
  while (now < end || steps.size() < kMinSteps) {
    step();
    const absl::Duration done = Now();
    steps.push_back(done - now);
    now = done;
  }
  return Median(std::move(steps));
}

// What a step's products take with oneDNN's plain sgemm.
absl::Duration Products(const ComputeWorkload& workload, absl::Duration time) {
  omp_set_num_threads(absl::GetFlag(FLAGS_threads));
  absl::Duration sum;
  for (const auto& [m, k, n, times] : workload.products) {
    const std::vector<float> a(m * k, .5f);
    const std::vector<float> b(k * n, .5f);
    std::vector<float> c(m * n);
    const auto multiply = [&, m = m, k = k, n = n] {
      CHECK_EQ(dnnl_sgemm('N', 'N', m, n, k, 1, a.data(), k, b.data(), n, 0,
                          c.data(), n),
               dnnl_success);
    };
    multiply();
    sum += times * MedianOf(multiply, time / workload.products.size());
  }
  return sum;
}

struct Row {
  absl::Duration ours;
  std::optional<absl::Duration> peers = std::nullopt;
  std::optional<absl::Duration> products = std::nullopt;  // on a CPU
};

absl::StatusOr<Row> Measure(const ComputeWorkload& workload, Device& device,
                            TrainingStep::Updates updates, PythonPeer* peer) {
  const absl::Duration time = absl::GetFlag(FLAGS_round_time);
  ASSIGN_OR_RETURN(
      const std::unique_ptr<TrainingStep> step,
      TrainingStep::Create(workload.model, workload.batch, device, updates));
  RETURN_IF_ERROR(step->Run().status());
  const auto run = [&step] {
    const absl::StatusOr<double> loss = step->Run();
    CHECK(loss.ok()) << loss.status();
  };
  std::vector<absl::Duration> ours, peers, products;
  for (int round = 0; round < absl::GetFlag(FLAGS_rounds); ++round) {
    ours.push_back(MedianOf(run, time));
    if (peer != nullptr) {
      ASSIGN_OR_RETURN(const absl::Duration peers_step,
                       peer->MedianStep(workload.name, time));
      peers.push_back(peers_step);
    }
    if (absl::GetFlag(FLAGS_device) == "cpu" && !workload.products.empty()) {
      products.push_back(Products(workload, time));
    }
  }
  Row row = {.ours = Median(std::move(ours))};
  if (!peers.empty()) row.peers = Median(std::move(peers));
  if (!products.empty()) row.products = Median(std::move(products));
  return row;
}

void Print(const ComputeWorkload& workload, const Row& row) {
  const auto ms = absl::ToDoubleMilliseconds;
  absl::PrintF("%-10s %6d %9.3f %11.0f", workload.name, workload.batch.size,
               ms(row.ours),
               workload.batch.size / absl::ToDoubleSeconds(row.ours));
  if (row.peers.has_value()) {
    const double ratio = absl::FDivDuration(*row.peers, row.ours);
    absl::PrintF(" %9.3f %6.2f %-8s", ms(*row.peers), ratio,
                 ratio >= kTarget ? "met" : "NOT MET");
  } else {
    absl::PrintF(" %9s %6s %-8s", "", "", "");
  }
  if (row.products.has_value()) absl::PrintF(" %9.3f", ms(*row.products));
  absl::PrintF("\n");
  std::fflush(stdout);
}

absl::StatusOr<Precision> PrecisionFromFlag() {
  const std::string name = absl::GetFlag(FLAGS_precision);
  if (name == "float32") return Precision::kFloat32;
  if (name == "tf32") return Precision::kTf32;
  if (name == "bfloat16") return Precision::kBfloat16;
  return absl::InvalidArgumentError(absl::StrCat(
      "--precision=", name, " is none of float32, tf32, bfloat16"));
}

absl::StatusOr<TrainingStep::Updates> UpdatesFromFlag() {
  const std::string where = absl::GetFlag(FLAGS_updates);
  if (where == "host") return TrainingStep::Updates::kOnHost;
  if (where == "device") return TrainingStep::Updates::kOnDevice;
  return absl::InvalidArgumentError(
      absl::StrCat("--updates=", where, " is neither host nor device"));
}

absl::StatusOr<std::unique_ptr<PythonPeer>> StartPeer() {
  const std::string python = absl::GetFlag(FLAGS_python);
  if (python.empty()) return nullptr;
  const std::string peers = absl::GetFlag(FLAGS_peer_device);
  const std::string device =
      peers.empty() ? absl::GetFlag(FLAGS_device) : peers;
  return PythonPeer::Start({.python = python,
                            .script = absl::GetFlag(FLAGS_script),
                            .threads = absl::GetFlag(FLAGS_threads),
                            .device = device,
                            .precision = absl::GetFlag(FLAGS_precision),
                            .variants = absl::GetFlag(FLAGS_peer_variants),
                            .cpu_time = absl::GetFlag(FLAGS_cpu_time)});
}

absl::Status Run() {
  const std::vector<std::string> chosen = absl::GetFlag(FLAGS_model);
  ASSIGN_OR_RETURN(const Precision precision, PrecisionFromFlag());
  ASSIGN_OR_RETURN(const TrainingStep::Updates updates, UpdatesFromFlag());
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Device> device,
      Device::Open(absl::GetFlag(FLAGS_device),
                   {.threads = absl::GetFlag(FLAGS_threads),
                    .precision = precision,
                    .cuda_graphs = absl::GetFlag(FLAGS_cuda_graphs)}));
  ASSIGN_OR_RETURN(const std::unique_ptr<PythonPeer> peer, StartPeer());
  absl::PrintF("on %s, beside %s\n", device->name(),
               peer == nullptr ? "nothing" : "PyTorch " + peer->version());
  absl::PrintF("%-10s %6s %9s %11s %9s %6s %-8s %9s\n", "model", "batch", "ms",
               "examples/s", "PyTorch", "ratio", "", "sgemm ms");
  for (const ComputeWorkload& workload : AllComputeWorkloads()) {
    if (chosen.empty()
            ? workload.only_if_chosen
            : std::count(chosen.begin(), chosen.end(), workload.name) == 0) {
      continue;
    }
    ASSIGN_OR_RETURN(const Row row,
                     Measure(workload, *device, updates, peer.get()));
    Print(workload, row);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace parasol

int main(int argc, char** argv) {
  parasol::ParseCommandLine(
      argc, argv,
      "Measures training steps of models: forward and backward pass, "
      "gradients to host memory and their application; beside PyTorch, and "
      "beside the products alone.");
  return parasol::ExitWith(parasol::Run());
}
