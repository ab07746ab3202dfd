#include "worker/store/micro_batch_model.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "ml/model/device_training.h"
#include "ml/optimizer/device/replica_mean.h"
#include "parameters/composition.h"
#include "worker/store/batch_part.h"
#include "worker/store/wrapped_model.h"

namespace parasol {
namespace {

// A batch of which each part is staged by itself.
class SplitBatch : public StagedBatch {
 public:
  struct Part {
    Batch batch;
    std::unique_ptr<StagedBatch> staged;
    // For each table, the index in its `ids` of each row of this part.
    std::vector<std::vector<size_t>> places;
  };
  // The rows of one table that the whole batch needs, each once.
  struct Table {
    std::vector<uint64_t> ids;
    std::vector<float> values;
    std::vector<uint32_t> counts;  // empty: they are not counted
  };

  absl::Span<const Rows> rows() const override {
    return parts.size() == 1 ? parts[0].staged->rows() : rows_;
  }

  // Collects the ids of all parts.
  void CollectRows(const std::vector<TableUse>& uses) {
    tables.resize(uses.size());
    rows_.clear();
    absl::flat_hash_map<uint64_t, size_t> found;
    for (size_t table = 0; table < uses.size(); ++table) {
      Table& all = tables[table];
      all.ids.clear();
      all.counts.clear();
      found.clear();
      for (Part& part : parts) {
        part.places.resize(uses.size());
        part.places[table].clear();
        const Rows& of_part = part.staged->rows()[table];
        for (const uint64_t id : of_part.ids) {
          const auto [place, is_new] = found.try_emplace(id, all.ids.size());
          if (is_new) all.ids.push_back(id);
          part.places[table].push_back(place->second);
        }
        AddCounts(of_part.counts, part.places[table], all);
      }
      all.values.resize(all.ids.size() * uses[table].width);
      rows_.push_back({.table = table,
                       .ids = all.ids,
                       .values = absl::MakeSpan(all.values),
                       .counts = all.counts});
    }
  }

  // Gives a part the rows that the caller has written.
  void GiveRowsTo(Part& part) const {
    for (size_t table = 0; table < tables.size(); ++table) {
      const std::vector<size_t>& places = part.places[table];
      if (places.empty()) continue;
      const absl::Span<float> values = part.staged->rows()[table].values;
      const size_t width = values.size() / places.size();
      for (size_t i = 0; i < places.size(); ++i) {
        std::copy_n(tables[table].values.data() + places[i] * width, width,
                    values.data() + i * width);
      }
    }
  }

  int64_t examples = 0;
  std::vector<Part> parts;
  std::vector<Table> tables;

 private:
  // Adds a part's counts, if there are any, to the table's.
  static void AddCounts(absl::Span<const uint32_t> counts,
                        const std::vector<size_t>& places, Table& all) {
    if (counts.empty()) return;
    all.counts.resize(all.ids.size());
    for (size_t i = 0; i < places.size(); ++i) {
      all.counts[places[i]] += counts[i];
    }
  }

  std::vector<Rows> rows_;
};

class MicroBatchModel : public WrappedModel, private DeviceTraining {
 public:
  MicroBatchModel(std::unique_ptr<Model> model, Device& device, int64_t limit)
      : WrappedModel(std::move(model)), device_(device), limit_(limit) {
    for (Sums& side : sums_) {
      side.variables.resize(variables().size());
      side.tables.resize(tables().size());
    }
  }

  std::unique_ptr<StagedBatch> NewStagedBatch() override {
    return std::make_unique<SplitBatch>();
  }

  absl::Status Stage(const Batch& batch, StagedBatch& staged) override {
    SplitBatch& split = static_cast<SplitBatch&>(staged);
    const int64_t parts =
        std::max<int64_t>(1, (batch.size + limit_ - 1) / limit_);
    split.examples = batch.size;
    split.parts.resize(parts);
    for (int64_t i = 0; i < parts; ++i) {
      SplitBatch::Part& part = split.parts[i];
      if (part.staged == nullptr) part.staged = model().NewStagedBatch();
      if (parts == 1) return model().Stage(batch, *part.staged);
      const int64_t first = batch.size * i / parts;
      CopyPart(batch, first, batch.size * (i + 1) / parts - first, part.batch);
      RETURN_IF_ERROR(model().Stage(part.batch, *part.staged))
          << "micro-batch " << i << " of " << parts;
    }
    split.CollectRows(tables());
    return absl::OkStatus();
  }

  absl::StatusOr<BatchResult> Gradients(StagedBatch& staged, uint64_t seed,
                                        GradientSinks sinks) override {
    SplitBatch& split = static_cast<SplitBatch&>(staged);
    if (split.parts.size() == 1) {
      return model().Gradients(*split.parts[0].staged, seed, sinks);
    }
    return RunPasses(split, seed, sinks.rows,
                     [&](const Pass& pass, StagedBatch& part,
                         uint64_t seed_of_part, RowSink rows) {
                       return RunPass(
                           pass, part, seed_of_part,
                           {.variable = sinks.variable, .rows = rows});
                     });
  }

