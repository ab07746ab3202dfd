#ifndef PARASOL_TOOL_EXCHANGE_EXPORT_COMPANIONS_H_
#define PARASOL_TOOL_EXCHANGE_EXPORT_COMPANIONS_H_

#include <string>

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace parasol {

// Writes what comes beside every export to `output`: "<output>.job.textproto",
// and "<output>.vocabulary.<input>.<column>.txt" for each vocabulary of the
// job's columns, with a value in each line.
//   InvalidArgument  two vocabularies would have one file.
//   any other        as for storage/durable_file.h.
absl::Status WriteExportCompanions(const job::Job& job,
                                   const std::string& output);

}  // namespace parasol

#endif  // PARASOL_TOOL_EXCHANGE_EXPORT_COMPANIONS_H_
