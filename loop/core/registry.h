#ifndef PARASOL_LOOP_CORE_REGISTRY_H_
#define PARASOL_LOOP_CORE_REGISTRY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "loop/core/kept_value.h"
#include "loop/core/optimizer_state.h"
#include "loop/core/variable_state.h"

namespace parasol::loop {

// The name of the variable that has an update in each iteration of a worker
// whose variables ps hold: by these a chief sees that iterations were done. Its
// value means nothing.
inline constexpr absl::string_view kIterationsVariable = "program.iterations";

// What a program has declared under a strategy, in the order in which it did:
// all that an iteration changes and the next one needs. It is complete when the
// first step is run.
class Registry {
 public:
  // Adds a variable, a set of variables that an optimizer updates, and memory
  // of the program's own.
  //   AlreadyExists        the name is taken.
  //   FailedPrecondition   IsClosed().
  absl::Status Add(std::shared_ptr<VariableState> variable);
  absl::Status Add(std::shared_ptr<OptimizerState> optimizer);
  absl::Status Add(KeptValue value);

  absl::Span<const std::shared_ptr<VariableState>> variables() const {
    return variables_;
  }
  absl::Span<const std::shared_ptr<OptimizerState>> optimizers() const {
    return optimizers_;
  }
  absl::Span<const KeptValue> kept() const { return kept_; }

  // Adds a line about something else that all processes of the program must
  // have alike: a layer of a model.
  void AddPart(std::string line) { parts_.push_back(std::move(line)); }
  const std::vector<std::string>& parts() const { return parts_; }

  // Notes that a step was run.
  void Close() { is_closed_ = true; }
  bool is_closed() const { return is_closed_; }

 private:
  absl::Status Take(absl::string_view kind, const std::string& name);

  std::vector<std::shared_ptr<VariableState>> variables_;
  std::vector<std::shared_ptr<OptimizerState>> optimizers_;
  std::vector<KeptValue> kept_;
  std::vector<std::string> parts_;
  absl::flat_hash_set<std::string> names_;
  bool is_closed_ = false;
};

}  // namespace parasol::loop

#endif  // PARASOL_LOOP_CORE_REGISTRY_H_
