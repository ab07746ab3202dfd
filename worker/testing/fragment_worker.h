#ifndef PARASOL_WORKER_TESTING_FRAGMENT_WORKER_H_
#define PARASOL_WORKER_TESTING_FRAGMENT_WORKER_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/status_matchers.h"
#include "gtest/gtest.h"
#include "worker/sync_training_loop.h"
#include "worker/testing/fake_staged_batch.h"
#include "worker/testing/synchronous_worker.h"

// A worker of synchronous training whose model gives its gradients in two
// passes. Its chief, input, model and parameters are fakes.
namespace parasol {

// Events of a worker, in their order.
class Events {
 public:
  void Add(std::string event) {
    absl::MutexLock lock(&mu_);
    events_.push_back(std::move(event));
  }
  void Await(const std::string& event) {
    absl::MutexLock lock(&mu_);
    const auto has_it = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return std::count(events_.begin(), events_.end(), event) > 0;
    };
    mu_.Await(absl::Condition(&has_it));
  }
  std::vector<std::string> Take() {
    absl::MutexLock lock(&mu_);
    return std::exchange(events_, {});
  }

 private:
  absl::Mutex mu_;
  std::vector<std::string> events_ ABSL_GUARDED_BY(mu_);
};

inline std::string NameOf(size_t variable) { return variable == 0 ? "x" : "y"; }

// Variables x and y of one element. The first pass gives a gradient of y, the
// second one a gradient of x: the batch's label.
class FragmentModel : public Model {
 public:
  explicit FragmentModel(Events& events) : events_(events), variables_(2) {
    for (VariableSpec& variable : variables_) variable.shape = {1};
  }
  const std::vector<VariableSpec>& variables() const override {
    return variables_;
  }
  const std::vector<TableUse>& tables() const override { return tables_; }
  std::vector<std::vector<size_t>> fragments() const override {
    return {{1}, {0}};
  }
  absl::Span<float> HostValue(size_t index) override {
    return absl::MakeSpan(&coming_[index], 1);
  }
  absl::Status Upload(size_t index) override {
    events_.Add(absl::StrCat("new ", NameOf(index), coming_[index]));
    return absl::OkStatus();
  }
  std::unique_ptr<StagedBatch> NewStagedBatch() override {
    return std::make_unique<FakeStagedBatch>();
  }
  absl::Status Stage(const Batch& batch, StagedBatch& staged) override {
    static_cast<FakeStagedBatch&>(staged).batch = &batch;
    return absl::OkStatus();
  }
  absl::StatusOr<BatchResult> Gradients(StagedBatch& staged, uint64_t,
                                        GradientSinks sinks) override {
    const Batch& batch = *static_cast<FakeStagedBatch&>(staged).batch;
    const size_t variable = 1 - staged.pass;
    gradient_[variable] = batch.labels[0];
    sinks.variable(variable, absl::MakeConstSpan(&gradient_[variable], 1));
    events_.Add(
        absl::StrCat("computed ", NameOf(variable), " of b", batch.labels[0]));
    return BatchResult{.examples = 1, .loss_sum = .5};
  }
  absl::StatusOr<EvaluatedBatch> Evaluate(StagedBatch&) override {
    return absl::UnimplementedError("not part of the loop");
  }

 private:
  Events& events_;
  std::vector<VariableSpec> variables_;
  std::vector<TableUse> tables_;
  float coming_[2] = {}, gradient_[2] = {};
};

// Shards of x and y: each has steps of its own.
class Shards {
 public:
  explicit Shards(size_t replicas) : replicas_(replicas) {}

  // Returns false if the gradient comes too late.
  bool Push(size_t variable, int64_t step, int replica, float gradient) {
    absl::MutexLock lock(&mu_);
    Place& place = places_[variable];
    if (step < place.updates) return false;
    EXPECT_EQ(step, place.updates) << NameOf(variable);
    place.held.emplace(replica, gradient);
    if (place.held.size() < replicas_) return true;
    for (const auto& [of, held] : place.held) place.value += held;
    place.held.clear();
    ++place.updates;
    return true;
  }
  bool Await(size_t variable, int64_t updates, absl::Duration limit) {
    absl::MutexLock lock(&mu_);
    const auto is_there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return places_[variable].updates >= updates;
    };
    return mu_.AwaitWithTimeout(absl::Condition(&is_there), limit);
  }
  std::pair<float, int64_t> Read(size_t variable) {
    absl::MutexLock lock(&mu_);
    return {places_[variable].value, places_[variable].updates};
  }
  // Has a shard of one variable go back to the step before, without gradients.
  void Lose(size_t variable, float value) {
    absl::MutexLock lock(&mu_);
    places_[variable].value = value;
    --places_[variable].updates;
    places_[variable].held.clear();
  }

 private:
  struct Place {
    float value = 0;
    int64_t updates = 0;
    std::map<int, float> held = {};
  };
  const size_t replicas_;
  absl::Mutex mu_;
  Place places_[2] ABSL_GUARDED_BY(mu_);
};

