#include "loop/peers/recorded_gauges.h"

namespace parasol {

void RecordedGauges::Show(
    const std::vector<std::pair<std::string, double>>& values) {
  for (const auto& [name, value] : values) {
    auto gauge = gauges_.find(name);
    if (gauge == gauges_.end()) {
      gauge = gauges_
                  .emplace(name, registry_.AddGauge(
                                     "parasol_worker_recorded_value",
                                     "Last value that the program has recorded "
                                     "under a name.",
                                     {{"name", name}}))
                  .first;
    }
    gauge->second.Set(value);
  }
}

}  // namespace parasol
