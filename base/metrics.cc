#include "base/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <cstdint>
#include <exception>
#include <iterator>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/log.h"
#include "base/page_server.h"
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

// Returns the process's own metrics, read anew.
std::vector<prometheus::MetricFamily> ProcessMetrics() {
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

struct HostAndPort {
  std::string host;
  int port = 0;
};

// An empty host is all of IPv4.
absl::StatusOr<HostAndPort> ParseMetricsAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  if (colon == std::string::npos ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) || port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("metrics address \"", address, "\" is not host:port"));
  }
  std::string host(
      absl::StripSuffix(absl::StripPrefix(address.substr(0, colon), "["), "]"));
  if (host == "localhost") host = "127.0.0.1";
  if (host.empty()) host = "0.0.0.0";
  return HostAndPort{std::move(host), static_cast<int>(port)};
}

// Returns the page of a path: the metrics of a registry and the process's.
PageServer::Page PageOf(prometheus::Registry& registry,
                        absl::string_view path) {
  if (path != "/metrics") return {.status = 404, .body = "see /metrics\n"};
  std::vector<prometheus::MetricFamily> families = registry.Collect();
  std::vector<prometheus::MetricFamily> own = ProcessMetrics();
  families.insert(families.end(), std::make_move_iterator(own.begin()),
                  std::make_move_iterator(own.end()));
  return {.content_type = "text/plain; version=0.0.4; charset=utf-8",
          .body = prometheus::TextSerializer().Serialize(families)};
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
    const std::string& address, MetricsRegistry& registry,
    PageServer::Pages others) {
  const absl::StatusOr<HostAndPort> parsed = ParseMetricsAddress(address);
  if (!parsed.ok()) return parsed.status();
  absl::StatusOr<std::unique_ptr<PageServer>> server =
      PageServer::Start(parsed->host, parsed->port,
                        [registry = registry.registry_,
                         others = std::move(others)](absl::string_view path) {
                          return others != nullptr && path != "/metrics"
                                     ? others(path)
                                     : PageOf(*registry, path);
                        });
  if (!server.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("metrics address ", address,
                     ": cannot listen there: ", server.status().message()));
  }
  return std::unique_ptr<MetricsServer>(new MetricsServer(*std::move(server)));
}

MetricsServer::MetricsServer(std::unique_ptr<PageServer> server)
    : server_(std::move(server)) {}

MetricsServer::~MetricsServer() = default;

int MetricsServer::port() const { return server_->port(); }

}  // namespace parasol
