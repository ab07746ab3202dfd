// Steps of a worker without a cluster whose sparse table does not fit in the
// memory that a CUDA device may give it, beside a table that fits and one that
// is in host memory:
//   bazel run -c opt //tests/benchmark/compute:hot_rows -- --device=cuda:0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "base/row_hash.h"
#include "base/status_macros.h"
#include "cluster/job/defaults.h"
#include "google/protobuf/text_format.h"
#include "ml/device/device.h"
#include "ml/input/feature/batch.h"
#include "ml/model/device_training.h"
#include "ml/model/graph.h"
#include "ml/model/model.h"
#include "ml/optimizer/optimizer.h"
#include "proto/job.pb.h"
#include "worker/store/device_variables.h"
#include "worker/store/parameter_store.h"
#include "worker/store/table/device_tables.h"
#include "worker/store/updating_model.h"

ABSL_FLAG(std::string, device, "cuda:0", "cuda:N.");
ABSL_FLAG(int, ids, 10'000'000, "Number of ids that may be drawn.");
ABSL_FLAG(double, skew, 1.05,
          "Exponent of Zipf's law: id number n is drawn in proportion to "
          "n^-skew.");
ABSL_FLAG(int, columns, 26, "Ids of an example.");
ABSL_FLAG(int, width, 32, "Values of a row.");
ABSL_FLAG(int, batch_size, 2048, "Examples of a batch.");
ABSL_FLAG(int, warm_up, 300, "Steps before those that are measured.");
ABSL_FLAG(int, steps, 200, "Steps that are measured.");
ABSL_FLAG(std::string, optimizer, "lazy_adam {}", "As in a job.");
ABSL_FLAG(std::vector<std::string>, shares,
          std::vector<std::string>({"1", "0.5", "0.25", "0.1", "0.05", "0"}),
          "Shares of the table's bytes that the device may have; 0: the table "
          "is in host memory.");
ABSL_FLAG(bool, choose, false,
          "Whether a cached table of which too few rows are on the device goes "
          "to the host, as in a training.");
ABSL_FLAG(bool, cuda_graphs, true, "Whether steps are recorded and replayed.");

namespace parasol {
namespace {

absl::StatusOr<job::Job> MakeJob() {
  job::Job job;
  std::string columns;
  for (int i = 0; i < absl::GetFlag(FLAGS_columns); ++i) {
    absl::StrAppend(&columns, "column { name: 'c", i,
                    "' identity { num_ids: 1 } } ");
  }
  const std::string text = absl::StrCat(
      "name: 'hot_rows' seed: 1 model { input { name: 'ids' ids { ", columns,
      "} } sparse_table { name: 'rows' width: ", absl::GetFlag(FLAGS_width),
      " } layer { input: 'ids' embedding { table: 'rows' } } "
      "layer { flatten {} } layer { dense { units: 256 activation: RELU } } "
      "layer { dense { units: 1 } } loss { binary_crossentropy {} } } "
      "optimizer { ",
      absl::GetFlag(FLAGS_optimizer), " }");
  if (!google::protobuf::TextFormat::ParseFromString(text, &job)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--optimizer=", absl::GetFlag(FLAGS_optimizer)));
  }
  FillDefaults(job);
  return job;
}

// Draws ids by Zipf's law.
class ZipfIds {
 public:
  ZipfIds(int ids, double skew) {
    double sum = 0;
    for (int n = 1; n <= ids; ++n) sums_.push_back(sum += std::pow(n, -skew));
  }

  // Neighbours in rank are no neighbours in anything else.
  uint64_t Draw() {
    const double at = uniform_(random_) * sums_.back();
    return RowHash(std::lower_bound(sums_.begin(), sums_.end(), at) -
                   sums_.begin());
  }

