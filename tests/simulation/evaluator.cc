#include "tests/simulation/evaluator.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cluster/checkpoint/evaluation_decisions.h"
#include "tests/simulation/random.h"

namespace parasol::simulation {
namespace {

constexpr absl::Duration kInterval = absl::Milliseconds(250);

// Two checkpoints of one step, of different chiefs, differ, unless the later
// chief has gone on from the other's and made no step.
double DrawLoss(uint64_t seed, const durable::CheckpointManifest& manifest) {
  const int64_t step = manifest.global_step();
  int64_t chief_epoch = manifest.chief_epoch();
  for (const durable::OwnedSteps& owner : manifest.earlier_owner()) {
    if (owner.last_step() != step) continue;
    chief_epoch = owner.chief_epoch();
    break;
  }
  Random random((seed * 1000003 + static_cast<uint64_t>(step)) * 1000003 +
                static_cast<uint64_t>(chief_epoch));
  return static_cast<double>(random.Below(100)) / 100;
}

}  // namespace

void Evaluator::Start() {
  if (world_.schedule().shape.evaluation > absl::ZeroDuration()) Look();
}

void Evaluator::Look() {
  const std::vector<int64_t> newest_first = world_.disk().Steps();
  for (auto step = newest_first.rbegin(); step != newest_first.rend(); ++step) {
    const Checkpoint& checkpoint = *world_.disk().Find(*step);
    if (checkpoint.damaged || !IsToBeEvaluated(checkpoint.manifest) ||
        !evaluated_.insert(checkpoint.files[0]).second) {
      continue;
    }
    return world_.loop().At(
        world_.loop().now() + world_.schedule().shape.evaluation,
        [this, step = *step, manifest = checkpoint.manifest] {
          Finish(step, manifest);
        });
  }
  world_.loop().At(world_.loop().now() + kInterval, [this] { Look(); });
}

void Evaluator::Finish(int64_t step,
                       const durable::CheckpointManifest& manifest) {
  const Checkpoint* const checkpoint = world_.disk().Find(step);
  // A chief that goes back behind a damaged checkpoint forgets evaluations. A
  // checkpoint that was written again may have one already.
  if (checkpoint == nullptr && !steps_.contains(step) &&
      !world_.schedule().Has(Fault::Kind::kDamage) &&
      !world_.schedule().ChangesJob()) {
    world_.auditor().Violate(
        "evaluated checkpoint removed",
        absl::StrCat("that of step ", step, ", before its result was there"));
  }
  // The evaluator had read the checkpoint before it was damaged, or before a
  // chief that has gone back behind it wrote it again.
  if (checkpoint != nullptr) {
    Evaluation evaluation;
    evaluation.global_step = step;
    evaluation.run_id = manifest.run_id();
    evaluation.chief_epoch = manifest.chief_epoch();
    evaluation.loss = DrawLoss(world_.schedule().seed, manifest);
    evaluation.took = world_.loop().now() - absl::UnixEpoch();
    world_.Trace(nullptr, "checkpoint ", step, " has a loss of ",
                 evaluation.loss);
    world_.auditor().Evaluated(evaluation);
    world_.disk().Append(std::move(evaluation));
    steps_.insert(step);
  }
  Look();
}

}  // namespace parasol::simulation
