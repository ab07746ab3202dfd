// The staging of batches alone, without passes: ids made distinct, their rows
// found in the tables of a CUDA device, their places listed and all of it
// copied. Wide & Deep of compute_plane, 512 examples with 26 ids in a wide and
// a deep table:
//   bazel run -c opt //tests/benchmark/compute:staging -- --device=cuda:0
// With --config=cuda_host it measures the same code on this machine's CPU,
// which copies within its memory.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/process.h"
#include "base/status_macros.h"
#include "cluster/job/defaults.h"
#include "ml/device/device.h"
#include "ml/input/feature/batch.h"
#include "ml/model/device_training.h"
#include "ml/model/graph.h"
#include "ml/model/model.h"
#include "proto/job.pb.h"
#include "tests/benchmark/compute/compute_workload.h"
#include "worker/store/device_variables.h"
#include "worker/store/parameter_store.h"
#include "worker/store/table/device_tables.h"
#include "worker/store/updating_model.h"

ABSL_FLAG(std::string, device, "cuda:0", "cuda:N.");
ABSL_FLAG(int, ids, 20'000, "Number of ids of a column.");
ABSL_FLAG(int, batch_size, 512, "Examples of a batch.");
ABSL_FLAG(int, batches, 200, "Different batches, which have all rows.");
ABSL_FLAG(int, rounds, 5, "How often each batch is staged and measured.");
ABSL_FLAG(std::vector<std::string>, skews,
          std::vector<std::string>({"0", "0.9"}),
          "Exponents of Zipf's law: id number n of a column is drawn in "
          "proportion to n^-skew; 0: all alike.");
ABSL_FLAG(std::vector<std::string>, helpers, std::vector<std::string>({"0"}),
          "Numbers of threads that help the one that stages.");

namespace parasol {
namespace {

constexpr int kColumns = 26;  // in the model

// Neighbours in rank are no neighbours in a table.
std::vector<Batch> DrawBatches(const Batch& like, double skew) {
  const int ids = absl::GetFlag(FLAGS_ids);
  std::vector<double> sums;
  double sum = 0;
  for (int n = 1; n <= ids; ++n) sums.push_back(sum += std::pow(n, -skew));
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(0, sum);
  std::vector<Batch> batches(absl::GetFlag(FLAGS_batches), like);
  for (Batch& batch : batches) {
    batch.size = absl::GetFlag(FLAGS_batch_size);
    batch.dense[0].values.assign(batch.size * batch.dense[0].shape[0], .5f);
    batch.labels.assign(batch.size, 1);
    IdFeature feature = {.offsets = {0}};
    for (int64_t i = 0; i < batch.size; ++i) {
      for (int column = 0; column < kColumns; ++column) {
        const uint64_t rank =
            std::lower_bound(sums.begin(), sums.end() - 1, uniform(random)) -
            sums.begin();
        feature.ids.push_back(uint64_t{1} * column * ids + rank * 7919 % ids);
      }
      feature.offsets.push_back(static_cast<int32_t>(feature.ids.size()));
    }
    batch.ids.assign(2, feature);
  }
  return batches;
}

absl::Status Measure(const ComputeWorkload& workload, double skew,
                     size_t helpers) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Device> device,
                   Device::Open(absl::GetFlag(FLAGS_device)));
  job::Job job;
  job.set_name("staging");
  *job.mutable_model() = workload.model;
  job.mutable_optimizer()->mutable_adagrad();
  FillDefaults(job);
  ASSIGN_OR_RETURN(Graph graph, ResolveGraph(job.model()));
  ASSIGN_OR_RETURN(std::unique_ptr<Model> plain, Model::Create(graph, *device));
  if (plain->device_training() == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("--device=", absl::GetFlag(FLAGS_device),
                     " is no CUDA device: give cuda:N"));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<DeviceVariables> variables,
                   DeviceVariables::Create(graph.variables, job,
                                           *plain->device_training(), *device));
  DeviceTables::Options options;
  options.helpers = helpers;
  ASSIGN_OR_RETURN(const std::unique_ptr<DeviceTables> tables,
                   DeviceTables::Create(job, *device, options));
  const std::unique_ptr<Model> model =
      UpdateOnDevice(std::move(plain), *variables, tables.get());
  ASSIGN_OR_RETURN(const std::unique_ptr<ParameterStore> parameters,
                   ParameterStore::Create(*variables, job, tables.get()));
  const std::unique_ptr<StagedBatch> staged[] = {model->NewStagedBatch(),
                                                 model->NewStagedBatch()};
  const std::vector<Batch> batches = DrawBatches(workload.batch, skew);
  std::vector<double> micros;
  // The first round makes the rows.
  for (int round = 0; round <= absl::GetFlag(FLAGS_rounds); ++round) {
    for (size_t i = 0; i < batches.size(); ++i) {
      const absl::Time start = Clock::Real().Now();
      RETURN_IF_ERROR(model->Stage(batches[i], *staged[i % 2]));
      const absl::Duration elapsed = Clock::Real().Now() - start;
      RETURN_IF_ERROR(device->Synchronize());
      if (round > 0) micros.push_back(absl::ToDoubleMicroseconds(elapsed));
    }
  }
  std::sort(micros.begin(), micros.end());
  absl::PrintF("%5.2f %8d %10.1f %10.1f %10.1f\n", skew, helpers,
               micros[micros.size() / 2], micros[micros.size() / 10],
               micros[micros.size() * 9 / 10]);
  std::fflush(stdout);
  return absl::OkStatus();
}

absl::Status Run() {
  const std::vector<ComputeWorkload> all = AllComputeWorkloads();
  const auto wide_deep =
      std::find_if(all.begin(), all.end(), [](const ComputeWorkload& workload) {
        return workload.name == "wide_deep";
      });
  absl::PrintF("Microseconds to stage a batch of %d examples\n",
               absl::GetFlag(FLAGS_batch_size));
  absl::PrintF("%5s %8s %10s %10s %10s\n", "skew", "helpers", "median", "tenth",
               "9 tenths");
  for (const std::string& skew : absl::GetFlag(FLAGS_skews)) {
    for (const std::string& helpers : absl::GetFlag(FLAGS_helpers)) {
      double exponent = 0;
      size_t threads = 0;
      if (!absl::SimpleAtod(skew, &exponent) || exponent < 0) {
        return absl::InvalidArgumentError(absl::StrCat(
            "--skews=", skew, " is no exponent: give 0 or a larger number"));
      }
      if (!absl::SimpleAtoi(helpers, &threads)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "--helpers=", helpers, " is no number of threads: give 0 or more"));
      }
      RETURN_IF_ERROR(Measure(*wide_deep, exponent, threads))
          << "skew " << skew;
    }
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace parasol

int main(int argc, char** argv) {
  parasol::ParseCommandLine(
      argc, argv,
      "Measures how long the thread that stages takes for a batch of ids.");
  return parasol::ExitWith(parasol::Run());
}