  absl::StatusOr<EvaluatedBatch> Evaluate(StagedBatch& staged) override {
    SplitBatch& split = static_cast<SplitBatch&>(staged);
    if (split.parts.size() == 1) {
      return model().Evaluate(*split.parts[0].staged);
    }
    EvaluatedBatch whole;
    outputs_.clear();
    for (SplitBatch::Part& part : split.parts) {
      split.GiveRowsTo(part);
      ASSIGN_OR_RETURN(const EvaluatedBatch evaluated,
                       model().Evaluate(*part.staged));
      whole.result.Add(evaluated.result);
      outputs_.insert(outputs_.end(), evaluated.outputs.begin(),
                      evaluated.outputs.end());
    }
    whole.outputs = outputs_;
    return whole;
  }

  DeviceTraining* device_training() override {
    return model().device_training() == nullptr ? nullptr : this;
  }

 private:
  using RowSink =
      absl::FunctionRef<void(size_t table, absl::Span<const uint64_t> ids,
                             absl::Span<const float> gradients)>;

  // Sums over the passes of a step. The sums of rows are [ids, width] of the
  // split batch's tables.
  struct Sums {
    std::vector<std::vector<float>> variables;
    std::vector<std::vector<float>> tables;
    // For each table, the ids of the rows that have gradients: all or none.
    std::vector<std::vector<uint64_t>> ids;
  };
  struct Pass {
    bool is_whole = false;  // the batch is not cut
    bool is_first = false;
    bool is_last = false;
    float share = 1;  // of the batch's examples
  };
  using Run = absl::FunctionRef<absl::StatusOr<BatchResult>(
      const Pass& pass, StagedBatch& part, uint64_t seed, RowSink rows)>;

  absl::StatusOr<std::vector<Variable>> Variables() override {
    DeviceTraining& of_pass = *model().device_training();
    ASSIGN_OR_RETURN(std::vector<Variable> variables, of_pass.Variables());
    const absl::Span<float> all = of_pass.AllGradients();
    if (on_device_.size() != all.size()) {
      ASSIGN_OR_RETURN(on_device_, device_.NewArray<float>(all.size()),
                       _ << "the sum over micro-batches");
    }
    for (Variable& variable : variables) {
      if (variable.gradient == nullptr) continue;
      variable.gradient = on_device_.data() + (variable.gradient - all.data());
    }
    return variables;
  }
  absl::Span<float> AllGradients() override { return on_device_.span(); }
  // A pass of one part marks the part's gradients; the sum follows them there.
  absl::StatusOr<std::vector<Piece>> WriteInPieces(
      const std::vector<VariableRange>& pieces) override {
    ASSIGN_OR_RETURN(pieces_, model().device_training()->WriteInPieces(pieces));
    std::vector<Piece> sums = pieces_;
    for (Piece& sum : sums) {
      ASSIGN_OR_RETURN(piece_events_.emplace_back(), device_.NewEvent());
      sum.written = piece_events_.back().get();
    }
    return sums;
  }
  void UseTables(DeviceRows&) override {
    LOG(FATAL) << "the rows of a batch that is cut are on the host";
  }
  absl::StatusOr<BatchResult> Train(StagedBatch& staged, uint64_t seed,
                                    DeviceTraining::Sinks sinks) override {
    SplitBatch& split = static_cast<SplitBatch&>(staged);
    const auto run = [&](const Pass& pass, StagedBatch& part,
                         uint64_t seed_of_part, RowSink rows) {
      const auto add = [&](absl::Span<const Rows> on_device) -> absl::Status {
        RETURN_IF_ERROR(pass.is_last && !pieces_.empty() ? AddPieces(pass)
                                                         : AddOnDevice(pass));
        return pass.is_last ? sinks.update(on_device) : absl::OkStatus();
      };
      return model().device_training()->Train(part, seed_of_part,
                                              {.update = add, .rows = rows});
    };
    if (split.parts.size() == 1) {
      return run({.is_whole = true, .is_last = true}, *split.parts[0].staged,
                 seed, sinks.rows);
    }
    return RunPasses(split, seed, sinks.rows, run);
  }

