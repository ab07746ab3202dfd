#ifndef PARASOL_WORKER_STORE_TESTING_LONE_WORKER_H_
#define PARASOL_WORKER_STORE_TESTING_LONE_WORKER_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "gtest/gtest.h"
#include "ml/device/device.h"
#include "ml/input/feature/batch.h"
#include "ml/model/graph.h"
#include "ml/model/model.h"
#include "proto/job.pb.h"
#include "worker/store/clipped_model.h"
#include "worker/store/device_variables.h"
#include "worker/store/host_variables.h"
#include "worker/store/parameter_store.h"
#include "worker/store/table/device_tables.h"
#include "worker/store/updating_model.h"

namespace parasol {

// The parts of a lone worker's step, with the variables and the tables in host
// memory or on the device.
class LoneWorker {
 public:
  enum class Place { kHost, kVariablesOnDevice, kDevice };

  // Arrays as bits.
  using Bits = std::vector<uint32_t>;

  // `batches`: number of staged batches, which take turns. With one, each step
  // is staged while the last one's may be read; with two nothing waits for
  // that.
  LoneWorker(const job::Job& job, Device& device, Place place, int batches = 1,
             const DeviceTables::Options& options = {})
      : job_(job),
        graph_(*ResolveGraph(job.model())),
        model_(*Model::Create(graph_, device)) {
    if (place == Place::kHost) {
      auto on_host = *HostVariables::Create(graph_.variables, job);
      host_variables_ = on_host.get();
      variables_ = std::move(on_host);
    } else {
      auto on_device = *DeviceVariables::Create(
          graph_.variables, job, *model_->device_training(), device);
      if (place == Place::kDevice) {
        tables_ = *DeviceTables::Create(job, device, options);
      }
      model_ = UpdateOnDevice(std::move(model_), *on_device, tables_.get());
      variables_ = std::move(on_device);
    }
    model_ = ClipGradients(std::move(model_), job);
    while (staged_.size() < static_cast<size_t>(batches)) {
      staged_.push_back(model_->NewStagedBatch());
    }
    parameters_ = *ParameterStore::Create(*variables_, job, tables_.get());
  }

  // Makes a step, with its number for a seed. Calls `before_pass` when the
  // batch is staged and its rows are there.
  BatchResult Step(
      int step, const Batch& batch,
      absl::FunctionRef<void()> before_pass = [] {}) {
    StagedBatch& staged = *staged_[step % staged_.size()];
    EXPECT_OK(model_->Stage(batch, staged));
    Pull(staged);
    before_pass();
    const auto result = model_->Gradients(
        staged, /*seed=*/step,
        {.variable =
             [this](size_t variable, absl::Span<const float> gradient) {
               host_variables_->Apply(variable, /*first=*/0, gradient);
               host_variables_->CountUpdate(variable);
             },
         .rows =
             [this](size_t table, absl::Span<const uint64_t> ids,
                    absl::Span<const float> gradients) {
               TrainingParameters::PushRequest push;
               push.rows.push_back({table, ids, gradients});
               EXPECT_OK(parameters_->Push(std::move(push))->Wait());
             }});
    EXPECT_OK(result);
    return *result;
  }

  double Evaluate(
      const Batch& batch, absl::FunctionRef<void()> before_pass = [] {}) {
    StagedBatch& staged = *staged_.front();
    EXPECT_OK(model_->Stage(batch, staged));
    Pull(staged);
    before_pass();
    const auto evaluated = model_->Evaluate(staged);
    EXPECT_OK(evaluated);
    return evaluated->result.loss_sum;
  }

  // Returns all arrays of all variables.
  std::vector<Bits> Variables() {
    std::vector<Bits> all;
    for (size_t i = 0; i < variables_->specs().size(); ++i) {
      for (int array = 0; array < variables_->num_arrays(i); ++array) {
        all.push_back(BitsOf(*variables_->Read(i, array)));
      }
    }
    return all;
  }

