#include "ml/metric/metric_results.h"

#include "absl/strings/str_format.h"

namespace parasol {

std::string Describe(const MetricResults& metrics, double loss) {
  std::string text;
  for (const auto& [name, value] : metrics) {
    absl::StrAppendFormat(&text, "%s %.4f, ", name, value);
  }
  absl::StrAppendFormat(&text, "loss %.4f", loss);
  return text;
}

}  // namespace parasol