  // Enqueues for all variables what RunPass() does for one.
  absl::Status AddOnDevice(const Pass& pass) {
    return AddRange(pass, 0, on_device_.size(), Device::Stream::kCompute);
  }
  // Does so beside the last pass, which goes on when a piece is written.
  absl::Status AddPieces(const Pass& pass) {
    constexpr Device::Stream kBeside = Device::Stream::kCopyOut;
    for (size_t i = 0; i < pieces_.size(); ++i) {
      const Piece& piece = pieces_[i];
      RETURN_IF_ERROR(device_.Follow(*piece.written, kBeside));
      RETURN_IF_ERROR(AddRange(pass, piece.first, piece.elements, kBeside));
      RETURN_IF_ERROR(device_.Record(kBeside, *piece_events_[i]));
    }
    return absl::OkStatus();
  }
  // The gradients of a batch that is not cut are not added to zeros on the host
  // either: -0 stays.
  absl::Status AddRange(const Pass& pass, size_t first, size_t elements,
                        Device::Stream stream) {
    float* const to = on_device_.data() + first;
    const ReplicaGradients part = {
        .data = model().device_training()->AllGradients().data() + first,
        .weight = pass.share};
    const ReplicaGradients sum = {.data = pass.is_first ? nullptr : to};
    const std::array<ReplicaGradients, 2> terms = {sum, part};
    return ReplicaMean(
        device_, absl::MakeConstSpan(terms).subspan(pass.is_whole ? 1 : 0),
        /*divisor=*/1, static_cast<int64_t>(elements), to, stream);
  }

  // Calls `run` for each micro-batch, with what takes the gradients of its
  // rows: their sums go to `rows`.
  absl::StatusOr<BatchResult> RunPasses(SplitBatch& split, uint64_t seed,
                                        RowSink rows, Run run) {
    std::swap(sums_[0], sums_[1]);
    BatchResult result;
    for (size_t i = 0; i < split.parts.size(); ++i) {
      SplitBatch::Part& part = split.parts[i];
      split.GiveRowsTo(part);
      const Pass pass = {
          .is_first = i == 0,
          .is_last = i + 1 == split.parts.size(),
          .share = static_cast<float>(static_cast<double>(part.batch.size) /
                                      static_cast<double>(split.examples))};
      const auto add_rows = [&](size_t table, absl::Span<const uint64_t> ids,
                                absl::Span<const float> gradients) {
        AddRows(pass, split, part, table, ids, gradients);
        if (!pass.is_last) return;
        rows(table, sums_[0].ids[table], sums_[0].tables[table]);
      };
      ASSIGN_OR_RETURN(const BatchResult of_part,
                       run(pass, *part.staged, SeedOf(seed, i), add_rows));
      result.Add(of_part);
    }
    return result;
  }

  // Two passes must not drop the same elements of different examples. The
  // multiplier is as in PassExecutor, for another number.
  static uint64_t SeedOf(uint64_t seed, size_t part) {
    return seed + part * 0xD1B54A32D192ED03;
  }

  // A variable's sum leaves while the last pass goes on.
  absl::StatusOr<BatchResult> RunPass(const Pass& pass, StagedBatch& part,
                                      uint64_t seed,
                                      const GradientSinks& sinks) {
    const auto add_variable = [&](size_t variable,
                                  absl::Span<const float> gradient) {
      std::vector<float>& sum = sums_[0].variables[variable];
      if (pass.is_first) sum.assign(gradient.size(), 0);
      for (size_t i = 0; i < gradient.size(); ++i) {
        sum[i] += pass.share * gradient[i];
      }
      if (pass.is_last) sinks.variable(variable, sum);
    };
    return model().Gradients(part, seed,
                             {.variable = add_variable, .rows = sinks.rows});
  }

  // A table that is frozen has gradients of no rows.
  void AddRows(const Pass& pass, const SplitBatch& split,
               const SplitBatch::Part& part, size_t table,
               absl::Span<const uint64_t> ids,
               absl::Span<const float> gradients) {
    const size_t width = tables()[table].width;
    sums_[0].ids.resize(tables().size());
    std::vector<float>& sum = sums_[0].tables[table];
    if (pass.is_first) {
      sum.clear();
      sums_[0].ids[table].clear();
    }
    if (ids.empty()) return;
    const std::vector<uint64_t>& all = split.tables[table].ids;
    if (sum.empty()) {
      sum.assign(all.size() * width, 0);
      sums_[0].ids[table] = all;
    }
    const std::vector<size_t>& places = part.places[table];
    CHECK_EQ(ids.size(), places.size());
    for (size_t i = 0; i < ids.size(); ++i) {
      CHECK_EQ(ids[i], all[places[i]]);
      float* const row = sum.data() + places[i] * width;
      const float* const gradient = gradients.data() + i * width;
      for (size_t j = 0; j < width; ++j) row[j] += pass.share * gradient[j];
    }
  }

  Device& device_;
  const int64_t limit_;
  // Gradients of this step and of the last one, which live as long as the
  // model's own gradients.
  std::array<Sums, 2> sums_;
  Array<float> on_device_;  // device_training()'s sum, as its gradients lie
  // The pieces of a part's gradients, and the events of the sum's; none: the
  // sum is written as a whole.
  std::vector<Piece> pieces_;
  std::vector<std::unique_ptr<Device::Event>> piece_events_;
  std::vector<float> outputs_;  // of the last evaluation
};

}  // namespace

std::unique_ptr<Model> SplitBatches(std::unique_ptr<Model> model,
                                    Device& device, const job::Job& job) {
  if (!HasMicroBatches(job)) return model;
  return std::make_unique<MicroBatchModel>(std::move(model), device,
                                           job.train().micro_batch_size());
}

}  // namespace parasol