  // Returns the number of updates of a table, and its rows by id, with values
  // and slots.
  std::pair<int64_t, std::map<uint64_t, Bits>> Table(size_t table) {
    int64_t updates = -1;
    std::map<uint64_t, Bits> rows;
    const auto add = [&](const RowBatch& batch) {
      updates = batch.updates;
      for (size_t i = 0; i < batch.ids.size(); ++i) {
        const size_t floats = batch.rows.size() / batch.ids.size();
        const bool is_new =
            rows.emplace(batch.ids[i],
                         BitsOf(batch.rows.subspan(i * floats, floats)))
                .second;
        EXPECT_TRUE(is_new) << "row " << batch.ids[i] << " comes twice";
      }
      return absl::OkStatus();
    };
    EXPECT_OK(VisitRows(table, add));
    return {updates, std::move(rows)};
  }

  // Returns the values of the rows that a sample has.
  Bits Sample(size_t table) { return BitsOf(*parameters_->SampleRows(table)); }

  // Takes the variables and tables of `other`, as from a checkpoint.
  void Restore(LoneWorker& other) {
    for (size_t i = 0; i < variables_->specs().size(); ++i) {
      for (int array = 0; array < variables_->num_arrays(i); ++array) {
        ASSERT_OK(
            variables_->Write(i, array, *other.variables_->Read(i, array)));
      }
      variables_->SetUpdates(i, other.variables_->updates()[i]);
    }
    for (size_t i = 0; i < parameters_->num_tables(); ++i) {
      ASSERT_OK(other.VisitRows(i, [&](const RowBatch& batch) {
        return IsOnDevice(i) ? tables_->Insert(i, batch)
                             : parameters_->table(i).Insert(batch);
      }));
    }
  }

  // Gives up variables and tables, as before a restore is tried again.
  void StartAgain() {
    parameters_ = *ParameterStore::Create(*variables_, job_, tables_.get());
  }

  // Returns the values of rows, as a pull gives them.
  std::vector<float> PullRows(size_t table, const std::vector<uint64_t>& ids) {
    std::vector<float> values(ids.size() * parameters_->table(table).width());
    TrainingParameters::PullRequest pull;
    pull.rows.push_back({table, ids, absl::MakeSpan(values)});
    EXPECT_OK(parameters_->Pull(std::move(pull))->Wait());
    return values;
  }

  bool IsOnDevice(size_t table) const {
    return tables_ != nullptr && tables_->Has(table);
  }
  bool IsCached(size_t table) const {
    return tables_ != nullptr && tables_->IsCached(table);
  }
  DeviceTables& tables() { return *tables_; }
  StoredVariables& variables() { return *variables_; }
  ParameterStore& parameters() { return *parameters_; }
  Model& model() { return *model_; }

 private:
  static Bits BitsOf(absl::Span<const float> values) {
    Bits bits;
    for (const float value : values) {
      bits.push_back(std::bit_cast<uint32_t>(value));
    }
    return bits;
  }

  absl::Status VisitRows(size_t table, RowVisit visit) {
    if (IsOnDevice(table)) return tables_->Visit(table, visit);
    return parameters_->table(table).TakeSnapshot().Drain(visit);
  }

  void Pull(const StagedBatch& staged) {
    TrainingParameters::PullRequest pull;
    for (size_t i = 0; i < model_->variables().size(); ++i) {
      pull.targets.push_back({i, model_->HostValue(i)});
    }
    for (const StagedBatch::Rows& rows : staged.rows()) {
      EXPECT_FALSE(IsOnDevice(rows.table));
      pull.rows.push_back({rows.table, rows.ids, rows.values});
    }
    EXPECT_OK(parameters_->Pull(std::move(pull))->Wait());
    for (size_t i = 0; i < model_->variables().size(); ++i) {
      EXPECT_OK(model_->Upload(i));
    }
  }

  const job::Job job_;
  const Graph graph_;
  std::unique_ptr<DeviceTables> tables_;  // null: they are on the host
  std::unique_ptr<StoredVariables> variables_;
  HostVariables* host_variables_ = nullptr;  // null: they are on the device
  std::unique_ptr<Model> model_;
  std::vector<std::unique_ptr<StagedBatch>> staged_;
  std::unique_ptr<ParameterStore> parameters_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_STORE_TESTING_LONE_WORKER_H_