class ShardParameters : public TrainingParameters {
 public:
  ShardParameters(Shards& shards, Events& events)
      : shards_(shards), events_(events) {}

  std::unique_ptr<Pending> Pull(PullRequest request) override {
    std::string what = "pull";
    for (const Target& target : request.targets) {
      absl::StrAppend(&what, " ", NameOf(target.variable));
    }
    absl::StrAppend(&what, " at ", request.min_updates);
    if (what == hook_at) hook();
    events_.Add(std::move(what));
    auto reply = std::make_unique<Reply>(*this, request.min_updates);
    for (const Target& target : request.targets) {
      reply->variables.push_back(target.variable);
    }
    reply->targets = std::move(request.targets);
    return reply;
  }
  std::unique_ptr<Pending> Push(PushRequest request) override {
    auto reply = std::make_unique<Reply>(*this, request.sync->step + 1);
    for (const Gradient& gradient : request.gradients) {
      const float value = gradient.values[0];
      events_.Add(absl::StrCat("push ", NameOf(gradient.variable), value,
                               " of r", request.sync->replica));
      reply->variables.push_back(gradient.variable);
      reply->stale |= !shards_.Push(gradient.variable, request.sync->step,
                                    request.sync->replica, value);
    }
    return reply;
  }
  Awaited Unanswered() const override { return {.moves = moved}; }
  void Stop() override { stopped = true; }

  // Called before the pull of this name.
  std::string hook_at;
  std::function<void()> hook;
  std::atomic<int64_t> moved = 0;
  std::atomic<bool> stopped = false;

 private:
  class Reply : public Pending {
   public:
    Reply(ShardParameters& parameters, int64_t updates)
        : parameters_(parameters), updates_(updates) {}
    absl::Status Wait() override {
      if (parameters_.stopped) return absl::CancelledError("stopped");
      EXPECT_TRUE(WaitFor(absl::InfiniteDuration()));
      for (const size_t variable : variables) {
        const auto [value, updates] = parameters_.shards_.Read(variable);
        least_ = std::min(least_, updates);
        most_ = std::max(most_, updates);
        for (const Target& target : targets) {
          if (target.variable == variable) target.values[0] = value;
        }
      }
      return absl::OkStatus();
    }
    bool WaitFor(absl::Duration limit) override {
      is_there_ =
          is_there_ ||
          std::all_of(variables.begin(), variables.end(), [&](size_t variable) {
            return parameters_.shards_.Await(variable, updates_, limit);
          });
      return is_there_;
    }
    Outcome outcome() const override { return {least_, most_, stale}; }

    std::vector<size_t> variables;
    std::vector<Target> targets;
    bool stale = false;

   private:
    ShardParameters& parameters_;
    const int64_t updates_;
    bool is_there_ = false;
    int64_t least_ = INT64_MAX, most_ = 0;
  };

  Shards& shards_;
  Events& events_;
};

struct FragmentWorker {
  FragmentWorker(Shards& shards, std::vector<int> share, int64_t end,
                 int total_replicas, bool pulls_ahead = false)
      : parameters(shards, events),
        replicas(std::move(share), end),
        input(set, {.seed = 1, .total_replicas = total_replicas}),
        loop({.pulls_ahead = pulls_ahead}, model, input, parameters, replicas,
             Clock::Real(), metrics, reporter) {}

  Events events;
  FakeInput set{{}};
  FragmentModel model{events};
  ShardParameters parameters;
  FakeReplicas replicas;
  ReplicaInput input;
  MetricsRegistry registry;
  WorkerMetrics metrics{registry};
  TrainingReporter reporter{Clock::Real()};
  SyncTrainingLoop loop;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_TESTING_FRAGMENT_WORKER_H_