 private:
  std::vector<double> sums_;
  std::mt19937_64 random_{1};
  std::uniform_real_distribution<double> uniform_{0, 1};
};

std::vector<Batch> DrawBatches() {
  ZipfIds ids(absl::GetFlag(FLAGS_ids), absl::GetFlag(FLAGS_skew));
  const int64_t columns = absl::GetFlag(FLAGS_columns);
  std::vector<Batch> batches(absl::GetFlag(FLAGS_warm_up) +
                             absl::GetFlag(FLAGS_steps));
  for (Batch& batch : batches) {
    batch.size = absl::GetFlag(FLAGS_batch_size);
    IdFeature& feature = batch.ids.emplace_back();
    for (int64_t i = 0; i <= batch.size; ++i) {
      feature.offsets.push_back(static_cast<int32_t>(i * columns));
    }
    for (int64_t i = 0; i < batch.size * columns; ++i) {
      feature.ids.push_back(ids.Draw());
    }
    for (int64_t i = 0; i < batch.size; ++i) batch.labels.push_back(i % 2);
  }
  return batches;
}

size_t CountDistinct(const std::vector<Batch>& batches) {
  absl::flat_hash_set<uint64_t> ids;
  for (const Batch& batch : batches) {
    ids.insert(batch.ids[0].ids.begin(), batch.ids[0].ids.end());
  }
  return ids.size();
}

// The parts of a worker that make a step.
class Steps {
 public:
  static absl::StatusOr<std::unique_ptr<Steps>> Create(const job::Job& job,
                                                       Device& device,
                                                       bool has_tables) {
    std::unique_ptr<Steps> steps(new Steps());
    ASSIGN_OR_RETURN(Graph graph, ResolveGraph(job.model()));
    ASSIGN_OR_RETURN(std::unique_ptr<Model> model,
                     Model::Create(graph, device));
    if (model->device_training() == nullptr) {
      return absl::InvalidArgumentError("--device is no CUDA device");
    }
    ASSIGN_OR_RETURN(steps->variables_, DeviceVariables::Create(
                                            graph.variables, job,
                                            *model->device_training(), device));
    if (has_tables) {
      DeviceTables::Options options;
      if (!absl::GetFlag(FLAGS_choose)) options.worth.least_share = 0;
      ASSIGN_OR_RETURN(steps->tables_,
                       DeviceTables::Create(job, device, options));
    }
    steps->model_ = UpdateOnDevice(std::move(model), *steps->variables_,
                                   steps->tables_.get());
    for (auto& staged : steps->staged_) {
      staged = steps->model_->NewStagedBatch();
    }
    ASSIGN_OR_RETURN(
        steps->parameters_,
        ParameterStore::Create(*steps->variables_, job, steps->tables_.get()));
    return steps;
  }

  absl::Status Run(const Batch& batch) {
    StagedBatch& staged = *staged_[step_ % 2];
    RETURN_IF_ERROR(model_->Stage(batch, staged));
    TrainingParameters::PullRequest pull;
    for (const StagedBatch::Rows& rows : staged.rows()) {
      pull.rows.push_back({rows.table, rows.ids, rows.values});
    }
    RETURN_IF_ERROR(parameters_->Pull(std::move(pull))->Wait());
    TrainingParameters::PushRequest push;
    RETURN_IF_ERROR(
        model_
            ->Gradients(staged, /*seed=*/step_++,
                        {.variable = [](size_t, absl::Span<const float>) {},
                         .rows =
                             [&](size_t table, absl::Span<const uint64_t> ids,
                                 absl::Span<const float> gradients) {
                               push.rows.push_back({table, ids, gradients});
                             }})
            .status());
    return parameters_->Push(std::move(push))->Wait();
  }

  absl::Status Await() { return variables_->Await(); }
  DeviceTables::CacheUse TakeCacheUse() {
    return tables_ == nullptr ? DeviceTables::CacheUse()
                              : tables_->TakeCacheUse();
  }

 private:
  Steps() = default;

