#ifndef PARASOL_ML_CUSTOM_CODE_REGISTRY_H_
#define PARASOL_ML_CUSTOM_CODE_REGISTRY_H_

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/log.h"

namespace parasol {

// Returns what is said of a type that this program does not have: `part` is
// "loss", `roles` the programs that compute it, `registered` the types that it
// has.
std::string LacksCode(absl::string_view part, absl::string_view type,
                      absl::string_view roles,
                      const std::vector<std::string>& registered);

// Returns true if `name` is 1 to kMaxCodeNameBytes letters, digits and '_', so
// that it can be a part of names in files, metrics and policies.
bool IsCodeName(absl::string_view name);
inline constexpr size_t kMaxCodeNameBytes = 100;

// The functions that make one kind of part which users write (layers, losses,
// metrics, optimizers, data sources), by the type under which each is
// registered. Filled before main(), and only read afterwards.
template <typename Factory>
class CodeRegistry {
 public:
  // `part` names the kind in errors: "loss"; `roles` says which programs
  // compute it: "worker and evaluator".
  CodeRegistry(absl::string_view part, absl::string_view roles)
      : part_(part), roles_(roles) {}

  // Adds a type. Two of one name are a bug of the program.
  void Add(absl::string_view type, Factory factory) {
    const bool is_first =
        factories_.emplace(std::string(type), std::move(factory)).second;
    CHECK(is_first) << "two are registered as custom " << part_ << " \"" << type
                    << "\"";
  }

  // Returns the type's function; null if this program has none.
  const Factory* Find(absl::string_view type) const {
    const auto found = factories_.find(type);
    return found == factories_.end() ? nullptr : &found->second;
  }

  // Returns an error's text for a type that Find() does not know.
  std::string Lacks(absl::string_view type) const {
    std::vector<std::string> registered;
    for (const auto& [name, factory] : factories_) registered.push_back(name);
    return LacksCode(part_, type, roles_, registered);
  }

 private:
  const std::string part_;
  const std::string roles_;
  std::map<std::string, Factory, std::less<>> factories_;
};

}  // namespace parasol

#endif  // PARASOL_ML_CUSTOM_CODE_REGISTRY_H_
