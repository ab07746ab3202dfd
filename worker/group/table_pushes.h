#ifndef PARASOL_WORKER_GROUP_TABLE_PUSHES_H_
#define PARASOL_WORKER_GROUP_TABLE_PUSHES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "parameters/training_parameters.h"

namespace parasol {

// The way of rows' gradients to the ps where workers have the other variables
// (PushedRows). Replicas add theirs while they compute; the thread that
// makes the steps sends them when they may leave, and awaits the answers.
//
// A ps answers pushes in step when it has made the step's update of the tables,
// which takes the gradients of all replicas. It keeps the values before that
// until it has a gradient of the next step. So gradients leave only once all
// workers of the group have made the step before: a replica that changes hands
// can be computed again from the right rows. A ps applies gradients that are
// not in step one by one, and they leave at once.
//
// Thread-safe. The client is stopped before this object is destroyed.
class TablePushes {
 public:
  // `client` and `clock` must outlive this object. `tables`: number of the
  // model's tables.
  TablePushes(TrainingParameters& client, size_t tables, bool in_step,
              Clock& clock);
  ~TablePushes();

  bool in_step() const { return in_step_; }

  // Adds a copy of gradients of rows; the first ones of a step forget the
  // gradients of earlier steps. Gradients that were sent already, to a ps that
  // was replaced since, are sent again if the pushes are in step. Ignores what
  // belongs to a step that is over.
  void Add(const TrainingParameters::SyncStep& step,
           const std::vector<TrainingParameters::RowGradient>& rows)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Blocks until `replicas` have added the gradients of all tables, and sends
  // those that were not sent. Polls `may_go_on`, and returns its errors.
  absl::Status Send(int64_t step, const std::vector<int>& replicas,
                    absl::FunctionRef<absl::Status()> may_go_on)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Blocks until all that was sent is answered. Called by one thread. Returns
  // errors of `may_go_on`, after which the answers can be awaited again, and of
  // TrainingParameters::Pending::Wait().
  absl::Status AwaitAnswers(absl::FunctionRef<absl::Status()> may_go_on)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Returns true if a ps has dropped gradients of the newest step's replica:
  // its tables had made the step without them. Known once all is answered;
  // false for a step that is over.
  bool HasDropped(const TrainingParameters::SyncStep& step) const
      ABSL_LOCKS_EXCLUDED(mu_);

  // Ends the client's waits with Cancelled.
  void Stop() { client_.Stop(); }

 private:
  // The gradients of one table.
  struct Rows {
    std::vector<uint64_t> ids;
    std::vector<float> values;
    std::vector<uint32_t> counts;
  };
  struct Replica {
    // Null: not added yet. The client reads them until it has the answer.
    std::vector<std::shared_ptr<const Rows>> tables;
    bool is_sent = false;
    bool is_dropped = false;
  };
  struct Sent {
    TrainingParameters::SyncStep step;
    std::vector<std::shared_ptr<const Rows>> rows;
    std::unique_ptr<TrainingParameters::Pending> answer;
  };

  bool HasAll(int64_t step, const std::vector<int>& replicas) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Takes note of an answer.
  void NoteAnswer(const Sent& sent) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Push(int replica, const std::vector<size_t>& tables)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  TrainingParameters& client_;
  const size_t num_tables_;
  const bool in_step_;
  Clock& clock_;

  mutable absl::Mutex mu_;
  int64_t step_ ABSL_GUARDED_BY(mu_) = -1;
  std::map<int, Replica> replicas_ ABSL_GUARDED_BY(mu_);
  // Pushes in the order in which they were sent. An element stays where it is.
  std::deque<std::unique_ptr<Sent>> sent_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_WORKER_GROUP_TABLE_PUSHES_H_
