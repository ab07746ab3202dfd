#include "tests/simulation/known_findings.h"

#include <algorithm>
#include <fstream>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace parasol::simulation {
namespace {

std::string Trimmed(absl::string_view text) {
  return std::string(absl::StripAsciiWhitespace(text));
}

}  // namespace

absl::StatusOr<KnownFindings> KnownFindings::Read(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat(path, ": is not there"));
  KnownFindings known;
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> fields = absl::StrSplit(line, '|');
    if (fields.size() != 3) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": \"", line, "\" does not have three fields"));
    }
    Finding& finding = known.findings_.emplace_back();
    finding.violation = Trimmed(fields[0]);
    for (const absl::string_view fault : absl::StrSplit(fields[1], ',')) {
      finding.faults.insert(Trimmed(fault));
    }
    finding.item = Trimmed(fields[2]);
  }
  return known;
}

std::string KnownFindings::ItemOf(const Violation& violation,
                                  const Schedule& schedule) const {
  const std::set<std::string> faults = schedule.FaultNames();
  for (const Finding& finding : findings_) {
    const bool applies =
        finding.faults.contains("always") ||
        std::any_of(faults.begin(), faults.end(), [&](const std::string& name) {
          return finding.faults.contains(name);
        });
    if (finding.violation == violation.kind && applies) return finding.item;
  }
  return "";
}

}  // namespace parasol::simulation
