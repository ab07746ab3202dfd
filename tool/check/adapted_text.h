#ifndef PARASOL_TOOL_CHECK_ADAPTED_TEXT_H_
#define PARASOL_TOOL_CHECK_ADAPTED_TEXT_H_

#include <string>
#include <vector>

#include "cluster/check/job_report.h"
#include "cluster/job/check_job.h"

namespace parasol {

// Returns the text of `job`, which has no fault, with the means, deviations and
// vocabularies of `report` filled in; the rest, comments included, stays as it
// is.
//
// A pattern of columns gives its place to the columns that it stands for: each
// has the pattern's other fields, and the first one the comments among them.
//
// Columns in a list in brackets become fields of their own. Fields without a
// place in the file, which come from --set, are left out: `left_out` gets their
// paths.
std::string AdaptedText(const CheckedJob& job, const JobReport& report,
                        std::vector<std::string>& left_out);

}  // namespace parasol

#endif  // PARASOL_TOOL_CHECK_ADAPTED_TEXT_H_
