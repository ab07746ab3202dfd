#ifndef PARASOL_TESTS_SIMULATION_ASYNC_WORKER_H_
#define PARASOL_TESTS_SIMULATION_ASYNC_WORKER_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "tests/simulation/claims.h"
#include "tests/simulation/worker_process.h"

namespace parasol::simulation {

// A worker in asynchronous training or bounded staleness: the model of
// TrainingLoop. A step pulls from all shards, computes, and pushes to all
// shards; the next one may have begun.
class AsyncWorker : public WorkerProcess {
 public:
  AsyncWorker(World& world, int index, int number);

 protected:
  void BeginLoop() override { claims_.Begin(); }
  void StopLoop() override { claims_.Stop(); }
  int64_t completed_steps() const override { return claims_.completed(); }
  bool Drain() override;
  void Describe(wire::RegisterRequest& request) override {
    claims_.Describe(request);
  }

 private:
  struct Step {
    StepId id = 0;
    // Number of operations of its present stage that are not answered.
    int unanswered = 0;
    bool has_values = false;
    bool is_computed = false;
    bool is_pushed = false;
  };

  void OnNews();
  void StartSteps();
  void Pull(Step& step);
  void ComputeNext();
  void Push(Step& step);
  void CompleteSteps();

  Claims claims_;
  bool is_computing_ = false;
  bool is_ending_ = false;
  std::vector<uint64_t> next_sequence_;
  // The steps in flight, in their order; references stay valid.
  std::deque<Step> steps_;
};

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_ASYNC_WORKER_H_
