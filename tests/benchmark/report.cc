#include "tests/benchmark/report.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"

namespace parasol {
namespace {

// `measurement` over what `contender` achieved with the same exchange.
double Ratio(const Report& report, const Measurement& measurement,
             const std::string& contender) {
  for (const Measurement& other : report.measurements) {
    if (other.contender == contender && other.kind == measurement.kind &&
        other.bytes == measurement.bytes) {
      return measurement.gigabytes_per_second / other.gigabytes_per_second;
    }
  }
  return 0;
}

}  // namespace

std::string ToTable(const Report& report) {
  std::string table = absl::StrFormat(
      "%-10s %9s  %-11s %8s %10s %10s %7s %8s\n", "exchange", "KiB",
      "contender", "GB/s", "p50 us", "p99 us", "/ TCP", "/ plain");
  for (const Measurement& m : report.measurements) {
    absl::StrAppendFormat(
        &table, "%-10s %9d  %-11s %8.2f %10.0f %10.0f %7.2f %8.2f\n",
        NameOf(m.kind), m.bytes >> 10, m.contender, m.gigabytes_per_second,
        absl::ToDoubleMicroseconds(m.p50), absl::ToDoubleMicroseconds(m.p99),
        Ratio(report, m, "raw TCP"), Ratio(report, m, "plain gRPC"));
  }
  for (const auto& [contender, bytes] : report.server_rss_bytes) {
    absl::StrAppendFormat(&table, "server of %s: %d MiB resident\n", contender,
                          bytes >> 20);
  }
  return table;
}

std::string ToJson(const Report& report) {
  nlohmann::json json;
  for (const Measurement& m : report.measurements) {
    json["measurements"].push_back(
        {{"contender", m.contender},
         {"exchange", NameOf(m.kind)},
         {"bytes", m.bytes},
         {"bytes_per_second", m.gigabytes_per_second * 1e9},
         {"p50_seconds", absl::ToDoubleSeconds(m.p50)},
         {"p99_seconds", absl::ToDoubleSeconds(m.p99)},
         {"over_raw_tcp", Ratio(report, m, "raw TCP")},
         {"over_plain_grpc", Ratio(report, m, "plain gRPC")}});
  }
  json["server_rss_bytes"] = report.server_rss_bytes;
  return json.dump(2) + "\n";
}

}  // namespace parasol
