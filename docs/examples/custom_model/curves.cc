// A hook: prints how a training goes, a line for each epoch, checkpoint and
// evaluation. `parasol::TrainingHook` says which process is told of what.

#include <cstdint>
#include <cstdio>
#include <memory>

#include "cluster/hook/training_hook.h"

namespace parasol {
namespace {

class Curves : public TrainingHook {
 public:
  void OnStep(const Step& step) override {
    ++batches_;
    if (step.loss > worst_) worst_ = step.loss;
  }
  void OnEpoch(const Epoch& epoch) override {
    std::printf("epoch %d: loss %.4f, in a batch up to %.4f; %d batches here\n",
                static_cast<int>(epoch.number), epoch.loss.value_or(0), worst_,
                static_cast<int>(batches_));
    std::fflush(stdout);
    worst_ = 0;
  }
  void OnCheckpoint(const Checkpoint& checkpoint) override {
    std::printf("checkpoint of step %d: %s\n",
                static_cast<int>(checkpoint.step), checkpoint.path.c_str());
    std::fflush(stdout);
  }
  void OnEvaluation(const Evaluation& evaluation) override {
    std::printf("evaluation of step %d%s: loss %.4f",
                static_cast<int>(evaluation.step),
                evaluation.is_last ? ", the last one" : "", evaluation.loss);
    for (const auto& [name, value] : evaluation.metrics) {
      std::printf(", %s %.4f", name.c_str(), value);
    }
    std::printf("\n");
    std::fflush(stdout);
  }

 private:
  int64_t batches_ = 0;
  double worst_ = 0;
};

const TrainingHookRegistration registration("curves",
                                            [](const TrainingHook::Task&) {
                                              return std::make_unique<Curves>();
                                            });

}  // namespace
}  // namespace parasol
