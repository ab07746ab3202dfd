#ifndef PARASOL_LOOP_CORE_PROGRAM_VARIABLES_H_
#define PARASOL_LOOP_CORE_PROGRAM_VARIABLES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "loop/core/registry.h"
#include "proto/job.pb.h"
#include "worker/store/stored_variables.h"

namespace parasol::loop {

// All that a program has declared, as a worker's variables: what checkpoints
// have of it and peers give each other. The program's variables come first,
// with the slots of their optimizers; each kept value is a variable behind
// them, with one element for each byte; kIterationsVariable is the last one.
class ProgramVariables : public StoredVariables {
 public:
  // `registry` must be closed, and outlive this object. `local`: the local
  // steps, as ParseLocalSteps() returns them, whose outer optimizer the
  // variables have then, with slots that are with the ps: here they have their
  // initial values. Null: there are none.
  explicit ProgramVariables(const Registry& registry,
                            const job::LocalSteps* local = nullptr);

  // Notes, at the end of an iteration, how many updates each variable has had,
  // and the kept values: a checkpoint of the last iteration is written when the
  // program's own memory is gone.
  void NoteIteration();
  // Gives optimizers their numbers of updates, after values were read from a
  // checkpoint or taken from a peer.
  void TakeUpdates();

  absl::StatusOr<absl::Span<const float>> Read(size_t variable,
                                               int array) override;
  absl::Status Write(size_t variable, int array,
                     absl::Span<const float> elements) override;

 private:
  void NoteKept();

  // The optimizer of a variable, and its number there; null: none.
  struct Place {
    OptimizerState* optimizer = nullptr;
    size_t number = 0;
  };

  void TakeOptimizers(
      std::vector<std::shared_ptr<const parasol::Optimizer>>& rules);
  const Registry& registry_;
  std::vector<Place> places_;      // index: variable
  std::vector<std::string> kept_;  // bytes of kept values, as they were noted
  std::vector<float> read_;        // what Read() has returned last
};

// Returns the variables that a program has declared, as a job's. Those that no
// optimizer has are not trained. `has_local_steps`: their factors of the rate
// are the local steps'.
std::vector<VariableSpec> SpecsOf(const Registry& registry,
                                  bool has_local_steps = false);

// Returns the job that stands for the program in checkpoints, named `name`. Its
// optimizer is the program's first one; the model has a custom layer of type
// kProgramLayer for each optimizer, with the variables that it trains, and one
// with the others. `local`: as ProgramVariables has it; with UseLocalSteps().
job::Job JobOf(const Registry& registry, const std::string& name, uint64_t seed,
               const job::LocalSteps* local = nullptr);

}  // namespace parasol::loop

#endif  // PARASOL_LOOP_CORE_PROGRAM_VARIABLES_H_
