#ifndef PARASOL_BASE_METRICS_H_
#define PARASOL_BASE_METRICS_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/page_server.h"

namespace prometheus {
class Registry;
class Counter;
class Gauge;
class Histogram;
}  // namespace prometheus

namespace parasol {

using MetricLabels = std::map<std::string, std::string>;

// Counter, Gauge and Histogram are handles: cheap to copy, valid as long as
// their MetricsRegistry, thread-safe. A counter or gauge is updated without a
// lock; a histogram holds a lock for one bucket search.
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
// creates its handles once, in its <Component>Metrics struct.
//
// Names are parasol_<role>_<what>_<unit>, in base units; the names of counters
// end in _total. A label must have a bounded set of values: never a row, an
// address that can change, or an error text. Asking twice for a name with equal
// labels gives one metric. A name that Prometheus does not allow, or that a
// metric of another kind has, aborts the process. Thread-safe.
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
  // Adds a histogram. `bounds` are the buckets' upper bounds, ascending; +Inf
  // is implied.
  Histogram AddHistogram(const std::string& name, const std::string& help,
                         const std::vector<double>& bounds,
                         const MetricLabels& labels = {});

  // Returns the metrics in Prometheus' text format, as /metrics serves them
  // (which adds the process's own numbers).
  std::string Text() const;

 private:
  friend class MetricsServer;
  std::shared_ptr<prometheus::Registry> registry_;
};

// Returns bucket bounds for latencies, in seconds, from 10 µs to 100 s.
const std::vector<double>& LatencyBounds();

// Serves GET /metrics over HTTP until it is destroyed, whatever other clients
// do with their connections, and pages beside it: the registry's metrics, and
// the process's CPU time, memory, file descriptors and start time (under the
// names that all Prometheus clients use) and
// parasol_build_info{version,commit}.
class MetricsServer {
 public:
  // Starts the server. `address` is "host:port"; host is an IP address,
  // "localhost", or empty for all of IPv4; port 0 lets the system choose one.
  // `others` are asked for what is not at /metrics, until the server's end.
  //   InvalidArgument  not an address, or the port is taken; the message names
  //                    it.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(
      const std::string& address, MetricsRegistry& registry,
      PageServer::Pages others = nullptr);
  ~MetricsServer();

  int port() const;

 private:
  explicit MetricsServer(std::unique_ptr<PageServer> server);

  const std::unique_ptr<PageServer> server_;
};

}  // namespace parasol

#endif  // PARASOL_BASE_METRICS_H_
