#ifndef PARASOL_LOOP_PEERS_RECORDED_GAUGES_H_
#define PARASOL_LOOP_PEERS_RECORDED_GAUGES_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/metrics.h"

namespace parasol {

// The metric of the values that a program records: the last one of each name.
// Must be used from one thread.
class RecordedGauges {
 public:
  // `registry` must outlive this object.
  explicit RecordedGauges(MetricsRegistry& registry) : registry_(registry) {}

  void Show(const std::vector<std::pair<std::string, double>>& values);

 private:
  MetricsRegistry& registry_;
  std::map<std::string, Gauge> gauges_;  // key: name
};

}  // namespace parasol

#endif  // PARASOL_LOOP_PEERS_RECORDED_GAUGES_H_
