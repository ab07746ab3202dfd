#ifndef PARASOL_LOOP_PEERS_TESTING_SMALL_PROGRAM_H_
#define PARASOL_LOOP_PEERS_TESTING_SMALL_PROGRAM_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "cluster/job/defaults.h"
#include "loop/peers/peers.h"
#include "worker/store/parameter_store.h"

namespace parasol {

// A program with a training loop of its own: two variables, one of which has an
// update in every second iteration, and an optimizer with slots. What it
// computes depends on iteration and replica alone, so it has the same bits
// however its replicas are dealt out to processes.
class SmallProgram {
 public:
  struct Options {
    int first_replica = 0;
    int replicas = 1;  // of this process
    int all_replicas = 1;
    int64_t iterations = 10;
    // Called with each iteration before its sum, and before it is committed.
    std::function<absl::Status(int64_t step)> before_sum = Nothing;
    std::function<absl::Status(int64_t step)> before_commit = Nothing;
    int elements = 3;
    std::vector<std::string> parts = {};
  };

  static absl::Status Nothing(int64_t) { return absl::OkStatus(); }

  explicit SmallProgram(Options options) : options_(std::move(options)) {
    job::Job job;
    job.set_name("small");
    job.mutable_optimizer()->mutable_sgd()->set_momentum(0.9);
    job.mutable_optimizer()->mutable_sgd()->set_learning_rate(0.1);
    FillDefaults(job);
    job::Initializer ones;
    ones.mutable_constant()->set_value(1);
    store_ = *ParameterStore::Create(
        {{.name = "often", .shape = {options_.elements}, .initializer = ones},
         {.name = "seldom", .shape = {2}, .initializer = ones}},
        job);
  }

  // Runs the program, as its main() does.
  absl::Status Run(Peers& peers) { return peers.End(Train(peers)); }

  ParameterStore& store() { return *store_; }
  // The iteration with which it began, and the values at its end.
  int64_t began_at() const { return began_at_; }
  std::vector<float> Values() {
    std::vector<float> all;
    StoredVariables& variables = store_->variables();
    for (size_t i = 0; i < variables.specs().size(); ++i) {
      for (int array = 0; array < variables.num_arrays(i); ++array) {
        const auto values = variables.Read(i, array);
        all.insert(all.end(), values->begin(), values->end());
      }
      all.push_back(static_cast<float>(variables.updates()[i]));
    }
    return all;
  }

 private:
  absl::Status Train(Peers& peers) {
    peers.EndAfter(options_.iterations);
    ASSIGN_OR_RETURN(began_at_, peers.Begin(*store_, options_.parts));
    for (int64_t step = began_at_; step < options_.iterations; ++step) {
      RETURN_IF_ERROR(Update(peers, step, 0));
      if (step % 2 == 1) {
        RETURN_IF_ERROR(Update(peers, step, 1));
      }
      RETURN_IF_ERROR(options_.before_commit(step));
      ASSIGN_OR_RETURN(const bool goes_on,
                       peers.Commit({.step = step + 1,
                                     .examples = 2 * options_.replicas,
                                     .loss_sum = 3.0 * options_.replicas},
                                    *store_));
      if (!goes_on) break;
    }
    return absl::OkStatus();
  }

  absl::Status Update(Peers& peers, int64_t step, size_t variable) {
    ASSIGN_OR_RETURN(const absl::Span<const float> values,
                     store_->variables().Read(variable, 0));
    std::vector<std::vector<float>> gradients;
    for (int i = 0; i < options_.replicas; ++i) {
      std::vector<float>& gradient = gradients.emplace_back();
      const int replica = options_.first_replica + i;
      for (size_t j = 0; j < values.size(); ++j) {
        gradient.push_back(
            values[j] * 0.3f +
            static_cast<float>((step * 7 + replica * 3 + j) % 5) / 7.0f);
      }
    }
    RETURN_IF_ERROR(options_.before_sum(step));
    std::vector<Contribution> contributions;
    for (int i = 0; i < options_.replicas; ++i) {
      contributions.push_back({options_.first_replica + i, gradients[i]});
    }
    std::vector<float> sum(values.size());
    RETURN_IF_ERROR(peers.AllReduce("the gradients", std::move(contributions),
                                    absl::MakeSpan(sum)));
    for (float& element : sum) {
      element /= static_cast<float>(options_.all_replicas);
    }
    store_->ApplyBlock(variable, 0, sum);
    store_->CountUpdate(variable);
    return absl::OkStatus();
  }

  const Options options_;
  std::unique_ptr<ParameterStore> store_;
  int64_t began_at_ = -1;
};

}  // namespace parasol

#endif  // PARASOL_LOOP_PEERS_TESTING_SMALL_PROGRAM_H_
