#ifndef PARASOL_BASE_METRICS_H_
#define PARASOL_BASE_METRICS_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace prometheus {
class Registry;
class Counter;
class Gauge;
class Histogram;
class Exposer;
class Collectable;
}  // namespace prometheus

namespace parasol {

using MetricLabels = std::map<std::string, std::string>;

// The three below are handles: cheap to copy, valid as long as their
// MetricsRegistry, thread-safe. A counter or gauge is lock-free to bump; a
// histogram holds a lock for one bucket search.
class Counter {
 public:
  void Add(double amount = 1);
  double value() const;

 private:
  friend class MetricsRegistry;
  explicit Counter(prometheus::Counter* counter) : counter_(counter) {}
  prometheus::Counter* counter_;
};

class Gauge {
 public:
  void Set(double value);
  void Add(double amount);
  double value() const;

 private:
  friend class MetricsRegistry;
  explicit Gauge(prometheus::Gauge* gauge) : gauge_(gauge) {}
  prometheus::Gauge* gauge_;
};

class Histogram {
 public:
  void Observe(double value);

 private:
  friend class MetricsRegistry;
  explicit Histogram(prometheus::Histogram* histogram)
      : histogram_(histogram) {}
  prometheus::Histogram* histogram_;
};

// The metrics of one process (in tests: of one in-process task). A component
// takes its handles from it once, in its <Component>Metrics struct.
//
// Names are parasol_<role>_<what>_<unit>: base units, counters end in _total.
// A label's values are bounded: never a row, an address that grows, an error
// text. The same name and labels give the same metric; a name that is not
// Prometheus', or that another kind has, aborts. Thread-safe.
class MetricsRegistry {
 public:
  MetricsRegistry();
  ~MetricsRegistry();
  MetricsRegistry(const MetricsRegistry&) = delete;
  MetricsRegistry& operator=(const MetricsRegistry&) = delete;

  Counter AddCounter(const std::string& name, const std::string& help,
                     const MetricLabels& labels = {});
  Gauge AddGauge(const std::string& name, const std::string& help,
                 const MetricLabels& labels = {});
  // `bounds` are the buckets' upper bounds, ascending; +Inf is implied.
  Histogram AddHistogram(const std::string& name, const std::string& help,
                         const std::vector<double>& bounds,
                         const MetricLabels& labels = {});

  // Prometheus' text format, as /metrics serves it (which adds the process's
  // own numbers).
  std::string Text() const;

 private:
  friend class MetricsServer;
  std::shared_ptr<prometheus::Registry> registry_;
};

// Seconds, from 10 µs to 100 s: for the latency of anything here.
const std::vector<double>& LatencyBounds();

// Serves GET /metrics over HTTP until it is destroyed: the registry's metrics,
// and of the process CPU time, memory, file descriptors, start time (under the
// names all Prometheus clients use) and parasol_build_info{version,commit}.
class MetricsServer {
 public:
  // `address` is "host:port", host an IP address, "localhost" or nothing for
  // all of IPv4; port 0 lets the system choose one.
  //   InvalidArgument  not an address, or the port is taken: names it.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(
      const std::string& address, MetricsRegistry& registry);
  ~MetricsServer();

  int port() const { return port_; }

 private:
  MetricsServer();
  // The exposer only borrows what it shows.
  std::shared_ptr<prometheus::Collectable> registry_;
  std::shared_ptr<prometheus::Collectable> process_;
  std::unique_ptr<prometheus::Exposer> exposer_;
  int port_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_BASE_METRICS_H_
