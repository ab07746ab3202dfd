#ifndef PARASOL_CLUSTER_HOOK_TRAINING_HOOK_H_
#define PARASOL_CLUSTER_HOOK_TRAINING_HOOK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace parasol {

// A user's own code that is told how a job's training goes, in a program that
// it is linked into: worker, evaluator. One file registers it:
//
//   class Curves : public TrainingHook {
//    public:
//     void OnEpoch(const Epoch& epoch) override { … }
//   };
//   const TrainingHookRegistration registration(
//       "curves", [](const TrainingHook::Task&) {
//         return std::make_unique<Curves>();
//       });
//
// A hook only looks on: it can't end the training. Calls of one process come
// one at a time, from several threads: one that waits holds up the others, and
// with them the training's steps.
class TrainingHook {
 public:
  // The process that a hook is in.
  struct Task {
    std::string role;  // "worker" or "evaluator"
    int index = 0;     // 0 without a cluster
  };
  // A batch whose gradients were computed.
  struct Step {
    // Number of the step, from 0 over all epochs; of the batch where each
    // worker's gradients are a step of their own.
    int64_t number = 0;
    int64_t examples = 0;
    double loss = 0;  // mean of the examples
  };
  // An end of an epoch.
  struct Epoch {
    int64_t number = 0;  // the first one is 1
    int64_t step = 0;    // number of steps that are done
    // Mean since the last call; nullopt: not known.
    std::optional<double> loss = std::nullopt;
  };
  struct Checkpoint {
    int64_t step = 0;
    std::string path;  // path of its directory
  };
  struct Evaluation {
    int64_t step = 0;
    double loss = 0;
    // Values by the names of evaluations.jsonl.
    std::vector<std::pair<std::string, double>> metrics = {};
    std::string checkpoint;  // the path of its directory
    bool is_last = false;    // true of the job's last checkpoint
  };

  virtual ~TrainingHook() = default;

  // Takes a step; called in each worker, for each batch: several times in a
  // step of several replicas.
  virtual void OnStep(const Step& /*step*/) {}
  // Take an epoch that has ended (short ones perhaps several in one call), and
  // a checkpoint that was written behind the one that the training went on
  // from; called in worker 0, or the only one.
  virtual void OnEpoch(const Epoch& /*epoch*/) {}
  virtual void OnCheckpoint(const Checkpoint& /*checkpoint*/) {}
  // Takes a checkpoint's results; called in the process that evaluates: the
  // evaluator, or the only worker.
  virtual void OnEvaluation(const Evaluation& /*evaluation*/) {}
};

using TrainingHookFactory = std::function<std::unique_ptr<TrainingHook>(
    const TrainingHook::Task& task)>;

// Has each process of this program make a hook. Two of one name are a bug of
// the program. Make it a constant of a file.
class TrainingHookRegistration {
 public:
  TrainingHookRegistration(absl::string_view name, TrainingHookFactory factory);
};

// Returns the names of the hooks that are linked into this program, in their
// order.
std::vector<std::string> TrainingHookNames();
// Makes all of them. A factory that returns null is a bug of the program.
std::vector<std::unique_ptr<TrainingHook>> MakeTrainingHooks(
    const TrainingHook::Task& task);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_HOOK_TRAINING_HOOK_H_
