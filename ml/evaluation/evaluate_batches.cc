#include "ml/evaluation/evaluate_batches.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

// The functions of EvaluateBatches(), called by one thread at a time. None is
// called with the lock: they may wait for a disk.
class SharedBatches {
 public:
  using Next = absl::FunctionRef<absl::StatusOr<const Batch*>()>;
  using ReadRows =
      absl::FunctionRef<absl::Status(absl::Span<const StagedBatch::Rows>)>;
  using Add =
      absl::FunctionRef<absl::Status(const Batch&, const EvaluatedBatch&)>;

  SharedBatches(bool has_one_model, Next next, ReadRows read_rows, Add add)
      : has_one_model_(has_one_model),
        next_(next),
        read_rows_(read_rows),
        add_(add) {}

  // Evaluates batches until there are no more, or somebody has failed.
  void Evaluate(Model& model) ABSL_LOCKS_EXCLUDED(mu_) {
    const absl::Status status = EvaluateAll(model);
    absl::MutexLock lock(&mu_);
    status_.Update(status);
  }

  absl::Status status() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return status_;
  }

 private:
  struct Taken {
    int64_t number = 0;
    const Batch* batch = nullptr;
  };

  absl::Status EvaluateAll(Model& model) {
    const std::unique_ptr<StagedBatch> staged = model.NewStagedBatch();
    Batch own;
    while (true) {
      ASSIGN_OR_RETURN(const std::optional<Taken> taken, Take(own));
      if (!taken.has_value()) return absl::OkStatus();
      RETURN_IF_ERROR(model.Stage(*taken->batch, *staged));
      RETURN_IF_ERROR(ReadRowsOf(*staged));
      ASSIGN_OR_RETURN(const EvaluatedBatch evaluated, model.Evaluate(*staged));
      RETURN_IF_ERROR(AddInTurn(*taken, evaluated));
    }
  }

  // The right to call a function; others wait for its end.
  class Turn {
   public:
    // Waits until `may_begin` holds, too.
    template <typename MayBegin>
    Turn(SharedBatches& batches, MayBegin may_begin) : batches_(batches) {
      absl::MutexLock lock(&batches_.mu_);
      const auto is_free = [&] {
        batches_.mu_.AssertHeld();
        return !batches_.is_called_ && may_begin();
      };
      batches_.mu_.Await(absl::Condition(&is_free));
      batches_.is_called_ = true;
    }
    explicit Turn(SharedBatches& batches)
        : Turn(batches, [] { return true; }) {}
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() {
      absl::MutexLock lock(&batches_.mu_);
      batches_.is_called_ = false;
    }

   private:
    SharedBatches& batches_;
  };

  // Returns the next batch, nullopt if there is none. It lies in `own` where
  // another model may take a further one meanwhile.
  absl::StatusOr<std::optional<Taken>> Take(Batch& own)
      ABSL_LOCKS_EXCLUDED(mu_) {
    const Turn turn(*this);
    if (!status().ok()) return std::nullopt;
    ASSIGN_OR_RETURN(const Batch* const batch, next_());
    if (batch == nullptr) return std::nullopt;
    if (has_one_model_) return Taken{taken_++, batch};
    own = *batch;
    return Taken{taken_++, &own};
  }

  absl::Status ReadRowsOf(const StagedBatch& staged) ABSL_LOCKS_EXCLUDED(mu_) {
    const Turn turn(*this);
    return read_rows_(staged.rows());
  }

  // Waits until all batches before this one have been added. Adds nothing if
  // one of them has failed.
  absl::Status AddInTurn(const Taken& taken, const EvaluatedBatch& evaluated)
      ABSL_LOCKS_EXCLUDED(mu_) {
    const Turn turn(*this, [&] {
      mu_.AssertHeld();
      return added_ == taken.number || !status_.ok();
    });
    RETURN_IF_ERROR(status());
    // After an error no later batch has its turn.
    RETURN_IF_ERROR(add_(*taken.batch, evaluated));
    absl::MutexLock lock(&mu_);
    ++added_;
    return absl::OkStatus();
  }

  const bool has_one_model_;
  const Next next_;
  const ReadRows read_rows_;
  const Add add_;
  mutable absl::Mutex mu_;
  absl::Status status_ ABSL_GUARDED_BY(mu_);
  bool is_called_ ABSL_GUARDED_BY(mu_) = false;
  int64_t taken_ = 0;  // used in turns
  int64_t added_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace

absl::Status EvaluateBatches(
    absl::Span<Model* const> models,
    absl::FunctionRef<absl::StatusOr<const Batch*>()> next,
    absl::FunctionRef<absl::Status(absl::Span<const StagedBatch::Rows>)>
        read_rows,
    absl::FunctionRef<absl::Status(const Batch&, const EvaluatedBatch&)> add) {
  SharedBatches batches(models.size() == 1, next, read_rows, add);
  {
    std::vector<std::jthread> others;  // joined at the end of the block
    for (Model* const model : models.subspan(1)) {
      others.emplace_back([&batches, model] { batches.Evaluate(*model); });
    }
    batches.Evaluate(*models.front());
  }
  return batches.status();
}

}  // namespace parasol
