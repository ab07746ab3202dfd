#ifndef PARASOL_ML_METRIC_METRIC_RESULTS_H_
#define PARASOL_ML_METRIC_METRIC_RESULTS_H_

#include <string>
#include <utility>
#include <vector>

namespace parasol {

// Values of metrics with their names in the job file, in its order. NaN stands
// for undefined.
using MetricResults = std::vector<std::pair<std::string, double>>;

// Returns a text for logs: "accuracy 0.9712, auc 0.9034, loss 0.0934".
std::string Describe(const MetricResults& metrics, double loss);

}  // namespace parasol

#endif  // PARASOL_ML_METRIC_METRIC_RESULTS_H_
