#include "tool/exchange/export_companions.h"

#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "cluster/job/defaults.h"
#include "google/protobuf/text_format.h"
#include "storage/durable_file.h"

namespace parasol {
namespace {

absl::Status WriteJob(const job::Job& job, const std::string& output) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(WithLocalStepsAsWritten(job),
                                              &text);
  return ReplaceFileDurably(absl::StrCat(output, ".job.textproto"), text);
}

// A name as a part of a file's name.
std::string Plain(absl::string_view name) {
  std::string plain(name);
  for (char& c : plain) {
    if (!absl::ascii_isalnum(c) && c != '-') c = '_';
  }
  return plain;
}

absl::Status WriteVocabularies(const job::Model& model,
                               const std::string& output) {
  std::set<std::string> paths;
  for (const job::ModelInput& input : model.input()) {
    for (const job::IdColumn& column : input.ids().column()) {
      if (!column.has_vocabulary()) continue;
      const std::string path =
          absl::StrCat(output, ".vocabulary.", Plain(input.name()), ".",
                       Plain(absl::StrJoin(column.name(), "-")), ".txt");
      if (!paths.insert(path).second) {
        return absl::InvalidArgumentError(absl::StrCat(
            path,
            ": two vocabularies of the job would have this file; give "
            "input ",
            input.name(), " or its column another name"));
      }
      RETURN_IF_ERROR(ReplaceFileDurably(
          path, absl::StrCat(absl::StrJoin(column.vocabulary().value(), "\n"),
                             "\n")));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteExportCompanions(const job::Job& job,
                                   const std::string& output) {
  RETURN_IF_ERROR(WriteJob(job, output));
  return WriteVocabularies(job.model(), output);
}

}  // namespace parasol
