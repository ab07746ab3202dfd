#include "tests/benchmark/contents.h"

#include <cstdint>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "google/protobuf/text_format.h"

ABSL_FLAG(uint64_t, variables, 0, "For --serve and --work: how many.");
ABSL_FLAG(uint64_t, elements, 0, "For --serve and --work: of a variable.");
ABSL_FLAG(uint64_t, row_width, 0, "For --serve and --work: 0: no table.");
ABSL_FLAG(std::string, optimizer, "", "For --serve: a job.Optimizer.");

namespace parasol {

std::vector<std::string> ToFlags(const Contents& contents) {
  return {absl::StrCat("--variables=", contents.variables),
          absl::StrCat("--elements=", contents.elements),
          absl::StrCat("--row_width=", contents.row_width),
          absl::StrCat("--optimizer=", contents.optimizer)};
}

Contents ContentsFromFlags() {
  return {.variables = absl::GetFlag(FLAGS_variables),
          .elements = absl::GetFlag(FLAGS_elements),
          .row_width = absl::GetFlag(FLAGS_row_width),
          .optimizer = absl::GetFlag(FLAGS_optimizer)};
}

job::Optimizer OptimizerOf(const Contents& contents) {
  job::Optimizer optimizer;
  CHECK(google::protobuf::TextFormat::ParseFromString(contents.optimizer,
                                                      &optimizer))
      << contents.optimizer;
  return optimizer;
}

}  // namespace parasol
