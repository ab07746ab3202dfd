#ifndef PARASOL_WORKER_GROUP_TESTING_STEP_TABLES_H_
#define PARASOL_WORKER_GROUP_TESTING_STEP_TABLES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "parameters/training_parameters.h"

namespace parasol::group_testing {

// The one table of a ps in memory, by the rules of synchronous training
// (ps/sparse): a step's update is made when all replicas have pushed to it, the
// rows before it are kept until a gradient of the next step comes, and pulls
// give the oldest rows that will do. Thread-safe.
class StepTables {
 public:
  using Rows = std::map<uint64_t, std::vector<float>>;

  StepTables(int replicas, size_t width) : replicas_(replicas), width_(width) {}

  int64_t step() const {
    absl::MutexLock lock(&mu_);
    return step_;
  }
  Rows rows() const {
    absl::MutexLock lock(&mu_);
    return rows_;
  }
  // Number of pulls that were given rows of a later step than they asked for.
  int late_pulls() const {
    absl::MutexLock lock(&mu_);
    return late_pulls_;
  }
  // Sets what is called with the step of each gradient that counts. Before the
  // first push.
  void OnGradient(std::function<void(int64_t step)> on_gradient) {
    on_gradient_ = std::move(on_gradient);
  }
  // Returns a worker's client of the table.
  std::unique_ptr<TrainingParameters> MakeClient() {
    return std::make_unique<Client>(*this);
  }

 private:
  struct Gradient {
    std::vector<uint64_t> ids;
    std::vector<float> values;
  };

  class Client : public TrainingParameters {
   public:
    explicit Client(StepTables& tables) : tables_(tables) {}

    std::unique_ptr<Pending> Pull(PullRequest request) override {
      const int64_t step = request.min_updates;
      return std::make_unique<Answer>(
          *this, step, [this, step, rows = std::move(request.rows)] {
            for (const RowTarget& target : rows) tables_.Read(step, target);
          });
    }
    std::unique_ptr<Pending> Push(PushRequest request) override {
      bool is_stale = false;
      for (const RowGradient& rows : request.rows) {
        is_stale |= !tables_.Add(*request.sync, rows);
      }
      return std::make_unique<Answer>(
          *this, request.sync->step + 1, [] {}, is_stale);
    }
    Awaited Unanswered() const override { return {.peers = {"ps/0"}}; }
    void Stop() override {
      absl::MutexLock lock(&tables_.mu_);
      is_stopped_ = true;
    }

   private:
    class Answer : public Pending {
     public:
      Answer(Client& client, int64_t step, std::function<void()> take,
             bool is_stale = false)
          : client_(client),
            step_(step),
            take_(std::move(take)),
            is_stale_(is_stale) {}
      absl::Status Wait() override {
        WaitFor(absl::InfiniteDuration());
        {
          absl::MutexLock lock(&client_.tables_.mu_);
          if (client_.is_stopped_) return absl::CancelledError("stopped");
        }
        take_();
        return absl::OkStatus();
      }
      bool WaitFor(absl::Duration limit) override {
        absl::MutexLock lock(&client_.tables_.mu_);
        const auto is_there =
            [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(client_.tables_.mu_) {
              return client_.is_stopped_ || client_.tables_.step_ >= step_;
            };
        return client_.tables_.mu_.AwaitWithTimeout(absl::Condition(&is_there),
                                                    limit);
      }
      Outcome outcome() const override {
        return {.min_updates = step_, .max_updates = step_, .stale = is_stale_};
      }

     private:
      Client& client_;
      const int64_t step_;
      const std::function<void()> take_;
      const bool is_stale_;
    };

    StepTables& tables_;
    bool is_stopped_ = false;  // guarded by the tables' mutex
  };

  void Read(int64_t step, const TrainingParameters::RowTarget& target) {
    absl::MutexLock lock(&mu_);
    const bool is_before = step < step_;
    if (is_before && !previous_) ++late_pulls_;
    const Rows& rows = is_before && previous_ ? *previous_ : rows_;
    for (size_t i = 0; i < target.ids.size(); ++i) {
      const auto row = rows.find(target.ids[i]);
      for (size_t j = 0; j < width_; ++j) {
        target.values[i * width_ + j] =
            row == rows.end() ? 0.25f : row->second[j];
      }
    }
  }

  // Returns false if the gradient is stale. The step before this one has had
  // the gradients of all replicas.
  bool Add(const TrainingParameters::SyncStep& push,
           const TrainingParameters::RowGradient& rows) {
    absl::MutexLock lock(&mu_);
    if (push.step != step_) return push.step == step_ - 1;
    if (on_gradient_ != nullptr) on_gradient_(push.step);
    previous_.reset();
    gradients_.try_emplace(push.replica,
                           Gradient{{rows.ids.begin(), rows.ids.end()},
                                    {rows.values.begin(), rows.values.end()}});
    if (static_cast<int>(gradients_.size()) < replicas_) return true;
    previous_ = rows_;
    for (const auto& [replica, gradient] : gradients_) {
      for (size_t i = 0; i < gradient.ids.size(); ++i) {
        std::vector<float>& row =
            rows_.try_emplace(gradient.ids[i], width_, 0.25f).first->second;
        for (size_t j = 0; j < width_; ++j) {
          row[j] -= 0.5f * gradient.values[i * width_ + j];
        }
      }
    }
    gradients_.clear();
    ++step_;
    return true;
  }

  const int replicas_;
  const size_t width_;
  std::function<void(int64_t step)> on_gradient_;
  mutable absl::Mutex mu_;
  int64_t step_ ABSL_GUARDED_BY(mu_) = 0;
  int late_pulls_ ABSL_GUARDED_BY(mu_) = 0;
  Rows rows_ ABSL_GUARDED_BY(mu_);
  std::optional<Rows> previous_ ABSL_GUARDED_BY(mu_);
  std::map<int, Gradient> gradients_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol::group_testing

#endif  // PARASOL_WORKER_GROUP_TESTING_STEP_TABLES_H_
