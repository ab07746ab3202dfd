#include "loop/peers/program_description.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cluster/job/changed_fields.h"

namespace parasol {
namespace {

std::string LineAt(const std::vector<std::string>& lines, size_t i) {
  return i < lines.size() ? lines[i] : "nothing more";
}

job::Job WhatProgramsShare(const job::Job& job) {
  job::Job shared;
  *shared.mutable_model() = job.model();
  *shared.mutable_optimizer() = job.optimizer();
  shared.set_seed(job.seed());
  *shared.mutable_end() = job.end();
  if (job.parameter_server().has_local_steps()) {
    job::LocalSteps& local =
        *shared.mutable_parameter_server()->mutable_local_steps();
    local = job.parameter_server().local_steps();
    // A chief's is filled in.
    local.clear_batch_size();
  }
  return shared;
}

}  // namespace

std::string DescribeProgram(ParameterStore& store, int replicas,
                            const std::vector<std::string>& parts) {
  std::vector<std::string> lines = {absl::StrCat(replicas, " replicas")};
  const StoredVariables& variables = store.variables();
  for (size_t i = 0; i < variables.specs().size(); ++i) {
    const VariableSpec& spec = variables.specs()[i];
    lines.push_back(absl::StrCat(
        "variable ", spec.name, " of shape [", absl::StrJoin(spec.shape, ", "),
        "] with slots [",
        absl::StrJoin(variables.optimizer(i).slot_names(), ", "), "]"));
  }
  lines.insert(lines.end(), parts.begin(), parts.end());
  return absl::StrJoin(lines, "\n");
}

absl::Status CheckSameProgram(const std::vector<std::string>& descriptions) {
  const std::vector<std::string> first =
      absl::StrSplit(descriptions.front(), '\n');
  for (size_t rank = 1; rank < descriptions.size(); ++rank) {
    if (descriptions[rank] == descriptions.front()) continue;
    const std::vector<std::string> other =
        absl::StrSplit(descriptions[rank], '\n');
    size_t line = 0;
    while (LineAt(first, line) == LineAt(other, line)) ++line;
    return absl::InvalidArgumentError(absl::StrCat(
        "worker/", rank, " runs another program than worker/0: it has ",
        LineAt(other, line), " where worker/0 has ", LineAt(first, line),
        "; start the same program everywhere"));
  }
  return absl::OkStatus();
}

absl::Status CheckSameProgram(const job::Job& of_chief, const job::Job& own) {
  const std::vector<std::string> changed =
      ChangedFields(WhatProgramsShare(of_chief), WhatProgramsShare(own));
  if (changed.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("this worker runs another program than the chief: ",
                   absl::StrJoin(changed, "; "),
                   "; start the same program with the same flags everywhere"));
}

}  // namespace parasol
