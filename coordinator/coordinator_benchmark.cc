// What claims cost the chief when a thousand workers go in lockstep (bounded
// staleness with a bound of 0): its decisions alone, without rpcs.
//
//   bazel run -c opt //chief:coordinator_benchmark
//
// Each step every worker claims once and waits, but for the last one; that
// wakes the others, and each is answered. `core_at_10_steps` is the share of
// one core that 10 such steps a second take. 100 %: 1.0.
#include <cstdint>
#include <string>
#include <vector>

#include "base/log.h"
#include "benchmark/benchmark.h"
#include "coordinator/coordinator.h"

namespace parasol {
namespace {

class Lockstep {
 public:
  explicit Lockstep(int workers) : chief_(OptionsOf(workers), now_) {
    wire::RegisterRequest ps;
    ps.mutable_task()->set_role("ps");
    ps.mutable_task()->set_incarnation(1);
    CHECK(chief_.Register(ps, now_).ok());
    for (int i = 0; i < workers; ++i) {
      wire::ClaimStepsRequest& claim = claims_.emplace_back();
      claim.mutable_task()->set_role("worker");
      claim.mutable_task()->set_index(i);
      claim.mutable_task()->set_incarnation(100 + i);
      claim.set_want(1);
      claim.set_train_examples(int64_t{1} << 30);
      claim.add_shard_examples(int64_t{1} << 30);
      claim.mutable_wait()->set_seconds(1);
      wire::RegisterRequest request;
      *request.mutable_task() = claim.task();
      CHECK(chief_.Register(request, now_).ok());
    }
    CarryOut();
    CarryOut();
    CHECK_EQ(chief_.Status(now_).phase(), wire::TRAINING);
    for (wire::ClaimStepsRequest& claim : claims_) CHECK(Claim(claim));
  }

  void Step() {
    std::vector<wire::ClaimStepsRequest*> waiting;
    for (wire::ClaimStepsRequest& claim : claims_) {
      // The granted step is done.
      claim.set_completed_steps(claim.granted_steps());
      claim.set_started_steps(claim.granted_steps());
      const int64_t news = chief_.NewsAt(now_).claims;
      if (!Claim(claim)) waiting.push_back(&claim);
      if (chief_.NewsAt(now_).claims == news) continue;
      std::vector<wire::ClaimStepsRequest*> still;
      for (wire::ClaimStepsRequest* other : waiting) {
        if (!Claim(*other)) still.push_back(other);
      }
      waiting.swap(still);
    }
    CHECK(waiting.empty());
  }

 private:
  Coordinator::Options OptionsOf(int workers) {
    Coordinator::Options options;
    options.job.mutable_end()->set_steps(int64_t{1} << 40);
    options.job.mutable_checkpoint()->set_every_seconds(600);
    options.job.mutable_parameter_server()
        ->mutable_bounded_staleness()
        ->set_bound(0);
    options.run_id = "run";
    options.shards = {{0, "p0:1", {}}};
    options.tasks[{"ps", 0}] = "p0:1";
    for (int i = 0; i < workers; ++i) options.tasks[{"worker", i}] = "w:1";
    return options;
  }
  void CarryOut() {
    const auto order = chief_.NextOrder(now_);
    CHECK(order.has_value());
    if (const auto* load = std::get_if<LoadOrder>(&*order)) {
      chief_.Done(LoadResult{load->targets[0], absl::OkStatus()}, now_);
    } else {
      chief_.Done(
          CheckpointResult{std::get<CheckpointOrder>(*order), absl::OkStatus()},
          now_);
    }
  }
  // Returns true if the worker may take a step.
  bool Claim(wire::ClaimStepsRequest& claim) {
    const auto response = chief_.ClaimSteps(claim, now_);
    CHECK(response.ok()) << response.status();
    claim.set_assignment_version(response->assignment_version());
    if (response->granted_steps() <= claim.granted_steps()) return false;
    claim.set_granted_steps(response->granted_steps());
    return true;
  }

  const absl::Time now_ = absl::FromUnixSeconds(1000000);
  Coordinator chief_;
  std::vector<wire::ClaimStepsRequest> claims_;
};

void BM_Lockstep(benchmark::State& state) {
  Lockstep lockstep(static_cast<int>(state.range(0)));
  for (auto _ : state) lockstep.Step();
  state.counters["core_at_10_steps"] = benchmark::Counter(
      state.iterations() * 0.1,
      benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

BENCHMARK(BM_Lockstep)
    ->Arg(100)
    ->Arg(400)
    ->Arg(1000)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace parasol

BENCHMARK_MAIN();
