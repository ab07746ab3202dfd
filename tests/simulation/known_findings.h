#ifndef PARASOL_TESTS_SIMULATION_KNOWN_FINDINGS_H_
#define PARASOL_TESTS_SIMULATION_KNOWN_FINDINGS_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/simulation/auditor.h"
#include "tests/simulation/schedule.h"

namespace parasol::simulation {

// The violations that are known and whose mends have not landed: the lines of
// known_findings.txt.
class KnownFindings {
 public:
  // Reads the list, relative to the source tree's root.
  //   NotFound         there is no such file.
  //   InvalidArgument  a line does not have three fields; the message names it.
  static absl::StatusOr<KnownFindings> Read(const std::string& path);

  // Returns the item of the issue that a violation comes from; empty if it is a
  // new one.
  std::string ItemOf(const Violation& violation,
                     const Schedule& schedule) const;

 private:
  struct Finding {
    std::string violation;
    std::set<std::string> faults;
    std::string item;
  };

  std::vector<Finding> findings_;
};

inline constexpr char kKnownFindings[] = "tests/simulation/known_findings.txt";

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_KNOWN_FINDINGS_H_
