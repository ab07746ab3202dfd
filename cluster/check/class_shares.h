#ifndef PARASOL_CLUSTER_CHECK_CLASS_SHARES_H_
#define PARASOL_CLUSTER_CHECK_CLASS_SHARES_H_

#include <string>
#include <vector>

#include "cluster/check/job_report.h"
#include "ml/input/feature/model_inputs.h"

namespace parasol {

// Returns the classes of labels, none of which has been seen; nothing if they
// are no classes.
std::vector<ClassShare> ClassesOf(const LabelForm& label);

// Says which classes no label is, or that all labels are the same; nothing if
// all is well.
std::string UnseenClasses(const LabelForm& form, const LabelsReport& labels);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECK_CLASS_SHARES_H_