  std::unique_ptr<DeviceVariables> variables_;
  std::unique_ptr<DeviceTables> tables_;  // null: the table is on the host
  std::unique_ptr<Model> model_;
  std::unique_ptr<StagedBatch> staged_[2];
  std::unique_ptr<ParameterStore> parameters_;
  uint64_t step_ = 0;
};

absl::Status Measure(const job::Job& job, const std::vector<Batch>& batches,
                     size_t row_bytes, bool has_tables,
                     absl::string_view name) {
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Device> device,
      Device::Open(absl::GetFlag(FLAGS_device),
                   {.cuda_graphs = absl::GetFlag(FLAGS_cuda_graphs)}));
  ASSIGN_OR_RETURN(const std::unique_ptr<Steps> steps,
                   Steps::Create(job, *device, has_tables));
  const size_t first = absl::GetFlag(FLAGS_warm_up);
  for (size_t i = 0; i < first; ++i) RETURN_IF_ERROR(steps->Run(batches[i]));
  RETURN_IF_ERROR(steps->Await());
  steps->TakeCacheUse();
  const absl::Time start = Clock::Real().Now();
  for (size_t i = first; i < batches.size(); ++i) {
    RETURN_IF_ERROR(steps->Run(batches[i]));
  }
  RETURN_IF_ERROR(steps->Await());
  const double count = static_cast<double>(batches.size() - first);
  const absl::Duration elapsed = (Clock::Real().Now() - start) / count;
  const DeviceTables::CacheUse use = steps->TakeCacheUse();
  const double misses = static_cast<double>(use.misses);
  absl::PrintF(
      "%-12s %9.3f %11.0f", name, absl::ToDoubleMilliseconds(elapsed),
      absl::GetFlag(FLAGS_batch_size) / absl::ToDoubleSeconds(elapsed));
  if (use.rows > 0) {
    absl::PrintF(" %8.2f %8.0f %8.2f",
                 100 - 100 * misses / static_cast<double>(use.rows),
                 misses / count,
                 misses / count * static_cast<double>(row_bytes) / 1e6);
  }
  absl::PrintF("\n");
  std::fflush(stdout);
  return absl::OkStatus();
}

absl::Status Run() {
  ASSIGN_OR_RETURN(job::Job job, MakeJob());
  ASSIGN_OR_RETURN(const auto optimizer, MakeOptimizer(job.optimizer()));
  const size_t row_bytes = absl::GetFlag(FLAGS_width) *
                           (1 + optimizer->slot_names().size()) * sizeof(float);
  const std::vector<Batch> batches = DrawBatches();
  const size_t rows = CountDistinct(batches);
  absl::PrintF("%d rows of %d bytes, %.1f MB; batches of %d ids\n", rows,
               row_bytes, static_cast<double>(rows * row_bytes) / 1e6,
               batches[0].ids[0].ids.size());
  absl::PrintF("%-12s %9s %11s %8s %8s %8s\n", "on device", "ms/step",
               "examples/s", "hits %", "misses", "MB each way");
  for (const std::string& text : absl::GetFlag(FLAGS_shares)) {
    double share = 0;
    if (!absl::SimpleAtod(text, &share) || share < 0) {
      return absl::InvalidArgumentError(absl::StrCat("--shares=", text));
    }
    job.mutable_worker()->clear_max_device_table_bytes();
    if (share > 0 && share < 1) {
      job.mutable_worker()->set_max_device_table_bytes(
          static_cast<int64_t>(share * static_cast<double>(rows * row_bytes)));
    }
    RETURN_IF_ERROR(Measure(job, batches, row_bytes, /*has_tables=*/share > 0,
                            share > 0 ? text : "0 (host)"))
        << "share " << text;
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace parasol

int main(int argc, char** argv) {
  parasol::ParseCommandLine(
      argc, argv,
      "Measures training steps with a sparse table of which a CUDA device may "
      "have a share, the rows used last.");
  return parasol::ExitWith(parasol::Run());
}
