#include "base/metrics.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <prometheus/collectable.h>
#include <prometheus/counter.h>
#include <prometheus/exposer.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <sys/socket.h>
#include <unistd.h>

#include <exception>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/process_stats.h"
#include "base/version.h"

namespace parasol {
namespace {

// Adds one metric to a family made by prometheus-cpp's `builder`, whose only
// way to refuse a bad or clashing name is to throw.
template <typename Builder, typename... Args>
auto* AddMetric(Builder builder, prometheus::Registry& registry,
                const std::string& name, const std::string& help,
                const MetricLabels& labels, const Args&... args) {
  try {
    return &builder.Name(name).Help(help).Register(registry).Add(labels,
                                                                 args...);
  } catch (const std::exception& error) {
    LOG(FATAL) << "metric " << name << ": " << error.what();
    throw;  // LOG(FATAL) does not return.
  }
}

prometheus::MetricFamily SingleGauge(const std::string& name,
                                     const std::string& help, double value) {
  prometheus::MetricFamily family;
  family.name = name;
  family.help = help;
  family.type = prometheus::MetricType::Gauge;
  family.metric.resize(1);
  family.metric[0].gauge.value = value;
  return family;
}

prometheus::MetricFamily SingleCounter(const std::string& name,
                                       const std::string& help, double value) {
  prometheus::MetricFamily family = SingleGauge(name, help, 0);
  family.type = prometheus::MetricType::Counter;
  family.metric[0].counter.value = value;
  return family;
}

prometheus::MetricFamily BuildInfo() {
  prometheus::MetricFamily family =
      SingleGauge("parasol_build_info", "What this binary was built from.", 1);
  family.metric[0].label = {{"version", kVersion}, {"commit", BuildCommit()}};
  return family;
}

// Read anew at each scrape.
class ProcessCollectable : public prometheus::Collectable {
 public:
  std::vector<prometheus::MetricFamily> Collect() const override {
    std::vector<prometheus::MetricFamily> families = {BuildInfo()};
    const absl::StatusOr<ProcessStats> stats = ReadProcessStats();
    if (!stats.ok()) return families;
    families.push_back(SingleCounter("process_cpu_seconds_total",
                                     "User and system CPU time spent.",
                                     stats->cpu_seconds));
    const auto add_gauge = [&families](const char* name, const char* help,
                                       double value) {
      families.push_back(SingleGauge(name, help, value));
    };
    add_gauge("process_start_time_seconds", "Start time since the Unix epoch.",
              stats->start_time_seconds);
    add_gauge("process_resident_memory_bytes", "Resident memory size.",
              stats->resident_bytes);
    add_gauge("process_virtual_memory_bytes", "Virtual memory size.",
              stats->virtual_bytes);
    add_gauge("process_threads", "Threads.", stats->threads);
    add_gauge("process_open_fds", "Open file descriptors.", stats->open_fds);
    add_gauge("process_max_fds", "Limit of open file descriptors.",
              stats->max_fds);
    return families;
  }
};

// Civetweb's form of "host:port": a bare port listens on all of IPv4.
absl::StatusOr<std::string> ListeningPort(const std::string& address) {
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  if (colon == std::string::npos ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) || port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("metrics address \"", address, "\" is not host:port"));
  }
  std::string host = address.substr(0, colon);
  if (host == "localhost") host = "127.0.0.1";
  return host.empty() ? absl::StrCat(port) : absl::StrCat(host, ":", port);
}

// Connects to a port of this machine and leaves.
void Knock(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address));
  close(fd);
}

}  // namespace

void Counter::Add(double amount) { counter_->Increment(amount); }
double Counter::value() const { return counter_->Value(); }

void Gauge::Set(double value) { gauge_->Set(value); }
void Gauge::Add(double amount) { gauge_->Increment(amount); }
double Gauge::value() const { return gauge_->Value(); }

void Histogram::Observe(double value) { histogram_->Observe(value); }

MetricsRegistry::MetricsRegistry()
    : registry_(std::make_shared<prometheus::Registry>()) {}
MetricsRegistry::~MetricsRegistry() = default;

Counter MetricsRegistry::AddCounter(const std::string& name,
                                    const std::string& help,
                                    const MetricLabels& labels) {
  return Counter(
      AddMetric(prometheus::BuildCounter(), *registry_, name, help, labels));
}

Gauge MetricsRegistry::AddGauge(const std::string& name,
                                const std::string& help,
                                const MetricLabels& labels) {
  return Gauge(
      AddMetric(prometheus::BuildGauge(), *registry_, name, help, labels));
}

Histogram MetricsRegistry::AddHistogram(const std::string& name,
                                        const std::string& help,
                                        const std::vector<double>& bounds,
                                        const MetricLabels& labels) {
  return Histogram(AddMetric(prometheus::BuildHistogram(), *registry_, name,
                             help, labels, bounds));
}

std::string MetricsRegistry::Text() const {
  return prometheus::TextSerializer().Serialize(registry_->Collect());
}

const std::vector<double>& LatencyBounds() {
  static const auto* const bounds = new std::vector<double>{
      1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025,
      0.05, 0.1,    0.25, 0.5,  1,      2.5,  5,    10,     25,   50,   100};
  return *bounds;
}

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(
    const std::string& address, MetricsRegistry& registry) {
  const absl::StatusOr<std::string> port = ListeningPort(address);
  if (!port.ok()) return port.status();
  std::unique_ptr<MetricsServer> server(new MetricsServer);
  server->registry_ = registry.registry_;
  server->process_ = std::make_shared<ProcessCollectable>();
  try {
    server->exposer_ = std::make_unique<prometheus::Exposer>(*port);
  } catch (const std::exception&) {
    // Its text names neither the address nor the reason.
    return absl::InvalidArgumentError(
        absl::StrCat("metrics address ", address,
                     ": cannot listen there (taken, or not this machine's)"));
  }
  server->exposer_->RegisterCollectable(server->registry_);
  server->exposer_->RegisterCollectable(server->process_);
  server->port_ = server->exposer_->GetListeningPorts().front();
  return server;
}

MetricsServer::MetricsServer() = default;

// Civetweb looks every two seconds whether it is to stop, or when somebody
// connects: no process's exit is worth two seconds.
MetricsServer::~MetricsServer() {
  if (exposer_ == nullptr) return;
  absl::Mutex mu;
  bool stopped = false;
  std::thread stopper([this, &mu, &stopped] {
    exposer_.reset();
    absl::MutexLock lock(&mu);
    stopped = true;
  });
  const auto has_stopped = [&mu, &stopped] {
    absl::MutexLock lock(&mu);
    return Clock::Real().AwaitWithTimeout(mu, absl::Condition(&stopped),
                                          absl::Milliseconds(5));
  };
  while (!has_stopped()) Knock(port_);
  stopper.join();
}

}  // namespace parasol
